//! Where blobs are: the trait, and what can go wrong with a store.

use std::fmt;

use bytes::Bytes;

/// A store of blobs: KIP-1159's `BlobStore`.
///
/// A store does its own retries and keeps its own time limits, both from its
/// configuration; what it gives back is final. One instance may be used by many threads.
pub trait BlobStore: Send + Sync {
    /// Stores `data` for `topic` and gives its location, by which [`get`](Self::get) finds
    /// it. All of it is stored, or there is an error.
    fn put(&self, topic: &str, data: Bytes) -> Result<String, BlobError>;

    /// The whole blob at `location`, of at most `limit` bytes.
    ///
    /// Errors: [`BlobErrorKind::NotFound`] only if the store has said that there is no such
    /// blob; [`BlobErrorKind::NotAllowed`] for a location that is not below this store's
    /// own, without asking anyone; [`BlobErrorKind::TooLarge`] before more than `limit`
    /// bytes are held.
    fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError>;

    /// Its name, written into references for information and never used to choose one.
    fn name(&self) -> &str;

    /// Name of the generator of its ids, if it has one; for information as well.
    fn blob_id_generator(&self) -> Option<&str> {
        None
    }
}

/// Class of a [`BlobError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlobErrorKind {
    /// The store says that there is no such blob.
    NotFound,
    /// The location is not below the configured store and prefix.
    NotAllowed,
    /// The blob is larger than the caller's limit.
    TooLarge,
    /// No answer in time, in any attempt.
    Timeout,
    /// The store could not do it now: refused connections, 5xx, throttling, in every attempt.
    Unavailable,
    /// The store will not do it: credentials, permissions, an invalid request.
    Denied,
    /// Size or digest are not those of the reference.
    Mismatch,
    /// Anything else.
    Other,
}

impl BlobErrorKind {
    /// Its name, the same for every failure of a store that says nothing of the blob.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "blob_not_found",
            Self::NotAllowed => "blob_not_allowed",
            Self::TooLarge => "blob_too_large",
            Self::Mismatch => "blob_mismatch",
            Self::Timeout | Self::Unavailable | Self::Denied | Self::Other => "blob_store_failure",
        }
    }
}

/// What went wrong with a blob.
#[derive(Debug)]
pub struct BlobError {
    kind: BlobErrorKind,
    location: String,
    detail: String,
}

impl BlobError {
    /// `detail` of what happened at `location` (the topic's prefix, when storing).
    pub fn new(
        kind: BlobErrorKind,
        location: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, location: location.into(), detail: detail.into() }
    }

    /// Its class.
    #[must_use]
    pub const fn kind(&self) -> BlobErrorKind {
        self.kind
    }

    /// The blob's location.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.location
    }

    /// What happened.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for BlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.detail)
    }
}

impl std::error::Error for BlobError {}
