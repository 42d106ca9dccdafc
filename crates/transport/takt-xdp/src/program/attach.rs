//! Attachment of the filter to an interface: natively if the driver supports it without cost for
//! other traffic, else generically.
//!
//! The filter is attached by a BPF link, which the kernel removes with the last process that has
//! it, for any reason.

use std::io;

use crate::capabilities::name_missing;
use crate::config::Mode;
use crate::program::bpf::{Attachment, Program};
use crate::program::filter::Switchboard;

/// Attachment flags (`linux/if_link.h`).
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;

/// Attached filter.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) attachment: Attachment,
    pub(crate) mode: Mode,
    /// Reason why it is not native, if that was tried.
    pub(crate) not_native: Option<String>,
}

/// Interface and requested mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) ifindex: u32,
    /// Name of the driver.
    pub(crate) driver: &'a str,
    pub(crate) mode: Option<Mode>,
}

/// Reports whether native mode slows other traffic at interfaces of this driver. While a native
/// program runs at one end of a veth, the kernel segments what the other end sends, above all TCP,
/// before it leaves. Generic mode does not cause this.
pub(crate) fn slows_other_traffic(driver: &str) -> bool {
    driver == "veth"
}

/// Attaches the filter in the requested mode, or in the best one. Fails with "busy" if another
/// program is attached, possibly one that is about to be detached.
pub(crate) fn attach(switchboard: &Switchboard, to: Target<'_>) -> io::Result<Attached> {
    let in_mode = |mode| in_mode(switchboard, to.ifindex, mode);
    let done = |mode, not_native| move |attachment| Attached { attachment, mode, not_native };
    match to.mode.or_else(|| slows_other_traffic(to.driver).then_some(Mode::Generic)) {
        Some(mode) => in_mode(mode).map(done(mode, None)),
        None => match in_mode(Mode::Native) {
            Ok(attachment) => Ok(done(Mode::Native, None)(attachment)),
            // The other mode would fail in the same way.
            Err(error) if matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::PermissionDenied) => {
                Err(error)
            }
            Err(error) => in_mode(Mode::Generic).map(done(Mode::Generic, Some(error.to_string()))),
        },
    }
}

fn in_mode(switchboard: &Switchboard, ifindex: u32, mode: Mode) -> io::Result<Attachment> {
    let (program, flags) = match mode {
        Mode::Native => (of_several_parts(switchboard), FLAG_NATIVE),
        // In generic mode, the kernel passes each frame in one part. For other traffic with
        // segmentation offload, this costs less than copying to pages, which the kernel does
        // otherwise.
        Mode::Generic => (switchboard.program(false), FLAG_GENERIC),
    };
    let program = program.map_err(name_missing("CAP_BPF and CAP_NET_ADMIN"))?;
    program.attach(ifindex, flags).map_err(|error| explain(name_missing("CAP_NET_ADMIN")(error), mode))
}

/// Loads the program for frames of several parts, as drivers use them at large MTUs; before Linux
/// 5.18, that for frames of one part.
fn of_several_parts(switchboard: &Switchboard) -> io::Result<Program> {
    match switchboard.program(true) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => switchboard.program(false),
        loaded => loaded,
    }
}

fn explain(error: io::Error, mode: Mode) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => {
            let why = "another XDP program is on this interface (see `ip link`, `bpftool net`)";
            io::Error::new(io::ErrorKind::ResourceBusy, why)
        }
        Some(libc::EOPNOTSUPP) => {
            let why = format!("the driver of the interface does not support {mode} XDP");
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        Some(libc::ERANGE) => {
            let why = "the driver refuses a program with this MTU";
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        _ => error,
    }
}
