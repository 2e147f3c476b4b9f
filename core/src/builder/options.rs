//! What a builder is told before its first record.

use super::sizes::batch_header_size;
use crate::batch::{Attributes, Magic, TimestampType};
use crate::codec::{Codec, compress};
use crate::error::{BuilderFault, ErrorKind};

/// How much larger than estimated compressed records may come out, in Kafka's estimate
/// (`COMPRESSION_RATE_ESTIMATION_FACTOR`).
pub const COMPRESSION_RATE_ESTIMATION_FACTOR: f32 = 1.05;

/// Where the timestamps of a batch come from. Magic 0 has none, and does not look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Timestamps {
    /// From the producer.
    CreateTime,
    /// From the broker, which appends at this time, in epoch milliseconds.
    LogAppendTime(i64),
}

/// Producer id, epoch and sequence of an idempotent producer; −1 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ProducerState {
    /// Producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence number of the first record.
    pub base_sequence: i32,
}

impl ProducerState {
    /// No idempotent producer.
    pub const NONE: Self = Self { producer_id: -1, producer_epoch: -1, base_sequence: -1 };
}

/// Whose rules a builder follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Policy {
    /// `MemoryRecordsBuilder.java`, since 0.11.
    Current,
    /// `Compressor.java` and `MemoryRecords.java` of 0.9 (magic 0) and 0.10 (magic 1), as
    /// old clients did it:
    ///
    /// * a first record larger than the initial buffer has no room;
    /// * the estimate of compressed bytes leaves out the header, and that of codec none is
    ///   the position in the buffer, with what was there before;
    /// * a builder without records can be full;
    /// * [`super::MemoryRecordsBuilder::size_in_bytes`] is the position in the buffer, which
    ///   lags behind while the codec holds bytes;
    /// * a wrapper has the number of its records − 1 for an offset, which the broker changed,
    ///   and offsets inside are as appended;
    /// * the ratio observed has the position in the buffer above the line: header, and what
    ///   was there before, included. [`super::LegacyCompressionRate`] learns from it.
    ///
    /// Blocks of snappy had 1 KiB: [`crate::codec::BuiltinCompressors::with_snappy_blocks`].
    Legacy,
}

/// Everything about a batch but its records.
///
/// ```
/// use logseg_core::builder::{BuilderOptions, Timestamps};
/// use logseg_core::{Codec, Magic};
///
/// let options = BuilderOptions::new(Magic::V2, Codec::Lz4)
///     .with_base_offset(100)
///     .with_timestamps(Timestamps::LogAppendTime(1_700_000_000_000))
///     .with_write_limit(16 << 10);
/// // A buffer of this size is never too small, as long as has_room_for is asked.
/// assert!(options.capacity_for(16 << 10, 500) < 17 << 10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BuilderOptions {
    pub(super) magic: Magic,
    pub(super) codec: Codec,
    pub(super) timestamps: Timestamps,
    pub(super) base_offset: i64,
    pub(super) producer: ProducerState,
    pub(super) transactional: bool,
    pub(super) control: bool,
    pub(super) partition_leader_epoch: i32,
    pub(super) delete_horizon: Option<i64>,
    pub(super) write_limit: Option<usize>,
    pub(super) estimated_ratio: f32,
    pub(super) policy: Policy,
}

impl BuilderOptions {
    /// CreateTime from base offset 0, without a producer, flags and leader epoch; the
    /// write limit is the room in the buffer.
    #[must_use]
    pub const fn new(magic: Magic, codec: Codec) -> Self {
        Self {
            magic,
            codec,
            timestamps: Timestamps::CreateTime,
            base_offset: 0,
            producer: ProducerState::NONE,
            transactional: false,
            control: false,
            partition_leader_epoch: -1,
            delete_horizon: None,
            write_limit: None,
            estimated_ratio: 1.0,
            policy: Policy::Current,
        }
    }

    /// Where timestamps come from.
    #[must_use]
    pub const fn with_timestamps(self, timestamps: Timestamps) -> Self {
        Self { timestamps, ..self }
    }

    /// Offset of the first record, unless that is appended with another.
    #[must_use]
    pub const fn with_base_offset(self, base_offset: i64) -> Self {
        Self { base_offset, ..self }
    }

    /// Idempotent producer (v2).
    #[must_use]
    pub const fn with_producer(self, producer: ProducerState) -> Self {
        Self { producer, ..self }
    }

    /// Part of a transaction (v2).
    #[must_use]
    pub const fn with_transactional(self, transactional: bool) -> Self {
        Self { transactional, ..self }
    }

    /// Holds control records (v2).
    #[must_use]
    pub const fn with_control(self, control: bool) -> Self {
        Self { control, ..self }
    }

    /// Leader epoch (v2).
    #[must_use]
    pub const fn with_partition_leader_epoch(self, partition_leader_epoch: i32) -> Self {
        Self { partition_leader_epoch, ..self }
    }

    /// Time from which tombstones may go, in epoch milliseconds (v2): it takes the place of
    /// the base timestamp.
    #[must_use]
    pub const fn with_delete_horizon(self, horizon: i64) -> Self {
        Self { delete_horizon: Some(horizon), ..self }
    }

    /// Bytes that the batch should keep to: `batch.size` of a producer. It is what
    /// `has_room_for` and `is_full` go by, and nothing that an append is refused for.
    #[must_use]
    pub const fn with_write_limit(self, write_limit: usize) -> Self {
        Self { write_limit: Some(write_limit), ..self }
    }

    /// Compressed over uncompressed bytes, as expected: that of a
    /// [`super::CompressionRatioEstimator`].
    #[must_use]
    pub const fn with_estimated_compression_ratio(self, ratio: f32) -> Self {
        Self { estimated_ratio: ratio, ..self }
    }

    /// Whose rules to follow.
    #[must_use]
    pub const fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// A buffer of so many bytes never gives [`ErrorKind::BufferTooSmall`], if every record
    /// but the first was asked for with `has_room_for`, and the estimated ratio stays.
    ///
    /// `first_record` are the bytes of the first record, which has room always:
    /// [`super::sizes::record_size_upper_bound`]. The lower the ratio that is expected, the
    /// more records have room, and the worst case is that none of them shrinks.
    #[must_use]
    pub fn capacity_for(&self, write_limit: usize, first_record: u64) -> u64 {
        let header = batch_header_size(self.magic, self.codec);
        let limit = match self.policy {
            Policy::Current => (write_limit as u64).saturating_sub(header),
            Policy::Legacy => write_limit as u64,
        };
        let plain = match self.codec {
            Codec::None => limit,
            _ => most_plain(limit, self.estimated_ratio * COMPRESSION_RATE_ESTIMATION_FACTOR),
        };
        header.saturating_add(compress::bound(self.codec, plain.max(first_record)))
    }

    /// The attributes of the batch, or the wrapper.
    pub(super) fn attributes(&self) -> Attributes {
        let mut bits = i16::from(self.codec.id()) | self.timestamp_bits();
        for (bit, set) in [
            (0x10, self.transactional),
            (0x20, self.control),
            (0x40, self.delete_horizon.is_some()),
        ] {
            if set {
                bits |= bit;
            }
        }
        Attributes(bits)
    }

    /// Bit 3, which magic 0 has not.
    pub(super) const fn timestamp_bits(&self) -> i16 {
        match self.append_time() {
            Some(_) => 0x08,
            None => 0,
        }
    }

    /// The append time, if it is what the timestamps are.
    pub(super) const fn append_time(&self) -> Option<i64> {
        match (self.magic, self.timestamps) {
            (Magic::V1 | Magic::V2, Timestamps::LogAppendTime(time)) => Some(time),
            _ => None,
        }
    }

    /// What the timestamps mean; none in magic 0.
    #[must_use]
    pub const fn timestamp_type(&self) -> Option<TimestampType> {
        match (self.magic, self.timestamps) {
            (Magic::V0, _) => None,
            (_, Timestamps::CreateTime) => Some(TimestampType::CreateTime),
            (_, Timestamps::LogAppendTime(_)) => Some(TimestampType::LogAppendTime),
        }
    }

    /// What the constructor of Kafka's builder refuses.
    pub(super) fn check(&self) -> Result<(), ErrorKind> {
        let fault = if self.magic == Magic::V2 {
            (self.policy == Policy::Legacy).then_some(BuilderFault::LegacyPolicy)
        } else if self.codec == Codec::Zstd {
            return Err(ErrorKind::UnknownCodec { id: self.codec.id() });
        } else if self.transactional {
            Some(BuilderFault::Transactional)
        } else if self.control {
            Some(BuilderFault::ControlBatch)
        } else {
            self.delete_horizon.map(|_| BuilderFault::DeleteHorizon)
        };
        fault.map_or(Ok(()), |fault| Err(ErrorKind::Builder(fault)))
    }

    /// What its `close` refuses.
    pub(super) fn check_producer(&self) -> Result<(), ErrorKind> {
        let ProducerState { producer_id, producer_epoch, base_sequence } = self.producer;
        let fault = if producer_id == -1 {
            self.transactional.then_some(BuilderFault::ProducerId)
        } else if producer_epoch == -1 {
            Some(BuilderFault::ProducerEpoch)
        } else if base_sequence < 0 && !self.control {
            Some(BuilderFault::BaseSequence)
        } else {
            (self.magic != Magic::V2).then_some(BuilderFault::Idempotent)
        };
        fault.map_or(Ok(()), |fault| Err(ErrorKind::Builder(fault)))
    }
}

/// Most bytes before compression that have room in `limit`, each estimated at `factor`.
///
/// With `u` bytes there, one of `limit − trunc(u · factor)` bytes has room at most: all in
/// all less than `u · (1 − factor) + limit + 1`, where `u` is less than `limit / factor`.
/// The rest is for the rounding of the estimate, which is done in 24 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a cast from float saturates
fn most_plain(limit: u64, factor: f32) -> u64 {
    let most = if factor >= 1.0 {
        limit
    } else if factor > 0.0 {
        (limit as f64 / f64::from(factor)) as u64
    } else {
        u64::MAX
    };
    most.saturating_add(2 + (most >> 20))
}
