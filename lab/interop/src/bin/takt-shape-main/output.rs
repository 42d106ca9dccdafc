//! Standard output behind a queue, so that no DDS thread waits for its reader.
//!
//! The harness gives the application a terminal and stops reading it once it has a verdict. The
//! terminal then fills, and a thread that writes to it blocks. A separate thread therefore writes.
//! The main loop waits for space in the queue, except after a stop request. Listeners never wait.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Queue length at which the main loop waits.
const LINES_MAX: usize = 1024;
/// Maximum queue length. Further lines of listeners are dropped.
const LINES_OF_LISTENERS_MAX: usize = 2 * LINES_MAX;
/// Interval at which a waiting thread checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
const LOCK_REASON: &str = "nothing panics under this lock";

/// Queue of lines for standard output. Clones share the queue.
#[derive(Clone)]
pub struct Output {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<String>,
    /// Whether a line has left the queue and is not yet written.
    is_writing: bool,
}

impl Output {
    /// Starts the thread that writes to `sink`.
    pub fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let output = Self { shared };
        let writer = output.clone();
        std::thread::Builder::new().name("output".to_owned()).spawn(move || writer.run(sink))?;
        Ok(output)
    }

    /// Prints a line of the main loop. Waits for space in the queue, or drops the line once
    /// `is_stopped`.
    pub fn print(&self, line: String, is_stopped: impl Fn() -> bool) {
        let mut queue = self.lock();
        while queue.lines.len() >= LINES_MAX {
            if is_stopped() {
                return;
            }
            queue = self.wait(queue, STOP_CHECK_INTERVAL);
        }
        queue.lines.push_back(line);
        self.shared.changed.notify_all();
    }

    /// Prints a line of a listener, without waiting.
    pub fn report(&self, line: String) {
        let mut queue = self.lock();
        if queue.lines.len() < LINES_OF_LISTENERS_MAX {
            queue.lines.push_back(line);
            self.shared.changed.notify_all();
        }
    }

    /// Waits until all lines are written. Returns false after `timeout`.
    pub fn drain(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut queue = self.lock();
        while !queue.lines.is_empty() || queue.is_writing {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            queue = self.wait(queue, left);
        }
        true
    }

    fn run(&self, mut sink: impl Write) {
        loop {
            let line = self.next();
            let written = writeln!(sink, "{line}").and_then(|()| sink.flush());
            self.lock().is_writing = false;
            self.shared.changed.notify_all();
            if written.is_err() {
                // The reader has closed its end: further lines are discarded.
                discard_lines(self);
            }
        }
    }

    fn next(&self) -> String {
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.is_writing = true;
                self.shared.changed.notify_all();
                return line;
            }
            queue = self.shared.changed.wait(queue).expect(LOCK_REASON);
        }
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, time: Duration) -> MutexGuard<'a, Queue> {
        self.shared.changed.wait_timeout(queue, time).expect(LOCK_REASON).0
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().expect(LOCK_REASON)
    }
}

fn discard_lines(output: &Output) -> ! {
    loop {
        drop(output.next());
        output.lock().is_writing = false;
        output.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Writer that forwards each write once it is allowed.
    struct Gate {
        allowed: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().map_err(io::Error::other)?;
            self.written.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_written_in_order() {
        let (sender, written) = channel();
        let (allow, allowed) = channel();
        let output = Output::start(Gate { allowed, written: sender }).expect("a thread");
        output.print("one".to_owned(), || false);
        output.report("two".to_owned());
        for _ in 0..8 {
            allow.send(()).expect("the writer runs");
        }
        assert!(output.drain(TIMEOUT));
        let text: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8_lossy(&text), "one\ntwo\n");
    }

    #[test]
    fn blocked_reader_delays_neither_listeners_nor_exit() {
        let (sender, _written) = channel();
        let (_allow, allowed) = channel();
        let output = Output::start(Gate { allowed, written: sender }).expect("a thread");
        for _ in 0..LINES_OF_LISTENERS_MAX + 100 {
            output.report("status".to_owned());
        }
        assert_eq!(output.lock().lines.len().min(LINES_OF_LISTENERS_MAX - 1), LINES_OF_LISTENERS_MAX - 1);
        output.print("sample".to_owned(), || true);
        assert!(!output.drain(Duration::from_millis(1)));
    }

    #[test]
    fn lines_after_the_reader_closed_are_discarded() {
        let (sender, written) = channel();
        let (allow, allowed) = channel();
        drop((written, allow));
        let output = Output::start(Gate { allowed, written: sender }).expect("a thread");
        for _ in 0..3 * LINES_MAX {
            output.print("sample".to_owned(), || false);
        }
        assert!(output.drain(TIMEOUT));
    }
}
