//! Identity of the host for shared memory: the same boot, network namespace and user can share
//! memory.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use takt_wire::Locator;

use super::syscall;

/// User id that the kernel reports for users unknown in the namespace of the caller. Two such users
/// need not be the same.
const OVERFLOW_USER: u32 = 65_534;

/// Identity that all participants share that can share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    tag: [u8; 8],
    user: u32,
}

impl Host {
    /// Determines the identity of this process. An error where the kernel does not report it.
    pub(super) fn query(socket: impl AsFd) -> io::Result<Self> {
        let user = syscall::own_user();
        if user == OVERFLOW_USER {
            let why = "the process runs as user 65534 (nobody), to which a user namespace maps every unknown user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let boot = fs::read("/proc/sys/kernel/random/boot_id")?;
        let namespace = syscall::network_namespace(socket.as_fd())?;
        let parts = [&boot[..], &namespace.to_le_bytes(), &user.to_le_bytes()];
        Ok(Self { tag: digest(parts.concat().iter()).to_le_bytes(), user })
    }

    pub(super) fn user(&self) -> u32 {
        self.user
    }

    pub(super) fn tag(&self) -> [u8; 8] {
        self.tag
    }

    /// Returns the locator of a port of the named participant on this host.
    pub(super) fn locator(&self, name: u64, port: u32) -> Locator {
        let mut address = [0; 16];
        address[..8].copy_from_slice(&self.tag);
        address[8..].copy_from_slice(&name.to_be_bytes());
        Locator { kind: Locator::KIND_TAKT_SHM, port, address }
    }

    /// Returns the name in a locator, if the locator belongs to this host.
    pub(super) fn name(&self, locator: &Locator) -> Option<u64> {
        let (tag, name) = locator.address.split_first_chunk::<8>()?;
        let is_on_this_host = locator.kind == Locator::KIND_TAKT_SHM && *tag == self.tag && locator.port != 0;
        is_on_this_host.then_some(u64::from_be_bytes(name.try_into().ok()?))
    }
}

/// FNV-1a hash: equal for equal input in every build. A participant that collides by chance refuses
/// the connection.
fn digest<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locator_holds_host_and_participant_name() {
        let here = Host { tag: [1; 8], user: 5 };
        let there = Host { tag: [2; 8], ..here };
        let locator = here.locator(0x1122_3344_5566_7788, 2);
        assert_eq!(locator.address, [1, 1, 1, 1, 1, 1, 1, 1, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
        assert_eq!(here.name(&locator), Some(0x1122_3344_5566_7788));
        assert_eq!(there.name(&locator), None);
        assert_eq!(here.name(&Locator { port: 0, ..locator }), None);
        assert_eq!(here.name(&Locator { kind: Locator::KIND_SHM, ..locator }), None);
    }

    #[test]
    fn digest_matches_the_published_value() {
        assert_eq!(digest(b"".iter()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest(b"foobar".iter()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn all_sockets_of_this_process_are_on_one_host() {
        let socket = || syscall::listen_at(syscall::random().expect("randomness")).expect("the name is not in use");
        assert_eq!(Host::query(socket()).expect("Linux"), Host::query(socket()).expect("Linux"));
    }
}
