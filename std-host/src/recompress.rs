//! Compresses records sections to what a Java producer would have sent.

use std::fmt;

use logseg_core::{Codec, Error, Magic};

use crate::codec_spec::CodecSpec;
use crate::engine::Engine;

/// A compressor for one codec at one level, used again for every batch.
pub struct Recompressor {
    engine: Engine,
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
        Self { engine: Engine::new(spec) }
    }

    /// What it compresses to.
    #[must_use]
    pub const fn spec(&self) -> CodecSpec {
        self.engine.spec()
    }

    /// Whether batches of version `magic` can carry the codec: zstd exists only in v2.
    #[must_use]
    pub fn can_be_in(&self, magic: Magic) -> bool {
        self.spec().codec() != Codec::Zstd || magic == Magic::V2
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
        let spec = self.spec();
        if !self.can_be_in(magic) {
            return Err(RecompressError::NotPossible { spec, magic });
        }
        out.clear();
        self.engine
            .begin(magic, out)
            .and_then(|()| self.engine.put(section, out))
            .and_then(|()| self.engine.end(out))
            .map_err(|detail| RecompressError::Library { spec, detail })
    }
}

impl fmt::Debug for Recompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recompressor").field("spec", &self.spec()).finish_non_exhaustive()
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use logseg_core::codec::zstd::workspace_len;
    use logseg_core::codec::{lz4_encode, xerial_encode};
    use logseg_core::{Builtin, Codecs, Pause, Window};

    use super::*;
    use crate::dump::digest::unhex;

    fn recompressor(spec: &str) -> Recompressor {
        Recompressor::new(spec.parse().unwrap())
    }

    fn compress(spec: &str, section: &[u8], magic: Magic) -> Vec<u8> {
        let mut out = b"something else".to_vec();
        recompressor(spec).compress(section, magic, &mut out).unwrap();
        out
    }

    fn hex(text: &str) -> Vec<u8> {
        unhex(text).unwrap()
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

    /// Streams that Kafka's own classes wrote.
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
        // Windows of zstd 1.5.2.
        for (level, window) in [(-5, 0x48), (1, 0x48), (3, 0x58), (9, 0x60), (15, 0x60), (19, 0x68)]
        {
            let out = compress(&format!("zstd:{level}"), &compressible(300_000), Magic::V2);
            assert_eq!(out[..6], [0x28, 0xb5, 0x2f, 0xfd, 0, window], "{level}");
            assert_eq!(out[out.len() - 3..], [1, 0, 0]);
        }
    }
}
