//! Members of structs: what is known of each, their ids, and sets of them.

/// The most members a struct may have, its bases' included.
pub const MAX_MEMBERS: usize = 512;

/// The greatest member id (28 bits).
pub const MAX_MEMBER_ID: u32 = 0x0fff_ffff;

/// What the visitors have to know of a member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its member id.
    pub id: u32,
    /// It is part of the key.
    pub key: bool,
    /// A reader that does not know it has to drop the sample.
    ///
    /// DEVIATION(XTypes 1.3 §7.2.2.4.4.4.8): key members are not flagged unless they ask for it.
    /// INTEROP(RTI Connext 7.3): cannot read flagged key members; CycloneDDS 11 does not flag them either.
    pub must_understand: bool,
}

/// Member ids in declaration order, bases first. Made in constants only.
#[derive(Clone, Copy)]
pub struct MemberIds {
    ids: [u32; MAX_MEMBERS],
    len: usize,
}

impl MemberIds {
    /// No members: where a struct without a base starts.
    pub const NONE: Self = Self { ids: [0; MAX_MEMBERS], len: 0 };

    /// One more than the id of the last member: what `@autoid(SEQUENTIAL)` gives the next one.
    pub const fn next(&self) -> u32 {
        if self.len == 0 { 0 } else { self.ids[self.len - 1] + 1 }
    }

    /// These and one more.
    ///
    /// # Panics
    /// If there are too many members.
    #[must_use]
    pub const fn with(mut self, id: u32) -> Self {
        assert!(self.len < MAX_MEMBERS, "a struct may have at most 512 members");
        self.ids[self.len] = id;
        self.len += 1;
        self
    }

    /// What is wrong with them; the derive makes a compile error of it.
    pub const fn fault(&self) -> Option<&'static str> {
        let mut i = 0;
        while i < self.len {
            if self.ids[i] > MAX_MEMBER_ID {
                return Some("a member id has at most 28 bits");
            }
            let mut j = 0;
            while j < i {
                if self.ids[i] == self.ids[j] {
                    return Some("two members of the struct have the same id");
                }
                j += 1;
            }
            i += 1;
        }
        None
    }

    pub(crate) const fn is_ascending(&self) -> bool {
        let mut i = 1;
        while i < self.len {
            if self.ids[i - 1] > self.ids[i] {
                return false;
            }
            i += 1;
        }
        true
    }

    /// The smallest id that is at least `from`.
    pub(crate) fn at_least(&self, from: u32) -> Option<u32> {
        self.ids[..self.len].iter().copied().filter(|&id| id >= from).min()
    }
}

/// Which members have been seen, by index.
pub(crate) struct MemberSet([u64; MAX_MEMBERS / 64]);

impl MemberSet {
    pub(crate) const EMPTY: Self = Self([0; MAX_MEMBERS / 64]);

    pub(crate) fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}
