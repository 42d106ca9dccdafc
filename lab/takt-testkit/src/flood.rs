//! Network overload for tests: datagrams at a constant rate, from a thread that ends on drop.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::waiting;

/// Length of a datagram in octets.
const LEN: usize = 1400;

/// Time without datagrams after which a [`Sink`] ends.
const SILENCE: Duration = Duration::from_millis(500);

/// Thread that runs until its value is dropped.
struct Worker {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        Self { is_over, thread: Some(std::thread::spawn(move || work(&over))) }
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            waiting::join("the thread of a flood ends", thread);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Sender of datagrams at a constant rate.
pub struct Flood {
    worker: Worker,
    sent: Arc<AtomicU64>,
}

impl Flood {
    /// Starts sending datagrams of 1,400 octets. `bits_per_second` counts these octets. Datagrams
    /// that a delayed thread missed are sent immediately afterward.
    pub fn start(from: UdpSocket, to: SocketAddr, bits_per_second: u64) -> Self {
        Self::start_with(from, to, bits_per_second / 8, LEN)
    }

    /// Starts sending this number of datagrams of `len` octets per second.
    pub fn start_packets(from: UdpSocket, to: SocketAddr, packets_per_second: u64, len: usize) -> Self {
        Self::start_with(from, to, packets_per_second * len as u64, len)
    }

    fn start_with(from: UdpSocket, to: SocketAddr, octets_per_second: u64, len: usize) -> Self {
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let worker = Worker::start(move |is_over| {
            let (begin, payload) = (Instant::now(), vec![0; len]);
            while !is_over.load(Ordering::Relaxed) {
                let due = begin.elapsed().as_nanos() * u128::from(octets_per_second) / 1_000_000_000 / len as u128;
                for _ in u128::from(counted.load(Ordering::Relaxed))..due {
                    from.send_to(&payload, to).expect("a route exists");
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                // tidy-allow(sleep): the pace of the flood.
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { worker, sent }
    }

    /// Stops sending; returns the number of sent datagrams.
    pub fn end(mut self) -> u64 {
        self.worker.end();
        self.sent.load(Ordering::Relaxed)
    }
}

/// Receiver that counts datagrams.
pub struct Sink {
    worker: Worker,
    received: Arc<AtomicU64>,
}

impl Sink {
    /// Starts receiving.
    pub fn start(socket: UdpSocket) -> Self {
        let received = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&received);
        socket.set_read_timeout(Some(SILENCE)).expect("a timeout");
        let worker = Worker::start(move |is_over| {
            let mut buffer = [0; LEN];
            loop {
                if socket.recv_from(&mut buffer).is_ok() {
                    counted.fetch_add(1, Ordering::Relaxed);
                } else if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        Self { worker, received }
    }

    /// Returns the number of datagrams received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends after 500 ms without datagrams; returns the number of received datagrams.
    pub fn end(mut self) -> u64 {
        self.worker.end();
        self.received()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::{Flood, Sink};
    use crate::waiting::until;

    #[test]
    fn flood_is_counted_at_both_ends() {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port is free"));
        let address = to.local_addr().expect("the socket is bound");
        let sink = Sink::start(to);
        let flood = Flood::start(from, address, 10_000_000);
        until("the flood arrives", || sink.received() >= 10);
        let (sent, received) = (flood.end(), sink.end());
        assert!(received >= 10 && received <= sent, "{received} of {sent}");
    }
}
