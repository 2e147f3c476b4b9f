//! Compresses and decompresses with independent libraries.

use std::io::{Read, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use logseg_core::Codec;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

/// Start of a xerial stream: magic, version 1, compatible with 1.
pub const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";

/// How a payload is compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    None,
    /// gzip: this many members of about equal size.
    Gzip {
        /// 0 stores, 9 is best.
        level: u32,
        /// At least 1.
        members: usize,
        /// With name, comment and extra field.
        fields: bool,
    },
    /// One raw snappy block.
    SnappyRaw,
    /// The xerial stream.
    Xerial {
        /// Bytes a block, before compression.
        block: usize,
        /// The header comes again before every so many blocks; 0 for never.
        header_every: usize,
    },
    /// An LZ4 frame of independent blocks.
    Lz4 {
        /// 4 to 7: 64 KiB, 256 KiB, 1 MiB, 4 MiB.
        block: u8,
        /// Checksum of each block.
        block_sums: bool,
        /// Checksum of the content.
        content_sum: bool,
        /// Size of the content in the header.
        content_size: bool,
    },
    /// zstd: this many frames of about equal size.
    Zstd {
        /// 1 to 22, or negative.
        level: i32,
        /// At least 1.
        frames: usize,
        /// A skippable frame before, between and behind them.
        skippable: bool,
        /// Checksum of the content.
        checksum: bool,
        /// Size of the content in the header.
        content_size: bool,
    },
}

impl Packing {
    /// As a Java producer with its default levels does; snappy framed.
    #[must_use]
    pub const fn java(codec: Codec) -> Self {
        match codec {
            Codec::None => Self::None,
            Codec::Gzip => Self::Gzip { level: 6, members: 1, fields: false },
            Codec::Snappy => Self::Xerial { block: 32 << 10, header_every: 0 },
            Codec::Lz4 => {
                Self::Lz4 { block: 4, block_sums: false, content_sum: false, content_size: false }
            }
            Codec::Zstd => Self::Zstd {
                level: 3,
                frames: 1,
                skippable: false,
                checksum: false,
                content_size: false,
            },
        }
    }

    /// One of each, and of their variants.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::None, Self::SnappyRaw];
        for (level, members, fields) in
            [(0, 1, false), (1, 1, true), (6, 1, false), (9, 3, false), (6, 2, true), (0, 3, true)]
        {
            all.push(Self::Gzip { level, members, fields });
        }
        for (block, header_every) in
            [(32 << 10, 0), (1 << 10, 0), (700, 2), (32 << 10, 1), (200 << 10, 0)]
        {
            all.push(Self::Xerial { block, header_every });
        }
        for (block, block_sums, content_sum, content_size) in [
            (4, false, false, false),
            (4, true, false, false),
            (4, false, true, true),
            (5, true, true, true),
            (6, false, true, false),
            (7, true, true, false),
        ] {
            all.push(Self::Lz4 { block, block_sums, content_sum, content_size });
        }
        for (level, frames, skippable, checksum, content_size) in [
            (3, 1, false, false, false),
            (1, 1, false, true, true),
            (-5, 3, false, false, true),
            (9, 2, true, true, false),
            (19, 1, true, false, true),
        ] {
            all.push(Self::Zstd { level, frames, skippable, checksum, content_size });
        }
        all
    }

    /// Its compression type.
    #[must_use]
    pub const fn codec(&self) -> Codec {
        match self {
            Self::None => Codec::None,
            Self::Gzip { .. } => Codec::Gzip,
            Self::SnappyRaw | Self::Xerial { .. } => Codec::Snappy,
            Self::Lz4 { .. } => Codec::Lz4,
            Self::Zstd { .. } => Codec::Zstd,
        }
    }

    /// Compresses.
    ///
    /// # Panics
    ///
    /// If a library fails.
    #[must_use]
    pub fn pack(&self, plain: &[u8]) -> Vec<u8> {
        match *self {
            Self::None => plain.to_vec(),
            Self::Gzip { level, members, fields } => parts(plain, members)
                .into_iter()
                .flat_map(|part| gzip(part, level, fields))
                .collect(),
            Self::SnappyRaw => snappy_block(plain),
            Self::Xerial { block, header_every } => xerial(plain, block, header_every),
            Self::Lz4 { block, block_sums, content_sum, content_size } => {
                let size = content_size.then_some(plain.len() as u64);
                let info = FrameInfo::new()
                    .block_mode(BlockMode::Independent)
                    .block_size(match block {
                        4 => BlockSize::Max64KB,
                        5 => BlockSize::Max256KB,
                        6 => BlockSize::Max1MB,
                        _ => BlockSize::Max4MB,
                    })
                    .block_checksums(block_sums)
                    .content_checksum(content_sum)
                    .content_size(size);
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(plain).expect("lz4");
                encoder.finish().expect("lz4")
            }
            Self::Zstd { level, frames, skippable, checksum, content_size } => {
                let skip = if skippable { &b"\x53\x2a\x4d\x18\x05\0\0\0Kafka"[..] } else { b"" };
                let mut out = skip.to_vec();
                for part in parts(plain, frames) {
                    let mut encoder =
                        zstd::stream::write::Encoder::new(Vec::new(), level).expect("zstd");
                    encoder.include_checksum(checksum).expect("zstd");
                    if content_size {
                        encoder.set_pledged_src_size(Some(part.len() as u64)).expect("zstd");
                    }
                    encoder.include_contentsize(content_size).expect("zstd");
                    encoder.write_all(part).expect("zstd");
                    out.extend(encoder.finish().expect("zstd"));
                    out.extend(skip);
                }
                out
            }
        }
    }
}

fn parts(plain: &[u8], n: usize) -> Vec<&[u8]> {
    let step = plain.len().div_ceil(n.max(1)).max(1);
    if plain.is_empty() { vec![plain] } else { plain.chunks(step).collect() }
}

fn gzip(plain: &[u8], level: u32, fields: bool) -> Vec<u8> {
    let level = Compression::new(level);
    let mut encoder = if fields {
        GzBuilder::new()
            .filename("segment")
            .comment("one member")
            .extra(vec![7; 300])
            .mtime(1_700_000_000)
            .write(Vec::new(), level)
    } else {
        GzEncoder::new(Vec::new(), level)
    };
    encoder.write_all(plain).expect("gzip");
    encoder.finish().expect("gzip")
}

/// One raw snappy block.
///
/// # Panics
///
/// If the library fails.
#[must_use]
pub fn snappy_block(plain: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(plain).expect("snappy")
}

fn xerial(plain: &[u8], block: usize, header_every: usize) -> Vec<u8> {
    let mut out = XERIAL_HEADER.to_vec();
    for (i, part) in plain.chunks(block).enumerate() {
        if header_every > 0 && i > 0 && i % header_every == 0 {
            out.extend(XERIAL_HEADER);
        }
        let packed = snappy_block(part);
        out.extend(i32::try_from(packed.len()).expect("fits an i32").to_be_bytes());
        out.extend(packed);
    }
    out
}

/// Decompresses with independent libraries, as Kafka would. `magic` 0 has a header
/// checksum in lz4 that is wrong and not looked at.
///
/// # Errors
///
/// Whatever the library says.
pub fn unpack(codec: Codec, magic: u8, payload: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let text = |error: std::io::Error| error.to_string();
    match codec {
        Codec::None => out.extend(payload),
        Codec::Gzip => {
            let mut decoder = flate2::read::MultiGzDecoder::new(payload);
            decoder.read_to_end(&mut out).map_err(text)?;
        }
        Codec::Snappy => out = unpack_snappy(payload)?,
        Codec::Lz4 => {
            let mut frame = payload.to_vec();
            if magic == 0 && frame.len() > 6 {
                let hc = if frame[4] & 0x08 == 0 { 6 } else { 14 };
                if hc < frame.len() {
                    frame[hc] = right_header_checksum(&frame[4..hc]);
                }
            }
            FrameDecoder::new(&frame[..]).read_to_end(&mut out).map_err(text)?;
        }
        Codec::Zstd => out = zstd::stream::decode_all(payload).map_err(text)?,
    }
    Ok(out)
}

/// Second byte of xxh32 over an LZ4 frame descriptor, written out after the
/// specification: only descriptors of 2 and of 10 bytes occur.
#[must_use]
pub fn right_header_checksum(descriptor: &[u8]) -> u8 {
    const P: [u32; 5] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1];
    assert!(descriptor.len() < 16, "the short form of xxh32");
    let mut hash = P[4].wrapping_add(u32::try_from(descriptor.len()).expect("short"));
    let (words, bytes) = descriptor.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(P[2]));
        hash = hash.rotate_left(17).wrapping_mul(P[3]);
    }
    for &byte in bytes {
        hash = hash.wrapping_add(u32::from(byte).wrapping_mul(P[4]));
        hash = hash.rotate_left(11).wrapping_mul(P[0]);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(P[1]);
    hash = (hash ^ (hash >> 13)).wrapping_mul(P[2]);
    (hash ^ (hash >> 16)).to_le_bytes()[1]
}

fn unpack_snappy(payload: &[u8]) -> Result<Vec<u8>, String> {
    let raw =
        |block: &[u8]| snap::raw::Decoder::new().decompress_vec(block).map_err(|e| e.to_string());
    if payload.len() < 16 || payload[..8] != XERIAL_HEADER[..8] {
        return raw(payload);
    }
    let mut out = Vec::new();
    let mut rest = &payload[16..];
    while let Some((word, behind)) = rest.split_first_chunk::<4>() {
        if *word == XERIAL_HEADER[..4] {
            rest = rest.get(16..).ok_or("a header is cut")?;
            continue;
        }
        let n = u32::from_be_bytes(*word);
        let n = usize::try_from(n).map_err(|e| e.to_string())?;
        out.extend(raw(behind.get(..n).ok_or("a block is cut")?)?);
        rest = &behind[n..];
    }
    Ok(out)
}
