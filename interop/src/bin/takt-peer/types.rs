//! The six types of `interop/peers/interop.idl`.

use takt::{DdsType, TypeSupport};

/// What the types have in common.
pub trait Exchanged: TypeSupport {
    /// A sample; what the type has no member for is dropped.
    fn new(key: u32, name: String, seq: u64, stamp_ns: i64, payload: Vec<u8>) -> Self;

    /// The key, 0 without one, and its name if the type has one.
    fn key(&self) -> (u32, Option<&str>);

    /// Sequence number, stamp, payload.
    fn data(&self) -> (u64, i64, &[u8]);

    /// Access to what changes from sample to sample.
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
