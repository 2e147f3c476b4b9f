//! Steps that compress: gzip, snappy, lz4 and zstd, each as Kafka's producer writes it into a
//! batch (`org.apache.kafka.common.compress`), so that any of its readers can read it.
//!
//! What is written is what [`Recompressor`] writes: one gzip member, a xerial stream of 32 KiB
//! blocks, one LZ4 frame of 64 KiB blocks, one zstd frame; nothing at all for no bytes with
//! zstd. What is read is all that Kafka's consumer reads, by [`HostCodecs`].

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use logseg_core::{Codec, Error, Magic};

use super::{Deserializer, Headers, SerdeError, Serializer};
use crate::codec_spec::CodecSpec;
use crate::codecs::{HostCodecs, Plain};
use crate::recompress::{RecompressError, Recompressor};

/// Most bytes that a deserializer decompresses to, unless it is told otherwise: 128 MiB.
///
/// Nothing in the formats bounds it: a zstd frame of a few hundred bytes can stand for
/// gigabytes.
pub const DEFAULT_MAX_DECOMPRESSED_BYTES: u64 = 128 << 20;

/// A buffer larger than this goes away with what was made in it; a smaller one is used again.
const KEPT: usize = 1 << 20;

/// Contexts of a codec, of which each thread borrows one for a call: as many as there were
/// calls at the same time.
pub(crate) struct Pool<C>(Mutex<Vec<C>>);

impl<C> Pool<C> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Calls `with` on a context that is free, or else on a new one.
    pub(crate) fn with<R>(&self, new: impl FnOnce() -> C, with: impl FnOnce(&mut C) -> R) -> R {
        // A context is only put back when its call has ended, so there is nothing half done
        // behind a poisoned lock.
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut context = free.unwrap_or_else(new);
        let result = with(&mut context);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(context);
        result
    }
}

/// Compresses a value, by the name of its codec.
///
/// What does not shrink is kept all the same, as Kafka does. Contexts are kept between calls:
/// see [`Recompressor::new`] for what they hold.
///
/// Errors: [`RecompressError`] for lack of memory, in the library's words.
pub struct CodecSerializer {
    spec: CodecSpec,
    contexts: Pool<(Recompressor, Vec<u8>)>,
}

impl CodecSerializer {
    /// Compresses to `spec`.
    #[must_use]
    pub const fn new(spec: CodecSpec) -> Self {
        Self { spec, contexts: Pool::new() }
    }

    /// What it compresses to.
    #[must_use]
    pub const fn spec(&self) -> CodecSpec {
        self.spec
    }

    pub(crate) fn compress(&self, plain: &[u8]) -> Result<Bytes, RecompressError> {
        let new = || (Recompressor::new(self.spec), Vec::new());
        self.contexts.with(new, |(recompressor, out)| {
            recompressor.compress(plain, Magic::V2, out)?;
            if out.capacity() <= KEPT {
                return Ok(Bytes::copy_from_slice(out));
            }
            let mut out = std::mem::take(out);
            out.shrink_to_fit();
            Ok(out.into())
        })
    }
}

impl std::fmt::Debug for CodecSerializer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodecSerializer").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Serializer<Bytes> for CodecSerializer {
    fn serialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        value: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(value) = value else { return Ok(None) };
        let packed = self.compress(value);
        packed.map(Some).map_err(|error| SerdeError::new(self.spec.codec().name(), error))
    }
}

/// Decompresses what any codec has made, up to a limit.
pub(crate) struct Decompressor {
    limit: u64,
    contexts: Pool<(HostCodecs, Plain)>,
}

impl Decompressor {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, contexts: Pool::new() }
    }

    pub(crate) fn decompress(&self, codec: Codec, packed: &[u8]) -> Result<Bytes, Error> {
        self.contexts.with(Default::default, |(codecs, plain)| {
            let done = codecs.unpack(codec, Magic::V2, packed, 0, self.limit, plain);
            let kept = plain.capacity() <= KEPT;
            match done {
                Ok(()) if kept => Ok(Bytes::copy_from_slice(plain.bytes())),
                Ok(()) => {
                    let mut bytes = plain.take();
                    bytes.shrink_to_fit();
                    Ok(bytes.into())
                }
                Err(error) => {
                    if !kept {
                        drop(plain.take());
                    }
                    Err(error)
                }
            }
        })
    }
}

/// Decompresses a value, by the name of its codec.
///
/// It reads what Kafka's consumer reads, and no more of it than the limit, whatever sizes the
/// data declares.
///
/// Errors: [`logseg_core::Error`], whose position is that in the compressed bytes; beyond the
/// limit [`TooMuchOutput`](logseg_core::ErrorKind::TooMuchOutput).
pub struct CodecDeserializer {
    codec: Codec,
    decompressor: Decompressor,
}

impl CodecDeserializer {
    /// Decompresses `codec`, to [`DEFAULT_MAX_DECOMPRESSED_BYTES`] at most. [`Codec::None`]
    /// copies.
    #[must_use]
    pub const fn new(codec: Codec) -> Self {
        Self::with_limit(codec, DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// Decompresses `codec`, to `limit` bytes at most.
    #[must_use]
    pub const fn with_limit(codec: Codec, limit: u64) -> Self {
        Self { codec, decompressor: Decompressor::new(limit) }
    }
}

impl std::fmt::Debug for CodecDeserializer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodecDeserializer")
            .field("codec", &self.codec)
            .field("limit", &self.decompressor.limit)
            .finish_non_exhaustive()
    }
}

impl Deserializer<Bytes> for CodecDeserializer {
    fn deserialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(data) = data else { return Ok(None) };
        let plain = self.decompressor.decompress(self.codec, data);
        plain.map(Some).map_err(|error| SerdeError::new(self.codec.name(), error))
    }
}

#[cfg(test)]
mod tests {
    use logseg_core::ErrorKind;

    use super::*;

    const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    fn pack(codec: Codec, plain: &[u8]) -> Bytes {
        CodecSerializer::new(CodecSpec::new(codec).unwrap()).compress(plain).unwrap()
    }

    fn read(codec: Codec, limit: u64, packed: &Bytes) -> Result<Bytes, ErrorKind> {
        let step = CodecDeserializer::with_limit(codec, limit);
        match step.deserialize("t", &mut Headers::new(), Some(packed)) {
            Ok(plain) => Ok(plain.unwrap()),
            Err(error) => {
                assert_eq!(error.step(), codec.name());
                Err(error.cause::<Error>().unwrap().kind())
            }
        }
    }

    #[test]
    fn what_is_written_is_what_kafka_writes() {
        let hello = b"hello";
        assert_eq!(pack(Codec::Gzip, hello)[..10], *b"\x1f\x8b\x08\0\0\0\0\0\0\xff");
        assert_eq!(pack(Codec::Snappy, hello)[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        assert_eq!(pack(Codec::Lz4, hello)[..7], *b"\x04\x22\x4d\x18\x60\x40\x82");
        assert_eq!(pack(Codec::Zstd, hello)[..6], *b"\x28\xb5\x2f\xfd\0\x58");
        assert_eq!(pack(Codec::Zstd, b""), &b""[..]);
    }

    #[test]
    fn limits_are_exact() {
        let kib = 1 << 10;
        for codec in CODECS {
            for len in [0, 1, 100, 100 * kib, 3 << 20] {
                let plain = vec![7; len];
                let packed = pack(codec, &plain);
                assert_eq!(read(codec, len as u64, &packed).unwrap(), plain, "{codec} {len}");
                if let Some(less) = len.checked_sub(1) {
                    let limit = less as u64;
                    let expected = Err(ErrorKind::TooMuchOutput { limit });
                    assert_eq!(read(codec, limit, &packed), expected, "{codec} {len}");
                }
            }
        }
    }

    /// A size that is only declared costs nothing.
    #[test]
    fn declared_sizes_are_not_believed() {
        let gib = DEFAULT_MAX_DECOMPRESSED_BYTES;
        // A raw snappy block that declares 127 MiB, a gzip trailer of 2 GiB, a zstd frame
        // with a content size of 100 MiB.
        let snappy = Bytes::from_static(b"\xff\xff\xff\x3f\x04hello");
        assert!(read(Codec::Snappy, gib, &snappy).is_err());
        let mut gzip = pack(Codec::Gzip, b"hello").to_vec();
        let at = gzip.len() - 4;
        gzip[at..].copy_from_slice(&i32::MAX.to_le_bytes());
        assert!(read(Codec::Gzip, gib, &gzip.into()).is_err());
        let zstd = Bytes::from_static(b"\x28\xb5\x2f\xfd\xa0\0\0\x40\x06\x29\0\0hello");
        assert!(read(Codec::Zstd, gib, &zstd).is_err());
    }

    #[test]
    fn contexts_are_used_again() {
        let step = CodecSerializer::new(CodecSpec::new(Codec::Zstd).unwrap());
        let first = step.compress(b"seven").unwrap();
        for _ in 0..10 {
            assert_eq!(step.compress(b"seven").unwrap(), first);
        }
        assert_eq!(step.contexts.0.lock().unwrap().len(), 1);
        // What was large is not held on to.
        let large = step.compress(&vec![0; 4 << 20]).unwrap();
        assert!(step.contexts.0.lock().unwrap()[0].1.capacity() <= KEPT);
        let decompressor = Decompressor::new(5 << 20);
        assert_eq!(decompressor.decompress(Codec::Zstd, &large).unwrap().len(), 4 << 20);
        assert!(decompressor.decompress(Codec::Zstd, &large[..large.len() - 1]).is_err());
        let contexts = decompressor.contexts.0.lock().unwrap();
        assert_eq!(contexts.len(), 1);
        assert!(contexts[0].1.capacity() <= KEPT);
    }

    #[test]
    fn many_threads() {
        let step = CodecSerializer::new(CodecSpec::new(Codec::Gzip).unwrap());
        let back = CodecDeserializer::new(Codec::Gzip);
        std::thread::scope(|scope| {
            for n in 0..4u8 {
                let (step, back) = (&step, &back);
                scope.spawn(move || {
                    for len in 0..50 {
                        let plain = Bytes::from(vec![n; len * 100]);
                        let headers = &mut Headers::new();
                        let packed = step.serialize("t", headers, Some(&plain)).unwrap();
                        let read = back.deserialize("t", headers, packed.as_ref()).unwrap();
                        assert_eq!(read, Some(plain));
                    }
                });
            }
        });
    }
}
