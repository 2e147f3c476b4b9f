//! LZ4 frames as the Java client writes them.
//!
//! ```text
//!  04 22 4d 18 │ 60 40 │ HC │ { size u32 LE, bit 31: stored │ block }* │ 00 00 00 00
//! ```
//! Version 01, independent blocks of 64 KiB, no checksum but that of the header. A block
//! that would not shrink is stored. HC is `82`; in magic 0 it is `1a`, the checksum of
//! the frame magic as well, which all clients wrote there (KAFKA-3160). Source:
//! `Lz4BlockOutputStream.java`.
//!
//! Blocks are those of `LZ4_compress_default` of C lz4 1.9, which lz4-java calls: a
//! greedy search by a table of the last position of each hash of four bytes, whose steps
//! grow where nothing is found. Where nothing matches, the search goes on with what
//! comes next; the bytes come out the same.

use core::ops::DerefMut;

use super::compress::{Compress, Written};
use super::matches::{self, Blocks, Waiting, common_len, load32};
use super::out::Out;
use super::{CodecError, Pause};
use crate::batch::Magic;

/// Largest block before compression.
pub const BLOCK: usize = 64 << 10;

const MAGIC_FLG_BD: [u8; 6] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40];
/// Second byte of xxh32 over FLG and BD.
const HEADER_CHECKSUM: u8 = 0x82;
/// Second byte of xxh32 over the frame magic, FLG and BD.
const HEADER_CHECKSUM_V0: u8 = 0x1a;
/// Set in the size of a block that is not compressed.
pub const STORED: u32 = 1 << 31;
/// Behind the last block.
pub const END_MARK: [u8; 4] = [0; 4];

/// What a frame starts with in batches of version `magic`.
#[must_use]
pub const fn header(magic: Magic) -> [u8; 7] {
    let [a, b, c, d, e, f] = MAGIC_FLG_BD;
    let checksum = match magic {
        Magic::V0 => HEADER_CHECKSUM_V0,
        Magic::V1 | Magic::V2 => HEADER_CHECKSUM,
    };
    [a, b, c, d, e, f, checksum]
}

/// 13 bits of hash for blocks below 64 KiB + 12, as in C.
const HASH_LOG: u32 = 13;
const MIN_MATCH: usize = 4;
/// No match starts within so many bytes of the end …
const MATCH_MARGIN: usize = 12;
/// … and none reaches into so many.
const LAST_LITERALS: usize = 5;
/// A step grows by one every 64 searches.
const SKIP_TRIGGER: u32 = 6;

/// What the encoder works in, 144 KiB: the table, a block, and the same compressed.
pub struct Memory {
    table: [u16; 1 << HASH_LOG],
    block: [u8; BLOCK],
    packed: [u8; BLOCK],
}

impl Memory {
    /// All zero, so that a static of it takes no room in the image.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: [0; 1 << HASH_LOG], block: [0; BLOCK], packed: [0; BLOCK] }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Memory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// Which bytes of the memory wait for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Packed,
    Stored,
}

/// Encoder of LZ4 batches, in memory that is lent (`&mut Memory`) or owned (`Box<Memory>`).
#[derive(Debug)]
pub struct Encoder<M> {
    memory: M,
    magic: Magic,
    /// Bytes of the block that are there.
    filled: usize,
    waiting: Waiting,
    body: Body,
    ended: bool,
}

// What hoards is lent.
const _: () = assert!(size_of::<Encoder<&'static mut Memory>>() <= 96);

impl<M: DerefMut<Target = Memory>> Encoder<M> {
    /// Starts a frame for magic 1 and 2.
    #[must_use]
    pub fn new(memory: M) -> Self {
        let mut encoder = Self {
            memory,
            magic: Magic::V2,
            filled: 0,
            waiting: Waiting::default(),
            body: Body::Packed,
            ended: false,
        };
        encoder.reset();
        encoder
    }

    /// Starts a frame as batches of version `magic` have it.
    pub fn for_magic(&mut self, magic: Magic) {
        self.magic = magic;
        self.reset();
    }

    /// Compresses the block, and has it wait. Its bytes may be those of the block, which
    /// is not filled again before they are gone.
    fn end_block(&mut self) {
        let Memory { table, block, packed } = &mut *self.memory;
        let plain = block.get(..self.filled).unwrap_or_default();
        // One that does not shrink by a byte is stored.
        let room = packed.get_mut(..plain.len().saturating_sub(1)).unwrap_or_default();
        let packed_len = compress_block(plain, table, room);
        let (len, flag) = match packed_len {
            Some(len) => (len, 0),
            None => (plain.len(), STORED),
        };
        self.body = if flag == 0 { Body::Packed } else { Body::Stored };
        // At most 64 KiB.
        let word = u32::try_from(len).unwrap_or(u32::MAX) | flag;
        self.waiting.set(&word.to_le_bytes(), len);
        self.filled = 0;
    }
}

impl<M: DerefMut<Target = Memory>> Blocks for Encoder<M> {
    fn drain(&mut self, out: &mut Out<'_>) -> bool {
        let body = match self.body {
            Body::Packed => &self.memory.packed,
            Body::Stored => &self.memory.block,
        };
        self.waiting.drain(body, out)
    }

    fn spare(&mut self) -> &mut [u8] {
        self.memory.block.get_mut(self.filled..).unwrap_or_default()
    }

    fn filled(&mut self, n: usize) -> Result<(), CodecError> {
        self.filled += n;
        if self.filled == BLOCK {
            self.end_block();
        }
        Ok(())
    }
}

impl<M: DerefMut<Target = Memory>> Compress for Encoder<M> {
    fn reset(&mut self) {
        self.waiting.set(&header(self.magic), 0);
        self.filled = 0;
        self.ended = false;
    }

    fn advance(&mut self, input: &[u8], out: &mut [u8]) -> Result<Written, CodecError> {
        matches::advance(self, input, out)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<Written, CodecError> {
        let mut out = Out::new(out);
        let pause = loop {
            if !self.drain(&mut out) {
                break Pause::WindowFull;
            }
            if self.filled > 0 {
                self.end_block();
            } else if !self.ended {
                self.ended = true;
                self.waiting.set(&END_MARK, 0);
            } else {
                break Pause::Finished;
            }
        };
        Ok(Written { consumed: 0, produced: out.len(), pause })
    }

    fn bound(&self, more: u64) -> u64 {
        let plain = more.saturating_add(self.filled as u64);
        let end = if self.ended { 0 } else { END_MARK.len() as u64 };
        let blocks = 4 * plain.div_ceil(BLOCK as u64);
        plain.saturating_add(blocks).saturating_add(self.waiting.len() as u64 + end)
    }
}

type Table = [u16; 1 << HASH_LOG];

#[inline(always)]
const fn hash(sequence: u32) -> usize {
    (sequence.wrapping_mul(2_654_435_761) >> (32 - HASH_LOG)) as usize
}

/// Puts `at` in the table, and gives what was there.
#[inline(always)]
fn swap(table: &mut Table, hash: usize, at: usize) -> usize {
    let Some(slot) = table.get_mut(hash) else { return 0 };
    // Positions in a block of 64 KiB fit.
    usize::from(core::mem::replace(slot, u16::try_from(at).unwrap_or(0)))
}

/// Compresses a block of at most 64 KiB; gives the length, or `None` if it does not fit
/// `room`.
fn compress_block(input: &[u8], table: &mut Table, room: &mut [u8]) -> Option<usize> {
    let mut out = Out::new(room);
    let mut anchor = 0;
    if input.len() > MATCH_MARGIN {
        anchor = sequences(input, table, &mut out)?;
    }
    let literals = input.get(anchor..)?;
    literal_length(literals.len(), &mut out)?;
    out.bytes(literals)?;
    Some(out.len())
}

/// Writes the sequences of a block; gives where the literals start that are left.
fn sequences(input: &[u8], table: &mut Table, out: &mut Out<'_>) -> Option<usize> {
    let last_start = input.len() - MATCH_MARGIN + 1;
    let match_end = input.len() - LAST_LITERALS;
    table.fill(0);
    let mut anchor = 0;
    let mut at = 1;
    swap(table, hash(load32(input, 0)), 0);
    let mut next_hash = hash(load32(input, at));
    loop {
        // Find a match.
        let mut next = at;
        let mut step = 1;
        let mut searches = 1u32 << SKIP_TRIGGER;
        let mut found = loop {
            at = next;
            next += step;
            step = (searches >> SKIP_TRIGGER) as usize;
            searches += 1;
            if next > last_start {
                return Some(anchor);
            }
            let candidate = swap(table, next_hash, at);
            next_hash = hash(load32(input, next));
            if load32(input, candidate) == load32(input, at) {
                break candidate;
            }
        };
        // It may start earlier.
        while at > anchor && found > 0 && input.get(at - 1) == input.get(found - 1) {
            (at, found) = (at - 1, found - 1);
        }
        let literals = input.get(anchor..at)?;
        let mut token = literal_length(literals.len(), out)?;
        out.bytes(literals)?;
        // One match after another, without literals between them.
        loop {
            out.bytes(&u16::try_from(at - found).ok()?.to_le_bytes())?;
            let len = common_len(input, found + MIN_MATCH, at + MIN_MATCH, match_end);
            at += len + MIN_MATCH;
            let (token_at, high) = token;
            out.set(token_at, high | u8::try_from(len.min(15)).ok()?)?;
            if len >= 15 {
                extension(len - 15, out)?;
            }
            anchor = at;
            if at >= last_start {
                return Some(anchor);
            }
            swap(table, hash(load32(input, at - 2)), at - 2);
            found = swap(table, hash(load32(input, at)), at);
            if load32(input, found) != load32(input, at) {
                break;
            }
            token = (out.len(), 0);
            out.byte(0)?;
        }
        at += 1;
        next_hash = hash(load32(input, at));
    }
}

/// Writes a token with this many literals; gives where it is and its high half.
fn literal_length(len: usize, out: &mut Out<'_>) -> Option<(usize, u8)> {
    let token = (out.len(), u8::try_from(len.min(15)).ok()? << 4);
    out.byte(token.1)?;
    if len >= 15 {
        extension(len - 15, out)?;
    }
    Some(token)
}

/// Writes bytes of 255 and one less than that, whose sum is `rest`.
fn extension(mut rest: usize, out: &mut Out<'_>) -> Option<()> {
    while rest >= 255 {
        out.byte(255)?;
        rest -= 255;
    }
    out.byte(u8::try_from(rest).ok()?)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;
    use crate::codec::compress::bound;
    use crate::codec::{Builtin, Codec, Codecs, encode};
    use crate::window::Window;

    fn decode(packed: &[u8], magic: Magic, len: usize) -> Vec<u8> {
        let mut codecs = Builtin::new();
        let decoder = codecs.decoder(Codec::Lz4, magic).unwrap();
        decoder.reset();
        let mut memory = std::vec![0; len + (64 << 10)];
        let mut window = Window::new(&mut memory);
        let progress = decoder.advance(packed, &mut window).unwrap();
        assert_eq!((progress.consumed, progress.pause), (packed.len(), Pause::Finished));
        window.unread().to_vec()
    }

    #[test]
    fn header_checksums_are_what_they_are_said_to_be() {
        let sum = |bytes| twox_hash::XxHash32::oneshot(0, bytes).to_le_bytes()[1];
        assert_eq!(sum(&MAGIC_FLG_BD[4..]), HEADER_CHECKSUM);
        assert_eq!(sum(&MAGIC_FLG_BD), HEADER_CHECKSUM_V0);
    }

    #[test]
    fn an_empty_frame() {
        let mut encoder = Encoder::new(Box::new(Memory::new()));
        let empty = *b"\x04\x22\x4d\x18\x60\x40\x82\0\0\0\0";
        assert_eq!(encode(Codec::Lz4, &mut encoder, b"", 1, 3), empty);
        encoder.for_magic(Magic::V0);
        assert_eq!(
            encode(Codec::Lz4, &mut encoder, b"", 1, 1)[..7],
            *b"\x04\x22\x4d\x18\x60\x40\x1a"
        );
    }

    #[test]
    fn any_chunking_gives_the_same_frame_and_the_bytes_come_back() {
        let mut encoder = Encoder::new(Box::new(Memory::new()));
        for len in [1, 12, 13, 14, 300, 5000, 65_535, 65_536, 65_537, 140_000] {
            for shape in 0..4 {
                let plain = super::super::shaped(len, shape);
                let whole = encode(Codec::Lz4, &mut encoder, &plain, len, 2 * len + 100);
                assert_eq!(decode(&whole, Magic::V2, len), plain, "{len} of {shape}");
                for (input, room) in [(1000, 7), (64 << 10, 65_000), (len, 1), (1, 1000)] {
                    let parts = encode(Codec::Lz4, &mut encoder, &plain, input, room);
                    assert!(parts == whole, "{len} of {shape} by {input}, {room}");
                }
                if shape == 0 {
                    // Noise is stored.
                    assert_eq!(whole.len() as u64, bound(Codec::Lz4, len as u64));
                }
            }
        }
    }
}
