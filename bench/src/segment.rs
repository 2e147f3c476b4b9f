//! Segments in memory, and the ways to walk them.

use logseg_core::crc32c::crc32c;
use logseg_core::{
    Batch, BatchReader, Batches, Builtin, Codec, CrcPolicy, Error, Event, Limits, Magic, Piece,
    Records, Source, Unpacker,
};
use std_host::codec_spec::CodecSpec;
use std_host::codecs::{HostCodecs, Plain};
use std_host::cpu;
use std_host::recompress::Recompressor;

use crate::{Bare, batches, corpus, plain, split_records};

/// Of one codec: batches as they are in the corpus, or put together anew.
pub struct Segment {
    /// The bytes, at least as many as were asked for.
    pub bytes: Vec<u8>,
    /// Records in it.
    pub records: u64,
}

/// Bytes of the records sections that are joined to one of [`Segment::large`].
pub const LARGE: usize = 1 << 20;

/// A batch, before it is repeated.
struct Entry {
    bytes: Vec<u8>,
    records: u64,
    /// Bytes of its records section.
    plain: usize,
}

/// Makes batches of records sections.
struct Packer {
    codec: Codec,
    /// None for no compression.
    recompressor: Option<Recompressor>,
    packed: Vec<u8>,
}

impl Packer {
    fn new(codec: Codec) -> Self {
        let recompressor = (codec != Codec::None)
            .then(|| Recompressor::new(CodecSpec::new(codec).expect("a codec")));
        Self { codec, recompressor, packed: Vec::new() }
    }

    /// A batch with the header of another one; its offsets and times stay.
    fn entry(&mut self, header: &[u8], section: &[u8], count: u32) -> Entry {
        match &mut self.recompressor {
            Some(recompressor) => {
                recompressor.compress(section, Magic::V2, &mut self.packed).expect("it compresses")
            }
            None => section.clone_into(&mut self.packed),
        }
        let mut bytes = header[..61].to_vec();
        bytes.extend_from_slice(&self.packed);
        bytes[8..12].copy_from_slice(&(49 + self.packed.len() as u32).to_be_bytes());
        bytes[22] = bytes[22] & !7 | self.codec.id();
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        let crc = crc32c(cpu::detect(), &bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        Entry { bytes, records: count.into(), plain: section.len() }
    }
}

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

    /// The records of a [`Mix`], `each` of them a batch, until their records sections
    /// have `len` bytes. Offset deltas are as in [`Segment::large`].
    ///
    /// # Panics
    ///
    /// As [`Segment::of`].
    #[must_use]
    pub fn grouped(mix: Mix, codec: Codec, each: usize, len: usize) -> Self {
        let header = &batches(&corpus("levels.log"))[0];
        let mut packer = Packer::new(codec);
        let (records, mut entries, mut plain) = (mix.records(), Vec::new(), 0);
        for group in records.chunks_exact(each) {
            entries.push(packer.entry(header, &group.concat(), each as u32));
            plain += entries.last().map_or(0, |entry| entry.plain);
            if plain >= len {
                break;
            }
        }
        Self::repeat(&entries, len, |entry| entry.plain)
    }

    fn make(codec: Codec, len: usize, least: usize) -> Self {
        let sources = ["webhooks-snappy", "levels", "flights-zstd", "birdstrikes-mixed"]
            .map(|name| batches(&corpus(&format!("{name}.log"))));
        let most = sources.iter().map(Vec::len).max().unwrap_or(0);
        let (mut bare, mut packer) = (Bare::default(), Packer::new(codec));
        let (mut entries, mut section, mut count) = (Vec::new(), Vec::new(), 0u32);
        // Short segments start over, so that every kind is there all the way.
        for at in 0..most {
            for source in &sources {
                let batch = &source[at % source.len()];
                section.extend_from_slice(bare.section(batch));
                count += u32::from_be_bytes(batch[57..61].try_into().expect("4 bytes"));
                if section.len() < least {
                    continue;
                }
                entries.push(packer.entry(batch, &section, count));
                section.clear();
                count = 0;
            }
        }
        Self::repeat(&entries, len, |entry| entry.bytes.len())
    }

    /// Batch after batch, from the first one again behind the last, until their sizes
    /// come to `len`.
    fn repeat(entries: &[Entry], len: usize, size: impl Fn(&Entry) -> usize) -> Self {
        let mut segment = Self { bytes: Vec::with_capacity(len + (2 << 20)), records: 0 };
        let mut sum = 0;
        for entry in entries.iter().cycle() {
            segment.bytes.extend_from_slice(&entry.bytes);
            segment.records += entry.records;
            sum += size(entry);
            if sum >= len {
                break;
            }
        }
        segment
    }
}

/// Records of the corpus, by their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Flights: 64 bytes on average, no headers.
    Small,
    /// Three of the flights, seven bird strikes of `levels.log`, and so on: 313 bytes on
    /// average, no headers.
    Mid,
    /// Bird strikes: 516 bytes on average, two headers each.
    Headers,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Mid, Self::Headers];

    /// Of its benchmark group.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Mid => "mid",
            Self::Headers => "headers",
        }
    }

    /// Records that a batch has of it, about as many as in the corpus; for mid-sized ones
    /// what the marks are about.
    #[must_use]
    pub const fn batch(self) -> usize {
        match self {
            Self::Small => 240,
            Self::Mid | Self::Headers => 48,
        }
    }

    /// The records, as they lie in a records section.
    fn records(self) -> Vec<Vec<u8>> {
        let of = |name| split_records(&plain(name)).map(<[u8]>::to_vec).collect::<Vec<_>>();
        match self {
            Self::Small => of("flights-zstd"),
            Self::Mid => {
                let (small, large) = (of("flights-zstd"), of("levels"));
                let turns = small.chunks(3).zip(large.chunks(7));
                turns.flat_map(|(few, most)| [few, most].concat()).collect()
            }
            Self::Headers => of("birdstrikes-mixed"),
        }
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
    /// Counts a record that is there whole.
    pub(crate) fn record(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.records += 1;
        self.field(key);
        self.field(value);
    }

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
            Event::Record(record) => seen.record(record.key, record.value),
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
    let mut batches = Batches::new(segment, cpu::detect());
    walk(&mut Unpacker::new(codecs, window), &mut batches, |_| {})
}

/// As [`slice()`], without the checksums.
pub fn slice_unchecked(segment: &[u8], codecs: &mut Builtin<'_>, window: &mut [u8]) -> Seen {
    let mut batches = Batches::new(segment, cpu::detect());
    let mut unpacker = Unpacker::new(codecs, window).with_crc_policy(CrcPolicy::Skip);
    walk(&mut unpacker, &mut batches, |_| {})
}

/// The slice source alone; uncompressed batches only.
///
/// # Panics
///
/// If the segment is not good.
#[must_use]
pub fn records(segment: &[u8]) -> Seen {
    stepped(segment, Batch::records)
}

#[inline(always)]
fn stepped<'a>(
    segment: &'a [u8],
    records: impl Fn(&Batch<'a>) -> Result<Records<'a>, Error>,
) -> Seen {
    let mut seen = Seen::default();
    for batch in Batches::new(segment, cpu::detect()) {
        for record in batch.and_then(|batch| records(&batch)).expect("a good batch") {
            let record = record.expect("a good record");
            seen.record(record.key, record.value);
        }
    }
    seen
}

/// As [`records`], without the checksums.
///
/// # Panics
///
/// As [`records`].
#[must_use]
pub fn records_unchecked(segment: &[u8]) -> Seen {
    stepped(segment, Batch::records_unchecked)
}

/// As [`records_unchecked`], by folding, which is compiled for what the processor has.
///
/// # Panics
///
/// As [`records`].
#[must_use]
pub fn folded(segment: &[u8]) -> Seen {
    let mut seen = Seen::default();
    for batch in Batches::new(segment, cpu::detect()) {
        let records = batch.and_then(|batch| batch.records_unchecked()).expect("a good batch");
        records.for_each(|record| {
            let record = record.expect("a good record");
            seen.record(record.key, record.value);
        });
    }
    seen
}

/// The slice source, the host's decoders and a buffer for a whole batch, as `analyze`
/// puts them together.
///
/// # Panics
///
/// As [`records`].
pub fn hosted(segment: &[u8], codecs: &mut HostCodecs, plain: &mut Plain) -> Seen {
    let (mut seen, limit) = (Seen::default(), Limits::default().decompressed);
    for batch in Batches::new(segment, cpu::detect()) {
        let batch = batch.expect("a batch");
        batch.check_crc().expect("a good batch");
        let (header, payload) = (batch.header(), batch.payload().expect("a payload"));
        let codec = header.codec().expect("a codec");
        let position = batch.payload_position();
        codecs.unpack(codec, header.magic, payload, position, limit, plain).expect("it unpacks");
        batch.records_in(plain.bytes()).expect("records").for_each(|record| {
            let record = record.expect("a good record");
            seen.record(record.key, record.value);
        });
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
    let mut reader = BatchReader::new(buffer, cpu::detect());
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
