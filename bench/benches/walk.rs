//! The walk of uncompressed batches that are in the cache, without checksums, and what
//! peers do with them; `kafka-protocol` cannot do without, so its checksums are timed
//! on their own as well.

use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::peers::{kafka_protocol, kafka_protocol_headers, rskafka_unchecked};
use logseg_bench::ratios::walk::LEN;
use logseg_bench::segment::{Mix, Segment, records_unchecked};
use logseg_core::Codec;

fn walks(criterion: &mut Criterion) {
    for mix in Mix::ALL {
        let segment = Segment::grouped(mix, Codec::None, mix.batch(), LEN);
        let (bytes, shared) = (&segment.bytes, Bytes::copy_from_slice(&segment.bytes));
        let want = records_unchecked(bytes);
        assert_eq!(want.records, segment.records);
        assert_eq!(kafka_protocol(&shared), want);
        assert_eq!(kafka_protocol_headers(&shared), want.records);
        assert_eq!(rskafka_unchecked(bytes), want);
        let mut group = criterion.benchmark_group(format!("walk/{}", mix.name()));
        group.throughput(Throughput::Elements(want.records)).sample_size(10);
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        group.bench_function("records", |b| b.iter(|| records_unchecked(bytes)));
        group.bench_function("kafka-protocol", |b| b.iter(|| kafka_protocol(&shared)));
        group.bench_function("kafka-protocol-headers", |b| {
            b.iter(|| kafka_protocol_headers(&shared));
        });
        group.bench_function("rskafka", |b| b.iter(|| rskafka_unchecked(bytes)));
        group.finish();
    }
}

criterion_group!(benches, walks);
criterion_main!(benches);
