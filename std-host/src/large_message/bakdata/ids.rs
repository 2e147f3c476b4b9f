//! What blobs are called: bakdata's three generators.

use std::str::FromStr;

use super::super::{BlobIdGenerator, Sha256Generator, UuidGenerator};
use crate::dump::digest::hex;

/// Names a blob by the bytes that are stored: compressed ones, if they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BakdataIdGenerator {
    /// A random UUID, with dashes: `RandomUUIDGenerator`.
    #[default]
    RandomUuid,
    /// SHA-256 in 64 hex digits: `Sha256HashIdGenerator`.
    Sha256,
    /// Guava's `murmur3_128` with seed 0 in 32 hex digits: `MurmurHashIdGenerator`. It is no
    /// protection against who wants two contents to have the same id.
    Murmur,
}

impl BakdataIdGenerator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RandomUuid, Self::Sha256, Self::Murmur];

    /// What it is called in a configuration.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::RandomUuid => "com.bakdata.kafka.RandomUUIDGenerator",
            Self::Sha256 => "com.bakdata.kafka.Sha256HashIdGenerator",
            Self::Murmur => "com.bakdata.kafka.MurmurHashIdGenerator",
        }
    }

    /// The id of `data`.
    #[must_use]
    pub fn id(self, data: &[u8]) -> String {
        match self {
            Self::RandomUuid => UuidGenerator.id(data),
            Self::Sha256 => Sha256Generator.id(data),
            Self::Murmur => hex(&murmur3_128(data)),
        }
    }

    /// Which generator tells by `id` what the blob must be, if `self` is the configured one.
    pub(super) fn checked_by(self, id: &str) -> Option<Self> {
        let hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match (self, id.len()) {
            (_, 64) if hex => Some(Self::Sha256),
            // A UUID without its dashes looks the same.
            (Self::Murmur, 32) if hex => Some(Self::Murmur),
            _ => None,
        }
    }
}

/// By its class. No class is loaded.
impl FromStr for BakdataIdGenerator {
    type Err = String;

    fn from_str(class: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|one| one.class() == class).ok_or_else(|| {
            let all = Self::ALL.map(Self::class).join(", ");
            format!("there is no {class:?}, only {all}")
        })
    }
}

/// MurmurHash3_x64_128 with seed 0, in the order of bytes in which Guava writes it.
///
/// Source: Austin Appleby's `MurmurHash3.cpp`, public domain.
fn murmur3_128(data: &[u8]) -> [u8; 16] {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let halves = |block: &[u8; 16]| {
        let block = u128::from_le_bytes(*block);
        // Both truncations take a half each.
        (block as u64, (block >> 64) as u64)
    };
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = data.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 = (h1 ^ mix1(k1)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(k2)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Zeros mix to zero, so a block that is filled up with them is what the tail adds.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(&last);
    let len = data.len() as u64;
    h1 ^= mix1(k1) ^ len;
    h2 ^= mix2(k2) ^ len;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finished(h1);
    h2 = finished(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (u128::from(h2) << 64 | u128::from(h1)).to_le_bytes()
}

const fn finished(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guava's own tests have these (`Murmur3Hash128Test`); every length up to 48 is checked
    /// against bakdata's generator in the tests of the vectors.
    #[test]
    fn known_ids() {
        let murmur = |data: &[u8]| BakdataIdGenerator::Murmur.id(data);
        assert_eq!(murmur(b""), "00000000000000000000000000000000");
        assert_eq!(
            murmur(b"The quick brown fox jumps over the lazy dog"),
            "6c1b07bc7bbc4be347939ac4a93c437a"
        );
        assert_eq!(
            BakdataIdGenerator::Sha256.id(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(BakdataIdGenerator::RandomUuid.id(b"abc").len(), 36);
    }

    #[test]
    fn which_ids_tell_the_content() {
        use BakdataIdGenerator::{Murmur, RandomUuid, Sha256};
        let (sha, murmur, uuid) = (Sha256.id(b"x"), Murmur.id(b"x"), RandomUuid.id(b"x"));
        for configured in BakdataIdGenerator::ALL {
            assert_eq!(configured.checked_by(&sha), Some(Sha256));
            assert_eq!(configured.checked_by(&sha.to_uppercase()), None);
            assert_eq!(configured.checked_by(&uuid), None);
            let expected = Some(Murmur).filter(|_| configured == Murmur);
            assert_eq!(configured.checked_by(&murmur), expected);
        }
    }
}
