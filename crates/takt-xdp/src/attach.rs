//! The filter on an interface: natively if the driver can, else generically.
//!
//! It is attached by a link, which the kernel takes away with the last process that has it, whichever way that ends.

use std::io;

use crate::bpf::Attachment;
use crate::config::Mode;
use crate::filter::Filter;

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

/// Attaches the filter in this mode, or the best one. "Busy" if another program is there; that may be one that just goes.
pub(crate) fn attach(filter: &Filter, ifindex: u32, wanted: Option<Mode>) -> io::Result<Attached> {
    let in_mode = |mode| {
        let flags = match mode {
            Mode::Native => FLAG_NATIVE,
            Mode::Generic => FLAG_GENERIC,
        };
        filter.program.attach(ifindex, flags).map_err(|error| clearer(error, mode))
    };
    let done = |mode, not_native| move |attachment| Attached { attachment, mode, not_native };
    match wanted {
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
