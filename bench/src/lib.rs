//! What the benchmarks share: batches and records of a segment, the bare library calls
//! that `analyze` cannot do without, and the peers.

pub mod building;
pub mod crc;
pub mod payload;
pub mod peers;
pub mod prefix;
pub mod ratios;
pub mod segment;

use std::fs;
use std::path::{Path, PathBuf};

use flate2::{Compress, Compression, FlushCompress};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, DCtx, InBuffer, OutBuffer, ResetDirective};

/// A segment of the corpus.
#[must_use]
pub fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/segments").join(name)
}

/// The v2 batches of a segment, as ranges; found by their lengths alone.
///
/// # Panics
///
/// If the file is not there, or holds anything but whole v2 batches.
#[must_use]
pub fn batches(path: &Path) -> Vec<Vec<u8>> {
    split(&fs::read(path).expect("the segment is there"))
}

/// As [`batches`], of bytes.
///
/// # Panics
///
/// If they hold anything but whole v2 batches.
#[must_use]
pub fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[16], 2, "only v2 is compared");
        let size = 12 + u32::from_be_bytes(bytes[8..12].try_into().expect("4 bytes")) as usize;
        batches.push(bytes[..size].to_vec());
        bytes = &bytes[size..];
    }
    batches
}

/// The records sections of a segment of the corpus, decompressed and joined.
///
/// # Panics
///
/// If the segment is not there.
#[must_use]
pub fn plain(name: &str) -> Vec<u8> {
    let (mut bare, mut plain) = (Bare::default(), Vec::new());
    for batch in batches(&corpus(&format!("{name}.log"))) {
        plain.extend_from_slice(bare.section(&batch));
    }
    plain
}

/// The records of a section, each with its length field.
///
/// # Panics
///
/// If they are no such.
pub fn split_records(mut section: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, at) = (!section.is_empty()).then(|| prefix::varint(section))?;
        let (record, rest) = section.split_at(at + usize::try_from(length).expect("a length"));
        section = rest;
        Some(record)
    })
}

/// The libraries that `analyze` calls, with contexts kept as it keeps them, and
/// nothing else: no framing, no checksum of batches, no look at the records.
pub struct Bare {
    inflate: libdeflater::Decompressor,
    unsnap: snap::raw::Decoder,
    unzstd: DCtx<'static>,
    deflate: Compress,
    snap: snap::raw::Encoder,
    zstd: CCtx<'static>,
    plain: Vec<u8>,
    out: Vec<u8>,
}

impl Default for Bare {
    fn default() -> Self {
        let mut zstd = CCtx::create();
        zstd.set_parameter(zstd_safe::CParameter::CompressionLevel(3)).expect("level 3");
        Self {
            inflate: libdeflater::Decompressor::new(),
            unsnap: snap::raw::Decoder::new(),
            unzstd: DCtx::create(),
            deflate: Compress::new(Compression::new(6), false),
            snap: snap::raw::Encoder::new(),
            zstd,
            plain: vec![0; 8 << 20],
            out: vec![0; 8 << 20],
        }
    }
}

impl Bare {
    /// Decompresses a batch and compresses it with gzip, snappy, lz4 and zstd at their
    /// defaults. Gives the four sizes, the 61 bytes of the header included.
    ///
    /// # Panics
    ///
    /// On anything that the segments of the corpus do not hold.
    pub fn run(&mut self, batch: &[u8]) -> [u64; 4] {
        let payload = &batch[61..];
        let n = self.unpack(batch[22] & 7, payload);
        let Self { deflate, snap, zstd, plain, out, .. } = self;
        let plain = &plain[..n];
        deflate.reset();
        deflate.compress(plain, out, FlushCompress::Finish).expect("deflate");
        let gzip = 18 + deflate.total_out();
        let snappy = 16
            + plain
                .chunks(32 << 10)
                .map(|block| 4 + snap.compress(block, out).expect("snappy") as u64)
                .sum::<u64>();
        let lz4 = 11
            + plain
                .chunks(64 << 10)
                .map(|block| {
                    let n = lzzzz::lz4::compress(block, out, 1).expect("lz4");
                    4 + n.min(block.len()) as u64
                })
                .sum::<u64>();
        zstd.reset(ResetDirective::SessionOnly).expect("reset");
        let mut to = OutBuffer::around(out.as_mut_slice());
        let mut from = InBuffer::around(plain);
        while from.pos() < plain.len() {
            zstd.compress_stream2(&mut to, &mut from, ZSTD_EndDirective::ZSTD_e_continue)
                .expect("zstd");
        }
        // Java's stream flushes before it closes.
        while zstd.compress_stream2(&mut to, &mut from, ZSTD_EndDirective::ZSTD_e_flush) != Ok(0) {}
        while zstd.compress_stream2(&mut to, &mut from, ZSTD_EndDirective::ZSTD_e_end) != Ok(0) {}
        let zstd = to.pos() as u64;
        [gzip, snappy, lz4, zstd].map(|size| 61 + size)
    }

    /// The records section of a batch, decompressed.
    ///
    /// # Panics
    ///
    /// As [`Bare::run`].
    pub fn section(&mut self, batch: &[u8]) -> &[u8] {
        let n = self.unpack(batch[22] & 7, &batch[61..]);
        &self.plain[..n]
    }

    /// Decompresses into `plain`; gives the length.
    fn unpack(&mut self, codec: u8, payload: &[u8]) -> usize {
        let Self { inflate, unsnap, unzstd, plain, .. } = self;
        match codec {
            0 => {
                plain[..payload.len()].copy_from_slice(payload);
                payload.len()
            }
            1 => inflate.gzip_decompress(payload, plain).expect("gzip"),
            2 => {
                let (mut rest, mut at) = (&payload[16..], 0);
                while let Some((len, behind)) = rest.split_first_chunk::<4>() {
                    let (block, behind) = behind.split_at(u32::from_be_bytes(*len) as usize);
                    at += unsnap.decompress(block, &mut plain[at..]).expect("snappy");
                    rest = behind;
                }
                at
            }
            3 => {
                let (mut rest, mut at) = (&payload[7..], 0);
                while let Some((word, behind)) = rest.split_first_chunk::<4>() {
                    let word = u32::from_le_bytes(*word);
                    let (block, behind) = behind.split_at((word & 0x7fff_ffff) as usize);
                    if word >> 31 == 1 {
                        plain[at..at + block.len()].copy_from_slice(block);
                        at += block.len();
                    } else if !block.is_empty() {
                        let room = &mut plain[at..at + (64 << 10)];
                        at += lzzzz::lz4::decompress(block, room).expect("lz4");
                    }
                    rest = behind;
                }
                at
            }
            _ => {
                unzstd.reset(ResetDirective::SessionOnly).expect("reset");
                let mut to = OutBuffer::around(plain.as_mut_slice());
                let mut from = InBuffer::around(payload);
                while from.pos() < payload.len() {
                    unzstd.decompress_stream(&mut to, &mut from).expect("zstd");
                }
                to.pos()
            }
        }
    }
}
