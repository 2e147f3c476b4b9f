//! Writes batches v2 and messages v0/v1, following the format and not core's code.

use crate::pack::Packing;

/// A record, owned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rec {
    /// Offset in the partition; what a message of a v1 wrapper stores is up to the
    /// builder.
    pub offset: i64,
    /// Effective timestamp.
    pub timestamp: i64,
    /// `None` is null.
    pub key: Option<Vec<u8>>,
    /// `None` is null.
    pub value: Option<Vec<u8>>,
    /// Only in v2.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Rec {
    /// A record with neither headers nor nulls.
    #[must_use]
    pub fn new(offset: i64, timestamp: i64, key: &[u8], value: &[u8]) -> Self {
        Self {
            offset,
            timestamp,
            key: Some(key.to_vec()),
            value: Some(value.to_vec()),
            headers: Vec::new(),
        }
    }
}

/// Appends a zig-zag varint (or varlong: it is the same for values that fit both).
pub fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

fn put_sized(out: &mut Vec<u8>, field: Option<&[u8]>) {
    put_varint(out, field.map_or(-1, |bytes| bytes.len() as i64));
    out.extend(field.unwrap_or_default());
}

fn put_sized_i32(out: &mut Vec<u8>, field: Option<&[u8]>) {
    let len = field.map_or(-1, |bytes| i32::try_from(bytes.len()).expect("fits an i32"));
    out.extend(len.to_be_bytes());
    out.extend(field.unwrap_or_default());
}

/// Appends a v2 record.
pub fn put_record(out: &mut Vec<u8>, record: &Rec, base_offset: i64, base_timestamp: i64) {
    let mut body = vec![0];
    put_varint(&mut body, record.timestamp.wrapping_sub(base_timestamp));
    put_varint(&mut body, record.offset.wrapping_sub(base_offset));
    put_sized(&mut body, record.key.as_deref());
    put_sized(&mut body, record.value.as_deref());
    put_varint(&mut body, record.headers.len() as i64);
    for (key, value) in &record.headers {
        put_sized(&mut body, Some(key));
        put_sized(&mut body, value.as_deref());
    }
    put_varint(out, body.len() as i64);
    out.extend(body);
}

/// Builds a v2 batch. Fields that are not set are what a producer would write.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    records: Vec<Rec>,
    packing: Packing,
    base_offset: i64,
    leader_epoch: i32,
    flags: i16,
    producer: (i64, i16, i32),
    base_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    last_offset_delta: Option<i32>,
    count: Option<i32>,
    attributes: Option<i16>,
    magic: u8,
    size: Option<i32>,
    crc: Option<u32>,
    plain: Option<Vec<u8>>,
    payload: Option<Vec<u8>>,
}

impl BatchBuilder {
    /// An uncompressed batch that starts at offset 0.
    #[must_use]
    pub fn new(records: Vec<Rec>) -> Self {
        Self {
            records,
            packing: Packing::None,
            base_offset: 0,
            leader_epoch: -1,
            flags: 0,
            producer: (-1, -1, -1),
            base_timestamp: None,
            max_timestamp: None,
            last_offset_delta: None,
            count: None,
            attributes: None,
            magic: 2,
            size: None,
            crc: None,
            plain: None,
            payload: None,
        }
    }

    /// How its records are compressed.
    #[must_use]
    pub fn packing(self, packing: Packing) -> Self {
        Self { packing, ..self }
    }

    /// First offset.
    #[must_use]
    pub fn base_offset(self, base_offset: i64) -> Self {
        Self { base_offset, ..self }
    }

    /// Partition leader epoch.
    #[must_use]
    pub fn leader_epoch(self, leader_epoch: i32) -> Self {
        Self { leader_epoch, ..self }
    }

    /// Bits of the attributes beside the codec.
    #[must_use]
    pub fn flags(self, flags: i16) -> Self {
        Self { flags, ..self }
    }

    /// Producer id, epoch and base sequence.
    #[must_use]
    pub fn producer(self, id: i64, epoch: i16, sequence: i32) -> Self {
        Self { producer: (id, epoch, sequence), ..self }
    }

    /// Origin of the timestamps; the records' deltas follow it.
    #[must_use]
    pub fn base_timestamp(self, base: i64) -> Self {
        Self { base_timestamp: Some(base), ..self }
    }

    /// Largest timestamp, or the append time.
    #[must_use]
    pub fn max_timestamp(self, max: i64) -> Self {
        Self { max_timestamp: Some(max), ..self }
    }

    /// Last offset − base offset.
    #[must_use]
    pub fn last_offset_delta(self, delta: i32) -> Self {
        Self { last_offset_delta: Some(delta), ..self }
    }

    /// Record count of the header.
    #[must_use]
    pub fn count(self, count: i32) -> Self {
        Self { count: Some(count), ..self }
    }

    /// All of the attributes, codec included.
    #[must_use]
    pub fn attributes(self, attributes: i16) -> Self {
        Self { attributes: Some(attributes), ..self }
    }

    /// Magic byte.
    #[must_use]
    pub fn magic(self, magic: u8) -> Self {
        Self { magic, ..self }
    }

    /// Size field.
    #[must_use]
    pub fn size(self, size: i32) -> Self {
        Self { size: Some(size), ..self }
    }

    /// CRC field.
    #[must_use]
    pub fn crc(self, crc: u32) -> Self {
        Self { crc: Some(crc), ..self }
    }

    /// The uncompressed records section, in place of the records.
    #[must_use]
    pub fn plain(self, plain: Vec<u8>) -> Self {
        Self { plain: Some(plain), ..self }
    }

    /// The records section as it is stored; `packing` then only sets the codec.
    #[must_use]
    pub fn payload(self, payload: Vec<u8>) -> Self {
        Self { payload: Some(payload), ..self }
    }

    fn base(&self) -> i64 {
        self.base_timestamp.unwrap_or_else(|| self.records.first().map_or(-1, |r| r.timestamp))
    }

    /// The records section before compression.
    #[must_use]
    pub fn plain_records(&self) -> Vec<u8> {
        if let Some(plain) = &self.plain {
            return plain.clone();
        }
        let mut plain = Vec::new();
        for record in &self.records {
            put_record(&mut plain, record, self.base_offset, self.base());
        }
        plain
    }

    /// The batch.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let payload =
            self.payload.clone().unwrap_or_else(|| self.packing.pack(&self.plain_records()));
        let last = self.records.last().map_or(0, |r| r.offset - self.base_offset);
        let max = self.records.iter().map(|r| r.timestamp).max().unwrap_or(-1);
        let (id, epoch, sequence) = self.producer;
        let codec = i16::from(self.packing.codec().id());
        let records = i32::try_from(self.records.len()).expect("fits an i32");
        let size = i32::try_from(49 + payload.len()).expect("fits an i32");
        let mut out = Vec::with_capacity(61 + payload.len());
        out.extend(self.base_offset.to_be_bytes());
        out.extend(self.size.unwrap_or(size).to_be_bytes());
        out.extend(self.leader_epoch.to_be_bytes());
        out.push(self.magic);
        out.extend([0; 4]);
        out.extend(self.attributes.unwrap_or(self.flags | codec).to_be_bytes());
        let delta = i32::try_from(last).expect("fits an i32");
        out.extend(self.last_offset_delta.unwrap_or(delta).to_be_bytes());
        out.extend(self.base().to_be_bytes());
        out.extend(self.max_timestamp.unwrap_or(max).to_be_bytes());
        out.extend(id.to_be_bytes());
        out.extend(epoch.to_be_bytes());
        out.extend(sequence.to_be_bytes());
        out.extend(self.count.unwrap_or(records).to_be_bytes());
        out.extend(payload);
        let crc = self.crc.unwrap_or_else(|| crc32c::crc32c(&out[21..]));
        out[17..21].copy_from_slice(&crc.to_be_bytes());
        out
    }
}

/// Builds a message of magic 0 or 1, alone or as the wrapper of a set.
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    magic: u8,
    offset: i64,
    timestamp: i64,
    attributes: u8,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    behind: Vec<u8>,
    size: Option<i32>,
    crc: Option<u32>,
}

impl MessageBuilder {
    /// A message that carries a record.
    #[must_use]
    pub fn new(magic: u8, record: &Rec) -> Self {
        Self {
            magic,
            offset: record.offset,
            timestamp: record.timestamp,
            attributes: 0,
            key: record.key.clone(),
            value: record.value.clone(),
            behind: Vec::new(),
            size: None,
            crc: None,
        }
    }

    /// A wrapper around a set of messages, with the offset that a broker gives it.
    #[must_use]
    pub fn wrapper(magic: u8, offset: i64, timestamp: i64, set: &[u8], packing: &Packing) -> Self {
        let record = Rec { offset, timestamp, value: Some(packing.pack(set)), ..Rec::default() };
        Self::new(magic, &record).attributes(packing.codec().id())
    }

    /// Attributes.
    #[must_use]
    pub fn attributes(self, attributes: u8) -> Self {
        Self { attributes, ..self }
    }

    /// Value, `None` for null.
    #[must_use]
    pub fn value(self, value: Option<Vec<u8>>) -> Self {
        Self { value, ..self }
    }

    /// Bytes behind the value, which the CRC covers and nobody reads.
    #[must_use]
    pub fn behind(self, behind: Vec<u8>) -> Self {
        Self { behind, ..self }
    }

    /// Size field.
    #[must_use]
    pub fn size(self, size: i32) -> Self {
        Self { size: Some(size), ..self }
    }

    /// CRC field.
    #[must_use]
    pub fn crc(self, crc: u32) -> Self {
        Self { crc: Some(crc), ..self }
    }

    /// The message.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut body = vec![self.magic, self.attributes];
        if self.magic > 0 {
            body.extend(self.timestamp.to_be_bytes());
        }
        put_sized_i32(&mut body, self.key.as_deref());
        put_sized_i32(&mut body, self.value.as_deref());
        body.extend(&self.behind);
        let size = i32::try_from(4 + body.len()).expect("fits an i32");
        let mut out = Vec::with_capacity(16 + body.len());
        out.extend(self.offset.to_be_bytes());
        out.extend(self.size.unwrap_or(size).to_be_bytes());
        out.extend(self.crc.unwrap_or_else(|| crc32fast::hash(&body)).to_be_bytes());
        out.extend(body);
        out
    }
}

/// A set of messages as it stands in a wrapper: offsets are stored as they are for
/// magic 0, and relative to the first for magic 1.
#[must_use]
pub fn message_set(magic: u8, records: &[Rec]) -> Vec<u8> {
    let first = if magic == 0 { 0 } else { records.first().map_or(0, |r| r.offset) };
    records
        .iter()
        .flat_map(|r| {
            MessageBuilder::new(magic, &Rec { offset: r.offset - first, ..r.clone() }).build()
        })
        .collect()
}

/// Makes the CRC of the entry right again, after damage that is to be found behind it.
pub fn fix_crc(entry: &mut [u8]) {
    if entry.get(16) == Some(&2) && entry.len() >= 61 {
        let crc = crc32c::crc32c(&entry[21..]);
        entry[17..21].copy_from_slice(&crc.to_be_bytes());
    } else if entry.len() > 16 {
        let crc = crc32fast::hash(&entry[16..]);
        entry[12..16].copy_from_slice(&crc.to_be_bytes());
    }
}

/// Positions of the entries of a segment, as far as their size fields go.
#[must_use]
pub fn entries(segment: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(size) = segment.get(at + 8..).and_then(|rest| rest.first_chunk()) {
        let Ok(size) = usize::try_from(i32::from_be_bytes(*size)) else { break };
        let end = at + 12 + size;
        if size < 14 || end > segment.len() {
            break;
        }
        found.push(at..end);
        at = end;
    }
    found
}

/// [`fix_crc`] for all entries of a segment.
pub fn fix_crcs(segment: &mut [u8]) {
    for entry in entries(segment) {
        fix_crc(&mut segment[entry]);
    }
}
