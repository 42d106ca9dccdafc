//! Open bundles in a switch, bounded in number and length.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Limits, Request};
use crate::bundle::{BundleAdd, BundleControl, BundleControlType};
use crate::cause::BundleFailed;
use crate::message::{Message, Xid};

/// Messages that were added to a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredBundle {
    /// Number of the bundle.
    pub bundle: u32,
    /// Flags of [`crate::bundle::bundle_flags`].
    pub flags: u16,
    /// Messages in the order of their arrival.
    pub messages: Vec<Request>,
    is_closed: bool,
}

/// Bundles of one connection.
#[derive(Debug)]
pub(super) struct Bundles {
    bundles: BTreeMap<u32, StoredBundle>,
    bundles_max: usize,
    messages_max: usize,
}

impl Bundles {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { bundles: BTreeMap::new(), bundles_max: limits.bundles, messages_max: limits.bundle_messages }
    }

    /// Opens, closes or discards a bundle. A commit removes the bundle and returns it.
    pub(super) fn control(&mut self, control: &BundleControl) -> Result<Option<StoredBundle>, BundleFailed> {
        let number = control.bundle;
        match control.kind {
            BundleControlType::OpenRequest if self.bundles.contains_key(&number) => Err(BundleFailed::BundleExist),
            BundleControlType::OpenRequest => self.open(number, control.flags).map(|_| None),
            BundleControlType::CloseRequest => {
                let bundle = self.existing(control)?;
                if bundle.is_closed {
                    return Err(BundleFailed::BundleClosed);
                }
                bundle.is_closed = true;
                Ok(None)
            }
            BundleControlType::CommitRequest => {
                self.existing(control)?;
                Ok(self.bundles.remove(&number))
            }
            BundleControlType::DiscardRequest => self.bundles.remove(&number).map(|_| None).ok_or(BundleFailed::BadId),
            _ => Err(BundleFailed::BadType),
        }
    }

    /// Returns the bundle of this number and these flags. A bundle with other flags is discarded.
    fn existing(&mut self, control: &BundleControl) -> Result<&mut StoredBundle, BundleFailed> {
        match self.bundles.get(&control.bundle) {
            None => return Err(BundleFailed::BadId),
            Some(bundle) if bundle.flags != control.flags => {
                self.bundles.remove(&control.bundle);
                return Err(BundleFailed::BadFlags);
            }
            Some(_) => {}
        }
        self.bundles.get_mut(&control.bundle).ok_or(BundleFailed::BadId)
    }

    fn open(&mut self, bundle: u32, flags: u16) -> Result<&mut StoredBundle, BundleFailed> {
        if self.bundles.len() >= self.bundles_max {
            return Err(BundleFailed::OutOfBundles);
        }
        let empty = StoredBundle { bundle, flags, messages: Vec::new(), is_closed: false };
        Ok(self.bundles.entry(bundle).or_insert(empty))
    }

    /// Adds a message. A bundle that does not exist is opened.
    pub(super) fn add(&mut self, xid: Xid, add: BundleAdd) -> Result<(), BundleFailed> {
        let messages_max = self.messages_max;
        let bundle = match self.bundles.contains_key(&add.bundle) {
            false => self.open(add.bundle, add.flags)?,
            true => self.bundles.get_mut(&add.bundle).ok_or(BundleFailed::BadId)?,
        };
        let fault = match &*add.message.message {
            _ if bundle.is_closed => Some(BundleFailed::BundleClosed),
            _ if bundle.flags != add.flags => Some(BundleFailed::BadFlags),
            _ if xid != add.message.xid => Some(BundleFailed::MsgBadXid),
            _ if bundle.messages.len() >= messages_max => Some(BundleFailed::MsgTooMany),
            Message::FlowMod(_)
            | Message::GroupMod(_)
            | Message::MeterMod(_)
            | Message::PortMod(_)
            | Message::PacketOut(_) => None,
            _ => Some(BundleFailed::MsgUnsup),
        };
        match fault {
            Some(fault) => Err(fault),
            None => {
                bundle.messages.push(Request { xid, message: *add.message.message });
                Ok(())
            }
        }
    }
}
