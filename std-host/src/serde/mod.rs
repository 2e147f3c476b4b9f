//! Serializers and deserializers as Kafka's clients have them, and how they are composed.
//!
//! The shapes are those of `org.apache.kafka.common.serialization`: the topic, the record's
//! headers and the value, where a null value is one of its own ([`None`]). Values that are
//! bytes are [`Bytes`], so that a step that changes nothing copies nothing.

mod headers;

use std::fmt;

use bytes::Bytes;

pub use headers::{Header, Headers};

/// Makes the bytes of a record's key or value.
///
/// One instance may be used by many threads at once.
pub trait Serializer<T: ?Sized>: Send + Sync {
    /// The bytes of `value`, which may add to `headers` and take from them.
    ///
    /// Null stays null: `None` for `None`, and the headers are left alone.
    ///
    /// Errors: whatever keeps the value from being sent. Nothing of it is sent then.
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
    /// Errors: whatever keeps the value from being had. Nothing of it is delivered then.
    fn deserialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<T>, SerdeError>;
}

/// Why a value could not be serialized or deserialized.
///
/// Kafka's `SerializationException`: the step that failed, and the cause as its
/// [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct SerdeError {
    step: String,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl SerdeError {
    /// `step` (a registered name, as `gzip` or `large-message`) failed with `cause`.
    pub fn new(
        step: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { step: step.into(), cause: cause.into() }
    }

    /// The step that failed.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// The cause, if it is an `E`.
    #[must_use]
    pub fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.cause.downcast_ref()
    }
}

impl fmt::Display for SerdeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.cause)
    }
}

impl std::error::Error for SerdeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}
