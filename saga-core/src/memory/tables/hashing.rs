//! Hashes for the keys of the store: short texts and numbers from a trusted process.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map that is never iterated, since its order is arbitrary.
pub(in crate::memory) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Mixes eight bytes at a time.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::memory) struct QuickHasher(u64);

/// An odd number whose bits look random: the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl QuickHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    /// The upper bits of the product depend on all others; a map uses the lower ones too.
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
