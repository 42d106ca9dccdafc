//! An overload of a network: datagrams at a rate, from a thread that ends with its value.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::waiting;

/// Octets of a datagram.
const LEN: usize = 1400;

/// For so long nothing has come when a [`Sink`] ends.
const SILENCE: Duration = Duration::from_millis(500);

/// A thread that runs until its value is dropped.
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

/// Sends datagrams.
pub struct Flood {
    worker: Worker,
    sent: Arc<AtomicU64>,
}

impl Flood {
    /// Begins, with datagrams of 1,400 octets. `bits_per_second` counts these octets; what a delay of the thread kept back follows at once.
    pub fn start(from: UdpSocket, to: SocketAddr, bits_per_second: u64) -> Self {
        Self::start_with(from, to, bits_per_second / 8, LEN)
    }

    /// The same with so many datagrams of `len` octets a second.
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
                    from.send_to(&payload, to).expect("there is a route");
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                // tidy-allow(sleep): the pace of the flood.
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { worker, sent }
    }

    /// Ends; how many datagrams were sent.
    pub fn end(mut self) -> u64 {
        self.worker.end();
        self.sent.load(Ordering::Relaxed)
    }
}

/// Takes and counts datagrams.
pub struct Sink {
    worker: Worker,
    received: Arc<AtomicU64>,
}

impl Sink {
    /// Begins.
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

    /// How many datagrams came by now.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends after 500 ms in which nothing came; how many datagrams came.
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
        let address = to.local_addr().expect("it is bound");
        let sink = Sink::start(to);
        let flood = Flood::start(from, address, 10_000_000);
        until("the flood arrives", || sink.received() >= 10);
        let (sent, received) = (flood.end(), sink.end());
        assert!(received >= 10 && received <= sent, "{received} of {sent}");
    }
}
