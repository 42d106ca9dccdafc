//! Serialized payloads: the 4-byte encapsulation header, the body, and padding to a multiple of four
//! (RTPS 2.5 §10, XTypes 1.3 §7.6.3.1).

use crate::encoder::Scope;
use crate::sink::{CountSink, SliceSink};
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Endianness, Extensibility, Representation,
    TypeSupport, representation,
};

/// Length of the encapsulation header: identifier and options, both big-endian.
pub const ENCAPSULATION_LEN: usize = 4;

/// The two low bits of the options: how many bytes of padding follow the body (XTypes 1.3 §7.6.3.1.2).
const OPTIONS_PADDING_MASK: u8 = 3;

/// What a payload turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Its encoding version.
    pub representation: Representation,
    /// Its byte order.
    pub endianness: Endianness,
    /// Bytes behind the value that are not declared as padding. Peers accept them after any type, so Takt does; they
    /// hint at a type that differs, or at a writer that pads without saying so (then fewer than 4).
    pub trailing_bytes: usize,
}

/// Length of a payload whose body has this length.
pub(crate) fn padded_len(body: usize) -> Option<usize> {
    body.checked_add(ENCAPSULATION_LEN)?.checked_next_multiple_of(4)
}

#[inline]
fn encoded_len<T: CdrValue>(value: &T, representation: Representation, scope: Scope) -> usize {
    // What fails to encode has no length; the encoder will say why.
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
    // At most 3: both are next to the same multiple of 4.
    *header = [identifier[0], identifier[1], 0, (padded - len) as u8];
    Ok(ENCAPSULATION_LEN + padded)
}

/// The error to report. No buffer is large enough for a value that cannot be encoded, so an error of the value comes first.
#[cold]
fn reason<T: CdrValue>(value: &T, representation: Representation, scope: Scope, error: EncodeError) -> EncodeError {
    body_len(value, representation, scope).err().unwrap_or(error)
}

/// A payload without its encapsulation header and padding.
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

/// Takes the encapsulation header and the padding that it declares from a payload.
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
        // INTEROP(CycloneDDS 0.10.2): no DHEADER before the key of an appendable type.
        d = Decoder::new(body, representation, endianness, Scope::KeyHash);
        value.decode(&mut d).map_err(|_| error)?;
    }
    Ok(opened.decoded(d.remaining()))
}

/// Length of the payload that [`serialize`] writes, in bytes: header and padding included, a multiple of 4.
///
/// A constant to the optimiser for types of fixed size; otherwise it visits strings and sequences, but not the
/// elements of primitive ones. A value that cannot be encoded at all (see [`EncodeError`]) counts as its header; [`serialize`] into so
/// short a buffer fails with the error of the value.
#[inline]
pub fn serialized_len<T: TypeSupport>(value: &T, representation: Representation) -> usize {
    encoded_len(value, representation, Scope::Sample)
}

/// The length of the payload that [`serialize`] writes, and its header; it writes them if this does not fail.
///
/// # Errors
/// Those of [`serialize`] but [`EncodeError::BufferTooSmall`].
#[inline]
pub fn measure<T: TypeSupport>(
    value: &T,
    representation: Representation,
) -> Result<(usize, [u8; ENCAPSULATION_LEN]), EncodeError> {
    let len = body_len(value, representation, Scope::Sample)?;
    Ok((ENCAPSULATION_LEN + len.next_multiple_of(4), encapsulation::<T>(representation, len)))
}

/// Writes the payload of a sample, little-endian, and returns its length. Never allocates.
#[inline]
pub fn serialize<T: TypeSupport>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    encode(value, representation, Endianness::Little, Scope::Sample, out)
}

/// [`serialize`] in a byte order of choice.
#[inline]
pub fn serialize_with<T: TypeSupport>(
    value: &T,
    representation: Representation,
    endianness: Endianness,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    encode(value, representation, endianness, Scope::Sample, out)
}

/// Reads the payload of a sample into `value`, reusing its memory. After an error `value` is valid but unspecified.
#[inline]
pub fn deserialize<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    deserialize_reporting(value, payload).map(|_| ())
}

/// [`deserialize`], and what the payload was.
#[inline]
pub fn deserialize_reporting<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<Decoded, DecodeError> {
    decode(value, payload, Scope::Sample)
}

/// Reads the key members of a sample's payload into those of `value`. Reading ends behind the last key member, so that what
/// follows costs nothing; other members are unspecified.
#[inline]
pub(crate) fn deserialize_key_of_sample<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    decode(value, payload, Scope::KeyOfSample).map(|_| ())
}

/// The header of a payload whose body somebody else writes, little-endian and so many bytes long; the body is padded to a
/// multiple of 4.
#[must_use]
pub fn encapsulation<T: TypeSupport>(representation: Representation, body_len: usize) -> [u8; ENCAPSULATION_LEN] {
    let [high, low] = representation::identifier(representation, T::EXTENSIBILITY, Endianness::Little).to_be_bytes();
    [high, low, 0, (body_len.next_multiple_of(4) - body_len) as u8]
}

/// Length of the payload that [`serialize_key`] writes, in bytes.
#[inline]
pub fn serialized_key_len<T: TypeSupport>(value: &T, representation: Representation) -> usize {
    if T::HAS_KEY { encoded_len(value, representation, Scope::Key) } else { ENCAPSULATION_LEN }
}

/// Writes the key-only payload of dispose and unregister: the type with only its key members.
#[inline]
pub fn serialize_key<T: TypeSupport>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    serialize_key_with(value, representation, Endianness::Little, out)
}

/// [`serialize_key`] in a byte order of choice.
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

/// Reads a key-only payload into the key members of `value`; the others stay as they are.
#[inline]
pub fn deserialize_key<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    deserialize_key_reporting(value, payload).map(|_| ())
}

/// [`deserialize_key`], and what the payload was.
pub fn deserialize_key_reporting<T: TypeSupport>(value: &mut T, payload: &[u8]) -> Result<Decoded, DecodeError> {
    if T::HAS_KEY {
        return decode(value, payload, Scope::Key);
    }
    let opened = open(payload, T::EXTENSIBILITY)?;
    Ok(opened.decoded(opened.body.len()))
}
