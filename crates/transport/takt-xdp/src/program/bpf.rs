//! System calls of bpf(2) for a packet filter: maps, programs, attachment.
//!
//! The structures are those of `linux/bpf.h`; the kernel treats fields beyond a passed structure as
//! zero.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One instruction: operation, registers (destination in the low half), offset, immediate value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// Structure of a command: integers alone, without padding.
///
/// # Safety
/// Every address in it must refer to memory that the command may use in its way, with the length
/// stated next to it.
unsafe trait Attributes {}

/// Runs a command. The result is a new descriptor for commands that create one.
fn bpf<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<libc::c_int> {
    let len = size_of::<A>() as libc::c_uint;
    // SAFETY: `attributes` is valid for `len` bytes; the trait promises the same of addresses in
    // it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), len) };
    match libc::c_int::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn bpf_descriptor<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the command creates a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const MAP_DELETE_ELEM: libc::c_int = 3;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;

const OBJ_GET_INFO_BY_FD: libc::c_int = 15;

const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// The program accepts frames of several parts.
const PROG_HAS_FRAGS: u32 = 1 << 5;

/// Map from keys of `KEY` octets to 32-bit values.
#[derive(Debug)]
pub(crate) struct Map<const KEY: usize>(OwnedFd);

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
}
// SAFETY: no addresses.
unsafe impl Attributes for MapCreate {}

#[repr(C)]
struct MapElement {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}
// SAFETY: made by `Map` alone, from references to a key and a value of the map's sizes.
unsafe impl Attributes for MapElement {}

impl<const KEY: usize> Map<KEY> {
    /// Creates a hash map of at most `max_entries`.
    pub(crate) fn hash(max_entries: u32) -> io::Result<Self> {
        Self::create(MapCreate { map_type: MAP_TYPE_HASH, max_entries, ..MapCreate::default() })
    }

    fn create(wanted: MapCreate) -> io::Result<Self> {
        let mut attributes = MapCreate { key_size: KEY as u32, value_size: 4, ..wanted };
        bpf_descriptor(MAP_CREATE, &mut attributes).map(Self)
    }

    /// Wraps a map that another process created, with keys of this size.
    pub(crate) fn of(fd: OwnedFd) -> Self {
        Self(fd)
    }

    fn element(&self, key: &[u8; KEY], value: &[u8; 4]) -> MapElement {
        MapElement { map_fd: self.number(), pad: 0, key: key.as_ptr() as u64, value: value.as_ptr() as u64, flags: 0 }
    }

    /// Sets the value of a key.
    pub(crate) fn set(&self, key: &[u8; KEY], value: u32) -> io::Result<()> {
        bpf(MAP_UPDATE_ELEM, &mut self.element(key, &value.to_ne_bytes())).map(drop)
    }

    /// Removes a key.
    pub(crate) fn remove(&self, key: &[u8; KEY]) -> io::Result<()> {
        // The kernel refuses a value here, even an unused one.
        bpf(MAP_DELETE_ELEM, &mut MapElement { value: 0, ..self.element(key, &[0; 4]) }).map(drop)
    }

    /// Returns the number of the descriptor, by which a program refers to the map.
    pub(crate) fn number(&self) -> u32 {
        self.0.as_raw_fd() as u32
    }
}

impl<const KEY: usize> AsFd for Map<KEY> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Map<4> {
    /// Creates a map from queues to AF_XDP sockets.
    pub(crate) fn sockets(queues: u32) -> io::Result<Self> {
        Self::create(MapCreate { map_type: MAP_TYPE_XSKMAP, max_entries: queues, ..MapCreate::default() })
    }

    /// Creates a map from queues to maps like this one.
    pub(crate) fn maps<const KEY: usize>(queues: u32, like: &Map<KEY>) -> io::Result<Self> {
        let (map_type, inner_map_fd) = (MAP_TYPE_ARRAY_OF_MAPS, like.number());
        Self::create(MapCreate { map_type, max_entries: queues, inner_map_fd, ..MapCreate::default() })
    }
}

#[repr(C)]
struct ProgramLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}
// SAFETY: made by `Program::load` alone, from slices.
unsafe impl Attributes for ProgramLoad {}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}
// SAFETY: no addresses.
unsafe impl Attributes for LinkCreate {}

/// Loaded XDP program.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    /// Loads a program, which may accept frames of `several_parts`, after verification by the
    /// kernel. An error contains the end of the verifier's log.
    pub(crate) fn load(instructions: &[Instruction], several_parts: bool) -> io::Result<Self> {
        let mut log = vec![0_u8; 64 << 10];
        let mut attributes = ProgramLoad {
            prog_type: PROG_TYPE_XDP,
            insn_cnt: instructions.len() as u32,
            insns: instructions.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log_buf: 0,
            kern_version: 0,
            prog_flags: if several_parts { PROG_HAS_FRAGS } else { 0 },
            prog_name: *b"takt_rtps\0\0\0\0\0\0\0",
            prog_ifindex: 0,
            expected_attach_type: ATTACH_XDP,
        };
        match bpf_descriptor(PROG_LOAD, &mut attributes) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {}
            result => return result.map(Self),
        }
        // Repeated with a log for the reason.
        (attributes.log_level, attributes.log_size) = (1, log.len() as u32);
        attributes.log_buf = log.as_mut_ptr() as u64;
        bpf_descriptor(PROG_LOAD, &mut attributes).map(Self).map_err(|error| explained(&error, &log))
    }

    /// Attaches the program to an interface, until the result is dropped or the process ends.
    pub(crate) fn attach(&self, ifindex: u32, flags: u32) -> io::Result<Attachment> {
        let prog_fd = self.0.as_raw_fd() as u32;
        let mut attributes = LinkCreate { prog_fd, target_ifindex: ifindex, attach_type: ATTACH_XDP, flags };
        bpf_descriptor(LINK_CREATE, &mut attributes).map(Attachment)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn explained(error: &io::Error, log: &[u8]) -> io::Error {
    let message = log.split(|byte| *byte == 0).next().unwrap_or_default();
    let message = String::from_utf8_lossy(message);
    let last: Vec<&str> = message.trim_end().lines().rev().take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    io::Error::new(error.kind(), format!("{error}; the verifier says: {}", last.join(" / ")))
}

/// Program attached to an interface; detached when this is dropped in all processes that have it.
#[derive(Debug)]
pub(crate) struct Attachment(OwnedFd);

#[repr(C)]
struct ObjectInfo {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}
// SAFETY: made by `Attachment::info` alone, from a reference to room of that length, which the
// kernel may fill with any bytes.
unsafe impl Attributes for ObjectInfo {}

/// First fields of `struct bpf_link_info`.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    link_type: u32,
    id: u32,
    prog_id: u32,
    pad: u32,
    ifindex: u32,
    pad_end: u32,
}

impl Attachment {
    /// Wraps an attachment that another process made.
    pub(crate) fn of(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Returns the kernel's id, by which two descriptors of the same attachment can be recognized.
    pub(crate) fn id(&self) -> io::Result<u32> {
        self.info().map(|info| info.id)
    }

    /// Reports whether the interface still exists.
    pub(crate) fn is_in_place(&self) -> bool {
        self.info().is_ok_and(|info| info.ifindex != 0)
    }

    fn info(&self) -> io::Result<LinkInfo> {
        let mut link = LinkInfo::default();
        let info_len = size_of::<LinkInfo>() as u32;
        let info = std::ptr::from_mut(&mut link) as u64;
        bpf(OBJ_GET_INFO_BY_FD, &mut ObjectInfo { bpf_fd: self.0.as_raw_fd() as u32, info_len, info })?;
        Ok(link)
    }
}

impl AsFd for Attachment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Runs a program on bytes, without an interface.
#[cfg(test)]
pub(crate) mod test_run {
    use super::{Attributes, Program, bpf};
    use std::io;
    use std::os::fd::AsRawFd;

    const PROG_TEST_RUN: libc::c_int = 10;

    #[repr(C)]
    struct TestRun {
        prog_fd: u32,
        retval: u32,
        data_size_in: u32,
        data_size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
    }
    // SAFETY: made below alone, from a slice; the kernel writes no output.
    unsafe impl Attributes for TestRun {}

    impl Program {
        /// Returns the program's decision on a frame of at least 14 octets.
        pub(crate) fn decide(&self, frame: &[u8]) -> io::Result<u32> {
            let mut attributes = TestRun {
                prog_fd: self.0.as_raw_fd() as u32,
                retval: 0,
                data_size_in: frame.len() as u32,
                data_size_out: 0,
                data_in: frame.as_ptr() as u64,
                data_out: 0,
                repeat: 1,
                duration: 0,
            };
            bpf(PROG_TEST_RUN, &mut attributes)?;
            Ok(attributes.retval)
        }
    }
}
