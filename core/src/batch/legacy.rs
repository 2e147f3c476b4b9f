//! Messages v0 and v1, alone or inside a compressed wrapper.
//!
//! ```text
//!  v0 off  v1 off  len  field
//!     0       0     8   offset
//!     8       8     4   size
//!    12      12     4   crc: CRC-32 of [16, end)
//!    16      16     1   magic
//!    17      17     1   attributes
//!     –      18     8   timestamp, −1 none
//!    18      26     4   key length, negative = null
//!    22      30     k   key
//!  22+k    30+k     4   value length, negative = null
//!  26+k    34+k     v   value
//! ```
//! In a compressed wrapper the value is a compressed concatenation of such
//! messages. A v0 wrapper's inner offsets are absolute; those of a v1 wrapper are
//! relative to `wrapper offset − last inner offset`. Source: `LegacyRecord.java`,
//! `AbstractLegacyRecordBatch.java`.

use super::header::Magic;
use super::{Attributes, BatchHeader, TimestampType};
use crate::cursor::Cursor;
use crate::error::{RecordFault, WrapperFault};

/// A part of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl Span {
    pub(crate) const fn as_range(self) -> core::ops::Range<usize> {
        self.at..self.at + self.len
    }
}

/// The fields of a message, as positions in its entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) magic: Magic,
    pub(crate) offset: i64,
    pub(crate) crc: u32,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Span>,
    pub(crate) value: Option<Span>,
}

impl Message {
    /// Reads a whole entry. Bytes behind the value are covered by the CRC and
    /// otherwise ignored, as Kafka does.
    pub(crate) fn parse(entry: &[u8]) -> Result<Self, RecordFault> {
        let header = BatchHeader::parse(entry, 0).map_err(|_| RecordFault::Overrun)?;
        let mut cursor = Cursor::new(entry);
        cursor.take(header.header_len()).ok_or(RecordFault::Overrun)?;
        let key = Self::field(&mut cursor)?;
        let value = Self::field(&mut cursor)?;
        Ok(Self {
            magic: header.magic,
            offset: header.base_offset,
            crc: header.crc,
            timestamp: header.max_timestamp,
            key,
            value,
        })
    }

    fn field(cursor: &mut Cursor<'_>) -> Result<Option<Span>, RecordFault> {
        let len = cursor.i32().ok_or(RecordFault::Overrun)?;
        let Ok(n) = usize::try_from(len) else { return Ok(None) };
        let at = cursor.position();
        cursor.take(n).ok_or(RecordFault::MessageField(len))?;
        Ok(Some(Span { at, len: n }))
    }
}

/// Start of a message inside a wrapper, checked as far as its framing goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inner {
    pub(crate) offset: i64,
    pub(crate) magic: Magic,
    /// Whole size in bytes.
    pub(crate) total: usize,
}

impl Inner {
    /// Bytes that [`Inner::parse`] looks at: up to the attributes.
    pub(crate) const LEN: usize = 18;

    pub(crate) fn parse(prefix: &[u8; Self::LEN]) -> Result<Self, WrapperFault> {
        let mut cursor = Cursor::new(prefix);
        let fields = (|| {
            let (offset, size) = (cursor.i64()?, cursor.i32()?);
            cursor.take(4)?;
            Some((offset, size, cursor.i8()?, cursor.i8()?))
        })();
        let (offset, size, magic, attributes) = fields.ok_or(WrapperFault::Cut)?;
        let magic = match Magic::from_byte(magic) {
            Some(known @ (Magic::V0 | Magic::V1)) => known,
            _ => return Err(WrapperFault::InnerMagic(magic)),
        };
        let total = usize::try_from(size)
            .ok()
            .filter(|_| size >= magic.least_size())
            .and_then(|size| size.checked_add(12))
            .ok_or(WrapperFault::InnerSize(size))?;
        if Attributes(i16::from(attributes)).codec_id() != 0 {
            return Err(WrapperFault::Nested);
        }
        Ok(Self { offset, magic, total })
    }
}

/// How a set's inner offsets become absolute, known once the last one is.
///
/// Errors: the wrapper's offset is below the last inner one. An offset of 0 stands
/// for "not assigned" (old librdkafka): the inner offsets are taken as they are.
pub(crate) fn resolve_base(wrapper: &BatchHeader, last_inner: i64) -> Result<i64, WrapperFault> {
    let offset = wrapper.base_offset;
    if wrapper.magic == Magic::V0 || offset == 0 {
        Ok(0)
    } else if offset < last_inner {
        Err(WrapperFault::Offset { wrapper: offset })
    } else {
        Ok(offset.wrapping_sub(last_inner))
    }
}

/// Timestamp of a message inside `wrapper`: a v1 wrapper with LogAppendTime
/// decides for all but v0 messages, which have none.
pub(crate) const fn inner_timestamp(wrapper: &BatchHeader, magic: Magic, own: i64) -> i64 {
    match (wrapper.timestamp_type(), magic) {
        (_, Magic::V0) => -1,
        (Some(TimestampType::LogAppendTime), _) => wrapper.max_timestamp,
        _ => own,
    }
}
