//! What Rust programs read batches with today, on the same segments.
//!
//! Neither of them can be had in this workspace with all of its codecs. `lz4-sys`, which
//! both want, has the same symbols as the liblz4 of `lzzzz` in another version, and the
//! linker takes whichever it meets first: `std-host`'s sizes would be another version's.
//! Their `zstd` switches on the old formats in the libzstd of every crate here, and their
//! `flate2` a second inflate. So their own code does the batches, the checksums, the
//! records, snappy and what is not compressed; `stand_in` does gzip, lz4 and zstd for
//! `kafka-protocol`, through the hook that it has for this, in the way that it does them
//! itself. `rskafka` has no such hook and is asked for nothing else.

use std::io::{Cursor, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::records::{Compression, RecordBatchDecoder, RecordSet};
use logseg_core::Batches;
use logseg_core::Cpu;
use rskafka::protocol::record::{ControlBatchOrRecords, RecordBatch, RecordBatchBody};
use rskafka::protocol::traits::ReadType;

use crate::segment::Seen;

/// `kafka-protocol`: batch after batch, each dropped before the next one.
///
/// # Panics
///
/// If the segment is not good.
#[must_use]
pub fn kafka_protocol(segment: &Bytes) -> Seen {
    let (mut rest, mut seen) = (segment.clone(), Seen::default());
    while !rest.is_empty() {
        for record in decode(&mut rest).records {
            seen.record(record.key.as_deref(), record.value.as_deref());
        }
    }
    seen
}

fn decode(rest: &mut Bytes) -> RecordSet {
    match rest[22] & 7 {
        0 | 2 => RecordBatchDecoder::decode(rest),
        _ => RecordBatchDecoder::decode_with_custom_compression(
            rest,
            Some(|payload: &mut Bytes, codec| Ok(stand_in(payload, codec))),
        ),
    }
    .expect("a good batch")
}

/// What `kafka-protocol` does before it comes to the records: header and checksum. Gives
/// the number of records.
///
/// # Panics
///
/// As [`kafka_protocol()`].
#[must_use]
pub fn kafka_protocol_headers(segment: &Bytes) -> u64 {
    let infos = RecordBatchDecoder::decode_batch_info(&mut segment.clone()).expect("good batches");
    infos.iter().map(|info| u64::from(info.record_count.unsigned_abs())).sum()
}

/// `kafka-protocol`'s own `compression` module, with the same calls on the libraries that
/// are here: zlib behind flate2, zstd 0.14 for 0.13, and the frame decoder of liblz4 1.9.4
/// for that of 1.10.0. As there, everything is made anew for a batch.
fn stand_in(payload: &mut Bytes, codec: Compression) -> Bytes {
    let payload = payload.copy_to_bytes(payload.remaining());
    let mut plain = BytesMut::new();
    match codec {
        Compression::Gzip => {
            let mut decoder = flate2::write::GzDecoder::new((&mut plain).writer());
            decoder.write_all(&payload).expect("gzip");
            decoder.finish().expect("gzip");
        }
        Compression::Lz4 => {
            let mut decoder =
                lzzzz::lz4f::BufReadDecompressor::new(payload.reader()).expect("a context");
            std::io::copy(&mut decoder, &mut (&mut plain).writer()).expect("lz4");
        }
        Compression::Zstd => {
            zstd::stream::copy_decode(payload.reader(), (&mut plain).writer()).expect("zstd");
        }
        _ => unreachable!("its own code does them"),
    }
    plain.freeze()
}

/// `rskafka`; snappy and uncompressed batches only.
///
/// # Panics
///
/// If the segment is not good.
#[must_use]
pub fn rskafka(segment: &[u8]) -> Seen {
    let (mut rest, mut seen) = (Cursor::new(segment), Seen::default());
    while rest.has_remaining() {
        count(RecordBatch::read(&mut rest).expect("a good batch").records, &mut seen);
    }
    seen
}

/// As [`rskafka()`], from behind the checksum, so that it is not computed.
///
/// # Panics
///
/// As [`rskafka()`].
#[must_use]
pub fn rskafka_unchecked(segment: &[u8]) -> Seen {
    let mut seen = Seen::default();
    for batch in Batches::new(segment, Cpu::scalar()) {
        let mut body = Cursor::new(&batch.expect("a batch").bytes()[21..]);
        count(RecordBatchBody::read(&mut body).expect("a good batch").records, &mut seen);
    }
    seen
}

fn count(records: ControlBatchOrRecords, seen: &mut Seen) {
    let ControlBatchOrRecords::Records(records) = records else { return };
    for record in records {
        seen.record(record.key.as_deref(), record.value.as_deref());
    }
}
