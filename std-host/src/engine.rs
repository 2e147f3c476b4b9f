//! Streams of the codecs as a Java producer writes them.
//!
//! Sizes have to be Kafka's own, so every codec comes from the library that the Java
//! client wraps (JDK: zlib; snappy-java; lz4-java 1.8.0: lz4 1.9.3; zstd-jni), with its
//! parameters and its framing (`compress/*.java` of Apache Kafka):
//!
//! ```text
//!  gzip    1f 8b 08 00 00000000 00 ff │ raw deflate │ crc32 le │ length le
//!  snappy  82 S N A P P Y 00 │ 1 be │ 1 be │ { length be │ raw snappy of 32 KiB }*
//!  lz4     04 22 4d 18 60 40 82 │ { length le, bit 31: stored │ block of 64 KiB }* │ 0
//!  zstd    28 b5 2f fd 00 │ window │ blocks │ 01 00 00
//! ```
//! The last byte of gzip's header is that of JDK 16 and later. Output that came out larger
//! than its input is kept, as the Java client does.

use flate2::{Compress, Compression, FlushCompress, Status};
use logseg_core::codec::{compress, lz4_encode, xerial_encode};
use logseg_core::{Codec, Magic};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use crate::codec_spec::CodecSpec;

const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const GZIP_TRAILER_LEN: usize = 8;
/// Most bytes that zlib holds back of what it was given, in the end: the symbols of a
/// block, 16 383 of 31 bits, what it looks ahead, 262 bytes, and the rest of a byte.
const GZIP_HELD: u64 = 64 << 10;

/// The level at which lz4-java takes the fast compressor; every other one is HC.
const LZ4_FAST_LEVEL: i32 = 9;

/// zstd compresses blocks of so many bytes. (The window of no level is smaller.)
const ZSTD_BLOCK: u64 = 128 << 10;

/// A library at one level, whose context is used for one stream after another.
///
/// A stream is [`Engine::begin`], any number of [`Engine::put`], [`Engine::end`]; each
/// appends to `out`. It may be left at any point for the beginning of another.
pub(crate) struct Engine {
    spec: CodecSpec,
    library: Library,
}

enum Library {
    Gzip(Gzip),
    Snappy {
        encoder: Box<snap::raw::Encoder>,
        /// A block, compressed. Small enough to stay in the cache.
        block: Box<[u8]>,
    },
    /// liblz4 keeps its tables per thread.
    Lz4Fast,
    Lz4High {
        level: i32,
    },
    Zstd(Zstd),
    /// No spec has it.
    None,
}

impl Engine {
    /// Sets up the library for `spec`.
    ///
    /// It keeps a context of its own: 268 KB for gzip, a few megabytes for zstd at
    /// level 3, nearly 1 GB at level 22.
    ///
    /// # Panics
    ///
    /// Without memory for it, as a `Vec` would.
    pub(crate) fn new(spec: CodecSpec) -> Self {
        let level = spec.effective_level().unwrap_or_default();
        let library = match spec.codec() {
            Codec::None => Library::None,
            Codec::Gzip => Library::Gzip(Gzip::new(level.unsigned_abs())),
            Codec::Snappy => Library::Snappy {
                encoder: Box::new(snap::raw::Encoder::new()),
                block: vec![0; snap::raw::max_compress_len(xerial_encode::BLOCK)]
                    .into_boxed_slice(),
            },
            Codec::Lz4 if level == LZ4_FAST_LEVEL => Library::Lz4Fast,
            Codec::Lz4 => Library::Lz4High { level },
            Codec::Zstd => Library::Zstd(Zstd { context: CCtx::create(), level, taken: 0 }),
        };
        Self { spec, library }
    }

    pub(crate) const fn spec(&self) -> CodecSpec {
        self.spec
    }

    /// What [`Engine::put`] is given at a time, or a multiple of it, but for the last: the
    /// block of the format, or the staging buffer of the Java client.
    pub(crate) const fn step(&self) -> usize {
        match self.library {
            Library::Snappy { .. } => xerial_encode::BLOCK,
            Library::Lz4Fast | Library::Lz4High { .. } => lz4_encode::BLOCK,
            Library::Gzip(_) | Library::Zstd(_) | Library::None => 16 << 10,
        }
    }

    /// Begins a stream, for batches of version `magic`.
    ///
    /// Errors, here and below: what the library says, which has failed for lack of memory.
    pub(crate) fn begin(&mut self, magic: Magic, out: &mut Vec<u8>) -> Result<(), String> {
        match &mut self.library {
            Library::Gzip(gzip) => gzip.begin(out),
            Library::Snappy { .. } => out.extend_from_slice(&xerial_encode::HEADER),
            Library::Lz4Fast | Library::Lz4High { .. } => {
                out.extend_from_slice(&lz4_encode::header(magic));
            }
            Library::Zstd(zstd) => return zstd.begin().map_err(in_words),
            Library::None => {}
        }
        Ok(())
    }

    /// Compresses more of the stream, of which some may be held back.
    pub(crate) fn put(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match &mut self.library {
            Library::Gzip(gzip) => gzip.put(plain, out).map_err(|error| error.to_string()),
            Library::Snappy { encoder, block } => {
                xerial_blocks(encoder, block, plain, out).map_err(|error| error.to_string())
            }
            Library::Lz4Fast => lz4_blocks(plain, out, |block, out| {
                lzzzz::lz4::compress_to_vec(block, out, lzzzz::lz4::ACC_LEVEL_DEFAULT)
            })
            .map_err(|error| error.to_string()),
            Library::Lz4High { level } => lz4_blocks(plain, out, |block, out| {
                lzzzz::lz4_hc::compress_to_vec(block, out, *level)
            })
            .map_err(|error| error.to_string()),
            Library::Zstd(zstd) => zstd.put(plain, out).map_err(in_words),
            Library::None => Ok(()),
        }
    }

    /// Ends the stream.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        match &mut self.library {
            Library::Gzip(gzip) => gzip.end(out).map_err(|error| error.to_string()),
            Library::Lz4Fast | Library::Lz4High { .. } => {
                out.extend_from_slice(&lz4_encode::END_MARK);
                Ok(())
            }
            Library::Zstd(zstd) => zstd.end(out).map_err(in_words),
            Library::Snappy { .. } | Library::None => Ok(()),
        }
    }

    /// Most bytes that are still to come, if `more` are put in and the stream is ended.
    pub(crate) fn bound(&self, more: u64) -> u64 {
        let codec = self.spec.codec();
        match &self.library {
            Library::Gzip(gzip) => gzip.bound(more),
            // Blocks that are held back are held back whole.
            Library::Zstd(zstd) => {
                compress::bound(codec, more.saturating_add(zstd.taken % ZSTD_BLOCK))
            }
            _ => compress::bound(codec, more),
        }
    }
}

fn in_words(code: zstd_safe::ErrorCode) -> String {
    zstd_safe::get_error_name(code).to_owned()
}

/// One member.
struct Gzip {
    deflate: Compress,
    sum: crc32fast::Hasher,
}

impl Gzip {
    fn new(level: u32) -> Self {
        let deflate = Compress::new(Compression::new(level), false);
        Self { deflate, sum: crc32fast::Hasher::new() }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        self.deflate.reset();
        self.sum.reset();
        out.extend_from_slice(&GZIP_HEADER);
    }

    fn put(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), flate2::CompressError> {
        self.sum.update(plain);
        let bound = compress::bound(Codec::Gzip, plain.len() as u64);
        out.reserve(usize::try_from(bound).unwrap_or_default());
        self.run(plain, FlushCompress::None, out)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), flate2::CompressError> {
        self.run(&[], FlushCompress::Finish, out)?;
        out.extend_from_slice(&self.sum.clone().finalize().to_le_bytes());
        // ISIZE is the length modulo 2^32.
        let [a, b, c, d, ..] = self.deflate.total_in().to_le_bytes();
        out.extend_from_slice(&[a, b, c, d]);
        Ok(())
    }

    /// Until all of `rest` is in, and all that can come out has.
    fn run(
        &mut self,
        mut rest: &[u8],
        flush: FlushCompress,
        out: &mut Vec<u8>,
    ) -> Result<(), flate2::CompressError> {
        loop {
            let before = self.deflate.total_in();
            let status = self.deflate.compress_vec(rest, out, flush)?;
            let taken = usize::try_from(self.deflate.total_in() - before).unwrap_or(usize::MAX);
            rest = rest.get(taken..).unwrap_or_default();
            // Where it left room, it has nothing more to say.
            let dry = rest.is_empty() && out.len() < out.capacity();
            if status == Status::StreamEnd || dry && flush == FlushCompress::None {
                return Ok(());
            }
            // Not more than a call's worth was taken, or there was no room.
            out.reserve(GZIP_TRAILER_LEN.max(rest.len().min(64 << 10)));
        }
    }

    /// Two limits, the one better for little data and the other for what shrinks: that of
    /// the whole stream, less what came; and that of what zlib can hold back.
    fn bound(&self, more: u64) -> u64 {
        let whole = compress::bound(Codec::Gzip, self.deflate.total_in().saturating_add(more));
        let came = GZIP_HEADER.len() as u64 + self.deflate.total_out();
        let rest = compress::bound(Codec::Gzip, more).saturating_add(GZIP_HELD);
        whole.saturating_sub(came).min(rest)
    }
}

fn xerial_blocks(
    encoder: &mut snap::raw::Encoder,
    block: &mut [u8],
    plain: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), snap::Error> {
    for plain in plain.chunks(xerial_encode::BLOCK) {
        let len = encoder.compress(plain, block)?;
        // At most 38 261: no block is longer than the bound of 32 KiB.
        out.extend_from_slice(&(len as u32).to_be_bytes());
        out.extend_from_slice(&block[..len]);
    }
    Ok(())
}

/// `compress` appends a block and gives its length.
fn lz4_blocks(
    plain: &[u8],
    out: &mut Vec<u8>,
    compress: impl Fn(&[u8], &mut Vec<u8>) -> lzzzz::Result<usize>,
) -> lzzzz::Result<()> {
    let blocks = plain.len().div_ceil(lz4_encode::BLOCK);
    let block_bound = 4 + lzzzz::lz4::max_compressed_size(lz4_encode::BLOCK.min(plain.len()));
    out.reserve(blocks * block_bound + lz4_encode::END_MARK.len());
    for block in plain.chunks(lz4_encode::BLOCK) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let len = compress(block, out)?;
        let word = if len < block.len() {
            len as u32
        } else {
            out.truncate(start + 4);
            out.extend_from_slice(block);
            block.len() as u32 | lz4_encode::STORED
        };
        out[start..start + 4].copy_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

/// One frame.
struct Zstd {
    context: CCtx<'static>,
    level: i32,
    /// Bytes of the stream that were put in.
    taken: u64,
}

impl Zstd {
    fn begin(&mut self) -> Result<(), zstd_safe::ErrorCode> {
        self.taken = 0;
        self.context.reset(ResetDirective::SessionOnly)?;
        self.context.set_parameter(CParameter::CompressionLevel(self.level))?;
        Ok(())
    }

    fn put(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), zstd_safe::ErrorCode> {
        out.reserve(zstd_safe::compress_bound(plain.len()));
        self.taken += plain.len() as u64;
        self.run(plain, ZSTD_EndDirective::ZSTD_e_continue, out)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), zstd_safe::ErrorCode> {
        // The Java stream starts its frame with the first byte.
        if self.taken == 0 {
            return Ok(());
        }
        // Its `close` flushes first, which leaves the last block empty. A frame that does
        // not begin with its end also has no content size.
        self.run(&[], ZSTD_EndDirective::ZSTD_e_flush, out)?;
        self.run(&[], ZSTD_EndDirective::ZSTD_e_end, out)
    }

    /// Until all of `plain` is in, and what `step` demands is out.
    fn run(
        &mut self,
        plain: &[u8],
        step: ZSTD_EndDirective,
        out: &mut Vec<u8>,
    ) -> Result<(), zstd_safe::ErrorCode> {
        let mut input = InBuffer::around(plain);
        loop {
            let end = out.len();
            let mut output = OutBuffer::around_pos(out, end);
            let left = self.context.compress_stream2(&mut output, &mut input, step)?;
            if left == 0 && input.pos() == plain.len() {
                return Ok(());
            }
            out.reserve(left.max(1 << 10));
        }
    }
}
