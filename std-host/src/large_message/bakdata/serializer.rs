//! Writes records that bakdata's deserializer reads.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use logseg_core::Codec;

use super::super::ConfigError;
use super::{
    BACKED, BakdataConfig, BakdataError, COMPRESSION_HEADER, INLINE, KeyedBlobStore,
    OLD_COMPRESSION_HEADER, STEP, marker_header,
};
use crate::codec_spec::CodecSpec;
use crate::serde::{CodecSerializer, Headers, RecordPart, SerdeError, Serializer};

/// Stores a value of the threshold or more and makes a URI of it, and marks the others as
/// inline: the bytes of bakdata's `LargeMessageSerializer` around a serializer of bytes.
///
/// Headers of its own that are there already, those of a record that is sent on for instance,
/// are taken away: in bakdata's flag protocol they stay, and the reader is misled.
///
/// Errors: [`BakdataError`]; [`BlobError`](crate::large_message::BlobError) of the store; a
/// failure of the compressor. A blob that has been stored may stay behind, if the record is
/// not sent after all.
pub struct BakdataSerializer {
    config: BakdataConfig,
    part: RecordPart,
    store: Option<Arc<dyn KeyedBlobStore>>,
    codec: Option<CodecSerializer>,
}

impl BakdataSerializer {
    /// Keys or values as `config` has it.
    ///
    /// `store` holds what is below [`BasePath::directory`](super::BasePath::directory) of the
    /// base path. Without either, a value that had to be backed is an error.
    ///
    /// Errors: a compression type without headers.
    pub fn new(
        config: BakdataConfig,
        part: RecordPart,
        store: Option<Arc<dyn KeyedBlobStore>>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let spec = CodecSpec::new(config.compression_type).ok();
        Ok(Self { config, part, store, codec: spec.map(CodecSerializer::new) })
    }

    /// Stores `value` and gives its URI.
    fn back(&self, topic: &str, value: &Bytes) -> Result<String, SerdeError> {
        let (Some(base), Some(store)) = (&self.config.base_path, &self.store) else {
            return Err(SerdeError::new(STEP, BakdataError::NoStore));
        };
        let blob = match &self.codec {
            None => value.clone(),
            Some(codec) => codec.compress(value).map_err(|error| SerdeError::new(STEP, error))?,
        };
        let id = self.config.id_generator.id(&blob);
        let key = base
            .key(topic, self.part, &id)
            .ok_or_else(|| SerdeError::new(STEP, BakdataError::Topic(topic.to_owned())))?;
        store.put_at(&key, blob).map_err(|error| SerdeError::new(STEP, error))?;
        Ok(base.uri(&key))
    }

    /// Which compression header there has to be; `None` for none.
    ///
    /// Key and value share it, and the key is the first of them.
    fn compression(&self, headers: &Headers, backed: bool) -> Result<Option<u8>, BakdataError> {
        let own = Some(self.config.compression_type)
            .filter(|codec| backed && *codec != Codec::None)
            .map(Codec::id);
        let key = headers.last(marker_header(RecordPart::Key));
        let key_is_backed = self.part == RecordPart::Value
            && key.is_some_and(|key| key.value.as_deref() == Some(&[BACKED]));
        if !key_is_backed {
            return Ok(own);
        }
        let key = compression_header(headers)?;
        if backed && key != own {
            return Err(BakdataError::CompressionConflict { key, value: own });
        }
        Ok(key)
    }
}

impl fmt::Debug for BakdataSerializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BakdataSerializer")
            .field("config", &self.config)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl Serializer<Bytes> for BakdataSerializer {
    fn serialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        value: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(value) = value else { return Ok(None) };
        let backed = value.len() as u64 >= u64::from(self.config.max_byte_size);
        // Before anything is stored.
        let compression =
            self.compression(headers, backed).map_err(|error| SerdeError::new(STEP, error))?;
        let payload = if backed { self.back(topic, value)?.into() } else { value.clone() };
        let flag = if backed { BACKED } else { INLINE };

        headers.remove(COMPRESSION_HEADER);
        headers.remove(OLD_COMPRESSION_HEADER);
        if let Some(id) = compression {
            let name = match self.config.legacy_compression_header {
                true => OLD_COMPRESSION_HEADER,
                false => COMPRESSION_HEADER,
            };
            headers.add(name, Some(Bytes::copy_from_slice(&[id])));
        }
        let marker = marker_header(self.part);
        headers.remove(marker);
        if self.config.use_headers {
            headers.add(marker, Some(Bytes::copy_from_slice(&[flag])));
            return Ok(Some(payload));
        }
        let mut flagged = Vec::with_capacity(1 + payload.len());
        flagged.push(flag);
        flagged.extend_from_slice(&payload);
        Ok(Some(flagged.into()))
    }
}

/// What the compression header says, by its new name before its old one; `None` if there is
/// none, or if it says that nothing is compressed.
pub(super) fn compression_header(headers: &Headers) -> Result<Option<u8>, BakdataError> {
    for name in [COMPRESSION_HEADER, OLD_COMPRESSION_HEADER] {
        if let Some(header) = headers.last(name) {
            let value = header.value.as_deref().unwrap_or_default();
            let id = *value.first().ok_or(BakdataError::EmptyHeader(name))?;
            return Ok(Some(id).filter(|id| *id != 0));
        }
    }
    Ok(None)
}
