//! Encoding and decoding of unions, driven by the derive ([`UnionType`]; XTypes 1.3 §7.4.3.5, rules
//! for UNION_TYPE).

use crate::encoder::{Content, Value};
use crate::member::Member;
use crate::structure::effective;
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extensibility, Extent, Representation,
    Scope, Sink, parameter,
};

/// Member id of the discriminator (XTypes 1.3 §7.2.2).
pub(crate) const DISCRIMINATOR: Member = Member { id: 0, key: false, must_understand: true };

/// Union as the derive describes it.
pub trait UnionType: CdrValue {
    /// Type of the discriminator.
    type Discriminator: CdrValue;
    /// Extensibility.
    const EXTENSIBILITY: Extensibility;
    /// True if the discriminator is the key. Otherwise, the whole union is the key if it is part of
    /// one.
    const DISCRIMINATOR_IS_KEY: bool;

    /// Returns the discriminator that selects the current case.
    fn discriminator(&self) -> Self::Discriminator;

    /// Returns the member id and length code of the current case; `None` if it has no member.
    fn case_member(&self) -> Option<(u32, u8)>;

    /// Encodes the member of the current case.
    fn encode_case<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError>;

    /// Switches to the case of the discriminator. Keeps the value if that is the current case.
    /// Returns false if there is no such case.
    fn select(&mut self, discriminator: &Self::Discriminator) -> bool;

    /// Decodes the member of the current case in place.
    fn decode_case(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;

    /// Sets the member of the current case to its default.
    fn reset_case(&mut self);

    /// Calls `visit` with id, length code and extent of every case that has a member.
    fn for_each_case(visit: &mut dyn FnMut(u32, u8, fn(Extent) -> Extent));
}

/// Member of the current case as content.
struct Case<'a, T>(&'a T);

impl<T: UnionType> Content for Case<'_, T> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        self.0.encode_case(e)
    }
}

/// Discriminator and member as content.
struct Body<'a, T> {
    value: &'a T,
    headers: bool,
}

impl<T: UnionType> Content for Body<'_, T> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        let discriminator = self.value.discriminator();
        if self.headers {
            parameter::write(e, DISCRIMINATOR, T::Discriminator::LENGTH_CODE, &Value(&discriminator))?;
        } else {
            discriminator.encode(e)?;
        }
        let Some((id, length_code)) = self.value.case_member() else {
            return Ok(());
        };
        if discriminator_only::<T>(e.scope()) {
            Ok(())
        } else if self.headers {
            parameter::write(e, Member { id, key: false, must_understand: false }, length_code, &Case(self.value))
        } else {
            self.value.encode_case(e)
        }
    }
}

#[inline]
fn discriminator_only<T: UnionType>(scope: Scope) -> bool {
    scope != Scope::Sample && T::DISCRIMINATOR_IS_KEY
}

/// Encodes a union: [`CdrValue::encode`] of a derived union.
pub fn encode<T: UnionType, S: Sink>(value: &T, e: &mut Encoder<S>) -> Result<(), EncodeError> {
    match (effective(T::EXTENSIBILITY, e.scope()), e.representation()) {
        (Extensibility::Final, _) | (Extensibility::Appendable, Representation::Xcdr1) => {
            Body { value, headers: false }.encode(e)
        }
        (Extensibility::Appendable, Representation::Xcdr2) => e.delimited(&Body { value, headers: false }),
        (Extensibility::Mutable, Representation::Xcdr2) => e.delimited(&Body { value, headers: true }),
        (Extensibility::Mutable, Representation::Xcdr1) => {
            Body { value, headers: true }.encode(e)?;
            parameter::write_list_end(e)
        }
    }
}

/// Decodes a union: [`CdrValue::decode`] of a derived union.
pub fn decode<T: UnionType>(value: &mut T, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    match (effective(T::EXTENSIBILITY, d.scope()), d.representation()) {
        (Extensibility::Final, _) => decode_plain(value, d, false),
        (Extensibility::Appendable, Representation::Xcdr1) => decode_plain(value, d, true),
        (Extensibility::Appendable, Representation::Xcdr2) => d.delimited(|d| decode_plain(value, d, true)),
        (Extensibility::Mutable, Representation::Xcdr1) => decode_parameters(value, d),
        (Extensibility::Mutable, Representation::Xcdr2) => d.delimited(|d| decode_parameters(value, d)),
    }
}

fn select<T: UnionType>(value: &mut T, discriminator: &T::Discriminator, d: &Decoder<'_>) -> Result<(), DecodeError> {
    if value.select(discriminator) { Ok(()) } else { Err(d.error(DecodeErrorKind::Discriminator)) }
}

fn decode_plain<T: UnionType>(value: &mut T, d: &mut Decoder<'_>, may_end: bool) -> Result<(), DecodeError> {
    let mut discriminator = T::Discriminator::initial();
    discriminator.decode(d)?;
    select(value, &discriminator, d)?;
    if value.case_member().is_none() || discriminator_only::<T>(d.scope()) {
        Ok(())
    } else if may_end && d.remaining() == 0 {
        value.reset_case();
        Ok(())
    } else {
        value.decode_case(d)
    }
}

/// Decodes the discriminator, which comes first (XTypes 1.3 §7.4.3.5), then at most one member. The
/// discriminator selects the case, not the member's id.
fn decode_parameters<T: UnionType>(value: &mut T, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let header = match parameter::read(d)? {
        Some(header) if header.id == DISCRIMINATOR.id => header,
        _ => return Err(d.error(DecodeErrorKind::Header)),
    };
    let mut discriminator = T::Discriminator::initial();
    within_member(d, header.len, |d| discriminator.decode(d))?;
    select(value, &discriminator, d)?;
    let mut decoded = false;
    while let Some(header) = parameter::read(d)? {
        let wanted = !decoded && value.case_member().is_some_and(|(id, _)| id == header.id);
        if !wanted && header.must_understand {
            return Err(d.error(DecodeErrorKind::MustUnderstand { id: header.id }));
        }
        let read = wanted && !discriminator_only::<T>(d.scope());
        within_member(d, header.len, |d| if read { value.decode_case(d) } else { Ok(()) })?;
        decoded |= wanted;
    }
    if !decoded && !discriminator_only::<T>(d.scope()) {
        value.reset_case();
    }
    Ok(())
}

pub(crate) fn within_member(
    d: &mut Decoder<'_>,
    len: usize,
    read: impl FnOnce(&mut Decoder<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    match d.representation() {
        Representation::Xcdr1 => d.with_origin(len, read),
        Representation::Xcdr2 => d.within(len, read),
    }
}

/// Advances a worst-case position past a union: [`CdrValue::extend`] of a derived union.
pub fn extend<T: UnionType>(extent: Extent) -> Extent {
    let extensibility = effective(T::EXTENSIBILITY, extent.scope());
    let headers = extensibility == Extensibility::Mutable;
    let xcdr2 = extent.representation() == Representation::Xcdr2;
    let delimited = xcdr2 && extensibility != Extensibility::Final;
    let start = if delimited { extent.add(4, 4) } else { extent };
    let discriminator = if headers {
        parameter::extend(start, DISCRIMINATOR.id, T::Discriminator::LENGTH_CODE, T::Discriminator::extend)
    } else {
        T::Discriminator::extend(start)
    };
    let mut end = discriminator;
    if !discriminator_only::<T>(extent.scope()) {
        T::for_each_case(&mut |id, length_code, case| {
            end = end.max(if headers {
                parameter::extend(discriminator, id, length_code, case)
            } else {
                case(discriminator)
            });
        });
    }
    if headers && !xcdr2 { end.add(4, 4) } else { end }
}
