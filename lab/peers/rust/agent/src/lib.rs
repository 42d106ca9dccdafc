//! Bench agents of systems in Rust: the trait that a system implements, and its binding to the kit
//! in C.
//!
//! The kit (`lab/peers/kit`) implements the arguments, the roles, the payloads and the output.

mod ffi;
mod glue;

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

pub use glue::run;

/// How an application learns of received samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notify {
    /// The default of the system.
    Auto,
    Listener,
    Waitset,
    Poll,
}

/// Arguments that systems in Rust need.
#[derive(Clone, Debug)]
pub struct Options {
    pub role: String,
    pub transport: String,
    pub reliable: bool,
    /// Depth of KEEP_LAST; `None` is KEEP_ALL.
    pub depth: Option<u32>,
    /// Notification mode; never `Auto` once `open` is called.
    pub notify: Notify,
    pub complex: bool,
    pub max_size: usize,
    pub n: usize,
    pub domain: u32,
    pub iface: String,
    pub addr: String,
}

impl Options {
    /// Copies the options of the kit.
    ///
    /// # Safety
    /// `given` points to options of the kit.
    unsafe fn of(given: *const ffi::Options) -> Options {
        let text = |at: *const c_char| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned();
        let given = unsafe { &*given };
        Options {
            role: text(given.role),
            transport: text(given.transport),
            reliable: given.reliable,
            depth: (given.depth > 0).then_some(given.depth as u32),
            notify: [Notify::Auto, Notify::Listener, Notify::Waitset, Notify::Poll][given.notify as usize],
            complex: given.kind == ffi::TYPE_COMPLEX,
            max_size: given.max_size,
            n: given.n as usize,
            domain: given.domain as u32,
            iface: text(given.iface),
            addr: text(given.addr),
        }
    }

    /// Returns an error unless discovery by multicast is possible on the interface.
    pub fn require_multicast(&self) -> Result<(), String> {
        let interface = std::ffi::CString::new(self.iface.as_str()).unwrap_or_default();
        if unsafe { ffi::agent_has_multicast(interface.as_ptr()) } {
            return Ok(());
        }
        let name = &self.iface;
        Err(format!("{name} has no multicast, which discovery needs: ip link set {name} multicast on"))
    }
}

/// Received sample that is passed to the kit.
pub enum Received<'a, C> {
    Octets(&'a [u8]),
    /// Complex sample, and `number` of its first item.
    Complex(&'a C, i32),
}

/// Handler of the kit. Only one thread at a time may call it.
#[derive(Clone, Copy)]
pub struct Sink {
    handler: ffi::Handler,
    context: *mut std::ffi::c_void,
}

// SAFETY: the kit allows calls of its handler from any thread.
unsafe impl Send for Sink {}
// SAFETY: the same.
unsafe impl Sync for Sink {}

impl Sink {
    pub fn deliver<C>(&self, received: Received<'_, C>) {
        let message = match received {
            Received::Octets(data) => ffi::Message {
                data: data.as_ptr().cast(),
                size: data.len(),
                complex_sample: std::ptr::null(),
                number: 0,
            },
            Received::Complex(sample, number) => ffi::Message {
                data: std::ptr::null(),
                size: 0,
                complex_sample: std::ptr::from_ref(sample).cast(),
                number,
            },
        };
        // SAFETY: the message outlives the call, as the kit requires.
        unsafe { (self.handler)(self.context, &message) }
    }
}

/// Result of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    Accepted,
    Refused,
}

impl Written {
    pub fn of(accepted: bool) -> Written {
        if accepted { Written::Accepted } else { Written::Refused }
    }
    fn code(self) -> c_int {
        self as c_int
    }
}

/// System that the kit measures. An error text ends the agent.
pub trait System: Send + Sync + Sized + 'static {
    const PEER: &'static CStr;
    const VERSION: &'static CStr;
    const TRANSPORTS: &'static CStr;
    const NOTIFIES: &'static CStr;
    const TYPES: &'static CStr = c"octets";
    /// Whether `loan` and `write_loan` are implemented.
    const LOANS: bool = false;
    /// Type of complex samples; `()` where the system has none.
    type Complex: Send + Sync;

    fn check(_options: &Options) -> Result<(), String> {
        Ok(())
    }
    /// Returns the notification for notify=auto; `None`: the first of `NOTIFIES`.
    fn auto_notify(_options: &Options) -> Option<Notify> {
        None
    }
    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, String>;
    /// Closes the system. If it has listeners, one of its threads may still be in a call: leak
    /// `self` then.
    fn close(self: Box<Self>);
    fn matched_readers(&self) -> usize;
    fn matched_writers(&self) -> usize;
    fn write(&self, data: &[u8]) -> Written;
    fn wait_acknowledged(&self, _timeout: Duration) {}
    /// Passes received samples to `sink`, and waits for them at most `timeout`; zero polls.
    fn receive(&self, sink: Sink, timeout: Duration);
    fn listen(&self, _sink: Sink) -> Result<(), String> {
        Err("it has no listener".into())
    }
    fn loan(&self, _size: usize) -> Option<*mut u8> {
        None
    }
    fn write_loan(&self) -> Written {
        Written::Refused
    }
    /// Creates a sample of groups of items (names and numbers), if the system supports it.
    fn complex_new(_groups: Vec<Vec<(String, i32)>>) -> Option<Self::Complex> {
        None
    }
    fn complex_set_number(_sample: &mut Self::Complex, _number: i32) {}
    fn complex_write(&self, _sample: &Self::Complex) -> Written {
        Written::Refused
    }
}
