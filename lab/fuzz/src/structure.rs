//! Structure-aware mutations of RTPS input. The result remains a datagram, a parameter list or a
//! script, so that it reaches the code behind the framing.
//!
//! A datagram is split into submessages (RTPS 2.5 §9.4), one part is changed, and it is reassembled
//! with matching lengths, unless a wrong length is the change. Every mutation depends only on the
//! bytes and the random numbers.

/// Random number generator with a seed (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    /// Returns a number below `sides`; 0 if `sides` is 0.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % sides.max(1)
    }
}

/// Length in octets of an RTPS header.
const HEADER_LEN: usize = 20;

/// Submessage kinds with fields to mutate, and an unknown kind.
const KINDS: [u8; 15] = [0x01, 0x06, 0x07, 0x08, 0x09, 0x0c, 0x0d, 0x0e, 0x0f, 0x12, 0x13, 0x15, 0x16, 0x00, 0x80];

/// Submessage extracted from its datagram.
#[derive(Clone)]
struct Part {
    id: u8,
    flags: u8,
    body: Vec<u8>,
    /// Length field to write instead of the length of the body.
    len: Option<u16>,
}

impl Part {
    fn little(&self) -> bool {
        self.flags & 1 == 1
    }

    /// Returns the fields of the submessage: offset in the body and width. Fields that identify
    /// endpoints are excluded.
    fn fields(&self) -> &'static [(usize, usize)] {
        match self.id {
            0x06 => &[(8, 8), (16, 4), (20, 4)],
            0x07 => &[(8, 8), (16, 8), (24, 4)],
            0x08 => &[(8, 8), (16, 8), (24, 4), (28, 4)],
            0x09 => &[(0, 4), (4, 4)],
            0x0f => &[(0, 4), (8, 4)],
            0x12 => &[(8, 8), (16, 4), (20, 4), (24, 4)],
            0x13 => &[(8, 8), (16, 4), (20, 4)],
            0x15 => &[(2, 2), (12, 8)],
            0x16 => &[(2, 2), (12, 8), (20, 4), (24, 2), (26, 2), (28, 4)],
            _ => &[(0, 4)],
        }
    }
}

/// Mutates a datagram. Returns false if it has no structure to mutate.
pub fn datagram(bytes: &mut Vec<u8>, rng: &mut Rng) -> bool {
    if bytes.len() < HEADER_LEN + 4 || !bytes.starts_with(b"RTPS") {
        return false;
    }
    let (mut parts, rest) = split(&bytes[HEADER_LEN..]);
    if parts.is_empty() {
        return false;
    }
    let (which, other) = (rng.below(parts.len()), rng.below(parts.len()));
    match rng.below(14) {
        0 => drop(parts.remove(which)),
        1 => parts.insert(other, parts[which].clone()),
        2 => parts.swap(which, other),
        3 => parts[which].id = KINDS[rng.below(KINDS.len())],
        4 => parts[which].flags ^= 1 << rng.below(8),
        5 => other_byte_order(&mut parts[which], rng),
        6 => {
            let lengths = [0, 4, parts[which].body.len() + 4, parts[which].body.len().saturating_sub(4), 0xffff];
            parts[which].len = Some(lengths[rng.below(lengths.len())] as u16);
        }
        7 => {
            let len = rng.below(parts[which].body.len() + 1) & !3;
            parts[which].body.truncate(len);
        }
        8 => endpoint(&mut parts, which, rng),
        9 | 10 => payload(&mut parts[which], rng),
        _ => field(&mut parts, which, rng),
    }
    let rest = rest.to_vec();
    bytes.truncate(HEADER_LEN);
    parts.iter().for_each(|part| put_together(part, bytes));
    bytes.extend_from_slice(&rest);
    true
}

/// Splits a datagram into submessages, and the octets left after the last one.
fn split(mut rest: &[u8]) -> (Vec<Part>, &[u8]) {
    let mut parts = Vec::new();
    while let Some((&[id, flags, a, b], behind)) = rest.split_first_chunk::<4>() {
        let len = if flags & 1 == 1 { u16::from_le_bytes([a, b]) } else { u16::from_be_bytes([a, b]) };
        let len = if len == 0 && !matches!(id, 0x01 | 0x09) { behind.len() } else { usize::from(len) };
        let Some((body, behind)) = behind.split_at_checked(len) else { break };
        parts.push(Part { id, flags, body: body.to_vec(), len: None });
        rest = behind;
    }
    (parts, rest)
}

fn put_together(part: &Part, bytes: &mut Vec<u8>) {
    let len = part.len.unwrap_or(part.body.len() as u16);
    let len = if part.little() { len.to_le_bytes() } else { len.to_be_bytes() };
    bytes.extend_from_slice(&[part.id, part.flags, len[0], len[1]]);
    bytes.extend_from_slice(&part.body);
}

/// Swaps the byte order of all fields, or only the endianness flag.
fn other_byte_order(part: &mut Part, rng: &mut Rng) {
    part.flags ^= 1;
    if rng.below(4) == 0 {
        return;
    }
    for &(at, width) in part.fields() {
        // A sequence number consists of two words.
        for word in (at..at + width).step_by(4) {
            if let Some(field) = part.body.get_mut(word..word + width.min(4)) {
                field.reverse();
            }
        }
    }
}

/// Replaces one field by a number near the old one, near that of another submessage, or at an
/// arithmetic limit.
fn field(parts: &mut [Part], which: usize, rng: &mut Rng) {
    let other = &parts[rng.below(parts.len())];
    let (at, width) = other.fields()[rng.below(other.fields().len())];
    let elsewhere = read(&other.body, at, width, other.little());
    let part = &mut parts[which];
    let (at, width) = part.fields()[rng.below(part.fields().len())];
    let near = [read(&part.body, at, width, part.little()), elsewhere][usize::from(rng.below(3) == 0)];
    let value = number(near.unwrap_or(0), rng);
    write(&mut part.body, at, width, value, part.flags & 1 == 1);
}

/// Returns a number near the old one, or at a limit of arithmetic or bitmaps.
fn number(near: u64, rng: &mut Rng) -> u64 {
    const EDGES: [u64; 16] = [
        0,
        1,
        8,
        255,
        256,
        257,
        0x7fff,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        0x7fff_ffff_ffff_ff00,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        u64::MAX,
    ];
    match rng.below(3) {
        0 => near.wrapping_add(rng.below(4) as u64 + 1),
        1 => near.wrapping_sub(rng.below(4) as u64 + 1),
        _ => EDGES[rng.below(EDGES.len())],
    }
}

fn read(body: &[u8], at: usize, width: usize, little: bool) -> Option<u64> {
    // The high word of a sequence number comes first in either byte order.
    if width == 8 {
        return Some(read(body, at, 4, little)? << 32 | read(body, at + 4, 4, little)?);
    }
    let field = body.get(at..at + width)?;
    let fold = |number: u64, octet: &u8| number << 8 | u64::from(*octet);
    Some(if little { field.iter().rev().fold(0, fold) } else { field.iter().fold(0, fold) })
}

fn write(body: &mut [u8], at: usize, width: usize, value: u64, little: bool) {
    if width == 8 {
        write(body, at, 4, value >> 32, little);
        write(body, at + 4, 4, value, little);
    } else if let Some(field) = body.get_mut(at..at + width) {
        let octets = value.to_be_bytes();
        field.copy_from_slice(&octets[8 - width..]);
        if little {
            field.reverse();
        }
    }
}

/// Replaces the endpoints of the submessage by those of another one, or by unknown ones.
fn endpoint(parts: &mut [Part], which: usize, rng: &mut Rng) {
    let place = |part: &Part| if matches!(part.id, 0x15 | 0x16) { 4 } else { 0 };
    let other = &parts[rng.below(parts.len())];
    let from = place(other) + 4 * rng.below(2);
    let id = other.body.get(from..from + 4).map_or([0; 4], |id| [id[0], id[1], id[2], id[3]]);
    let part = &mut parts[which];
    let to = place(part) + 4 * rng.below(2);
    if let Some(field) = part.body.get_mut(to..to + 4) {
        field.copy_from_slice(&id);
    }
}

/// Mutates the inline QoS or the payload of a DATA, as a parameter list if it is one.
fn payload(part: &mut Part, rng: &mut Rng) {
    if part.id != 0x15 || part.body.len() < 20 {
        return;
    }
    let mut tail = part.body.split_off(20);
    let is_list = part.flags & 2 == 0 && matches!(tail.get(..2), Some([0, 2 | 3]));
    if is_list {
        list(&mut tail, rng);
    } else if part.flags & 2 != 0 {
        parameters(&mut tail, 0, part.flags & 1 == 1, rng);
    } else if !tail.is_empty() {
        let at = rng.below(tail.len() / 4) * 4;
        let value = number(read(&tail, at, 4, true).unwrap_or(0), rng);
        write(&mut tail, at, 4, value, true);
    }
    part.body.extend_from_slice(&tail);
}

/// Mutates one parameter of a discovery payload. Returns false if it has none.
pub fn list(payload: &mut Vec<u8>, rng: &mut Rng) -> bool {
    match payload.get(..4) {
        Some([0, order @ (2 | 3), ..]) => {
            let little = order & 1 == 1;
            if rng.below(20) == 0 {
                payload[1] ^= 1;
                return true;
            }
            parameters(payload, 4, little, rng)
        }
        _ => false,
    }
}

/// Mutates one parameter of the list at an offset. Octets after the sentinel remain.
fn parameters(bytes: &mut Vec<u8>, start: usize, little: bool, rng: &mut Rng) -> bool {
    let mut at = start;
    let mut list = Vec::new();
    while let (Some(id), Some(len)) = (read(bytes, at, 2, little), read(bytes, at + 2, 2, little)) {
        let Some(value) = bytes.get(at + 4..at + 4 + len as usize) else { break };
        if id == 1 {
            break;
        }
        list.push((id, None, value.to_vec()));
        at += 4 + len as usize;
    }
    if list.is_empty() {
        return false;
    }
    let (which, other) = (rng.below(list.len()), rng.below(list.len()));
    match rng.below(9) {
        0 => drop(list.remove(which)),
        1 => list.insert(other, list[which].clone()),
        2 => list.swap(which, other),
        3 => list[which].0 = list[other].0,
        4 => list[which].0 ^= [1, 0x10, 0x4000, 0x8000][rng.below(4)],
        5 => list[which].1 = Some(number(list[which].2.len() as u64, rng)),
        6 => list[which].2.resize(rng.below(80) & !3, 0),
        _ => {
            let value = &mut list[which].2;
            let place = rng.below(value.len() / 4) * 4;
            let new = number(read(value, place, 4, little).unwrap_or(0), rng);
            write(value, place, 4, new, little);
        }
    }
    let rest = bytes.split_off(at);
    bytes.truncate(start);
    for (id, len, value) in list {
        let mut head = [0; 4];
        write(&mut head, 0, 2, id, little);
        write(&mut head, 2, 2, len.unwrap_or(value.len() as u64), little);
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&value);
    }
    bytes.extend_from_slice(&rest);
    true
}

/// Mutates one datagram or discovery payload of a script. Each is preceded by its length in two
/// octets, little-endian. Returns false if there is none.
pub fn script(bytes: &mut Vec<u8>, rng: &mut Rng) -> bool {
    let is_start = |at: &usize| {
        let rest = &bytes[*at + 2..];
        let len = usize::from(u16::from_le_bytes([bytes[*at], bytes[*at + 1]]));
        let known = rest.starts_with(b"RTPS") || rest.starts_with(&[0, 2, 0, 0]) || rest.starts_with(&[0, 3, 0, 0]);
        known && len >= 8 && len <= rest.len()
    };
    let starts: Vec<usize> = (0..bytes.len().saturating_sub(2)).filter(is_start).collect();
    let Some(&at) = starts.get(rng.below(starts.len())) else { return false };
    let len = usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let mut inner = bytes[at + 2..at + 2 + len].to_vec();
    let changed = if inner.starts_with(b"RTPS") { datagram(&mut inner, rng) } else { list(&mut inner, rng) };
    let Ok(new_len) = u16::try_from(inner.len()) else { return false };
    bytes.splice(at..at + 2 + len, new_len.to_le_bytes().into_iter().chain(inner));
    changed
}

/// Mutates `data[..size]` in place to at most `max_size` octets, for libFuzzer; returns the new
/// size. Every fourth mutation, and input without structure, is passed to `plain`.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    structured: fn(&mut Vec<u8>, &mut Rng) -> bool,
    plain: impl FnOnce(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut rng = Rng(u64::from(seed));
    let mut bytes = data[..size].to_vec();
    let mut changed = false;
    if rng.below(4) != 0 {
        for _ in 0..=rng.below(3) {
            changed |= structured(&mut bytes, &mut rng);
        }
    }
    if !changed || bytes.is_empty() || bytes == data[..size] {
        return plain(data, size, max_size);
    }
    let len = bytes.len().min(max_size);
    data[..len].copy_from_slice(&bytes[..len]);
    len
}
