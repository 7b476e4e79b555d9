//! Peers that were refused, told in the log: some each second, so that a flood of them is told as one.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Told in each second; more are counted.
const TOLD_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// How many peers were told of in this second.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    began_at: Option<Instant>,
    told: u32,
    left_out: u64,
}

impl Refusals {
    /// Whether to tell of one more, and how many were left out since the last that was told.
    pub(crate) fn admit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut window = self.window.lock();
        if window.began_at.is_none_or(|began_at| now - began_at >= WINDOW) {
            window.began_at = Some(now);
            window.told = 0;
        }
        if window.told == TOLD_MAX {
            window.left_out += 1;
            return None;
        }
        window.told += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_told_as_ten_a_second_and_a_count() {
        let refusals = Refusals::default();
        let told = (0..25).filter(|_| refusals.admit() == Some(0)).count();
        assert_eq!(told, 10);
        tokio::time::advance(WINDOW).await;
        assert_eq!(refusals.admit(), Some(15), "the first of the next second has the count");
        assert_eq!(refusals.admit(), Some(0));
    }
}
