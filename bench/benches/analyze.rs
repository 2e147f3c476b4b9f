//! `analyze` of every batch against the bare library calls on the same batches.
//! Both must come to the same sizes before either is timed.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::{Bare, batches, corpus};
use logseg_core::{BatchHeader, Limits};
use std_host::codec_spec;
use std_host::measure::Measurer;

fn analyze(criterion: &mut Criterion) {
    let specs = codec_spec::parse_list("gzip,snappy,lz4,zstd").expect("the default list");
    for name in ["birdstrikes-mixed", "flights-zstd", "webhooks-lz4"] {
        let batches = batches(&corpus(&format!("{name}.log")));
        let mut measurer = Measurer::new(&specs, Limits::default(), false);
        let mut bare = Bare::default();
        let mut measure = |batch: &[u8]| {
            let header = BatchHeader::parse(batch, 0).expect("a header");
            let figures = measurer.measure(header, batch).expect("a good batch");
            [0, 1, 2, 3].map(|codec| figures.compressed[codec].bytes)
        };
        for batch in &batches {
            assert_eq!(measure(batch), bare.run(batch));
        }
        let mut group = criterion.benchmark_group(format!("analyze/{name}"));
        let bytes = batches.iter().map(|batch| batch.len() as u64).sum();
        group.throughput(Throughput::Bytes(bytes)).sample_size(10);
        group.bench_function("std-host", |b| {
            b.iter(|| batches.iter().map(|batch| measure(batch)[0]).sum::<u64>());
        });
        group.bench_function("bare", |b| {
            b.iter(|| batches.iter().map(|batch| bare.run(batch)[0]).sum::<u64>());
        });
        group.finish();
    }
}

criterion_group!(benches, analyze);
criterion_main!(benches);
