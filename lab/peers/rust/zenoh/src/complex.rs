//! Encoding of complex samples: like CDR without alignment, with u32 counts and lengths and i32
//! numbers, little endian.
pub struct Item {
    pub name: String,
    pub number: i32,
}

pub struct Complex {
    pub groups: Vec<Vec<Item>>,
}

impl Complex {
    pub fn first_number(&self) -> i32 {
        self.groups.first().and_then(|group| group.first()).map_or(0, |item| item.number)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(4096);
        let length = |octets: &mut Vec<u8>, length: usize| {
            octets.extend_from_slice(&(length as u32).to_le_bytes());
        };
        length(&mut octets, self.groups.len());
        for group in &self.groups {
            length(&mut octets, group.len());
            for item in group {
                length(&mut octets, item.name.len());
                octets.extend_from_slice(item.name.as_bytes());
                octets.extend_from_slice(&item.number.to_le_bytes());
            }
        }
        octets
    }

    /// Decodes a sample. Returns `None` if the octets are malformed.
    pub fn decode(mut octets: &[u8]) -> Option<Complex> {
        let octets = &mut octets;
        let mut groups = Vec::new();
        for _ in 0..u32::from_le_bytes(word(octets)?) {
            let mut group = Vec::new();
            for _ in 0..u32::from_le_bytes(word(octets)?) {
                let length = u32::from_le_bytes(word(octets)?) as usize;
                let (name, rest) = octets.split_at_checked(length)?;
                *octets = rest;
                let name = std::str::from_utf8(name).ok()?.to_owned();
                group.push(Item { name, number: i32::from_le_bytes(word(octets)?) });
            }
            groups.push(group);
        }
        Some(Complex { groups })
    }
}

fn word(octets: &mut &[u8]) -> Option<[u8; 4]> {
    let (word, rest) = octets.split_first_chunk::<4>()?;
    *octets = rest;
    Some(*word)
}
