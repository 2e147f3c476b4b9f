//! Collects what a reader tells, and drives bare decoders.

use logseg_core::batch::BatchHeader;
use logseg_core::codec::{CodecError, CodecErrorKind, zstd};
use logseg_core::{
    BatchEnd, Batches, Builtin, Codecs, Cpu, Decompress, Error, Event, Limits, Pause, Piece,
    Record, Tail, Unpacker, Window,
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

/// Owns what a record borrows.
///
/// # Panics
///
/// If its offset is not absolute.
#[must_use]
pub fn owned(record: &Record<'_>) -> Rec {
    Rec {
        offset: record.offset.absolute().expect("an absolute offset"),
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
                    offset: offset.absolute().expect("an absolute offset"),
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

/// Reads a segment to its end, and checks what must hold whatever is in it: the order
/// of events and pieces, counts and sizes of good batches, and that it does end.
///
/// # Panics
///
/// If any of that does not hold.
pub fn read_with<C: Codecs>(segment: &[u8], unpacker: &mut Unpacker<'_, C>) -> Reading {
    let mut source = Batches::new(segment, Cpu::detect());
    let (mut batches, mut errors) = (Vec::new(), Vec::new());
    let mut open: Option<(BatchHeader, Vec<Rec>, usize)> = None;
    let mut assembly = Assembly::default();
    let mut bytes = 0u64;
    loop {
        let event = match unpacker.poll(&mut source) {
            Ok(event) => event,
            Err(error) => {
                assert!(open.is_none(), "an error of framing within a batch: {error}");
                errors.push(error);
                assert_eq!(errors.len(), 1, "framing errors end the walk");
                continue;
            }
        };
        match event {
            Event::NeedInput => panic!("a slice has all of its input"),
            Event::Batch(header) => {
                assert!(open.is_none(), "a batch within a batch");
                (assembly, bytes) = (Assembly::default(), 0);
                open = Some((header, Vec::new(), 0));
            }
            Event::Record(record) => {
                assert_eq!(assembly.place, Place::Outside, "a record within a record");
                let (_, records, _) = open.as_mut().expect("a record of a batch");
                bytes += record.size as u64;
                records.push(owned(&record));
            }
            Event::Piece(piece) => {
                let (_, records, pieced) = open.as_mut().expect("a piece of a batch");
                *pieced += usize::from(matches!(piece, Piece::Start { .. }));
                if let Some((record, size)) = assembly.add(&piece) {
                    bytes += size;
                    records.push(record);
                }
            }
            Event::BatchEnd(end) => {
                let (header, records, pieced) = open.take().expect("the end of a batch");
                if end.verdict.is_ok() {
                    assert_eq!(assembly.place, Place::Outside, "a record is not complete");
                    assert_eq!(end.records, records.len() as u64, "{header:?}");
                    assert_eq!(end.records_bytes, bytes, "{header:?}");
                    let offsets = records.first().zip(records.last());
                    assert_eq!(end.offsets, offsets.map(|(a, b)| (a.offset, b.offset)));
                }
                batches.push(ReadBatch { header, records, pieced, end });
            }
            Event::End(tail) => {
                assert!(open.is_none(), "the end within a batch");
                let again = unpacker.poll(&mut source);
                assert!(matches!(again, Ok(Event::End(same)) if same == tail), "the end stays");
                return Reading { batches, errors, tail };
            }
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
