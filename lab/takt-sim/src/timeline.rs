//! Observers of a running simulation.

use std::io::Write;

use crate::clock::Nanos;
use crate::network::{Frame, Node};
use crate::scenario::Fault;

/// Observer of all events of a world.
pub trait Timeline {
    /// Reports an event of a process.
    fn note(&mut self, _now: Nanos, _process: usize, _text: &str) {}
    /// Reports a datagram that a process sends to one destination.
    fn sent(&mut self, _now: Nanos, _process: usize, _frame: &Frame) {}
    /// Reports a frame that leaves the port from one node to another.
    fn left(&mut self, _now: Nanos, _from: Node, _to: Node, _frame: &Frame) {}
    /// Reports a datagram that a process receives.
    fn received(&mut self, _now: Nanos, _process: usize, _frame: &Frame) {}
    /// Reports the beginning or the end of a fault.
    fn fault(&mut self, _now: Nanos, _fault: &Fault, _on: bool) {}
}

/// Observer that ignores all events.
#[derive(Debug)]
pub struct Quiet;

impl Timeline for Quiet {}

/// Observer that forwards all events to two others.
pub struct Both<'a>(pub &'a mut dyn Timeline, pub &'a mut dyn Timeline);

impl Timeline for Both<'_> {
    fn note(&mut self, now: Nanos, process: usize, text: &str) {
        self.0.note(now, process, text);
        self.1.note(now, process, text);
    }

    fn sent(&mut self, now: Nanos, process: usize, frame: &Frame) {
        self.0.sent(now, process, frame);
        self.1.sent(now, process, frame);
    }

    fn left(&mut self, now: Nanos, from: Node, to: Node, frame: &Frame) {
        self.0.left(now, from, to, frame);
        self.1.left(now, from, to, frame);
    }

    fn received(&mut self, now: Nanos, process: usize, frame: &Frame) {
        self.0.received(now, process, frame);
        self.1.received(now, process, frame);
    }

    fn fault(&mut self, now: Nanos, fault: &Fault, on: bool) {
        self.0.fault(now, fault, on);
        self.1.fault(now, fault, on);
    }
}

/// Observer that writes one line per event.
#[derive(Debug)]
pub struct Lines<W: Write> {
    out: W,
    failed: bool,
}

impl<W: Write> Lines<W> {
    /// Creates an observer that writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, failed: false }
    }

    /// Reports whether a write has failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed
    }

    fn line(&mut self, now: Nanos, text: std::fmt::Arguments<'_>) {
        self.failed |= writeln!(self.out, "{:12.6} ms  {text}", now as f64 / 1e6).is_err();
    }
}

impl<W: Write> Timeline for Lines<W> {
    fn note(&mut self, now: Nanos, process: usize, text: &str) {
        self.line(now, format_args!("process {process} {text}"));
    }

    fn sent(&mut self, now: Nanos, process: usize, frame: &Frame) {
        self.line(now, format_args!("process {process} -> {} {}", frame.to, describe(&frame.bytes)));
    }

    fn received(&mut self, now: Nanos, process: usize, frame: &Frame) {
        self.line(now, format_args!("process {process} <- {} {}", frame.source, describe(&frame.bytes)));
    }

    fn fault(&mut self, now: Nanos, fault: &Fault, on: bool) {
        self.line(now, format_args!("fault {}: {:?}", if on { "begins" } else { "ends" }, fault.kind));
    }
}

/// Returns a short description of the submessages of a datagram.
fn describe(bytes: &[u8]) -> String {
    use takt_wire::message::{MessageView, Submessage};
    let Ok(message) = MessageView::parse(bytes) else { return "no RTPS message".into() };
    let mut text = String::new();
    for submessage in message.submessages() {
        let word = match submessage {
            Ok(Submessage::Data(data)) => format!("DATA({:?} #{})", data.writer, data.sn.0),
            Ok(Submessage::DataFrag(data)) => {
                format!("DATA_FRAG({:?} #{}.{})", data.writer, data.sn.0, data.fragment_starting_num)
            }
            Ok(Submessage::Heartbeat(heartbeat)) => {
                format!("HEARTBEAT({:?} {}..{})", heartbeat.writer, heartbeat.first_sn.0, heartbeat.last_sn.0)
            }
            Ok(Submessage::AckNack(acknack)) => {
                let missing: Vec<_> = acknack.reader_sn_state.iter().map(|sn| sn.0).collect();
                format!("ACKNACK({:?} {} {missing:?})", acknack.writer, acknack.reader_sn_state.base().0)
            }
            Ok(Submessage::Gap(gap)) => format!("GAP({:?} {}..)", gap.writer, gap.gap_start.0),
            Ok(Submessage::NackFrag(nack)) => {
                let missing: Vec<_> = nack.fragments.iter().collect();
                format!("NACK_FRAG({:?} #{} {missing:?})", nack.writer, nack.sn.0)
            }
            Ok(Submessage::InfoTimestamp(_) | Submessage::InfoDestination(_)) => continue,
            Ok(other) => format!("{other:?}"),
            Err(malformed) => format!("{malformed}"),
        };
        text.push_str(&word);
        text.push(' ');
    }
    text
}
