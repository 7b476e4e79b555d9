//! Peers that no honest client resembles, to run beside one.
//!
//! Paced, so that what the honest client loses is lost to the broker's handling of them and not to
//! the processor time that the hostile ones burn themselves.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::frame::{Api, request};

const PACE: Duration = Duration::from_millis(5);
const SILENT: usize = 200;
const PROMISING: usize = 100;
const DEAF: usize = 20;
/// Requests that a deaf peer sends without reading an answer.
const UNREAD_REQUESTS: usize = 2_000;

/// Running hostile peers; they stop with the value.
#[derive(Debug)]
pub struct Hostile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// Starts all kinds at once.
    pub fn start(broker: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || run(broker, &seen));
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the hostile peers do not panic");
        }
    }
}

/// That the broker hangs up on any of this is its good right, so every error here is fine.
fn run(broker: SocketAddr, stop: &AtomicBool) {
    let mut held: Vec<TcpStream> = Vec::new();
    let honest = request(Api::ApiVersions, 0, 1, |_| {});
    let unread = honest.repeat(UNREAD_REQUESTS);
    let gigabytes = i32::MAX.to_be_bytes();
    let endless_array = request(Api::Produce, 3, 1, |w| {
        w.i16(-1).i16(-1).i32(1000).i32(i32::MAX);
    });
    for turn in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(PACE);
        let Ok(mut stream) = TcpStream::connect(broker) else { continue };
        let kind = turn % 5;
        match kind {
            0 if held.len() < SILENT => {
                stream.write_all(&honest[..honest.len() / 2]).ok();
                held.push(stream);
            }
            1 if held.len() < SILENT + PROMISING => {
                stream.write_all(&gigabytes).ok();
                stream.write_all(&honest).ok();
                held.push(stream);
            }
            2 if held.len() < SILENT + PROMISING + DEAF => {
                stream.set_nonblocking(true).ok();
                stream.write_all(&unread).ok();
                held.push(stream);
            }
            3 => drop(stream.write_all(&endless_array)),
            _ => drop(stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc])),
        }
    }
}
