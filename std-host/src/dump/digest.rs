//! A digest over the records of a batch, to compare readers by.
//!
//! SHA-256 over, for each record: i64 offset, i64 timestamp, i32 key length (−1 null)
//! and key, i32 value length and value, i32 header count, and for each header i32 key
//! length and key, i32 value length (−1 null) and value; all big-endian.

use logseg_core::{Piece, Record};
use sha2::{Digest, Sha256};

/// The digest of the records so far.
#[derive(Debug, Clone, Default)]
pub struct RecordsDigest(Sha256);

impl RecordsDigest {
    /// Adds a record.
    pub fn record(&mut self, record: &Record<'_>) {
        self.start(record.offset.resolve(0), record.timestamp);
        self.field(record.key);
        self.field(record.value);
        self.len(Some(record.headers.len()));
        for header in record.headers {
            self.field(Some(header.key));
            self.field(header.value);
        }
    }

    /// Adds a part of a record: they come in the order of the digest.
    pub fn piece(&mut self, piece: &Piece<'_>) {
        match *piece {
            Piece::Start { offset, timestamp, key_len, .. } => {
                self.start(offset.resolve(0), timestamp);
                self.len32(key_len);
            }
            Piece::ValueStart(len) | Piece::HeaderValueStart(len) => self.len32(len),
            Piece::Headers(len) | Piece::HeaderStart(len) => self.len32(Some(len)),
            Piece::Key(bytes)
            | Piece::Value(bytes)
            | Piece::HeaderKey(bytes)
            | Piece::HeaderValue(bytes) => self.0.update(bytes),
            Piece::End => {}
        }
    }

    /// Lower-case hex.
    #[must_use]
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }

    fn start(&mut self, offset: i64, timestamp: i64) {
        self.0.update(offset.to_be_bytes());
        self.0.update(timestamp.to_be_bytes());
    }

    fn field(&mut self, bytes: Option<&[u8]>) {
        self.len(bytes.map(<[u8]>::len));
        self.0.update(bytes.unwrap_or_default());
    }

    fn len(&mut self, len: Option<usize>) {
        self.len32(len.map(|len| u32::try_from(len).unwrap_or(u32::MAX)));
    }

    fn len32(&mut self, len: Option<u32>) {
        self.0.update(len.map_or(-1i32, u32::cast_signed).to_be_bytes());
    }
}

/// The first half of SHA-256, to know a text by that was seen before.
pub(crate) fn short_digest(text: &[u8]) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&Sha256::digest(text)[..16]);
    short
}

/// The bytes of hexadecimal digits, two for each, in either case.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    odd.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

/// Lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
