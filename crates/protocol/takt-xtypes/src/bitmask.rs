//! Macro that declares bitmask types (XTypes 1.3 §7.2.2).

/// Declares an IDL `bitmask`: a newtype of `u8`, `u16`, `u32` or `u64` (bit bounds up to 8, 16, 32
/// and 64; the default of IDL is 32) with one constant per flag.
///
/// Bits without a flag are kept. `struct Name: u8 as "module::Name"` sets a different IDL name.
///
/// ```
/// takt_xtypes::bitmask! {
///     /// What a sensor reports.
///     pub struct Status: u8 {
///         /// It has power.
///         const POWERED = 0;
///         /// It is calibrated.
///         const CALIBRATED = 3;
///     }
/// }
/// let status = Status::POWERED | Status::CALIBRATED;
/// assert_eq!(status.bits(), 0b1001);
/// assert!(status.contains(Status::POWERED));
/// ```
#[macro_export]
macro_rules! bitmask {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: $holder:ident $(as $idl_name:literal)? {
            $($(#[$flag_meta:meta])* const $flag:ident = $position:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub $holder);

        // A bitmask for internal use may leave some of these unused.
        #[allow(dead_code)]
        impl $name {
            $(
                $(#[$flag_meta])*
                pub const $flag: Self = {
                    assert!($position < $holder::BITS, "position of the flag exceeds the bit bound");
                    Self(1 << $position)
                };
            )*

            /// Returns the flags as a number.
            #[must_use]
            pub const fn bits(self) -> $holder {
                self.0
            }

            /// Reports whether all flags of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl ::core::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl ::core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl ::core::ops::BitAnd for $name {
            type Output = Self;

            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl ::core::ops::Not for $name {
            type Output = Self;

            fn not(self) -> Self {
                Self(!self.0)
            }
        }

        impl $crate::CdrValue for $name {
            const MIN_ENCODED_LEN: usize = <$holder as $crate::CdrValue>::MIN_ENCODED_LEN;
            const LENGTH_CODE: u8 = <$holder as $crate::CdrValue>::LENGTH_CODE;

            #[inline]
            fn encode<S: $crate::Sink>(
                &self,
                e: &mut $crate::Encoder<S>,
            ) -> ::core::result::Result<(), $crate::EncodeError> {
                $crate::CdrValue::encode(&self.0, e)
            }

            #[inline]
            fn decode(
                &mut self,
                d: &mut $crate::Decoder<'_>,
            ) -> ::core::result::Result<(), $crate::DecodeError> {
                $crate::CdrValue::decode(&mut self.0, d)
            }

            #[inline]
            fn initial() -> Self {
                Self(0)
            }

            #[inline]
            fn extend(extent: $crate::Extent) -> $crate::Extent {
                <$holder as $crate::CdrValue>::extend(extent)
            }

            fn describe(types: &mut $crate::describe::TypeCollector<'_>) -> $crate::describe::TypeIdentifiers {
                const DESCRIPTION: $crate::describe::BitmaskDescription = $crate::describe::BitmaskDescription {
                    name: [$($idl_name,)? stringify!($name)][0],
                    bit_bound: $holder::BITS as u16,
                    flags: &[$((stringify!($flag), $position)),*],
                };
                types.named::<Self>(DESCRIPTION.name, |_| DESCRIPTION.build())
            }
        }
    };
}
