//! Writes batches as Kafka's `MemoryRecordsBuilder` does, into memory the caller lends.
//!
//! ```text
//!  v2           │ header, 61 bytes │ record │ record │ …     one stream, if compressed
//!  v0/v1        │ message │ message │ …
//!  v0/v1 packed │ wrapper, 26/34   │ message │ message │ …   one stream
//!               start              records
//! ```
//! The header is reserved, records are written (or put in the codec) as they are
//! appended, and [`MemoryRecordsBuilder::close`] fills the header in. Two rules say when
//! a batch is full, and they are separate:
//!
//! * [`MemoryRecordsBuilder::has_room_for`] is Kafka's: it goes by the write limit and by
//!   what compression is expected to do, and lets the first record in whatever its size.
//! * An append goes by the worst case of the codec against the buffer. Where that does not
//!   fit it gives [`ErrorKind::BufferTooSmall`], and the builder is as it was. With a
//!   buffer of [`BuilderOptions::capacity_for`] this does not happen.
//!
//! ```
//! use logseg_core::builder::{BuilderOptions, LentBuffer, MemoryRecordsBuilder};
//! use logseg_core::codec::BuiltinCompressors;
//! use logseg_core::{Batches, Codec, Cpu, Magic};
//!
//! let mut memory = [0; 1024];
//! let mut compressors = BuiltinCompressors::new();
//! let mut builder = MemoryRecordsBuilder::new(
//!     LentBuffer::new(&mut memory),
//!     BuilderOptions::new(Magic::V2, Codec::None),
//!     &mut compressors,
//!     Cpu::detect(),
//! )?;
//! builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[])?;
//! let batch = builder.build()?;
//! assert_eq!(Batches::new(batch, Cpu::detect()).count(), 1);
//! # Ok::<(), logseg_core::Error>(())
//! ```
//! Source: `MemoryRecordsBuilder.java`, `AbstractRecords.java`,
//! `CompressionRatioEstimator.java`; for [`Policy::Legacy`] `Compressor.java` before 0.11.

mod buffer;
mod options;
mod ratio;
pub mod sizes;
mod write;

pub use buffer::{Buffer, LentBuffer};
pub use options::{
    BuilderOptions, COMPRESSION_RATE_ESTIMATION_FACTOR, Policy, ProducerState, Timestamps,
};
pub use ratio::{CompressionRatioEstimator, LegacyCompressionRate};

use crate::batch::legacy::Message;
use crate::batch::{BatchHeader, ControlType, Header, Magic, Record};
use crate::codec::out::Out;
use crate::codec::{Codec, Compress, Compressors, Pause};
use crate::cpu::Cpu;
use crate::error::{BuilderFault, Error, ErrorKind};
use crate::varint::Varlong;
use sizes::{LOG_OVERHEAD, batch_header_size, default_record_size, legacy_record_size};
use write::{Encode, MessageFields, Put, RawMessage, RecordFields, RecordPrefix, V2Header};

/// Largest timestamp of a batch, and the offset that goes with it: what the time index
/// gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RecordsInfo {
    /// Epoch milliseconds; −1 is none.
    pub max_timestamp: i64,
    /// See [`MemoryRecordsBuilder::info`]; −1 is none.
    pub offset_of_max_timestamp: i64,
}

/// Where a builder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Takes records.
    Open,
    /// Takes none any more; the codec's stream is ended.
    AppendsClosed,
    Built,
    Aborted,
}

/// Builds one batch; the module has the layout and an example.
///
/// Errors carry the position in the buffer that was reached. But for those of a codec
/// from outside that breaks its promise, after which the builder is aborted, an error
/// leaves the builder as it was.
pub struct MemoryRecordsBuilder<'c, B> {
    buffer: B,
    options: BuilderOptions,
    /// None for codec none.
    compressor: Option<&'c mut dyn Compress>,
    cpu: Cpu,
    state: State,
    /// Length of the buffer before this batch.
    start: usize,
    initial_capacity: usize,
    write_limit: usize,
    base_timestamp: Option<i64>,
    last_offset: Option<i64>,
    max_timestamp: i64,
    offset_of_max_timestamp: i64,
    records: i32,
    /// Bytes of the records before compression.
    uncompressed: u64,
    actual_ratio: f32,
}

impl<B: core::fmt::Debug> core::fmt::Debug for MemoryRecordsBuilder<'_, B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("MemoryRecordsBuilder")
            .field("options", &self.options)
            .field("state", &self.state)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl<'c, B: Buffer> MemoryRecordsBuilder<'c, B> {
    /// Starts a batch behind what is in the buffer already.
    ///
    /// Errors: [`ErrorKind::BufferTooSmall`] if not even the header fits;
    /// [`ErrorKind::UnknownCodec`] for zstd below magic 2;
    /// [`ErrorKind::CodecNotBuiltIn`] if `compressors` has none for the codec;
    /// [`ErrorKind::Builder`] for flags that the magic does not have.
    pub fn new<C: Compressors + ?Sized>(
        mut buffer: B,
        options: BuilderOptions,
        compressors: &'c mut C,
        cpu: Cpu,
    ) -> Result<Self, Error> {
        let start = buffer.len();
        let position = start as u64;
        options.check().map_err(|kind| kind.at(position))?;
        let codec = options.codec;
        let compressor = if codec == Codec::None {
            None
        } else {
            let compressor = compressors.compressor(codec, options.magic);
            let missing = ErrorKind::CodecNotBuiltIn { codec }.at(position);
            let compressor = compressor.ok_or(missing)?;
            compressor.reset();
            Some(compressor)
        };
        let initial_capacity = buffer.capacity();
        let write_limit = options.write_limit.unwrap_or(initial_capacity.saturating_sub(start));
        let header = usize::try_from(batch_header_size(options.magic, codec)).unwrap_or(0);
        let have = buffer.max_capacity();
        match buffer.spare(header).get_mut(..header) {
            Some(room) => room.fill(0),
            None => {
                let need = position + header as u64;
                return Err(ErrorKind::BufferTooSmall { need, have: have as u64 }.at(position));
            }
        }
        buffer.commit(header);
        Ok(Self {
            buffer,
            options,
            compressor,
            cpu,
            state: State::Open,
            start,
            initial_capacity,
            write_limit,
            base_timestamp: options.delete_horizon,
            last_offset: None,
            max_timestamp: -1,
            offset_of_max_timestamp: -1,
            records: 0,
            uncompressed: 0,
            actual_ratio: 1.0,
        })
    }

    /// Appends a record with the next offset: one more than the last, or the base offset.
    /// Gives the record's own CRC-32 for v0/v1.
    ///
    /// The timestamp is in epoch milliseconds, −1 for none; with LogAppendTime the append
    /// time is written into a v0/v1 message in place of it. `None` is null.
    ///
    /// Errors: those of [`MemoryRecordsBuilder::append_with_offset`].
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<Option<u32>, Error> {
        self.append_with_offset(self.next_offset(), timestamp, key, value, headers)
    }

    /// Appends a record with an offset of one's own: more than the last. Offsets may leave
    /// gaps, and the first may be below the base offset, as in Kafka.
    ///
    /// Errors: [`ErrorKind::BufferTooSmall`] if the worst case of the codec does not fit
    /// the buffer, in all at most 2^31 − 1 bytes; [`ErrorKind::Builder`] for a record that
    /// cannot be.
    pub fn append_with_offset(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<Option<u32>, Error> {
        let headers = headers.iter().copied();
        self.append_fields(offset, false, timestamp, key, value, headers)
    }

    /// Appends a record that was read, with its offset, timestamp and headers; to a control
    /// batch as a control record.
    ///
    /// Errors: those of [`MemoryRecordsBuilder::append_with_offset`];
    /// [`BuilderFault::RelativeOffset`].
    pub fn append_record(&mut self, record: &Record<'_>) -> Result<Option<u32>, Error> {
        let Some(offset) = record.offset.absolute() else {
            return Err(self.fault(BuilderFault::RelativeOffset));
        };
        let control = self.options.control;
        let Record { timestamp, key, value, headers, .. } = *record;
        self.append_fields(offset, control, timestamp, key, value, headers)
    }

    /// Appends a message of v0/v1 as it stands, but for its offset; gives its CRC, which is
    /// not checked. `entry` is all of it, its offset and size included. Its timestamp stays
    /// even with LogAppendTime.
    ///
    /// Errors: [`BuilderFault::Message`] if it is not exactly one uncompressed message of
    /// the builder's magic; those of [`MemoryRecordsBuilder::append_with_offset`].
    pub fn append_message_with_offset(&mut self, offset: i64, entry: &[u8]) -> Result<u32, Error> {
        self.check_open()?;
        let header = BatchHeader::parse(entry, 0)
            .ok()
            .filter(|header| header.magic == self.options.magic && header.magic != Magic::V2)
            .filter(|header| header.attributes.codec_id() == 0)
            .filter(|header| header.size == entry.len() as u64);
        let (Some(header), Ok(message)) = (header, Message::parse(entry)) else {
            return Err(self.fault(BuilderFault::Message));
        };
        self.check_order(offset)?;
        self.check_delta(offset)?;
        self.check_room(header.size)?;
        let message_bytes = RawMessage {
            offset: self.inner_offset(offset),
            crc: header.crc,
            behind_offset: entry.get(8..).unwrap_or_default(),
        };
        self.write(header.size, message_bytes)?;
        if self.base_timestamp.is_none() {
            self.base_timestamp = Some(message.timestamp);
        }
        self.record_written(offset, message.timestamp, header.size);
        Ok(header.crc)
    }

    /// Appends a control record to a control batch. `value` is what
    /// [`crate::batch::ControlValue`] reads, its version first.
    ///
    /// Errors: [`BuilderFault::ControlRecord`] in a batch of data; those of
    /// [`MemoryRecordsBuilder::append_with_offset`].
    pub fn append_control(
        &mut self,
        timestamp: i64,
        control_type: ControlType,
        value: &[u8],
    ) -> Result<(), Error> {
        // Version 0 of the key.
        let [high, low] = control_type.id().to_be_bytes();
        let key = [0, 0, high, low];
        let (offset, headers) = (self.next_offset(), [].into_iter());
        self.append_fields(offset, true, timestamp, Some(&key), Some(value), headers)?;
        Ok(())
    }

    /// Appends the end of a transaction, ABORT or COMMIT, of a coordinator's epoch.
    ///
    /// Errors: [`BuilderFault::EndTxnMarker`] for another type, or outside of a
    /// transactional batch of a producer; those of [`MemoryRecordsBuilder::append_control`].
    pub fn append_end_txn_marker(
        &mut self,
        timestamp: i64,
        control_type: ControlType,
        coordinator_epoch: i32,
    ) -> Result<(), Error> {
        let marker = matches!(control_type, ControlType::Abort | ControlType::Commit);
        if !marker || self.options.producer.producer_id == -1 || !self.options.transactional {
            return Err(self.fault(BuilderFault::EndTxnMarker));
        }
        let [a, b, c, d] = coordinator_epoch.to_be_bytes();
        // Version 0 of the value.
        self.append_control(timestamp, control_type, &[0, 0, a, b, c, d])
    }

    /// Whether a record has room, by Kafka's rule: the first always, others if the estimate
    /// and they themselves, uncompressed, are within the write limit.
    #[must_use]
    pub fn has_room_for(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> bool {
        let record = match self.options.magic {
            Magic::V0 | Magic::V1 => {
                LOG_OVERHEAD + legacy_record_size(self.options.magic, key, value)
            }
            Magic::V2 => {
                // A delta beyond an i32 is refused elsewhere.
                let delta = self.next_offset().wrapping_sub(self.options.base_offset);
                let delta = i32::try_from(delta).unwrap_or(i32::MAX);
                default_record_size(delta, self.timestamp_delta(timestamp), key, value, headers)
            }
        };
        let first = self.records == 0;
        match self.options.policy {
            Policy::Current if self.is_full() => false,
            Policy::Current if first => true,
            Policy::Legacy if self.state != State::Open => false,
            Policy::Legacy if first => self.initial_capacity as u64 >= record,
            _ => self.write_limit as u64 >= self.estimated_bytes_written().saturating_add(record),
        }
    }

    /// Whether nothing more should be appended: it is closed for appends, or holds a record
    /// and the estimate has reached the write limit.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let reached = self.write_limit as u64 <= self.estimated_bytes_written();
        let counts = self.records > 0 || self.options.policy == Policy::Legacy;
        self.state != State::Open || counts && reached
    }

    /// Bytes of the batch as they are expected: with codec none exact, otherwise header +
    /// uncompressed bytes × estimated ratio × 1.05, in f32 and truncated.
    #[must_use]
    pub fn estimated_bytes_written(&self) -> u64 {
        let Self { options, uncompressed, .. } = self;
        match (options.policy, options.codec) {
            (Policy::Current, Codec::None) => self.header_size() + uncompressed,
            (Policy::Current, _) => {
                let packed = estimate(*uncompressed, options.estimated_ratio, i32::MAX.into());
                self.header_size() + packed
            }
            (Policy::Legacy, Codec::None) => self.buffer.len() as u64,
            (Policy::Legacy, _) => estimate(*uncompressed, options.estimated_ratio, i64::MAX),
        }
    }

    /// Bytes of the batch: exact once it is built, before that the estimate
    /// (`estimatedSizeInBytes`).
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        match (self.options.policy, self.state) {
            (Policy::Legacy, _) => self.buffer.len() as u64,
            (Policy::Current, State::Built) => (self.buffer.len() - self.start) as u64,
            (Policy::Current, _) => self.estimated_bytes_written(),
        }
    }

    /// Header and records before compression, in bytes.
    #[must_use]
    pub fn uncompressed_bytes_written(&self) -> u64 {
        self.header_size() + self.uncompressed
    }

    /// Records appended.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.records.unsigned_abs()
    }

    /// Bytes that records may take within the write limit.
    #[must_use]
    pub fn max_allowed_bytes(&self) -> u64 {
        (self.write_limit as u64).saturating_sub(self.header_size())
    }

    /// Capacity of the buffer when the builder was made, in bytes.
    #[must_use]
    pub const fn initial_capacity(&self) -> usize {
        self.initial_capacity
    }

    /// Compressed bytes of the records over their uncompressed ones, once it is built; 1
    /// before that, and for v0/v1 with codec none.
    #[must_use]
    pub const fn compression_ratio(&self) -> f32 {
        self.actual_ratio
    }

    /// The largest timestamp, and an offset for the time index. As in Kafka that is not
    /// always the record's own:
    ///
    /// | | offset |
    /// | --- | --- |
    /// | LogAppendTime, v2 or compressed | the last |
    /// | LogAppendTime, v1 not compressed | the base offset |
    /// | no timestamp, or v0 | −1 |
    /// | CreateTime, v2 or compressed | the last |
    /// | CreateTime, v1 not compressed | of the first record with that timestamp |
    #[must_use]
    pub fn info(&self) -> RecordsInfo {
        let one = self.options.magic == Magic::V2 || self.options.codec != Codec::None;
        let last = self.last_offset.unwrap_or(-1);
        let (max_timestamp, offset_of_max_timestamp) = match self.options.append_time() {
            Some(time) => (time, if one { last } else { self.options.base_offset }),
            None if self.max_timestamp == -1 => (-1, -1),
            None => (self.max_timestamp, if one { last } else { self.offset_of_max_timestamp }),
        };
        RecordsInfo { max_timestamp, offset_of_max_timestamp }
    }

    /// What the builder was told.
    #[must_use]
    pub const fn options(&self) -> &BuilderOptions {
        &self.options
    }

    /// Offset of the last record, unless it was overridden.
    #[must_use]
    pub const fn last_offset(&self) -> Option<i64> {
        self.last_offset
    }

    /// Whether it is built. Not so if it was aborted.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Built
    }

    /// Expects another ratio of what follows.
    pub const fn set_estimated_compression_ratio(&mut self, ratio: f32) {
        self.options.estimated_ratio = ratio;
    }

    /// Sets the idempotent producer, which is often known only when a batch is sent.
    ///
    /// Errors: [`BuilderFault::Built`].
    pub fn set_producer_state(
        &mut self,
        producer: ProducerState,
        transactional: bool,
    ) -> Result<(), Error> {
        if self.state == State::Built {
            return Err(self.fault(BuilderFault::Built));
        }
        self.options.producer = producer;
        self.options.transactional = transactional;
        Ok(())
    }

    /// Changes the producer of a batch that may be built already; it is to be built once
    /// more, which writes its header again.
    ///
    /// Errors: [`BuilderFault::Aborted`].
    pub fn reopen_and_rewrite_producer_state(
        &mut self,
        producer: ProducerState,
        transactional: bool,
    ) -> Result<(), Error> {
        match self.state {
            State::Aborted => return Err(self.fault(BuilderFault::Aborted)),
            State::Built => self.state = State::AppendsClosed,
            State::Open | State::AppendsClosed => {}
        }
        self.options.producer = producer;
        self.options.transactional = transactional;
        Ok(())
    }

    /// Makes the batch end at another offset than that of its last record, as compaction
    /// does, which keeps the range of offsets.
    ///
    /// Errors: [`BuilderFault::Built`]; [`BuilderFault::OffsetDelta`].
    pub fn override_last_offset(&mut self, last_offset: i64) -> Result<(), Error> {
        if self.state == State::Built {
            return Err(self.fault(BuilderFault::Built));
        }
        self.check_delta(last_offset)?;
        self.last_offset = Some(last_offset);
        Ok(())
    }

    /// Takes no more records, and ends the codec's stream. The rest of the batch may still
    /// change.
    ///
    /// Errors: of a codec from outside.
    pub fn close_for_record_appends(&mut self) -> Result<(), Error> {
        if self.state != State::Open {
            return Ok(());
        }
        // A batch without records comes to nothing, whatever its stream.
        if self.records > 0 && self.compressor.is_some() {
            self.feed(&[], true)?;
        }
        self.state = State::AppendsClosed;
        Ok(())
    }

    /// Ends the batch: checks the producer state, ends the codec's stream and writes the
    /// header. A batch without records becomes no bytes at all. Once more is no error.
    ///
    /// Errors: [`BuilderFault::Aborted`], [`BuilderFault::ProducerId`],
    /// [`BuilderFault::ProducerEpoch`], [`BuilderFault::BaseSequence`],
    /// [`BuilderFault::Idempotent`].
    pub fn close(&mut self) -> Result<(), Error> {
        match self.state {
            State::Aborted => return Err(self.fault(BuilderFault::Aborted)),
            State::Built => return Ok(()),
            State::Open | State::AppendsClosed => {}
        }
        self.options.check_producer().map_err(|kind| self.at(kind))?;
        self.close_for_record_appends()?;
        if self.records == 0 {
            self.buffer.truncate(self.start);
        } else {
            self.write_header();
        }
        self.state = State::Built;
        Ok(())
    }

    /// Ends the batch if it is not ended, and gives its bytes.
    ///
    /// Errors: those of [`MemoryRecordsBuilder::close`].
    pub fn build(&mut self) -> Result<&[u8], Error> {
        self.close()?;
        Ok(self.buffer.written().get(self.start..).unwrap_or_default())
    }

    /// Gives the batch up: what it wrote is gone from the buffer, and it cannot be built.
    pub fn abort(&mut self) {
        self.buffer.truncate(self.start);
        self.state = State::Aborted;
    }

    /// The buffer, with the batch behind what was there before if it was built. One that
    /// was not is taken out.
    #[must_use]
    pub fn into_buffer(mut self) -> B {
        if self.state != State::Built {
            self.buffer.truncate(self.start);
        }
        self.buffer
    }

    fn append_fields<'h>(
        &mut self,
        offset: i64,
        control: bool,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = Header<'h>> + Clone,
    ) -> Result<Option<u32>, Error> {
        self.check_open()?;
        if control != self.options.control {
            return Err(self.fault(BuilderFault::ControlRecord));
        }
        self.check_order(offset)?;
        if timestamp < -1 {
            return Err(self.fault(BuilderFault::Timestamp(timestamp)));
        }
        let offset_delta = self.check_delta(offset)?;
        let magic = self.options.magic;
        let too_large = |size| BuilderFault::RecordSize { size };
        let (size, written, crc) = if magic == Magic::V2 {
            let timestamp_delta = self.timestamp_delta(timestamp);
            let record = RecordFields::new(offset_delta, timestamp_delta, key, value, headers);
            let size = record.size();
            if size > i32::MAX as u64 {
                return Err(self.fault(too_large(size)));
            }
            self.check_room(size)?;
            self.write(size, record)?;
            (size, timestamp, None)
        } else {
            if headers.len() > 0 {
                return Err(self.fault(BuilderFault::Headers));
            }
            let size = LOG_OVERHEAD + legacy_record_size(magic, key, value);
            if size > i32::MAX as u64 {
                return Err(self.fault(too_large(size)));
            }
            self.check_room(size)?;
            let timestamp = self.options.append_time().unwrap_or(timestamp);
            let message = MessageFields {
                offset: self.inner_offset(offset),
                magic,
                attributes: self.options.timestamp_bits(),
                timestamp,
                key,
                value,
            };
            let crc = self.write(size, message)?;
            (size, timestamp, Some(crc))
        };
        if self.base_timestamp.is_none() {
            self.base_timestamp = Some(timestamp);
        }
        self.record_written(offset, written, size);
        Ok(crc)
    }

    fn record_written(&mut self, offset: i64, timestamp: i64, size: u64) {
        self.records += 1;
        self.uncompressed += size;
        self.last_offset = Some(offset);
        if self.options.magic != Magic::V0 && timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.offset_of_max_timestamp = offset;
        }
    }

    fn next_offset(&self) -> i64 {
        self.last_offset.map_or(self.options.base_offset, |last| last.wrapping_add(1))
    }

    /// The offset that a message is written with.
    fn inner_offset(&self, offset: i64) -> i64 {
        let BuilderOptions { magic, codec, policy, base_offset, .. } = self.options;
        if magic == Magic::V1 && codec != Codec::None && policy == Policy::Current {
            offset.wrapping_sub(base_offset)
        } else {
            offset
        }
    }

    fn timestamp_delta(&self, timestamp: i64) -> i64 {
        self.base_timestamp.map_or(0, |base| timestamp.wrapping_sub(base))
    }

    fn header_size(&self) -> u64 {
        batch_header_size(self.options.magic, self.options.codec)
    }

    fn at(&self, kind: ErrorKind) -> Error {
        kind.at(self.buffer.len() as u64)
    }

    fn fault(&self, fault: BuilderFault) -> Error {
        self.at(ErrorKind::Builder(fault))
    }

    fn check_open(&self) -> Result<(), Error> {
        match self.state {
            State::Open => Ok(()),
            _ => Err(self.fault(BuilderFault::NotOpen)),
        }
    }

    fn check_order(&self, offset: i64) -> Result<(), Error> {
        if let Some(previous) = self.last_offset
            && offset <= previous
        {
            return Err(self.fault(BuilderFault::OffsetOrder { offset, previous }));
        }
        if self.records == i32::MAX {
            return Err(self.fault(BuilderFault::RecordCount));
        }
        Ok(())
    }

    /// The distance from the base offset. Kafka cuts one below −2^31 to 32 bits.
    fn check_delta(&self, offset: i64) -> Result<i32, Error> {
        let base = self.options.base_offset;
        offset
            .checked_sub(base)
            .and_then(|delta| i32::try_from(delta).ok())
            .ok_or_else(|| self.fault(BuilderFault::OffsetDelta { offset, base }))
    }

    /// Whether the batch fits the buffer with `more` bytes of records, if these and what
    /// the codec still holds do not shrink.
    fn check_room(&self, more: u64) -> Result<(), Error> {
        let len = self.buffer.len() as u64;
        let worst = match &self.compressor {
            Some(compressor) => compressor.bound(more),
            None => more,
        };
        let need = len.saturating_add(worst);
        // Sizes are 32 bits.
        let largest = (self.start as u64).saturating_add(i32::MAX as u64);
        let have = (self.buffer.max_capacity() as u64).min(largest);
        if need > have {
            return Err(ErrorKind::BufferTooSmall { need, have }.at(len));
        }
        Ok(())
    }

    /// Writes a record of `size` bytes, for which there is room.
    #[inline(always)]
    fn write(&mut self, size: u64, record: impl Encode) -> Result<u32, Error> {
        if self.compressor.is_some() {
            return self.compress(record);
        }
        let mut out = Out::new(self.buffer.spare(usize::try_from(size).unwrap_or(usize::MAX)));
        match record.encode(&mut out) {
            Ok(crc) => {
                let written = out.len();
                self.buffer.commit(written);
                Ok(crc)
            }
            Err(kind) => Err(self.at(kind)),
        }
    }

    #[inline(never)]
    fn compress(&mut self, record: impl Encode) -> Result<u32, Error> {
        record.encode(&mut Feed { builder: self }).map_err(|kind| self.at(kind))
    }

    /// Puts bytes in the codec's stream, or ends it.
    fn feed(&mut self, bytes: &[u8], end: bool) -> Result<(), Error> {
        let fed = self.try_feed(bytes, end);
        fed.map_err(|kind| {
            let error = self.at(kind);
            self.abort();
            error
        })
    }

    fn try_feed(&mut self, mut bytes: &[u8], end: bool) -> Result<(), ErrorKind> {
        let Some(compressor) = &mut self.compressor else { return Ok(()) };
        loop {
            let out = self.buffer.spare(1);
            let room = out.len();
            let written = if end { compressor.finish(out) } else { compressor.advance(bytes, out) };
            let written =
                written.map_err(|error| error.in_batch(self.options.codec, 0, 0).kind())?;
            self.buffer.commit(written.produced.min(room));
            bytes = bytes.get(written.consumed..).unwrap_or_default();
            match written.pause {
                Pause::Finished => return Ok(()),
                Pause::InputDry if !end && bytes.is_empty() => return Ok(()),
                // Room was made for the worst case; one that wants more, or that does not
                // go on, is not what it promised to be.
                _ if written.produced == 0 && written.consumed == 0 => {
                    let have = self.buffer.max_capacity() as u64;
                    return Err(ErrorKind::BufferTooSmall { need: have.saturating_add(1), have });
                }
                _ => {}
            }
        }
    }

    /// Fills in the header that was reserved, and learns the ratio.
    fn write_header(&mut self) {
        let BuilderOptions { magic, codec, policy, base_offset, producer, .. } = self.options;
        let last = self.last_offset.unwrap_or(base_offset);
        let header_size = self.header_size();
        let position = self.buffer.len() as u64;
        let attributes = self.options.attributes();
        let max_timestamp = self.options.append_time().unwrap_or(self.max_timestamp);
        let entry = self.buffer.written_mut().get_mut(self.start..).unwrap_or_default();
        let packed = (entry.len() as u64).saturating_sub(header_size);
        if magic == Magic::V2 {
            let header = V2Header {
                base_offset,
                partition_leader_epoch: self.options.partition_leader_epoch,
                attributes,
                // Checked with the append.
                last_offset_delta: i32::try_from(last.wrapping_sub(base_offset)).unwrap_or(0),
                base_timestamp: self.base_timestamp.unwrap_or(-1),
                max_timestamp,
                producer,
                records: self.records,
            };
            header.write(entry, self.cpu);
        } else if codec == Codec::None {
            return;
        } else {
            let offset = match policy {
                Policy::Current => last,
                Policy::Legacy => i64::from(self.records) - 1,
            };
            write::wrapper(entry, offset, magic, attributes, max_timestamp);
        }
        let counted = match policy {
            Policy::Current => packed,
            Policy::Legacy => position,
        };
        self.actual_ratio = counted as f32 / self.uncompressed as f32;
    }
}

/// Uncompressed bytes as Kafka estimates them compressed, in its order of f32 operations.
/// A cast of Java's ends at the largest value of the type as well.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it saturates
fn estimate(uncompressed: u64, ratio: f32, most: i64) -> u64 {
    let estimate = uncompressed as f32 * ratio * COMPRESSION_RATE_ESTIMATION_FACTOR;
    (estimate as u64).min(most.unsigned_abs())
}

/// The codec's stream, for a record.
struct Feed<'f, 'c, B> {
    builder: &'f mut MemoryRecordsBuilder<'c, B>,
}

impl<B: Buffer> Put for Feed<'_, '_, B> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.builder.feed(bytes, false).map_err(|error| error.kind())
    }

    fn prefix(&mut self, prefix: RecordPrefix) -> Result<(), ErrorKind> {
        let mut bytes = [0; RecordPrefix::MOST];
        let mut out = Out::new(&mut bytes);
        let written = prefix.write(&mut out).map(|()| out.len());
        let written = written.ok_or(write::full(RecordPrefix::MOST))?;
        self.put(bytes.get(..written).unwrap_or_default())
    }

    fn varlong(&mut self, value: Varlong) -> Result<(), ErrorKind> {
        let (bytes, len) = value.bytes();
        self.put(bytes.get(..len).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
