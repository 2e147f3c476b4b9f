//! Reads records that bakdata's serializer wrote.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use logseg_core::Codec;
use logseg_core::codec::xerial_encode;

use super::super::{BlobError, BlobErrorKind};
use super::serializer::compression_header;
use super::{
    BACKED, BakdataConfig, BakdataError, COMPRESSION_HEADER, INLINE, KeyedBlobStore,
    OLD_COMPRESSION_HEADER, STEP, marker_header,
};
use crate::serde::{Decompressor, Deserializer, Headers, RecordPart, SerdeError};

/// Gives the value that was serialized, inline or backed: the bytes of bakdata's
/// `LargeMessageDeserializer` around a deserializer of bytes.
///
/// Errors: [`BakdataError`]; [`BlobError`] of the store, and of what is not below it or not
/// what its id says; [`logseg_core::Error`] of what cannot be decompressed, with the position
/// in the blob.
pub struct BakdataDeserializer {
    config: BakdataConfig,
    part: RecordPart,
    store: Option<Arc<dyn KeyedBlobStore>>,
    decompressor: Decompressor,
}

impl BakdataDeserializer {
    /// Keys or values as `config` has it.
    ///
    /// `store` holds what is below [`BasePath::directory`](super::BasePath::directory) of the
    /// base path. Without either, a value that is backed is an error.
    #[must_use]
    pub fn new(
        config: BakdataConfig,
        part: RecordPart,
        store: Option<Arc<dyn KeyedBlobStore>>,
    ) -> Self {
        let decompressor = Decompressor::new(config.max_blob_bytes);
        Self { config, part, store, decompressor }
    }

    fn value(&self, headers: &Headers, data: &Bytes) -> Result<Bytes, SerdeError> {
        let (flag, payload) = self.unmarked(headers, data).map_err(failed)?;
        match flag {
            INLINE => Ok(payload),
            BACKED => self.backed(headers, &payload),
            flag => Err(failed(BakdataError::Flag(flag))),
        }
    }

    /// The flag, and what it is the flag of.
    fn unmarked(&self, headers: &Headers, data: &Bytes) -> Result<(u8, Bytes), BakdataError> {
        let name = marker_header(self.part);
        match headers.last(name) {
            Some(header) => {
                let flag = header.value.as_deref().unwrap_or_default().first();
                Ok((*flag.ok_or(BakdataError::EmptyHeader(name))?, data.clone()))
            }
            None if self.config.accept_no_headers => Ok((INLINE, data.clone())),
            None => {
                let flag = data.first().ok_or(BakdataError::Empty)?;
                Ok((*flag, data.slice(1..)))
            }
        }
    }

    fn backed(&self, headers: &Headers, uri: &[u8]) -> Result<Bytes, SerdeError> {
        let uri = std::str::from_utf8(uri)
            .map_err(|error| failed(BakdataError::NotUtf8(error.valid_up_to())))?;
        let codec = match compression_header(headers).map_err(failed)? {
            None => Codec::None,
            Some(id) => {
                Codec::from_id(id).ok_or_else(|| failed(BakdataError::CompressionType(id)))?
            }
        };
        let (Some(base), Some(store)) = (&self.config.base_path, &self.store) else {
            return Err(failed(BakdataError::NoStore));
        };
        let Some(key) = base.key_in(uri) else {
            let detail = format!("is not below {}", base.directory());
            return Err(failed(BlobError::new(BlobErrorKind::NotAllowed, uri, detail)));
        };
        let location = store.location_of(key);
        let blob = store.get(&location, self.config.max_blob_bytes).map_err(failed)?;
        if self.config.verify_ids {
            let id = key.rsplit('/').next().unwrap_or_default();
            if let Some(generator) = self.config.id_generator.checked_by(id) {
                let found = generator.id(&blob);
                if found != id {
                    let detail = format!("has the content of id {found}");
                    return Err(failed(BlobError::new(BlobErrorKind::Mismatch, uri, detail)));
                }
            }
        }
        match codec {
            Codec::None => Ok(blob),
            _ => self.decompressor.decompress(codec, unpadded(codec, &blob)).map_err(failed),
        }
    }
}

impl fmt::Debug for BakdataDeserializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BakdataDeserializer")
            .field("config", &self.config)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl Deserializer<Bytes> for BakdataDeserializer {
    fn deserialize(
        &self,
        _topic: &str,
        headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(data) = data else { return Ok(None) };
        let value = self.value(headers, data)?;
        headers.remove(marker_header(self.part));
        // The value, which comes after the key, needs it as well.
        if self.part == RecordPart::Value {
            headers.remove(COMPRESSION_HEADER);
            headers.remove(OLD_COMPRESSION_HEADER);
        }
        Ok(Some(value))
    }
}

fn failed(cause: impl std::error::Error + Send + Sync + 'static) -> SerdeError {
    SerdeError::new(STEP, cause)
}

/// `blob` without the zeros that may follow what is compressed.
///
/// Only where they would be an error: neither a snappy block nor a zstd frame starts with a
/// zero. What follows gzip's member and lz4's frame Kafka does not look at. If anything else is
/// there, or the stream is broken, all of it is left to the decoder.
fn unpadded(codec: Codec, blob: &[u8]) -> &[u8] {
    let end = match codec {
        Codec::Snappy => snappy_end(blob),
        Codec::Zstd => zstd_end(blob),
        _ => None,
    };
    match end.and_then(|end| blob.split_at_checked(end)) {
        Some((stream, padding)) if padding.iter().all(|byte| *byte == 0) => stream,
        _ => blob,
    }
}

/// Behind the last block of a xerial stream: where a block of no bytes would be.
fn snappy_end(blob: &[u8]) -> Option<usize> {
    let mut rest = blob.strip_prefix(&xerial_encode::HEADER)?;
    while let Some((word, behind)) = rest.split_first_chunk::<4>() {
        match usize::try_from(i32::from_be_bytes(*word)).ok()? {
            0 => break,
            len => rest = behind.get(len..)?,
        }
    }
    Some(blob.len() - rest.len())
}

/// Behind the last frame. The Java stream has none for no bytes.
fn zstd_end(blob: &[u8]) -> Option<usize> {
    let mut rest = blob;
    while rest.first().is_some_and(|byte| *byte != 0) {
        rest = rest.get(zstd_safe::find_frame_compressed_size(rest).ok()?..)?;
    }
    Some(blob.len() - rest.len())
}
