//! The law: whatever the chunking of the input and the size of the window, the answer
//! is the same, and it is that of an independent library.

use logseg_core::codec::CodecErrorKind;
use logseg_core::codec::zstd;
use logseg_core::{Batch, Batches, Builtin, Codec, Codecs, Cpu, Error, Limits, Magic};
use logseg_tests::build::{Rec, entries, fix_crc, fix_crcs, message_set};
use logseg_tests::chunks::{Chunking, Random};
use logseg_tests::corpus::{cases, segments};
use logseg_tests::pack::{Packing, snappy_block, unpack};
use logseg_tests::read::{Reading, decode, walk};
use logseg_tests::{BatchBuilder, MessageBuilder, read};
use proptest::prelude::*;

/// What is never enough for anything but the history of the codec and a little more.
pub(super) fn least_window(codec: Codec) -> usize {
    match codec {
        Codec::None | Codec::Zstd => 0,
        Codec::Gzip => 32 << 10,
        Codec::Snappy | Codec::Lz4 => 64 << 10,
    }
}

/// `LAW_TIMES=20` looks for longer than a usual run does.
pub(super) fn times() -> u32 {
    std::env::var("LAW_TIMES").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

pub(super) fn config(cases: u32) -> ProptestConfig {
    let cases = cases * times();
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn core_decode(
    packing: &Packing,
    packed: &[u8],
    chunking: Chunking,
    window: usize,
) -> Result<Vec<u8>, CodecErrorKind> {
    let mut workspace = vec![0; zstd::workspace_len(8 << 20)];
    let mut codecs = Builtin::new().with_zstd(&mut workspace);
    let decoder = codecs.decoder(packing.codec(), Magic::V2).expect("it is built in");
    decode(decoder, packed, chunking, &mut vec![0x5a; window])
}

/// Decodes in every way there is.
fn decodes(packing: &Packing, plain: &[u8], packed: &[u8], seed: u64) {
    let least = least_window(packing.codec());
    let mut random = Random(seed);
    let whole = core_decode(packing, packed, Chunking::Whole, 8 << 20);
    assert!(whole.as_deref() == Ok(plain), "{packing:?}: whole");
    // As tight as it gets moves the history for every few bytes: only for small data.
    let tight = if plain.len() < 5000 { 1 + random.below(64) } else { 1000 + random.below(4000) };
    for (chunking, window) in [
        (Chunking::Whole, least + tight),
        (Chunking::Whole, least + 1 + random.below(100_000)),
        (Chunking::Bytes, least + 1000 + random.below(100_000)),
        (Chunking::Random(seed), least + tight),
        (Chunking::Random(seed), 8 << 20),
        (Chunking::At(random.below(packed.len() + 1)), least + (64 << 10)),
    ] {
        // zstd has no history in the window, but wants some room.
        let window = window.max(1);
        let part = core_decode(packing, packed, chunking, window);
        let error = part.as_ref().err();
        assert!(
            part.as_deref() == Ok(plain),
            "{packing:?}: {chunking:?} window {window} {error:?}"
        );
    }
}

#[test]
fn codecs_decode_every_variant_in_any_chunking() {
    let mut random = Random(1);
    for packing in Packing::all() {
        if packing == Packing::None {
            continue;
        }
        for len in [0, 1, 5, 1000, 70_000, 200_000] {
            let plain = random.data(len);
            let packed = packing.pack(&plain);
            assert!(
                unpack(packing.codec(), 2, &packed).as_deref() == Ok(&plain),
                "{packing:?} is not what an independent library makes of it"
            );
            decodes(&packing, &plain, &packed, random.bits());
        }
    }
}

#[test]
fn blocks_larger_than_the_window() {
    // 1 MiB and 4 MiB blocks of lz4, one raw snappy block, a xerial block of 2 MB and a
    // gzip member, with noise (stored blocks) and long copies.
    let mut random = Random(2);
    let mut plain = random.data(1_500_000);
    plain.extend(std::iter::repeat_n(0, 500_000));
    plain.extend((0..300_000).map(|_| random.byte()));
    for packing in [
        Packing::Lz4 { block: 7, block_sums: true, content_sum: true, content_size: true },
        Packing::Lz4 { block: 6, block_sums: false, content_sum: false, content_size: false },
        Packing::SnappyRaw,
        Packing::Xerial { block: 2_000_000, header_every: 0 },
        Packing::java(Codec::Gzip),
        Packing::java(Codec::Zstd),
    ] {
        let packed = packing.pack(&plain);
        let window = least_window(packing.codec()) + (64 << 10);
        for chunking in [Chunking::Whole, Chunking::Random(3)] {
            let got = core_decode(&packing, &packed, chunking, window);
            assert!(got.as_deref() == Ok(&plain), "{packing:?} {chunking:?}");
        }
    }
}

#[test]
fn small_streams_at_every_split() {
    let mut random = Random(4);
    let plain = random.data(400);
    for packing in Packing::all() {
        if packing == Packing::None {
            continue;
        }
        let packed = packing.pack(&plain);
        let mut workspace = vec![0; zstd::workspace_len(8 << 20)];
        let mut codecs = Builtin::new().with_zstd(&mut workspace);
        let decoder = codecs.decoder(packing.codec(), Magic::V2).unwrap();
        let mut window = vec![0; least_window(packing.codec()) + 33];
        for chunking in Chunking::every_split(&packed) {
            let got = decode(decoder, &packed, chunking, &mut window);
            let error = got.as_ref().err();
            assert!(got.as_deref() == Ok(&plain), "{packing:?} {chunking:?} {error:?}");
        }
        // Cut off anywhere, it is either an error or (a member, frame or block ends
        // there) a part of the whole; never anything else.
        for end in 0..packed.len() {
            let cut = &packed[..end];
            let whole = decode(decoder, cut, Chunking::Whole, &mut window);
            let bytes = decode(decoder, cut, Chunking::Bytes, &mut window);
            assert_eq!(whole, bytes, "{packing:?} cut to {end}");
            if let Ok(part) = whole {
                assert!(plain.starts_with(&part), "{packing:?} cut to {end}");
            }
        }
    }
}

/// A batch of some version, and what is in it.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) bytes: Vec<u8>,
    pub(super) records: Vec<Rec>,
    codec: Codec,
}

fn field(random: &mut Random, largest: usize) -> Option<Vec<u8>> {
    let len = match random.below(10) {
        0 => return None,
        1 => 0,
        2 => random.below(largest),
        _ => random.below(80),
    };
    Some(random.data(len))
}

pub(super) fn records(random: &mut Random, headers: bool, largest: usize) -> Vec<Rec> {
    let mut offset = 1 + random.below(1000) as i64;
    (0..1 + random.below(8))
        .map(|_| {
            offset += 1 + random.below(3) as i64;
            let count = if headers && random.below(3) == 0 { random.below(6) } else { 0 };
            Rec {
                offset,
                timestamp: random.bits().cast_signed() >> random.below(64),
                key: field(random, largest / 3),
                value: field(random, largest),
                headers: (0..count)
                    .map(|_| {
                        (field(random, largest / 2).unwrap_or_default(), field(random, largest))
                    })
                    .collect(),
            }
        })
        .collect()
}

pub(super) fn make(seed: u64, magic: u8, packing: &Packing, largest: usize) -> Made {
    let mut random = Random(seed);
    let mut records = records(&mut random, magic == 2, largest);
    let codec = packing.codec();
    let bytes = if magic == 2 {
        BatchBuilder::new(records.clone()).base_offset(1).packing(packing.clone()).build()
    } else {
        if magic == 0 {
            records.iter_mut().for_each(|record| record.timestamp = -1);
        }
        let set = message_set(magic, &records);
        let last = records.last().map_or(0, |record| record.offset);
        MessageBuilder::wrapper(magic, last, 7, &set, packing).build()
    };
    Made { bytes, records, codec }
}

fn packing_for(magic: u8) -> impl Strategy<Value = Packing> {
    let all: Vec<Packing> = Packing::all()
        .into_iter()
        .filter(|packing| match packing.codec() {
            Codec::None => magic == 2,
            // Its header checksum would be right, which magic 0 does not look at.
            Codec::Zstd => magic == 2,
            _ => true,
        })
        .collect();
    proptest::sample::select(all)
}

pub(super) fn magic_and_packing() -> impl Strategy<Value = (u8, Packing)> {
    prop_oneof![2 => Just(2u8), 1 => Just(1u8), 1 => Just(0u8)]
        .prop_flat_map(|magic| packing_for(magic).prop_map(move |packing| (magic, packing)))
}

pub(super) const HUGE: usize = 16 << 20;

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn codecs_in_any_chunking(
        seed: u64,
        packing in packing_for(2),
        len in prop_oneof![0usize..300, 0usize..150_000],
    ) {
        if packing != Packing::None {
            let plain = Random(seed).data(len);
            let packed = packing.pack(&plain);
            decodes(&packing, &plain, &packed, seed);
        }
    }

    #[test]
    fn records_through_any_window(
        seed: u64,
        (magic, packing) in magic_and_packing(),
        largest in prop_oneof![Just(100usize), Just(20_000), Just(300_000)],
        room in prop_oneof![64usize..200, 200usize..100_000],
    ) {
        let made = make(seed, magic, &packing, largest);
        let room = if largest > 20_000 { room + 1000 } else { room };
        let small = read(&made.bytes, least_window(made.codec) + room, Limits::default());
        let large = read(&made.bytes, HUGE, Limits::default());
        for reading in [&small, &large] {
            prop_assert_eq!(reading.batches.len(), 1);
            prop_assert_eq!(reading.batches[0].end.verdict, Ok(()));
            prop_assert!(reading.batches[0].records == made.records);
        }
        prop_assert_eq!(large.batches[0].pieced, 0, "all of them fit");
        prop_assert_eq!(small.batches[0].end, large.batches[0].end);
    }
}

/// Flips, removes or inserts some bytes, often near `starts`.
pub(super) fn damage(random: &mut Random, bytes: &mut Vec<u8>, from: usize, starts: &[usize]) {
    for _ in 0..1 + random.below(3) {
        if bytes.len() <= from {
            return;
        }
        // Where the lengths are, more often than in the middle of a value.
        let near = starts.get(random.below(starts.len() + 1)).map(|at| at + random.below(28));
        let at = near
            .filter(|at| (from..bytes.len()).contains(at))
            .unwrap_or_else(|| from + random.below(bytes.len() - from));
        match random.below(6) {
            0 => bytes[at] = random.byte(),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => drop(bytes.drain(at..(at + 1 + random.below(9)).min(bytes.len()))),
            4 => {
                let n = 1 + random.below(9);
                bytes.splice(at..at, (0..n).map(|i| (i * 77) as u8).collect::<Vec<_>>());
            }
            _ => bytes.truncate(at),
        }
    }
}

/// All fields of all records, in their order on the wire.
pub(super) fn fields(records: &[Rec]) -> Vec<Vec<u8>> {
    let of = |r: &Rec| {
        let headers = r.headers.iter().flat_map(|(key, value)| [Some(key.clone()), value.clone()]);
        [r.key.clone(), r.value.clone()].into_iter().chain(headers).flatten().collect::<Vec<_>>()
    };
    records.iter().flat_map(of).collect()
}

/// Where lengths stand: at the start, and around the end of every field.
pub(super) fn lengths(plain: &[u8], fields: &[Vec<u8>]) -> Vec<usize> {
    let mut at = 0;
    let mut found = vec![0];
    for field in fields.iter().filter(|field| !field.is_empty()) {
        // Every field comes whole, behind the one before it.
        let behind = plain[at..].windows(field.len()).position(|part| part == field);
        at += behind.unwrap_or(0) + field.len();
        found.push(at);
    }
    found
}

/// Verdicts of both readings, where the small window is no reason of its own.
fn same_verdicts(small: &Reading, large: &Reading, what: &str) {
    assert_eq!((&small.errors, small.tail), (&large.errors, large.tail), "{what}");
    assert_eq!(small.batches.len(), large.batches.len(), "{what}");
    for (a, b) in small.batches.iter().zip(&large.batches) {
        assert_eq!(a.header, b.header, "{what}");
        if a.fault() == Some("decompress_limit_buffer") {
            continue;
        }
        assert_eq!(a.end.verdict, b.end.verdict, "{what}");
        if a.end.verdict.is_ok() {
            assert_eq!(a.end, b.end, "{what}");
            assert!(a.records == b.records, "{what}");
        }
    }
}

/// Records of a batch by the slice API, `None` if a library cannot decompress them.
fn walked(batch: &Batch<'_>) -> Result<Option<Vec<Rec>>, Error> {
    batch.check_crc()?;
    let codec = batch.header().codec()?;
    if codec == Codec::None {
        return walk(batch, Batch::records).map(Some);
    }
    match unpack(codec, batch.header().magic.number(), batch.payload()?) {
        Ok(plain) => walk(batch, |batch| batch.records_in(&plain)).map(Some),
        Err(_) => Ok(None),
    }
}

/// The slice API against the unpacker: the same error for what is not compressed, of
/// the same kind for what other libraries decompressed.
fn same_as_slice(segment: &[u8], large: &Reading, what: &str) {
    let mut batches = large.batches.iter();
    for batch in Batches::new(segment, Cpu::scalar()) {
        let Ok(batch) = batch else { break };
        let read = batches.next().expect("as many batches");
        let got = walked(&batch);
        let plain = batch.header().codec() == Ok(Codec::None);
        // A fault of the stream outranks those of the records. Other libraries may
        // take for good what core does not, such as an empty block.
        let stream = read.fault().is_some_and(|name| {
            !plain && (name.starts_with("decompress") || name == "codec_checksum")
        });
        match got {
            Ok(None) => {}
            Err(error) if plain => assert_eq!(read.end.verdict, Err(error), "{what}"),
            Err(error) => {
                assert!(stream || read.fault() == Some(error.name()), "{what}: {error} {read:?}");
            }
            Ok(Some(records)) if !stream => {
                assert_eq!(read.end.verdict, Ok(()), "{what}");
                assert!(read.records == records, "{what}");
            }
            Ok(Some(_)) => {}
        }
    }
}

fn check_damaged(bytes: &[u8], what: &str, codec: Codec, random: &mut Random) -> Reading {
    // For zstd, which needs no window, nearly every record comes in pieces.
    let room = [64, 120, 700][random.below(3)];
    let large = read(bytes, HUGE, Limits::default());
    let small = read(bytes, least_window(codec) + room, Limits::default());
    same_verdicts(&small, &large, what);
    same_as_slice(bytes, &large, what);
    large
}

#[test]
fn damaged_cases_give_the_same_verdict_through_any_window() {
    let mut random = Random(5);
    let cases = cases();
    let mut found = std::collections::BTreeMap::new();
    for round in 0..60 * times() {
        for case in cases.iter().filter(|case| case.file.bytes.len() < 60_000) {
            if case.file.name.contains("150-") {
                continue; // a bomb: the tests of limits have it
            }
            let mut bytes = case.file.bytes.clone();
            let all = entries(&bytes);
            if all.is_empty() {
                continue;
            }
            // Damage within one entry, or anywhere, framing included.
            if random.below(4) > 0 {
                let entry = all[random.below(all.len())].clone();
                let mut one = bytes[entry.clone()].to_vec();
                let from = if random.below(3) == 0 { 12 } else { 61.min(one.len() - 1) };
                damage(&mut random, &mut one, from, &[]);
                if let Ok(size) = i32::try_from(one.len() - 12) {
                    one[8..12].copy_from_slice(&size.to_be_bytes());
                }
                fix_crc(&mut one);
                bytes.splice(entry, one);
            } else {
                damage(&mut random, &mut bytes, 0, &[]);
                fix_crcs(&mut bytes);
            }
            let what = format!("{} in round {round}", case.file.name);
            let large = check_damaged(&bytes, &what, Codec::Lz4, &mut random);
            for batch in large.batches {
                *found.entry(batch.fault().unwrap_or("ok")).or_insert(0u32) += 1;
            }
        }
    }
    // The damage reaches what is behind the CRC, everywhere.
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
    ] {
        assert!(found.get(kind).is_some_and(|&n| n > 3), "{kind}: {found:?}");
    }
}

/// A batch, or a wrapper, whose records were damaged before they were compressed.
pub(crate) fn damaged_inside(
    random: &mut Random,
    magic: u8,
    packing: &Packing,
    largest: usize,
) -> Vec<u8> {
    let records = records(random, magic == 2, largest);
    let texts = fields(&records);
    let last = records.last().map_or(0, |record| record.offset);
    if magic == 2 {
        let builder = BatchBuilder::new(records).base_offset(1).packing(packing.clone());
        let mut plain = builder.plain_records();
        let starts = lengths(&plain, &texts);
        damage(random, &mut plain, 0, &starts);
        builder.plain(plain).build()
    } else {
        let mut set = message_set(magic, &records);
        let starts = lengths(&set, &texts);
        damage(random, &mut set, 0, &starts);
        if random.below(2) == 0 {
            fix_crcs(&mut set);
        }
        MessageBuilder::wrapper(magic, last, 7, &set, packing).build()
    }
}

proptest! {
    #![proptest_config(config(256))]

    /// Damage before compression: it reaches the record parsers behind the decoders.
    #[test]
    fn damaged_records_give_the_same_verdict_through_any_window(
        seed: u64,
        (magic, packing) in magic_and_packing(),
        largest in prop_oneof![Just(100usize), Just(3000), Just(90_000)],
    ) {
        let mut random = Random(seed);
        let bytes = damaged_inside(&mut random, magic, &packing, largest);
        check_damaged(&bytes, "a batch", packing.codec(), &mut random);
    }

    /// Damage behind compression.
    #[test]
    fn damaged_streams_give_the_same_verdict_through_any_window(
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
        check_damaged(&bytes, "a batch", packing.codec(), &mut random);
    }
}

#[test]
fn damage_within_a_block_of_snappy() {
    // Every byte of a small block, every bit: chunked and whole agree.
    let plain = Random(6).data(300);
    let block = snappy_block(&plain);
    let mut window = vec![0; (64 << 10) + 40];
    let mut large = vec![0; 1 << 20];
    let mut decoder = logseg_core::codec::xerial::Xerial::default();
    for at in 0..block.len() {
        for bit in 0..8 {
            let mut bad = block.clone();
            bad[at] ^= 1 << bit;
            let whole = decode(&mut decoder, &bad, Chunking::Whole, &mut large);
            let bytes = decode(&mut decoder, &bad, Chunking::Bytes, &mut window);
            assert_eq!(whole, bytes, "byte {at} bit {bit}");
            let other = unpack(Codec::Snappy, 2, &bad);
            assert_eq!(whole.ok(), other.ok(), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn segments_cut_anywhere_end_in_a_partial_batch() {
    let segment = &segments()[0].file.bytes;
    let all = entries(segment);
    let mut random = Random(7);
    for _ in 0..40 {
        let end = random.below(all[60].end);
        let whole = all.iter().take_while(|entry| entry.end <= end).count();
        let reading = read(&segment[..end], 1 << 20, Limits::default());
        assert_eq!(reading.errors, []);
        assert_eq!(reading.batches.len(), whole);
        let from = all[..whole].last().map_or(0, |entry| entry.end);
        assert_eq!((reading.tail.position, reading.tail.bytes), (from as u64, (end - from) as u64));
    }
}
