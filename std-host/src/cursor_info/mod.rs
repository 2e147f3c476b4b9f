//! Pulsar's cursor and ledger metadata, as a metadata store (ZooKeeper, etcd) has them.
//!
//! A node is a protobuf message, plain or, if the broker is told to compress it, in an
//! envelope. All integers of the envelope are big-endian; sizes are bytes:
//!
//! ```text
//!  0   2   magic 47 78
//!  2   4   i32 metadata size m
//!  6   m   metadata: 1 compressionType (NONE 0, LZ4 1, ZLIB 2, ZSTD 3, SNAPPY 4)
//!                    2 uncompressedSize
//!  6+m …   the message, compressed
//! ```
//! Whether that is a `ManagedCursorInfo` or a `ManagedLedgerInfo` is known from the node's
//! path only: `/managed-ledgers/…/<topic>/<cursor>` or `/managed-ledgers/…/<topic>`. Only the
//! magic tells an envelope from a plain message, none of which can start with it. Pulsar takes
//! an envelope that it cannot read for a plain message, and then fails on that; here the
//! envelope's own error is told. Errors are [`Error`], with a byte position and a field.
//!
//! ```
//! use std_host::cursor_info::{self, Node, ManagedCursorInfo};
//!
//! # fn main() -> Result<(), cursor_info::Error> {
//! let node = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x0a\x18\x05";
//! let node = Node::parse(node)?;
//! let message = node.message(cursor_info::DEFAULT_LIMIT)?;
//! let (cursor, _unknown_fields): (ManagedCursorInfo, u64) =
//!     cursor_info::decode(&message, 0).map_err(|error| node.locate(error))?;
//! assert_eq!(cursor.mark_delete_entry_id, Some(5));
//! # Ok(())
//! # }
//! ```
//! Sources: PIP-146 (apache/pulsar#14529), PIP-270, and `MetaStoreImpl.java` of Apache Pulsar.

mod codec;
mod envelope;
mod error;
mod facts;
mod messages;

pub use self::envelope::{Envelope, Magic, Node, store};
pub use self::error::{Error, ErrorKind};
pub use self::facts::{Backlog, position};
pub use self::messages::{
    BatchedEntryDeletionIndexInfo, Checked, KeyValue, LedgerInfo, LongListMap, LongProperty,
    ManagedCursorInfo, ManagedInfoMetadata, ManagedLedgerInfo, MessageRange, NestedPositionInfo,
    OffloadContext, OffloadDriverMetadata, OffloadSegment, PositionInfo, Schema, StringProperty,
    decode,
};

/// Most bytes of a message, if nobody says otherwise: 256 MiB.
pub const DEFAULT_LIMIT: usize = 256 << 20;

/// How a message is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// Not at all. Pulsar reads such an envelope and writes a plain message instead.
    None,
    /// A raw LZ4 block.
    Lz4,
    /// zlib, flushed and not finished.
    Zlib,
    /// A zstd frame.
    Zstd,
    /// A raw snappy block.
    Snappy,
}

impl CompressionType {
    /// All, by number.
    pub const ALL: [Self; 5] = [Self::None, Self::Lz4, Self::Zlib, Self::Zstd, Self::Snappy];

    /// The number in the metadata.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The type of a number.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.number() == number)
    }

    /// Pulsar's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Lz4 => "LZ4",
            Self::Zlib => "ZLIB",
            Self::Zstd => "ZSTD",
            Self::Snappy => "SNAPPY",
        }
    }
}

#[cfg(test)]
mod tests;
