//! Batches, their codecs and a window, joined into one stream of events.
//!
//! ```text
//!  source ──entry──▶ CRC ──payload──▶ decoder ──window──▶ record parser ──▶ Event
//!                                (none: borrowed from the source)
//! ```
//! Of a compressed batch only a window is in memory at any time. A record that fits
//! into it is handed out whole; a larger one comes in pieces. Whatever is wrong with
//! a batch, the next one is read.

use crate::batch::legacy::{Inner, Message, Span, inner_timestamp, resolve_base};
use crate::batch::record::{
    Layout, Stop, check_message_crc, count_error, effective_timestamp, message_record, past_end,
    record_size,
};
use crate::batch::{Batch, BatchHeader, Control, Magic, Offset, Record};
use crate::batches::Tail;
use crate::codec::{Codec, CodecError, CodecErrorKind, Codecs, Pause};
use crate::cpu::Cpu;
use crate::error::{Error, ErrorKind, RecordFault, WrapperFault};
use crate::varint::{VarintError, decode_varint, decode_varlong};
use crate::window::Window;

/// Whether checksums of batches are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CrcPolicy {
    /// A batch with a wrong CRC gives no record.
    #[default]
    Verify,
    /// Whoever delivered the bytes has checked them.
    Skip,
}

/// What a batch may ask for at most. They apply to bytes that are there, so no
/// declared size can cost anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest entry as stored, in bytes.
    pub batch: u64,
    /// Most bytes that a batch may decompress to.
    pub decompressed: u64,
    /// Most decompressed bytes for each byte stored. By their nature lz4 stays
    /// below 255 and gzip below 1032; zstd has no bound.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { batch: 128 << 20, decompressed: 1 << 30, ratio: u64::MAX }
    }
}

impl Limits {
    /// Largest entry as stored, in bytes.
    #[must_use]
    pub const fn with_batch(self, batch: u64) -> Self {
        Self { batch, ..self }
    }

    /// Most bytes that a batch may decompress to.
    #[must_use]
    pub const fn with_decompressed(self, decompressed: u64) -> Self {
        Self { decompressed, ..self }
    }

    /// Most decompressed bytes for each byte stored.
    #[must_use]
    pub const fn with_ratio(self, ratio: u64) -> Self {
        Self { ratio, ..self }
    }

    /// What an entry of `size` bytes may decompress to.
    #[must_use]
    pub const fn output(&self, size: u64) -> u64 {
        let by_ratio = size.saturating_mul(self.ratio);
        if by_ratio < self.decompressed { by_ratio } else { self.decompressed }
    }
}

/// What [`Unpacker::poll`] tells.
#[derive(Debug)]
pub enum Event<'a> {
    /// The source has to be given more, or told that there is no more.
    NeedInput,
    /// A batch (v2) or an outer message (v0/v1) starts.
    Batch(BatchHeader),
    /// One of its records, whole.
    Record(Record<'a>),
    /// A part of a record that does not fit the window.
    Piece(Piece<'a>),
    /// The batch is over, and this is its verdict.
    BatchEnd(BatchEnd),
    /// The input is over.
    End(Tail),
}

/// How a batch ended. The records handed out before count only if the verdict is
/// `Ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an error in it condemns the records of its batch"]
#[non_exhaustive]
pub struct BatchEnd {
    /// What is wrong with the batch, if anything.
    pub verdict: Result<(), Error>,
    /// Records that were handed out.
    pub records: u64,
    /// Their bytes, uncompressed: what follows the 61 bytes of a v2 header, or the
    /// v0/v1 messages themselves.
    pub records_bytes: u64,
    /// First and last offset of the records, if there are any.
    pub offsets: Option<(i64, i64)>,
    /// To be added to offsets that were handed out as [`Offset::Relative`].
    pub offset_base: i64,
}

/// A part of a record that does not fit the window: a start, then in this order the
/// key, the start of the value, the value and, for v2, the headers, then an end. Fields
/// come in as many chunks as it takes, none for null and empty ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The record starts.
    Start {
        /// Where it is in the partition.
        offset: Offset,
        /// As [`Record::timestamp`].
        timestamp: i64,
        /// As [`Record::size`].
        size: u64,
        /// Length of the key; `None` is null.
        key_len: Option<u32>,
    },
    /// Some of the key.
    Key(&'a [u8]),
    /// The key is over; length of the value, `None` for null.
    ValueStart(Option<u32>),
    /// Some of the value.
    Value(&'a [u8]),
    /// The value is over; number of headers (0 for v0/v1).
    Headers(u32),
    /// A header starts with a key of this length.
    HeaderStart(u32),
    /// Some of a header's key.
    HeaderKey(&'a [u8]),
    /// The key of the header is over; length of its value, `None` for null.
    HeaderValueStart(Option<u32>),
    /// Some of a header's value.
    HeaderValue(&'a [u8]),
    /// The record is over.
    End,
}

impl BatchEnd {
    /// Of a batch in which nothing could be read.
    pub const fn failed(error: Error) -> Self {
        Self { verdict: Err(error), records: 0, records_bytes: 0, offsets: None, offset_base: 0 }
    }
}

pub(crate) mod sealed {
    /// Only this crate's sources can promise what [`super::Source`] asks for.
    pub trait Sealed {}
}

/// What comes next in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Found {
    NeedInput,
    Batch(BatchHeader),
    End(Tail),
}

/// Where an [`Unpacker`] takes entries from: [`crate::Batches`].
pub trait Source: sealed::Sealed {
    /// Goes on to the next entry. An error is told once, then comes the end.
    #[doc(hidden)]
    fn next_batch(&mut self) -> Result<Found, Error>;
    /// The present entry.
    #[doc(hidden)]
    fn entry(&self) -> &[u8];
    /// Bytes of it that are read.
    #[doc(hidden)]
    fn read(&self) -> usize;
    /// Sets [`Source::read`].
    #[doc(hidden)]
    fn seek(&mut self, read: usize);
    /// Instructions that its checksums may use.
    #[doc(hidden)]
    fn cpu(&self) -> Cpu;
}

/// Turns the entries of a source into events.
///
/// It needs a window: history of the codec (snappy and lz4 64 KiB, gzip 32 KiB)
/// plus the largest record that is wanted in one piece, and twice that so that
/// moving the history around does not cost much. Uncompressed batches do not use it.
#[derive(Debug)]
pub struct Unpacker<'w, C> {
    codecs: C,
    window: Window<'w>,
    limits: Limits,
    crc: CrcPolicy,
    state: State,
}

#[derive(Debug)]
enum State {
    Between,
    Open(Open),
    Ended(Tail),
}

/// A batch that is being read.
#[derive(Debug)]
struct Open {
    header: BatchHeader,
    codec: Codec,
    /// Where the payload starts in the entry, and where it ends.
    payload: Span,
    stage: Stage,
    /// Bytes of the view that the last event borrows.
    lent: usize,
    /// Position of the view in the plain bytes, and how many there are so far.
    plain: u64,
    produced: u64,
    /// No plain bytes will come behind those in the view.
    finished: bool,
    found: u32,
    offsets: Option<(i64, i64)>,
    base: i64,
    /// A fault that is told only if no other comes first. No record is handed out.
    condemned: Option<WrapperFault>,
    pieces: Option<Pieces>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing but the header has been looked at.
    Start,
    /// Records of a v2 batch.
    Records,
    /// An uncompressed v0/v1 message.
    Message,
    /// A v1 wrapper whose last inner offset must be known first.
    Scan,
    /// Messages of a v0/v1 wrapper.
    Set,
    /// The rest of a stream whose records have a fault.
    Drain(Error),
}

/// A record that comes in pieces.
#[derive(Debug)]
struct Pieces {
    /// Bytes of the record that are not read yet.
    left: u64,
    field: Field,
    /// v0/v1: CRC of what is read, and what it must be.
    crc: Option<(crc32fast::Hasher, u32)>,
    headers: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Key(u64),
    ValueStart,
    Value(u64),
    Headers,
    HeaderStart,
    HeaderKey(u64),
    HeaderValueStart,
    HeaderValue(u64),
    End,
}

/// An event, before its bytes are borrowed.
#[derive(Debug)]
enum Action {
    NeedInput,
    Batch(BatchHeader),
    Record(Layout),
    /// A message that the view starts with, of this many bytes.
    Message(usize, Message, Offset, i64),
    Piece(Piece<'static>),
    /// A piece that consists of the first bytes of the view.
    Chunk(usize, Field),
    BatchEnd(BatchEnd),
    End(Tail),
}

/// What a try to get more plain bytes came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    More,
    Finished,
    /// The window is full of bytes that nobody has read.
    Stuck,
}

impl<'w, C: Codecs> Unpacker<'w, C> {
    /// A reader that decompresses with `codecs` into `window`.
    #[must_use]
    pub fn new(codecs: C, window: &'w mut [u8]) -> Self {
        Self {
            codecs,
            window: Window::new(window),
            limits: Limits::default(),
            crc: CrcPolicy::Verify,
            state: State::Between,
        }
    }

    /// Other limits than the default ones.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Another policy than to verify.
    #[must_use]
    pub fn with_crc_policy(self, crc: CrcPolicy) -> Self {
        Self { crc, ..self }
    }

    /// Gives the codecs back, to be used again.
    #[must_use]
    pub fn into_codecs(self) -> C {
        self.codecs
    }

    /// The next event of `source`.
    ///
    /// Errors: those of [`crate::batch::Framing::parse`], where no entry starts. The
    /// next event is then [`Event::End`]. Everything that is wrong within a batch
    /// comes with its [`Event::BatchEnd`] instead.
    pub fn poll<'a, S: Source>(&'a mut self, source: &'a mut S) -> Result<Event<'a>, Error> {
        let action = self.step(source)?;
        let State::Open(open) = &self.state else {
            return Ok(match action {
                Action::BatchEnd(end) => Event::BatchEnd(end),
                Action::End(tail) => Event::End(tail),
                _ => Event::NeedInput,
            });
        };
        let view = match open.codec {
            Codec::None => source.entry().get(source.read()..).unwrap_or_default(),
            _ => self.window.unread(),
        };
        let chunk = |n: usize| view.get(..n).unwrap_or_default();
        Ok(match action {
            Action::NeedInput => Event::NeedInput,
            Action::Batch(header) => Event::Batch(header),
            Action::Record(layout) => Event::Record(layout.record(&open.header, view)),
            Action::Message(total, message, offset, timestamp) => {
                Event::Record(message_record(chunk(total), &message, offset, timestamp))
            }
            Action::Piece(piece) => Event::Piece(piece),
            Action::Chunk(n, field) => Event::Piece(match field {
                Field::Key(_) => Piece::Key(chunk(n)),
                Field::HeaderKey(_) => Piece::HeaderKey(chunk(n)),
                Field::HeaderValue(_) => Piece::HeaderValue(chunk(n)),
                _ => Piece::Value(chunk(n)),
            }),
            Action::BatchEnd(end) => Event::BatchEnd(end),
            Action::End(tail) => Event::End(tail),
        })
    }

    fn step<S: Source>(&mut self, source: &mut S) -> Result<Action, Error> {
        match &mut self.state {
            State::Ended(tail) => Ok(Action::End(*tail)),
            State::Between => Ok(match source.next_batch()? {
                Found::NeedInput => Action::NeedInput,
                Found::Batch(header) => {
                    self.window.clear();
                    self.state = State::Open(Open::new(header));
                    Action::Batch(header)
                }
                Found::End(tail) => {
                    self.state = State::Ended(tail);
                    Action::End(tail)
                }
            }),
            State::Open(open) => {
                let mut batch = InBatch {
                    open,
                    source,
                    window: &mut self.window,
                    codecs: &mut self.codecs,
                    limits: self.limits,
                    crc: self.crc,
                };
                let verdict = loop {
                    match batch.step() {
                        Ok(Some(action)) => return Ok(action),
                        Ok(None) => break Ok(()),
                        Err(error) if batch.open.drains(&error) => {
                            batch.open.stage = Stage::Drain(error);
                        }
                        Err(error) => break Err(error),
                    }
                };
                let end = open.end(verdict);
                self.state = State::Between;
                Ok(Action::BatchEnd(end))
            }
        }
    }
}

impl Open {
    const fn new(header: BatchHeader) -> Self {
        Self {
            header,
            codec: Codec::None,
            payload: Span { at: 0, len: 0 },
            stage: Stage::Start,
            lent: 0,
            plain: 0,
            produced: 0,
            finished: false,
            found: 0,
            offsets: None,
            base: 0,
            condemned: None,
            pieces: None,
        }
    }

    const fn end(&self, verdict: Result<(), Error>) -> BatchEnd {
        // The messages of a condemned set were looked at, and none was handed out.
        let (records, offsets) = match self.condemned {
            None => (self.found as u64, self.offsets),
            Some(_) => (0, None),
        };
        BatchEnd { verdict, records, records_bytes: self.produced, offsets, offset_base: 0 }
    }

    /// Whether a worse fault may follow than this one of the records.
    ///
    /// A fault of the compressed stream outranks those of the records that came out of
    /// it, wherever it is: which of the two is met first depends on the window alone.
    const fn drains(&self, error: &Error) -> bool {
        let of_records = !matches!(
            error.kind(),
            ErrorKind::Codec { .. }
                | ErrorKind::TooMuchOutput { .. }
                | ErrorKind::BufferTooSmall { .. }
                | ErrorKind::CodecNotBuiltIn { .. }
        );
        of_records && !self.finished && !matches!(self.stage, Stage::Start | Stage::Drain(_))
    }

    fn count(&mut self, offset: i64) {
        self.found = self.found.saturating_add(1);
        self.offsets = Some((self.offsets.map_or(offset, |(first, _)| first), offset));
    }

    /// An error at the view's start.
    fn error(&self, kind: ErrorKind) -> Error {
        let start = self.header.position + self.payload.at as u64;
        match self.codec {
            Codec::None => kind.at(start + self.plain),
            _ => kind.at(start).inside(self.plain),
        }
    }

    fn wrapper(&self, fault: WrapperFault) -> Error {
        ErrorKind::MalformedWrapper(fault).at(self.header.position)
    }
}

/// Everything that a step within a batch works on.
struct InBatch<'a, 'w, S, C> {
    open: &'a mut Open,
    source: &'a mut S,
    window: &'a mut Window<'w>,
    codecs: &'a mut C,
    limits: Limits,
    crc: CrcPolicy,
}

impl<S: Source, C: Codecs> InBatch<'_, '_, S, C> {
    /// The next event of this batch, or `None` at its end.
    fn step(&mut self) -> Result<Option<Action>, Error> {
        let lent = core::mem::take(&mut self.open.lent);
        self.consume(lent);
        loop {
            match self.open.stage {
                Stage::Start => self.start()?,
                Stage::Records => return self.records(),
                Stage::Message => return self.message(),
                Stage::Scan => self.scan(),
                Stage::Set => return self.set(),
                Stage::Drain(error) => return Err(self.drain(error)),
            }
        }
    }

    /// Decompresses what is left, for a fault in it that outranks `error`.
    fn drain(&mut self, error: Error) -> Error {
        loop {
            self.window.consume(self.window.unread_len());
            match self.fill() {
                Ok(Fill::More) => {}
                Ok(Fill::Finished | Fill::Stuck) => return error,
                Err(worse) => return worse,
            }
        }
    }

    fn view(&self) -> &[u8] {
        match self.open.codec {
            Codec::None => self.source.entry().get(self.source.read()..).unwrap_or_default(),
            _ => self.window.unread(),
        }
    }

    /// Takes bytes of the view as read.
    fn consume(&mut self, n: usize) {
        match self.open.codec {
            Codec::None => self.source.seek(self.source.read() + n),
            _ => self.window.consume(n),
        }
        self.open.plain += n as u64;
    }

    /// Everything that can be said before the first record: size, CRC, codec.
    fn start(&mut self) -> Result<(), Error> {
        let header = self.open.header;
        if header.size > self.limits.batch {
            let kind = ErrorKind::BatchTooLarge { size: header.size, limit: self.limits.batch };
            return Err(kind.at(header.position + 8));
        }
        let batch = Batch::new(header, self.source.entry(), self.source.cpu());
        if self.crc == CrcPolicy::Verify {
            batch.check_crc()?;
        }
        let codec = header.codec()?;
        let at = usize::try_from(batch.payload_position() - header.position).unwrap_or(0);
        let (stage, len) = match (header.magic, codec) {
            (Magic::V0 | Magic::V1, Codec::None) => (Stage::Message, batch.bytes().len()),
            // Those of v0 are absolute.
            (Magic::V0, _) => (Stage::Set, batch.payload()?.len()),
            (Magic::V1, _) => (Stage::Scan, batch.payload()?.len()),
            (Magic::V2, _) => (Stage::Records, batch.payload()?.len()),
        };
        let at = if stage == Stage::Message { 0 } else { at };
        self.open.payload = Span { at, len };
        if header.record_count.is_some_and(|n| n < 0) {
            return Err(count_error(&header, 0, false));
        }
        // An empty batch that kept its codec has no stream behind it (KAFKA-5490).
        let nothing = header.record_count == Some(0) && len == 0;
        self.open.finished = codec == Codec::None || nothing;
        self.open.codec = codec;
        self.open.stage = stage;
        self.source.seek(at);
        if codec == Codec::None {
            self.open.produced = len as u64;
        } else if !nothing {
            self.restart_decoder()?;
        }
        Ok(())
    }

    fn restart_decoder(&mut self) -> Result<(), Error> {
        let Open { codec, header, payload, .. } = *self.open;
        let start = header.position + payload.at as u64;
        match self.codecs.decoder(codec, header.magic) {
            Some(decoder) => decoder.reset(),
            None => return Err(ErrorKind::CodecNotBuiltIn { codec }.at(start)),
        }
        self.window.clear();
        self.source.seek(payload.at);
        self.open.finished = false;
        self.open.plain = 0;
        self.open.produced = 0;
        Ok(())
    }

    /// Tries to get more plain bytes into the view.
    fn fill(&mut self) -> Result<Fill, Error> {
        let Open { codec, header, payload, .. } = *self.open;
        let mut slid = false;
        loop {
            if self.open.finished {
                return Ok(Fill::Finished);
            }
            let read = self.source.read();
            let position = header.position + read as u64;
            let fail = |error: CodecError| error.in_batch(codec, position);
            let none = CodecError { kind: CodecErrorKind::NotBuiltIn, at: 0 };
            let decoder = self.codecs.decoder(codec, header.magic).ok_or_else(|| fail(none))?;
            let input = self.source.entry().get(read..payload.as_range().end).unwrap_or_default();
            let before = self.window.unread_len();
            let progress = decoder.advance(input, self.window).map_err(fail)?;
            let history = decoder.history();
            let idle = progress.pause == Pause::InputDry
                && progress.consumed < input.len()
                && self.window.unread_len() == before;
            if idle || (progress.pause == Pause::InputDry && input.is_empty()) {
                // A decoder that wants more at the end, or does not take what is there.
                return Err(fail(CodecError::truncated(0)));
            }
            self.source.seek(read + progress.consumed);
            let produced = self.window.unread_len() - before;
            self.open.produced += produced as u64;
            let limit = self.limits.output(header.size);
            if self.open.produced > limit {
                let start = header.position + payload.at as u64;
                return Err(ErrorKind::TooMuchOutput { limit }.at(start));
            }
            self.open.finished = progress.pause == Pause::Finished;
            if produced > 0 {
                return Ok(Fill::More);
            }
            if progress.pause == Pause::WindowFull {
                if slid {
                    return self.stuck(history, position);
                }
                self.window.slide(history);
                slid = true;
            }
        }
    }

    /// The window is full. That is a record too large for it, unless nothing of its
    /// contents is unread.
    fn stuck(&self, history: usize, position: u64) -> Result<Fill, Error> {
        if self.window.unread_len() > 0 {
            return Ok(Fill::Stuck);
        }
        let (need, have) = (history as u64 + 64, self.window.capacity() as u64);
        Err(ErrorKind::BufferTooSmall { need: need.max(have + 1), have }.at(position))
    }

    /// A fixed part of a record that does not even fit the window.
    fn too_small(&self) -> Error {
        let have = self.window.capacity() as u64;
        let kind = ErrorKind::BufferTooSmall { need: have.saturating_mul(2).max(1024), have };
        self.open.error(kind)
    }

    fn records(&mut self) -> Result<Option<Action>, Error> {
        if self.open.pieces.is_some() {
            return self.pieces();
        }
        let header = self.open.header;
        let declared = header.record_count.unwrap_or(0).unsigned_abs();
        loop {
            let view = self.view();
            if self.open.found == declared {
                if !view.is_empty() {
                    return Err(count_error(&header, self.open.found, true));
                }
                if self.fill()? == Fill::Finished {
                    return Ok(None);
                }
                continue;
            }
            if view.is_empty() && self.open.finished {
                return Err(count_error(&header, self.open.found, false));
            }
            match Layout::parse(view) {
                Ok(layout) => {
                    let record = layout.record(&header, view);
                    if header.is_control()
                        && let Err(fault) = Control::parse(record.key, record.value)
                    {
                        return Err(self.open.error(ErrorKind::MalformedControl(fault)));
                    }
                    self.open.count(record.offset.resolve(0));
                    self.open.lent = layout.size;
                    return Ok(Some(Action::Record(layout)));
                }
                Err(stop @ Stop::Incomplete(_)) => match self.fill()? {
                    Fill::More => {}
                    Fill::Finished if self.view().is_empty() => {}
                    Fill::Finished => return Err(self.open.error(past_end(stop))),
                    Fill::Stuck if header.is_control() => return Err(self.too_small()),
                    Fill::Stuck => return self.start_pieces(),
                },
                Err(stop) => return Err(self.open.error(past_end(stop))),
            }
        }
    }

    /// A v2 record that does not fit the window: its prefix, up to the key.
    fn start_pieces(&mut self) -> Result<Option<Action>, Error> {
        let header = self.open.header;
        let view = self.view();
        let prefix = (|| {
            let (size, mut at) = record_size(view)?;
            at += 1; // attributes
            let rest = |at: usize| view.get(at..).unwrap_or_default();
            let (timestamp_delta, len) = decode_varlong(rest(at))?;
            at += len;
            let (offset_delta, len) = decode_varint(rest(at))?;
            at += len;
            let (key_len, len) = decode_varint(rest(at))?;
            at += len;
            Ok((size, at, timestamp_delta, offset_delta, key_len))
        })();
        let (size, at, timestamp_delta, offset_delta, key_len) = match prefix {
            Ok(prefix) => prefix,
            Err(Stop::Fault(RecordFault::Overrun) | Stop::Incomplete(_)) => {
                return Err(self.too_small());
            }
            Err(stop) => return Err(self.open.error(past_end(stop))),
        };
        let overrun = ErrorKind::MalformedRecord(RecordFault::Overrun);
        let left = size.checked_sub(at as u64).ok_or_else(|| self.open.error(overrun))?;
        let key = u64::try_from(key_len).unwrap_or(0);
        if key > left {
            return Err(self.open.error(overrun));
        }
        let offset = header.base_offset.wrapping_add(offset_delta.into());
        self.open.lent = at;
        self.open.pieces = Some(Pieces { left, field: Field::Key(key), crc: None, headers: 0 });
        self.open.count(offset);
        Ok(Some(Action::Piece(Piece::Start {
            offset: Offset::Absolute(offset),
            timestamp: effective_timestamp(&header, timestamp_delta),
            size,
            key_len: u32::try_from(key_len).ok(),
        })))
    }

    /// A message of a set that does not fit the window: its fields up to the key.
    fn start_message_pieces(&mut self, inner: &Inner) -> Result<Option<Action>, Error> {
        let header = self.open.header;
        let view = self.view();
        let at = inner.magic.header_len() + 4;
        let fields = BatchHeader::parse(view, 0)
            .ok()
            .zip(view.get(at - 4..at).and_then(|bytes| bytes.first_chunk().copied()));
        let Some((message, key_len)) = fields else { return Err(self.too_small()) };
        let key_len = i32::from_be_bytes(key_len);
        let left = (inner.total - at) as u64;
        let key = u64::try_from(key_len).unwrap_or(0);
        if key > left {
            let fault = RecordFault::MessageField(key_len);
            return Err(self.open.error(ErrorKind::MalformedRecord(fault)));
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(view.get(16..at).unwrap_or_default());
        let crc = Some((crc, message.crc));
        let offset = inner.offset.wrapping_add(self.open.base);
        self.open.lent = at;
        self.open.pieces = Some(Pieces { left, field: Field::Key(key), crc, headers: 0 });
        self.open.count(offset);
        Ok(Some(Action::Piece(Piece::Start {
            offset: Offset::Absolute(offset),
            timestamp: inner_timestamp(&header, inner.magic, message.max_timestamp),
            size: inner.total as u64,
            key_len: u32::try_from(key_len).ok(),
        })))
    }

    /// Goes on with a record that comes in pieces.
    fn pieces(&mut self) -> Result<Option<Action>, Error> {
        loop {
            let Some(mut pieces) = self.open.pieces.take() else { return Ok(None) };
            let legacy = pieces.crc.is_some();
            match pieces.field {
                Field::Key(0) => pieces.field = Field::ValueStart,
                Field::Value(0) => pieces.field = Field::Headers,
                Field::HeaderKey(0) => pieces.field = Field::HeaderValueStart,
                Field::HeaderValue(0) => pieces.field = Field::HeaderStart,
                Field::Key(n) | Field::Value(n) | Field::HeaderKey(n) | Field::HeaderValue(n) => {
                    let view = self.view();
                    if view.is_empty() {
                        self.open.pieces = Some(pieces);
                        self.more_of_record()?;
                        continue;
                    }
                    let most = usize::try_from(n).unwrap_or(usize::MAX);
                    let chunk = view.get(..most).unwrap_or(view);
                    if let Some((crc, _)) = &mut pieces.crc {
                        crc.update(chunk);
                    }
                    let len = chunk.len();
                    let (field, left) = (pieces.field, n - len as u64);
                    pieces.left -= len as u64;
                    pieces.field = match field {
                        Field::Key(_) => Field::Key(left),
                        Field::HeaderKey(_) => Field::HeaderKey(left),
                        Field::HeaderValue(_) => Field::HeaderValue(left),
                        _ => Field::Value(left),
                    };
                    self.open.lent = len;
                    self.open.pieces = Some(pieces);
                    return Ok(Some(Action::Chunk(len, field)));
                }
                Field::Headers if legacy => {
                    // Bytes behind the value belong to the message all the same.
                    pieces.field = Field::End;
                    self.open.pieces = Some(pieces);
                    return Ok(Some(Action::Piece(Piece::Headers(0))));
                }
                Field::ValueStart
                | Field::Headers
                | Field::HeaderValueStart
                | Field::HeaderStart
                    if pieces.field != Field::HeaderStart || pieces.headers > 0 =>
                {
                    let Some((n, len)) = self.number(&mut pieces)? else {
                        self.open.pieces = Some(pieces);
                        self.more_of_record()?;
                        continue;
                    };
                    let piece = self.field(&mut pieces, n)?;
                    self.open.lent = len;
                    self.open.pieces = Some(pieces);
                    return Ok(Some(Action::Piece(piece)));
                }
                Field::ValueStart
                | Field::Headers
                | Field::HeaderValueStart
                | Field::HeaderStart => pieces.field = Field::End,
                Field::End if pieces.left > 0 && !legacy => {
                    let slack = u32::try_from(pieces.left).unwrap_or(u32::MAX);
                    let fault = RecordFault::Slack(slack);
                    return Err(self.open.error(ErrorKind::MalformedRecord(fault)));
                }
                Field::End if pieces.left > 0 => {
                    let view = self.view();
                    let most = usize::try_from(pieces.left).unwrap_or(usize::MAX);
                    let chunk = view.get(..most).unwrap_or(view);
                    if let Some((crc, _)) = &mut pieces.crc {
                        crc.update(chunk);
                    }
                    let len = chunk.len();
                    pieces.left -= len as u64;
                    self.consume(len);
                    let dry = pieces.left > 0;
                    self.open.pieces = Some(pieces);
                    if dry {
                        self.more_of_record()?;
                    }
                    continue;
                }
                Field::End => {
                    if let Some((crc, stored)) = pieces.crc {
                        let computed = crc.finalize();
                        if computed != stored {
                            let kind = ErrorKind::CrcMismatch { stored, computed };
                            return Err(self.open.error(kind));
                        }
                    }
                    return Ok(Some(Action::Piece(Piece::End)));
                }
            }
            self.open.pieces = Some(pieces);
        }
    }

    /// A length or count of a record in pieces: a varint, or an i32 in v0/v1. `None`
    /// if the view ends within it.
    fn number(&self, pieces: &mut Pieces) -> Result<Option<(i32, usize)>, Error> {
        let view = self.view();
        let most = usize::try_from(pieces.left).unwrap_or(usize::MAX);
        let part = view.get(..most).unwrap_or(view);
        let overrun = ErrorKind::MalformedRecord(RecordFault::Overrun);
        let (n, len) = if let Some((crc, _)) = &mut pieces.crc {
            let Some(bytes) = part.first_chunk() else {
                return if part.len() < most { Ok(None) } else { Err(self.open.error(overrun)) };
            };
            crc.update(bytes);
            (i32::from_be_bytes(*bytes), 4)
        } else {
            match decode_varint(part) {
                Ok(number) => number,
                Err(VarintError::Incomplete) if part.len() < most => return Ok(None),
                Err(error) => return Err(self.open.error(past_end(error.into()))),
            }
        };
        pieces.left -= len as u64;
        Ok(Some((n, len)))
    }

    /// Goes on to the field whose length or count is `n`.
    fn field(&self, pieces: &mut Pieces, n: i32) -> Result<Piece<'static>, Error> {
        let fault = |fault| Err(self.open.error(ErrorKind::MalformedRecord(fault)));
        let len = u32::try_from(n).ok();
        let bytes = u64::from(len.unwrap_or(0));
        if pieces.field == Field::Headers {
            return match len {
                Some(count) if u64::from(count) <= pieces.left => {
                    pieces.headers = count;
                    pieces.field = Field::HeaderStart;
                    Ok(Piece::Headers(count))
                }
                _ => fault(RecordFault::HeaderCount(n)),
            };
        }
        if bytes > pieces.left {
            return fault(match pieces.crc {
                Some(_) => RecordFault::MessageField(n),
                None => RecordFault::Overrun,
            });
        }
        match (pieces.field, len) {
            (Field::HeaderStart, None) => fault(RecordFault::NullHeaderKey(n)),
            (Field::HeaderStart, Some(len)) => {
                pieces.headers -= 1;
                pieces.field = Field::HeaderKey(bytes);
                Ok(Piece::HeaderStart(len))
            }
            (Field::HeaderValueStart, len) => {
                pieces.field = Field::HeaderValue(bytes);
                Ok(Piece::HeaderValueStart(len))
            }
            (_, len) => {
                pieces.field = Field::Value(bytes);
                Ok(Piece::ValueStart(len))
            }
        }
    }

    /// More bytes of a record, all of which must come.
    fn more_of_record(&mut self) -> Result<(), Error> {
        match self.fill()? {
            Fill::More => Ok(()),
            Fill::Finished if self.open.stage == Stage::Set => {
                Err(self.open.wrapper(WrapperFault::Cut))
            }
            Fill::Finished => {
                Err(self.open.error(ErrorKind::MalformedRecord(RecordFault::Overrun)))
            }
            Fill::Stuck => Err(self.too_small()),
        }
    }

    fn message(&mut self) -> Result<Option<Action>, Error> {
        if self.open.found > 0 {
            return Ok(None);
        }
        let view = self.view();
        let message = Message::parse(view)
            .map_err(|fault| self.open.error(ErrorKind::MalformedRecord(fault)))?;
        let len = view.len();
        self.open.lent = len;
        self.open.count(message.offset);
        let offset = Offset::Absolute(message.offset);
        Ok(Some(Action::Message(len, message, offset, message.timestamp)))
    }

    /// Looks through a v1 wrapper for its last inner offset. What is wrong in it is
    /// told when its messages are read, in the order in which it occurs.
    fn scan(&mut self) {
        self.open.stage = Stage::Set;
        match self.scan_to_end() {
            Ok(Some((last, kept))) => {
                match resolve_base(&self.open.header, last) {
                    Ok(base) => self.open.base = base,
                    Err(fault) => self.open.condemned = Some(fault),
                }
                if kept {
                    return;
                }
            }
            Ok(None) | Err(_) => self.open.condemned = Some(WrapperFault::Cut),
        }
        // It started once, so it starts again.
        let _ = self.restart_decoder();
    }

    /// The last inner offset, and whether all plain bytes are still in the window;
    /// `None` if the messages do not come to a clean end.
    fn scan_to_end(&mut self) -> Result<Option<(i64, bool)>, Error> {
        let (mut at, mut kept) = (0usize, true);
        let (mut last, mut present, mut skip) = (0, 0, 0usize);
        loop {
            let unread = self.window.unread();
            let rest = unread.get(at..).unwrap_or_default();
            if skip > 0 && !rest.is_empty() {
                let n = skip.min(rest.len());
                at += n;
                skip -= n;
                if skip == 0 {
                    last = present;
                }
                continue;
            }
            if skip == 0
                && let Some(prefix) = rest.first_chunk()
            {
                match Inner::parse(prefix) {
                    Ok(inner) => (present, skip) = (inner.offset, inner.total),
                    Err(_) => return Ok(None),
                }
                continue;
            }
            match self.fill()? {
                Fill::More => {}
                Fill::Finished if skip == 0 && at == self.window.unread_len() => {
                    return Ok(Some((last, kept)));
                }
                Fill::Finished => return Ok(None),
                Fill::Stuck if at == 0 => return Ok(None),
                Fill::Stuck => {
                    self.window.consume(at);
                    (at, kept) = (0, false);
                }
            }
        }
    }

    fn set(&mut self) -> Result<Option<Action>, Error> {
        loop {
            if self.open.pieces.is_some() {
                let action = self.pieces()?;
                if self.open.condemned.is_none() {
                    return Ok(action);
                }
                let lent = core::mem::take(&mut self.open.lent);
                self.consume(lent);
                continue;
            }
            let view = self.view();
            let inner = match view.first_chunk().map(Inner::parse) {
                Some(Ok(inner)) => Some(inner),
                Some(Err(fault)) => return Err(self.open.wrapper(fault)),
                None => None,
            };
            let entry = inner.and_then(|inner| view.get(..inner.total));
            let (Some(inner), Some(entry)) = (inner, entry) else {
                match self.fill()? {
                    Fill::More => {}
                    Fill::Finished if !self.view().is_empty() => {
                        return Err(self.open.wrapper(WrapperFault::Cut));
                    }
                    Fill::Finished if self.open.found == 0 => {
                        return Err(self.open.wrapper(WrapperFault::Empty));
                    }
                    Fill::Finished => {
                        return self
                            .open
                            .condemned
                            .map_or(Ok(None), |fault| Err(self.open.wrapper(fault)));
                    }
                    Fill::Stuck => {
                        let Some(inner) = inner else { return Err(self.too_small()) };
                        let action = self.start_message_pieces(&inner)?;
                        if self.open.condemned.is_none() {
                            return Ok(action);
                        }
                        let lent = core::mem::take(&mut self.open.lent);
                        self.consume(lent);
                    }
                }
                continue;
            };
            let message = Message::parse(entry)
                .map_err(|fault| self.open.error(ErrorKind::MalformedRecord(fault)))?;
            check_message_crc(entry, &message).map_err(|kind| self.open.error(kind))?;
            let offset = message.offset.wrapping_add(self.open.base);
            self.open.count(offset);
            if self.open.condemned.is_some() {
                self.consume(inner.total);
                continue;
            }
            self.open.lent = inner.total;
            let timestamp = inner_timestamp(&self.open.header, message.magic, message.timestamp);
            let offset = Offset::Absolute(offset);
            return Ok(Some(Action::Message(inner.total, message, offset, timestamp)));
        }
    }
}
