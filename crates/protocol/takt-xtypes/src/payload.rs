//! Serialized payloads: the 4-byte encapsulation header, the body, and padding to a multiple of
//! four (RTPS 2.5 §10, XTypes 1.3 §7.6.3.1).

use crate::encoder::Scope;
use crate::sink::{CountSink, SliceSink};
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Endianness, Extensibility, Representation,
    TypeSupport, representation,
};

/// Length of the encapsulation header: identifier and options, both big-endian.
pub const ENCAPSULATION_LEN: usize = 4;

/// Mask of the two low bits of the options: the number of padding bytes after the body
/// (XTypes 1.3 §7.6.3.1.2).
const OPTIONS_PADDING_MASK: u8 = 3;

/// Properties of a decoded payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Encoding version.
    pub representation: Representation,
    /// Byte order.
    pub endianness: Endianness,
    /// Bytes after the value that are not declared as padding.
    ///
    /// Other implementations accept such bytes after any type, and so does Takt. They indicate a
    /// different type, or a writer that does not declare its padding (then fewer than 4 bytes).
    pub trailing_bytes: usize,
}

/// Returns the length of a payload whose body has this length.
pub(crate) fn padded_len(body: usize) -> Option<usize> {
    body.checked_add(ENCAPSULATION_LEN)?.checked_next_multiple_of(4)
}

#[inline]
fn encoded_len<T: CdrValue>(value: &T, representation: Representation, scope: Scope) -> usize {
    // A value that cannot be encoded has no length; the encoder reports the reason.
    ENCAPSULATION_LEN + body_len(value, representation, scope).map_or(0, |len| len.next_multiple_of(4))
}

#[inline]
fn body_len<T: CdrValue>(value: &T, representation: Representation, scope: Scope) -> Result<usize, EncodeError> {
    let mut e = Encoder::new(CountSink, representation, Endianness::Little, scope);
    value.encode(&mut e)?;
    Ok(e.position())
}

fn encode<T: TypeSupport>(
    value: &T,
    representation: Representation,
    endianness: Endianness,
    scope: Scope,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let capacity = out.len();
    let too_small = |needed| EncodeError::BufferTooSmall { needed, capacity };
    let (header, body) = out.split_first_chunk_mut::<ENCAPSULATION_LEN>().ok_or(too_small(ENCAPSULATION_LEN))?;
    let mut e = Encoder::new(SliceSink(body), representation, endianness, scope);
    if let Err(error) = value.encode(&mut e) {
        return Err(reason(value, representation, scope, error));
    }
    let len = e.position();
    e.align(4)?;
    let padded = e.position();
    let identifier = representation::identifier(representation, T::EXTENSIBILITY, endianness).to_be_bytes();
    // At most 3: both lengths round up to the same multiple of 4.
    *header = [identifier[0], identifier[1], 0, (padded - len) as u8];
    Ok(ENCAPSULATION_LEN + padded)
}

/// Returns the error to report. A value that cannot be encoded fits no buffer, so an error of the
/// value takes precedence.
#[cold]
fn reason<T: CdrValue>(value: &T, representation: Representation, scope: Scope, error: EncodeError) -> EncodeError {
    body_len(value, representation, scope).err().unwrap_or(error)
}

/// Payload without its encapsulation header and padding.
pub(crate) struct Opened<'a> {
    pub body: &'a [u8],
    pub representation: Representation,
    pub endianness: Endianness,
}

impl Opened<'_> {
    pub(crate) fn decoded(&self, trailing_bytes: usize) -> Decoded {
        Decoded { representation: self.representation, endianness: self.endianness, trailing_bytes }
    }
}

/// Removes the encapsulation header and the declared padding from a payload.
#[inline]
pub(crate) fn open(payload: &[u8], extensibility: Extensibility) -> Result<Opened<'_>, DecodeError> {
    let at_start = |kind| DecodeError { offset: 0, kind };
    let Some((&[high, low, _, options], body)) = payload.split_first_chunk::<ENCAPSULATION_LEN>() else {
        return Err(at_start(DecodeErrorKind::EndOfInput));
    };
    let identifier = u16::from_be_bytes([high, low]);
    let Some((representation, endianness)) = representation::from_identifier(identifier, extensibility) else {
        return Err(at_start(DecodeErrorKind::Encapsulation { identifier }));
    };
    let padding = usize::from(options & OPTIONS_PADDING_MASK);
    match body.len().checked_sub(padding).and_then(|len| body.get(..len)) {
        Some(body) => Ok(Opened { body, representation, endianness }),
        None => Err(at_start(DecodeErrorKind::EndOfInput)),
    }
}

fn decode<T: TypeSupport>(value: &mut T, payload: &[u8], scope: Scope) -> Result<Decoded, DecodeError> {
    let opened = open(payload, T::EXTENSIBILITY)?;
    let Opened { body, representation, endianness } = opened;
    let mut d = Decoder::new(body, representation, endianness, scope);
    if let Err(error) = value.decode(&mut d) {
        if scope != Scope::Key || T::EXTENSIBILITY != Extensibility::Appendable {
            return Err(error);
        }
        // INTEROP(CycloneDDS 0.10.2): sends no DHEADER before the key of an appendable type.
        d = Decoder::new(body, representation, endianness, Scope::KeyHash);
        value.decode(&mut d).map_err(|_| error)?;
    }
    Ok(opened.decoded(d.remaining()))
}

/// Returns the length of the payload that [`serialize`] writes, in bytes: header and padding
/// included, a multiple of 4.
///
/// The length is a constant to the optimizer for types of fixed size. Otherwise, the function
/// visits strings and sequences, but not the elements of primitive sequences. For a value that
/// cannot be encoded (see [`EncodeError`]), it returns the length of the header. [`serialize`] into
/// such a short buffer fails with the error of the value.
#[inline]
pub fn serialized_len<T: TypeSupport>(value: &T, representation: Representation) -> usize {
    encoded_len(value, representation, Scope::Sample)
}

/// Returns the length and the header of the payload that [`serialize`] writes. If this succeeds,
/// [`serialize`] succeeds with a sufficient buffer.
///
/// # Errors
/// Fails as [`serialize`] does, except for [`EncodeError::BufferTooSmall`].
#[inline]
pub fn measure<T: TypeSupport>(
    value: &T,
    representation: Representation,
) -> Result<(usize, [u8; ENCAPSULATION_LEN]), EncodeError> {
    let len = body_len(value, representation, Scope::Sample)?;
    Ok((ENCAPSULATION_LEN + len.next_multiple_of(4), encapsulation::<T>(representation, len)))
}

/// Serializes the payload of a sample in little endian. Returns its length. Never allocates.
#[inline]
pub fn serialize<T: TypeSupport>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    encode(value, representation, Endianness::Little, Scope::Sample, out)
}

/// Serializes the payload of a sample in this byte order; see [`serialize`].
#[inline]
pub fn serialize_with<T: TypeSupport>(
    value: &T,
    representation: Representation,
    endianness: Endianness,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    encode(value, representation, endianness, Scope::Sample, out)
}

/// Deserializes the payload of a sample into `value` and reuses its memory. After an error, `value`
/// is valid but unspecified.
#[inline]
pub fn deserialize<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    decode(value, payload, Scope::Sample).map(|_| ())
}

/// Deserializes the payload of a sample and reports its representation; see [`deserialize`].
#[inline]
pub fn deserialize_reporting<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<Decoded, DecodeError> {
    decode(value, payload, Scope::Sample)
}

/// Deserializes the key members of a sample's payload into those of `value`. Reading ends after the
/// last key member. Other members of `value` are unspecified.
#[inline]
pub(crate) fn deserialize_key_of_sample<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    decode(value, payload, Scope::KeyOfSample).map(|_| ())
}

/// Returns the little-endian header of a payload whose body is written separately and has
/// `body_len` bytes. The caller pads the body to a multiple of 4.
#[must_use]
pub fn encapsulation<T: TypeSupport>(representation: Representation, body_len: usize) -> [u8; ENCAPSULATION_LEN] {
    let [high, low] = representation::identifier(representation, T::EXTENSIBILITY, Endianness::Little).to_be_bytes();
    [high, low, 0, (body_len.next_multiple_of(4) - body_len) as u8]
}

/// Returns the length of the payload that [`serialize_key`] writes, in bytes.
#[inline]
pub fn serialized_key_len<T: TypeSupport>(value: &T, representation: Representation) -> usize {
    if T::HAS_KEY { encoded_len(value, representation, Scope::Key) } else { ENCAPSULATION_LEN }
}

/// Serializes the key-only payload of dispose and unregister: the type with its key members only.
#[inline]
pub fn serialize_key<T: TypeSupport>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    serialize_key_with(value, representation, Endianness::Little, out)
}

/// Serializes the key-only payload in this byte order; see [`serialize_key`].
pub fn serialize_key_with<T: TypeSupport>(
    value: &T,
    representation: Representation,
    endianness: Endianness,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    if T::HAS_KEY {
        return encode(value, representation, endianness, Scope::Key, out);
    }
    let capacity = out.len();
    let header = out
        .first_chunk_mut::<ENCAPSULATION_LEN>()
        .ok_or(EncodeError::BufferTooSmall { needed: ENCAPSULATION_LEN, capacity })?;
    let identifier = representation::identifier(representation, T::EXTENSIBILITY, endianness).to_be_bytes();
    *header = [identifier[0], identifier[1], 0, 0];
    Ok(ENCAPSULATION_LEN)
}

/// Deserializes a key-only payload into the key members of `value`. The other members stay
/// unchanged.
#[inline]
pub fn deserialize_key<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    deserialize_key_reporting(value, payload).map(|_| ())
}

/// Deserializes a key-only payload and reports its representation; see [`deserialize_key`].
pub fn deserialize_key_reporting<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<Decoded, DecodeError> {
    if T::HAS_KEY {
        return decode(value, payload, Scope::Key);
    }
    let opened = open(payload, T::EXTENSIBILITY)?;
    Ok(opened.decoded(opened.body.len()))
}
