//! The filter on an interface: natively if the driver can and others do not pay for it, else generically.
//!
//! It is attached by a link, which the kernel takes away with the last process that has it, whichever way that ends.

use std::io;

use crate::bpf::{Attachment, Program};
use crate::capabilities::lacking;
use crate::config::Mode;
use crate::filter::Switchboard;

/// Flags of an attachment.
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;

/// How a filter is attached.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) attachment: Attachment,
    pub(crate) mode: Mode,
    /// Why it is not native, if that was tried.
    pub(crate) not_native: Option<String>,
}

/// The interface, and the mode that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) ifindex: u32,
    /// The name of its driver.
    pub(crate) driver: &'a str,
    pub(crate) mode: Option<Mode>,
}

/// Whether others at an interface of this driver pay for a program that runs natively. While any does at one end of a veth, the kernel
/// cuts what the other end sends into packets before it leaves, TCP above all. Generically nothing is cut.
pub(crate) fn costs_others(driver: &str) -> bool {
    driver == "veth"
}

/// Attaches the filter in the mode that is asked for, or the best one. "Busy" if another program is there; that may be one
/// that just goes.
pub(crate) fn attach(switchboard: &Switchboard, to: Target<'_>) -> io::Result<Attached> {
    let in_mode = |mode| in_mode(switchboard, to.ifindex, mode);
    let done = |mode, not_native| move |attachment| Attached { attachment, mode, not_native };
    match to.mode.or_else(|| costs_others(to.driver).then_some(Mode::Generic)) {
        Some(mode) => in_mode(mode).map(done(mode, None)),
        None => match in_mode(Mode::Native) {
            Ok(attachment) => Ok(done(Mode::Native, None)(attachment)),
            // Neither would the other one work.
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
        // The kernel gives this one each frame in one part. Others' trains of segments pay less for that than for being copied to
        // pages, which is what it does otherwise.
        Mode::Generic => (switchboard.program(false), FLAG_GENERIC),
    };
    let program = program.map_err(lacking("CAP_BPF and CAP_NET_ADMIN"))?;
    program.attach(ifindex, flags).map_err(|error| clearer(lacking("CAP_NET_ADMIN")(error), mode))
}

/// The program for frames of several parts, as drivers have them at large MTUs; for frames of one part before Linux 5.18.
fn of_several_parts(switchboard: &Switchboard) -> io::Result<Program> {
    match switchboard.program(true) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => switchboard.program(false),
        loaded => loaded,
    }
}

fn clearer(error: io::Error, mode: Mode) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => {
            let why = "another XDP program is on this interface (see `ip link`, `bpftool net`)";
            io::Error::new(io::ErrorKind::ResourceBusy, why)
        }
        Some(libc::EOPNOTSUPP) => {
            let why = format!("the interface's driver knows no {mode} XDP");
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        Some(libc::ERANGE) => {
            let why = "the driver refuses a program with this MTU";
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        _ => error,
    }
}
