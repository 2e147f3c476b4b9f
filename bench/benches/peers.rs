//! Whole segments, checksums checked: core, `std-host`'s decoders, and what Rust programs
//! read batches with today.

use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::payload::zstd_workspace;
use logseg_bench::peers::{kafka_protocol, rskafka};
use logseg_bench::ratios::peers::{LEN, SINGLE};
use logseg_bench::segment::{Mix, Segment, hosted, records, slice};
use logseg_core::{Builtin, Codec};
use std_host::codecs::{HostCodecs, Plain};

fn peers(criterion: &mut Criterion) {
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let mut window = vec![0; 256 << 10];
    let (mut host, mut plain) = (HostCodecs::default(), Plain::default());
    let whole = Codec::ALL.map(|codec| (codec.name(), codec, 48, LEN));
    for (name, codec, each, len) in whole.into_iter().chain([("single", Codec::Zstd, 1, SINGLE)]) {
        let Segment { bytes, records: count } = Segment::grouped(Mix::Mid, codec, each, len);
        let shared = Bytes::copy_from_slice(&bytes);
        let want = slice(&bytes, &mut builtin, &mut window);
        assert_eq!(want.records, count);
        assert_eq!(kafka_protocol(&shared), want);
        let mut group = criterion.benchmark_group(format!("peers/{name}"));
        group.throughput(Throughput::Elements(count)).sample_size(10);
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        group.bench_function("slice", |b| b.iter(|| slice(&bytes, &mut builtin, &mut window)));
        if codec == Codec::None {
            assert_eq!(records(&bytes), want);
            group.bench_function("records", |b| b.iter(|| records(&bytes)));
        } else {
            assert_eq!(hosted(&bytes, &mut host, &mut plain), want);
            group.bench_function("host", |b| b.iter(|| hosted(&bytes, &mut host, &mut plain)));
        }
        group.bench_function("kafka-protocol", |b| b.iter(|| kafka_protocol(&shared)));
        if matches!(codec, Codec::None | Codec::Snappy) {
            assert_eq!(rskafka(&bytes), want);
            group.bench_function("rskafka", |b| b.iter(|| rskafka(&bytes)));
        }
        group.finish();
    }
}

criterion_group!(benches, peers);
criterion_main!(benches);
