//! The law, for input: whatever the pieces it comes in and the buffers it goes through,
//! a [`BatchReader`] gives what the whole in memory gives.

use logseg_core::codec::zstd;
use logseg_core::error::{ErrorKind, RecordFault};
use logseg_core::{BatchReader, Builtin, Codec, Cpu, CrcPolicy, Limits, Unpacker};
use logseg_tests::build::{Rec, entries, fix_crc, fix_crcs, put_varint};
use logseg_tests::chunks::{Chunking, Random};
use logseg_tests::corpus::{cases, files};
use logseg_tests::pack::Packing;
use logseg_tests::read::{Reading, assert_same, read_with, stream_with};
use logseg_tests::{BatchBuilder, MessageBuilder};
use proptest::prelude::*;

use crate::law::{HUGE, config, damage, damaged_inside, magic_and_packing, make, records, times};

/// A v2 header, 1 KiB, 64 KiB, and more than any file of the corpus has.
const BUFFERS: [usize; 4] = [BatchReader::<Vec<u8>>::LEAST, 1 << 10, 64 << 10, 4 << 20];
/// History and 2 KiB, twice the history, and more than any batch unpacks to.
const WINDOWS: [usize; 3] = [66 << 10, 128 << 10, HUGE];
const POLICIES: [CrcPolicy; 2] = [CrcPolicy::Verify, CrcPolicy::Skip];
/// The bomb of case 150 ends here in all of them.
const LIMIT: u64 = 24 << 20;

/// Both ways to read, over memory that is lent once.
struct Bench {
    buffers: Vec<Vec<u8>>,
    windows: Vec<Vec<u8>>,
    workspace: Vec<u8>,
    crc: CrcPolicy,
}

impl Bench {
    fn new() -> Self {
        Self {
            buffers: BUFFERS.iter().map(|&len| vec![0xa5; len]).collect(),
            windows: WINDOWS.iter().map(|&len| vec![0; len]).collect(),
            workspace: vec![0; zstd::workspace_len(1 << zstd::WINDOW_LOG_MAX)],
            crc: CrcPolicy::Verify,
        }
    }

    fn with<R>(
        &mut self,
        window: usize,
        read: impl FnOnce(&mut Unpacker<'_, Builtin<'_>>, &mut [Vec<u8>]) -> R,
    ) -> R {
        let codecs = Builtin::new().with_zstd(&mut self.workspace);
        let mut unpacker = Unpacker::new(codecs, &mut self.windows[window])
            .with_limits(Limits::default().with_decompressed(LIMIT))
            .with_crc_policy(self.crc);
        read(&mut unpacker, &mut self.buffers)
    }

    fn slice(&mut self, segment: &[u8]) -> Reading {
        self.with(WINDOWS.len() - 1, |unpacker, _| read_with(segment, unpacker))
    }

    fn stream(
        &mut self,
        segment: &[u8],
        chunking: Chunking,
        buffer: usize,
        window: usize,
    ) -> Reading {
        self.with(window, |unpacker, buffers| {
            let mut reader = BatchReader::new(&mut buffers[buffer], Cpu::detect());
            stream_with(segment, chunking, &mut reader, unpacker)
        })
    }

    /// Holds one way to stream `segment` to what the slice gives.
    fn check(
        &mut self,
        slice: &Reading,
        segment: &[u8],
        (chunking, buffer, window): (Chunking, usize, usize),
        name: &str,
    ) -> Reading {
        let stream = self.stream(segment, chunking, buffer, window);
        let what = format!(
            "{name}: {chunking:?}, buffer {}, window {}, {:?}",
            BUFFERS[buffer], WINDOWS[window], self.crc
        );
        assert_same(slice, &stream, &what);
        stream
    }
}

#[test]
fn every_file_in_pieces() {
    let mut bench = Bench::new();
    let mut random = Random(31);
    let (mut pieced, mut relative) = (0, 0);
    for file in files() {
        let small = file.bytes.len() < 20_000;
        for crc in POLICIES {
            bench.crc = crc;
            let slice = bench.slice(&file.bytes);
            for buffer in 0..BUFFERS.len() {
                for window in 0..WINDOWS.len() {
                    let chunking = match (small, window) {
                        (true, 0) => Chunking::Bytes,
                        (_, 1) => Chunking::Whole,
                        _ => Chunking::Random(random.bits()),
                    };
                    // All windows for all buffers would say the same again.
                    if !small && (buffer + window + usize::from(crc == CrcPolicy::Skip)) % 3 > 0 {
                        continue;
                    }
                    let how = (chunking, buffer, window);
                    let stream = bench.check(&slice, &file.bytes, how, &file.name);
                    pieced += stream.batches.iter().map(|batch| batch.pieced).sum::<usize>();
                    relative += stream.batches.iter().filter(|b| b.end.offset_base != 0).count();
                }
            }
        }
    }
    assert!(pieced > 1000 && relative > 10, "{pieced} in pieces, {relative} wrappers");
}

#[test]
fn small_files_at_every_split() {
    let mut bench = Bench::new();
    for file in files() {
        if file.bytes.len() >= 4 << 10 {
            continue;
        }
        for (buffer, crc) in [(0, CrcPolicy::Verify), (1, CrcPolicy::Skip)] {
            bench.crc = crc;
            let slice = bench.slice(&file.bytes);
            for chunking in Chunking::every_split(&file.bytes) {
                bench.check(&slice, &file.bytes, (chunking, buffer, 0), &file.name);
            }
        }
    }
}

/// Damaged or not: through every buffer, in some chunking, with some window.
fn check_all(bench: &mut Bench, bytes: &[u8], random: &mut Random, name: &str) -> Reading {
    bench.crc = POLICIES[random.below(2)];
    let slice = bench.slice(bytes);
    for buffer in 0..BUFFERS.len() {
        let chunking = match random.below(4) {
            0 => Chunking::Whole,
            1 if bytes.len() < 20_000 => Chunking::Bytes,
            2 => Chunking::At(random.below(bytes.len() + 1)),
            _ => Chunking::Random(random.bits()),
        };
        let window = random.below(WINDOWS.len());
        bench.check(&slice, bytes, (chunking, buffer, window), name);
    }
    slice
}

#[test]
fn damaged_cases_in_pieces() {
    let mut bench = Bench::new();
    let mut random = Random(32);
    let cases = cases();
    let mut found = std::collections::BTreeMap::new();
    for round in 0..25 * times() {
        for case in cases.iter().filter(|case| case.file.bytes.len() < 60_000) {
            if case.file.name.contains("150-") {
                continue; // a bomb: the tests of limits have it
            }
            let mut bytes = case.file.bytes.clone();
            let all = entries(&bytes);
            let fix = random.below(3) > 0;
            if random.below(4) > 0 && !all.is_empty() {
                let entry = all[random.below(all.len())].clone();
                let mut one = bytes[entry.clone()].to_vec();
                let from = if random.below(3) == 0 { 12 } else { 61.min(one.len() - 1) };
                damage(&mut random, &mut one, from, &[]);
                if let Ok(size) = i32::try_from(one.len() - 12) {
                    one[8..12].copy_from_slice(&size.to_be_bytes());
                }
                if fix {
                    fix_crc(&mut one);
                }
                bytes.splice(entry, one);
            } else {
                damage(&mut random, &mut bytes, 0, &[]);
                if fix {
                    fix_crcs(&mut bytes);
                }
            }
            let name = format!("{} in round {round}", case.file.name);
            let slice = check_all(&mut bench, &bytes, &mut random, &name);
            for batch in &slice.batches {
                *found.entry(batch.fault().unwrap_or("ok")).or_insert(0u32) += 1;
            }
            *found.entry(slice.errors.first().map_or("", |error| error.name())).or_insert(0) += 1;
        }
    }
    for kind in [
        "ok",
        "record_count",
        "malformed_record",
        "malformed_wrapper",
        "malformed_control",
        "decompress",
        "decompress_truncated",
        "codec_checksum",
        "unknown_codec",
        "crc_mismatch",
        "unknown_magic",
        "batch_length",
        "batch_length_not_a_segment",
    ] {
        assert!(found.get(kind).is_some_and(|&n| n > 3), "{kind}: {found:?}");
    }
}

#[test]
fn a_message_in_passing_has_one_checksum() {
    // Its key is longer than itself, and its checksum right: the key is what is wrong.
    let mut bytes = MessageBuilder::new(1, &Rec::new(5, 1, b"key", &[7; 300])).build();
    bytes[26..30].copy_from_slice(&10_000i32.to_be_bytes());
    for (fix, name, position) in [(true, "malformed_record", 0), (false, "crc_mismatch", 12)] {
        if fix {
            fix_crcs(&mut bytes);
        } else {
            bytes[12] ^= 1;
        }
        let mut bench = Bench::new();
        let slice = bench.slice(&bytes);
        let stream = bench.check(&slice, &bytes, (Chunking::Bytes, 0, 0), "a message");
        let error = stream.batches[0].end.verdict.unwrap_err();
        assert_eq!((error.name(), error.position()), (name, position));
    }
}

#[test]
fn a_record_that_is_cut_is_not_looked_into() {
    // Longer than what is there, and its timestamp does not end: as a whole it would be
    // missing its end, whatever is in it. The other one is whole, and its own fault told.
    let mut bench = Bench::new();
    for (length, kind) in [(200_000, RecordFault::PastEnd(200_003)), (150_000, RecordFault::Varint)]
    {
        let mut plain = Vec::new();
        put_varint(&mut plain, length);
        plain.push(0);
        plain.extend([0xff; 20]);
        plain.resize(150_003, 7);
        for codec in Codec::ALL {
            let builder = BatchBuilder::new(Vec::new()).plain(plain.clone()).count(1);
            let bytes = builder.packing(Packing::java(codec)).build();
            let slice = bench.slice(&bytes);
            for (buffer, window) in [(0, 0), (1, 1), (0, 2)] {
                let how = (Chunking::Whole, buffer, window);
                let stream = bench.check(&slice, &bytes, how, codec.name());
                let error = stream.batches[0].end.verdict.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::MalformedRecord(kind), "{codec}");
                let inflated = (codec != Codec::None).then_some(0);
                assert_eq!((error.position(), error.inflated()), (61, inflated));
            }
        }
    }
}

#[test]
fn positions_inside_streams_do_not_depend_on_the_pieces() {
    // The last byte of what is wrong in snappy and lz4; the start of the payload where a
    // library decodes, which looks ahead as far as it is fed.
    let mut bench = Bench::new();
    let plain = Random(33).data(3000);
    let lz4 = Packing::Lz4 { block: 4, block_sums: true, content_sum: true, content_size: true };
    for (packing, at, name, position) in [
        // Magic, header checksum, length of the first block, its checksum, the content's.
        (lz4.clone(), 0, "decompress", 61 + 6),
        (lz4.clone(), 14, "codec_checksum", 61 + 14),
        (lz4.clone(), 17, "decompress", 61 + 18),
        (lz4.clone(), 30, "codec_checksum", 0),
        // The length of the first block of xerial, and a block that is too short.
        (Packing::java(Codec::Snappy), 16, "decompress", 61 + 19),
        (Packing::java(Codec::Gzip), 1, "decompress", 61),
        (Packing::java(Codec::Gzip), 40, "decompress", 61),
        (Packing::java(Codec::Zstd), 0, "decompress", 61),
        (Packing::java(Codec::Zstd), 7, "decompress_truncated", 61),
    ] {
        let mut payload = packing.pack(&plain);
        payload[at] ^= 0x90;
        let builder = BatchBuilder::new(Vec::new()).packing(packing.clone()).count(1);
        let bytes = builder.payload(payload).build();
        let slice = bench.slice(&bytes);
        let error = slice.batches[0].end.verdict.unwrap_err();
        if position > 0 {
            assert_eq!((error.name(), error.position()), (name, position), "{packing:?} {at}");
        }
        for buffer in 0..BUFFERS.len() {
            for chunking in [Chunking::Bytes, Chunking::Whole, Chunking::Random(4)] {
                bench.check(&slice, &bytes, (chunking, buffer, 0), "a stream");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn segments_in_pieces(
        seed: u64,
        kinds in proptest::collection::vec(magic_and_packing(), 1..5),
        largest in prop_oneof![Just(100usize), Just(3000), Just(200_000)],
        cut in prop_oneof![Just(None), (0usize..100_000).prop_map(Some)],
    ) {
        let mut random = Random(seed);
        let all: Vec<_> = kinds
            .iter()
            .map(|(magic, packing)| make(random.bits(), *magic, packing, largest))
            .collect();
        let mut bytes: Vec<u8> = all.iter().flat_map(|made| made.bytes.clone()).collect();
        if let Some(cut) = cut {
            bytes.truncate(cut);
        }
        let slice = check_all(&mut Bench::new(), &bytes, &mut random, "a segment");
        for (read, made) in slice.batches.iter().zip(&all) {
            prop_assert!(read.records == made.records);
        }
        prop_assert!(cut.is_some() || slice.batches.len() == all.len());
    }

    /// Messages without a wrapper, with bytes behind their values.
    #[test]
    fn messages_in_pieces(seed: u64, magic in 0u8..2, largest in prop_oneof![Just(100usize), Just(90_000)]) {
        let mut random = Random(seed);
        let all = records(&mut random, false, largest);
        let mut bytes = Vec::new();
        for record in &all {
            let behind = random.below(3) * random.below(100);
            let builder = MessageBuilder::new(magic, record).behind(random.data(behind));
            bytes.extend(builder.build());
        }
        if random.below(2) == 0 {
            damage(&mut random, &mut bytes, 0, &[0, 12, 18, 26]);
            if random.below(2) == 0 {
                fix_crcs(&mut bytes);
            }
        }
        check_all(&mut Bench::new(), &bytes, &mut random, "messages");
    }

    /// Damage before compression: it reaches the record parsers behind the decoders.
    #[test]
    fn damaged_records_in_pieces(
        seed: u64,
        (magic, packing) in magic_and_packing(),
        largest in prop_oneof![Just(100usize), Just(3000), Just(90_000)],
    ) {
        let mut random = Random(seed);
        let bytes = damaged_inside(&mut random, magic, &packing, largest);
        check_all(&mut Bench::new(), &bytes, &mut random, "a batch");
    }

    /// Damage behind compression.
    #[test]
    fn damaged_streams_in_pieces(
        seed: u64,
        (magic, packing) in magic_and_packing(),
        largest in prop_oneof![Just(100usize), Just(3000), Just(90_000)],
    ) {
        let made = make(seed, magic, &packing, largest);
        let mut random = Random(!seed);
        let mut bytes = made.bytes;
        let from = if magic == 2 { 61 } else { 34 };
        let starts = [from, bytes.len() - 12, bytes.len() - 28.min(bytes.len() - from)];
        damage(&mut random, &mut bytes, from, &starts);
        let size = i32::try_from(bytes.len() - 12).unwrap();
        bytes[8..12].copy_from_slice(&size.to_be_bytes());
        fix_crc(&mut bytes);
        check_all(&mut Bench::new(), &bytes, &mut random, "a batch");
    }
}
