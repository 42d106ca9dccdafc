//! Rust declarations of the structures and functions of `kit/agent.h`.

use std::ffi::{c_char, c_int, c_void};

/// `AGENT_COMPLEX` of `enum agent_type`.
pub const TYPE_COMPLEX: c_int = 1;

pub type Handler = unsafe extern "C" fn(*mut c_void, *const Message);

#[repr(C)]
pub struct Options {
    pub role: *const c_char,
    pub transport: *const c_char,
    pub reliable: bool,
    pub depth: c_int,
    pub notify: c_int,
    pub kind: c_int,
    pub sizes: [usize; 32],
    pub size_count: c_int,
    pub max_size: usize,
    pub reply_ack: bool,
    pub warmup: u64,
    pub count: u64,
    pub period_ns: u64,
    pub warm_s: f64,
    pub secs: f64,
    pub rate: f64,
    pub batch: c_int,
    pub n: c_int,
    pub id: c_int,
    pub delivery: c_int,
    pub touch: c_int,
    pub loan: bool,
    pub domain: c_int,
    pub iface: *const c_char,
    pub addr: *const c_char,
    pub peer: *const c_char,
    pub broker: *const c_char,
    pub t0: u64,
    pub out: *const c_char,
    pub transient_local: bool,
    pub participants: c_int,
    pub endpoints: c_int,
    pub instances: c_int,
    pub security: *const c_char,
}

#[repr(C)]
pub struct Message {
    pub data: *const c_void,
    pub size: usize,
    pub complex_sample: *const c_void,
    pub number: i32,
}

#[repr(C)]
pub struct Shape {
    pub items: u32,
    pub items_of_group: u32,
    pub name_length: u32,
}

#[repr(C)]
pub struct Adapter {
    pub peer: *const c_char,
    pub version: *const c_char,
    pub transports: *const c_char,
    pub notifies: *const c_char,
    pub types: *const c_char,
    pub deliveries: *const c_char,
    pub fixed_size: Option<unsafe extern "C" fn(*const Options) -> bool>,
    pub durable: bool,
    pub secures: bool,
    pub batches: Option<unsafe extern "C" fn(*const Options) -> bool>,
    pub check: Option<unsafe extern "C" fn(*const Options) -> *const c_char>,
    pub fastest: Option<unsafe extern "C" fn(*const Options) -> c_int>,
    pub open: unsafe extern "C" fn(*const Options, *const c_char, *const c_char) -> *const c_char,
    pub close: unsafe extern "C" fn(),
    pub matched_readers: unsafe extern "C" fn() -> c_int,
    pub matched_writers: unsafe extern "C" fn() -> c_int,
    pub write: unsafe extern "C" fn(*const c_void, usize) -> c_int,
    pub flush: Option<unsafe extern "C" fn()>,
    pub wait_acknowledged: Option<unsafe extern "C" fn(i64)>,
    pub loan: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    pub write_loan: Option<unsafe extern "C" fn(*mut c_void, usize) -> c_int>,
    pub receive: unsafe extern "C" fn(Handler, *mut c_void, i64),
    pub listen: Option<unsafe extern "C" fn(Handler, *mut c_void) -> *const c_char>,
    pub complex_new: Option<unsafe extern "C" fn(*const Shape) -> *mut c_void>,
    pub complex_set_number: Option<unsafe extern "C" fn(*mut c_void, i32)>,
    pub complex_write: Option<unsafe extern "C" fn(*const c_void) -> c_int>,
    pub join: Option<unsafe extern "C" fn(*const Options) -> *const c_char>,
    pub add_writer: Option<unsafe extern "C" fn(c_int, *const c_char) -> *const c_char>,
    pub add_reader: Option<unsafe extern "C" fn(*const c_char) -> *const c_char>,
    pub found_writers: Option<unsafe extern "C" fn() -> c_int>,
}

unsafe extern "C" {
    pub static agent_sizes: [usize; 3];
    pub fn agent_main(argc: c_int, argv: *mut *mut c_char, adapter: *const Adapter) -> c_int;
    pub fn agent_fail(format: *const c_char, ...) -> !;
    pub fn _exit(code: c_int) -> !;
    pub fn agent_has_multicast(interface: *const c_char) -> bool;
    pub fn agent_item_name(name: *mut c_char, index: u32, length: u32);
}
