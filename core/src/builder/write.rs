//! The bytes of records and headers; `batch/` reads the same.

use super::ProducerState;
use crate::batch::{Attributes, Header, Magic};
use crate::codec::out::Out;
use crate::cpu::Cpu;
use crate::crc32c::{crc32, crc32c};
use crate::error::ErrorKind;
use crate::varint::Varlong;

/// Where the bytes of a record go: the buffer, or the codec.
pub(super) trait Put {
    /// Bytes of the caller's.
    fn put(&mut self, bytes: &[u8]) -> Result<(), ErrorKind>;

    /// What is in front of the key of a v2 record.
    fn prefix(&mut self, prefix: RecordPrefix) -> Result<(), ErrorKind>;

    fn varlong(&mut self, value: Varlong) -> Result<(), ErrorKind>;
}

/// Room was made for the record, so this is never so.
pub(super) const fn full(have: usize) -> ErrorKind {
    ErrorKind::BufferTooSmall { need: have as u64 + 1, have: have as u64 }
}

impl Put for Out<'_> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.field(bytes).ok_or(full(self.len()))
    }

    #[inline(always)]
    fn prefix(&mut self, prefix: RecordPrefix) -> Result<(), ErrorKind> {
        prefix.write(self).ok_or(full(self.len()))
    }

    #[inline(always)]
    fn varlong(&mut self, value: Varlong) -> Result<(), ErrorKind> {
        Out::varlong(self, value).ok_or(full(self.len()))
    }
}

/// What is appended.
pub(super) trait Encode {
    /// Writes all of it; gives the CRC of a message, and 0 for others.
    fn encode<P: Put>(self, put: &mut P) -> Result<u32, ErrorKind>;
}

/// A length that was checked to fit, −1 for null.
fn length(field: Option<&[u8]>) -> i32 {
    field.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX))
}

/// What is in front of the key of a v2 record: at most [`RecordPrefix::MOST`] bytes.
pub(super) struct RecordPrefix {
    /// Bytes behind the length field.
    body: Varlong,
    timestamp_delta: Varlong,
    offset_delta: Varlong,
    key_length: Varlong,
}

impl RecordPrefix {
    pub(super) const MOST: usize = 5 + 1 + 10 + 5 + 5;

    #[inline(always)]
    pub(super) fn write(self, out: &mut Out<'_>) -> Option<()> {
        // The attributes, which are zero, are between the two.
        out.varlongs(self.body, self.timestamp_delta)?;
        out.varlong(self.offset_delta)?;
        out.varlong(self.key_length)
    }
}

/// A v2 record.
pub(super) struct RecordFields<'a, H> {
    prefix: RecordPrefix,
    key: &'a [u8],
    value: Field<'a>,
    count: Varlong,
    headers: H,
    size: u64,
}

impl<'a, 'h, H: ExactSizeIterator<Item = Header<'h>> + Clone> RecordFields<'a, H> {
    #[inline(always)]
    pub(super) fn new(
        offset_delta: i32,
        timestamp_delta: i64,
        key: Option<&'a [u8]>,
        value: Option<&'a [u8]>,
        headers: H,
    ) -> Self {
        let timestamp_delta = Varlong::new(timestamp_delta);
        let offset_delta = Varlong::new(offset_delta.into());
        let (key, value) = (Field::new(key), Field::new(value));
        let count = Varlong::new(i64::try_from(headers.len()).unwrap_or(i64::MAX));
        let small = 1 + timestamp_delta.len() + offset_delta.len() + count.len();
        let headers_size: u64 =
            headers.clone().map(|header| sized(Some(header.key)) + sized(header.value)).sum();
        let body = small as u64 + key.size() + value.size() + headers_size;
        let length = Varlong::new(body.cast_signed());
        let size = body + length.len() as u64;
        let prefix =
            RecordPrefix { body: length, timestamp_delta, offset_delta, key_length: key.length };
        Self { prefix, key: key.bytes, value, count, headers, size }
    }

    /// Bytes of the record, its length field included.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }
}

/// A field with its length. Lengths beyond an i32 are refused by whoever asks for the size
/// of the record.
#[derive(Clone, Copy)]
struct Field<'a> {
    length: Varlong,
    bytes: &'a [u8],
}

impl<'a> Field<'a> {
    #[inline(always)]
    fn new(field: Option<&'a [u8]>) -> Self {
        Self { length: Varlong::of_length(field), bytes: field.unwrap_or_default() }
    }

    #[inline(always)]
    const fn size(self) -> u64 {
        self.length.len() as u64 + self.bytes.len() as u64
    }
}

/// Bytes of a field of a v2 record with its length; null is −1.
pub(super) fn sized(field: Option<&[u8]>) -> u64 {
    Field::new(field).size()
}

impl<'h, H: ExactSizeIterator<Item = Header<'h>> + Clone> Encode for RecordFields<'_, H> {
    #[inline(always)]
    fn encode<P: Put>(self, put: &mut P) -> Result<u32, ErrorKind> {
        put.prefix(self.prefix)?;
        put.put(self.key)?;
        put.varlong(self.value.length)?;
        put.put(self.value.bytes)?;
        put.varlong(self.count)?;
        for Header { key, value } in self.headers {
            for field in [Field::new(Some(key)), Field::new(value)] {
                put.varlong(field.length)?;
                put.put(field.bytes)?;
            }
        }
        Ok(0)
    }
}

/// Fields behind one another in `room`, which is large enough for them.
fn fields<'r, const N: usize>(room: &'r mut [u8], fields: [&[u8]; N]) -> &'r [u8] {
    let mut out = Out::new(room);
    let fit = fields.iter().all(|field| out.bytes(field).is_some());
    let len = if fit { out.len() } else { 0 };
    room.get(..len).unwrap_or_default()
}

/// A v0/v1 message that is not compressed.
pub(super) struct MessageFields<'a> {
    pub(super) offset: i64,
    pub(super) magic: Magic,
    /// The timestamp type, in magic 1.
    pub(super) attributes: i16,
    pub(super) timestamp: i64,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
}

impl Encode for MessageFields<'_> {
    fn encode<P: Put>(self, put: &mut P) -> Result<u32, ErrorKind> {
        let [_, attributes] = self.attributes.to_be_bytes();
        let timestamp = self.timestamp.to_be_bytes();
        // What the CRC covers, up to the key.
        let mut covered = [0; 14];
        let covered = fields(
            &mut covered,
            [
                &[self.magic.number(), attributes],
                if self.magic == Magic::V1 { &timestamp } else { &[] },
                &length(self.key).to_be_bytes(),
            ],
        );
        let (key, value) = (self.key.unwrap_or_default(), self.value.unwrap_or_default());
        let value_length = length(self.value).to_be_bytes();
        let mut sum = crc32fast::Hasher::new();
        for bytes in [covered, key, &value_length, value] {
            sum.update(bytes);
        }
        let crc = sum.finalize();
        // The size field is behind the offset, and counts from the CRC on.
        let size = covered.len() + key.len() + value_length.len() + value.len() + 4;
        let size = i32::try_from(size).unwrap_or(i32::MAX);
        let mut start = [0; 30];
        put.put(fields(
            &mut start,
            [&self.offset.to_be_bytes(), &size.to_be_bytes(), &crc.to_be_bytes(), covered],
        ))?;
        put.put(key)?;
        put.put(&value_length)?;
        put.put(value)?;
        Ok(crc)
    }
}

/// A message as it stands, but for its offset.
pub(super) struct RawMessage<'a> {
    pub(super) offset: i64,
    pub(super) crc: u32,
    /// From the size field on.
    pub(super) behind_offset: &'a [u8],
}

impl Encode for RawMessage<'_> {
    fn encode<P: Put>(self, put: &mut P) -> Result<u32, ErrorKind> {
        put.put(&self.offset.to_be_bytes())?;
        put.put(self.behind_offset)?;
        Ok(self.crc)
    }
}

/// Puts `field` at `at`; nothing if it does not fit, which a reserved header does.
fn set(entry: &mut [u8], at: usize, field: &[u8]) {
    if let Some(to) = entry.get_mut(at..).and_then(|rest| rest.get_mut(..field.len())) {
        to.copy_from_slice(field);
    }
}

/// The size field of an entry: what is behind it, of which there is room for 31 bits.
fn size_field(entry: &[u8]) -> [u8; 4] {
    i32::try_from(entry.len().saturating_sub(12)).unwrap_or(i32::MAX).to_be_bytes()
}

/// Header of a v2 batch.
pub(super) struct V2Header {
    pub(super) base_offset: i64,
    pub(super) partition_leader_epoch: i32,
    pub(super) attributes: Attributes,
    pub(super) last_offset_delta: i32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
    pub(super) producer: ProducerState,
    pub(super) records: i32,
}

impl V2Header {
    /// Writes it to the start of `entry`, whose other bytes are the records. The CRC
    /// comes last, since it covers the rest of the header.
    pub(super) fn write(&self, entry: &mut [u8], cpu: Cpu) {
        let ProducerState { producer_id, producer_epoch, base_sequence } = self.producer;
        let size = size_field(entry);
        set(entry, 0, &self.base_offset.to_be_bytes());
        set(entry, 8, &size);
        set(entry, 12, &self.partition_leader_epoch.to_be_bytes());
        set(entry, 16, &[Magic::V2.number()]);
        set(entry, 21, &self.attributes.0.to_be_bytes());
        set(entry, 23, &self.last_offset_delta.to_be_bytes());
        set(entry, 27, &self.base_timestamp.to_be_bytes());
        set(entry, 35, &self.max_timestamp.to_be_bytes());
        set(entry, 43, &producer_id.to_be_bytes());
        set(entry, 51, &producer_epoch.to_be_bytes());
        set(entry, 53, &base_sequence.to_be_bytes());
        set(entry, 57, &self.records.to_be_bytes());
        let crc = crc32c(cpu, entry.get(21..).unwrap_or_default());
        set(entry, 17, &crc.to_be_bytes());
    }
}

/// Writes the wrapper of a compressed v0/v1 set to the start of `entry`, whose other bytes
/// are its value. Its key is null.
pub(super) fn wrapper(
    entry: &mut [u8],
    offset: i64,
    magic: Magic,
    attributes: Attributes,
    timestamp: i64,
) {
    let [_, attributes] = attributes.0.to_be_bytes();
    let size = size_field(entry);
    set(entry, 0, &offset.to_be_bytes());
    set(entry, 8, &size);
    set(entry, 16, &[magic.number(), attributes]);
    let mut at = 18;
    if magic == Magic::V1 {
        set(entry, at, &timestamp.to_be_bytes());
        at += 8;
    }
    set(entry, at, &(-1i32).to_be_bytes());
    let value = entry.len().saturating_sub(at + 8);
    set(entry, at + 4, &i32::try_from(value).unwrap_or(i32::MAX).to_be_bytes());
    let crc = crc32(entry.get(16..).unwrap_or_default());
    set(entry, 12, &crc.to_be_bytes());
}
