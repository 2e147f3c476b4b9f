//! Declared lengths that are lies, and streams that unpack to far more than they are.
//!
//! No reader here has anything but its window, so memory is flat by construction; what
//! is to be seen is that it ends soon, where, and with which words.

use std::time::{Duration, Instant};

use logseg_core::error::{ErrorKind, RecordFault, WrapperFault};
use logseg_core::{Codec, Error, Limits};
use logseg_tests::build::{Rec, message_set, put_varint};
use logseg_tests::pack::{Packing, snappy_block};
use logseg_tests::read::ReadBatch;
use logseg_tests::{BatchBuilder, MessageBuilder, read};

const WINDOW: usize = (64 << 10) + 4096;

fn record() -> Rec {
    Rec::new(0, 1, b"key", b"value")
}

/// Reads one batch, and a good one behind it that must come out all the same.
fn one(batch: Vec<u8>, limits: Limits) -> ReadBatch {
    let good = BatchBuilder::new(vec![record()]).build();
    let start = Instant::now();
    let mut reading = read(&[batch, good].concat(), WINDOW, limits);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(reading.batches.len(), 2);
    assert_eq!(reading.batches[1].records, [record()]);
    reading.batches.swap_remove(0)
}

fn error(batch: Vec<u8>, limits: Limits) -> Error {
    one(batch, limits).end.verdict.unwrap_err()
}

fn fault(batch: Vec<u8>) -> RecordFault {
    match error(batch, Limits::default()).kind() {
        ErrorKind::MalformedRecord(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// In all the ways a v2 batch can be compressed.
fn in_every_codec(plain: &[u8], count: i32) -> impl Iterator<Item = Vec<u8>> {
    Codec::ALL
        .map(|codec| {
            let builder = BatchBuilder::new(Vec::new()).plain(plain.to_vec()).count(count);
            builder.packing(Packing::java(codec)).build()
        })
        .into_iter()
}

#[test]
fn snappy_of_four_gigabytes() {
    for length in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0x80, 0x80, 0x80, 0x80, 0x04]] {
        let block = snappy_block(&BatchBuilder::new(vec![record()]).plain_records());
        let payload = [length, &block[1..]].concat();
        let batch =
            BatchBuilder::new(vec![record()]).packing(Packing::SnappyRaw).payload(payload).build();
        let error = error(batch, Limits::default());
        assert_eq!(error.name(), "decompress_truncated", "{error}");
    }
}

#[test]
fn records_that_are_longer_than_anything() {
    let length = |n: i64| {
        let mut plain = Vec::new();
        put_varint(&mut plain, n);
        plain.extend([0, 0, 0, 1, 1, 0, 0]);
        plain
    };
    for batch in in_every_codec(&length(i32::MAX.into()), 1) {
        assert_eq!(fault(batch), RecordFault::PastEnd(i64::from(i32::MAX) + 5));
    }
    for batch in in_every_codec(&length(i32::MIN.into()), 1) {
        assert_eq!(fault(batch), RecordFault::Length(i32::MIN));
    }
    // As much as fits the window behind it, and a key of 2 GB in that.
    let mut plain = Vec::new();
    put_varint(&mut plain, i32::MAX.into());
    plain.extend([0, 0, 0]);
    put_varint(&mut plain, 2_147_000_000);
    plain.extend(vec![7; 200_000]);
    for batch in in_every_codec(&plain, 1) {
        assert!(matches!(fault(batch), RecordFault::PastEnd(_) | RecordFault::Overrun));
    }
}

#[test]
fn headers_without_number() {
    for count in [i64::from(i32::MAX), 1000, -1, i64::from(i32::MIN)] {
        let mut body = vec![0, 0, 0, 1, 1];
        put_varint(&mut body, count);
        let mut plain = Vec::new();
        put_varint(&mut plain, body.len() as i64);
        plain.extend(body);
        for batch in in_every_codec(&plain, 1) {
            assert_eq!(fault(batch), RecordFault::HeaderCount(i32::try_from(count).unwrap()));
        }
    }
    // As many as bytes are left, in a record that comes in pieces.
    let mut body = vec![0, 0, 0, 1, 1];
    put_varint(&mut body, 100_000);
    body.extend(vec![1; 100_000]);
    let mut plain = Vec::new();
    put_varint(&mut plain, body.len() as i64);
    plain.extend(body);
    for batch in in_every_codec(&plain, 1) {
        assert_eq!(fault(batch), RecordFault::NullHeaderKey(-1));
    }
}

#[test]
fn counts_that_are_not_there() {
    let plain = BatchBuilder::new(vec![record()]).plain_records();
    for (count, found, more) in [(i32::MAX, 1, false), (2, 1, false), (0, 0, true)] {
        for batch in in_every_codec(&plain, count) {
            let kind = error(batch, Limits::default()).kind();
            assert_eq!(kind, ErrorKind::RecordCount { declared: count, found, more });
        }
    }
    for batch in in_every_codec(&plain, -7) {
        let error = error(batch, Limits::default());
        let (declared, found, more) = (-7, 0, false);
        assert_eq!(error.kind(), ErrorKind::RecordCount { declared, found, more });
        assert_eq!(error.position(), 57);
    }
}

#[test]
fn messages_in_a_set_of_any_size() {
    for magic in [0, 1] {
        for codec in [Codec::Gzip, Codec::Snappy] {
            let packing = Packing::java(codec);
            for (size, want) in [
                (i32::MAX, WrapperFault::InnerSize(i32::MAX)),
                (i32::MAX - 12, WrapperFault::Cut),
                (1000, WrapperFault::Cut),
                (13, WrapperFault::InnerSize(13)),
                (0, WrapperFault::InnerSize(0)),
                (-1, WrapperFault::InnerSize(-1)),
            ] {
                let mut set = message_set(magic, &[record(), Rec { offset: 1, ..record() }]);
                set[8..12].copy_from_slice(&size.to_be_bytes());
                let wrapper = MessageBuilder::wrapper(magic, 1, 1, &set, &packing).build();
                let kind = error(wrapper, Limits::default()).kind();
                // i32::MAX + 12 is what Kafka's own sum overflows at.
                let fits = size != i32::MAX || cfg!(target_pointer_width = "32");
                let want = if fits { want } else { WrapperFault::Cut };
                assert_eq!(kind, ErrorKind::MalformedWrapper(want), "v{magic} {codec} {size}");
            }
        }
    }
}

/// A batch of one record with a value of so many zero bytes.
fn bomb(len: usize, packing: Packing) -> Vec<u8> {
    BatchBuilder::new(vec![Rec::new(0, 1, b"", &vec![0; len])]).packing(packing).build()
}

#[test]
fn bombs_end_at_the_limit() {
    let zstd = Packing::Zstd {
        level: 1,
        frames: 1,
        skippable: false,
        checksum: false,
        content_size: true,
    };
    for (packing, least_ratio) in [
        (Packing::java(Codec::Lz4), 230),
        (Packing::Gzip { level: 9, members: 1, fields: false }, 1000),
        (Packing::java(Codec::Snappy), 20),
        (zstd, 5000),
    ] {
        let len = 24 << 20;
        let batch = bomb(len, packing.clone());
        assert!(len / batch.len() >= least_ratio, "{packing:?}: {}", len / batch.len());
        let size = batch.len() as u64;

        let whole = one(batch.clone(), Limits::default());
        assert_eq!(whole.end.verdict, Ok(()), "{packing:?}");
        assert_eq!(whole.pieced, 1);
        assert_eq!(whole.records[0].value.as_ref().map(Vec::len), Some(len));

        let limit = 1 << 20;
        let stopped = one(batch.clone(), Limits::default().with_decompressed(limit));
        let error = stopped.end.verdict.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooMuchOutput { limit }, "{packing:?}");
        assert_eq!((error.name(), error.position()), ("decompress_limit", 61));
        assert!(error.to_string().contains("limit of 1048576 bytes"), "{error}");
        // It stops within a window of the limit.
        assert!(stopped.end.records_bytes <= limit + WINDOW as u64);
        assert_eq!(stopped.records, [], "the record was not complete");

        let limits = Limits::default().with_ratio(10);
        let kind = one(batch.clone(), limits).end.verdict.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::TooMuchOutput { limit: size * 10 });

        let too_large = one(batch, Limits::default().with_batch(size - 1));
        let kind = too_large.end.verdict.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::BatchTooLarge { size, limit: size - 1 });
    }
}

#[test]
fn a_bomb_of_bombs_is_no_wrapper() {
    let inner = MessageBuilder::wrapper(
        1,
        0,
        1,
        &message_set(1, &[Rec::new(0, 1, b"", &vec![0; 1 << 20])]),
        &Packing::java(Codec::Gzip),
    )
    .build();
    let outer = MessageBuilder::wrapper(1, 5, 1, &inner, &Packing::java(Codec::Gzip)).build();
    let kind = error(outer, Limits::default()).kind();
    assert_eq!(kind, ErrorKind::MalformedWrapper(WrapperFault::Nested));
}

#[test]
fn a_fault_of_the_stream_outranks_those_of_its_records() {
    // The first record is malformed, and the checksum behind the last is wrong: which
    // of them a reader meets first is a matter of its window.
    let mut plain = vec![0];
    plain.extend(vec![3; 300_000]);
    let mut payload = Packing::java(Codec::Gzip).pack(&plain);
    let sum = payload.len() - 8;
    payload[sum] ^= 1;
    let builder = BatchBuilder::new(vec![record()]).packing(Packing::java(Codec::Gzip));
    let batch = builder.clone().payload(payload.clone()).build();
    for window in [WINDOW, 1 << 20] {
        let reading = read(&batch, window, Limits::default());
        assert_eq!(reading.batches[0].fault(), Some("codec_checksum"), "window {window}");
    }
    payload[sum] ^= 1;
    let batch = builder.payload(payload).build();
    for window in [WINDOW, 1 << 20] {
        let reading = read(&batch, window, Limits::default());
        let error = reading.batches[0].end.verdict.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MalformedRecord(RecordFault::Length(0)));
        assert_eq!((error.position(), error.inflated()), (61, Some(0)));
    }
}

#[test]
fn a_set_that_is_condemned_hands_nothing_out() {
    // The wrapper's offset is below the last one inside.
    let set = message_set(1, &[record(), Rec { offset: 1, ..record() }]);
    let wrapper = MessageBuilder::wrapper(1, -5, 1, &set, &Packing::java(Codec::Snappy)).build();
    let batch = one(wrapper, Limits::default());
    let kind = batch.end.verdict.unwrap_err().kind();
    assert_eq!(kind, ErrorKind::MalformedWrapper(WrapperFault::Offset { wrapper: -5 }));
    assert_eq!((batch.records.len(), batch.end.records, batch.end.offsets), (0, 0, None));
}
