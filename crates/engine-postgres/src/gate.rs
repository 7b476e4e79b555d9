//! Holds up those who connect again too soon after a failure, however many they are.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::pause;
use crate::error::Failure;

/// See the [module](self). Open until something fails.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Option<Shut>>);

#[derive(Debug)]
struct Shut {
    /// Failures in a row.
    failures: usize,
    until: Instant,
    why: Failure,
}

/// Who may try, and after how many failures in a row.
#[derive(Debug)]
pub(crate) struct Entered(usize);

impl Gate {
    /// Lets the caller try, or refuses for the reason of the last failure. One at a time may try after a
    /// failure.
    pub(crate) fn enter(&self) -> Result<Entered, Failure> {
        let mut shut = self.0.lock();
        let Some(shut) = &mut *shut else { return Ok(Entered(0)) };
        let now = Instant::now();
        if now < shut.until {
            return Err(shut.why.clone());
        }
        shut.until = now + pause(shut.failures);
        Ok(Entered(shut.failures))
    }

    /// Whoever was let in got through.
    pub(crate) fn passed(&self) {
        drop(self.0.lock().take());
    }

    /// Whoever was let in did not. Many that come in together fail together, which counts once.
    pub(crate) fn failed(&self, entered: &Entered, why: &Failure) {
        let mut shut = self.0.lock();
        if shut.as_ref().map_or(0, |shut| shut.failures) == entered.0 {
            let failures = entered.0 + 1;
            *shut =
                Some(Shut { failures, until: Instant::now() + pause(failures), why: why.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_gone_is_asked_about_once_a_second_however_many_ask() {
        let gate = Gate::default();
        let why = Failure::Lost("refused".into());
        let together: Vec<_> = (0..100).map(|_| gate.enter().expect("it is open")).collect();
        for entered in &together {
            gate.failed(entered, &why);
        }
        let mut tries = 0;
        for _ in 0..60_000 {
            advance(Duration::from_millis(1)).await;
            for _ in 0..10 {
                if let Ok(entered) = gate.enter() {
                    tries += 1;
                    gate.failed(&entered, &why);
                }
            }
        }
        assert!((60..240).contains(&tries), "{tries} in a minute");
        advance(Duration::from_secs(1)).await;
        gate.enter().expect("a second has passed");
        assert!(gate.enter().is_err(), "one at a time");
        gate.passed();
        gate.enter().expect("it is open for all");
        gate.enter().expect("it is open for all");
    }
}
