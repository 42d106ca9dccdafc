//! Conversion of payloads to the values that readers return.

use takt_core::{InstanceHandle, SampleInfo};

use crate::{Result, TypeSupport};

/// Type of the samples of a [`DataReader`](crate::DataReader): any topic type, or the data of a
/// [builtin topic](crate::builtin). Sealed.
pub trait Readable: sealed::Decode + Default + Send + 'static {}

impl<T: sealed::Decode + Default + Send + 'static> Readable for T {}

pub(crate) mod sealed {
    use super::*;

    /// Conversion of a payload in the history to a value.
    pub trait Decode {
        /// Name of the type.
        const TYPE_NAME: &'static str;

        /// Replaces the value by that of a sample. If the sample has no data, sets the key members
        /// only, provided that `payload` contains the key. Returns false if the payload is not of
        /// this type.
        fn decode(&mut self, info: &SampleInfo, payload: &[u8]) -> bool;

        /// Sets the key members to those of an instance, whose serialized key may be empty. Returns
        /// false if the key cannot be determined.
        fn decode_key(&mut self, instance: InstanceHandle, key: &[u8]) -> bool;

        /// Returns the handle of the value's instance.
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
