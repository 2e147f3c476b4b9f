//! Serializers and deserializers as Kafka's clients have them, and how they are composed.
//!
//! The shapes are those of `org.apache.kafka.common.serialization`: the topic, the record's
//! headers and the value, where a null value is one of its own ([`None`]). Values that are
//! bytes are [`Bytes`], so that a step that changes nothing copies nothing.
//!
//! KIP-1159 composes them: `value.serializers` from left to right, of which the first takes
//! the value and the others bytes; `value.deserializers` in the order of reading, of which the
//! last gives the value. Either in code, where the compiler checks it:
//!
//! ```
//! use logseg_core::Codec;
//! use std_host::codec_spec::CodecSpec;
//! use std_host::serde::{
//!     CodecDeserializer, CodecSerializer, Composed, ComposedDeserializer, Deserializer, Headers,
//!     Serializer, StringDeserializer, StringSerializer,
//! };
//!
//! let zstd = CodecSpec::with_level(Codec::Zstd, 9)?;
//! let serializer: Composed<str> =
//!     Composed::new(StringSerializer).then(CodecSerializer::new(zstd));
//! let deserializer: ComposedDeserializer<String> =
//!     ComposedDeserializer::steps().then(CodecDeserializer::new(zstd.codec())).last(StringDeserializer);
//!
//! let mut headers = Headers::new();
//! let bytes = serializer.serialize("invoices", &mut headers, Some("seven"))?;
//! let value = deserializer.deserialize("invoices", &mut headers, bytes.as_ref())?;
//! assert_eq!(value.as_deref(), Some("seven"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! or from a configuration, by the names in a [`Registry`] ([`registry`] has them, and the keys):
//!
//! ```
//! use std_host::serde::{Config, Deserializer, Headers, RecordPart, Registry, Serializer};
//!
//! let config: Config = [
//!     ("value.serializers", "json, gzip"),
//!     ("value.deserializers", "gzip, json"),
//!     ("value.serializers.gzip.level", "9"),
//! ]
//! .map(|(key, value)| (key.to_owned(), value.to_owned()))
//! .into();
//! let registry = Registry::<Vec<u32>>::json();
//! let serializer = registry.serializer(RecordPart::Value, &config)?;
//! let deserializer = registry.deserializer(RecordPart::Value, &config)?;
//!
//! let mut headers = Headers::new();
//! let bytes = serializer.serialize("invoices", &mut headers, Some(&vec![1, 2, 3]))?;
//! let value = deserializer.deserialize("invoices", &mut headers, bytes.as_ref())?;
//! assert_eq!(value, Some(vec![1, 2, 3]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Source: KIP-1159, "Composable serializer and deserializer".

mod basic;
mod codec;
mod composed;
mod headers;
pub mod registry;

use std::fmt;

use bytes::Bytes;

pub use basic::{
    BytesDeserializer, BytesSerializer, JsonDeserializer, JsonSerializer, StringDeserializer,
    StringSerializer,
};
pub(crate) use codec::Decompressor;
pub use codec::{CodecDeserializer, CodecSerializer, DEFAULT_MAX_DECOMPRESSED_BYTES};
pub use composed::{Composed, ComposedDeserializer, DeserializerSteps};
pub use headers::{Header, Headers};
pub use registry::{Config, ConfigError, FactoryError, Registry};

/// Which part of a record a serializer is for: `isKey` of Kafka's `configure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordPart {
    /// Its key.
    Key,
    /// Its value.
    Value,
}

impl RecordPart {
    /// What its configuration keys start with: `key` or `value`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
        }
    }
}

/// Makes the bytes of a record's key or value.
///
/// One instance may be used by many threads at once.
pub trait Serializer<T: ?Sized>: Send + Sync {
    /// The bytes of `value`, which may add to `headers` and take from them.
    ///
    /// Null stays null: `None` for `None`, and the headers are left alone.
    ///
    /// Errors: whatever keeps the value from being sent. Nothing of it is sent then, and the
    /// headers are as before.
    fn serialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        value: Option<&T>,
    ) -> Result<Option<Bytes>, SerdeError>;
}

/// Makes a key or a value of a record's bytes.
///
/// One instance may be used by many threads at once.
pub trait Deserializer<T>: Send + Sync {
    /// The value in `data`. Takes away the headers that its serializer has added.
    ///
    /// Null stays null: `None` for `None`.
    ///
    /// Errors: whatever keeps the value from being had. Nothing of it is delivered then, and
    /// the headers are as before.
    fn deserialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<T>, SerdeError>;
}

/// Why a value could not be serialized or deserialized.
///
/// Kafka's `SerializationException`: the step that failed, where it stands if it is one of a
/// list, and the cause as its [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct SerdeError {
    step: String,
    place: Option<(usize, usize)>,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl SerdeError {
    /// `step` (a registered name, as `gzip` or `large-message`) failed with `cause`.
    pub fn new(
        step: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { step: step.into(), place: None, cause: cause.into() }
    }

    /// The same of the step at `place` of a list of `len`, counted from 1.
    ///
    /// A step that is itself a list keeps its own place, and is the cause then.
    #[must_use]
    pub fn at(self, place: usize, len: usize) -> Self {
        let outer = match self.place {
            None => self,
            Some(_) => Self::new("composed", self),
        };
        Self { place: Some((place, len)), ..outer }
    }

    /// The step that failed.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// Where it stands in its list, counted from 1, and how long that is; `None` if it is not
    /// in one.
    #[must_use]
    pub const fn place(&self) -> Option<(usize, usize)> {
        self.place
    }

    /// The cause, if it is an `E`.
    #[must_use]
    pub fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.cause.downcast_ref()
    }
}

impl fmt::Display for SerdeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step)?;
        if let Some((place, len)) = self.place {
            write!(f, " (step {place} of {len})")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for SerdeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}
