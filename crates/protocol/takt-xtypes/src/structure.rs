//! Encoding and decoding of structs, driven by the derive ([`StructType`]).
//!
//! A derived struct only passes its members to a visitor, in declaration order, inherited ones
//! first. The visitors decide per representation, extensibility and [`Scope`] which members are
//! encoded and how (XTypes 1.3 §7.4.3.5, rules for STRUCT_TYPE and MEMBER).

pub use crate::member::{MAX_MEMBER_ID, MAX_MEMBERS, Member, MemberIds};

use crate::encoder::{Content, Value};
use crate::member::MemberSet;
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extensibility, Extent, HasLength,
    Representation, Scope, Sink, check_decoded_bound, check_encoded_bound, parameter,
};

/// Struct as the derive describes it.
pub trait StructType: CdrValue {
    /// Extensibility.
    const EXTENSIBILITY: Extensibility;
    /// True if the struct or its base has a key member.
    const HAS_KEY: bool;
    /// Number of key members, inherited ones included.
    const KEY_COUNT: usize;
    /// Ids of all members, in order.
    const IDS: MemberIds;

    /// Passes every member to the visitor.
    fn encode_members<S: Sink>(&self, m: &mut MemberEncoder<'_, S>) -> Result<(), EncodeError>;

    /// Passes every member to the visitor, in the same order.
    fn decode_members(&mut self, m: &mut MemberDecoder<'_, '_>) -> Result<(), DecodeError>;

    /// Passes the type of every member to the visitor, in the same order.
    fn extend_members(m: &mut MemberExtent);
}

/// Reports whether only key members take part. In a key scope of a struct without key members, the
/// whole value is the key.
#[inline]
fn keys_only<T: StructType>(scope: Scope) -> bool {
    scope != Scope::Sample && T::HAS_KEY
}

/// Returns the effective extensibility. For the key hash, every type is final (XTypes 1.3 §7.6.8).
#[inline]
pub(crate) fn effective(extensibility: Extensibility, scope: Scope) -> Extensibility {
    if scope == Scope::KeyHash { Extensibility::Final } else { extensibility }
}

/// Visitor that encodes the members of a struct.
pub struct MemberEncoder<'e, S> {
    encoder: &'e mut Encoder<S>,
    headers: bool,
    keys_only: bool,
    only: Option<u32>,
}

impl<S: Sink> MemberEncoder<'_, S> {
    #[inline(always)]
    fn skips(&self, member: Member) -> bool {
        self.keys_only && !member.key || self.only.is_some_and(|id| id != member.id)
    }

    /// Encodes a member that is not optional.
    #[inline(always)]
    pub fn member<T: CdrValue>(&mut self, member: Member, value: &T) -> Result<(), EncodeError> {
        if self.skips(member) {
            Ok(())
        } else if self.headers {
            parameter::write(self.encoder, member, T::LENGTH_CODE, &Value(value))
        } else {
            value.encode(self.encoder)
        }
    }

    /// Encodes a member with a bound.
    #[inline(always)]
    pub fn bounded<T: HasLength>(&mut self, member: Member, bound: usize, value: &T) -> Result<(), EncodeError> {
        if !self.skips(member) {
            check_encoded_bound(value, bound)?;
        }
        self.member(member, value)
    }

    /// Encodes an optional member.
    #[inline(always)]
    pub fn optional<T: CdrValue>(&mut self, member: Member, value: &Option<T>) -> Result<(), EncodeError> {
        if self.skips(member) {
            return Ok(());
        }
        let content = value.as_ref().map(Value);
        match (self.headers, self.encoder.representation()) {
            (true, _) => match content {
                Some(content) => parameter::write(self.encoder, member, T::LENGTH_CODE, &content),
                None => Ok(()),
            },
            (false, Representation::Xcdr1) => parameter::write_optional(self.encoder, member, content.as_ref()),
            (false, Representation::Xcdr2) => {
                content.is_some().encode(self.encoder)?;
                content.map_or(Ok(()), |content| content.encode(self.encoder))
            }
        }
    }

    /// Encodes an optional member with a bound.
    #[inline(always)]
    pub fn optional_bounded<T: HasLength>(
        &mut self,
        member: Member,
        bound: usize,
        value: &Option<T>,
    ) -> Result<(), EncodeError> {
        if let Some(value) = value
            && !self.skips(member)
        {
            check_encoded_bound(value, bound)?;
        }
        self.optional(member, value)
    }
}

/// All members of a struct as content.
struct Members<'a, T> {
    value: &'a T,
    headers: bool,
}

impl<T: StructType> Content for Members<'_, T> {
    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        let keys_only = keys_only::<T>(e.scope());
        let by_id = e.scope() == Scope::KeyHash && !const { T::IDS.is_ascending() };
        let mut m = MemberEncoder { encoder: e, headers: self.headers, keys_only, only: None };
        if !by_id {
            return self.value.encode_members(&mut m);
        }
        let mut next = T::IDS.at_least(0);
        while let Some(id) = next {
            m.only = Some(id);
            self.value.encode_members(&mut m)?;
            next = T::IDS.at_least(id + 1);
        }
        Ok(())
    }
}

/// Encodes a struct: [`CdrValue::encode`] of a derived struct.
#[inline]
pub fn encode<T: StructType, S: Sink>(value: &T, e: &mut Encoder<S>) -> Result<(), EncodeError> {
    match (effective(T::EXTENSIBILITY, e.scope()), e.representation()) {
        (Extensibility::Final, _) | (Extensibility::Appendable, Representation::Xcdr1) => {
            Members { value, headers: false }.encode(e)
        }
        (Extensibility::Appendable, Representation::Xcdr2) => e.delimited(&Members { value, headers: false }),
        (Extensibility::Mutable, Representation::Xcdr2) => e.delimited(&Members { value, headers: true }),
        (Extensibility::Mutable, Representation::Xcdr1) => {
            Members { value, headers: true }.encode(e)?;
            parameter::write_list_end(e)
        }
    }
}

/// Mode of a [`MemberDecoder`].
enum Mode<'m> {
    /// Decodes members in order. If the input may end early, the members after its end get their
    /// defaults.
    InOrder { may_end: bool },
    /// Decodes the member with this id.
    Pick { id: u32, seen: &'m mut MemberSet, found: bool },
    /// Sets the members that were not received to their defaults.
    Default { seen: &'m MemberSet },
}

/// Members that a [`MemberDecoder`] reads.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    Keys,
    /// All members up to the last key member; the value is the number of remaining key members.
    UpToLastKey(usize),
}

/// Visitor that decodes the members of a struct.
pub struct MemberDecoder<'d, 'a> {
    decoder: &'d mut Decoder<'a>,
    mode: Mode<'d>,
    wanted: Wanted,
    index: usize,
}

/// Action for one member.
enum Action {
    Skip,
    Decode,
    Default,
}

impl MemberDecoder<'_, '_> {
    #[inline(always)]
    fn action(&mut self, member: Member) -> Result<Action, DecodeError> {
        let index = self.index;
        self.index += 1;
        let takes_part = match &mut self.wanted {
            Wanted::All => true,
            Wanted::Keys => member.key,
            Wanted::UpToLastKey(left) => {
                let takes_part = *left > 0;
                *left -= usize::from(takes_part && member.key);
                takes_part
            }
        };
        let action = match &mut self.mode {
            Mode::InOrder { may_end } => {
                if !takes_part {
                    return Ok(Action::Skip);
                }
                if *may_end && self.decoder.remaining() == 0 { Action::Default } else { Action::Decode }
            }
            Mode::Pick { id, seen, found } => {
                if *id != member.id {
                    return Ok(Action::Skip);
                }
                *found = true;
                seen.insert(index);
                if takes_part { Action::Decode } else { Action::Skip }
            }
            Mode::Default { seen } => {
                if !takes_part || seen.contains(index) {
                    return Ok(Action::Skip);
                }
                Action::Default
            }
        };
        if matches!(action, Action::Default) && member.key {
            return Err(self.decoder.error(DecodeErrorKind::MissingKey { id: member.id }));
        }
        Ok(action)
    }

    /// Decodes a member whose default is that of its type.
    #[inline(always)]
    pub fn member<T: CdrValue>(&mut self, member: Member, value: &mut T) -> Result<(), DecodeError> {
        self.member_or(member, value, T::reset)
    }

    /// Decodes a member with its own default.
    #[inline(always)]
    pub fn member_or<T: CdrValue>(
        &mut self,
        member: Member,
        value: &mut T,
        reset: impl FnOnce(&mut T),
    ) -> Result<(), DecodeError> {
        match self.action(member)? {
            Action::Skip => {}
            Action::Decode => value.decode(self.decoder)?,
            Action::Default => reset(value),
        }
        Ok(())
    }

    /// Decodes a member with a bound.
    #[inline(always)]
    pub fn bounded<T: HasLength>(&mut self, member: Member, bound: usize, value: &mut T) -> Result<(), DecodeError> {
        self.bounded_or(member, bound, value, T::reset)
    }

    /// Decodes a member with a bound and its own default.
    #[inline(always)]
    pub fn bounded_or<T: HasLength>(
        &mut self,
        member: Member,
        bound: usize,
        value: &mut T,
        reset: impl FnOnce(&mut T),
    ) -> Result<(), DecodeError> {
        match self.action(member)? {
            Action::Skip => {}
            Action::Decode => {
                value.decode(self.decoder)?;
                check_decoded_bound(value, bound, self.decoder)?;
            }
            Action::Default => reset(value),
        }
        Ok(())
    }

    /// Decodes an optional member; absent by default.
    #[inline(always)]
    pub fn optional<T: CdrValue>(&mut self, member: Member, value: &mut Option<T>) -> Result<(), DecodeError> {
        match self.action(member)? {
            Action::Skip => {}
            Action::Decode => match (&self.mode, self.decoder.representation()) {
                (Mode::InOrder { .. }, Representation::Xcdr1) => {
                    decode_optional_parameter(self.decoder, member, value)?
                }
                (Mode::InOrder { .. }, Representation::Xcdr2) => {
                    let mut present = false;
                    present.decode(self.decoder)?;
                    decode_optional(self.decoder, present, value)?;
                }
                _ => decode_optional(self.decoder, true, value)?,
            },
            Action::Default => *value = None,
        }
        Ok(())
    }

    /// Decodes an optional member with a bound.
    #[inline(always)]
    pub fn optional_bounded<T: HasLength>(
        &mut self,
        member: Member,
        bound: usize,
        value: &mut Option<T>,
    ) -> Result<(), DecodeError> {
        self.optional(member, value)?;
        value.as_ref().map_or(Ok(()), |value| check_decoded_bound(value, bound, self.decoder))
    }
}

fn decode_optional<T: CdrValue>(d: &mut Decoder<'_>, present: bool, value: &mut Option<T>) -> Result<(), DecodeError> {
    if present {
        d.charge(1, T::INITIAL_HEAP_LEN)?;
        value.get_or_insert_with(T::initial).decode(d)
    } else {
        *value = None;
        Ok(())
    }
}

fn decode_optional_parameter<T: CdrValue>(
    d: &mut Decoder<'_>,
    member: Member,
    value: &mut Option<T>,
) -> Result<(), DecodeError> {
    match parameter::read_parameter(d)? {
        Some(header) if header.id == member.id => {
            d.with_origin(header.len, |d| decode_optional(d, header.len != 0, value))
        }
        _ => Err(d.error(DecodeErrorKind::Header)),
    }
}

/// Decodes a struct: [`CdrValue::decode`] of a derived struct.
#[inline]
pub fn decode<T: StructType>(value: &mut T, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    match (effective(T::EXTENSIBILITY, d.scope()), d.representation()) {
        (Extensibility::Final, _) => decode_in_order(value, d, false),
        (Extensibility::Appendable, Representation::Xcdr1) => decode_in_order(value, d, true),
        (Extensibility::Appendable, Representation::Xcdr2) => d.delimited(|d| decode_in_order(value, d, true)),
        (Extensibility::Mutable, Representation::Xcdr1) => decode_by_id(value, d),
        (Extensibility::Mutable, Representation::Xcdr2) => d.delimited(|d| decode_by_id(value, d)),
    }
}

#[inline]
fn decode_in_order<T: StructType>(value: &mut T, d: &mut Decoder<'_>, may_end: bool) -> Result<(), DecodeError> {
    let wanted = match (d.takes_key_of_sample(), keys_only::<T>(d.scope())) {
        (true, _) => Wanted::UpToLastKey(T::KEY_COUNT),
        (false, true) => Wanted::Keys,
        (false, false) => Wanted::All,
    };
    value.decode_members(&mut MemberDecoder { decoder: d, mode: Mode::InOrder { may_end }, wanted, index: 0 })
}

/// Maximum number of parameters of a structure, since each costs an iteration over its members. The
/// limit is twice the maximum number of members, to allow for unknown members.
const PARAMETERS_MAX: usize = 1024;

fn decode_by_id<T: StructType>(value: &mut T, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let wanted = if d.takes_key_of_sample() || keys_only::<T>(d.scope()) { Wanted::Keys } else { Wanted::All };
    let mut seen = MemberSet::EMPTY;
    let mut count = 0;
    while let Some(header) = parameter::read(d)? {
        count += 1;
        if count > PARAMETERS_MAX {
            return Err(d.error(DecodeErrorKind::TooManyParameters));
        }
        let read = |d: &mut Decoder<'_>| {
            let mode = Mode::Pick { id: header.id, seen: &mut seen, found: false };
            let mut m = MemberDecoder { decoder: d, mode, wanted, index: 0 };
            value.decode_members(&mut m)?;
            match m.mode {
                Mode::Pick { found: false, .. } if header.must_understand => {
                    Err(d.error(DecodeErrorKind::MustUnderstand { id: header.id }))
                }
                _ => Ok(()),
            }
        };
        match d.representation() {
            Representation::Xcdr1 => d.with_origin(header.len, read)?,
            Representation::Xcdr2 => d.within(header.len, read)?,
        }
    }
    value.decode_members(&mut MemberDecoder { decoder: d, mode: Mode::Default { seen: &seen }, wanted, index: 0 })
}

/// Visitor that sums up the worst cases of members.
pub struct MemberExtent {
    extent: Extent,
    headers: bool,
    keys_only: bool,
    only: Option<u32>,
}

impl MemberExtent {
    /// Adds a member that is not optional.
    pub fn member<T: CdrValue>(&mut self, member: Member) {
        self.add(member, T::LENGTH_CODE, T::extend);
    }

    /// Adds a member with a bound.
    pub fn bounded<T: HasLength>(&mut self, member: Member, bound: usize) {
        self.add(member, T::LENGTH_CODE, |extent| T::extend_bounded(extent, bound));
    }

    /// Adds an optional member.
    pub fn optional<T: CdrValue>(&mut self, member: Member) {
        self.add_optional(member, T::LENGTH_CODE, T::extend);
    }

    /// Adds an optional member with a bound.
    pub fn optional_bounded<T: HasLength>(&mut self, member: Member, bound: usize) {
        self.add_optional(member, T::LENGTH_CODE, |extent| T::extend_bounded(extent, bound));
    }

    fn add(&mut self, member: Member, length_code: u8, content: impl FnOnce(Extent) -> Extent) {
        if self.keys_only && !member.key || self.only.is_some_and(|id| id != member.id) {
            return;
        }
        self.extent = if self.headers {
            parameter::extend(self.extent, member.id, length_code, content)
        } else {
            content(self.extent)
        };
    }

    fn add_optional(&mut self, member: Member, length_code: u8, content: impl FnOnce(Extent) -> Extent) {
        let headers = self.headers;
        self.add(member, length_code, |extent| match (headers, extent.representation()) {
            (true, _) => content(extent),
            (false, Representation::Xcdr1) => parameter::extend_parameter(extent, member.id, content),
            (false, Representation::Xcdr2) => content(extent.add(1, 1)),
        });
    }
}

/// Advances a worst-case position past a struct: [`CdrValue::extend`] of a derived struct.
pub fn extend<T: StructType>(extent: Extent) -> Extent {
    let extensibility = effective(T::EXTENSIBILITY, extent.scope());
    let xcdr2 = extent.representation() == Representation::Xcdr2;
    let delimited = xcdr2 && extensibility != Extensibility::Final;
    let mut m = MemberExtent {
        extent: if delimited { extent.add(4, 4) } else { extent },
        headers: extensibility == Extensibility::Mutable,
        keys_only: keys_only::<T>(extent.scope()),
        only: None,
    };
    if extent.scope() == Scope::KeyHash && !const { T::IDS.is_ascending() } {
        let mut next = T::IDS.at_least(0);
        while let Some(id) = next {
            m.only = Some(id);
            T::extend_members(&mut m);
            next = T::IDS.at_least(id + 1);
        }
    } else {
        T::extend_members(&mut m);
    }
    if m.headers && !xcdr2 { m.extent.add(4, 4) } else { m.extent }
}

/// Returns [`CdrValue::MIN_ENCODED_LEN`] of a derived struct or union, given that of its members.
pub const fn min_encoded_len(extensibility: Extensibility, members: usize) -> usize {
    match extensibility {
        Extensibility::Final => members,
        // Either a DHEADER in XCDR2, or all members in XCDR1.
        Extensibility::Appendable => {
            if members < 4 {
                members
            } else {
                4
            }
        }
        // Either a DHEADER in XCDR2, or the end of the list in XCDR1.
        Extensibility::Mutable => 4,
    }
}

/// Reports whether two extensibility kinds are equal.
pub const fn same_extensibility(a: Extensibility, b: Extensibility) -> bool {
    matches!(
        (a, b),
        (Extensibility::Final, Extensibility::Final)
            | (Extensibility::Appendable, Extensibility::Appendable)
            | (Extensibility::Mutable, Extensibility::Mutable)
    )
}
