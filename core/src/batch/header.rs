//! Entry framing, and the header of a v2 batch.
//!
//! ```text
//!  off len  field of a v2 batch (61 bytes)     off len  field of a v0/v1 message
//!    0   8  base_offset                          0   8  offset
//!    8   4  size: bytes behind this field        8   4  size
//!   12   4  partition_leader_epoch              12   4  crc: CRC-32 of [16, end)
//!   16   1  magic = 2                           16   1  magic = 0 or 1
//!   17   4  crc: CRC-32C of [21, end)           17   1  attributes
//!   21   2  attributes                          18   8  timestamp (v1 only)
//!   23   4  last_offset_delta
//!   27   8  base_timestamp, or delete horizon
//!   35   8  max_timestamp
//!   43   8  producer_id
//!   51   2  producer_epoch
//!   53   4  base_sequence
//!   57   4  record count
//! ```
//! Source: `DefaultRecordBatch.java`, `LegacyRecord.java` of Apache Kafka.

use super::{Attributes, TimestampType};
use crate::codec::Codec;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};

/// Version of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Magic {
    /// Message without timestamp (before 0.10).
    V0,
    /// Message with timestamp (0.10).
    V1,
    /// RecordBatch (0.11 and later).
    V2,
}

impl Magic {
    /// 0, 1 or 2.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V0 => 0,
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    pub(crate) const fn from_byte(byte: i8) -> Option<Self> {
        match byte {
            0 => Some(Self::V0),
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }

    /// Least value of the size field: what the fixed fields take.
    #[must_use]
    pub const fn least_size(self) -> i32 {
        match self {
            Self::V0 => 14,
            Self::V1 => 22,
            Self::V2 => 49,
        }
    }

    /// Bytes of an entry that [`BatchHeader::parse`] reads.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            Self::V0 => 18,
            Self::V1 => 26,
            Self::V2 => 61,
        }
    }
}

/// The first 17 bytes of an entry, checked: enough to find its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Framing {
    /// Offset field.
    pub offset: i64,
    /// Size field: bytes behind it.
    pub size: i32,
    /// Version.
    pub magic: Magic,
}

impl Framing {
    /// Bytes that [`Framing::parse`] looks at.
    pub const LEN: usize = 17;

    /// Reads and checks the start of an entry at `position`.
    ///
    /// The magic is looked at before the size is believed, so that a file of
    /// another kind is told as such.
    ///
    /// Errors: [`ErrorKind::UnknownMagic`], [`ErrorKind::BatchLength`].
    pub fn parse(prefix: &[u8; Self::LEN], position: u64) -> Result<Self, Error> {
        let [o0, o1, o2, o3, o4, o5, o6, o7, s0, s1, s2, s3, _, _, _, _, m] = *prefix;
        let magic = i8::from_be_bytes([m]);
        let Some(known) = Magic::from_byte(magic) else {
            return Err(ErrorKind::UnknownMagic { magic }.at(position + 16));
        };
        let size = i32::from_be_bytes([s0, s1, s2, s3]);
        let least = known.least_size();
        if size < least {
            return Err(ErrorKind::BatchLength { size, least }.at(position + 8));
        }
        let offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        Ok(Self { offset, size, magic: known })
    }

    /// Whole size of the entry in bytes: 12 more than the size field. It does not
    /// overflow as Kafka's own 32-bit sum does.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.size.unsigned_abs() as u64 + 12
    }

    /// Checks what is there of an entry that the input ends in.
    ///
    /// Its CRC cannot tell whether it is one, so a file of some other kind whose
    /// seventeenth byte happens to be 0, 1 or 2 would pass for the start of a
    /// large batch. `seen` are its bytes as far as they are there.
    ///
    /// Errors: [`ErrorKind::NotASegment`].
    pub fn check_partial(&self, seen: &[u8], position: u64) -> Result<(), Error> {
        let sane = match BatchHeader::parse(seen, position) {
            Ok(header) => header.is_plausible() && header.has_plausible_key(seen),
            Err(_) => is_plausible_offset(self.offset),
        };
        if sane { Ok(()) } else { Err(ErrorKind::NotASegment { size: self.size }.at(position + 8)) }
    }
}

/// Header of an entry. Fields that its version does not have hold Kafka's "none",
/// −1, and `record_count` is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct BatchHeader {
    /// Where the entry starts, in bytes from the start of the segment.
    pub position: u64,
    /// Whole size in bytes, offset and size field included.
    pub size: u64,
    /// Version.
    pub magic: Magic,
    /// Offset field: of the first record (v2), of the message or of the last
    /// message inside (v0/v1).
    pub base_offset: i64,
    /// Stored checksum.
    pub crc: u32,
    /// Codec, timestamp type and flags.
    pub attributes: Attributes,
    /// v2: last offset − base offset, whether or not that record still exists.
    pub last_offset_delta: i32,
    /// v2: origin of the timestamp deltas, or the delete horizon. Milliseconds.
    pub base_timestamp: i64,
    /// v2: largest timestamp; v1: the message's own. Milliseconds.
    pub max_timestamp: i64,
    /// v2: idempotent producer.
    pub producer_id: i64,
    /// v2: its epoch.
    pub producer_epoch: i16,
    /// v2: sequence number of the first record.
    pub base_sequence: i32,
    /// v2: stamped by the broker, not covered by the CRC.
    pub partition_leader_epoch: i32,
    /// v2: declared number of records.
    pub record_count: Option<i32>,
}

impl BatchHeader {
    /// Reads the header from the start of an entry at `position`; `bytes` may be
    /// longer or shorter than the entry, down to [`Magic::header_len`].
    ///
    /// Errors: those of [`Framing::parse`], and [`ErrorKind::BufferTooSmall`] if
    /// `bytes` ends within the header.
    pub fn parse(bytes: &[u8], position: u64) -> Result<Self, Error> {
        let short = |need: usize| {
            ErrorKind::BufferTooSmall { need: need as u64, have: bytes.len() as u64 }.at(position)
        };
        let prefix = bytes.first_chunk().ok_or_else(|| short(Framing::LEN))?;
        let framing = Framing::parse(prefix, position)?;
        let mut cursor = Cursor::new(bytes);
        let fields = match framing.magic {
            Magic::V2 => Self::fields_v2(&mut cursor, &framing),
            Magic::V0 | Magic::V1 => Self::fields_legacy(&mut cursor, &framing),
        };
        fields
            .map(|header| Self { position, ..header })
            .ok_or_else(|| short(framing.magic.header_len()))
    }

    fn fields_v2(cursor: &mut Cursor<'_>, framing: &Framing) -> Option<Self> {
        cursor.take(12)?;
        let partition_leader_epoch = cursor.i32()?;
        cursor.take(1)?;
        Some(Self {
            position: 0,
            size: framing.total(),
            magic: Magic::V2,
            base_offset: framing.offset,
            partition_leader_epoch,
            crc: cursor.u32()?,
            attributes: Attributes(cursor.i16()?),
            last_offset_delta: cursor.i32()?,
            base_timestamp: cursor.i64()?,
            max_timestamp: cursor.i64()?,
            producer_id: cursor.i64()?,
            producer_epoch: cursor.i16()?,
            base_sequence: cursor.i32()?,
            record_count: Some(cursor.i32()?),
        })
    }

    fn fields_legacy(cursor: &mut Cursor<'_>, framing: &Framing) -> Option<Self> {
        cursor.take(12)?;
        let crc = cursor.u32()?;
        cursor.take(1)?;
        let attributes = Attributes(i16::from(cursor.i8()?));
        let max_timestamp = if framing.magic == Magic::V1 { cursor.i64()? } else { -1 };
        Some(Self {
            position: 0,
            size: framing.total(),
            magic: framing.magic,
            base_offset: framing.offset,
            crc,
            attributes,
            last_offset_delta: 0,
            base_timestamp: -1,
            max_timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            partition_leader_epoch: -1,
            record_count: None,
        })
    }

    /// Bytes of the header, 61 for v2; for v0/v1 what comes before the key length.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.magic.header_len()
    }

    /// Where the bytes start that the CRC covers, relative to the entry: v2 leaves
    /// the leader epoch out, and no version covers offset and size, so a broker
    /// can stamp them.
    #[must_use]
    pub const fn crc_start(&self) -> usize {
        match self.magic {
            Magic::V2 => 21,
            Magic::V0 | Magic::V1 => 16,
        }
    }

    /// Absolute position of the CRC field.
    #[must_use]
    pub const fn crc_position(&self) -> u64 {
        match self.magic {
            Magic::V2 => self.position + 17,
            Magic::V0 | Magic::V1 => self.position + 12,
        }
    }

    /// Compares the stored CRC with a computed one.
    pub const fn compare_crc(&self, computed: u32) -> Result<(), Error> {
        if computed == self.crc {
            return Ok(());
        }
        let kind = ErrorKind::CrcMismatch { stored: self.crc, computed };
        Err(Error::new(kind, self.crc_position()))
    }

    /// The codec.
    ///
    /// Errors: [`ErrorKind::UnknownCodec`], also for zstd in v0/v1.
    pub const fn codec(&self) -> Result<Codec, Error> {
        let (id, at) = match self.magic {
            Magic::V2 => (self.attributes.codec_id(), 21),
            Magic::V0 | Magic::V1 => (self.attributes.codec_id(), 17),
        };
        match (Codec::from_id(id), self.magic) {
            (Some(Codec::Zstd), Magic::V0 | Magic::V1) | (None, _) => {
                Err(Error::new(ErrorKind::UnknownCodec { id }, self.position + at))
            }
            (Some(codec), _) => Ok(codec),
        }
    }

    /// Offset of the last record the batch had when it was written (v2), or the
    /// offset field (v0/v1).
    #[must_use]
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(self.last_offset_delta as i64)
    }

    /// What the timestamps mean; v0 has none.
    #[must_use]
    pub const fn timestamp_type(&self) -> Option<TimestampType> {
        match self.magic {
            Magic::V0 => None,
            Magic::V1 | Magic::V2 => Some(self.attributes.timestamp_type()),
        }
    }

    /// Holds control records. Only v2 has them.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        matches!(self.magic, Magic::V2) && self.attributes.is_control()
    }

    /// Part of a transaction. Only v2 has them.
    #[must_use]
    pub const fn is_transactional(&self) -> bool {
        matches!(self.magic, Magic::V2) && self.attributes.is_transactional()
    }

    /// Time in epoch milliseconds from which tombstones may go, if it is set.
    #[must_use]
    pub const fn delete_horizon_ms(&self) -> Option<i64> {
        if matches!(self.magic, Magic::V2) && self.attributes.has_delete_horizon() {
            Some(self.base_timestamp)
        } else {
            None
        }
    }

    /// Whether a header could be one. It says nothing if the CRC is right, and little if
    /// it is wrong; but for an entry whose end is not in sight it is all there is.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        let v2 = self.last_offset_delta >= 0
            && self.record_count.is_none_or(|n| n >= 0)
            && self.producer_id >= -1
            && self.producer_epoch >= -1;
        let legacy = self.magic == Magic::V2 || self.max_timestamp >= -1;
        is_plausible_offset(self.base_offset) && self.codec().is_ok() && v2 && legacy
    }

    /// Whether the key of a v0/v1 message, if its length is in `seen`, fits it.
    fn has_plausible_key(&self, seen: &[u8]) -> bool {
        let length = seen.get(self.header_len()..).and_then(|rest| rest.first_chunk());
        match (self.magic, length) {
            (Magic::V2, _) | (_, None) => true,
            (_, Some(length)) => {
                let key = i64::from(i32::from_be_bytes(*length));
                key >= -1 && u64::try_from(key).unwrap_or(0) < self.size
            }
        }
    }

    /// Whether a v2 header looks as one does, to find entries by it: no bit is set that
    /// has no meaning, and counts fit each other.
    pub(crate) fn is_typical(&self) -> bool {
        let count = i64::from(self.record_count.unwrap_or(-1));
        self.magic == Magic::V2
            && (0..0x80).contains(&self.attributes.0)
            && (0..=i64::from(self.last_offset_delta) + 1).contains(&count)
            && self.base_timestamp >= -1
            && self.max_timestamp >= -1
            && self.base_sequence >= -1
            && self.partition_leader_epoch >= -1
    }

    /// Sequence number of the record with this offset, −1 without a producer. It
    /// wraps from 2147483647 to 0.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the remainder is below 2^31
    pub const fn sequence(&self, offset: i64) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let delta = offset.wrapping_sub(self.base_offset);
        (self.base_sequence as i64).wrapping_add(delta).rem_euclid(1 << 31) as i32
    }

    /// Sequence number that goes with [`BatchHeader::last_offset`].
    #[must_use]
    pub const fn last_sequence(&self) -> i32 {
        self.sequence(self.last_offset())
    }
}

/// No log gets to offset 2^56: that is two thousand years of a million messages a second.
/// Text, and most magic numbers, are beyond it.
fn is_plausible_offset(offset: i64) -> bool {
    (0..1 << 56).contains(&offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_to_zero() {
        let mut bytes = [0u8; 61];
        bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
        bytes[16] = 2;
        bytes[53..57].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
        let header = BatchHeader::parse(&bytes, 7).unwrap();
        assert_eq!(header.sequence(1), i32::MAX);
        assert_eq!(header.sequence(2), 0);
        assert_eq!((header.position, header.size), (7, 61));
    }

    #[test]
    fn magic_is_looked_at_before_the_size() {
        let text = b"2024-01-01 12:00:00 INFO started";
        let error = BatchHeader::parse(text, 0).unwrap_err();
        assert_eq!((error.name(), error.position()), ("unknown_magic", 16));
    }

    #[test]
    fn sizes_that_no_entry_has() {
        for (magic, least) in [(0u8, 14i32), (1, 22), (2, 49)] {
            for size in [i32::MIN, -1, 0, least - 1, least, i32::MAX] {
                let mut bytes = [0u8; 17];
                bytes[8..12].copy_from_slice(&size.to_be_bytes());
                bytes[16] = magic;
                match Framing::parse(&bytes, 100) {
                    Ok(framing) => {
                        assert!(size >= least);
                        assert_eq!(framing.total(), 12 + u64::from(size.unsigned_abs()));
                    }
                    Err(error) => {
                        assert!(size < least);
                        assert_eq!(error.position(), 108);
                        assert_eq!(error.kind(), ErrorKind::BatchLength { size, least });
                    }
                }
            }
        }
    }

    #[test]
    fn the_start_of_a_picture_is_no_partial_batch() {
        // JFIF with a density of 1: its seventeenth byte is 0, its "size" 1.2 GB.
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xdb\0C";
        let framing = Framing::parse(jpeg.first_chunk().unwrap(), 0).unwrap();
        let error = framing.check_partial(jpeg, 0).unwrap_err();
        assert_eq!(error.name(), "batch_length_not_a_segment");
    }
}
