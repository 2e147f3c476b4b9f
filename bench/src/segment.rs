//! Segments in memory, and two ways to walk them.

use logseg_core::crc32c::crc32c;
use logseg_core::{
    BatchReader, Batches, Builtin, Codec, Cpu, Event, Magic, Piece, Source, Unpacker,
};
use std_host::codec_spec::CodecSpec;
use std_host::recompress::Recompressor;

use crate::{Bare, batches, corpus};

/// Of one codec: batches as they are in the corpus, or joined to large ones.
pub struct Segment {
    /// The bytes, at least as many as were asked for.
    pub bytes: Vec<u8>,
    /// Records in it.
    pub records: u64,
}

/// Bytes of the records sections that are joined to one of [`Segment::large`].
pub const LARGE: usize = 1 << 20;

impl Segment {
    /// The batches of four segments in turn, recompressed, until there are `len` bytes.
    ///
    /// # Panics
    ///
    /// If the corpus is not there.
    #[must_use]
    pub fn of(codec: Codec, len: usize) -> Self {
        Self::make(codec, len, 1)
    }

    /// The same with records sections joined to [`LARGE`] bytes. Offset deltas then
    /// start over within a batch, which readers do not look at.
    ///
    /// # Panics
    ///
    /// As [`Segment::of`].
    #[must_use]
    pub fn large(codec: Codec, len: usize) -> Self {
        Self::make(codec, len, LARGE)
    }

    fn make(codec: Codec, len: usize, least: usize) -> Self {
        let sources = ["webhooks-snappy", "levels", "flights-zstd", "birdstrikes-mixed"]
            .map(|name| batches(&corpus(&format!("{name}.log"))));
        let most = sources.iter().map(Vec::len).max().unwrap_or(0);
        let mut bare = Bare::default();
        let mut packer = (codec != Codec::None)
            .then(|| Recompressor::new(CodecSpec::new(codec).expect("a codec")));
        let mut entries = Vec::new();
        let (mut section, mut count, mut packed) = (Vec::new(), 0u32, Vec::new());
        // Short segments start over, so that every kind is there all the way.
        for at in 0..most {
            for source in &sources {
                let batch = &source[at % source.len()];
                section.extend_from_slice(bare.section(batch));
                count += u32::from_be_bytes(batch[57..61].try_into().expect("4 bytes"));
                if section.len() < least {
                    continue;
                }
                match &mut packer {
                    Some(packer) => {
                        packer.compress(&section, Magic::V2, &mut packed).expect("it compresses")
                    }
                    None => packed.clone_from(&section),
                }
                let mut entry = batch[..61].to_vec();
                entry.extend_from_slice(&packed);
                entry[8..12].copy_from_slice(&(49 + packed.len() as u32).to_be_bytes());
                entry[22] = entry[22] & !7 | codec.id();
                entry[57..61].copy_from_slice(&count.to_be_bytes());
                let crc = crc32c(Cpu::detect(), &entry[21..]);
                entry[17..21].copy_from_slice(&crc.to_be_bytes());
                entries.push((entry, u64::from(count)));
                section.clear();
                count = 0;
            }
        }
        let mut segment = Self { bytes: Vec::with_capacity(len + (2 << 20)), records: 0 };
        for (entry, count) in entries.iter().cycle() {
            segment.bytes.extend_from_slice(entry);
            segment.records += count;
            if segment.bytes.len() >= len {
                break;
            }
        }
        segment
    }
}

/// What a walk has seen: enough that nothing of it can be left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Records, those in pieces too.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

impl Seen {
    fn field(&mut self, field: Option<&[u8]>) {
        self.bytes += field.map_or(0, <[u8]>::len) as u64;
    }
}

/// Walks with an unpacker; `more` gives a source its input.
fn walk<S: Source>(
    unpacker: &mut Unpacker<'_, &mut Builtin<'_>>,
    source: &mut S,
    mut more: impl FnMut(&mut S),
) -> Seen {
    let mut seen = Seen::default();
    loop {
        match unpacker.poll(source).expect("a good segment") {
            Event::NeedInput => more(source),
            Event::Record(record) => {
                seen.records += 1;
                seen.field(record.key);
                seen.field(record.value);
            }
            Event::Piece(Piece::Start { .. }) => seen.records += 1,
            Event::Piece(Piece::Key(part) | Piece::Value(part)) => seen.field(Some(part)),
            Event::BatchEnd(end) => end.verdict.expect("a good batch"),
            Event::End(_) => return seen,
            Event::Batch(_) | Event::Piece(_) => {}
        }
    }
}

/// The slice source and an unpacker.
pub fn slice(segment: &[u8], codecs: &mut Builtin<'_>, window: &mut [u8]) -> Seen {
    let mut batches = Batches::new(segment, Cpu::detect());
    walk(&mut Unpacker::new(codecs, window), &mut batches, |_| {})
}

/// The slice source alone; uncompressed batches only.
///
/// # Panics
///
/// If the segment is not good.
#[must_use]
pub fn records(segment: &[u8]) -> Seen {
    let mut seen = Seen::default();
    for batch in Batches::new(segment, Cpu::detect()) {
        for record in batch.and_then(|batch| batch.records()).expect("a good batch") {
            let record = record.expect("a good record");
            seen.records += 1;
            seen.field(record.key);
            seen.field(record.value);
        }
    }
    seen
}

/// The streaming source over `buffer`, given pieces of 64 KiB, and an unpacker.
pub fn stream(
    mut segment: &[u8],
    codecs: &mut Builtin<'_>,
    buffer: &mut [u8],
    window: &mut [u8],
) -> Seen {
    let mut piece: &[u8] = &[];
    let mut reader = BatchReader::new(buffer, Cpu::detect());
    walk(&mut Unpacker::new(codecs, window), &mut reader, |reader| {
        if piece.is_empty() {
            if segment.is_empty() {
                return reader.finish();
            }
            (piece, segment) = segment.split_at(segment.len().min(64 << 10));
        }
        let n = reader.push(piece);
        piece = &piece[n..];
    })
}
