//! Collects what a reader tells, and drives bare decoders.

use logseg_core::batch::BatchHeader;
use logseg_core::codec::{CodecError, CodecErrorKind, zstd};
use logseg_core::error::ErrorKind;
use logseg_core::{
    Batch, BatchEnd, BatchReader, Batches, Builtin, Codec, Codecs, Cpu, Decompress, Error, Event,
    Limits, Offset, Pause, Piece, Record, Records, Tail, Unpacker, Window,
};

use crate::build::Rec;
use crate::chunks::{Chunking, Random};

/// What was told of a batch.
#[derive(Debug, Clone)]
pub struct ReadBatch {
    /// Its header.
    pub header: BatchHeader,
    /// Its records, those in pieces put together.
    pub records: Vec<Rec>,
    /// How many came in pieces, finished or not.
    pub pieced: usize,
    /// How it ended.
    pub end: BatchEnd,
}

impl ReadBatch {
    /// Name of the kind of its error.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        self.end.verdict.err().map(|error| error.name())
    }
}

/// What was told of a segment.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Batches in their order.
    pub batches: Vec<ReadBatch>,
    /// Errors between batches: at most one, since the reader ends there.
    pub errors: Vec<Error>,
    /// How it ended.
    pub tail: Tail,
}

impl Reading {
    /// Records of the good batches.
    pub fn records(&self) -> impl Iterator<Item = &Rec> {
        self.batches.iter().filter(|b| b.end.verdict.is_ok()).flat_map(|b| &b.records)
    }
}

/// Owns what a record borrows. Of a relative offset it keeps the number.
#[must_use]
pub fn owned(record: &Record<'_>) -> Rec {
    Rec {
        offset: record.offset.resolve(0),
        timestamp: record.timestamp,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record.headers.map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect(),
    }
}

/// Puts a record together from its pieces, and holds them to their order.
#[derive(Debug, Default)]
struct Assembly {
    record: Rec,
    /// What is still to come of the field that has started.
    left: u32,
    headers: u32,
    size: u64,
    place: Place,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Key,
    Value,
    Headers,
    HeaderKey,
    HeaderValue,
}

impl Assembly {
    fn chunk(&mut self, place: Place, part: &[u8]) {
        assert_eq!(self.place, place, "a chunk of another field");
        assert!(!part.is_empty(), "an empty chunk");
        self.left = self
            .left
            .checked_sub(u32::try_from(part.len()).expect("fits a u32"))
            .expect("too much");
        let field = match place {
            Place::Key => self.record.key.as_mut(),
            Place::Value => self.record.value.as_mut(),
            Place::HeaderKey => self.record.headers.last_mut().map(|header| &mut header.0),
            _ => self.record.headers.last_mut().and_then(|header| header.1.as_mut()),
        };
        field.expect("a field that is not null").extend(part);
    }

    fn next(&mut self, from: &[Place], to: Place, len: u32) {
        assert!(from.contains(&self.place), "{to:?} behind {:?}", self.place);
        assert_eq!(self.left, 0, "{:?} is not complete", self.place);
        (self.place, self.left) = (to, len);
    }

    /// The record and its size, if the piece completes it.
    fn add(&mut self, piece: &Piece<'_>) -> Option<(Rec, u64)> {
        let some = |len: Option<u32>| len.map(|_| Vec::new());
        match *piece {
            Piece::Start { offset, timestamp, size, key_len } => {
                self.next(&[Place::Outside], Place::Key, key_len.unwrap_or(0));
                self.size = size;
                self.record = Rec {
                    offset: offset.resolve(0),
                    timestamp,
                    key: some(key_len),
                    ..Rec::default()
                };
            }
            Piece::Key(part) => self.chunk(Place::Key, part),
            Piece::ValueStart(len) => {
                self.next(&[Place::Key], Place::Value, len.unwrap_or(0));
                self.record.value = some(len);
            }
            Piece::Value(part) => self.chunk(Place::Value, part),
            Piece::Headers(n) => {
                self.next(&[Place::Value], Place::Headers, 0);
                self.headers = n;
            }
            Piece::HeaderStart(len) => {
                self.next(&[Place::Headers, Place::HeaderValue], Place::HeaderKey, len);
                self.headers = self.headers.checked_sub(1).expect("too many headers");
                self.record.headers.push((Vec::new(), None));
            }
            Piece::HeaderKey(part) => self.chunk(Place::HeaderKey, part),
            Piece::HeaderValueStart(len) => {
                self.next(&[Place::HeaderKey], Place::HeaderValue, len.unwrap_or(0));
                self.record.headers.last_mut().expect("a header").1 = some(len);
            }
            Piece::HeaderValue(part) => self.chunk(Place::HeaderValue, part),
            Piece::End => {
                self.next(&[Place::Headers, Place::HeaderValue], Place::Outside, 0);
                assert_eq!(self.headers, 0, "headers are missing");
                return Some((std::mem::take(&mut self.record), self.size));
            }
        }
        None
    }
}

/// Collects events, and checks what must hold whatever is read: their order, that of
/// pieces, counts and sizes of good batches.
#[derive(Debug, Default)]
struct Collector {
    batches: Vec<ReadBatch>,
    errors: Vec<Error>,
    open: Option<OpenBatch>,
    assembly: Assembly,
    /// Events so far, and bytes that came with them.
    events: u64,
    bytes: u64,
}

#[derive(Debug)]
struct OpenBatch {
    header: BatchHeader,
    records: Vec<Rec>,
    pieced: usize,
    bytes: u64,
    /// Whether offsets are relative: all of them, or none.
    relative: Option<bool>,
}

impl OpenBatch {
    fn offset(&mut self, offset: Offset) {
        let relative = offset.absolute().is_none();
        assert_eq!(*self.relative.get_or_insert(relative), relative, "offsets of both kinds");
    }
}

impl Collector {
    fn error(&mut self, error: Error) {
        assert!(self.open.is_none(), "an error of framing within a batch: {error}");
        self.errors.push(error);
        assert_eq!(self.errors.len(), 1, "framing errors end the walk");
    }

    /// True if the source has to be given more.
    fn event(&mut self, event: Event<'_>) -> Result<bool, Tail> {
        self.events += 1;
        match event {
            Event::NeedInput => return Ok(true),
            Event::Batch(header) => {
                assert!(self.open.is_none(), "a batch within a batch");
                self.assembly = Assembly::default();
                let (records, pieced, bytes, relative) = (Vec::new(), 0, 0, None);
                self.open = Some(OpenBatch { header, records, pieced, bytes, relative });
            }
            Event::Record(record) => {
                assert_eq!(self.assembly.place, Place::Outside, "a record within a record");
                let open = self.open.as_mut().expect("a record of a batch");
                open.offset(record.offset);
                open.bytes += record.size as u64;
                self.bytes += record.size as u64;
                open.records.push(owned(&record));
            }
            Event::Piece(piece) => {
                let open = self.open.as_mut().expect("a piece of a batch");
                if let Piece::Start { offset, .. } = piece {
                    open.offset(offset);
                    open.pieced += 1;
                }
                if let Some((record, size)) = self.assembly.add(&piece) {
                    open.bytes += size;
                    self.bytes += size;
                    open.records.push(record);
                }
            }
            Event::BatchEnd(end) => {
                let open = self.open.take().expect("the end of a batch");
                let OpenBatch { header, mut records, pieced, bytes, relative } = open;
                if relative == Some(true) {
                    for record in &mut records {
                        record.offset = Offset::Relative(record.offset).resolve(end.offset_base);
                    }
                } else if relative.is_some() {
                    assert_eq!(end.offset_base, 0, "absolute offsets: {header:?}");
                }
                if end.verdict.is_ok() {
                    assert_eq!(self.assembly.place, Place::Outside, "a record is not complete");
                    assert_eq!(end.records, records.len() as u64, "{header:?}");
                    assert_eq!(end.records_bytes, bytes, "{header:?}");
                    let offsets = records.first().zip(records.last());
                    assert_eq!(end.offsets, offsets.map(|(a, b)| (a.offset, b.offset)));
                }
                self.batches.push(ReadBatch { header, records, pieced, end });
            }
            Event::End(tail) => {
                assert!(self.open.is_none(), "the end within a batch");
                return Err(tail);
            }
        }
        Ok(false)
    }

    fn finish(self, tail: Tail) -> Reading {
        Reading { batches: self.batches, errors: self.errors, tail }
    }
}

/// The records of a batch by the slice API, with every backend that the machine has, and
/// both by stepping and by folding: all must agree.
///
/// # Panics
///
/// If they do not.
pub fn walk<'a, 'p>(
    batch: &Batch<'a>,
    records: impl Fn(&Batch<'a>) -> Result<Records<'p>, Error>,
) -> Result<Vec<Rec>, Error> {
    let mut answer = None;
    for cpu in Cpu::detect().tiers() {
        let records = records(&Batch::new(*batch.header(), batch.bytes(), cpu))?;
        let mut stepped = Vec::new();
        for record in records.clone() {
            stepped.push(record.map(|record| owned(&record)));
        }
        let folded = records.fold(Vec::new(), |mut all, record| {
            all.push(record.map(|record| owned(&record)));
            all
        });
        assert_eq!(stepped, folded, "{cpu:?}");
        assert_eq!(answer.get_or_insert_with(|| folded.clone()), &folded, "{cpu:?}");
    }
    answer.unwrap_or_default().into_iter().collect()
}

/// Reads a segment to its end, and checks what must hold whatever is in it: the order
/// of events and pieces, counts and sizes of good batches, and that it does end.
///
/// # Panics
///
/// If any of that does not hold.
pub fn read_with<C: Codecs>(segment: &[u8], unpacker: &mut Unpacker<'_, C>) -> Reading {
    let mut source = Batches::new(segment, Cpu::detect());
    let mut collector = Collector::default();
    loop {
        match unpacker.poll(&mut source) {
            Err(error) => collector.error(error),
            Ok(event) => match collector.event(event) {
                Ok(more) => assert!(!more, "a slice has all of its input"),
                Err(tail) => {
                    let again = unpacker.poll(&mut source);
                    assert!(matches!(again, Ok(Event::End(same)) if same == tail), "it stays");
                    return collector.finish(tail);
                }
            },
        }
    }
}

/// Gives `source` some of `bytes`; how much it took.
pub fn feed<B: AsRef<[u8]> + AsMut<[u8]>>(
    source: &mut BatchReader<B>,
    bytes: &[u8],
    by_push: bool,
) -> usize {
    if by_push {
        return source.push(bytes);
    }
    let spare = source.spare();
    let n = spare.len().min(bytes.len());
    spare[..n].copy_from_slice(&bytes[..n]);
    source.commit(n);
    n
}

/// As [`read_with`], through a [`BatchReader`] that is given `segment` in pieces: what
/// does not fit its buffer is given again when it asks for more.
///
/// A batch that the input ends in passes through without being one in the end: it is
/// left out here, and its error, if it says more than the tail does, is one of framing.
///
/// # Panics
///
/// As [`read_with`]; if the reader asks for input and has no room for it, or asks on when
/// there is none; or if it gives more events than there can be.
pub fn stream_with<C: Codecs, B: AsRef<[u8]> + AsMut<[u8]>>(
    segment: &[u8],
    chunking: Chunking,
    source: &mut BatchReader<B>,
    unpacker: &mut Unpacker<'_, C>,
) -> Reading {
    let mut collector = Collector::default();
    let mut pieces = chunking.cut(segment).into_iter();
    let mut piece: &[u8] = &[];
    let (mut fed, mut by_push, mut finished) = (0u64, false, false);
    let tail = loop {
        match unpacker.poll(source) {
            Err(error) => collector.error(error),
            Ok(event) => match collector.event(event) {
                Err(tail) => break tail,
                Ok(false) => {}
                Ok(true) => {
                    assert!(!finished, "asks for more than there is");
                    if piece.is_empty() {
                        piece = pieces.next().unwrap_or_default();
                    }
                    if piece.is_empty() {
                        source.finish();
                        finished = true;
                        continue;
                    }
                    by_push = !by_push;
                    let n = feed(source, piece, by_push);
                    assert!(n > 0, "asks for input and has no room");
                    piece = &piece[n..];
                    fed += n as u64;
                }
            },
        }
        // A poll asks, or gives something: a field of a record takes a byte at least.
        let most = 100 + 4 * (fed + collector.bytes + collector.assembly.size);
        assert!(collector.events <= most + 20 * fed, "{} events", collector.events);
    };
    let again = unpacker.poll(source);
    assert!(matches!(again, Ok(Event::End(same)) if same == tail), "it stays");
    if let Some(last) = collector.batches.last()
        && let Err(error) = last.end.verdict
    {
        match error.kind() {
            ErrorKind::PartialBatch { size } => {
                assert_eq!((size, error.position()), (last.header.size, last.header.position + 8));
                collector.batches.pop();
            }
            ErrorKind::NotASegment { .. } => {
                collector.batches.pop();
                collector.error(error);
            }
            _ => {}
        }
    }
    let passed = |batch: &ReadBatch| batch.end.verdict.map_err(|error| error.kind());
    let partial =
        |kind| matches!(kind, ErrorKind::PartialBatch { .. } | ErrorKind::NotASegment { .. });
    assert!(!collector.batches.iter().any(|batch| passed(batch).is_err_and(partial)));
    collector.finish(tail)
}

/// The law: what was told of a segment in pieces is what was told of it as a whole.
///
/// What it cost may differ: a buffer may be too small for a control record, which does
/// not come in pieces, and for a copy of snappy from farther back than its encoders go;
/// and a limit on the output may be met before or behind a fault.
///
/// # Panics
///
/// If they are not the same.
pub fn assert_same(whole: &Reading, stream: &Reading, what: &str) {
    assert_eq!(whole.errors, stream.errors, "{what}");
    assert_eq!(whole.tail, stream.tail, "{what}");
    assert_eq!(whole.batches.len(), stream.batches.len(), "{what}");
    for (a, b) in whole.batches.iter().zip(&stream.batches) {
        assert_eq!(a.header, b.header, "{what}");
        let limit = |batch: &ReadBatch| {
            let error = batch.end.verdict.err().map(|error| error.kind());
            matches!(error, Some(ErrorKind::TooMuchOutput { .. }))
        };
        let may_be_small = a.header.is_control() || a.header.codec() == Ok(Codec::Snappy);
        if b.fault() == Some("decompress_limit_buffer") && may_be_small {
            continue;
        }
        if a.end.verdict.is_err() && b.end.verdict.is_err() && (limit(a) || limit(b)) {
            continue;
        }
        assert_eq!(a.end.verdict, b.end.verdict, "{what}: {:?}", a.header);
        if a.end.verdict.is_ok() {
            assert_eq!(a.end.records, b.end.records, "{what}: {:?}", a.header);
            assert_eq!(a.end.records_bytes, b.end.records_bytes, "{what}: {:?}", a.header);
            assert_eq!(a.end.offsets, b.end.offsets, "{what}: {:?}", a.header);
            assert!(a.records == b.records, "{what}: {:?}", a.header);
        }
    }
}

/// As [`read_with`], with all of core's own decoders and a window of this size. zstd
/// gets what the largest window takes that it accepts, of which pages are only used as
/// far as it writes to them.
#[must_use]
pub fn read(segment: &[u8], window: usize, limits: Limits) -> Reading {
    let mut workspace = vec![0; zstd::workspace_len(1 << zstd::WINDOW_LOG_MAX)];
    let mut window = vec![0xa5; window];
    let codecs = Builtin::new().with_zstd(&mut workspace);
    let mut unpacker = Unpacker::new(codecs, &mut window).with_limits(limits);
    read_with(segment, &mut unpacker)
}

/// Decodes `input`, cut as told, through a window. Between the steps some of the
/// output is read and some is left, by the chunking's seed.
///
/// # Errors
///
/// What is wrong, without the position: that counts from the start of a chunk.
///
/// # Panics
///
/// If the decoder does not come forward.
pub fn decode(
    decoder: &mut dyn Decompress,
    input: &[u8],
    chunking: Chunking,
    window: &mut [u8],
) -> Result<Vec<u8>, CodecErrorKind> {
    decode_some(decoder, input, chunking, window, usize::MAX)
}

/// As [`decode`], but ends once there are `most` bytes, whatever comes behind them.
///
/// # Errors
///
/// As [`decode`].
///
/// # Panics
///
/// As [`decode`].
pub fn decode_some(
    decoder: &mut dyn Decompress,
    input: &[u8],
    chunking: Chunking,
    window: &mut [u8],
    most: usize,
) -> Result<Vec<u8>, CodecErrorKind> {
    let mut window = Window::new(window);
    let mut out = Vec::new();
    let mut random = Random(match chunking {
        Chunking::Random(seed) => !seed,
        _ => 1,
    });
    decoder.reset();
    let mut pieces = chunking.cut(input);
    pieces.push(&[]);
    let mut idle = 0;
    for mut piece in pieces {
        let last = piece.is_empty();
        loop {
            let before = window.unread_len();
            let progress =
                decoder.advance(piece, &mut window).map_err(|error: CodecError| error.kind)?;
            assert!(progress.consumed <= piece.len(), "more than there is");
            let produced = window.unread_len() - before;
            piece = &piece[progress.consumed..];
            // Some of it stays unread, unless that would leave no room.
            let unread = window.unread_len();
            let full = progress.pause == Pause::WindowFull;
            let take = if full || last || random.below(3) > 0 { unread } else { unread / 2 };
            out.extend(&window.unread()[..take]);
            window.consume(take);
            if out.len() >= most {
                out.truncate(most);
                return Ok(out);
            }
            idle = if progress.consumed + produced + take > 0 { 0 } else { idle + 1 };
            assert!(idle < 4, "no progress: {progress:?} with {} bytes of input", piece.len());
            match progress.pause {
                Pause::Finished => {
                    out.extend(window.unread());
                    return Ok(out);
                }
                Pause::WindowFull => {
                    let spare = window.spare_len();
                    window.slide(decoder.history());
                    if window.spare_len() == spare && produced == 0 {
                        let (need, have) = (decoder.history() as u64 + 1, window.capacity() as u64);
                        return Err(CodecErrorKind::BufferTooSmall { need, have });
                    }
                }
                Pause::InputDry => {
                    assert!(piece.is_empty(), "dry with {} bytes of input", piece.len());
                }
            }
            // An empty input would say that this is the end.
            if piece.is_empty() && !last {
                break;
            }
        }
    }
    unreachable!("the empty piece ends in an error or in the end")
}
