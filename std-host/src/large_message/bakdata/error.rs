//! What is wrong with a record of this format.

use std::fmt;

/// What is wrong with a record, or keeps it from being written. What is wrong with a blob is a
/// [`BlobError`](crate::large_message::BlobError), and with its compression a
/// [`logseg_core::Error`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BakdataError {
    /// No byte, where the first one is the flag.
    Empty,
    /// A flag that is neither 0 nor 1.
    Flag(u8),
    /// A header without the byte that it is for.
    EmptyHeader(&'static str),
    /// Bytes that are no URI: not UTF-8 from this position on.
    NotUtf8(usize),
    /// No compression type has this id.
    CompressionType(u8),
    /// A key that is backed already says that it is compressed otherwise, in the header that
    /// both share.
    CompressionConflict {
        /// The key's id; `None` if it is not compressed.
        key: Option<u8>,
        /// The value's id; `None` if it is not compressed.
        value: Option<u8>,
    },
    /// A payload to be backed, or a URI, and no store is configured.
    NoStore,
    /// Not a name that Kafka has for a topic, so it is not put into a URI.
    Topic(String),
}

impl fmt::Display for BakdataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = |id: &Option<u8>| id.map_or("none".to_owned(), |id| id.to_string());
        match self {
            Self::Empty => f.write_str("no bytes, where the first is the flag"),
            Self::Flag(flag) => write!(f, "flag {flag}, which is 0 for inline and 1 for backed"),
            Self::EmptyHeader(name) => write!(f, "header {name} has no byte"),
            Self::NotUtf8(position) => write!(f, "a URI that is not UTF-8 at byte {position}"),
            Self::CompressionType(id) => write!(f, "no compression type has id {id}"),
            Self::CompressionConflict { key, value } => write!(
                f,
                "the key is backed with compression type {} and the value with {}, and one \
                 header stands for both",
                id(key),
                id(value)
            ),
            Self::NoStore => f.write_str("backed by a store, and large.message.base.path is empty"),
            Self::Topic(topic) => write!(f, "{topic:?} is not a legal name of a topic"),
        }
    }
}

impl std::error::Error for BakdataError {}
