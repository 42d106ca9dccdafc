//! Frame ports in memory at one switch, each of which receives frames to its address and to groups.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use takt_packet::MacAddress;
use takt_transport::ethernet::{FramePort, FramePortStats};
use takt_transport::{Interface, Scan};

const MTU: usize = 1500;

/// Pending frames of each port.
pub type Queues = Vec<(MacAddress, VecDeque<Vec<u8>>)>;

/// Switch in memory.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Queues>>);

/// Port of the switch.
pub struct MemoryPort {
    memory: Memory,
    at: usize,
    interface: Interface,
    loan: Box<[u8]>,
    out: Vec<Vec<u8>>,
    received: Vec<u8>,
    /// Number of frames that are refused, as by a driver without free frames.
    pub refused: u32,
}

impl Memory {
    /// Adds the next port; the `n`-th has the address 02:00:00:00:00:`n`.
    pub fn port(&self) -> MemoryPort {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = mac(queues.len() as u8 + 1);
        queues.push((own, VecDeque::new()));
        MemoryPort {
            memory: self.clone(),
            at: queues.len() - 1,
            interface: Interface {
                name: "memory".into(),
                index: 0,
                addresses: Vec::new(),
                mtu: MTU,
                loopback: false,
                multicast: true,
            },
            loan: vec![0xee; MTU + 18].into(),
            out: Vec::new(),
            received: Vec::new(),
            refused: 0,
        }
    }
}

/// Returns the address of the `n`-th port.
pub fn mac(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, n])
}

impl MemoryPort {
    /// Sends a frame unchanged.
    pub fn put(&mut self, frame: &[u8]) {
        self.loan()[..frame.len()].copy_from_slice(frame);
        assert!(self.send(frame.len()));
        self.flush().expect("the port is in memory");
    }

    /// Returns the next frame of another sender.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        while self.recv(Scan::All).expect("the port is in memory") {
            if self.received[6..12] != self.mac().0 {
                return Some(self.received.clone());
            }
        }
        None
    }
}

impl FramePort for MemoryPort {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn mac(&self) -> MacAddress {
        mac(self.at as u8 + 1)
    }

    fn mtu(&self) -> usize {
        MTU
    }

    fn loan(&mut self) -> &mut [u8] {
        &mut self.loan
    }

    fn send(&mut self, len: usize) -> bool {
        if let Some(left) = self.refused.checked_sub(1) {
            self.refused = left;
            return false;
        }
        self.out.push(self.loan[..len].to_vec());
        self.loan.fill(0xee);
        true
    }

    fn send_copy(&mut self, len: usize) -> bool {
        self.out.push(self.loan[..len].to_vec());
        true
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut queues = self.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in self.out.drain(..) {
            for (mac, queue) in queues.iter_mut() {
                // Frames to groups also return to their sender.
                if frame[0] & 1 == 1 || frame[..6] == mac.0 {
                    queue.push_back(frame.clone());
                }
            }
        }
        Ok(())
    }

    fn recv(&mut self, _: Scan) -> io::Result<bool> {
        let mut queues = self.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = queues[self.at].1.pop_front();
        let found = next.is_some();
        self.received = next.unwrap_or_default();
        Ok(found)
    }

    fn received(&self) -> &[u8] {
        &self.received
    }

    fn listen_at(&mut self, _: u16) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: u16) {}

    fn join(&mut self, _: MacAddress) -> io::Result<()> {
        Ok(())
    }

    fn leave(&mut self, _: MacAddress) {}

    fn descriptors(&self) -> &[RawFd] {
        &[]
    }

    fn scans_memory(&self) -> bool {
        true
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}
