//! Xerial snappy streams as the Java client writes them.
//!
//! ```text
//!  82 53 4e 41 50 50 59 00 │ 00 00 00 01 │ 00 00 00 01 │ { length i32 BE │ raw block }*
//! ```
//! Blocks of 32 KiB before compression, since 0.11.0 (KAFKA-5236); 1 KiB before. There is
//! no end mark: an empty stream is its header. Source: `SnappyOutputStream.java` of
//! xerial/snappy-java.

use core::ops::DerefMut;

use super::compress::{Compress, Written};
use super::matches::{self, Blocks, Waiting};
use super::out::Out;
use super::snappy_encode::{Table, block_bound, compress_block};
use super::{CodecError, CodecErrorKind, Pause};

/// Bytes of a block before compression.
pub const BLOCK: usize = 32 << 10;
/// Least of them that snappy-java can be made to take, and what clients before 0.11.0 took.
pub const BLOCK_LEAST: usize = 1 << 10;

/// Magic, version and compatible version: what a stream starts with.
pub const HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const PACKED: usize = BLOCK + BLOCK / 6 + 32;
const _: () = assert!(PACKED as u64 == block_bound(BLOCK as u64));

/// What the encoder works in, 101 KiB: the table, a block, and the same compressed.
pub struct Memory {
    table: Table,
    block: [u8; BLOCK],
    packed: [u8; PACKED],
}

impl Memory {
    /// All zero, so that a static of it takes no room in the image.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: [0; 1 << super::snappy_encode::TABLE_LOG],
            block: [0; BLOCK],
            packed: [0; PACKED],
        }
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

/// Encoder of snappy batches, in memory that is lent (`&mut Memory`) or owned (`Box<Memory>`).
#[derive(Debug)]
pub struct Encoder<M> {
    memory: M,
    block_len: usize,
    /// Bytes of the block that are there.
    filled: usize,
    waiting: Waiting,
}

// What hoards is lent.
const _: () = assert!(size_of::<Encoder<&'static mut Memory>>() <= 96);

impl<M: DerefMut<Target = Memory>> Encoder<M> {
    /// Starts a stream.
    #[must_use]
    pub fn new(memory: M) -> Self {
        let mut encoder = Self { memory, block_len: BLOCK, filled: 0, waiting: Waiting::default() };
        encoder.reset();
        encoder
    }

    /// Starts a stream with blocks of another size, at least [`BLOCK_LEAST`] and at most
    /// [`BLOCK`] bytes; what is beyond is taken for the nearest.
    #[must_use]
    pub fn with_block_len(mut self, block_len: usize) -> Self {
        self.block_len = block_len.clamp(BLOCK_LEAST, BLOCK);
        self.reset();
        self
    }

    /// Compresses the block, and has it wait.
    fn end_block(&mut self) -> Result<(), CodecError> {
        let Memory { table, block, packed } = &mut *self.memory;
        let plain = block.get(..self.filled).unwrap_or_default();
        let len = compress_block(plain, table, packed).ok_or(CodecError {
            kind: CodecErrorKind::BufferTooSmall {
                need: block_bound(plain.len() as u64),
                have: PACKED as u64,
            },
            at: 0,
        })?;
        let word = u32::try_from(len).unwrap_or(u32::MAX);
        self.waiting.set(&word.to_be_bytes(), len);
        self.filled = 0;
        Ok(())
    }
}

impl<M: DerefMut<Target = Memory>> Blocks for Encoder<M> {
    fn drain(&mut self, out: &mut Out<'_>) -> bool {
        self.waiting.drain(&self.memory.packed, out)
    }

    fn spare(&mut self) -> &mut [u8] {
        self.memory.block.get_mut(self.filled..self.block_len).unwrap_or_default()
    }

    fn filled(&mut self, n: usize) -> Result<(), CodecError> {
        self.filled += n;
        if self.filled == self.block_len { self.end_block() } else { Ok(()) }
    }
}

impl<M: DerefMut<Target = Memory>> Compress for Encoder<M> {
    fn reset(&mut self) {
        self.waiting.set(&HEADER, 0);
        self.filled = 0;
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
            if self.filled == 0 {
                break Pause::Finished;
            }
            self.end_block()?;
        };
        Ok(Written { consumed: 0, produced: out.len(), pause })
    }

    fn bound(&self, more: u64) -> u64 {
        let plain = more.saturating_add(self.filled as u64);
        let blocks = plain.div_ceil(self.block_len as u64);
        plain
            .saturating_add(plain / 6)
            .saturating_add(blocks.saturating_mul(4 + 32))
            .saturating_add(self.waiting.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;
    use crate::batch::Magic;
    use crate::codec::{Builtin, Codec, Codecs, encode};
    use crate::window::Window;

    fn decode(packed: &[u8], len: usize) -> Vec<u8> {
        let mut codecs = Builtin::new();
        let decoder = codecs.decoder(Codec::Snappy, Magic::V2).unwrap();
        decoder.reset();
        let mut memory = std::vec![0; len + (64 << 10)];
        let mut window = Window::new(&mut memory);
        let progress = decoder.advance(packed, &mut window).unwrap();
        assert_eq!((progress.consumed, progress.pause), (packed.len(), Pause::InputDry));
        assert_eq!(decoder.advance(b"", &mut window).unwrap().pause, Pause::Finished);
        window.unread().to_vec()
    }

    #[test]
    fn streams_of_snappy_java() {
        let mut encoder = Encoder::new(Box::new(Memory::new()));
        let header = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
        assert_eq!(encode(Codec::Snappy, &mut encoder, b"", 1, 3), header);
        let mut hello = header.to_vec();
        hello.extend(b"\0\0\0\x07\x05\x10hello");
        assert_eq!(encode(Codec::Snappy, &mut encoder, b"hello", 2, 3), hello);
    }

    #[test]
    fn noise_of_32_kib_is_32774_bytes_as_in_java() {
        let mut encoder = Encoder::new(Box::new(Memory::new()));
        let noise = super::super::shaped(BLOCK, 0);
        assert_eq!(
            encode(Codec::Snappy, &mut encoder, &noise, BLOCK, 1 << 16).len(),
            16 + 4 + 32_774
        );
    }

    #[test]
    fn any_chunking_gives_the_same_stream_and_the_bytes_come_back() {
        let mut encoder = Encoder::new(Box::new(Memory::new()));
        let mut small = Encoder::new(Box::new(Memory::new())).with_block_len(1);
        for len in [1, 14, 15, 16, 300, 5000, 32_767, 32_768, 32_769, 70_000] {
            for shape in 0..4 {
                let plain = super::super::shaped(len, shape);
                for encoder in [&mut encoder, &mut small] {
                    let whole = encode(Codec::Snappy, encoder, &plain, len, 2 * len + 100);
                    assert_eq!(decode(&whole, len), plain, "{len} of {shape}");
                    for (input, room) in [(1000, 7), (32 << 10, 33_000), (len, 1), (1, 1000)] {
                        let parts = encode(Codec::Snappy, encoder, &plain, input, room);
                        assert!(parts == whole, "{len} of {shape} by {input}, {room}");
                    }
                }
            }
        }
    }
}
