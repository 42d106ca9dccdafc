//! Test that sealing and opening allocate no OpenSSL memory while a session lasts.
//!
//! It is a separate program: the allocator of OpenSSL can be replaced only before its first use.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use takt_security::keys::{KeyMaterial, TransformKind};
use takt_security::transform::{Opener, Receivers, Sealer};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn malloc(len: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, len: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn CRYPTO_set_mem_functions(
        malloc: extern "C" fn(usize, *const c_char, c_int) -> *mut c_void,
        realloc: extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void,
        free: extern "C" fn(*mut c_void, *const c_char, c_int),
    ) -> c_int;
}

extern "C" fn counting_malloc(len: usize, _: *const c_char, _: c_int) -> *mut c_void {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: every length is allowed.
    unsafe { malloc(len) }
}

extern "C" fn counting_realloc(block: *mut c_void, len: usize, _: *const c_char, _: c_int) -> *mut c_void {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: OpenSSL passes a block that `counting_malloc` returned, or null.
    unsafe { realloc(block, len) }
}

extern "C" fn counting_free(block: *mut c_void, _: *const c_char, _: c_int) {
    // SAFETY: OpenSSL passes a block that `counting_malloc` returned, or null.
    unsafe { free(block) }
}

#[test]
fn sealing_and_opening_allocate_no_openssl_memory() {
    // SAFETY: the functions have the signatures that OpenSSL requires, and it has not allocated
    // yet.
    let is_set = unsafe { CRYPTO_set_mem_functions(counting_malloc, counting_realloc, counting_free) };
    assert_eq!(is_set, 1, "OpenSSL was used before");
    for kind in TransformKind::PROTECTING {
        let own = KeyMaterial::generate(kind).expect("random numbers");
        let remote = own.for_receiver().expect("random numbers");
        let mut sealer = Sealer::new(own).expect("a sealer");
        sealer.add_receiver(remote.clone()).expect("room");
        let mut opener = Opener::new(remote).expect("an opener");
        let (mut frame, mut memory) = (vec![0; 2_048], vec![0; 2_048]);
        let mut pass = || {
            let payload = sealer.seal_payload(&mut frame, 64..1_088).expect("room");
            opener.open_payload(&frame[payload], &mut memory).expect("its own");
            frame[64..68].copy_from_slice(&[0x15, 1, 0xfc, 3]);
            let submessage = sealer.seal_submessage(&mut frame, 64..1_088, Receivers::All).expect("room");
            opener.open_submessage(&frame[submessage], &mut memory).expect("its own");
        };
        pass();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(before > 0, "OpenSSL counts");
        (0..100).for_each(|_| pass());
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{kind:?}");
    }
}
