//! Batches written by core's builder and by `kafka-protocol`, of the same records.

use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
};
use logseg_core::builder::{BuilderOptions, LentBuffer, MemoryRecordsBuilder};
use logseg_core::codec::{Compressors, lz4_encode};
use logseg_core::{Codec, Magic};
use lzzzz::lz4f;

use std_host::cpu;

/// Records of a batch.
pub type Batch = Vec<Record>;

/// The records of each batch of an uncompressed segment.
///
/// # Panics
///
/// If it is not good.
#[must_use]
pub fn batches(segment: &[u8]) -> Vec<Batch> {
    let (mut rest, mut all) = (Bytes::copy_from_slice(segment), Vec::new());
    while !rest.is_empty() {
        let mut records = RecordBatchDecoder::decode(&mut rest).expect("a good batch").records;
        // Some were put together from several batches.
        for (record, at) in records.iter_mut().zip(0..) {
            (record.offset, record.sequence) = (at.into(), at);
        }
        all.push(records);
    }
    all
}

/// Memory for core's lz4 encoder.
#[must_use]
pub fn lz4_memory() -> Box<lz4_encode::Memory> {
    Box::new(lz4_encode::Memory::new())
}

/// Builds a batch with core in `memory`; gives its bytes.
///
/// # Panics
///
/// If the memory is too small.
pub fn build<'m, C: Compressors>(
    batch: &Batch,
    codec: Codec,
    compressors: &mut C,
    memory: &'m mut [u8],
) -> &'m [u8] {
    let options = BuilderOptions::new(Magic::V2, codec).with_base_offset(batch[0].offset);
    let buffer = LentBuffer::new(&mut *memory);
    let mut builder =
        MemoryRecordsBuilder::new(buffer, options, compressors, cpu::detect()).expect("options");
    for record in batch {
        builder
            .append(record.timestamp, record.key.as_deref(), record.value.as_deref(), &[])
            .expect("it fits");
    }
    let len = builder.build().expect("it builds").len();
    &memory[..len]
}

/// Encodes a batch with `kafka-protocol`; lz4 at a level, its own being 4.
///
/// # Panics
///
/// If it refuses.
#[must_use]
pub fn encode(batch: &Batch, lz4_level: Option<i32>) -> BytesMut {
    let compression = if lz4_level.is_some() { Compression::Lz4 } else { Compression::None };
    let options = RecordEncodeOptions { version: 2, compression };
    let mut out = BytesMut::new();
    let Some(level) = lz4_level else {
        RecordBatchEncoder::encode(&mut out, batch, &options).expect("it encodes");
        return out;
    };
    let preferences = lz4f::PreferencesBuilder::new()
        .block_mode(lz4f::BlockMode::Independent)
        .compression_level(level)
        .build();
    // As its own: the records in one buffer, from there into the batch.
    let compress = |plain: &mut BytesMut, out: &mut BytesMut, _| {
        let mut packed = Vec::new();
        lz4f::compress_to_vec(plain, &mut packed, &preferences).expect("lz4");
        out.extend_from_slice(&packed);
        Ok(())
    };
    RecordBatchEncoder::encode_with_custom_compression(&mut out, batch, &options, Some(compress))
        .expect("it encodes");
    out
}
