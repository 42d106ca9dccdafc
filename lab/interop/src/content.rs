//! Content of test samples, as a function of key, sequence number and length. A receiver can
//! therefore check every byte, although it reports only a hash to the test.
//!
//! `lab/interop/peers/peer.c` holds the same functions for the peers written in C and C++.

/// Finalizer of splitmix64 over a counter. Each step gives eight bytes of content.
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

/// Computes the 64-bit FNV-1a hash, which peers report in place of the payload.
pub fn hash(payload: &[u8]) -> u64 {
    payload
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Returns the hash that a correct receiver reports.
pub fn expected_hash(len: usize, key: u32, seq: u64) -> u64 {
    let mut payload = vec![0; len];
    fill(&mut payload, key, seq);
    hash(&payload)
}

/// Returns the name of an instance, for the types with a name in their key. The length differs
/// between instances, so that the offsets of the following members differ too.
pub fn instance_name(key: u32) -> String {
    format!("instance-{key:0width$}", width = 1 + (key % 5) as usize)
}

/// Returns the 8-byte member in the key of an instance. In a sequence key it is the first element,
/// and the following elements count up from it.
pub fn wide_key(key: u32) -> u64 {
    u64::from(key) * 0x01_2345_6789
}

/// Returns the sequence that is the key of an instance.
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
