//! Compressed payloads, and the ways to decode them: core's decoders through a window
//! that holds all of the output, through a small one, `std-host`'s, and bare libraries.

use logseg_core::{Builtin, Codec, Codecs, Magic, Pause, Window};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
use std_host::codec_spec::CodecSpec;
use std_host::codecs::{HostCodecs, Plain};
use std_host::recompress::Recompressor;
use zstd_safe::DCtx;

use crate::plain;

/// A codec, and how its stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// zlib at level 6, one member.
    Gzip,
    /// The xerial stream, blocks of 32 KiB: Java.
    Snappy,
    /// One raw block: librdkafka, franz-go.
    SnappyRaw,
    /// Blocks of 64 KiB: Java, librdkafka.
    Lz4,
    /// Blocks of 4 MiB: franz-go.
    Lz4Large,
    /// Level 3 without a content size: Java.
    Zstd,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Gzip, Self::Snappy, Self::SnappyRaw, Self::Lz4, Self::Lz4Large, Self::Zstd];

    /// Of its benchmark group.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::SnappyRaw => "snappy-raw",
            Self::Lz4 => "lz4",
            Self::Lz4Large => "lz4-4m",
            Self::Zstd => "zstd",
        }
    }

    /// The compression type.
    #[must_use]
    pub const fn codec(self) -> Codec {
        match self {
            Self::Gzip => Codec::Gzip,
            Self::Snappy | Self::SnappyRaw => Codec::Snappy,
            Self::Lz4 | Self::Lz4Large => Codec::Lz4,
            Self::Zstd => Codec::Zstd,
        }
    }

    /// Libraries that decode it, first the one that core wraps or replaces.
    #[must_use]
    pub const fn libraries(self) -> &'static [Library] {
        match self {
            Self::Gzip => &[Library::MinizOxide, Library::Libdeflater],
            Self::Snappy | Self::SnappyRaw => &[Library::Snap],
            Self::Lz4 | Self::Lz4Large => &[Library::Lz4Flex, Library::Lz4],
            Self::Zstd => &[Library::ZstdSafe],
        }
    }

    /// Compresses with the independent library.
    ///
    /// # Panics
    ///
    /// If that fails.
    #[must_use]
    pub fn pack(self, plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::SnappyRaw => {
                return snap::raw::Encoder::new().compress_vec(plain).expect("snappy");
            }
            Self::Lz4Large => {
                out.extend_from_slice(&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73]);
                for block in plain.chunks(4 << 20) {
                    let at = out.len();
                    out.extend_from_slice(&[0; 4]);
                    let n = lzzzz::lz4::compress_to_vec(block, &mut out, 1).expect("lz4");
                    out[at..at + 4].copy_from_slice(&(n as u32).to_le_bytes());
                }
                out.extend_from_slice(&[0; 4]);
            }
            _ => {
                let spec = CodecSpec::new(self.codec()).expect("a codec");
                let mut packer = Recompressor::new(spec);
                packer.compress(plain, Magic::V2, &mut out).expect("it compresses");
            }
        }
        out
    }
}

/// 1 MiB of the records sections of four segments, 64 KiB of each in turn.
///
/// # Panics
///
/// If the corpus is not there.
#[must_use]
pub fn sections() -> Vec<u8> {
    let sources = ["webhooks-snappy", "levels", "flights-zstd", "birdstrikes-mixed"].map(plain);
    let mut all = Vec::with_capacity(1 << 20);
    for round in 0..4 {
        for source in &sources {
            all.extend_from_slice(&source[round << 16..][..1 << 16]);
        }
    }
    all
}

/// Room for zstd's default level.
#[must_use]
pub fn zstd_workspace() -> Vec<u8> {
    vec![0; logseg_core::codec::zstd::workspace_len(2 << 20)]
}

/// Decodes with core into a window over `out`; gives the length.
///
/// # Panics
///
/// If the payload is not good, or the output does not fit.
pub fn ours(codecs: &mut Builtin<'_>, format: Format, payload: &[u8], out: &mut [u8]) -> usize {
    let decoder = codecs.decoder(format.codec(), Magic::V2).expect("it is built in");
    decoder.reset();
    let mut window = Window::new(out);
    let (mut rest, mut ended) = (payload, false);
    loop {
        let progress = decoder.advance(rest, &mut window).expect("a good payload");
        rest = &rest[progress.consumed..];
        match progress.pause {
            Pause::Finished => return window.unread_len(),
            Pause::InputDry if !ended && rest.is_empty() => ended = true,
            pause => panic!("{pause:?} with {} left", rest.len()),
        }
    }
}

/// Decodes with core through a window that is too small for the output, as an
/// unpacker would; gives the length.
///
/// # Panics
///
/// If the payload is not good, or the window too small for it.
pub fn through(
    codecs: &mut Builtin<'_>,
    format: Format,
    payload: &[u8],
    window: &mut [u8],
) -> usize {
    let decoder = codecs.decoder(format.codec(), Magic::V2).expect("it is built in");
    decoder.reset();
    let mut window = Window::new(window);
    let (mut rest, mut len) = (payload, 0);
    loop {
        let progress = decoder.advance(rest, &mut window).expect("a good payload");
        rest = &rest[progress.consumed..];
        len += window.unread_len();
        window.consume(usize::MAX);
        match progress.pause {
            Pause::Finished => return len,
            Pause::InputDry => assert!(rest.is_empty()),
            Pause::WindowFull => window.slide(decoder.history()),
        }
    }
}

/// Decodes with `std-host` into a buffer of its own; gives the length.
///
/// # Panics
///
/// If the payload is not good.
pub fn hosted(codecs: &mut HostCodecs, format: Format, payload: &[u8], out: &mut Plain) -> usize {
    codecs.unpack(format.codec(), Magic::V2, payload, 0, 1 << 30, out).expect("a good payload");
    out.bytes().len()
}

/// A library, called without anything around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// `miniz_oxide`; gzip's checksum is not looked at.
    MinizOxide,
    /// libdeflate, which does look at it.
    Libdeflater,
    /// `snap`.
    Snap,
    /// `lz4_flex` without `unsafe`.
    Lz4Flex,
    /// The C library.
    Lz4,
    /// libzstd, at once.
    ZstdSafe,
}

impl Library {
    /// The name of the crate.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinizOxide => "miniz_oxide",
            Self::Libdeflater => "libdeflater",
            Self::Snap => "snap",
            Self::Lz4Flex => "lz4_flex",
            Self::Lz4 => "lzzzz",
            Self::ZstdSafe => "zstd-safe",
        }
    }
}

/// The libraries, with contexts kept.
pub struct Libraries {
    inflate: Box<DecompressorOxide>,
    libdeflate: libdeflater::Decompressor,
    snappy: snap::raw::Decoder,
    zstd: DCtx<'static>,
}

impl Default for Libraries {
    fn default() -> Self {
        Self {
            inflate: Box::default(),
            libdeflate: libdeflater::Decompressor::new(),
            snappy: snap::raw::Decoder::new(),
            zstd: DCtx::create(),
        }
    }
}

impl Libraries {
    /// Decodes into `out`; gives the length.
    ///
    /// # Panics
    ///
    /// If the payload is none of [`Format::pack`], or the library none of
    /// [`Format::libraries`].
    pub fn decode(
        &mut self,
        library: Library,
        format: Format,
        payload: &[u8],
        out: &mut [u8],
    ) -> usize {
        match library {
            Library::MinizOxide => {
                self.inflate.init();
                let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
                let (status, _, n) = decompress(&mut self.inflate, &payload[10..], out, 0, flags);
                assert_eq!(status, TINFLStatus::Done);
                n
            }
            Library::Libdeflater => self.libdeflate.gzip_decompress(payload, out).expect("gzip"),
            Library::Snap if format == Format::SnappyRaw => {
                self.snappy.decompress(payload, out).expect("snappy")
            }
            Library::Snap => {
                let (mut rest, mut at) = (&payload[16..], 0);
                while let Some((len, behind)) = rest.split_first_chunk::<4>() {
                    let (block, behind) = behind.split_at(u32::from_be_bytes(*len) as usize);
                    at += self.snappy.decompress(block, &mut out[at..]).expect("snappy");
                    rest = behind;
                }
                at
            }
            Library::Lz4Flex => lz4_blocks(payload, out, |block, room| {
                lz4_flex::block::decompress_into(block, room).expect("lz4")
            }),
            Library::Lz4 => lz4_blocks(payload, out, |block, room| {
                lzzzz::lz4::decompress(block, room).expect("lz4")
            }),
            Library::ZstdSafe => self.zstd.decompress(out, payload).expect("zstd"),
        }
    }
}

/// Goes through a frame and decodes its blocks; gives the length.
fn lz4_blocks(
    payload: &[u8],
    out: &mut [u8],
    mut decode: impl FnMut(&[u8], &mut [u8]) -> usize,
) -> usize {
    let (mut rest, mut at) = (&payload[7..], 0);
    while let Some((word, behind)) = rest.split_first_chunk::<4>() {
        let word = u32::from_le_bytes(*word);
        let (block, behind) = behind.split_at((word & 0x7fff_ffff) as usize);
        if word >> 31 == 1 {
            out[at..at + block.len()].copy_from_slice(block);
            at += block.len();
        } else if !block.is_empty() {
            at += decode(block, &mut out[at..]);
        }
        rest = behind;
    }
    at
}

/// Everything that decodes, and where to.
pub struct Sides<'w> {
    /// Core's decoders.
    pub builtin: Builtin<'w>,
    /// Those of `std-host`, and their output.
    pub host: HostCodecs,
    /// See [`Sides::host`].
    pub plain: Plain,
    /// Bare libraries.
    pub libraries: Libraries,
    /// Output of the others.
    pub out: Vec<u8>,
}

/// Least window that holds the history of every codec, twice.
pub const SMALL: usize = 128 << 10;

impl<'w> Sides<'w> {
    /// For outputs of `len` bytes at most.
    #[must_use]
    pub fn new(workspace: &'w mut [u8], len: usize) -> Self {
        Self {
            builtin: Builtin::new().with_zstd(workspace),
            host: HostCodecs::default(),
            plain: Plain::default(),
            libraries: Libraries::default(),
            out: vec![0; len + (4 << 20)],
        }
    }

    /// Compresses a section in parts of one size, and makes sure that all sides decode them.
    ///
    /// # Panics
    ///
    /// If one of them does not.
    pub fn payloads(&mut self, format: Format, section: &[u8], size: usize) -> Vec<Vec<u8>> {
        let Self { builtin, host, plain, libraries, out } = self;
        let payloads: Vec<_> = section.chunks(size).map(|part| format.pack(part)).collect();
        for (payload, part) in payloads.iter().zip(section.chunks(size)) {
            // Not `assert_eq`: it would print a megabyte.
            let n = ours(builtin, format, payload, out);
            assert!(&out[..n] == part, "core: {format:?}, {size}");
            hosted(host, format, payload, plain);
            assert!(plain.bytes() == part, "host: {format:?}, {size}");
            for &library in format.libraries() {
                out[..part.len()].fill(0);
                let n = libraries.decode(library, format, payload, out);
                assert!(&out[..n] == part, "{library:?}: {format:?}, {size}");
            }
            out[..part.len()].fill(0);
            assert_eq!(through(builtin, format, payload, &mut out[..SMALL]), part.len());
        }
        payloads
    }
}
