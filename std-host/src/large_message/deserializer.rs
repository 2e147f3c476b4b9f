//! References in records back to the values in the store.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::config::{ConfigError, DeserializerConfig, MAX_BLOB_BYTES};
use super::formatter::{self, LargeMessageFormatter, Reference};
use super::{BlobError, BlobErrorKind, BlobStore, Marker, STEP, open};
use crate::dump::digest::hex;
use crate::serde::{Deserializer, Headers, RecordPart, SerdeError};

/// Gets the values that references stand for: KIP-1159's `LargeMessageDeserializer`.
///
/// * Null stays null, and the headers are left alone.
/// * A value without the header [`VALUE_HEADER`](super::VALUE_HEADER) stays as it is, unless
///   `sniff_references` is set and it is an object with all four members of the KIP.
/// * Of any other the blob is got, and its size and SHA-256 are compared with those of the
///   reference, if they are in it. The header is taken away.
/// * If `skip_not_found_error` is set, a blob that the store says is not there is an empty
///   value. No other failure ever is.
///
/// Which store is asked is for the configuration to say, never for a record: a reference to
/// anything that is not below the configured URL is an error, and nobody is asked. Below it,
/// one topic's records may refer to blobs of another, as they do after mirroring; stores
/// with different readers need different URLs.
pub struct LargeMessageDeserializer {
    store: Arc<dyn BlobStore>,
    formatter: Box<dyn LargeMessageFormatter>,
    config: DeserializerConfig,
    marker: Marker,
}

impl fmt::Debug for LargeMessageDeserializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeMessageDeserializer")
            .field("config", &self.config)
            .field("marker", &self.marker)
            .finish_non_exhaustive()
    }
}

impl LargeMessageDeserializer {
    /// With the store that the configuration names. No request is made.
    ///
    /// Errors: what is wrong with the configuration.
    pub fn open(config: DeserializerConfig) -> Result<Self, ConfigError> {
        let store = open(&config.store)?;
        Self::new(config, store)
    }

    /// With a `store` of one's own; what the configuration says of the store, its time and
    /// its retries is not used then.
    ///
    /// Errors: what is wrong with the configuration.
    pub fn new(config: DeserializerConfig, store: Arc<dyn BlobStore>) -> Result<Self, ConfigError> {
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
    #[must_use]
    pub fn for_keys(self) -> Self {
        Self { marker: Marker(RecordPart::Key), ..self }
    }

    /// Its configuration.
    #[must_use]
    pub const fn config(&self) -> &DeserializerConfig {
        &self.config
    }

    /// The whole blob that `reference` stands for, and nothing but that.
    fn get(&self, reference: &Reference) -> Result<Bytes, BlobError> {
        let location = &reference.full_blob_path;
        let limit = self.config.max_blob_bytes;
        let fail = |kind, detail: String| BlobError::new(kind, location, detail);
        if let Some(size) = reference.size.filter(|size| *size > limit) {
            let detail = format!("{size} bytes, more than {MAX_BLOB_BYTES} = {limit}");
            return Err(fail(BlobErrorKind::TooLarge, detail));
        }
        let got = self.store.get(location, reference.size.unwrap_or(limit));
        let data = match (got, reference.size) {
            // Larger than it should be is another blob, not a large one.
            (Err(error), Some(size)) if error.kind() == BlobErrorKind::TooLarge => {
                let detail = format!("the reference says {size} bytes, but {}", error.detail());
                return Err(fail(BlobErrorKind::Mismatch, detail));
            }
            (got, _) => got?,
        };
        if let Some(size) = reference.size.filter(|size| *size != data.len() as u64) {
            let detail = format!("the reference says {size} bytes, the blob has {}", data.len());
            return Err(fail(BlobErrorKind::Mismatch, detail));
        }
        if let Some(want) = reference.sha256 {
            let have: [u8; 32] = Sha256::digest(&data).into();
            if have != want {
                let detail = format!(
                    "the reference says sha256 {}, the blob has {}",
                    hex(&want),
                    hex(&have)
                );
                return Err(fail(BlobErrorKind::Mismatch, detail));
            }
        }
        Ok(data)
    }
}

impl Deserializer<Bytes> for LargeMessageDeserializer {
    /// Errors: those of the store and of what it has, as a [`BlobError`]; a reference that
    /// cannot be read, as a [`FormatError`](super::FormatError).
    fn deserialize(
        &self,
        _topic: &str,
        headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(data) = data else { return Ok(None) };
        let marked = self.marker.is_set(headers).map_err(|error| SerdeError::new(STEP, error))?;
        let is_reference =
            marked || self.config.sniff_references && self.formatter.recognizes(data);
        if !is_reference {
            return Ok(Some(data.clone()));
        }
        let reference = self.formatter.parse(data).map_err(|error| SerdeError::new(STEP, error))?;
        let value = match self.get(&reference) {
            Err(error)
                if error.kind() == BlobErrorKind::NotFound && self.config.skip_not_found_error =>
            {
                Bytes::new()
            }
            got => got.map_err(|error| SerdeError::new(STEP, error))?,
        };
        self.marker.remove(headers);
        Ok(Some(value))
    }
}
