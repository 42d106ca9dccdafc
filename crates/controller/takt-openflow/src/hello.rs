//! HELLO and version negotiation (OF 1.3.5 §6.3, §7.5.1).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::version::{Version, Versions};
use crate::wire::{Reader, Wire, Writer};

/// Type of the element with the version bitmap.
const VERSION_BITMAP: u16 = 1;

/// Element of HELLO.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HelloElement {
    /// Version bitmap. Bit n of word m stands for wire version 32 m + n.
    VersionBitmap(Vec<u32>),
    /// Element without a type in this crate.
    Other {
        /// Type of the element.
        kind: u16,
        /// Octets after the length, without padding.
        body: Vec<u8>,
    },
}

/// First message of both ends. Its header contains the highest version of the sender.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// Elements of the message. OpenFlow 1.0 has none.
    pub elements: Vec<HelloElement>,
}

impl Hello {
    /// Creates a HELLO with the bitmap of `versions`.
    pub fn new(versions: Versions) -> Self {
        Self { elements: alloc::vec![HelloElement::VersionBitmap(alloc::vec![versions.bitmap()])] }
    }

    /// Returns the versions of the bitmap, if there is one.
    pub fn versions(&self) -> Option<Versions> {
        self.elements.iter().find_map(|element| match element {
            HelloElement::VersionBitmap(words) => {
                Some(Versions::from_bitmap(words.first().copied().unwrap_or_default()))
            }
            HelloElement::Other { .. } => None,
        })
    }

    /// Decodes the body of a HELLO of any version. `body` begins after the header.
    pub fn decode_body(body: &[u8]) -> Result<Self, Malformed> {
        Self::read(&mut Reader::new(Version::V1_3, body))
    }
}

/// Negotiates the version of a channel: the highest version in both bitmaps.
///
/// If the peer sent no bitmap, it is the lower of the two highest versions, provided that `own`
/// contains it. `peer` is the version octet of the peer's header.
pub fn negotiate(own: Versions, peer: u8, hello: &Hello) -> Option<Version> {
    if let Some(versions) = hello.versions() {
        return own.highest_common(versions);
    }
    let highest = own.highest()?;
    let common = if peer < highest.octet() { Version::from_octet(peer)? } else { highest };
    own.contains(common).then_some(common)
}

impl Wire for Hello {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut elements = Vec::new();
        while !r.is_empty() {
            let start = r.position();
            let kind = r.u16()?;
            let len = r.u16()?;
            let mut body = r.rest_of(len, 4)?;
            elements.push(if kind == VERSION_BITMAP {
                HelloElement::VersionBitmap(body.list()?)
            } else {
                HelloElement::Other { kind, body: body.rest().to_vec() }
            });
            r.align(start)?;
        }
        Ok(Self { elements })
    }

    fn write(&self, w: &mut Writer<'_>) {
        for element in &self.elements {
            let start = w.position();
            match element {
                HelloElement::VersionBitmap(words) => {
                    w.u16(VERSION_BITMAP);
                    w.u16(0);
                    w.list(words);
                }
                HelloElement::Other { kind, body } => {
                    w.u16(*kind);
                    w.u16(0);
                    w.bytes(body);
                }
            }
            w.set_len(start + 2, start, "element of HELLO");
            w.align(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_select_the_highest_common_version() {
        let own = Versions::of(&[Version::V1_0, Version::V1_3, Version::V1_4]);
        let all = Hello::new(Versions::ALL);
        assert_eq!(negotiate(own, 6, &all), Some(Version::V1_4));
        assert_eq!(negotiate(own, 6, &Hello::new(Versions::of(&[Version::V1_5]))), None);
        let hello = Hello { elements: alloc::vec![HelloElement::VersionBitmap(alloc::vec![])] };
        assert_eq!(negotiate(own, 4, &hello), None);
    }

    #[test]
    fn without_a_bitmap_the_lower_of_the_two_highest_versions_is_selected() {
        let own = Versions::of(&[Version::V1_0, Version::V1_3]);
        let none = Hello::default();
        assert_eq!(negotiate(own, 6, &none), Some(Version::V1_3));
        assert_eq!(negotiate(own, 4, &none), Some(Version::V1_3));
        assert_eq!(negotiate(own, 1, &none), Some(Version::V1_0));
        assert_eq!(negotiate(own, 2, &none), None, "1.1 is not one of ours");
        assert_eq!(negotiate(Versions::of(&[Version::V1_3]), 1, &none), None);
    }

    #[test]
    fn unknown_elements_are_kept() {
        let octets = [0, 9, 0, 5, 7, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x72];
        let hello = Hello::decode_body(&octets).expect("well formed");
        assert_eq!(hello.versions(), Some(Versions::ALL));
        let mut out = Vec::new();
        hello.write(&mut Writer::new(Version::V1_3, &mut out));
        assert_eq!(out, octets);
        assert!(Hello::decode_body(&octets[..5]).is_err());
    }
}
