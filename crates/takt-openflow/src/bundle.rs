//! Bundles: natively since OpenFlow 1.4, in 1.3 as the ONF's extension 230.

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::message::Enclosed;
use crate::value::Property;
use crate::wire::{Reader, Wire, Writer, layout};

/// Flags of a bundle.
pub mod bundle_flags {
    /// All messages are applied, or none.
    pub const ATOMIC: u16 = 1;
    /// The messages are applied in their order.
    pub const ORDERED: u16 = 1 << 1;
    /// The bundle has a time; since 1.5.
    pub const TIME: u16 = 1 << 2;
}

/// What a [`BundleControl`] asks or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BundleControlType {
    /// Opens a bundle.
    OpenRequest = 0,
    /// It is open.
    OpenReply = 1,
    /// Closes a bundle: nothing more is added.
    CloseRequest = 2,
    /// It is closed.
    CloseReply = 3,
    /// Applies a bundle.
    CommitRequest = 4,
    /// It is applied.
    CommitReply = 5,
    /// Forgets a bundle.
    DiscardRequest = 6,
    /// It is forgotten.
    DiscardReply = 7,
}

impl BundleControlType {
    const ALL: [Self; 8] = [
        Self::OpenRequest,
        Self::OpenReply,
        Self::CloseRequest,
        Self::CloseReply,
        Self::CommitRequest,
        Self::CommitReply,
        Self::DiscardRequest,
        Self::DiscardReply,
    ];

    /// The reply to a request; a reply's is itself.
    pub const fn reply(self) -> Self {
        match self {
            Self::OpenRequest | Self::OpenReply => Self::OpenReply,
            Self::CloseRequest | Self::CloseReply => Self::CloseReply,
            Self::CommitRequest | Self::CommitReply => Self::CommitReply,
            Self::DiscardRequest | Self::DiscardReply => Self::DiscardReply,
        }
    }
}

impl Wire for BundleControlType {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let at = *r;
        let number = usize::from(r.u16()?);
        Self::ALL.get(number).copied().ok_or(at.malformed("unknown type of bundle control"))
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u16(*self as u16);
    }
}

/// A list of properties up to the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Properties(pub Vec<Property>);

impl Wire for Properties {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.list().map(Self)
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.list(&self.0);
    }
}

layout! {
    /// Opens, closes, commits or discards a bundle.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct BundleControl {
        /// The bundle.
        bundle: u32;
        /// What to do.
        kind: BundleControlType;
        /// [`bundle_flags`].
        flags: u16;
        /// The time and experimenters' properties.
        properties: Properties;
    }
}

/// Adds a message to a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BundleAdd {
    /// The bundle.
    pub bundle: u32,
    /// [`bundle_flags`].
    pub flags: u16,
    /// The message; its transaction id must be that of this one.
    pub message: Enclosed,
    /// Experimenters' properties.
    pub properties: Vec<Property>,
}

impl Wire for BundleAdd {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bundle = r.u32()?;
        r.reserved(2)?;
        let flags = r.u16()?;
        let start = r.position();
        let message = Enclosed::read(r)?;
        let mut properties = Vec::new();
        if !r.is_empty() {
            r.align(start)?;
            properties = r.list()?;
        }
        Ok(Self { bundle, flags, message, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u32(self.bundle);
        w.reserved(2);
        w.u16(self.flags);
        let start = w.position();
        self.message.write(w);
        if !self.properties.is_empty() {
            w.align(start);
            w.list(&self.properties);
        }
    }
}
