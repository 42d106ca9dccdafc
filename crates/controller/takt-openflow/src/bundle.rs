//! Bundles: native since OpenFlow 1.4, and the ONF extension 230 in 1.3.

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::message::Enclosed;
use crate::value::Property;
use crate::wire::{Reader, Wire, Writer, layout, numbered};

/// Flags of a bundle.
pub mod bundle_flags {
    /// Either all messages are applied, or none.
    pub const ATOMIC: u16 = 1;
    /// The messages are applied in order.
    pub const ORDERED: u16 = 1 << 1;
    /// The bundle has an execution time. Since 1.5.
    pub const TIME: u16 = 1 << 2;
}

numbered! {
    /// Request or reply of a [`BundleControl`].
    pub enum BundleControlType as u16, "unknown type of bundle control" {
        /// Opens a bundle.
        OpenRequest = 0,
        /// Confirms that the bundle is open.
        OpenReply = 1,
        /// Closes a bundle, so that no message can be added.
        CloseRequest = 2,
        /// Confirms that the bundle is closed.
        CloseReply = 3,
        /// Applies a bundle.
        CommitRequest = 4,
        /// Confirms that the bundle was applied.
        CommitReply = 5,
        /// Discards a bundle.
        DiscardRequest = 6,
        /// Confirms that the bundle was discarded.
        DiscardReply = 7,
    }
}

impl BundleControlType {
    /// Returns the reply to a request. A reply returns itself.
    pub const fn reply(self) -> Self {
        match self {
            Self::OpenRequest | Self::OpenReply => Self::OpenReply,
            Self::CloseRequest | Self::CloseReply => Self::CloseReply,
            Self::CommitRequest | Self::CommitReply => Self::CommitReply,
            Self::DiscardRequest | Self::DiscardReply => Self::DiscardReply,
        }
    }
}

/// List of properties up to the end of the message.
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
        /// Number of the bundle.
        bundle: u32;
        /// Request or reply.
        kind: BundleControlType;
        /// Flags of [`bundle_flags`].
        flags: u16;
        /// Time of the bundle, and experimenter properties.
        properties: Properties;
    }
}

/// Adds a message to a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BundleAdd {
    /// Number of the bundle.
    pub bundle: u32,
    /// Flags of [`bundle_flags`].
    pub flags: u16,
    /// Enclosed message. Its transaction ID must equal that of this message.
    pub message: Enclosed,
    /// Experimenter properties.
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
