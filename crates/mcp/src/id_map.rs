//! A map by numbers that this process assigns. Nobody outside chooses them, so their hash need not resist an attacker,
//! and costs one multiplication.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Map by number.
pub type IdMap<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// Hashes a number by multiplying it with an odd constant, which spreads consecutive numbers over all bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

/// 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(FACTOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn consecutive_numbers_differ_in_both_ends_of_their_hash() {
        let build = BuildHasherDefault::<IdHasher>::default();
        let hashes: Vec<u64> = (0..128_u64).map(|number| build.hash_one(number)).collect();
        let distinct =
            |part: fn(&u64) -> u64| hashes.iter().map(part).collect::<std::collections::HashSet<u64>>().len();
        // The map uses the low bits for the position and the high seven bits for the tag.
        assert!(distinct(|hash| hash & 127) > 64);
        assert!(distinct(|hash| hash >> 57) > 64);
    }
}
