//! What a sample contains: a function of its key, its sequence number and its length, so that a receiver can be checked
//! for every byte although nothing but a hash of it travels to the test.
//!
//! `interop/peers/peer.c` holds the same functions for the peers written in C and C++.

/// The finaliser of splitmix64 over a counter: eight bytes of content a step.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fills `payload` with the content of sample `seq` of instance `key`.
pub fn fill(payload: &mut [u8], key: u32, seq: u64) {
    let mut state = (u64::from(key) << 40) ^ ((payload.len() as u64) << 20) ^ seq;
    for chunk in payload.chunks_mut(8) {
        let word = splitmix(&mut state).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// FNV-1a, 64 bits: what peers report instead of the payload.
pub fn hash(payload: &[u8]) -> u64 {
    payload
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The hash that a correct receiver reports.
pub fn expected_hash(len: usize, key: u32, seq: u64) -> u64 {
    let mut payload = vec![0; len];
    fill(&mut payload, key, seq);
    hash(&payload)
}

/// The name that belongs to an instance of the types with a name in their key. The length differs from instance to
/// instance, so that the members behind it move.
pub fn instance_name(key: u32) -> String {
    format!("instance-{key:0width$}", width = 1 + (key % 5) as usize)
}

/// The member of 8 bytes in the key of an instance; a sequence begins with it and goes on counting.
pub fn wide_key(key: u32) -> u64 {
    u64::from(key) * 0x01_2345_6789
}

/// The sequence that is the key of an instance.
pub fn sequence_key(key: u32) -> Vec<u64> {
    (0..u64::from(1 + key % 3)).map(|n| wide_key(key) + n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn content_depends_on_key_sequence_number_and_length() {
        let base = expected_hash(16, 1, 1);
        assert_ne!(base, expected_hash(16, 2, 1));
        assert_ne!(base, expected_hash(16, 1, 2));
        assert_ne!(base, expected_hash(17, 1, 1));
    }

    #[test]
    fn names_have_different_lengths() {
        assert_eq!(instance_name(0), "instance-0");
        assert_eq!(instance_name(3), "instance-0003");
        assert_eq!(instance_name(12), "instance-012");
    }
}
