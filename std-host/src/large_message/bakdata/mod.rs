//! The format of bakdata's `kafka-large-message-serde`: records that it wrote are read, and
//! records are written that it can read.
//!
//! ```text
//! flag protocol     00 │ payload                                          inline
//!                   01 │ s3://bucket/prefix/topic/values/id               backed
//! header protocol   payload, or the URI, with a header of one byte, 0 or 1:
//!                   __large.message.backed.value, __large.message.backed.key
//! compressed blob   a header with Kafka's id of the codec, one for key and value:
//!                   __large.message.backed.compression
//!                   __large.message.backed..compression   before its issue 181 of 2026
//! ```
//! * Null is null, and never backed. A value without a byte is an error in the flag protocol.
//! * With the header, or with `large.message.accept.no.headers`, a reader takes the header
//!   protocol, in which a missing header means inline; else the flag protocol.
//! * A blob is `<scheme>://<bucket>/<key>`, where the scheme is `s3`, `abs` or `gs`, and the
//!   key what follows the bucket in `large.message.base.path`, then topic, `/values/` or
//!   `/keys/`, and the id. Nothing is put between base path and topic, so without a slash at
//!   its end they run together, as they do in bakdata's.
//! * bakdata's compressor stores its whole buffer, so zeros may follow what is compressed.
//!   Its reader takes that of gzip and lz4, and fails at snappy and zstd. All of them are read
//!   here, and none is written.
//!
//! What is decided here, because nothing there says so:
//!
//! * **The record does not choose the store.** A URI is looked for in the configured store
//!   alone, and only if it starts with the configured base path, character for character, and
//!   goes on with segments that mean themselves; else it is
//!   [`NotAllowed`](super::BlobErrorKind::NotAllowed), and nobody is asked.
//! * **Contents are checked where the id allows it.** There is no digest in the reference. But
//!   an id of 64 hex digits is SHA-256 of the blob as it is stored, by `Sha256HashIdGenerator`,
//!   and one of 32, where `MurmurHashIdGenerator` is configured, its murmur3_128: bytes that
//!   are others are a [`Mismatch`](super::BlobErrorKind::Mismatch). A random UUID says nothing
//!   of the content. `large.message.verify.ids=false` is for generators of one's own.
//! * **Key and value share the compression header**, and a client has the key done first, as
//!   Kafka's do. So the serializer of keys takes away a header that is there, that of values
//!   keeps what a backed key needs, and wants the same codec; the deserializer of keys leaves
//!   it, that of values takes it away. bakdata's deserializer of keys takes it away, and the
//!   value comes out compressed.
//! * **Compression needs headers**: with `large.message.compression.type` and not
//!   `large.message.use.headers` there is no serializer, as its README has it. Its code adds
//!   the header all the same, and such records are read.
//!
//! The keys of a configuration are in [`config`].
//!
//! Sources: `large-message-core` and `large-message-serde` 2.7.0 to 3.1.1, whose classes wrote
//! the records in `tests/corpus/bakdata`; its README; its issue 181 for the header's new name.

mod base;
pub mod config;
mod deserializer;
mod error;
mod ids;
mod serializer;

pub use base::{BasePath, KeyedBlobStore};
pub use config::{
    ACCEPT_NO_HEADERS, BASE_PATH, BakdataConfig, COMPRESSION_TYPE, DEFAULT_MAX_BYTE_SIZE,
    ID_GENERATOR, LEGACY_COMPRESSION_HEADER, MAX_BYTE_SIZE, USE_HEADERS, VERIFY_IDS,
};
pub use deserializer::BakdataDeserializer;
pub use error::BakdataError;
pub use ids::BakdataIdGenerator;
pub use serializer::BakdataSerializer;

use crate::serde::RecordPart;

/// What a step of this format is called in errors and in a registry.
const STEP: &str = "bakdata-large-message";

const INLINE: u8 = 0;
const BACKED: u8 = 1;

const COMPRESSION_HEADER: &str = "__large.message.backed.compression";
const OLD_COMPRESSION_HEADER: &str = "__large.message.backed..compression";

/// The header that tells an inline payload from a URI.
pub(super) const fn marker_header(part: RecordPart) -> &'static str {
    match part {
        RecordPart::Key => "__large.message.backed.key",
        RecordPart::Value => "__large.message.backed.value",
    }
}
