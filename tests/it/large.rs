//! Batches of 64 MiB, and bombs, through a reader that is lent 256 KiB in all.

use std::time::{Duration, Instant};

use logseg_core::codec::zstd;
use logseg_core::error::ErrorKind;
use logseg_core::{
    BatchEnd, BatchReader, Builtin, Codec, Cpu, Event, Limits, Piece, TailKind, Unpacker,
};
use logseg_tests::build::{Rec, put_record};
use logseg_tests::chunks::Random;
use logseg_tests::corpus::cases;
use logseg_tests::pack::Packing;
use logseg_tests::{BatchBuilder, MessageBuilder};

/// Lent for input and for the window: 256 KiB.
const INPUT: usize = 64 << 10;
const WINDOW: usize = 192 << 10;
/// Beside it, for zstd: the window of 2 MiB that Kafka's level 3 declares.
const ZSTD_WINDOW: usize = 2 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    records: u64,
    pieced: u64,
    /// Of all values: bytes and CRC-32C.
    bytes: u64,
    crc: u32,
}

impl Sums {
    fn value(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, part);
    }
}

/// Reads one batch; what came of it, and how much of it was fed before the first record.
fn stream(batch: &[u8], limits: Limits) -> (Sums, BatchEnd, usize) {
    let mut workspace = vec![0; zstd::workspace_len(ZSTD_WINDOW)];
    let (mut input, mut window) = (vec![0; INPUT], vec![0; WINDOW]);
    let codecs = Builtin::new().with_zstd(&mut workspace);
    let mut unpacker = Unpacker::new(codecs, &mut window).with_limits(limits);
    let mut reader = BatchReader::new(&mut input[..], Cpu::detect());
    let (mut sums, mut rest, mut end) = (Sums::default(), batch, None);
    let mut first = None;
    let start = Instant::now();
    loop {
        match unpacker.poll(&mut reader).expect("its framing is right") {
            Event::NeedInput if rest.is_empty() => reader.finish(),
            Event::NeedInput => rest = &rest[reader.push(&rest[..rest.len().min(50_000)])..],
            Event::Batch(header) => assert_eq!(header.size, batch.len() as u64),
            Event::Record(record) => {
                first.get_or_insert(batch.len() - rest.len());
                sums.records += 1;
                sums.value(record.value.expect("no value is null"));
            }
            Event::Piece(Piece::Start { .. }) => {
                first.get_or_insert(batch.len() - rest.len());
                sums.records += 1;
                sums.pieced += 1;
            }
            Event::Piece(Piece::Value(part)) => sums.value(part),
            Event::Piece(_) => {}
            Event::BatchEnd(verdict) => end = Some(verdict),
            Event::End(tail) => {
                assert_eq!((tail.kind, tail.position), (TailKind::Clean, batch.len() as u64));
                break;
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    (sums, end.expect("the batch ended"), first.unwrap_or(batch.len()))
}

/// 64 MiB of records of about 3 KB, and one of 5 MB in their middle.
fn plain() -> (Vec<u8>, Sums) {
    let mut random = Random(51);
    let pool = random.data(1 << 20);
    let noise: Vec<u8> = (0..64 << 10).map(|_| random.byte()).collect();
    let (mut plain, mut sums) = (Vec::with_capacity(65 << 20), Sums::default());
    while plain.len() < 64 << 20 {
        let mut value = if sums.records == 10_000 {
            sums.pieced = 1;
            pool.repeat(5)
        } else {
            let at = random.below(pool.len() - 6000);
            pool[at..at + random.below(6000)].to_vec()
        };
        // A part that does not compress: not every lz4 or deflate block is one of copies.
        let at = random.below(noise.len() - 300);
        value.extend(&noise[at..at + 300]);
        let offset = sums.records.cast_signed();
        put_record(&mut plain, &Rec::new(offset, 0, b"", &value), 0, 0);
        sums.records += 1;
        sums.value(&value);
    }
    (plain, sums)
}

#[test]
fn batches_of_64_mib_stream_through_256_kib() {
    let (plain, want) = plain();
    let len = plain.len() as u64;
    assert!(want.records > 15_000 && want.pieced == 1, "{want:?}");
    let count = i32::try_from(want.records).unwrap();
    let lz4 =
        |block| Packing::Lz4 { block, block_sums: false, content_sum: true, content_size: false };
    for packing in [
        Packing::None,
        Packing::java(Codec::Snappy),
        Packing::SnappyRaw,
        lz4(4),
        lz4(7),
        Packing::Gzip { level: 1, members: 1, fields: false },
        Packing::java(Codec::Zstd),
    ] {
        let batch = BatchBuilder::new(Vec::new())
            .packing(packing.clone())
            .payload(packing.pack(&plain))
            .count(count)
            .last_offset_delta(count - 1)
            .build();
        assert!(batch.len() > 10 * (INPUT + WINDOW), "{packing:?}: {}", batch.len());
        let (sums, end, first) = stream(&batch, Limits::default());
        assert_eq!(end.verdict, Ok(()), "{packing:?}");
        assert_eq!(sums, want, "{packing:?}");
        assert_eq!((end.records, end.records_bytes), (want.records, len), "{packing:?}");
        assert_eq!(end.offsets, Some((0, i64::from(count) - 1)));
        // zstd hands out a block of 128 KiB once it has one; none waits for the end.
        assert!(first <= 256 << 10, "{packing:?}: {first} bytes before the first record");
    }
}

fn bomb(len: usize, packing: &Packing) -> Vec<u8> {
    let record = Rec::new(0, 1, b"", &vec![0; len]);
    BatchBuilder::new(vec![record]).packing(packing.clone()).build()
}

#[test]
fn bombs_in_passing_end_right_or_at_the_limit() {
    let len = 48 << 20;
    for (packing, ratio) in [
        (Packing::Gzip { level: 9, members: 1, fields: false }, 1020),
        (Packing::java(Codec::Lz4), 240),
        (Packing::Lz4 { block: 7, block_sums: false, content_sum: false, content_size: true }, 250),
        (Packing::SnappyRaw, 20),
    ] {
        let mut batch = bomb(len, &packing);
        assert!(len / batch.len() >= ratio, "{packing:?}: {}", len / batch.len());
        // Larger than the input buffer, so that it passes through.
        if batch.len() <= INPUT {
            batch = bomb(len * 2, &packing);
        }
        let (sums, end, _) = stream(&batch, Limits::default());
        assert_eq!(end.verdict, Ok(()), "{packing:?}");
        assert_eq!((sums.records, sums.pieced), (1, 1));
        assert!(sums.bytes >= len as u64);
        let limit = 3 << 20;
        let (sums, end, _) = stream(&batch, Limits::default().with_decompressed(limit));
        let error = end.verdict.unwrap_err();
        assert_eq!((error.kind(), error.position()), (ErrorKind::TooMuchOutput { limit }, 61));
        assert!(sums.bytes <= limit, "{packing:?}: {} bytes of it", sums.bytes);
        let limit = 8 * batch.len() as u64;
        let (_, end, _) = stream(&batch, Limits::default().with_ratio(8));
        assert_eq!(end.verdict.unwrap_err().kind(), ErrorKind::TooMuchOutput { limit });
    }
}

#[test]
fn half_a_gigabyte_of_zstd() {
    let case = cases().into_iter().find(|case| case.file.name.contains("150-")).expect("case 150");
    // Its bomb alone, and through a buffer that does not hold it.
    let all = logseg_tests::build::entries(&case.file.bytes);
    let bomb = all.iter().max_by_key(|entry| entry.len()).expect("an entry").clone();
    let bomb = &case.file.bytes[bomb];
    let mut workspace = vec![0; zstd::workspace_len(8 << 20)];
    let mut window = vec![0; WINDOW];
    for (limit, want) in [(1 << 30, Ok(512 << 20)), (64 << 20, Err(64 << 20))] {
        let codecs = Builtin::new().with_zstd(&mut workspace);
        let mut unpacker = Unpacker::new(codecs, &mut window)
            .with_limits(Limits::default().with_decompressed(limit));
        let mut reader = BatchReader::new([0; 4096], Cpu::detect());
        let (mut rest, mut zeros, mut verdict) = (bomb, 0, None);
        loop {
            match unpacker.poll(&mut reader).unwrap() {
                Event::NeedInput if rest.is_empty() => reader.finish(),
                Event::NeedInput => rest = &rest[reader.push(rest)..],
                Event::Piece(Piece::Value(part)) => {
                    assert!(part[0] == 0 && part[part.len() - 1] == 0);
                    zeros += part.len() as u64;
                }
                Event::BatchEnd(end) => verdict = Some(end.verdict),
                Event::End(_) => break,
                _ => {}
            }
        }
        match (verdict.expect("an end"), want) {
            (Ok(()), Ok(bytes)) => assert_eq!(zeros, bytes),
            (Err(error), Err(limit)) => {
                assert_eq!(error.kind(), ErrorKind::TooMuchOutput { limit });
                assert!(zeros <= limit);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_large_wrapper_of_magic_1_gives_relative_offsets_and_then_their_base() {
    let mut random = Random(52);
    let all: Vec<Rec> =
        (0..40).map(|i| Rec::new(7_000_000_000 + 3 * i, i, b"k", &random.data(20_000))).collect();
    let set = logseg_tests::build::message_set(1, &all);
    let last = all[39].offset;
    let wrapper = MessageBuilder::wrapper(1, last, 7, &set, &Packing::java(Codec::Snappy)).build();
    for (buffer, relative) in [(61, true), (wrapper.len(), false)] {
        let mut window = vec![0; WINDOW];
        let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
        let mut reader = BatchReader::new(vec![0; buffer], Cpu::detect());
        let (mut rest, mut offsets, mut base) = (&wrapper[..], Vec::new(), None);
        loop {
            match unpacker.poll(&mut reader).unwrap() {
                Event::NeedInput if rest.is_empty() => reader.finish(),
                Event::NeedInput => rest = &rest[reader.push(rest)..],
                Event::Record(record) => {
                    assert_eq!(record.offset.absolute().is_none(), relative);
                    offsets.push(record.offset);
                }
                Event::BatchEnd(end) => {
                    assert_eq!(end.verdict, Ok(()));
                    assert_eq!(end.offsets, Some((7_000_000_000, last)));
                    base = Some(end.offset_base);
                }
                Event::End(_) => break,
                _ => {}
            }
        }
        let base = base.expect("an end");
        assert_eq!(base, if relative { 7_000_000_000 } else { 0 });
        assert!(offsets.iter().map(|o| o.resolve(base)).eq(all.iter().map(|r| r.offset)));
    }
}
