//! Portable backends: CRC-32C by slicing-by-8 tables (8 KiB of read-only data), and the
//! fields of a record prefix one after the other.

use super::{Fields, PrefixDecoder};

/// Castagnoli polynomial, reflected.
const POLY: u32 = 0x82f6_3b78;

static TABLES: [[u32; 256]; 8] = tables();

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLY } else { crc >> 1 };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[t - 1][i];
            tables[t][i] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    tables
}

/// A byte always lies inside a table of 256, so this cannot be out of bounds.
#[allow(clippy::indexing_slicing)]
#[inline(always)]
fn look(table: &[u32; 256], byte: u8) -> u32 {
    table[byte as usize]
}

/// Continues the raw register `state` over `bytes`.
pub(crate) fn crc32c(mut state: u32, bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = &TABLES;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for &[b0, b1, b2, b3, b4, b5, b6, b7] in chunks {
        let [s0, s1, s2, s3] = state.to_le_bytes();
        state = look(t7, b0 ^ s0)
            ^ look(t6, b1 ^ s1)
            ^ look(t5, b2 ^ s2)
            ^ look(t4, b3 ^ s3)
            ^ look(t3, b4)
            ^ look(t2, b5)
            ^ look(t1, b6)
            ^ look(t0, b7);
    }
    for &byte in rest {
        let [low, ..] = state.to_le_bytes();
        state = look(t0, low ^ byte) ^ (state >> 8);
    }
    state
}

/// One field after the other.
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

impl PrefixDecoder for Scalar {
    #[inline(always)]
    fn fields(self, word: u64) -> Option<Fields> {
        let (timestamp, a, word) = short(word)?;
        let (offset, b, word) = short(word)?;
        let (key, c, _) = short(word)?;
        let len = a + b + c;
        (len <= 8).then_some(Fields {
            timestamp_delta: unzigzag(timestamp).into(),
            offset_delta: unzigzag(offset),
            key_length: (key & 1 == 0).then_some(key >> 1),
            len,
        })
    }
}

/// A varint of up to three bytes, their number, and what is above it.
#[allow(clippy::cast_possible_truncation)] // of eight bytes, the lower four
#[inline(always)]
const fn short(word: u64) -> Option<(u32, usize, u64)> {
    let n = word as u32;
    if n & 0x80 == 0 {
        Some((n & 0x7f, 1, word >> 8))
    } else if n & 0x8000 == 0 {
        Some((n & 0x7f | n >> 1 & 0x3f80, 2, word >> 16))
    } else if n & 0x80_0000 == 0 {
        Some((n & 0x7f | n >> 1 & 0x3f80 | n >> 2 & 0x1f_c000, 3, word >> 24))
    } else {
        None
    }
}

#[inline(always)]
const fn unzigzag(n: u32) -> i32 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}
