//! The bytes of records and headers; `batch/` reads the same.

use super::ProducerState;
use crate::batch::{Attributes, Header, Magic};
use crate::codec::out::Out;
use crate::cpu::Cpu;
use crate::crc32c::{crc32, crc32c};
use crate::error::ErrorKind;
use crate::varint::{encode_varlong, zigzag};

/// Where the bytes of a record go: the buffer, or the codec.
pub(super) trait Put {
    fn put(&mut self, bytes: &[u8]) -> Result<(), ErrorKind>;
}

impl Put for Out<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        if self.bytes(bytes).is_some() {
            return Ok(());
        }
        // Room was made for the record, so this is never so.
        let (need, have) = (self.len() + bytes.len(), self.len());
        Err(ErrorKind::BufferTooSmall { need: need as u64, have: have as u64 })
    }
}

/// What is appended.
pub(super) trait Encode {
    /// Writes all of it; gives the CRC of a message, and 0 for others.
    fn encode<P: Put>(&self, put: &mut P) -> Result<u32, ErrorKind>;
}

/// Small fields that lie behind one another, to be put at once.
struct Fields<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Fields<N> {
    const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    #[inline(always)]
    fn add(&mut self, field: &[u8]) {
        let spare = self.bytes.get_mut(self.len..).unwrap_or_default();
        if let Some(to) = spare.get_mut(..field.len()) {
            to.copy_from_slice(field);
            self.len += field.len();
        }
    }

    #[inline(always)]
    fn varint(&mut self, value: i64) {
        // Most take one byte.
        match (u8::try_from(zigzag(value)), self.bytes.get_mut(self.len)) {
            (Ok(byte @ ..0x80), Some(slot)) => {
                *slot = byte;
                self.len += 1;
            }
            _ => {
                let (bytes, len) = encode_varlong(value);
                self.add(bytes.get(..len).unwrap_or_default());
            }
        }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A length that was checked to fit, −1 for null.
fn length(field: Option<&[u8]>) -> i32 {
    field.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX))
}

/// A v2 record.
pub(super) struct RecordFields<'a, H> {
    /// Bytes behind the length field.
    pub(super) body: u64,
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: H,
}

impl<'h, H: ExactSizeIterator<Item = Header<'h>> + Clone> Encode for RecordFields<'_, H> {
    #[inline]
    fn encode<P: Put>(&self, put: &mut P) -> Result<u32, ErrorKind> {
        let mut prefix = Fields::<26>::new();
        prefix.varint(self.body.cast_signed());
        prefix.add(&[0]); // attributes
        prefix.varint(self.timestamp_delta);
        prefix.varint(self.offset_delta.into());
        prefix.varint(length(self.key).into());
        put.put(prefix.as_slice())?;
        put.put(self.key.unwrap_or_default())?;
        put_length(put, self.value)?;
        put.put(self.value.unwrap_or_default())?;
        let mut count = Fields::<10>::new();
        count.varint(i64::try_from(self.headers.len()).unwrap_or(i64::MAX));
        put.put(count.as_slice())?;
        for Header { key, value } in self.headers.clone() {
            put_length(put, Some(key))?;
            put.put(key)?;
            put_length(put, value)?;
            put.put(value.unwrap_or_default())?;
        }
        Ok(0)
    }
}

#[inline(always)]
fn put_length<P: Put>(put: &mut P, field: Option<&[u8]>) -> Result<(), ErrorKind> {
    let mut fields = Fields::<5>::new();
    fields.varint(length(field).into());
    put.put(fields.as_slice())
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
    fn encode<P: Put>(&self, put: &mut P) -> Result<u32, ErrorKind> {
        let [_, attributes] = self.attributes.to_be_bytes();
        // What the CRC covers, up to the key.
        let mut covered = Fields::<14>::new();
        covered.add(&[self.magic.number(), attributes]);
        if self.magic == Magic::V1 {
            covered.add(&self.timestamp.to_be_bytes());
        }
        covered.add(&length(self.key).to_be_bytes());
        let (key, value) = (self.key.unwrap_or_default(), self.value.unwrap_or_default());
        let value_length = length(self.value).to_be_bytes();
        let mut sum = crc32fast::Hasher::new();
        for bytes in [covered.as_slice(), key, &value_length, value] {
            sum.update(bytes);
        }
        let crc = sum.finalize();
        // The size field is behind the offset, and counts from the CRC on.
        let size = covered.len + key.len() + value_length.len() + value.len() + 4;
        let mut start = Fields::<30>::new();
        start.add(&self.offset.to_be_bytes());
        start.add(&i32::try_from(size).unwrap_or(i32::MAX).to_be_bytes());
        start.add(&crc.to_be_bytes());
        start.add(covered.as_slice());
        put.put(start.as_slice())?;
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
    fn encode<P: Put>(&self, put: &mut P) -> Result<u32, ErrorKind> {
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
