//! What can be wrong with a segment, and exactly where.

use core::fmt;

use crate::codec::Codec;

/// An exact fault at an absolute byte position.
///
/// [`Error::position`] counts from the start of the segment (or from whatever
/// position the source was told that it starts at). Inside a compressed section
/// [`Error::inflated`] adds the position in the plain bytes: that of the record that is
/// wrong. What cannot be decompressed is at its last byte in snappy and lz4, and at the
/// start of the section in gzip and zstd. None of it depends on how the input came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Error {
    kind: ErrorKind,
    position: u64,
    /// `u64::MAX` is "not inside a compressed section": `Option<u64>` has no niche.
    inflated: u64,
}

const _: () = assert!(size_of::<Error>() <= 48);

impl Error {
    /// A fault in bytes that lie in the segment as they are.
    #[must_use]
    pub const fn new(kind: ErrorKind, position: u64) -> Self {
        Self { kind, position, inflated: u64::MAX }
    }

    /// The same fault, found at `inflated` in the decompressed bytes.
    #[must_use]
    pub const fn inside(self, inflated: u64) -> Self {
        Self { inflated, ..self }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where it is, in bytes from the start of the segment.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Where it is in the decompressed bytes of its batch, if it is inside.
    #[must_use]
    pub const fn inflated(&self) -> Option<u64> {
        if self.inflated == u64::MAX { None } else { Some(self.inflated) }
    }

    /// The fault in words, without its position.
    #[must_use]
    pub const fn detail(&self) -> Detail<'_> {
        Detail(self)
    }

    /// The kind's stable name, such as `crc_mismatch`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.kind.name()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.position, self.detail())
    }
}

impl core::error::Error for Error {}

/// Field and fault, for who shows the position elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Detail<'a>(&'a Error);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.0.kind {
            // Inside a set it is that of a message.
            ErrorKind::CrcMismatch { .. } if self.0.inflated().is_some() => "message crc",
            kind => kind.field(),
        };
        write!(f, "{field}: {}", self.0.kind)?;
        match self.0.inflated() {
            Some(at) => write!(f, " (at byte {at} of the decompressed records)"),
            None => Ok(()),
        }
    }
}

/// What is wrong. `Display` gives the detail without position and field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ErrorKind {
    /// The size field holds what no entry of this magic can have.
    BatchLength {
        /// Size field as stored: bytes behind it.
        size: i32,
        /// Least value for this magic: 14 (v0), 22 (v1), 49 (v2).
        least: i32,
    },
    /// The entry reaches beyond the input, and what is there of it is no start
    /// of an entry either: some other kind of file.
    NotASegment {
        /// Size field as stored.
        size: i32,
    },
    /// The input ends within the entry, which was handed out as it arrived. It is the
    /// tail of the input that follows, as a live segment has one, and no damage.
    PartialBatch {
        /// Whole size in bytes, as declared.
        size: u64,
    },
    /// The entry is there but larger than [`crate::Limits::batch`].
    BatchTooLarge {
        /// Whole size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Magic other than 0, 1 and 2.
    UnknownMagic {
        /// As stored.
        magic: i8,
    },
    /// CRC of a v2 batch (CRC-32C) or a v0/v1 message (CRC-32).
    CrcMismatch {
        /// As stored.
        stored: u32,
        /// Of the bytes that are there.
        computed: u32,
    },
    /// Codec id 5 to 7, or zstd in v0/v1.
    UnknownCodec {
        /// Low three bits of the attributes.
        id: u8,
    },
    /// A codec that this build has no decoder for.
    CodecNotBuiltIn {
        /// Which.
        codec: Codec,
    },
    /// The batch is compressed: its records need an [`crate::Unpacker`].
    Compressed {
        /// How.
        codec: Codec,
    },
    /// The number of records differs from the one declared.
    RecordCount {
        /// As stored.
        declared: i32,
        /// Records that were read.
        found: u32,
        /// Whether bytes go on behind them.
        more: bool,
    },
    /// A record that cannot be parsed.
    MalformedRecord(RecordFault),
    /// A v0/v1 compressed set that cannot be.
    MalformedWrapper(WrapperFault),
    /// A control record whose key or value makes no sense.
    MalformedControl(ControlFault),
    /// The compressed bytes, or what they ask for.
    Codec {
        /// Which format.
        codec: Codec,
        /// What is wrong.
        fault: CodecFault,
    },
    /// More decompressed bytes than [`crate::Limits`] allow.
    TooMuchOutput {
        /// The limit that was reached, in bytes.
        limit: u64,
    },
    /// A lent buffer is too small for this input; nothing is wrong with it.
    BufferTooSmall {
        /// Bytes that would do.
        need: u64,
        /// Bytes that were lent.
        have: u64,
    },
    /// What a builder was asked for cannot be; it is as it was before.
    Builder(BuilderFault),
}

impl ErrorKind {
    /// A stable machine name; narrower kinds carry a suffix.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BatchLength { .. } => "batch_length",
            Self::NotASegment { .. } => "batch_length_not_a_segment",
            Self::PartialBatch { .. } => "batch_length_partial",
            Self::BatchTooLarge { .. } => "batch_length_limit",
            Self::UnknownMagic { .. } => "unknown_magic",
            Self::CrcMismatch { .. } => "crc_mismatch",
            Self::UnknownCodec { .. } => "unknown_codec",
            Self::CodecNotBuiltIn { .. } => "unknown_codec_not_built_in",
            Self::Compressed { .. } => "decompress_not_done",
            Self::RecordCount { .. } => "record_count",
            Self::MalformedRecord(_) => "malformed_record",
            Self::MalformedWrapper(_) => "malformed_wrapper",
            Self::MalformedControl(_) => "malformed_control",
            Self::Codec { fault, .. } => match fault {
                CodecFault::Truncated => "decompress_truncated",
                CodecFault::Corrupt(_) => "decompress",
                CodecFault::Checksum { .. } => "codec_checksum",
                CodecFault::Refused(_) => "decompress_limit",
            },
            Self::TooMuchOutput { .. } => "decompress_limit",
            Self::BufferTooSmall { .. } => "decompress_limit_buffer",
            Self::Builder(_) => "builder",
        }
    }

    /// The field that is wrong, in the words of an error line.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::BatchLength { .. }
            | Self::NotASegment { .. }
            | Self::PartialBatch { .. }
            | Self::BatchTooLarge { .. } => "batch length",
            Self::UnknownMagic { .. } => "magic",
            Self::CrcMismatch { .. } => "batch crc",
            Self::UnknownCodec { .. } | Self::CodecNotBuiltIn { .. } => "attributes",
            Self::RecordCount { .. } => "record count",
            Self::MalformedRecord(_) => "record",
            Self::MalformedWrapper(_) => "message set",
            Self::MalformedControl(_) => "control record",
            Self::Codec { .. } | Self::TooMuchOutput { .. } | Self::Compressed { .. } => {
                "compressed records"
            }
            Self::BufferTooSmall { .. } => "buffer",
            Self::Builder(_) => "builder",
        }
    }

    /// At `position`.
    pub(crate) const fn at(self, position: u64) -> Error {
        Error::new(self, position)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BatchLength { size, least } => {
                write!(f, "{size}, but an entry has at least {least}")
            }
            Self::NotASegment { size } => write!(
                f,
                "{size}, more than there is, and no entry starts like this: not a Kafka segment"
            ),
            Self::PartialBatch { size } => {
                write!(f, "{size} bytes in all, but the input ends within them")
            }
            Self::BatchTooLarge { size, limit } => {
                write!(f, "{size} bytes in all, the limit is {limit}")
            }
            Self::UnknownMagic { magic } => {
                write!(f, "{magic}, known are 0, 1 and 2: not an entry of a Kafka segment")
            }
            Self::CrcMismatch { stored, computed } => {
                write!(f, "stored {stored:#010x}, computed {computed:#010x}")
            }
            Self::UnknownCodec { id: 4 } => f.write_str("zstd (4) is not allowed in magic 0 and 1"),
            Self::UnknownCodec { id } => write!(f, "compression type id {id} is unknown"),
            Self::CodecNotBuiltIn { codec } => {
                write!(f, "{codec} is not part of this build")
            }
            Self::Compressed { codec } => write!(f, "compressed with {codec}: unpack them"),
            Self::RecordCount { declared, found, more } => {
                if declared < 0 {
                    write!(f, "{declared} is negative")
                } else if more {
                    write!(f, "{declared} declared, but bytes follow behind record {found}")
                } else {
                    write!(f, "{declared} declared, but the records end after {found}")
                }
            }
            Self::MalformedRecord(fault) => fault.fmt(f),
            Self::MalformedWrapper(fault) => fault.fmt(f),
            Self::MalformedControl(fault) => fault.fmt(f),
            Self::Codec { codec, fault } => write!(f, "{codec}: {fault}"),
            Self::TooMuchOutput { limit } => {
                write!(f, "they unpack to more than the limit of {limit} bytes")
            }
            Self::BufferTooSmall { need, have } => {
                write!(f, "{need} bytes are needed, {have} were lent")
            }
            Self::Builder(fault) => fault.fmt(f),
        }
    }
}

/// Why a record cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RecordFault {
    /// A varint whose last possible byte says that more follow.
    Varint,
    /// Length zero or negative.
    Length(i32),
    /// The record reaches beyond the end of the records.
    PastEnd(i64),
    /// A field reaches beyond the end of its record.
    Overrun,
    /// Bytes of the record are left over behind its last field.
    Slack(u32),
    /// Negative, or more headers than bytes left.
    HeaderCount(i32),
    /// A header key may not be null.
    NullHeaderKey(i32),
    /// v0/v1: key or value reaches beyond the message.
    MessageField(i32),
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Varint => f.write_str("a varint that does not end"),
            Self::Length(n) => write!(f, "length {n}"),
            Self::PastEnd(n) => write!(f, "length {n} reaches beyond the end of the records"),
            Self::Overrun => f.write_str("a field reaches beyond the end of the record"),
            Self::Slack(n) => write!(f, "{n} bytes too many in the record"),
            Self::HeaderCount(n) => write!(f, "header count {n}"),
            Self::NullHeaderKey(n) => write!(f, "header key length {n}"),
            Self::MessageField(n) => {
                write!(f, "key or value length {n} reaches beyond the end of the message")
            }
        }
    }
}

/// Why a v0/v1 compressed set cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum WrapperFault {
    /// The wrapper has no value.
    NullValue,
    /// Nothing is inside.
    Empty,
    /// A message inside is compressed itself.
    Nested,
    /// The wrapper's offset is below that of the last message inside.
    Offset {
        /// The wrapper's own offset.
        wrapper: i64,
    },
    /// The last message inside is cut.
    Cut,
    /// A message inside has a size that it cannot have.
    InnerSize(i32),
    /// A message inside has a magic other than 0 and 1.
    InnerMagic(i8),
}

impl fmt::Display for WrapperFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NullValue => f.write_str("compressed, but its value is null"),
            Self::Empty => f.write_str("no message inside"),
            Self::Nested => f.write_str("a message inside is compressed itself"),
            Self::Offset { wrapper } => {
                write!(f, "its offset {wrapper} is below that of the last message inside")
            }
            Self::Cut => f.write_str("the last message inside is cut"),
            Self::InnerSize(n) => write!(f, "a message inside has size {n}"),
            Self::InnerMagic(n) => write!(f, "a message inside has magic {n}"),
        }
    }
}

/// Why a control record makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ControlFault {
    /// The key is null.
    NullKey,
    /// The key is shorter than its version and type, 4 bytes.
    ShortKey(u32),
    /// Negative version of the key.
    KeyVersion(i16),
    /// The value is null.
    NullValue,
    /// The value ends before its fields do.
    ShortValue(u32),
    /// Negative version of the value.
    ValueVersion(i16),
}

impl fmt::Display for ControlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NullKey => f.write_str("null key"),
            Self::ShortKey(n) => write!(f, "key of {n} bytes"),
            Self::KeyVersion(n) => write!(f, "key version {n}"),
            Self::NullValue => f.write_str("null value"),
            Self::ShortValue(n) => write!(f, "a value of {n} bytes is too short"),
            Self::ValueVersion(n) => write!(f, "value version {n}"),
        }
    }
}

/// What a builder refuses: where `MemoryRecordsBuilder.java` throws an
/// `IllegalArgumentException` or `IllegalStateException`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BuilderFault {
    /// Closed for appends, built or aborted.
    NotOpen,
    /// Aborted: there is nothing to build.
    Aborted,
    /// Built already.
    Built,
    /// Magic 0 and 1 have no transactions.
    Transactional,
    /// Magic 0 and 1 have no control batches.
    ControlBatch,
    /// Magic 0 and 1 have no delete horizon.
    DeleteHorizon,
    /// Magic 0 and 1 have no producer state.
    Idempotent,
    /// The policy of clients before 0.11 knows no magic 2.
    LegacyPolicy,
    /// Offsets must increase.
    OffsetOrder {
        /// Of the record.
        offset: i64,
        /// Of the one before.
        previous: i64,
    },
    /// The offset is too far from the base offset for an i32.
    OffsetDelta {
        /// Of the record.
        offset: i64,
        /// Of the batch.
        base: i64,
    },
    /// Negative, and not −1.
    Timestamp(i64),
    /// Magic 0 and 1 have no record headers.
    Headers,
    /// A control record in a batch of data, or the other way round.
    ControlRecord,
    /// An end-transaction marker other than ABORT and COMMIT, or outside of a
    /// transactional batch of a producer.
    EndTxnMarker,
    /// 2^31 − 1 records are there.
    RecordCount,
    /// The record takes more than 2^31 − 1 bytes, or has as many headers.
    RecordSize {
        /// Of the record in bytes.
        size: u64,
    },
    /// The message is not one of the builder's magic, without codec, and whole.
    Message,
    /// Its offset is relative to a base that is not known yet.
    RelativeOffset,
    /// A transactional batch without a producer id.
    ProducerId,
    /// A producer id without an epoch.
    ProducerEpoch,
    /// A producer id without a sequence number, in a batch of data.
    BaseSequence,
}

impl fmt::Display for BuilderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotOpen => f.write_str("it is closed for record appends"),
            Self::Aborted => f.write_str("it has been aborted"),
            Self::Built => f.write_str("the records have been built already"),
            Self::Transactional => f.write_str("magic 0 and 1 have no transactions"),
            Self::ControlBatch => f.write_str("magic 0 and 1 have no control batches"),
            Self::DeleteHorizon => f.write_str("magic 0 and 1 have no delete horizon"),
            Self::Idempotent => f.write_str("magic 0 and 1 have no producer state"),
            Self::LegacyPolicy => f.write_str("clients before 0.11 write magic 0 and 1 only"),
            Self::OffsetOrder { offset, previous } => {
                write!(f, "offset {offset} behind offset {previous}: offsets must increase")
            }
            Self::OffsetDelta { offset, base } => {
                write!(f, "offset {offset} is too far from base offset {base}")
            }
            Self::Timestamp(timestamp) => write!(f, "negative timestamp {timestamp}"),
            Self::Headers => f.write_str("magic 0 and 1 have no record headers"),
            Self::ControlRecord => {
                f.write_str("control records are for control batches, and data for others")
            }
            Self::EndTxnMarker => f.write_str(
                "an end-transaction marker is ABORT or COMMIT in a transactional batch of a \
                 producer",
            ),
            Self::RecordCount => f.write_str("a batch holds at most 2147483647 records"),
            Self::RecordSize { size } => write!(f, "a record of {size} bytes is too large"),
            Self::Message => f.write_str("no whole, uncompressed message of the builder's magic"),
            Self::RelativeOffset => f.write_str("the record's offset is relative"),
            Self::ProducerId => f.write_str("a transactional batch needs a producer id"),
            Self::ProducerEpoch => f.write_str("a producer id needs a producer epoch"),
            Self::BaseSequence => f.write_str("a producer id needs a base sequence"),
        }
    }
}

/// What is wrong with compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CodecFault {
    /// They end too early.
    Truncated,
    /// They cannot be decoded.
    Corrupt(Corruption),
    /// A checksum of the format itself.
    Checksum {
        /// Of what.
        of: Checksummed,
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// The format allows it, this reader does not.
    Refused(Refusal),
}

impl fmt::Display for CodecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated => f.write_str("the compressed bytes end too early"),
            Self::Corrupt(what) => what.fmt(f),
            Self::Checksum { of, stored, computed } => {
                write!(f, "{of}: stored {stored:#x}, computed {computed:#x}")
            }
            Self::Refused(what) => what.fmt(f),
        }
    }
}

/// Where compressed bytes stop making sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Corruption {
    /// They do not start as the format does.
    NotThisFormat,
    /// Google's `.sz` framing, which Kafka never uses.
    SnappyFramed,
    /// A header field has a value that is not allowed.
    Header,
    /// A copy from before the start of its block.
    CopyBeforeStart,
    /// A block or its elements do not fit the sizes declared.
    Length,
    /// A block is larger than the frame allows.
    BlockSize,
    /// A block without content.
    EmptyBlock,
    /// Bytes behind the end of the compressed data.
    Trailing,
    /// The decoder of a library says no more than that.
    Data,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotThisFormat => "the bytes do not start as this format does",
            Self::SnappyFramed => {
                "sNaPpY framing (.sz), which Kafka does not use, in place of xerial or raw snappy"
            }
            Self::Header => "a header field is not allowed",
            Self::CopyBeforeStart => "a copy from before the start of its block",
            Self::Length => "a block does not have the length it declares",
            Self::BlockSize => "a block is larger than its frame allows",
            Self::EmptyBlock => "a block without content",
            Self::Trailing => "bytes behind the end of the compressed data",
            Self::Data => "corrupt data",
        })
    }
}

/// What a checksum of a codec covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Checksummed {
    /// LZ4 frame descriptor, or gzip header.
    Header,
    /// LZ4 block.
    Block,
    /// The content: LZ4 (xxh32), gzip (CRC-32), zstd (XXH64, whose values the
    /// library does not tell).
    Content,
    /// gzip ISIZE: the length of the content modulo 2^32.
    Length,
}

impl fmt::Display for Checksummed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header checksum",
            Self::Block => "block checksum",
            Self::Content => "content checksum",
            Self::Length => "content length",
        })
    }
}

/// What this reader refuses though the format has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refusal {
    /// LZ4 blocks that refer to earlier ones; Kafka refuses them too.
    LinkedBlocks,
    /// A dictionary that nobody here has.
    Dictionary,
    /// A zstd window of more than 128 MiB, Kafka's own limit.
    Window,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LinkedBlocks => "linked blocks are not supported, as in Kafka",
            Self::Dictionary => "a dictionary is needed",
            Self::Window => "the window is larger than the limit of 128 MiB (2^27 bytes)",
        })
    }
}
