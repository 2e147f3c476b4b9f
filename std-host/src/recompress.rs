//! Compresses records sections to what a Java producer would have sent.
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
//! Output that came out larger than its input is kept, as the Java client does.

use std::fmt;

use flate2::{Compress, Compression, FlushCompress, Status};
use logseg_core::codec::{lz4_encode, xerial_encode};
use logseg_core::{Codec, Error, Magic};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use crate::codec_spec::CodecSpec;

const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const GZIP_TRAILER_LEN: usize = 8;

/// The level at which lz4-java takes the fast compressor; every other one is HC.
const LZ4_FAST_LEVEL: i32 = 9;

/// A compressor for one codec at one level, used again for every batch.
pub struct Recompressor {
    spec: CodecSpec,
    engine: Engine,
}

enum Engine {
    Gzip(Compress),
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
    Zstd {
        context: CCtx<'static>,
        level: i32,
    },
    /// No spec has it.
    None,
}

impl Recompressor {
    /// Sets up the compressor for `spec`.
    ///
    /// It keeps a context of its own: 268 KB for gzip, a few megabytes for zstd at
    /// level 3, nearly 1 GB at level 22.
    ///
    /// # Panics
    ///
    /// Without memory for it, as a `Vec` would.
    #[must_use]
    pub fn new(spec: CodecSpec) -> Self {
        let level = spec.effective_level().unwrap_or_default();
        let engine = match spec.codec() {
            Codec::None => Engine::None,
            Codec::Gzip => {
                Engine::Gzip(Compress::new(Compression::new(level.unsigned_abs()), false))
            }
            Codec::Snappy => Engine::Snappy {
                encoder: Box::new(snap::raw::Encoder::new()),
                block: vec![0; snap::raw::max_compress_len(xerial_encode::BLOCK)]
                    .into_boxed_slice(),
            },
            Codec::Lz4 if level == LZ4_FAST_LEVEL => Engine::Lz4Fast,
            Codec::Lz4 => Engine::Lz4High { level },
            Codec::Zstd => Engine::Zstd { context: CCtx::create(), level },
        };
        Self { spec, engine }
    }

    /// What it compresses to.
    #[must_use]
    pub const fn spec(&self) -> CodecSpec {
        self.spec
    }

    /// Whether batches of version `magic` can carry the codec: zstd exists only in v2.
    #[must_use]
    pub fn can_be_in(&self, magic: Magic) -> bool {
        self.spec.codec() != Codec::Zstd || magic == Magic::V2
    }

    /// Replaces `out` with `section` compressed: the records section of a v2 batch, or
    /// the messages of a v0/v1 set. The batch header is not part of either.
    ///
    /// `out` grows to the worst case once and is best used again. It holds something
    /// unspecified after an error.
    ///
    /// Errors: [`RecompressError::NotPossible`] unless [`Recompressor::can_be_in`];
    /// otherwise the library has failed, for lack of memory.
    pub fn compress(
        &mut self,
        section: &[u8],
        magic: Magic,
        out: &mut Vec<u8>,
    ) -> Result<(), RecompressError> {
        let spec = self.spec;
        if !self.can_be_in(magic) {
            return Err(RecompressError::NotPossible { spec, magic });
        }
        out.clear();
        match &mut self.engine {
            Engine::Gzip(deflate) => gzip(deflate, section, out)
                .map_err(|error| RecompressError::library(spec, &error.to_string())),
            Engine::Snappy { encoder, block } => xerial(encoder, block, section, out)
                .map_err(|error| RecompressError::library(spec, &error.to_string())),
            Engine::Lz4Fast => lz4_frame(section, magic, out, |block, out| {
                lzzzz::lz4::compress_to_vec(block, out, lzzzz::lz4::ACC_LEVEL_DEFAULT)
            })
            .map_err(|error| RecompressError::library(spec, &error.to_string())),
            Engine::Lz4High { level } => lz4_frame(section, magic, out, |block, out| {
                lzzzz::lz4_hc::compress_to_vec(block, out, *level)
            })
            .map_err(|error| RecompressError::library(spec, &error.to_string())),
            Engine::Zstd { context, level } => zstd_frame(context, *level, section, out)
                .map_err(|code| RecompressError::library(spec, zstd_safe::get_error_name(code))),
            Engine::None => Err(RecompressError::NotPossible { spec, magic }),
        }
    }
}

impl fmt::Debug for Recompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recompressor").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Why nothing was made of a batch.
#[derive(Debug)]
pub enum NotDone {
    /// The batch is damaged.
    Damaged(Error),
    /// A compressor failed, for lack of memory, or the version cannot carry its codec.
    Failed(RecompressError),
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        Self::Damaged(error)
    }
}

/// Why a batch cannot be compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecompressError {
    /// Batches of this version cannot carry the codec.
    NotPossible {
        /// What was asked for.
        spec: CodecSpec,
        /// Of the batch.
        magic: Magic,
    },
    /// It would not fit the size field of a batch.
    TooLarge,
    /// The library gave up.
    Library {
        /// What was asked for.
        spec: CodecSpec,
        /// In the library's words.
        detail: String,
    },
}

impl RecompressError {
    fn library(spec: CodecSpec, detail: &str) -> Self {
        Self::Library { spec, detail: detail.to_owned() }
    }
}

impl fmt::Display for RecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPossible { spec, magic } => {
                write!(f, "{spec} is not allowed in magic {}", magic.number())
            }
            Self::TooLarge => f.write_str("larger than a batch can be: 2 GiB"),
            Self::Library { spec, detail } => write!(f, "{spec}: {detail}"),
        }
    }
}

impl std::error::Error for RecompressError {}

fn gzip(
    deflate: &mut Compress,
    section: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), flate2::CompressError> {
    let n = section.len();
    // deflateBound for window 15 and memLevel 8.
    let bound = n + (n >> 12) + (n >> 14) + (n >> 25) + 13;
    out.reserve(GZIP_HEADER.len() + bound + GZIP_TRAILER_LEN);
    out.extend_from_slice(&GZIP_HEADER);
    deflate.reset();
    let mut rest = section;
    loop {
        let before = deflate.total_in();
        let status = deflate.compress_vec(rest, out, FlushCompress::Finish)?;
        let taken = usize::try_from(deflate.total_in() - before).unwrap_or(usize::MAX);
        rest = rest.get(taken..).unwrap_or_default();
        if status == Status::StreamEnd {
            break;
        }
        // Not more than a call's worth was taken, or the bound was none.
        out.reserve(GZIP_TRAILER_LEN.max(rest.len().min(64 << 10)));
    }
    out.extend_from_slice(&crc32fast::hash(section).to_le_bytes());
    // ISIZE is the length modulo 2^32.
    let [a, b, c, d, ..] = (n as u64).to_le_bytes();
    out.extend_from_slice(&[a, b, c, d]);
    Ok(())
}

fn xerial(
    encoder: &mut snap::raw::Encoder,
    block: &mut [u8],
    section: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), snap::Error> {
    out.extend_from_slice(&xerial_encode::HEADER);
    for plain in section.chunks(xerial_encode::BLOCK) {
        let len = encoder.compress(plain, block)?;
        // At most 38 261: no block is longer than the bound of 32 KiB.
        out.extend_from_slice(&(len as u32).to_be_bytes());
        out.extend_from_slice(&block[..len]);
    }
    Ok(())
}

/// `compress` appends a block and gives its length.
fn lz4_frame(
    section: &[u8],
    magic: Magic,
    out: &mut Vec<u8>,
    compress: impl Fn(&[u8], &mut Vec<u8>) -> lzzzz::Result<usize>,
) -> lzzzz::Result<()> {
    let blocks = section.len().div_ceil(lz4_encode::BLOCK);
    let block_bound = 4 + lzzzz::lz4::max_compressed_size(lz4_encode::BLOCK.min(section.len()));
    let header = lz4_encode::header(magic);
    out.reserve(header.len() + blocks * block_bound + lz4_encode::END_MARK.len());
    out.extend_from_slice(&header);
    for block in section.chunks(lz4_encode::BLOCK) {
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
    out.extend_from_slice(&lz4_encode::END_MARK);
    Ok(())
}

fn zstd_frame(
    context: &mut CCtx<'static>,
    level: i32,
    section: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), zstd_safe::ErrorCode> {
    // The Java stream starts its frame with the first byte.
    if section.is_empty() {
        return Ok(());
    }
    out.reserve(zstd_safe::compress_bound(section.len()));
    context.reset(ResetDirective::SessionOnly)?;
    context.set_parameter(CParameter::CompressionLevel(level))?;
    let mut input = InBuffer::around(section);
    // `close` of the Java stream flushes first, which leaves the last block empty.
    // A frame that does not begin with its end also has no content size.
    for step in [ZSTD_EndDirective::ZSTD_e_flush, ZSTD_EndDirective::ZSTD_e_end] {
        loop {
            let end = out.len();
            let mut output = OutBuffer::around_pos(out, end);
            let left = context.compress_stream2(&mut output, &mut input, step)?;
            if left == 0 && input.pos() == section.len() {
                break;
            }
            out.reserve(left.max(1 << 10));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use logseg_core::codec::zstd::workspace_len;
    use logseg_core::{Builtin, Codecs, Pause, Window};

    use super::*;

    fn recompressor(spec: &str) -> Recompressor {
        Recompressor::new(spec.parse().unwrap())
    }

    fn compress(spec: &str, section: &[u8], magic: Magic) -> Vec<u8> {
        let mut out = b"something else".to_vec();
        recompressor(spec).compress(section, magic, &mut out).unwrap();
        out
    }

    fn hex(text: &str) -> Vec<u8> {
        let nibbles: Vec<u8> =
            text.chars().map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap()).collect();
        nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Decodes with the core.
    fn core_decoded(codec: Codec, magic: Magic, bytes: &[u8]) -> Vec<u8> {
        let mut workspace = vec![0; workspace_len(8 << 20)];
        let mut codecs = Builtin::new().with_zstd(&mut workspace);
        let decoder = codecs.decoder(codec, magic).unwrap();
        decoder.reset();
        let mut buffer = vec![0; 1 << 18];
        let mut window = Window::new(&mut buffer);
        let (mut at, mut plain) = (0, Vec::new());
        loop {
            let progress = decoder.advance(&bytes[at..], &mut window).unwrap();
            at += progress.consumed;
            plain.extend_from_slice(window.unread());
            window.consume(usize::MAX);
            window.slide(decoder.history());
            if progress.pause == Pause::Finished {
                assert_eq!(at, bytes.len());
                return plain;
            }
        }
    }

    /// Decodes without the core.
    fn library_decoded(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match codec {
            Codec::None => plain.extend_from_slice(bytes),
            Codec::Gzip => {
                flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
            }
            Codec::Snappy => {
                let mut rest = bytes.strip_prefix(&xerial_encode::HEADER).unwrap();
                while let Some((len, tail)) = rest.split_first_chunk() {
                    let (block, tail) = tail.split_at(u32::from_be_bytes(*len) as usize);
                    let block = snap::raw::Decoder::new().decompress_vec(block).unwrap();
                    assert!(block.len() == xerial_encode::BLOCK || tail.is_empty());
                    plain.extend_from_slice(&block);
                    rest = tail;
                }
                assert!(rest.is_empty());
            }
            Codec::Lz4 => {
                lz4_flex::frame::FrameDecoder::new(bytes).read_to_end(&mut plain).unwrap();
            }
            Codec::Zstd if bytes.is_empty() => {}
            Codec::Zstd => {
                ruzstd::decoding::StreamingDecoder::new(bytes)
                    .unwrap()
                    .read_to_end(&mut plain)
                    .unwrap();
            }
        }
        plain
    }

    fn random(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .take(len)
        .collect()
    }

    /// Lines that resemble each other, as records do.
    fn compressible(len: usize) -> Vec<u8> {
        let noise = random(len / 32 + 1);
        let mut text: Vec<u8> = (0u32..)
            .zip(&noise)
            .flat_map(|(i, noise)| {
                format!("{{\"id\":{i},\"state\":\"active\",\"n\":{noise}}}").into_bytes()
            })
            .collect();
        text.truncate(len);
        assert_eq!(text.len(), len);
        text
    }

    /// Streams that Kafka's own classes wrote (format-reference §17.3, §17.5, §17.6).
    /// The snappy ones that compress anything are not here: snap's encoder takes other
    /// matches than Google's.
    #[test]
    fn java_streams() {
        for (spec, magic, stream) in [
            (
                "gzip",
                Magic::V2,
                "1f8b08000000000000fff363606060ca7648240018fc18989888510700fb219e3c50000000",
            ),
            (
                "lz4",
                Magic::V2,
                "04224d186040821b0000008f4e000000026b406101000c5f004e00020228000c5061616161\
                 0000000000",
            ),
            (
                "zstd",
                Magic::V2,
                "28b52ffd0058ac0000684e000000026b4061004e000202020097227503b8010000",
            ),
            (
                "gzip",
                Magic::V0,
                "1f8b08000000000000ff636000032e2056fea57baa07cc63cc0612226558004435033710f3\
                 2fe5ee4f6660f80f04202de500fad9b7a24a000000",
            ),
            (
                "gzip",
                Magic::V1,
                "1f8b08000000000000ff63608003ed97926aad8c400663f7f9a7192011c66c2021528605\
                 40b580548b5b9c12f286694bfff61f08409c7200dc96063e5a000000",
            ),
            (
                "lz4",
                Magic::V0,
                "04224d1860401a3600000012000100910a00000023fa2dca8c0f007f016b00000014760100\
                 00011f00f00700000b0000000fa50b8f630000ffffffff000000017700000000",
            ),
            (
                "lz4",
                Magic::V1,
                "04224d186040823d00000016000100e02be919268501000000018bcfe56818007f016b0000\
                 001476010000001e00002a00840000001738ca124b3700b067f6ffffffff00000001770000\
                 0000",
            ),
            ("snappy", Magic::V2, "82534e4150505900000000010000000100000007051068656c6c6f"),
            ("snappy", Magic::V2, "82534e41505059000000000100000001"),
            ("lz4", Magic::V2, "04224d1860408200000000"),
            ("lz4:1", Magic::V1, "04224d1860408200000000"),
            ("gzip", Magic::V2, "1f8b08000000000000ff03000000000000000000"),
            ("gzip:1", Magic::V2, "1f8b08000000000000ffcb48cdc9c9070086a6103605000000"),
            ("gzip:9", Magic::V2, "1f8b08000000000000ffcb48cdc9c9070086a6103605000000"),
            ("zstd", Magic::V2, ""),
        ] {
            let stream = hex(stream);
            let codec = spec.parse::<CodecSpec>().unwrap().codec();
            let plain = core_decoded(codec, magic, &stream);
            assert_eq!(compress(spec, &plain, magic), stream, "{spec} {magic:?}");
        }
    }

    #[test]
    fn round_trips_and_reuse() {
        let kib = 1 << 10;
        let lens = [0, 1, 32 * kib - 1, 32 * kib, 32 * kib + 1, 64 * kib - 1, 64 * kib]
            .into_iter()
            .chain([64 * kib + 1, kib * kib]);
        let plains: Vec<Vec<u8>> = lens.flat_map(|n| [compressible(n), random(n)]).collect();
        // All of a codec's compressors side by side: liblz4's tables are shared.
        for (codec, specs) in [
            (Codec::Gzip, &["gzip", "gzip:1", "gzip:9"][..]),
            (Codec::Snappy, &["snappy"]),
            (Codec::Lz4, &["lz4", "lz4:1", "lz4:3", "lz4:12", "lz4:17"]),
            (Codec::Zstd, &["zstd", "zstd:-50", "zstd:1", "zstd:9", "zstd:19"]),
        ] {
            let mut engines: Vec<_> = specs.iter().map(|spec| recompressor(spec)).collect();
            let mut out = Vec::new();
            let mut firsts = Vec::new();
            for plain in &plains {
                for engine in &mut engines {
                    engine.compress(plain, Magic::V2, &mut out).unwrap();
                    let spec = engine.spec();
                    assert!(library_decoded(codec, &out) == *plain, "{spec} {}", plain.len());
                    assert!(core_decoded(codec, Magic::V2, &out) == *plain, "{spec}");
                    firsts.push(out.clone());
                }
            }
            let mut firsts = firsts.iter();
            for plain in &plains {
                for engine in &mut engines {
                    engine.compress(plain, Magic::V2, &mut out).unwrap();
                    assert!(Some(&out) == firsts.next(), "{} {}", engine.spec(), plain.len());
                }
            }
        }
    }

    #[test]
    fn lz4_levels_are_those_of_lz4_java() {
        let plain = compressible(200_000);
        let sizes: Vec<_> = (1..=17)
            .map(|level| compress(&format!("lz4:{level}"), &plain, Magic::V2).len())
            .collect();
        // 1 and 2 are the same HC search, which they no longer are from lz4 1.10 on.
        assert_eq!(sizes[0], sizes[1]);
        assert!(sizes[1] > sizes[2], "{sizes:?}");
        // Not HC: between 8 and 10 comes the least compression of all.
        assert!(sizes[8] > sizes[0], "{sizes:?}");
        // liblz4 ends at 12.
        assert!(sizes[11..].iter().all(|size| *size == sizes[11]), "{sizes:?}");
    }

    #[test]
    fn what_does_not_shrink_is_kept() {
        let plain = random(64 << 10);
        let stored = compress("lz4", &plain, Magic::V1);
        assert_eq!(stored.len(), 7 + 4 + plain.len() + 4);
        assert_eq!(stored[7..11], (lz4_encode::STORED | 65_536).to_le_bytes());
        for spec in ["gzip", "snappy", "zstd"] {
            assert!(compress(spec, &plain, Magic::V2).len() > plain.len(), "{spec}");
        }
    }

    #[test]
    fn legacy_versions() {
        assert_eq!(compress("lz4", b"", Magic::V0), hex("04224d1860401a00000000"));
        assert_eq!(compress("lz4:3", b"", Magic::V1), hex("04224d1860408200000000"));
        let mut zstd = recompressor("zstd:9");
        for (magic, ok) in [(Magic::V0, false), (Magic::V1, false), (Magic::V2, true)] {
            assert_eq!(zstd.can_be_in(magic), ok);
            assert_eq!(zstd.compress(b"x", magic, &mut Vec::new()).is_ok(), ok);
        }
        let error = zstd.compress(b"x", Magic::V1, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "zstd:9 is not allowed in magic 1");
    }

    #[test]
    fn zstd_frames_declare_no_size_and_the_window_of_their_level() {
        // Windows of zstd 1.5.2 (format-reference §9.2).
        for (level, window) in [(-5, 0x48), (1, 0x48), (3, 0x58), (9, 0x60), (15, 0x60), (19, 0x68)]
        {
            let out = compress(&format!("zstd:{level}"), &compressible(300_000), Magic::V2);
            assert_eq!(out[..6], [0x28, 0xb5, 0x2f, 0xfd, 0, window], "{level}");
            assert_eq!(out[out.len() - 3..], [1, 0, 0]);
        }
    }
}
