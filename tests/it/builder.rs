//! What core's builder writes: read by core in every way, and by what shares no code with
//! it.

use logseg_core::batch::Header;
use logseg_core::builder::{
    BuilderOptions, LentBuffer, MemoryRecordsBuilder, ProducerState, Timestamps,
};
use logseg_core::codec::{BuiltinCompressors, Compressors, lz4_encode, xerial_encode, zstd};
use logseg_core::error::ErrorKind;
use logseg_core::{BatchReader, Batches, Builtin, Codec, Cpu, Error, Magic, Unpacker};
use logseg_tests::build::{Rec, message_set};
use logseg_tests::chunks::Chunking;
use logseg_tests::pack::unpack;
use logseg_tests::read::{assert_same, read_with, stream_with};
use logseg_tests::{BatchBuilder, MessageBuilder};
use proptest::prelude::*;
use std_host::codec_spec::CodecSpec;
use std_host::compressors::HostCompressors;
use std_host::growing::GrowingBuffer;

use super::law::config;

type Builder<'c> = MemoryRecordsBuilder<'c, LentBuffer<'c>>;

/// Memory of the encoders, once for many builders.
#[derive(Default)]
struct Kit {
    lz4: Box<lz4_encode::Memory>,
    snappy: Box<xerial_encode::Memory>,
    host: HostCompressors,
    /// What the host's are set to.
    spec: Option<CodecSpec>,
}

impl Kit {
    /// A builder with the encoders of core, or with those of the host.
    fn with<R>(
        &mut self,
        host: Option<CodecSpec>,
        capacity: usize,
        options: BuilderOptions,
        test: impl FnOnce(Result<Builder<'_>, Error>) -> R,
    ) -> R {
        let mut memory = vec![0x5a; capacity];
        let buffer = LentBuffer::new(&mut memory);
        let mut core;
        let compressors: &mut dyn Compressors = match host {
            Some(spec) => {
                if self.spec.replace(spec) != host {
                    self.host = HostCompressors::new().with_level(spec);
                }
                &mut self.host
            }
            None => {
                core =
                    BuiltinCompressors::new().with_lz4(&mut self.lz4).with_snappy(&mut self.snappy);
                &mut core
            }
        };
        test(MemoryRecordsBuilder::new(buffer, options, compressors, Cpu::detect()))
    }
}

fn headers(rec: &Rec) -> Vec<Header<'_>> {
    rec.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect()
}

fn append(builder: &mut Builder<'_>, rec: &Rec) -> Result<Option<u32>, Error> {
    let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
    builder.append_with_offset(rec.offset, rec.timestamp, key, value, &headers(rec))
}

fn has_room_for(builder: &Builder<'_>, rec: &Rec) -> bool {
    let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
    builder.has_room_for(rec.timestamp, key, value, &headers(rec))
}

/// The batch of all the records, built in a buffer that grows from nothing.
fn grown(case: &Case) -> Vec<u8> {
    let mut compressors =
        case.host.into_iter().fold(HostCompressors::new(), |all, spec| all.with_level(spec));
    let buffer = GrowingBuffer::default();
    let mut builder =
        MemoryRecordsBuilder::new(buffer, case.options(), &mut compressors, Cpu::detect()).unwrap();
    for rec in &case.recs {
        let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
        builder.append_with_offset(rec.offset, rec.timestamp, key, value, &headers(rec)).unwrap();
    }
    builder.close().unwrap();
    builder.into_buffer().into_vec()
}

/// Most bytes of a record as its version writes it.
fn record_len(magic: Magic, rec: &Rec) -> u64 {
    let len = match magic {
        Magic::V2 => {
            let one = Rec { offset: 0, timestamp: 0, ..rec.clone() };
            // Deltas take 15 bytes at most, and those that are 0 take two.
            BatchBuilder::new(vec![one]).plain_records().len() + 13
        }
        _ => MessageBuilder::new(magic.number(), rec).build().len(),
    };
    len as u64
}

/// What a reader tells of a record that was written like this.
fn expected(magic: Magic, stamp: Option<i64>, rec: &Rec) -> Rec {
    let timestamp = match (magic, stamp) {
        (Magic::V0, _) => -1,
        (_, Some(stamp)) => stamp,
        (_, None) => rec.timestamp,
    };
    Rec { timestamp, ..rec.clone() }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..most),
        (any::<u8>(), 0..most).prop_map(|(byte, n)| vec![byte; n]),
        (0..most).prop_map(|n| b"offset batch record ".iter().copied().cycle().take(n).collect()),
    ]
}

fn field(most: usize) -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![1 => Just(None), 6 => bytes(most).prop_map(Some)]
}

/// Gap before its offset, timestamp, and the rest.
fn record() -> impl Strategy<Value = (i64, Rec)> {
    let timestamp = prop_oneof![
        1 => Just(-1),
        4 => 1_700_000_000_000..1_700_000_100_000i64,
        1 => 0..i64::MAX,
    ];
    let headers = proptest::collection::vec((bytes(10), field(100)), 0..3);
    let gap = prop_oneof![4 => Just(0), 1 => 0..1000i64];
    let value = prop_oneof![9 => field(300), 1 => field(40_000)];
    (gap, timestamp, field(30), value, headers).prop_map(|(gap, timestamp, key, value, headers)| {
        (gap, Rec { offset: 0, timestamp, key, value, headers })
    })
}

#[derive(Debug, Clone)]
struct Case {
    magic: Magic,
    codec: Codec,
    /// With the host's encoder.
    host: Option<CodecSpec>,
    base: i64,
    stamp: Option<i64>,
    producer: bool,
    limit: usize,
    ratio: f32,
    recs: Vec<Rec>,
}

impl Case {
    fn options(&self) -> BuilderOptions {
        let mut options = BuilderOptions::new(self.magic, self.codec)
            .with_base_offset(self.base)
            .with_estimated_compression_ratio(self.ratio)
            .with_write_limit(self.limit);
        if let Some(stamp) = self.stamp {
            options = options.with_timestamps(Timestamps::LogAppendTime(stamp));
        }
        if self.producer {
            let producer =
                ProducerState { producer_id: 4000, producer_epoch: 2, base_sequence: 20 };
            options = options
                .with_producer(producer)
                .with_transactional(true)
                .with_partition_leader_epoch(9);
        }
        options
    }

    fn expected(&self, recs: &[Rec]) -> Vec<Rec> {
        recs.iter().map(|rec| expected(self.magic, self.stamp, rec)).collect()
    }

    /// The same by the kit: the batch, with whatever payload the builder gave it.
    fn by_the_kit(&self, recs: &[Rec], payload: Option<&[u8]>) -> Vec<u8> {
        let magic = self.magic.number();
        let stamped: Vec<Rec> = match (self.magic, self.stamp) {
            (Magic::V1, Some(stamp)) => {
                recs.iter().map(|rec| Rec { timestamp: stamp, ..rec.clone() }).collect()
            }
            _ => recs.to_vec(),
        };
        let bit = if self.stamp.is_some() && self.magic != Magic::V0 { 0x08 } else { 0 };
        let max = recs.iter().map(|rec| rec.timestamp).max().unwrap_or(-1);
        let max = self.stamp.unwrap_or(max);
        match (self.magic, payload) {
            (Magic::V2, _) => {
                let flags = if self.producer { 0x10 } else { 0 };
                let mut batch = BatchBuilder::new(recs.to_vec())
                    .base_offset(self.base)
                    .max_timestamp(max)
                    .flags(flags | i16::from(self.codec.id()) | i16::from(bit));
                if self.producer {
                    batch = batch.producer(4000, 2, 20).leader_epoch(9);
                }
                match payload {
                    Some(payload) => batch.payload(payload.to_vec()).build(),
                    None => batch.build(),
                }
            }
            (_, None) => stamped
                .iter()
                .flat_map(|rec| MessageBuilder::new(magic, rec).attributes(bit).build())
                .collect(),
            (_, Some(payload)) => {
                let wrapper = Rec {
                    offset: recs.last().expect("a record").offset,
                    timestamp: max,
                    ..Rec::default()
                };
                MessageBuilder::new(magic, &wrapper)
                    .value(Some(payload.to_vec()))
                    .attributes(bit | self.codec.id())
                    .build()
            }
        }
    }

    /// The records before compression, by the kit.
    fn plain(&self, recs: &[Rec]) -> Vec<u8> {
        if self.magic == Magic::V2 {
            return BatchBuilder::new(recs.to_vec()).base_offset(self.base).plain_records();
        }
        let (first, bit) = match self.magic {
            Magic::V0 => (0, 0),
            _ => (self.base, if self.stamp.is_some() { 0x08 } else { 0 }),
        };
        recs.iter()
            .flat_map(|rec| {
                let timestamp = self.stamp.unwrap_or(rec.timestamp);
                let rec = Rec { offset: rec.offset - first, timestamp, ..rec.clone() };
                MessageBuilder::new(self.magic.number(), &rec).attributes(bit).build()
            })
            .collect()
    }
}

const HOST: [&str; 13] = [
    "gzip", "gzip:1", "gzip:3", "gzip:9", "snappy", "lz4", "lz4:1", "lz4:12", "zstd", "zstd:-50",
    "zstd:1", "zstd:7", "zstd:13",
];

fn case() -> impl Strategy<Value = Case> {
    let magic = prop_oneof![Just(Magic::V0), Just(Magic::V1), Just(Magic::V2), Just(Magic::V2)];
    let codec = prop_oneof![
        3 => prop_oneof![Just(Codec::None), Just(Codec::Snappy), Just(Codec::Lz4)]
            .prop_map(|codec| (codec, None)),
        4 => proptest::sample::select(&HOST[..]).prop_map(|name| {
            let spec: CodecSpec = name.parse().expect("a spec");
            (spec.codec(), Some(spec))
        }),
    ];
    let base = prop_oneof![Just(0), 0..1i64 << 40];
    let stamp = prop_oneof![3 => Just(None), 1 => (0..i64::MAX).prop_map(Some)];
    let limit = prop_oneof![0..300usize, 300..5000usize, Just(16 << 10), Just(200_000)];
    let ratio = prop_oneof![2 => Just(1.0f32), 2 => 0.05..1.5f32];
    let recs = proptest::collection::vec(record(), 1..40);
    (magic, codec, base, stamp, any::<bool>(), limit, ratio, recs).prop_map(
        |(magic, (codec, host), base, stamp, producer, limit, ratio, recs)| {
            let magic = if codec == Codec::Zstd { Magic::V2 } else { magic };
            let mut next = base;
            let recs = recs
                .into_iter()
                .map(|(gap, mut rec)| {
                    rec.offset = next + gap;
                    next = rec.offset + 1;
                    if magic != Magic::V2 {
                        rec.headers.clear();
                    }
                    rec
                })
                .collect();
            let producer = producer && magic == Magic::V2;
            Case { magic, codec, host, base, stamp, producer, limit, ratio, recs }
        },
    )
}

/// Reads by the slice and by streams of all kinds, and holds the batch against the kit.
fn check(case: &Case, recs: &[Rec], built: &[u8], seed: u64) {
    let mut workspace =
        vec![0; if case.codec == Codec::Zstd { zstd::workspace_len(8 << 20) } else { 0 }];
    let mut window = vec![0; 4 << 20];
    let mut unpacker = Unpacker::new(Builtin::new().with_zstd(&mut workspace), &mut window);
    let whole = read_with(built, &mut unpacker);
    assert!(whole.errors.is_empty());
    for batch in &whole.batches {
        assert_eq!(batch.end.verdict, Ok(()));
    }
    let read: Vec<Rec> = whole.records().cloned().collect();
    assert!(read == case.expected(recs), "they come back");
    for (buffer, window, chunking) in [
        (61, (64 << 10) + 100, Chunking::Random(seed)),
        (1000, 200_000, Chunking::Bytes),
        (1 << 20, 1 << 20, Chunking::Whole),
    ] {
        let mut window = vec![0; window];
        let mut unpacker = Unpacker::new(Builtin::new().with_zstd(&mut workspace), &mut window);
        let mut reader = BatchReader::new(vec![0; buffer], Cpu::detect());
        let stream = stream_with(built, chunking, &mut reader, &mut unpacker);
        assert_same(&whole, &stream, "streamed");
    }
    // And without any code of core's.
    if case.codec == Codec::None {
        assert!(built == case.by_the_kit(recs, None));
        return;
    }
    let header = match case.magic {
        Magic::V0 => 26,
        Magic::V1 => 34,
        Magic::V2 => 61,
    };
    let payload = &built[header..];
    let plain = unpack(case.codec, case.magic.number(), payload).expect("it unpacks");
    assert!(plain == case.plain(recs));
    assert!(built == case.by_the_kit(recs, Some(payload)));
}

/// A record more, but for its offset.
fn another(case: &Case, recs: &[Rec]) -> Rec {
    let offset = recs.last().map_or(case.base, |rec| rec.offset + 1);
    Rec::new(offset, 1_700_000_000_000, b"another", &[0x33; 500])
}

proptest! {
    #![proptest_config(config(150))]

    /// All of the records, in a buffer that is large enough.
    #[test]
    fn records_come_back(case in case(), seed in any::<u64>()) {
        let mut kit = Kit::default();
        let total: u64 = case.recs.iter().map(|rec| record_len(case.magic, rec)).sum();
        let options = case.options();
        let capacity = options.capacity_for(0, total);
        kit.with(case.host, usize::try_from(capacity).unwrap(), options, |builder| {
            let mut builder = builder.unwrap();
            for rec in &case.recs {
                let crc = append(&mut builder, rec).unwrap();
                assert_eq!(crc.is_some(), case.magic != Magic::V2);
            }
            assert_eq!(builder.record_count() as usize, case.recs.len());
            let built = builder.build().unwrap().to_vec();
            if case.host.is_some() {
                assert!(grown(&case) == built, "in a buffer that grows");
            }
            assert_eq!(builder.size_in_bytes(), built.len() as u64);
            let plain = case.plain(&case.recs).len() as u64;
            let header = if case.codec == Codec::None && case.magic != Magic::V2 {
                0
            } else {
                match case.magic {
                    Magic::V0 => 26,
                    Magic::V1 => 34,
                    Magic::V2 => 61,
                }
            };
            assert_eq!(builder.uncompressed_bytes_written(), header + plain);
            check(&case, &case.recs, &built, seed);
        });
    }

    /// As a producer does it: as long as there is room, in a buffer for that. It never is
    /// too small, whatever the ratio that was expected.
    #[test]
    fn capacity_for_the_limit_is_never_too_small(case in case(), seed in any::<u64>()) {
        let mut kit = Kit::default();
        let options = case.options();
        let first = record_len(case.magic, &case.recs[0]);
        let capacity = options.capacity_for(case.limit, first);
        kit.with(case.host, usize::try_from(capacity).unwrap(), options, |builder| {
            let mut builder = builder.unwrap();
            let mut taken = 0;
            // Small ones again and again, until it is full.
            let mut recs = Vec::new();
            let mut next = case.base;
            for rec in case.recs.iter().cycle().take(2000) {
                let rec = Rec { offset: next, ..rec.clone() };
                if !has_room_for(&builder, &rec) {
                    assert!(taken > 0, "the first always has room");
                    if builder.is_full() {
                        break;
                    }
                    continue;
                }
                append(&mut builder, &rec).unwrap();
                next += 1;
                taken += 1;
                recs.push(rec);
            }
            let built = builder.build().unwrap().to_vec();
            assert!(built.len() as u64 <= capacity);
            check(&case, &recs, &built, seed);
        });
    }

    /// In any buffer: what does not fit is told with the builder as it was, and what is in
    /// it can be built.
    #[test]
    fn too_small_a_buffer_leaves_the_builder_as_it_was(
        case in case(),
        capacity in prop_oneof![0..400usize, 400..100_000usize],
        seed in any::<u64>(),
    ) {
        let mut kit = Kit::default();
        let recs = kit.with(case.host, capacity, case.options(), |builder| {
            let mut builder = match builder {
                Ok(builder) => builder,
                Err(error) => {
                    let small = matches!(error.kind(), ErrorKind::BufferTooSmall { .. });
                    assert!(small && capacity < 61);
                    return None;
                }
            };
            let mut recs = Vec::new();
            for rec in &case.recs {
                let state = |builder: &Builder<'_>| {
                    (
                        builder.record_count(),
                        builder.uncompressed_bytes_written(),
                        builder.estimated_bytes_written(),
                        builder.info(),
                        builder.last_offset(),
                    )
                };
                let before = state(&builder);
                match append(&mut builder, rec) {
                    Ok(_) => recs.push(rec.clone()),
                    Err(error) => {
                        let ErrorKind::BufferTooSmall { need, have } = error.kind() else {
                            panic!("{error}");
                        };
                        assert!(need > have && have == capacity as u64);
                        assert_eq!(state(&builder), before);
                    }
                }
            }
            let built = builder.build().unwrap().to_vec();
            assert!(built.len() <= capacity);
            Some((recs, built))
        });
        let Some((recs, built)) = recs else { return Ok(()) };
        if recs.is_empty() {
            assert!(built.is_empty());
            return Ok(());
        }
        check(&case, &recs, &built, seed);
        // Those that were refused left no trace.
        let again = kit.with(case.host, 1 << 22, case.options(), |builder| {
            let mut builder = builder.unwrap();
            for rec in &recs {
                append(&mut builder, rec).unwrap();
            }
            builder.build().unwrap().to_vec()
        });
        assert!(again == built);
    }
}

#[test]
fn a_compressor_is_used_again_after_what_was_given_up() {
    let mut kit = Kit::default();
    let core = [
        (Magic::V0, Codec::Lz4, None),
        (Magic::V1, Codec::Lz4, None),
        (Magic::V2, Codec::Snappy, None),
    ];
    let host = HOST.iter().map(|name| {
        let spec: CodecSpec = name.parse().unwrap();
        (Magic::V2, spec.codec(), Some(spec))
    });
    for (magic, codec, host) in core.into_iter().chain(host) {
        let case = Case {
            magic,
            codec,
            host,
            base: 5,
            stamp: None,
            producer: false,
            limit: 0,
            ratio: 1.0,
            recs: Vec::new(),
        };
        let mut first = None;
        for round in 0..3 {
            kit.with(case.host, 1 << 20, case.options(), |builder| {
                let mut builder = builder.unwrap();
                let mut recs = Vec::new();
                for _ in 0..300 {
                    recs.push(another(&case, &recs));
                    append(&mut builder, &recs[recs.len() - 1]).unwrap();
                }
                if round == 1 {
                    builder.abort();
                    return;
                }
                let built = builder.build().unwrap().to_vec();
                check(&case, &recs, &built, 1);
                assert_eq!(*first.get_or_insert(built.clone()), built, "nothing is left over");
            });
        }
    }
}

/// The messages of a set go in as they stand, and give the wrapper of a broker.
#[test]
fn raw_messages_make_the_same_set() {
    let recs: Vec<Rec> = (0..20).map(|n| Rec::new(7 + 2 * n, n, b"key", b"value")).collect();
    for (number, magic) in [(0, Magic::V0), (1, Magic::V1)] {
        let options = BuilderOptions::new(magic, Codec::Lz4).with_base_offset(7);
        let built = Kit::default().with(None, 1 << 16, options, |builder| {
            let mut builder = builder.unwrap();
            for rec in &recs {
                let entry = MessageBuilder::new(number, rec).build();
                let batch = Batches::new(&entry, Cpu::detect()).next().unwrap().unwrap();
                let crc = builder.append_message_with_offset(rec.offset, &entry).unwrap();
                assert_eq!(crc, batch.header().crc);
            }
            builder.build().unwrap().to_vec()
        });
        let header = if magic == Magic::V0 { 26 } else { 34 };
        let plain = unpack(Codec::Lz4, number, &built[header..]).unwrap();
        assert_eq!(plain, message_set(number, &recs));
    }
}
