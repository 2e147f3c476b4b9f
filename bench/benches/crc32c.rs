//! CRC-32C: every backend that the machine has, and the `crc32c` crate.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use logseg_core::{Cpu, crc32c::crc32c};

fn checksums(criterion: &mut Criterion) {
    let bytes: Vec<u8> =
        (0..1u32 << 20).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    for (backend, cpu) in [("table", Cpu::scalar()), ("detected", Cpu::detect())] {
        let mut group = criterion.benchmark_group(format!("crc32c/{backend}"));
        for size in [64, 256, 16 << 10, 1 << 20] {
            let bytes = &bytes[..size];
            assert_eq!(crc32c(cpu, bytes), ::crc32c::crc32c(bytes));
            group.throughput(Throughput::Bytes(size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |b| {
                b.iter(|| crc32c(cpu, bytes))
            });
        }
        group.finish();
    }
    let mut group = criterion.benchmark_group("crc32c/peer");
    for size in [64, 256, 16 << 10, 1 << 20] {
        let bytes = &bytes[..size];
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| ::crc32c::crc32c(bytes))
        });
    }
    group.finish();
}

criterion_group!(benches, checksums);
criterion_main!(benches);
