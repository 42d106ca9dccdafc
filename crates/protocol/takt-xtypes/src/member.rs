//! Members of structs: ids, flags, and sets of members.

/// Maximum number of members of a struct, inherited ones included.
pub const MAX_MEMBERS: usize = 512;

/// Largest member id (28 bits).
pub const MAX_MEMBER_ID: u32 = 0x0fff_ffff;

/// Properties of a member that the visitors need.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Member id.
    pub id: u32,
    /// True for a key member.
    pub key: bool,
    /// True if a reader that does not know the member must drop the sample.
    ///
    /// DEVIATION(XTypes 1.3 §7.2.2.4.4.4.8): key members are not flagged unless they request it.
    /// INTEROP(RTI Connext 7.3): cannot read flagged key members; CycloneDDS 11 does not flag them
    /// either.
    pub must_understand: bool,
}

/// Member ids in declaration order, inherited ones first. Built in constants only.
#[derive(Clone, Copy)]
pub struct MemberIds {
    ids: [u32; MAX_MEMBERS],
    len: usize,
}

impl MemberIds {
    /// Empty list of ids, for a struct without a base.
    pub const NONE: Self = Self { ids: [0; MAX_MEMBERS], len: 0 };

    /// Returns the id of the last member plus one, which `@autoid(SEQUENTIAL)` assigns to the next
    /// member.
    pub const fn next(&self) -> u32 {
        if self.len == 0 { 0 } else { self.ids[self.len - 1] + 1 }
    }

    /// Returns the ids with one more.
    ///
    /// # Panics
    /// Panics if there are too many members.
    #[must_use]
    pub const fn with(mut self, id: u32) -> Self {
        assert!(self.len < MAX_MEMBERS, "a struct may have at most 512 members");
        self.ids[self.len] = id;
        self.len += 1;
        self
    }

    /// Returns the error in the ids, if any. The derive reports it as a compile error.
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

    /// Returns the smallest id that is at least `from`.
    pub(crate) fn at_least(&self, from: u32) -> Option<u32> {
        self.ids[..self.len].iter().copied().filter(|&id| id >= from).min()
    }
}

/// Set of members that have been decoded, by index.
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
