//! Portable backends.
//!
//! CRC-32C by look-ups in tables, one for each byte of a slice ("slicing-by-16",
//! "slicing-by-8"): table `t` has what a byte becomes once `t` more bytes have followed it.
//! So the bytes of a slice are looked up independently, and only the first four wait for
//! the register.
//!
//! The fields of a record prefix one after the other, out of one word.

use super::poly::times_x;
use super::{Fields, PrefixDecoder};

/// Bytes of a slice, and tables of 1 KiB. 16 is twice as fast as 8 where the caches are
/// large; a processor of 32 bits rather needs the memory.
const SLICE: usize = if cfg!(target_pointer_width = "64") { 16 } else { 8 };

static TABLES: [[u32; 256]; SLICE] = tables();

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler
const fn tables() -> [[u32; 256]; SLICE] {
    let mut tables = [[0u32; 256]; SLICE];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = times_x(crc);
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < SLICE {
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
    let [tables @ .., td, tc, tb, ta] = &TABLES;
    let (slices, rest) = bytes.as_chunks::<SLICE>();
    for [a, b, c, d, later @ ..] in slices {
        // These wait for no register, so they come first.
        let sum =
            tables.iter().rev().zip(later).fold(0, |sum, (table, &byte)| sum ^ look(table, byte));
        let [sa, sb, sc, sd] = state.to_le_bytes();
        state = sum ^ (look(ta, a ^ sa) ^ look(tb, b ^ sb) ^ look(tc, c ^ sc) ^ look(td, d ^ sd));
    }
    let [t0, ..] = &TABLES;
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

/// Half of it, inverted where it is odd.
#[inline(always)]
pub(crate) const fn unzigzag(n: u32) -> i32 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

/// The same of 64 bits.
#[inline(always)]
pub(crate) const fn unzigzag_long(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}
