//! Large values to the store, references into the record.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::config::{ConfigError, MAX_BLOB_BYTES, SerializerConfig};
use super::formatter::{self, LargeMessageFormatter, Reference};
use super::{BlobError, BlobErrorKind, BlobStore, Marker, STEP, open};
use crate::serde::{Headers, RecordPart, SerdeError, Serializer};

/// Puts values of the threshold or more into a blob store: KIP-1159's
/// `LargeMessageSerializer`.
///
/// * Null stays null, and the headers are left alone.
/// * Of fewer bytes than the threshold, a value stays as it is.
/// * Any other is put into the store, and becomes a reference to it; a header,
///   [`VALUE_HEADER`](super::VALUE_HEADER), says so.
///
/// A header of that name that the record had before is taken away, so that a value read
/// elsewhere and produced again is never taken for a reference. Between store and broker
/// nothing is lost: the reference exists only once the blob does. If the record is not
/// produced after all, the blob is an orphan.
pub struct LargeMessageSerializer {
    store: Arc<dyn BlobStore>,
    formatter: Box<dyn LargeMessageFormatter>,
    config: SerializerConfig,
    marker: Marker,
}

impl fmt::Debug for LargeMessageSerializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeMessageSerializer")
            .field("config", &self.config)
            .field("marker", &self.marker)
            .finish_non_exhaustive()
    }
}

impl LargeMessageSerializer {
    /// With the store that the configuration names. No request is made.
    ///
    /// Errors: what is wrong with the configuration.
    pub fn open(config: SerializerConfig) -> Result<Self, ConfigError> {
        let store = open(&config.store)?;
        Self::new(config, store)
    }

    /// With a `store` of one's own; what the configuration says of the store, its time and
    /// its retries is not used then.
    ///
    /// Errors: what is wrong with the configuration.
    pub fn new(config: SerializerConfig, store: Arc<dyn BlobStore>) -> Result<Self, ConfigError> {
        config.validate()?;
        let formatter = formatter::formatter(&config.formatter)?;
        Ok(Self { store, formatter, config, marker: Marker(RecordPart::Value) })
    }

    /// With a `formatter` of one's own instead of the configuration's.
    #[must_use]
    pub fn with_formatter(self, formatter: Box<dyn LargeMessageFormatter>) -> Self {
        Self { formatter, ..self }
    }

    /// For keys instead of values: [`KEY_HEADER`](super::KEY_HEADER) is the header.
    ///
    /// A key is then a reference, and equal keys may have references that are not equal: the
    /// partitioner and the log cleaner see the reference. Only ids made of the content
    /// (`sha256`) keep equal keys together.
    #[must_use]
    pub fn for_keys(self) -> Self {
        Self { marker: Marker(RecordPart::Key), ..self }
    }

    /// Its configuration.
    #[must_use]
    pub const fn config(&self) -> &SerializerConfig {
        &self.config
    }

    fn put(&self, topic: &str, value: &Bytes) -> Result<Bytes, BlobError> {
        let size = value.len() as u64;
        if size > self.config.max_blob_bytes {
            let detail = format!(
                "the value has {size} bytes, more than {MAX_BLOB_BYTES} = {}",
                self.config.max_blob_bytes
            );
            return Err(BlobError::new(BlobErrorKind::TooLarge, topic, detail));
        }
        let full_blob_path = self.store.put(topic, value.clone())?;
        Ok(self.formatter.format(&Reference {
            full_blob_path,
            blob_store_class: Some(self.store.name().into()),
            blob_id_generator_class: self.store.blob_id_generator().map(Into::into),
            large_message_formatter_class: Some(self.formatter.name().into()),
            size: Some(size),
            sha256: Some(Sha256::digest(value).into()),
        }))
    }
}

impl Serializer<Bytes> for LargeMessageSerializer {
    /// Errors: those of the store, as a [`BlobError`].
    fn serialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        value: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(value) = value else { return Ok(None) };
        if (value.len() as u64) < self.config.threshold_bytes {
            self.marker.remove(headers);
            return Ok(Some(value.clone()));
        }
        let reference = self.put(topic, value).map_err(|error| SerdeError::new(STEP, error))?;
        self.marker.set(headers);
        Ok(Some(reference))
    }
}
