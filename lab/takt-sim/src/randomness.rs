//! Seeded random numbers for OpenSSL.
//!
//! OpenSSL has one source of random numbers per process (`RAND_set_rand_method`, OpenSSL 3.0). The
//! source of this module uses the seed of the world on the thread that runs it, and OpenSSL's own
//! generator on every other thread. Keys, challenges, signatures and certificates of a world are
//! therefore the same in each run.
#![allow(unsafe_code, reason = "the openssl crate has no call that sets the source of random numbers")]

use std::cell::RefCell;
use std::ffi::{c_double, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::sync::Once;

use crate::rng::Rng;

/// `RAND_METHOD` of OpenSSL.
#[repr(C)]
struct Method {
    seed: Option<unsafe extern "C" fn(*const c_void, c_int) -> c_int>,
    bytes: Option<unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int>,
    cleanup: Option<unsafe extern "C" fn()>,
    add: Option<unsafe extern "C" fn(*const c_void, c_int, c_double) -> c_int>,
    pseudorand: Option<unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int>,
    status: Option<unsafe extern "C" fn() -> c_int>,
}

unsafe extern "C" {
    fn RAND_set_rand_method(method: *const Method) -> c_int;
    fn RAND_OpenSSL() -> *const Method;
}

static SOURCE: Method =
    Method { seed: None, bytes: Some(bytes), cleanup: None, add: None, pseudorand: Some(bytes), status: Some(status) };

thread_local! {
    static RNG: RefCell<Option<Rng>> = const { RefCell::new(None) };
}

unsafe extern "C" fn bytes(buffer: *mut c_uchar, len: c_int) -> c_int {
    let is_filled = RNG.try_with(|rng| {
        let Ok(mut rng) = rng.try_borrow_mut() else { return false };
        let (Some(rng), Ok(len)) = (rng.as_mut(), usize::try_from(len)) else { return false };
        if len > 0 {
            // SAFETY: OpenSSL passes a buffer of `len` octets, exclusively for this call.
            let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, len) };
            buffer.chunks_mut(8).for_each(|part| part.copy_from_slice(&rng.next().to_le_bytes()[..part.len()]));
        }
        true
    });
    if is_filled == Ok(true) {
        return 1;
    }
    // SAFETY: the method lives as long as the process, and takes the same arguments as this
    // function.
    unsafe { RAND_OpenSSL().as_ref().and_then(|own| own.bytes).map_or(0, |bytes| bytes(buffer, len)) }
}

unsafe extern "C" fn status() -> c_int {
    1
}

/// Guard that makes OpenSSL's random numbers on this thread depend on a seed until it is dropped.
#[derive(Debug)]
pub struct Seeded {
    /// Makes the guard `!Send`, since it belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Seeded {
    /// Starts the stream of a seed on this thread.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        static SET: Once = Once::new();
        // SAFETY: the method is a static one, and its functions may be called from any thread.
        SET.call_once(|| assert_eq!(unsafe { RAND_set_rand_method(&raw const SOURCE) }, 1, "OpenSSL takes the source"));
        RNG.set(Some(Rng::new(seed)));
        Self { _thread: PhantomData }
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        RNG.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_security::identity::KeyAlgorithm;
    use takt_security::tools::{Issuer, Validity};

    fn certificate() -> Vec<u8> {
        let validity = Validity { not_before: 0, not_after: 1_000 };
        let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, validity).expect("an authority");
        issuer.certificate_pem().expect("PEM")
    }

    #[test]
    fn keys_and_signatures_depend_on_the_seed_until_the_guard_is_dropped() {
        let of_seed = |seed: u64| {
            let _seeded = Seeded::new(seed);
            certificate()
        };
        assert_eq!(of_seed(1), of_seed(1));
        assert_ne!(of_seed(1), of_seed(2));
        assert_ne!(certificate(), certificate());
        let _seeded = Seeded::new(1);
        let elsewhere = std::thread::spawn(certificate).join().expect("no panic");
        assert_ne!(elsewhere, certificate(), "the seed is that of one thread");
    }
}
