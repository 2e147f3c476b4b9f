//! Finds the references in segments.
//!
//! Every batch is opened and checked as [`crate::measure`] does it, one at a time, so
//! memory follows the largest batch. What is in a damaged one is unknown: whoever draws
//! conclusions from what is *not* found has to look at [`Sighting::Damage`].

use std::io;
use std::path::Path;

use logseg_core::{Error, Header, Limits, Record, Tail};

use super::{
    JsonFormatter, LargeMessageFormatter, MAX_REFERENCE_BYTES, Marker, Reference, VERSION, bakdata,
};
use crate::opened::Opener;
use crate::serde::RecordPart;
use crate::source::{Item, Segment};

/// The member that every reference has.
const FULL_BLOB_PATH: &str = "full-blob-path";

/// What is taken for a reference, beside values with [`VALUE_HEADER`](super::VALUE_HEADER)
/// and keys with [`KEY_HEADER`](super::KEY_HEADER).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finder {
    /// Values that look like one: JSON objects with a member `full-blob-path`.
    pub sniff: bool,
    /// Those of bakdata's serde, by header and by flag byte.
    pub bakdata: bool,
    /// Whatever mentions `full-blob-path` and is no reference that can be read is one that
    /// cannot: what wrote it may know how to. A URI behind bakdata's flag byte may have any
    /// scheme.
    pub doubt: bool,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Null: a tombstone.
    Null,
    /// The value itself.
    Inline,
    /// A reference to a blob.
    Reference(Target),
    /// Marked as a reference, and none that can be read: which blob it is about is
    /// unknown.
    Unreadable(String),
}

/// The blob that a reference is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its location, as it stands there.
    pub location: String,
    /// Its size in bytes, if it stands there.
    pub size: Option<u64>,
}

impl From<Reference> for Target {
    fn from(reference: Reference) -> Self {
        Self { location: reference.full_blob_path, size: reference.size }
    }
}

/// Something in a segment.
#[derive(Debug)]
pub enum Sighting<'a> {
    /// A good batch, before its records: a v2 batch, or an outer message.
    Batch,
    /// A record of it, unless it is a control batch, and the byte position of the batch.
    Record(&'a Record<'a>, u64),
    /// A batch that cannot be read, or the point where no entry starts.
    Damage(&'a Error),
}

/// How a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentEnd {
    /// What is behind the last entry.
    pub tail: Tail,
    /// Bytes in the file.
    pub file_size: u64,
}

impl Finder {
    /// Everything that may be a reference: for whoever must not miss one.
    pub const ALL: Self = Self { sniff: true, bakdata: true, doubt: true };

    /// What the value of a record is.
    #[must_use]
    pub fn value(&self, record: &Record<'_>) -> Found {
        self.look(record, record.value, RecordPart::Value)
    }

    /// What the key of a record is.
    #[must_use]
    pub fn key(&self, record: &Record<'_>) -> Found {
        self.look(record, record.key, RecordPart::Key)
    }

    fn look(&self, record: &Record<'_>, bytes: Option<&[u8]>, part: RecordPart) -> Found {
        let Some(bytes) = bytes else { return Found::Null };
        let marker = Marker(part).header();
        match last_header(record, marker) {
            Some(header) if header.value == Some(VERSION) => match JsonFormatter.parse(bytes) {
                Ok(reference) => Found::Reference(reference.into()),
                Err(error) => Found::Unreadable(error.to_string()),
            },
            Some(_) => Found::Unreadable(format!("header {marker} is of an unknown version")),
            None => self.unmarked(record, bytes, part).unwrap_or(Found::Inline),
        }
    }

    fn unmarked(&self, record: &Record<'_>, bytes: &[u8], part: RecordPart) -> Option<Found> {
        if self.bakdata
            && let Some(found) = bakdata_reference(record, bytes, part, self.doubt)
        {
            return Some(found);
        }
        if self.sniff
            && let Some(reference) = sniff(bytes)
        {
            return Some(reference);
        }
        (self.doubt && mentions_path(bytes))
            .then(|| Found::Unreadable(format!("{FULL_BLOB_PATH} in it, but not as a reference")))
    }
}

/// Of several the last one counts, as for a consumer.
fn last_header<'r>(record: &Record<'r>, key: &str) -> Option<Header<'r>> {
    record.headers.filter(|header| header.key == key.as_bytes()).last()
}

fn bakdata_reference(
    record: &Record<'_>,
    bytes: &[u8],
    part: RecordPart,
    doubt: bool,
) -> Option<Found> {
    let target = |uri: &str| Target { location: uri.to_owned(), size: None };
    match last_header(record, bakdata::marker_header(part)) {
        Some(header) => match (header.value, std::str::from_utf8(bytes)) {
            // It says that this is none of bakdata's references, and of others it says nothing.
            (Some([0]), _) => (!doubt).then_some(Found::Inline),
            (Some([1]), Ok(uri)) if uri.contains("://") => Some(Found::Reference(target(uri))),
            _ => Some(Found::Unreadable("no URI behind bakdata's header".to_owned())),
        },
        // The flag alone proves nothing: what looks like no URI is someone's value.
        None => match bytes.split_first() {
            Some((1, uri)) if uri.len() <= MAX_REFERENCE_BYTES => {
                let uri = std::str::from_utf8(uri).ok()?;
                let (scheme, _) = uri.split_once("://")?;
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
                (matches!(scheme, "s3" | "abs" | "gs" | "file")
                    || doubt && scheme.bytes().all(plain))
                .then(|| Found::Reference(target(uri)))
            }
            _ => None,
        },
    }
}

fn mentions_path(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, FULL_BLOB_PATH.as_bytes()).is_some()
}

fn sniff(bytes: &[u8]) -> Option<Found> {
    let json =
        bytes.len() <= MAX_REFERENCE_BYTES && bytes.trim_ascii_start().first() == Some(&b'{');
    if !json || !mentions_path(bytes) {
        return None;
    }
    JsonFormatter.parse(bytes).ok().map(|reference| Found::Reference(reference.into()))
}

/// Reads segments one after the other, with buffers that are kept.
pub struct Scanner {
    opener: Opener,
    limits: Limits,
    entry: Vec<u8>,
}

impl Scanner {
    /// With these limits, beyond which a batch is damage.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { opener: Opener::new(limits), limits, entry: Vec::new() }
    }

    /// Reads a segment to its end; `-` is standard input.
    ///
    /// Errors: it cannot be opened, or not be read to its end. Damage is a sighting, and
    /// the scan goes on behind it.
    pub fn scan(
        &mut self,
        path: &Path,
        visit: &mut dyn FnMut(Sighting<'_>),
    ) -> io::Result<SegmentEnd> {
        let mut segment = Segment::open(path, self.limits.batch, None)?;
        loop {
            self.entry.clear();
            match segment.next_batch(&mut self.entry)? {
                Item::Batch(header) => match self.opener.open(header, &self.entry) {
                    Ok(_) => {
                        visit(Sighting::Batch);
                        if header.is_control() {
                            continue;
                        }
                        let records = self.opener.records(header, &self.entry);
                        // All of it was checked.
                        for record in records.into_iter().flatten().flatten() {
                            visit(Sighting::Record(&record, header.position));
                        }
                    }
                    Err(error) => visit(Sighting::Damage(&error)),
                },
                Item::Error(error) => visit(Sighting::Damage(&error)),
                Item::End(tail) => {
                    let file_size = segment.opened_len().unwrap_or(0).max(segment.position());
                    let file_size = file_size.min(tail.position + tail.bytes);
                    return Ok(SegmentEnd { tail, file_size });
                }
            }
        }
    }
}
