//! What can be wrong with a node.

use std::fmt;

/// Class of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Magic, metadata size or the metadata itself.
    Envelope,
    /// The declared size is not that of the message.
    Size,
    /// The payload ends too early.
    Truncated,
    /// The payload cannot be decompressed.
    Payload,
    /// More bytes than the caller's limit.
    Limit,
    /// The message inside.
    Message,
    /// A compressor failed, or cannot take as much.
    Compress,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    position: u64,
    field: String,
    detail: String,
    /// Start of the payload that the position is relative to, once decompressed.
    inside: Option<u64>,
}

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        position: u64,
        field: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, position, field: field.into(), detail: detail.into(), inside: None }
    }

    pub(super) fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Of a message that was compressed: its bytes have no position of their own.
    pub(super) fn in_payload(self, payload: u64) -> Self {
        Self { inside: Some(payload), ..self }
    }

    /// Its class.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Byte of the node; for the message in a compressed payload where the payload starts.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.inside.unwrap_or(self.position)
    }

    /// Byte of the decompressed message, if it is that which is wrong.
    #[must_use]
    pub fn position_in_message(&self) -> Option<u64> {
        self.inside.map(|_| self.position)
    }

    /// The field, in Pulsar's words.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}: {}", self.position(), self.field, self.detail)?;
        match self.position_in_message() {
            Some(at) => write!(f, ", at byte {at} of the decompressed message"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
