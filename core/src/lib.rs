//! Reads and writes Apache Kafka log segments in memory the caller lends.
//!
//! `no_std`, no allocation, no panics. A segment is a bare concatenation of
//! entries: RecordBatch v2, or messages of the old formats v0 and v1, any of
//! them compressed or not. There are two ways to read it:
//!
//! * [`Batches`] and [`Batch::records`] walk a slice without copying;
//! * [`Unpacker::poll`] decompresses as well, through a [`Window`] of fixed size, and
//!   tells of every batch how it ended. It reads from a slice, or from a
//!   [`BatchReader`] that is fed in pieces of any size.
//!
//! ```
//! use logseg_core::{Batches, Cpu};
//! # let segment: &[u8] = &[];
//! let mut values = 0;
//! for batch in Batches::new(segment, Cpu::detect()) {
//!     for record in batch?.records()? {
//!         values += record?.value.map_or(0, <[u8]>::len);
//!     }
//! }
//! # Ok::<(), logseg_core::Error>(())
//! ```
//!
//! [`MemoryRecordsBuilder`] writes batches of every version, as Kafka's own does.
//!
//! *Offset* is always Kafka's logical offset, *position* always bytes.
#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
    )
)]

pub mod arch;
pub mod batch;
pub mod batches;
pub mod builder;
pub mod codec;
pub mod cpu;
pub mod crc32c;
pub mod cursor;
pub mod error;
pub mod reader;
pub mod unpack;
pub mod varint;
pub mod window;

pub use batch::{
    Attributes, Batch, BatchHeader, Control, ControlType, Framing, Header, Headers, Magic, Offset,
    Record, Records, TimestampType,
};
pub use batches::{Batches, Tail, TailKind};
pub use builder::{BuilderOptions, LentBuffer, MemoryRecordsBuilder};
pub use codec::{
    Builtin, BuiltinCompressors, Codec, CodecError, Codecs, Compress, Compressors, Decompress,
    Pause, Progress, Written,
};
pub use cpu::Cpu;
pub use error::{Error, ErrorKind};
pub use reader::{BatchReader, Entry};
pub use unpack::{BatchEnd, CrcPolicy, Event, Limits, Piece, Source, Unpacker};
pub use window::Window;

// The README's programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
