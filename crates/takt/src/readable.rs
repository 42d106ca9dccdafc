//! What a reader makes of a payload.

use takt_core::{InstanceHandle, SampleInfo};

use crate::{Result, TypeSupport};

/// What a [`DataReader`](crate::DataReader) yields: every type of topics, and the data of the
/// [builtin topics](crate::builtin). Implemented here alone.
pub trait Readable: sealed::Decode + Default + Send + 'static {}

impl<T: sealed::Decode + Default + Send + 'static> Readable for T {}

pub(crate) mod sealed {
    use super::*;

    /// From the bytes of a history to a value.
    pub trait Decode {
        /// The name of the type.
        const TYPE_NAME: &'static str;

        /// Replaces the value by a sample's. Without data only the key is set, if `payload` has it. False if this is no
        /// such type.
        fn decode(&mut self, info: &SampleInfo, payload: &[u8]) -> bool;

        /// Sets the key members to those of an instance, whose serialised key may be empty. False if that cannot be.
        fn decode_key(&mut self, instance: InstanceHandle, key: &[u8]) -> bool;

        /// The instance that the value belongs to.
        fn instance_handle(&self) -> Result<InstanceHandle>;
    }

    impl<T: TypeSupport> Decode for T {
        const TYPE_NAME: &'static str = T::TYPE_NAME;

        #[inline]
        fn decode(&mut self, info: &SampleInfo, payload: &[u8]) -> bool {
            if info.valid_data {
                takt_xtypes::deserialize(self, payload).is_ok()
            } else {
                payload.is_empty() || takt_xtypes::deserialize_key(self, payload).is_ok()
            }
        }

        fn decode_key(&mut self, _: InstanceHandle, key: &[u8]) -> bool {
            takt_xtypes::deserialize_key(self, key).is_ok()
        }

        fn instance_handle(&self) -> Result<InstanceHandle> {
            Ok(InstanceHandle(takt_xtypes::key_hash(self)?))
        }
    }
}
