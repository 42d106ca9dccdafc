//! Types of `lab/interop/peers/interop.idl`, and a type with a sequence in its key.

use takt::{DdsType, TypeSupport};
use takt_interop::content::{sequence_key, wide_key};

/// Key reported for an instance whose key members are inconsistent.
const WRONG_KEY: u32 = u32::MAX;

/// Common operations of the types.
pub trait Exchanged: TypeSupport {
    /// Creates a sample. Arguments without a member in the type are dropped.
    fn new(key: u32, name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self;

    /// Returns the key, 0 without one, and its name if the type has one. Returns [`WRONG_KEY`] if
    /// its members are inconsistent.
    fn key(&self) -> (u32, Option<&str>);

    /// Returns sequence number, timestamp and payload.
    fn data(&self) -> (u64, i64, &[u8]);

    /// Returns the members that change between samples.
    fn data_mut(&mut self) -> (&mut u64, &mut i64, &mut Vec<u8>);
}

macro_rules! data_members {
    () => {
        fn data(&self) -> (u64, i64, &[u8]) {
            (self.seq, self.stamp_ns, &self.payload)
        }

        fn data_mut(&mut self) -> (&mut u64, &mut i64, &mut Vec<u8>) {
            (&mut self.seq, &mut self.stamp_ns, &mut self.payload)
        }
    };
}

macro_rules! unkeyed {
    ($type:ident, $name:literal, $extensibility:literal) => {
        #[derive(DdsType, Clone, Debug, Default)]
        #[dds(name = $name, extensibility = $extensibility)]
        pub struct $type {
            seq: u64,
            stamp_ns: i64,
            payload: Vec<u8>,
        }

        impl Exchanged for $type {
            fn new(_key: u32, _name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self {
                Self { seq, stamp_ns, payload }
            }

            fn key(&self) -> (u32, Option<&str>) {
                (0, None)
            }

            data_members!();
        }
    };
}

macro_rules! key {
    ($type:ident, $name:literal, $extensibility:literal) => {
        #[derive(DdsType, Clone, Debug, Default)]
        #[dds(name = $name, extensibility = $extensibility)]
        pub struct $type {
            #[dds(key)]
            id: u32,
            seq: u64,
            stamp_ns: i64,
            payload: Vec<u8>,
        }

        impl Exchanged for $type {
            fn new(id: u32, _name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self {
                Self { id, seq, stamp_ns, payload }
            }

            fn key(&self) -> (u32, Option<&str>) {
                (self.id, None)
            }

            data_members!();
        }
    };
}

macro_rules! name_key {
    ($type:ident, $name:literal, $extensibility:literal) => {
        #[derive(DdsType, Clone, Debug, Default)]
        #[dds(name = $name, extensibility = $extensibility)]
        pub struct $type {
            #[dds(key)]
            name: String,
            #[dds(key)]
            id: u32,
            seq: u64,
            stamp_ns: i64,
            payload: Vec<u8>,
        }

        impl Exchanged for $type {
            fn new(id: u32, name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self {
                Self { name, id, seq, stamp_ns, payload }
            }

            fn key(&self) -> (u32, Option<&str>) {
                (self.id, Some(&self.name))
            }

            data_members!();
        }
    };
}

unkeyed!(UnkeyedFinal, "interop::UnkeyedFinal", "final");
unkeyed!(UnkeyedAppendable, "interop::UnkeyedAppendable", "appendable");
key!(KeyFinal, "interop::KeyFinal", "final");
key!(KeyAppendable, "interop::KeyAppendable", "appendable");
name_key!(NameKeyFinal, "interop::NameKeyFinal", "final");
name_key!(NameKeyAppendable, "interop::NameKeyAppendable", "appendable");

#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "interop::WideKeyFinal", extensibility = "final")]
pub struct WideKeyFinal {
    #[dds(key)]
    id: u32,
    #[dds(key)]
    wide: u64,
    seq: u64,
    stamp_ns: i64,
    payload: Vec<u8>,
}

impl Exchanged for WideKeyFinal {
    fn new(id: u32, _name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self {
        Self { id, wide: wide_key(id), seq, stamp_ns, payload }
    }

    fn key(&self) -> (u32, Option<&str>) {
        (if self.wide == wide_key(self.id) { self.id } else { WRONG_KEY }, None)
    }

    data_members!();
}

#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "interop::OctetKeyFinal", extensibility = "final")]
pub struct OctetKeyFinal {
    #[dds(key)]
    small: u8,
    #[dds(key)]
    wide: i64,
    seq: u64,
    stamp_ns: i64,
    payload: Vec<u8>,
}

impl Exchanged for OctetKeyFinal {
    fn new(key: u32, _name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self {
        let small = u8::try_from(key).expect("the tests use small keys");
        Self { small, wide: wide_key(key).cast_signed(), seq, stamp_ns, payload }
    }

    fn key(&self) -> (u32, Option<&str>) {
        let key = u32::from(self.small);
        (if self.wide.cast_unsigned() == wide_key(key) { key } else { WRONG_KEY }, None)
    }

    data_members!();
}

#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "interop::SequenceKeyFinal", extensibility = "final")]
pub struct SequenceKeyFinal {
    #[dds(key)]
    parts: Vec<u64>,
    seq: u64,
    stamp_ns: i64,
    payload: Vec<u8>,
}

impl Exchanged for SequenceKeyFinal {
    fn new(key: u32, _name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self {
        Self { parts: sequence_key(key), seq, stamp_ns, payload }
    }

    fn key(&self) -> (u32, Option<&str>) {
        let first = self.parts.first().map_or(0, |first| first / wide_key(1));
        let key = u32::try_from(first).unwrap_or(WRONG_KEY);
        (if self.parts == sequence_key(key) { key } else { WRONG_KEY }, None)
    }

    data_members!();
}
