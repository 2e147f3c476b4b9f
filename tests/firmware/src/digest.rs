//! A digest of records that does not depend on how they were handed out: whole or in
//! pieces, with absolute or with relative offsets.

use core::fmt;

use logseg_core::{Piece, Record};

const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over the fields of each record, and beside it a polynomial over the offsets:
/// that one is linear, so a base which is known only at the end can be added to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    fields: u64,
    offsets: u64,
    ones: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { fields: 0xcbf2_9ce4_8422_2325, offsets: 0, ones: 0 }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.fields)
    }
}

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.fields = (self.fields ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// Null is the length that no field has.
    fn len(&mut self, len: Option<u32>) {
        self.bytes(&len.unwrap_or(u32::MAX).to_be_bytes());
    }

    fn field(&mut self, field: Option<&[u8]>) {
        self.len(field.map(|bytes| u32::try_from(bytes.len()).expect("lengths are 31 bits")));
        self.bytes(field.unwrap_or_default());
    }

    fn start(&mut self, offset: i64, timestamp: i64) {
        self.offsets = self.offsets.wrapping_mul(PRIME).wrapping_add(offset.cast_unsigned());
        self.ones = self.ones.wrapping_mul(PRIME).wrapping_add(1);
        self.bytes(&timestamp.to_be_bytes());
    }

    /// Adds a record.
    pub fn record(&mut self, record: &Record<'_>) {
        self.start(record.offset.resolve(0), record.timestamp);
        self.field(record.key);
        self.field(record.value);
        self.len(u32::try_from(record.headers.len()).ok());
        for header in record.headers {
            self.field(Some(header.key));
            self.field(header.value);
        }
    }

    /// Adds a piece.
    pub fn piece(&mut self, piece: &Piece<'_>) {
        match *piece {
            Piece::Start { offset, timestamp, key_len, .. } => {
                self.start(offset.resolve(0), timestamp);
                self.len(key_len);
            }
            Piece::ValueStart(len) | Piece::HeaderValueStart(len) => self.len(len),
            Piece::Headers(n) | Piece::HeaderStart(n) => self.len(Some(n)),
            Piece::Key(part)
            | Piece::Value(part)
            | Piece::HeaderKey(part)
            | Piece::HeaderValue(part) => self.bytes(part),
            Piece::End => {}
        }
    }

    /// Adds that of a batch, whose offsets count from `base`.
    pub fn add(&mut self, batch: &Self, base: i64) {
        let base = base.cast_unsigned().wrapping_mul(batch.ones);
        self.bytes(&batch.fields.to_be_bytes());
        self.bytes(&batch.offsets.wrapping_add(base).to_be_bytes());
    }
}
