//! Large messages by reference, as KIP-1159 proposes: a value of the threshold or more goes
//! to a blob store, and the record carries a reference to it.
//!
//! ```text
//! producer:  value ─┬─ < threshold ──────────────────────────→ the value
//!                   └─ ≥ threshold → store: URL/topic/id ────→ header + {"full-blob-path": …}
//! consumer:  header? no → the value     yes → allowed? → store → size, sha256 → the value
//! ```
//! The KIP does not say how a reference is told from a value that just looks like one. Here a
//! record header does: [`VALUE_HEADER`] (for keys [`KEY_HEADER`]) with the one byte 1 is on
//! every record that has a reference, and on no other. Records by the letter of the KIP have
//! none; `large.message.sniff.references` reads those as well.
//!
//! What a reference says about classes is information for people. Store, generator of ids and
//! formatter are chosen by the configuration, by registered names ([`config`]) or in code.
//!
//! ```
//! use bytes::Bytes;
//! use std_host::large_message::*;
//! use std_host::serde::{Deserializer, Headers, Serializer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let url = format!("file://{}", folder.path().display());
//! let configs = [
//!     ("large.message.blob.store.class", "object-store"),
//!     ("large.message.blob.store.url", &url), // "s3://bucket/prefix"
//!     ("large.message.threshold.bytes", "1000"),
//! ];
//! let serializer = LargeMessageSerializer::open(SerializerConfig::from_map(configs)?)?;
//! let deserializer = LargeMessageDeserializer::open(DeserializerConfig::from_map(configs)?)?;
//!
//! let (value, mut headers) = (Bytes::from(vec![7; 5000]), Headers::new());
//! let sent = serializer.serialize("topic", &mut headers, Some(&value))?.unwrap();
//! assert!(sent.starts_with(b"{\"full-blob-path\":\"file:///"));
//! assert!(headers.last(VALUE_HEADER).is_some());
//!
//! let received = deserializer.deserialize("topic", &mut headers, Some(&sent))?;
//! assert_eq!(received, Some(value));
//! assert!(headers.is_empty());
//! # Ok(())
//! # }
//! ```
//! Source: KIP-1159, which is under discussion; nothing of it is in Apache Kafka.

pub mod bakdata;
pub mod config;
mod deserializer;
mod failure;
pub mod find;
mod formatter;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod http;
mod ids;
mod location;
mod object;
pub mod orphans;
mod retry;
mod serializer;
mod store;

use std::sync::Arc;

use bytes::Bytes;

use crate::serde::{Headers, RecordPart};

pub use config::{BlobStoreConfig, ConfigError, DeserializerConfig, SerializerConfig};
pub use deserializer::LargeMessageDeserializer;
pub use formatter::{
    FormatError, JsonFormatter, LargeMessageFormatter, MAX_REFERENCE_BYTES, Reference,
};
pub use ids::{BlobIdGenerator, Sha256Generator, UuidGenerator};
pub(crate) use location::is_topic;
pub use object::{Blob, BlobList, ObjectBlobStore};
pub use retry::RetryPolicy;
pub use serializer::LargeMessageSerializer;
pub use store::{BlobError, BlobErrorKind, BlobStore};

/// Header of a record whose value is a reference.
pub const VALUE_HEADER: &str = "__large.message.reference.value";
/// Header of a record whose key is a reference.
pub const KEY_HEADER: &str = "__large.message.reference.key";
/// What the header says: the version of what is written here.
pub(crate) const VERSION: &[u8] = &[1];
/// The registered name of both steps.
const STEP: &str = "large-message";

/// The store that a configuration names. No request is made.
///
/// Errors: a name that is not registered, and those of [`ObjectBlobStore::open`].
pub fn open(config: &BlobStoreConfig) -> Result<Arc<dyn BlobStore>, ConfigError> {
    match &*config.class {
        ObjectBlobStore::NAME => Ok(Arc::new(ObjectBlobStore::open(config)?)),
        class => Err(ConfigError::new(
            config::BLOB_STORE_CLASS,
            format!("there is no {class:?}: registered is {}", ObjectBlobStore::NAME),
        )),
    }
}

/// The header that tells references, of keys or of values.
#[derive(Debug, Clone, Copy)]
struct Marker(RecordPart);

impl Marker {
    const fn header(self) -> &'static str {
        match self.0 {
            RecordPart::Value => VALUE_HEADER,
            RecordPart::Key => KEY_HEADER,
        }
    }

    fn remove(self, headers: &mut Headers) {
        headers.remove(self.header());
    }

    /// One, however many there were.
    fn set(self, headers: &mut Headers) {
        self.remove(headers);
        headers.add(self.header(), Some(Bytes::from_static(VERSION)));
    }

    /// Errors: a version that is not known.
    fn is_set(self, headers: &Headers) -> Result<bool, FormatError> {
        match headers.last(self.header()) {
            None => Ok(false),
            Some(header) if header.value.as_deref() == Some(VERSION) => Ok(true),
            Some(header) => Err(FormatError::new(format!(
                "header {} has {:?} and not the one byte 1",
                header.key,
                header.value.as_deref()
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
