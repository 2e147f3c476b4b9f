//! The other direction: [`Compress`] beside [`super::Decompress`].
//!
//! Output is what the Java client writes with its default levels (`compress/*.java`):
//!
//! ```text
//!  none    the bytes
//!  snappy  xerial stream, blocks of 32 KiB           xerial_encode.rs
//!  lz4     frame of independent blocks of 64 KiB     lz4_encode.rs
//!  gzip    one member                                a host's, through the traits
//!  zstd    one frame, only in v2                     a host's, through the traits
//! ```
//! Output that comes out larger than its input is kept, as the Java client does.

#[cfg(feature = "lz4")]
use super::lz4_encode;
#[cfg(feature = "snappy")]
use super::xerial_encode;
use super::{Codec, CodecError, Pause};
use crate::batch::Magic;

/// How far a call to [`Compress::advance`] or [`Compress::finish`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Written {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes at the start of the output that were written.
    pub produced: usize,
    /// Why it stopped. [`Pause::WindowFull`] is an output without room.
    pub pause: Pause,
}

/// An encoder that can be stopped at any byte of its input and of its output.
pub trait Compress {
    /// Starts a new stream.
    fn reset(&mut self);

    /// Encodes from `input` into `out`, of which any size will do: every call consumes
    /// or produces, unless `input` is empty and nothing waits for room
    /// ([`Pause::InputDry`]), or `out` is empty ([`Pause::WindowFull`]).
    ///
    /// Errors: a library gave up. The core's own encoders do not.
    fn advance(&mut self, input: &[u8], out: &mut [u8]) -> Result<Written, CodecError>;

    /// Ends the stream: [`Pause::Finished`] once all of it is written, until then
    /// [`Pause::WindowFull`], after which it is called again. Nothing is put in any
    /// more.
    ///
    /// Errors: as [`Compress::advance`].
    fn finish(&mut self, out: &mut [u8]) -> Result<Written, CodecError>;

    /// Most bytes that are still to come out if `more` bytes are put in and the stream
    /// is then finished. At the start of a stream no more than [`bound`] of its codec.
    fn bound(&self, more: u64) -> u64;
}

impl<C: Compress + ?Sized> Compress for &mut C {
    fn reset(&mut self) {
        (**self).reset();
    }

    fn advance(&mut self, input: &[u8], out: &mut [u8]) -> Result<Written, CodecError> {
        (**self).advance(input, out)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<Written, CodecError> {
        (**self).finish(out)
    }

    fn bound(&self, more: u64) -> u64 {
        (**self).bound(more)
    }
}

/// The encoders that a builder may choose from, one for each codec.
pub trait Compressors {
    /// The encoder for `codec` in a batch of version `magic`, not reset; `None` if there
    /// is none. Magic 0 differs for lz4: its header checksum is wrong in all that Kafka
    /// clients wrote (KAFKA-3160). No magic below 2 has zstd.
    fn compressor(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Compress>;
}

impl<C: Compressors + ?Sized> Compressors for &mut C {
    fn compressor(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Compress> {
        (**self).compressor(codec, magic)
    }
}

/// Most bytes that `plain` bytes take compressed, in one stream. No encoder behind
/// [`Compress`] takes more:
///
/// | codec | bytes |
/// | --- | --- |
/// | none | `n` |
/// | gzip | `n + n/2^12 + n/2^14 + n/2^25 + 13` (zlib's `deflateBound`), 18 of the member, 5 of a flush |
/// | snappy | 16 of the header, `n + n/6`, and 36 for every block; the smallest block is 1 KiB |
/// | lz4 | 7 of the header, `n`, 4 for every block of 64 KiB, 4 of the end mark |
/// | zstd | `n + n/2^8` and 64 (`ZSTD_compressBound`), 16 of headers and a flush |
#[must_use]
pub const fn bound(codec: Codec, plain: u64) -> u64 {
    match codec {
        Codec::None => plain,
        Codec::Gzip => {
            plain.saturating_add((plain >> 12) + (plain >> 14) + (plain >> 25) + 13 + 18 + 5)
        }
        Codec::Snappy => {
            plain.saturating_add(16 + plain / 6).saturating_add(36 * plain.div_ceil(1 << 10))
        }
        Codec::Lz4 => plain.saturating_add(7 + 4 * plain.div_ceil(64 << 10) + 4),
        Codec::Zstd => plain.saturating_add((plain >> 8) + 64 + 16),
    }
}

/// Codec none: the bytes as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Compress for Plain {
    fn reset(&mut self) {}

    fn advance(&mut self, input: &[u8], out: &mut [u8]) -> Result<Written, CodecError> {
        let n = super::out::Out::new(out).some(input);
        let pause = if n == input.len() { Pause::InputDry } else { Pause::WindowFull };
        Ok(Written { consumed: n, produced: n, pause })
    }

    fn finish(&mut self, _out: &mut [u8]) -> Result<Written, CodecError> {
        Ok(Written { consumed: 0, produced: 0, pause: Pause::Finished })
    }

    fn bound(&self, more: u64) -> u64 {
        more
    }
}

/// The encoders of this crate that memory was lent for.
///
/// ```
/// # #[cfg(all(feature = "lz4", feature = "snappy"))] {
/// use logseg_core::codec::{BuiltinCompressors, lz4_encode, xerial_encode};
///
/// // On a microcontroller these are statics.
/// let mut lz4 = Box::new(lz4_encode::Memory::new());
/// let mut snappy = Box::new(xerial_encode::Memory::new());
/// let compressors = BuiltinCompressors::new().with_lz4(&mut lz4).with_snappy(&mut snappy);
/// # let _ = compressors;
/// # }
/// ```
#[derive(Debug, Default)]
pub struct BuiltinCompressors<'w> {
    plain: Plain,
    #[cfg(feature = "snappy")]
    snappy: Option<xerial_encode::Encoder<&'w mut xerial_encode::Memory>>,
    #[cfg(feature = "lz4")]
    lz4: Option<lz4_encode::Encoder<&'w mut lz4_encode::Memory>>,
    lent: core::marker::PhantomData<&'w mut [u8]>,
}

impl<'w> BuiltinCompressors<'w> {
    /// Only codec none, which wants no memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lends snappy its memory, for blocks of 32 KiB.
    #[cfg(feature = "snappy")]
    #[must_use]
    pub fn with_snappy(self, memory: &'w mut xerial_encode::Memory) -> Self {
        Self { snappy: Some(xerial_encode::Encoder::new(memory)), ..self }
    }

    /// As [`BuiltinCompressors::with_snappy`], for blocks of another size:
    /// [`xerial_encode::Encoder::with_block_len`].
    #[cfg(feature = "snappy")]
    #[must_use]
    pub fn with_snappy_blocks(
        self,
        memory: &'w mut xerial_encode::Memory,
        block_len: usize,
    ) -> Self {
        let encoder = xerial_encode::Encoder::new(memory).with_block_len(block_len);
        Self { snappy: Some(encoder), ..self }
    }

    /// Lends lz4 its memory.
    #[cfg(feature = "lz4")]
    #[must_use]
    pub fn with_lz4(self, memory: &'w mut lz4_encode::Memory) -> Self {
        Self { lz4: Some(lz4_encode::Encoder::new(memory)), ..self }
    }
}

impl Compressors for BuiltinCompressors<'_> {
    fn compressor(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Compress> {
        let _ = magic;
        match codec {
            Codec::None => Some(&mut self.plain),
            #[cfg(feature = "snappy")]
            Codec::Snappy => self.snappy.as_mut().map(|snappy| snappy as &mut dyn Compress),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => {
                let lz4 = self.lz4.as_mut()?;
                lz4.for_magic(magic);
                Some(lz4)
            }
            _ => None,
        }
    }
}
