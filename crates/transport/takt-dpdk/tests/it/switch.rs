//! Software switch for devices that connect only two ends: a thread that owns the far ends and
//! forwards frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use takt_dpdk::DpdkPort;
use takt_transport::Scan;
use takt_transport::ethernet::FramePort;

/// Switch with its thread, which ends on drop.
pub struct Switch {
    add: Sender<(DpdkPort, Sender<()>)>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    pub fn new() -> Self {
        let (add, added) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let ends = ends.clone();
            move || run(&added, &ends)
        });
        Self { add, ends, thread: Some(thread) }
    }

    /// Adds a port, which has to return all frames. Frames that any port sends afterwards reach it.
    pub fn add(&self, port: DpdkPort) {
        let (done, is_done) = channel();
        self.add.send((port, done)).expect("the thread runs");
        is_done.recv_timeout(std::time::Duration::from_secs(60)).expect("the thread runs");
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking(), "the switch panicked");
        }
    }
}

fn run(added: &Receiver<(DpdkPort, Sender<()>)>, ends: &AtomicBool) {
    let mut ports: Vec<(DpdkPort, [u8; 6])> = Vec::new();
    let mut frame = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        for (port, done) in added.try_iter() {
            ports.push((port, [0; 6]));
            done.send(()).expect("the receiver waits");
        }
        for from in 0..ports.len() {
            for _ in 0..32 {
                let (port, address) = &mut ports[from];
                if !port.recv(Scan::Hot).expect("receive succeeds") {
                    break;
                }
                frame.clear();
                frame.extend_from_slice(port.received());
                address.copy_from_slice(&frame[6..12]);
                forward(&mut ports, from, &frame);
            }
        }
        for (port, _) in &mut ports {
            port.flush().expect("flush succeeds");
        }
        std::thread::yield_now();
    }
}

/// Forwards a frame to the port of its destination, or to all others.
fn forward(ports: &mut [(DpdkPort, [u8; 6])], from: usize, frame: &[u8]) {
    let destination = ports.iter().position(|(_, address)| frame[..6] == *address);
    for (at, (port, _)) in ports.iter_mut().enumerate() {
        if at != from && destination.is_none_or(|destination| destination == at) {
            port.loan()[..frame.len()].copy_from_slice(frame);
            port.send(frame.len());
        }
    }
}
