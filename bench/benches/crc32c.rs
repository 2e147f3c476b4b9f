//! CRC-32C: every backend that the machine has, the `crc32c` crate and `crc-fast`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::crc::{SIZES, Summer, input};

fn checksums(criterion: &mut Criterion) {
    let bytes = input(1 << 20);
    for summer in Summer::all() {
        let mut group = criterion.benchmark_group(format!("crc32c/{}", summer.name()));
        for (size, name) in SIZES {
            let bytes = &bytes[..size];
            group.throughput(Throughput::Bytes(size as u64));
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| summer.sum(bytes))
            });
        }
        group.finish();
    }
}

criterion_group!(benches, checksums);
criterion_main!(benches);
