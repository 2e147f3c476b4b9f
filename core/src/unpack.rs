//! Batches, their codecs and a window, joined into one stream of events.
//!
//! ```text
//!  source ──entry──▶ CRC ──payload──▶ decoder ──window──▶ record parser ──▶ Event
//!                                (none: borrowed from the source)
//! ```
//! Of a compressed batch only a window is in memory at any time. A record that fits
//! into it is handed out whole; a larger one comes in pieces. Whatever is wrong with
//! a batch, the next one is read.

use core::ops::Range;

use crate::batch::legacy::{Inner, Message, inner_timestamp, resolve_base};
use crate::batch::record::{
    Layout, Stop, check_message_crc, count_error, effective_timestamp, message_record, past_end,
    record_size,
};
use crate::batch::{Batch, BatchHeader, Control, Magic, Offset, Record};
use crate::batches::Tail;
use crate::codec::{Codec, CodecError, CodecErrorKind, Codecs, Pause};
use crate::cpu::Cpu;
use crate::crc32c::Crc32c;
use crate::error::{Error, ErrorKind, RecordFault, WrapperFault};
use crate::varint::{Prefix, VarintError, decode_varint};
use crate::window::Window;

/// Whether checksums of batches are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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

/// Where an [`Unpacker`] takes entries from: [`crate::Batches`], or
/// [`crate::BatchReader`].
pub trait Source: sealed::Sealed {
    /// Goes on to the next entry. An error is told once, then comes the end.
    #[doc(hidden)]
    fn next_batch(&mut self) -> Result<Found, Error>;
    /// The present entry, if all of it is in memory and stays there.
    #[doc(hidden)]
    fn whole(&self) -> Option<&[u8]>;
    /// Bytes of the present entry that are here and not read.
    #[doc(hidden)]
    fn view(&self) -> &[u8];
    /// Bytes of it that are read.
    #[doc(hidden)]
    fn read(&self) -> u64;
    /// Reads `n` bytes of the view.
    #[doc(hidden)]
    fn consume(&mut self, n: usize);
    /// Goes back to where only `to` bytes were read. Only a whole entry can.
    #[doc(hidden)]
    fn rewind(&mut self, to: u64);
    /// Whether more of the entry can arrive; not so if it is whole, or if there is no
    /// room. An error if it ends here for good.
    #[doc(hidden)]
    fn dry(&self) -> Result<bool, Error>;
    /// Instructions that its checksums may use.
    #[doc(hidden)]
    fn cpu(&self) -> Cpu;
}

/// Turns the entries of a source into events.
///
/// It needs a window: history of the codec (snappy and lz4 64 KiB, gzip 32 KiB)
/// plus the largest record that is wanted in one piece, and twice that so that
/// moving the history around does not cost much. Uncompressed batches do not use it.
///
/// One encoder in use goes farther back: raw snappy of franz-go copies from anywhere in
/// its batch. A window as large as the decompressed batch (1 MB by that client's default)
/// is always enough, half of that often is, and too little is
/// [`ErrorKind::BufferTooSmall`] with what would do.
#[derive(Debug)]
pub struct Unpacker<'w, C> {
    codecs: C,
    window: Window<'w>,
    limits: Limits,
    crc: CrcPolicy,
    state: State,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is no heap to box it on
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
    payload: Range<u64>,
    stage: Stage,
    /// Of what is read of an entry that passes through.
    crc: RunningCrc,
    /// Bytes of the source's view that are in it already.
    summed: usize,
    /// Bytes of the view that the last event borrows.
    lent: usize,
    /// Position of the view in the plain bytes, and how many there are so far.
    plain: u64,
    produced: u64,
    /// No plain bytes will come behind those in the view.
    finished: bool,
    found: u32,
    /// Offsets of the first and the last one found, if any was.
    first: i64,
    last: i64,
    /// To be added to inner offsets; not known before the end of a v1 wrapper that
    /// passes through.
    base: Option<i64>,
    /// Last inner offset so far.
    last_inner: i64,
    /// A fault that is told only if no other comes first. No record is handed out.
    condemned: Option<WrapperFault>,
    pieces: Option<Pieces>,
    /// Where the record that comes in pieces starts in the plain bytes, and its size.
    record: Option<(u64, u64)>,
    /// Of the record that [`Action::Record`] is about.
    layout: Layout,
    /// While fewer are found, records may be read by the short way: the declared count
    /// for a v2 batch of data, otherwise 0.
    quick_until: u32,
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
    /// The rest of a stream whose records have a fault: one of the codec outranks it,
    /// since a larger window would have met that first.
    Drain(Error),
    /// In a v0/v1 message that passes through: before its key, in it, before its value.
    KeyLength,
    Key {
        left: u64,
    },
    ValueLength,
    /// Behind the records of an entry that passes through: the verdict so far.
    Rest(Result<(), Error>),
}

/// The checksum of an entry that passes through.
#[derive(Debug)]
enum RunningCrc {
    /// Checked already, or not wanted.
    Off,
    V2(Crc32c),
    Legacy(crc32fast::Hasher),
}

impl RunningCrc {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Off => {}
            Self::V2(crc) => crc.update(bytes),
            Self::Legacy(crc) => crc.update(bytes),
        }
    }
}

/// A record that comes in pieces.
#[derive(Debug)]
struct Pieces {
    /// Bytes of the record that are not read yet.
    left: u64,
    field: Field,
    legacy: bool,
    /// In a v0/v1 wrapper: CRC of what is read, and what it must be.
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
    /// The record that the view starts with, laid out as the open batch says.
    Record,
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
    /// The source has to be given more.
    Dry,
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

    /// Forgets the batch that is open: the next poll goes on with the next entry.
    pub fn abandon(&mut self) {
        self.state = State::Between;
    }

    /// The next event of `source`.
    ///
    /// Errors: those of [`crate::batch::Framing::parse`], where no entry starts. The
    /// next event is then [`Event::End`]. Everything that is wrong within a batch
    /// comes with its [`Event::BatchEnd`] instead.
    #[inline]
    pub fn poll<'a, S: Source>(&'a mut self, source: &'a mut S) -> Result<Event<'a>, Error> {
        if let State::Open(open) = &mut self.state
            && let Some(layout) = open.next_quick(source, &mut self.window)
        {
            let view = open.view(source, &self.window);
            return Ok(Event::Record(layout.record(&open.header, view)));
        }
        self.poll_careful(source)
    }

    #[inline(never)]
    fn poll_careful<'a, S: Source>(&'a mut self, source: &'a mut S) -> Result<Event<'a>, Error> {
        let action = self.step(source)?;
        let State::Open(open) = &self.state else {
            return Ok(match action {
                Action::BatchEnd(end) => Event::BatchEnd(end),
                Action::End(tail) => Event::End(tail),
                _ => Event::NeedInput,
            });
        };
        let view = open.view(source, &self.window);
        let chunk = |n: usize| view.get(..n).unwrap_or_default();
        Ok(match action {
            Action::NeedInput => Event::NeedInput,
            Action::Batch(header) => Event::Batch(header),
            Action::Record => Event::Record(open.layout.record(&open.header, view)),
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
                let verdict = match batch.step() {
                    Ok(Some(action)) => return Ok(action),
                    Ok(None) => Ok(()),
                    Err(error) => Err(error),
                };
                let end = open.end(verdict);
                self.state = State::Between;
                Ok(Action::BatchEnd(end))
            }
        }
    }
}

impl Pieces {
    const fn new(left: u64, key: u64) -> Self {
        Self { left, field: Field::Key(key), legacy: false, crc: None, headers: 0 }
    }
}

impl Open {
    const fn new(header: BatchHeader) -> Self {
        Self {
            header,
            codec: Codec::None,
            payload: 0..0,
            stage: Stage::Start,
            crc: RunningCrc::Off,
            summed: 0,
            lent: 0,
            plain: 0,
            produced: 0,
            finished: false,
            found: 0,
            first: 0,
            last: 0,
            base: Some(0),
            last_inner: 0,
            condemned: None,
            pieces: None,
            record: None,
            layout: Layout::EMPTY,
            quick_until: match (header.magic, header.record_count) {
                (Magic::V2, Some(count @ 0..)) if !header.is_control() => count.unsigned_abs(),
                _ => 0,
            },
        }
    }

    /// The next record, which the view starts with then, if it is one of the ordinary and
    /// there whole. Everything else is left to the long way, which finds the same.
    #[inline(always)]
    fn next_quick<S: Source>(&mut self, source: &mut S, window: &mut Window<'_>) -> Option<Layout> {
        if self.found >= self.quick_until || self.stage != Stage::Records || self.pieces.is_some() {
            return None;
        }
        let lent = core::mem::take(&mut self.lent);
        self.consume(source, window, lent);
        let layout = Layout::quick(self.view(source, window))?;
        self.count(self.header.base_offset.wrapping_add(layout.offset_delta.into()));
        self.lent = layout.size;
        Some(layout)
    }

    /// The plain bytes that are there and not read.
    #[inline]
    fn view<'a, S: Source>(&self, source: &'a S, window: &'a Window<'_>) -> &'a [u8] {
        match self.codec {
            Codec::None => source.view(),
            _ => window.unread(),
        }
    }

    /// Takes bytes of the view as read.
    #[inline]
    fn consume<S: Source>(&mut self, source: &mut S, window: &mut Window<'_>, n: usize) {
        match self.codec {
            Codec::None => self.take(source, n),
            _ => window.consume(n),
        }
        self.plain += n as u64;
    }

    /// Reads bytes of the entry.
    #[inline]
    fn take<S: Source>(&mut self, source: &mut S, n: usize) {
        if !matches!(self.crc, RunningCrc::Off) {
            // All that is in view at once: a few long runs cost less than many short ones.
            if n > self.summed {
                let view = source.view();
                self.crc.update(view.get(self.summed..).unwrap_or_default());
                self.summed = view.len();
            }
            self.summed = self.summed.saturating_sub(n);
        }
        source.consume(n);
    }

    fn end(&self, verdict: Result<(), Error>) -> BatchEnd {
        let offset_base = match self.base {
            Some(_) => 0,
            None => resolve_base(&self.header, self.last_inner).unwrap_or(0),
        };
        let resolve = |offset: i64| offset.wrapping_add(offset_base);
        // The messages of a condemned set were looked at, and none was handed out.
        let records = if self.condemned.is_some() { 0 } else { self.found.into() };
        BatchEnd {
            verdict,
            records,
            records_bytes: self.produced,
            offsets: (records > 0).then(|| (resolve(self.first), resolve(self.last))),
            offset_base,
        }
    }

    /// The offset of a message in a set, as far as it is known.
    const fn inner_offset(&self, inner: i64) -> Offset {
        match self.base {
            Some(base) => Offset::Absolute(inner.wrapping_add(base)),
            None => Offset::Relative(inner),
        }
    }

    fn count(&mut self, offset: i64) {
        if self.found == 0 {
            self.first = offset;
        }
        self.last = offset;
        self.found = self.found.saturating_add(1);
    }

    /// An error of the record that the view starts with, or has a part of.
    fn error(&self, kind: ErrorKind) -> Error {
        let start = self.header.position + self.payload.start;
        let plain = self.record.map_or(self.plain, |(start, _)| start);
        match self.codec {
            Codec::None => kind.at(start + plain),
            _ => kind.at(start).inside(plain),
        }
    }

    /// Whether a fault of the codec would outrank this one, and there may be one.
    fn is_outranked(&self, error: &Error) -> bool {
        let streams = matches!(self.stage, Stage::Records | Stage::Set);
        is_of_records(error) && streams && self.codec != Codec::None && !self.finished
    }

    /// What a reader that waits for the whole record says in place of `error`: it does
    /// not look into one that the plain bytes, all of them known now, end in.
    fn settle(&self, error: Error) -> Error {
        match self.record {
            Some((start, size)) if is_of_records(&error) && self.produced < start + size => {
                match self.header.magic {
                    Magic::V2 => self.error(past_end(Stop::Incomplete(Some(size)))),
                    Magic::V0 | Magic::V1 => self.wrapper(WrapperFault::Cut),
                }
            }
            _ => error,
        }
    }

    fn wrapper(&self, fault: WrapperFault) -> Error {
        ErrorKind::MalformedWrapper(fault).at(self.header.position)
    }
}

/// Whether it is the plain bytes that an error is about.
const fn is_of_records(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RecordCount { .. }
            | ErrorKind::MalformedRecord(_)
            | ErrorKind::MalformedWrapper(_)
            | ErrorKind::MalformedControl(_)
            | ErrorKind::CrcMismatch { .. }
    )
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
            let result = match self.open.stage {
                Stage::Rest(verdict) => return self.rest(verdict),
                _ => self.stage(),
            };
            match result {
                Ok(Some(action)) => return Ok(Some(action)),
                Err(error) if self.open.is_outranked(&error) => {
                    self.open.stage = Stage::Drain(error);
                }
                Ok(None) if self.source.whole().is_some() => return Ok(None),
                Err(error) if self.source.whole().is_some() => {
                    return Err(self.open.settle(error));
                }
                // A wrong checksum outranks whatever else is wrong.
                Ok(None) => self.open.stage = Stage::Rest(Ok(())),
                Err(error) => self.open.stage = Stage::Rest(Err(self.open.settle(error))),
            }
        }
    }

    fn stage(&mut self) -> Result<Option<Action>, Error> {
        loop {
            match self.open.stage {
                Stage::Start => match self.source.whole() {
                    Some(_) => self.start()?,
                    None => self.start_passing()?,
                },
                Stage::Records => return self.records(),
                Stage::Message => return self.message(),
                Stage::KeyLength | Stage::Key { .. } | Stage::ValueLength => {
                    if let Some(action) = self.wrapper_fields()? {
                        return Ok(Some(action));
                    }
                }
                Stage::Scan => self.scan(),
                Stage::Set => return self.set(),
                Stage::Drain(error) => return self.drain(error),
                Stage::Rest(_) => return Ok(None),
            }
        }
    }

    fn view(&self) -> &[u8] {
        self.open.view(self.source, self.window)
    }

    /// Takes bytes of the view as read.
    fn consume(&mut self, n: usize) {
        self.open.consume(self.source, self.window, n);
    }

    /// Reads bytes of the entry.
    fn take(&mut self, n: usize) {
        self.open.take(self.source, n);
    }

    /// What is left of a compressed stream, for a fault of the codec.
    fn drain(&mut self, error: Error) -> Result<Option<Action>, Error> {
        loop {
            self.window.consume(usize::MAX);
            match self.fill()? {
                Fill::More | Fill::Stuck => {}
                Fill::Dry => return Ok(Some(Action::NeedInput)),
                Fill::Finished => return Err(error),
            }
        }
    }

    /// What is left of an entry that passes through, then its checksum.
    fn rest(&mut self, verdict: Result<(), Error>) -> Result<Option<Action>, Error> {
        self.take(self.source.view().len());
        if self.source.read() < self.open.header.size {
            self.source.dry()?;
            return Ok(Some(Action::NeedInput));
        }
        let header = self.open.header;
        match core::mem::replace(&mut self.open.crc, RunningCrc::Off) {
            RunningCrc::Off => {}
            RunningCrc::V2(crc) => header.compare_crc(crc.finish())?,
            RunningCrc::Legacy(crc) => header.compare_crc(crc.finalize())?,
        }
        verdict.map(|()| None)
    }

    fn check_size(&self) -> Result<(), Error> {
        let (size, limit) = (self.open.header.size, self.limits.batch);
        if size <= limit {
            return Ok(());
        }
        Err(ErrorKind::BatchTooLarge { size, limit }.at(self.open.header.position + 8))
    }

    /// Everything that can be said before the first record: size, CRC, codec.
    fn start(&mut self) -> Result<(), Error> {
        let header = self.open.header;
        self.check_size()?;
        let entry = self.source.whole().unwrap_or_default();
        let batch = Batch::new(header, entry, self.source.cpu());
        if self.crc == CrcPolicy::Verify {
            batch.check_crc()?;
        }
        let codec = header.codec()?;
        let (at, len) = match (header.magic, codec) {
            (Magic::V0 | Magic::V1, Codec::None) => (0, header.size),
            _ => (batch.payload_position() - header.position, batch.payload()?.len() as u64),
        };
        self.source.consume(usize::try_from(at).unwrap_or(usize::MAX));
        self.start_payload(
            codec,
            at..at + len,
            if codec == Codec::None {
                Stage::Message
            } else if header.magic == Magic::V1 {
                Stage::Scan
            } else {
                Stage::Set // offsets of v0 are absolute
            },
        )
    }

    /// The same for an entry that passes through: the CRC comes last.
    fn start_passing(&mut self) -> Result<(), Error> {
        let header = self.open.header;
        self.check_size()?;
        if self.crc == CrcPolicy::Verify {
            self.open.crc = match header.magic {
                Magic::V2 => RunningCrc::V2(Crc32c::new(self.source.cpu())),
                Magic::V0 | Magic::V1 => RunningCrc::Legacy(crc32fast::Hasher::new()),
            };
        }
        let whole = 0..header.size;
        let codec = header.codec();
        if header.magic != Magic::V2 && codec == Ok(Codec::None) {
            // It is read as a message of a set is, header and all.
            let covered = self.source.view().get(header.crc_start()..header.header_len() + 4);
            self.open.crc.update(covered.unwrap_or_default());
            return self.start_payload(Codec::None, whole, Stage::Message);
        }
        // The checksum covers the header, whatever is wrong with it.
        self.source.consume(header.crc_start());
        self.take(header.header_len() - header.crc_start());
        let codec = codec?;
        if header.magic == Magic::V2 {
            let payload = header.header_len() as u64..header.size;
            return self.start_payload(codec, payload, Stage::Records);
        }
        self.open.payload = whole;
        self.open.stage = Stage::KeyLength;
        Ok(())
    }

    /// Sets up the decoder for a payload, and what is to be read of it.
    fn start_payload(
        &mut self,
        codec: Codec,
        payload: Range<u64>,
        legacy: Stage,
    ) -> Result<(), Error> {
        let header = self.open.header;
        let len = payload.end - payload.start;
        self.open.payload = payload;
        // An empty batch that kept its codec has no stream behind it (KAFKA-5490).
        let nothing = header.record_count == Some(0) && len == 0;
        self.open.finished = nothing || (codec == Codec::None && self.source.whole().is_some());
        self.open.codec = codec;
        self.open.stage = if header.magic == Magic::V2 { Stage::Records } else { legacy };
        if codec == Codec::None {
            self.open.produced = len;
        } else if !nothing {
            self.restart_decoder()?;
        }
        match header.record_count {
            Some(n) if n < 0 => Err(count_error(&header, 0, false)),
            _ => Ok(()),
        }
    }

    /// In a wrapper that passes through: the fields before its payload.
    fn wrapper_fields(&mut self) -> Result<Option<Action>, Error> {
        let header = self.open.header;
        let left = header.size - self.source.read();
        let view = self.source.view();
        let fault = |fault| Err(ErrorKind::MalformedRecord(fault).at(header.position));
        if let Stage::Key { left } = self.open.stage {
            let n = view.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let left = left - n as u64;
            self.take(n);
            self.open.stage = if left == 0 { Stage::ValueLength } else { Stage::Key { left } };
            return if left == 0 || n > 0 { Ok(None) } else { self.need_input() };
        }
        let Some(bytes) = view.first_chunk() else {
            return if left < 4 { fault(RecordFault::Overrun) } else { self.need_input() };
        };
        let len = i32::from_be_bytes(*bytes);
        let bytes = u64::try_from(len).unwrap_or(0);
        if bytes > left - 4 {
            return fault(RecordFault::MessageField(len));
        }
        self.take(4);
        if self.open.stage == Stage::KeyLength {
            self.open.stage = Stage::Key { left: bytes };
            return Ok(None);
        }
        if len < 0 {
            return Err(self.open.wrapper(WrapperFault::NullValue));
        }
        if header.magic == Magic::V1 {
            self.open.base = None;
        }
        let at = self.source.read();
        self.start_payload(header.codec()?, at..at + bytes, Stage::Set)?;
        Ok(None)
    }

    fn need_input(&self) -> Result<Option<Action>, Error> {
        self.source.dry()?;
        Ok(Some(Action::NeedInput))
    }

    fn restart_decoder(&mut self) -> Result<(), Error> {
        let (codec, header, at) = (self.open.codec, self.open.header, self.open.payload.start);
        match self.codecs.decoder(codec, header.magic) {
            Some(decoder) => decoder.reset(),
            None => {
                let kind = ErrorKind::CodecNotBuiltIn { codec };
                return Err(kind.at(header.position + at));
            }
        }
        self.window.clear();
        self.source.rewind(at);
        self.open.finished = false;
        self.open.plain = 0;
        self.open.produced = 0;
        Ok(())
    }

    /// Tries to get more plain bytes into the view.
    fn fill(&mut self) -> Result<Fill, Error> {
        let (codec, header) = (self.open.codec, self.open.header);
        let payload = self.open.payload.clone();
        let mut slid = false;
        loop {
            if self.open.finished {
                return Ok(Fill::Finished);
            }
            let read = self.source.read();
            let position = header.position + read;
            let left = payload.end.saturating_sub(read);
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let view = self.source.view();
            let input = view.get(..most).unwrap_or(view);
            if codec == Codec::None {
                self.open.finished = input.len() as u64 == left;
                return Ok(match self.open.finished {
                    true => Fill::Finished,
                    false if self.source.dry()? => Fill::Dry,
                    false => Fill::Stuck,
                });
            }
            if input.is_empty() && left > 0 {
                self.source.dry()?;
                return Ok(Fill::Dry);
            }
            let start = header.position + payload.start;
            let fail = |error: CodecError| {
                error.in_batch(codec, start, read.saturating_sub(payload.start))
            };
            let none = CodecError { kind: CodecErrorKind::NotBuiltIn, at: 0 };
            let decoder = self.codecs.decoder(codec, header.magic).ok_or_else(|| fail(none))?;
            let before = self.window.unread_len();
            let progress = decoder.advance(input, self.window).map_err(fail)?;
            // Raw snappy of klauspost's encoder (franz-go) copies from anywhere in its
            // block: as much of that is kept as costs no more moving than 64 KiB of 128.
            let history = match codec {
                Codec::Snappy => decoder.history().max(self.window.capacity() / 2),
                _ => decoder.history(),
            };
            let produced = self.window.unread_len() - before;
            let idle = progress.consumed < input.len() && produced == 0;
            if progress.pause == Pause::InputDry && (idle || input.is_empty()) {
                // A decoder that wants more at the end, or does not take what is there.
                return Err(fail(CodecError::truncated(0)));
            }
            self.take(progress.consumed);
            self.open.produced += produced as u64;
            let limit = self.limits.output(header.size);
            if self.open.produced > limit {
                let start = header.position + payload.start;
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
                match self.fill()? {
                    Fill::Finished => return Ok(None),
                    Fill::Dry => return Ok(Some(Action::NeedInput)),
                    Fill::More | Fill::Stuck => continue,
                }
            }
            if view.is_empty() && self.open.finished {
                return Err(count_error(&header, self.open.found, false));
            }
            match Layout::careful(view) {
                Ok(layout) => {
                    if header.is_control() {
                        let record = layout.record(&header, view);
                        if let Err(fault) = Control::parse(record.key, record.value) {
                            return Err(self.open.error(ErrorKind::MalformedControl(fault)));
                        }
                    }
                    self.open.count(header.base_offset.wrapping_add(layout.offset_delta.into()));
                    self.open.lent = layout.size;
                    self.open.layout = layout;
                    return Ok(Some(Action::Record));
                }
                Err(stop @ Stop::Incomplete(_)) => match self.fill()? {
                    Fill::More => {}
                    Fill::Dry => return Ok(Some(Action::NeedInput)),
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
        // Its length is there, or nothing would be known to be missing.
        let Ok((size, _)) = record_size(self.view()) else { return Err(self.too_small()) };
        self.open.record = Some((self.open.plain, size));
        let prefix = match Prefix::careful(self.view()) {
            Ok(prefix) => prefix,
            Err(VarintError::Incomplete) => return Err(self.too_small()),
            Err(VarintError::TooLong) => {
                let kind = ErrorKind::MalformedRecord(RecordFault::Varint);
                return Err(self.open.error(kind));
            }
        };
        let Prefix { timestamp_delta, offset_delta, key_length, len: at, .. } = prefix;
        let overrun = ErrorKind::MalformedRecord(RecordFault::Overrun);
        let left = size.checked_sub(at as u64).ok_or_else(|| self.open.error(overrun))?;
        let key = key_length.map_or(0, u64::from);
        if key > left {
            return Err(self.open.error(overrun));
        }
        let offset = header.base_offset.wrapping_add(offset_delta.into());
        self.open.lent = at;
        self.open.pieces = Some(Pieces::new(left, key));
        self.open.count(offset);
        Ok(Some(Action::Piece(Piece::Start {
            offset: Offset::Absolute(offset),
            timestamp: effective_timestamp(&header, timestamp_delta),
            size,
            key_len: key_length,
        })))
    }

    /// A message that does not fit the window: its fields up to the key. One in a set
    /// has a checksum of its own; that of any other is the entry's.
    fn start_message_pieces(
        &mut self,
        inner: &Inner,
        offset: Offset,
        in_set: bool,
    ) -> Result<Option<Action>, Error> {
        self.open.record = Some((self.open.plain, inner.total as u64));
        let view = self.view();
        let at = inner.magic.header_len() + 4;
        let fields = BatchHeader::parse(view, 0)
            .ok()
            .zip(view.get(at - 4..at).and_then(|bytes| bytes.first_chunk().copied()));
        let Some((message, key_len)) = fields else { return Err(self.too_small()) };
        let key_len = i32::from_be_bytes(key_len);
        let left = inner.total.checked_sub(at).map(|left| left as u64);
        let key = u64::try_from(key_len).unwrap_or(0);
        let fault = RecordFault::MessageField(key_len);
        let left = left
            .filter(|&left| key <= left)
            .ok_or_else(|| self.open.error(ErrorKind::MalformedRecord(fault)))?;
        let mut pieces = Pieces { legacy: true, ..Pieces::new(left, key) };
        let mut timestamp = message.max_timestamp;
        if in_set {
            let mut crc = crc32fast::Hasher::new();
            crc.update(view.get(16..at).unwrap_or_default());
            pieces.crc = Some((crc, message.crc));
            timestamp = inner_timestamp(&self.open.header, inner.magic, timestamp);
        }
        self.open.lent = at;
        self.open.pieces = Some(pieces);
        self.open.count(inner_number(offset));
        Ok(Some(Action::Piece(Piece::Start {
            offset,
            timestamp,
            size: inner.total as u64,
            key_len: u32::try_from(key_len).ok(),
        })))
    }

    /// Goes on with a record that comes in pieces.
    fn pieces(&mut self) -> Result<Option<Action>, Error> {
        loop {
            let Some(mut pieces) = self.open.pieces.take() else { return Ok(None) };
            let legacy = pieces.legacy;
            match pieces.field {
                Field::Key(0) => pieces.field = Field::ValueStart,
                Field::Value(0) => pieces.field = Field::Headers,
                Field::HeaderKey(0) => pieces.field = Field::HeaderValueStart,
                Field::HeaderValue(0) => pieces.field = Field::HeaderStart,
                Field::Key(n) | Field::Value(n) | Field::HeaderKey(n) | Field::HeaderValue(n) => {
                    let view = self.view();
                    if view.is_empty() {
                        self.open.pieces = Some(pieces);
                        if let dry @ Some(_) = self.more_of_record()? {
                            return Ok(dry);
                        }
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
                        if let dry @ Some(_) = self.more_of_record()? {
                            return Ok(dry);
                        }
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
                    let more = pieces.left > 0;
                    self.open.pieces = Some(pieces);
                    if more && let dry @ Some(_) = self.more_of_record()? {
                        return Ok(dry);
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
                    self.open.record = None;
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
        let (n, len) = if pieces.legacy {
            let Some(bytes) = part.first_chunk() else {
                return if part.len() < most { Ok(None) } else { Err(self.open.error(overrun)) };
            };
            if let Some((crc, _)) = &mut pieces.crc {
                crc.update(bytes);
            }
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
            return fault(if pieces.legacy {
                RecordFault::MessageField(n)
            } else {
                RecordFault::Overrun
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

    /// More bytes of a record, all of which must come; an action if they have not yet.
    fn more_of_record(&mut self) -> Result<Option<Action>, Error> {
        match self.fill()? {
            Fill::More => Ok(None),
            Fill::Dry => Ok(Some(Action::NeedInput)),
            // The record is cut, as `settle` says.
            Fill::Finished => {
                Err(self.open.error(ErrorKind::MalformedRecord(RecordFault::Overrun)))
            }
            Fill::Stuck => Err(self.too_small()),
        }
    }

    fn message(&mut self) -> Result<Option<Action>, Error> {
        if self.open.pieces.is_some() {
            return self.pieces();
        }
        if self.open.found > 0 {
            return Ok(None);
        }
        let header = self.open.header;
        let offset = Offset::Absolute(header.base_offset);
        if self.source.whole().is_none() {
            let total = usize::try_from(header.size).unwrap_or(usize::MAX);
            let inner = Inner { offset: header.base_offset, magic: header.magic, total };
            let start = self.start_message_pieces(&inner, offset, false);
            // It is in the sum already, whether or not it makes sense.
            let covered = header.header_len() + 4;
            self.source.consume(covered);
            self.open.plain += covered as u64;
            self.open.lent = 0;
            return start;
        }
        let view = self.view();
        let message = Message::parse(view)
            .map_err(|fault| self.open.error(ErrorKind::MalformedRecord(fault)))?;
        let len = view.len();
        self.open.lent = len;
        self.open.count(message.offset);
        Ok(Some(Action::Message(len, message, offset, message.timestamp)))
    }

    /// Looks through a v1 wrapper for its last inner offset. What is wrong in it is
    /// told when its messages are read, in the order in which it occurs.
    fn scan(&mut self) {
        self.open.stage = Stage::Set;
        match self.scan_to_end() {
            Ok(Some((last, kept))) => {
                match resolve_base(&self.open.header, last) {
                    Ok(base) => self.open.base = Some(base),
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
                Fill::Finished | Fill::Dry => return Ok(None),
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
                    Fill::Dry => return Ok(Some(Action::NeedInput)),
                    Fill::Finished if !self.view().is_empty() => {
                        return Err(self.open.wrapper(WrapperFault::Cut));
                    }
                    Fill::Finished if self.open.found == 0 => {
                        return Err(self.open.wrapper(WrapperFault::Empty));
                    }
                    Fill::Finished => return self.end_of_set(),
                    Fill::Stuck => {
                        let Some(inner) = inner else { return Err(self.too_small()) };
                        let offset = self.open.inner_offset(inner.offset);
                        self.open.last_inner = inner.offset;
                        let action = self.start_message_pieces(&inner, offset, true)?;
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
            let offset = self.open.inner_offset(message.offset);
            self.open.last_inner = message.offset;
            self.open.count(inner_number(offset));
            if self.open.condemned.is_some() {
                self.consume(inner.total);
                continue;
            }
            self.open.lent = inner.total;
            let timestamp = inner_timestamp(&self.open.header, message.magic, message.timestamp);
            return Ok(Some(Action::Message(inner.total, message, offset, timestamp)));
        }
    }

    fn end_of_set(&self) -> Result<Option<Action>, Error> {
        let fault = match (self.open.condemned, self.open.base) {
            (Some(fault), _) => Some(fault),
            (None, None) => resolve_base(&self.open.header, self.open.last_inner).err(),
            (None, Some(_)) => None,
        };
        fault.map_or(Ok(None), |fault| Err(self.open.wrapper(fault)))
    }
}

/// The number in an offset, whatever it counts from.
const fn inner_number(offset: Offset) -> i64 {
    offset.resolve(0)
}
