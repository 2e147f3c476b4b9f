//! Writes one raw snappy block: its length, then elements. `snappy.rs` has the layout.
//!
//! The search is that of `CompressFragment` of C++ snappy as snappy-java 1.1.8.3 has it:
//! greedy, by a table of the last position of each hash of four bytes, whose steps grow
//! where nothing is found. The crate `snap` follows an older version, which hashes
//! otherwise into the tables of blocks up to 8 KiB; for larger blocks they are equal.

use super::matches::{common_len, load32};
use super::out::Out;

/// Largest table: of 2^14 positions.
pub(crate) const TABLE_LOG: u32 = 14;
/// Least table, for short blocks: it is cleared for every block.
const TABLE_LOG_LEAST: u32 = 8;
/// The search ends so many bytes before the end.
const MARGIN: usize = 15;

/// Most bytes that a block of `plain` bytes takes: C++ snappy's `MaxCompressedLength`.
pub(crate) const fn block_bound(plain: u64) -> u64 {
    (plain / 6).saturating_add(plain).saturating_add(32)
}

pub(crate) type Table = [u16; 1 << TABLE_LOG];

/// Compresses a block of at most 64 KiB; gives the length, or `None` if it does not fit
/// `room`, of which [`block_bound`] is enough.
pub(crate) fn compress_block(input: &[u8], table: &mut Table, room: &mut [u8]) -> Option<usize> {
    let mut out = Out::new(room);
    let mut rest = u32::try_from(input.len()).ok()?;
    while rest >= 0x80 {
        let [low, ..] = rest.to_le_bytes();
        out.byte(low | 0x80)?;
        rest >>= 7;
    }
    out.byte(u8::try_from(rest).ok()?)?;
    let emitted = if input.len() >= MARGIN { copies(input, table, &mut out)? } else { 0 };
    literal(input.get(emitted..)?, &mut out)?;
    Some(out.len())
}

/// The same for tables of all sizes: a small one takes the low bits.
#[inline(always)]
const fn hash(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x1e35_a7bd) >> (32 - TABLE_LOG)) as usize
}

/// Puts `at` in the table, and gives what was there.
#[inline(always)]
fn swap(table: &mut [u16], hash: usize, at: usize) -> usize {
    let Some(slot) = table.get_mut(hash) else { return 0 };
    usize::from(core::mem::replace(slot, u16::try_from(at).unwrap_or(0)))
}

/// Writes literals and copies; gives where the literal starts that is left.
fn copies(input: &[u8], table: &mut Table, out: &mut Out<'_>) -> Option<usize> {
    // The least power of two that is not below the length, within the limits.
    let log = (usize::BITS - (input.len() - 1).leading_zeros()).clamp(TABLE_LOG_LEAST, TABLE_LOG);
    let table = table.get_mut(..1 << log)?;
    table.fill(0);
    let mask = table.len() - 1;
    let hash = |bytes: u32| hash(bytes) & mask;
    let limit = input.len() - MARGIN;
    let mut emitted = 0;
    let mut at = 1;
    let mut next_hash = hash(load32(input, at));
    loop {
        // Find a match.
        let mut skip = 32;
        let mut next = at;
        let mut candidate = loop {
            at = next;
            let step = skip >> 5;
            skip += step;
            next = at + step;
            if next > limit {
                return Some(emitted);
            }
            let candidate = swap(table, next_hash, at);
            next_hash = hash(load32(input, next));
            if load32(input, at) == load32(input, candidate) {
                break candidate;
            }
        };
        literal(input.get(emitted..at)?, out)?;
        // One copy after another, without literals between them.
        loop {
            let len = 4 + common_len(input, candidate + 4, at + 4, input.len());
            copy(at - candidate, len, out)?;
            at += len;
            emitted = at;
            if at >= limit {
                return Some(emitted);
            }
            swap(table, hash(load32(input, at - 1)), at - 1);
            let here = load32(input, at);
            candidate = swap(table, hash(here), at);
            if here != load32(input, candidate) {
                break;
            }
        }
        at += 1;
        next_hash = hash(load32(input, at));
    }
}

fn literal(bytes: &[u8], out: &mut Out<'_>) -> Option<()> {
    let Some(n) = bytes.len().checked_sub(1) else { return Some(()) };
    // At most 64 KiB: two bytes of length.
    let [low, high, ..] = u32::try_from(n).ok()?.to_le_bytes();
    match n {
        0..60 => out.byte(low << 2)?,
        60..256 => out.bytes(&[60 << 2, low])?,
        _ => out.bytes(&[61 << 2, low, high])?,
    }
    out.bytes(bytes)
}

fn copy(distance: usize, mut len: usize, out: &mut Out<'_>) -> Option<()> {
    let [low, high, ..] = u32::try_from(distance).ok()?.to_le_bytes();
    // Tags of copies of 64 and 60 bytes with two bytes of distance.
    while len >= 68 {
        out.bytes(&[63 << 2 | 2, low, high])?;
        len -= 64;
    }
    if len > 64 {
        // What is left is never less than four bytes.
        out.bytes(&[59 << 2 | 2, low, high])?;
        len -= 60;
    }
    let len = u8::try_from(len).ok()?;
    if len < 12 && distance < 1 << 11 {
        out.bytes(&[high << 5 | (len - 4) << 2 | 1, low])
    } else {
        out.bytes(&[(len - 1) << 2 | 2, low, high])
    }
}
