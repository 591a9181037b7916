//! Which partition a record belongs to: the same that Kafka's own clients choose by default.

const SEED: u32 = 0x9747_b28c;
const FACTOR: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// The partition of a record with this key, of so many.
pub(crate) fn partition(key: &[u8], partitions: i32) -> i32 {
    let positive = (murmur2(key) & 0x7fff_ffff).cast_signed();
    positive.checked_rem(partitions).unwrap_or_default()
}

fn murmur2(bytes: &[u8]) -> u32 {
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        mixed ^= mixed >> SHIFT;
        hash = hash.wrapping_mul(FACTOR) ^ mixed.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Kafka's own tests.
    #[test]
    fn hashes_are_those_of_kafka() {
        let known: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn every_key_has_a_partition() {
        for number in 0..1_000 {
            let partition = partition(format!("k-{number}").as_bytes(), 7);
            assert!((0..7).contains(&partition), "{partition}");
        }
        assert_eq!(partition(b"", 1), 0);
        assert_eq!(partition(b"k", 0), 0);
    }
}
