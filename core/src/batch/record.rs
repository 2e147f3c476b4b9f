//! Records, of whatever version.
//!
//! A v2 record:
//!
//! ```text
//!  length           varint   bytes behind this field
//!  attributes       i8       0, ignored
//!  timestamp delta  varlong  against base_timestamp
//!  offset delta     varint   against base_offset
//!  key length       varint   negative = null      key
//!  value length     varint   negative = null      value
//!  header count     varint
//!    key length     varint   ≥ 0                  key
//!    value length   varint   negative = null      value
//! ```
//! The fields must take up exactly `length` bytes. Offset deltas are whatever the
//! producer wrote: readers check neither their order nor the last one, since
//! compaction leaves gaps. Source: `DefaultRecord.java`.

use super::control::Control;
use super::headers::{Headers, split_field, take_field};
use super::legacy::{Inner, Message, Span, inner_timestamp, resolve_base};
use super::{BatchHeader, TimestampType};
use crate::arch::{PrefixDecoder, PrefixLoop, Scalar, with_prefix_decoder};
use crate::cpu::Cpu;
use crate::crc32c::crc32;
use crate::error::{Error, ErrorKind, RecordFault, WrapperFault};
use crate::varint::{Prefix, VarintError, decode_varint, decode_varlong, take_zigzag};

/// Offset of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Offset {
    /// Its offset in the partition.
    Absolute(i64),
    /// Of a message in a v1 wrapper that was handed out before the wrapper's end
    /// was seen: the base to be added comes with [`crate::BatchEnd::offset_base`].
    Relative(i64),
}

impl Offset {
    /// The offset in the partition, given the base of the batch.
    #[must_use]
    pub const fn resolve(self, base: i64) -> i64 {
        match self {
            Self::Absolute(offset) => offset,
            Self::Relative(offset) => offset.wrapping_add(base),
        }
    }

    /// The offset in the partition, where it is known already.
    #[must_use]
    pub const fn absolute(self) -> Option<i64> {
        match self {
            Self::Absolute(offset) => Some(offset),
            Self::Relative(_) => None,
        }
    }
}

/// A record: borrows the buffers that it lies in.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Where it is in the partition.
    pub offset: Offset,
    /// Effective timestamp in epoch milliseconds: the batch's for LogAppendTime,
    /// −1 for none.
    pub timestamp: i64,
    /// `None` is null, which differs from empty.
    pub key: Option<&'a [u8]>,
    /// `None` is null (a tombstone), which differs from empty.
    pub value: Option<&'a [u8]>,
    /// In their order; none for v0/v1.
    pub headers: Headers<'a>,
    /// Bytes on the wire, uncompressed; for v0/v1 with offset and size field.
    pub size: usize,
    /// v0/v1: the message's own CRC-32, already checked.
    pub crc: Option<u32>,
}

/// Offset, timestamp and lengths: a log of keys and values would be no small thing.
#[cfg(feature = "defmt")]
impl defmt::Format for Record<'_> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(
            f,
            "Record {{ {}, timestamp: {}, key: {}, value: {}, headers: {} }}",
            self.offset,
            self.timestamp,
            self.key.map(<[u8]>::len),
            self.value.map(<[u8]>::len),
            self.headers.len()
        );
    }
}

/// Where the fields of a v2 record lie, relative to its first byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) size: usize,
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<Span>,
    pub(crate) value: Option<Span>,
    pub(crate) headers: Span,
    pub(crate) header_count: usize,
}

/// Why there is no layout yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end within the record, which has this size if that is known.
    Incomplete(Option<u64>),
    Fault(RecordFault),
}

impl From<VarintError> for Stop {
    /// Inside a record all of whose bytes are there.
    fn from(error: VarintError) -> Self {
        Self::Fault(match error {
            VarintError::Incomplete => RecordFault::Overrun,
            VarintError::TooLong => RecordFault::Varint,
        })
    }
}

/// Reads the length of the record that `bytes` starts with: the whole size, and
/// how many bytes of that the length field takes.
pub(crate) fn record_size(bytes: &[u8]) -> Result<(u64, usize), Stop> {
    match decode_varint(bytes) {
        Ok((length, at)) => match u64::try_from(length) {
            Ok(0) | Err(_) => Err(Stop::Fault(RecordFault::Length(length))),
            Ok(n) => Ok((n + at as u64, at)),
        },
        Err(VarintError::Incomplete) => Err(Stop::Incomplete(None)),
        Err(VarintError::TooLong) => Err(Stop::Fault(RecordFault::Varint)),
    }
}

/// Walks the fields of a record.
struct Walk<'a> {
    body: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    #[inline]
    fn rest(&self) -> &[u8] {
        self.body.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn varint(&mut self) -> Result<i32, Stop> {
        let (n, len) = decode_varint(self.rest())?;
        self.at += len;
        Ok(n)
    }

    #[inline]
    fn varlong(&mut self) -> Result<i64, Stop> {
        let (n, len) = decode_varlong(self.rest())?;
        self.at += len;
        Ok(n)
    }

    /// A field of `len` bytes, negative for null.
    #[inline]
    fn span(&mut self, len: i32) -> Result<Option<Span>, Stop> {
        let Ok(len) = usize::try_from(len) else { return Ok(None) };
        if len > self.body.len() - self.at {
            return Err(Stop::Fault(RecordFault::Overrun));
        }
        let span = Span { at: self.at, len };
        self.at += len;
        Ok(Some(span))
    }

    #[inline]
    fn sized(&mut self) -> Result<Option<Span>, Stop> {
        let len = self.varint()?;
        self.span(len)
    }
}

impl Layout {
    /// Of nothing.
    pub(crate) const EMPTY: Self = Self {
        size: 0,
        timestamp_delta: 0,
        offset_delta: 0,
        key: None,
        value: None,
        headers: Span { at: 0, len: 0 },
        header_count: 0,
    };

    /// Of the record that `bytes` starts with, if it is good and all there. What
    /// [`Layout::careful`] finds as well, in few instructions.
    #[inline(always)]
    pub(crate) fn quick(bytes: &[u8]) -> Option<Self> {
        Parts::parse(Scalar, bytes).map(|(parts, _)| parts.layout())
    }

    /// Parses the fields one by one, and says what is wrong with the first bad one.
    #[cold]
    #[inline(never)]
    pub(crate) fn careful(bytes: &[u8]) -> Result<Self, Stop> {
        let (total, at) = record_size(bytes)?;
        let incomplete = Stop::Incomplete(Some(total));
        let size = usize::try_from(total).map_err(|_| incomplete)?;
        let body = bytes.get(..size).ok_or(incomplete)?;
        // One byte of attributes, which nobody has used yet.
        let mut fields = Walk { body, at: at + 1 };
        let timestamp_delta = fields.varlong()?;
        let offset_delta = fields.varint()?;
        let key = fields.sized()?;
        let value = fields.sized()?;
        let count = fields.varint()?;
        let headers_at = fields.at;
        let header_count = usize::try_from(count)
            .ok()
            .filter(|&n| n <= size - headers_at)
            .ok_or(Stop::Fault(RecordFault::HeaderCount(count)))?;
        for _ in 0..header_count {
            let key_len = fields.varint()?;
            if fields.span(key_len)?.is_none() {
                return Err(Stop::Fault(RecordFault::NullHeaderKey(key_len)));
            }
            fields.sized()?;
        }
        if fields.at != size {
            let slack = u32::try_from(size - fields.at).unwrap_or(u32::MAX);
            return Err(Stop::Fault(RecordFault::Slack(slack)));
        }
        let headers = Span { at: headers_at, len: size - headers_at };
        Ok(Self { size, timestamp_delta, offset_delta, key, value, headers, header_count })
    }

    /// The record, from the bytes that were parsed.
    #[inline]
    pub(crate) fn record<'a>(&self, header: &BatchHeader, bytes: &'a [u8]) -> Record<'a> {
        Record {
            offset: Offset::Absolute(header.base_offset.wrapping_add(self.offset_delta.into())),
            timestamp: effective_timestamp(header, self.timestamp_delta),
            key: self.key.and_then(|span| bytes.get(span.as_range())),
            value: self.value.and_then(|span| bytes.get(span.as_range())),
            headers: Headers::new(
                bytes.get(self.headers.as_range()).unwrap_or_default(),
                self.header_count,
            ),
            size: self.size,
            crc: None,
        }
    }
}

/// The fields of a v2 record that is good and all there. What [`Layout::careful`] finds
/// as well, in few instructions; of what it does not like it says nothing.
#[derive(Debug, Clone, Copy)]
struct Parts<'a> {
    size: usize,
    timestamp_delta: i64,
    offset_delta: i32,
    key_at: usize,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: &'a [u8],
    header_count: usize,
}

impl<'a> Parts<'a> {
    /// Gives what is behind the record, too.
    #[inline(always)]
    fn parse(decoder: impl PrefixDecoder, bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        match Prefix::quick(decoder, bytes) {
            Some(prefix) => Self::behind(&prefix, bytes),
            None => Self::parse_long(bytes),
        }
    }

    /// Prefixes of many bytes. Apart, so that it does not get in the way of the others.
    #[inline(never)]
    fn parse_long(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Self::behind(&Prefix::careful(bytes).ok()?, bytes)
    }

    /// What is behind a prefix.
    #[inline(always)]
    fn behind(prefix: &Prefix, bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let &Prefix { timestamp_delta, offset_delta, len: key_at, .. } = prefix;
        let size = prefix.length_len + usize::try_from(prefix.length).ok()?;
        let (body, behind) = bytes.split_at_checked(size)?;
        let (key, rest) = match prefix.key_length {
            Some(len) => {
                let (before, rest) = body.split_at_checked(key_at + len as usize)?;
                (Some(before.get(key_at..)?), rest)
            }
            None => (None, body.get(key_at..)?),
        };
        let (zigzag, rest) = take_zigzag(rest)?;
        let (value, headers, header_count) = match rest.split_last() {
            // Most often a value and no headers.
            Some((0, value)) if zigzag & 1 == 0 && value.len() == (zigzag >> 1) as usize => {
                (Some(value), &[][..], 0)
            }
            _ => value_and_headers(zigzag, rest)?,
        };
        let parts =
            Self { size, timestamp_delta, offset_delta, key_at, key, value, headers, header_count };
        Some((parts, behind))
    }

    #[inline(always)]
    fn record(&self, header: &BatchHeader) -> Record<'a> {
        Record {
            offset: Offset::Absolute(header.base_offset.wrapping_add(self.offset_delta.into())),
            timestamp: effective_timestamp(header, self.timestamp_delta),
            key: self.key,
            value: self.value,
            headers: Headers::new(self.headers, self.header_count),
            size: self.size,
            crc: None,
        }
    }

    #[inline(always)]
    fn layout(&self) -> Layout {
        let &Self { size, timestamp_delta, offset_delta, key_at, header_count, .. } = self;
        let headers = Span { at: size - self.headers.len(), len: self.headers.len() };
        let value = self.value.map(<[u8]>::len);
        Layout {
            size,
            timestamp_delta,
            offset_delta,
            key: self.key.map(|key| Span { at: key_at, len: key.len() }),
            // Behind it is the number of headers, in one byte.
            value: value.map(|len| Span { at: headers.at - 1 - len, len }),
            headers,
            header_count,
        }
    }
}

/// Value, headers and their number.
type Behind<'a> = (Option<&'a [u8]>, &'a [u8], usize);

/// A value whose length is decoded but for the zig-zag, and the headers behind it.
#[inline(never)]
fn value_and_headers(zigzag: u32, rest: &[u8]) -> Option<Behind<'_>> {
    let (value, rest) = split_field(zigzag, rest)?;
    Some((value, rest.get(1..)?, count_headers(rest)?))
}

/// The number of headers, if it takes one byte and they fill `bytes` to the end.
fn count_headers(bytes: &[u8]) -> Option<usize> {
    let (count, mut rest) = bytes.split_first()?;
    let count = usize::from(*count);
    // An even number below 128, halved, by zig-zag.
    if count & 0x81 != 0 {
        return None;
    }
    for _ in 0..count / 2 {
        let (key, behind) = take_field(rest)?;
        key?;
        (_, rest) = take_field(behind)?;
    }
    rest.is_empty().then_some(count / 2)
}

/// LogAppendTime overrides whatever delta the producer wrote.
pub(crate) const fn effective_timestamp(header: &BatchHeader, delta: i64) -> i64 {
    match header.attributes.timestamp_type() {
        TimestampType::CreateTime => header.base_timestamp.wrapping_add(delta),
        TimestampType::LogAppendTime => header.max_timestamp,
    }
}

/// The fault of records that end, or go on, where the count says otherwise.
pub(crate) fn count_error(header: &BatchHeader, found: u32, more: bool) -> Error {
    let declared = header.record_count.unwrap_or(0);
    ErrorKind::RecordCount { declared, found, more }.at(header.position + 57)
}

/// The records of one batch, from a slice that holds all of them uncompressed.
///
/// Yields `Err` once, as the last item, where they cannot be parsed, or where
/// their number is not the one declared: then those before it are not to be
/// trusted either, as Kafka refuses the whole batch.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    header: BatchHeader,
    /// Not read yet.
    rest: &'a [u8],
    /// Bytes of all of them.
    len: usize,
    found: u32,
    /// While fewer are found, records may be read by the short way, which leaves every
    /// doubt to the long one: the declared count for a v2 batch of data, otherwise 0.
    quick_until: u32,
    shape: Shape,
    /// Absolute position of the bytes, or of the compressed payload they are from.
    position: u64,
    inflated: bool,
    done: bool,
    cpu: Cpu,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    /// v2.
    Batch,
    /// A v0/v1 message that is not compressed.
    Message,
    /// The inside of a v0/v1 wrapper. A base that cannot be is told at the end, as
    /// for a reader that streams.
    Set { base: Result<i64, WrapperFault> },
}

impl<'a> Records<'a> {
    pub(super) fn of_batch(
        header: BatchHeader,
        bytes: &'a [u8],
        position: u64,
        inflated: bool,
        cpu: Cpu,
    ) -> Result<Self, Error> {
        if header.record_count.is_some_and(|n| n < 0) {
            return Err(count_error(&header, 0, false));
        }
        Ok(Self::new(header, bytes, Shape::Batch, position, inflated, cpu))
    }

    pub(super) const fn of_message(header: BatchHeader, entry: &'a [u8], cpu: Cpu) -> Self {
        Self::new(header, entry, Shape::Message, header.position, false, cpu)
    }

    pub(super) fn of_set(header: BatchHeader, plain: &'a [u8], position: u64, cpu: Cpu) -> Self {
        let base = resolve_base(&header, last_inner_offset(plain));
        Self::new(header, plain, Shape::Set { base }, position, true, cpu)
    }

    const fn new(
        header: BatchHeader,
        bytes: &'a [u8],
        shape: Shape,
        position: u64,
        inflated: bool,
        cpu: Cpu,
    ) -> Self {
        let quick_until = match (shape, header.record_count) {
            (Shape::Batch, Some(count @ 0..)) if !header.is_control() => count.unsigned_abs(),
            _ => 0,
        };
        let len = bytes.len();
        Self {
            header,
            rest: bytes,
            len,
            found: 0,
            quick_until,
            shape,
            position,
            inflated,
            done: false,
            cpu,
        }
    }

    /// The next record, if it is one of the ordinary: few instructions, and no call that
    /// an optimizer could not see through.
    #[inline(always)]
    fn next_quick(&mut self) -> Option<Record<'a>> {
        if self.found >= self.quick_until {
            return None;
        }
        let (parts, rest) = Parts::parse(Scalar, self.rest)?;
        self.rest = rest;
        self.found += 1;
        Some(parts.record(&self.header))
    }

    /// The next record by the long way, or what is wrong with it.
    #[inline(never)]
    fn next_careful(&mut self) -> Result<Option<Record<'a>>, Error> {
        if self.done {
            return Ok(None);
        }
        let next = match self.shape {
            Shape::Batch => self.next_of_batch(),
            Shape::Message => self.next_message(),
            Shape::Set { base } => self.next_of_set(base),
        };
        self.done = !matches!(next, Some(Ok(_)));
        next.transpose()
    }

    fn error(&self, kind: ErrorKind) -> Error {
        let at = (self.len - self.rest.len()) as u64;
        if self.inflated { kind.at(self.position).inside(at) } else { kind.at(self.position + at) }
    }

    fn next_of_batch(&mut self) -> Option<Result<Record<'a>, Error>> {
        let rest = self.rest;
        let declared = self.header.record_count.unwrap_or(0).unsigned_abs();
        if self.found == declared {
            return (!rest.is_empty()).then(|| Err(count_error(&self.header, self.found, true)));
        }
        if rest.is_empty() {
            return Some(Err(count_error(&self.header, self.found, false)));
        }
        let layout = match Layout::careful(rest) {
            Ok(layout) => layout,
            Err(stop) => return Some(Err(self.error(past_end(stop)))),
        };
        let record = layout.record(&self.header, rest);
        if self.header.is_control()
            && let Err(fault) = Control::parse(record.key, record.value)
        {
            return Some(Err(self.error(ErrorKind::MalformedControl(fault))));
        }
        self.rest = rest.get(layout.size..).unwrap_or_default();
        self.found += 1;
        Some(Ok(record))
    }

    fn next_message(&mut self) -> Option<Result<Record<'a>, Error>> {
        if self.found > 0 {
            return None;
        }
        self.found = 1;
        let offset = Offset::Absolute(self.header.base_offset);
        Some(match Message::parse(self.rest) {
            Ok(message) => Ok(message_record(self.rest, &message, offset, message.timestamp)),
            Err(fault) => Err(self.error(ErrorKind::MalformedRecord(fault))),
        })
    }

    fn next_of_set(
        &mut self,
        base: Result<i64, WrapperFault>,
    ) -> Option<Result<Record<'a>, Error>> {
        let wrapper = |fault| ErrorKind::MalformedWrapper(fault).at(self.header.position);
        loop {
            let rest = self.rest;
            if rest.is_empty() {
                return match base {
                    _ if self.found == 0 => Some(Err(wrapper(WrapperFault::Empty))),
                    Ok(_) => None,
                    Err(fault) => Some(Err(wrapper(fault))),
                };
            }
            let inner = match rest.first_chunk().map(Inner::parse) {
                Some(Ok(inner)) => inner,
                Some(Err(fault)) => return Some(Err(wrapper(fault))),
                None => return Some(Err(wrapper(WrapperFault::Cut))),
            };
            let Some(entry) = rest.get(..inner.total) else {
                return Some(Err(wrapper(WrapperFault::Cut)));
            };
            let message = match Message::parse(entry) {
                Ok(message) => message,
                Err(fault) => return Some(Err(self.error(ErrorKind::MalformedRecord(fault)))),
            };
            if let Err(kind) = check_message_crc(entry, &message) {
                return Some(Err(self.error(kind)));
            }
            self.rest = rest.get(inner.total..).unwrap_or_default();
            self.found = self.found.saturating_add(1);
            // With a base that cannot be, the records are walked for a fault that
            // comes first, and none is handed out.
            if let Ok(base) = base {
                let offset = Offset::Absolute(message.offset.wrapping_add(base));
                let timestamp = inner_timestamp(&self.header, message.magic, message.timestamp);
                return Some(Ok(message_record(entry, &message, offset, timestamp)));
            }
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self.next_quick() {
            Some(record) => Some(Ok(record)),
            None => self.next_careful().transpose(),
        }
    }

    /// Where the processor can, with several fields of a record decoded at once: a loop
    /// inside is compiled for its instructions, one around [`Iterator::next`] is not.
    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, f: F) -> B {
        with_prefix_decoder(self.cpu, Fold { records: self, init, f })
    }
}

/// [`Records::fold`] for one decoder of prefixes.
struct Fold<'a, B, F> {
    records: Records<'a>,
    init: B,
    f: F,
}

impl<'a, B, F> PrefixLoop for Fold<'a, B, F>
where
    F: FnMut(B, Result<Record<'a>, Error>) -> B,
{
    type Output = B;

    #[inline(always)]
    fn run(self, decoder: impl PrefixDecoder) -> B {
        let Self { mut records, init: mut acc, mut f } = self;
        let header = records.header;
        // Of their own, since `records` lies in memory because of the calls below.
        let (mut rest, mut found) = (records.rest, records.found);
        loop {
            if found < records.quick_until
                && let Some((parts, behind)) = Parts::parse(decoder, rest)
            {
                (rest, found) = (behind, found + 1);
                acc = f(acc, Ok(parts.record(&header)));
                continue;
            }
            (records.rest, records.found) = (rest, found);
            match records.next_careful() {
                Ok(Some(record)) => acc = f(acc, Ok(record)),
                Ok(None) => return acc,
                Err(error) => return f(acc, Err(error)),
            }
            (rest, found) = (records.rest, records.found);
        }
    }
}

/// A record that its bytes end within, all of them being there.
pub(crate) fn past_end(stop: Stop) -> ErrorKind {
    ErrorKind::MalformedRecord(match stop {
        Stop::Fault(fault) => fault,
        Stop::Incomplete(None) => RecordFault::Overrun,
        Stop::Incomplete(Some(size)) => {
            RecordFault::PastEnd(i64::try_from(size).unwrap_or(i64::MAX))
        }
    })
}

/// CRC-32 of a message inside a wrapper.
pub(crate) fn check_message_crc(entry: &[u8], message: &Message) -> Result<(), ErrorKind> {
    let computed = crc32(entry.get(16..).unwrap_or_default());
    if computed == message.crc {
        Ok(())
    } else {
        Err(ErrorKind::CrcMismatch { stored: message.crc, computed })
    }
}

pub(crate) fn message_record<'a>(
    entry: &'a [u8],
    message: &Message,
    offset: Offset,
    timestamp: i64,
) -> Record<'a> {
    Record {
        offset,
        timestamp,
        key: message.key.and_then(|span| entry.get(span.as_range())),
        value: message.value.and_then(|span| entry.get(span.as_range())),
        headers: Headers::default(),
        size: entry.len(),
        crc: Some(message.crc),
    }
}

/// Offset of the last message of a set, as far as its framing holds; a fault
/// behind that is found when the messages are read.
fn last_inner_offset(mut rest: &[u8]) -> i64 {
    let mut last = 0;
    while let Some(Ok(inner)) = rest.first_chunk().map(Inner::parse)
        && let Some(behind) = rest.get(inner.total..)
    {
        (last, rest) = (inner.offset, behind);
    }
    last
}
