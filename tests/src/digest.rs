//! `records_digest` as the command-line contract defines it, and the digest that
//! came with the segments.

use logseg_core::{Piece, Record};
use sha2::{Digest, Sha256};

use crate::build::Rec;
use crate::hex;

/// SHA-256 over, for each record: i64 offset, i64 timestamp, i32 key length (−1 null)
/// and key, i32 value length and value, i32 header count, for each header i32 key
/// length and key, i32 value length and value; all big-endian.
#[derive(Clone, Default)]
pub struct RecordsDigest(Sha256);

impl std::fmt::Debug for RecordsDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordsDigest").finish_non_exhaustive()
    }
}

impl RecordsDigest {
    fn len(&mut self, len: Option<usize>) {
        let len = len.map_or(-1, |len| i32::try_from(len).expect("fits an i32"));
        self.0.update(len.to_be_bytes());
    }

    fn len32(&mut self, len: Option<u32>) {
        self.len(len.map(|len| usize::try_from(len).expect("fits a usize")));
    }

    fn field(&mut self, field: Option<&[u8]>) {
        self.len(field.map(<[u8]>::len));
        self.0.update(field.unwrap_or_default());
    }

    /// Adds a record whose offset is absolute.
    pub fn record(&mut self, record: &Record<'_>) {
        self.0.update(record.offset.absolute().expect("absolute").to_be_bytes());
        self.0.update(record.timestamp.to_be_bytes());
        self.field(record.key);
        self.field(record.value);
        self.len(Some(record.headers.len()));
        for header in record.headers {
            self.field(Some(header.key));
            self.field(header.value);
        }
    }

    /// Adds a piece: they come in the order of the digest.
    pub fn piece(&mut self, piece: &Piece<'_>) {
        match *piece {
            Piece::Start { offset, timestamp, key_len, .. } => {
                self.0.update(offset.absolute().expect("absolute").to_be_bytes());
                self.0.update(timestamp.to_be_bytes());
                self.len32(key_len);
            }
            Piece::ValueStart(len) | Piece::HeaderValueStart(len) => self.len32(len),
            Piece::Headers(n) | Piece::HeaderStart(n) => self.len32(Some(n)),
            Piece::Key(part)
            | Piece::Value(part)
            | Piece::HeaderKey(part)
            | Piece::HeaderValue(part) => self.0.update(part),
            Piece::End => {}
        }
    }

    /// Adds an owned record.
    pub fn rec(&mut self, record: &Rec) {
        self.0.update(record.offset.to_be_bytes());
        self.0.update(record.timestamp.to_be_bytes());
        self.field(record.key.as_deref());
        self.field(record.value.as_deref());
        self.len(Some(record.headers.len()));
        for (key, value) in &record.headers {
            self.field(Some(key));
            self.field(value.as_deref());
        }
    }

    /// In hexadecimal.
    #[must_use]
    pub fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// `records_sha256` of the segments' `expect.ndjson`: for each record i64 offset, i64
/// timestamp, i32 length of key and of value, then both, then key and value of each
/// header without lengths.
pub fn kafka_digest<'a>(records: impl Iterator<Item = &'a Rec>) -> String {
    let mut sum = Sha256::new();
    let len = |field: &Option<Vec<u8>>| {
        field.as_ref().map_or(-1, |bytes| i32::try_from(bytes.len()).expect("fits an i32"))
    };
    for record in records {
        sum.update(record.offset.to_be_bytes());
        sum.update(record.timestamp.to_be_bytes());
        sum.update(len(&record.key).to_be_bytes());
        sum.update(len(&record.value).to_be_bytes());
        sum.update(record.key.as_deref().unwrap_or_default());
        sum.update(record.value.as_deref().unwrap_or_default());
        for (key, value) in &record.headers {
            sum.update(key);
            sum.update(value.as_deref().unwrap_or_default());
        }
    }
    hex(&sum.finalize())
}

/// SHA-256 of bytes, in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
