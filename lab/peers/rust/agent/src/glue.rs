//! C-ABI functions that forward to a [`System`].
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt as _;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use crate::{Notify, Options, Sink, System, ffi};

/// Open system of the process; its type is the parameter of `run`.
static OPEN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

fn system<S: System>() -> &'static S {
    // The kit calls these functions only between `open` and `close`.
    unsafe { &*OPEN.load(Ordering::Acquire).cast::<S>() }
}

/// Returns an error text for the kit. It is leaked, since an error ends the process.
fn text(result: Result<(), String>) -> *const c_char {
    match result {
        Ok(()) => null(),
        Err(why) => CString::new(why.replace(['\0', '"', '\\', '\n'], " "))
            .map_or(c"error".as_ptr(), |why| why.into_raw().cast_const()),
    }
}

fn duration(ns: i64) -> Duration {
    Duration::from_nanos(ns.max(0) as u64)
}

unsafe extern "C" fn check<S: System>(options: *const ffi::Options) -> *const c_char {
    text(S::check(&unsafe { Options::of(options) }))
}

unsafe extern "C" fn auto_notify<S: System>(options: *const ffi::Options) -> c_int {
    let first = S::NOTIFIES.to_str().unwrap_or("").split(',').next();
    let default = match first {
        Some("listener") => Notify::Listener,
        Some("poll") => Notify::Poll,
        _ => Notify::Waitset,
    };
    S::auto_notify(&unsafe { Options::of(options) }).unwrap_or(default) as c_int
}

unsafe extern "C" fn open<S: System>(
    options: *const ffi::Options,
    writes: *const c_char,
    reads: *const c_char,
) -> *const c_char {
    let topic =
        |name: *const c_char| (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("Data"));
    let opened = S::open(&unsafe { Options::of(options) }, topic(writes), topic(reads));
    text(opened.map(|system| {
        OPEN.store(Box::into_raw(Box::new(system)).cast(), Ordering::Release);
    }))
}

unsafe extern "C" fn close<S: System>() {
    let system = OPEN.swap(null_mut(), Ordering::AcqRel).cast::<S>();
    if !system.is_null() {
        unsafe { Box::from_raw(system) }.close();
    }
}

unsafe extern "C" fn matched_readers<S: System>() -> c_int {
    system::<S>().matched_readers() as c_int
}

unsafe extern "C" fn matched_writers<S: System>() -> c_int {
    system::<S>().matched_writers() as c_int
}

unsafe extern "C" fn write<S: System>(data: *const c_void, size: usize) -> c_int {
    system::<S>().write(unsafe { std::slice::from_raw_parts(data.cast(), size) }).code()
}

unsafe extern "C" fn wait_acknowledged<S: System>(timeout_ns: i64) {
    system::<S>().wait_acknowledged(duration(timeout_ns));
}

unsafe extern "C" fn loan<S: System>(size: usize) -> *mut c_void {
    system::<S>().loan(size).map_or(null_mut(), <*mut u8>::cast)
}

unsafe extern "C" fn write_loan<S: System>(_loan: *mut c_void, _size: usize) -> c_int {
    system::<S>().write_loan().code()
}

unsafe extern "C" fn receive<S: System>(h: ffi::Handler, context: *mut c_void, timeout_ns: i64) {
    system::<S>().receive(Sink { handler: h, context }, duration(timeout_ns));
}

unsafe extern "C" fn listen<S: System>(h: ffi::Handler, context: *mut c_void) -> *const c_char {
    text(system::<S>().listen(Sink { handler: h, context }))
}

unsafe extern "C" fn complex_new<S: System>(shape: *const ffi::Shape) -> *mut c_void {
    let shape = unsafe { &*shape };
    let name = |index| {
        let mut name = vec![0u8; shape.name_length as usize + 1];
        unsafe { ffi::agent_item_name(name.as_mut_ptr().cast(), index, shape.name_length) };
        name.pop();
        String::from_utf8_lossy(&name).into_owned()
    };
    let items: Vec<_> = (0..shape.items).map(|index| (name(index), index as i32)).collect();
    let groups = items.chunks(shape.items_of_group.max(1) as usize).map(<[_]>::to_vec);
    match S::complex_new(groups.collect()) {
        Some(sample) => Box::into_raw(Box::new(sample)).cast(),
        None => unsafe { ffi::agent_fail(c"it has no complex samples".as_ptr()) },
    }
}

unsafe extern "C" fn complex_set_number<S: System>(sample: *mut c_void, number: i32) {
    S::complex_set_number(unsafe { &mut *sample.cast() }, number);
}

unsafe extern "C" fn complex_write<S: System>(sample: *const c_void) -> c_int {
    system::<S>().complex_write(unsafe { &*sample.cast() }).code()
}

/// Runs the role that the arguments name, and ends the process.
pub fn run<S: System>() -> ! {
    let mirrored = [size_of::<ffi::Options>(), size_of::<ffi::Message>(), size_of::<ffi::Adapter>()];
    assert_eq!(unsafe { ffi::agent_sizes }, mirrored, "ffi.rs differs from agent.h");
    let mut arguments: Vec<*mut c_char> =
        std::env::args_os().map(|argument| CString::new(argument.into_vec()).unwrap_or_default().into_raw()).collect();
    let argc = arguments.len() as c_int;
    arguments.push(null_mut());
    let listens = S::NOTIFIES.to_bytes().starts_with(b"listener");
    let adapter = ffi::Adapter {
        peer: S::PEER.as_ptr(),
        version: S::VERSION.as_ptr(),
        transports: S::TRANSPORTS.as_ptr(),
        notifies: S::NOTIFIES.as_ptr(),
        types: S::TYPES.as_ptr(),
        deliveries: c"unicast".as_ptr(),
        fixed_size: None,
        durable: false,
        secures: false,
        batches: None,
        check: Some(check::<S>),
        fastest: Some(auto_notify::<S>),
        open: open::<S>,
        close: close::<S>,
        matched_readers: matched_readers::<S>,
        matched_writers: matched_writers::<S>,
        write: write::<S>,
        flush: None,
        wait_acknowledged: Some(wait_acknowledged::<S>),
        loan: S::LOANS.then_some(loan::<S>),
        write_loan: S::LOANS.then_some(write_loan::<S>),
        receive: receive::<S>,
        listen: listens.then_some(listen::<S>),
        complex_new: Some(complex_new::<S>),
        complex_set_number: Some(complex_set_number::<S>),
        complex_write: Some(complex_write::<S>),
        join: None,
        add_writer: None,
        add_reader: None,
        found_writers: None,
    };
    let code = unsafe { ffi::agent_main(argc, arguments.as_mut_ptr(), &adapter) };
    // Threads of the system may still run: skip the destructors of statics.
    unsafe { ffi::_exit(code) }
}
