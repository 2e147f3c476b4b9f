//! Core's decoders and `std-host`'s against bare libraries, on the same payloads: 1 MiB of
//! records sections, cut to batches of one size.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::payload::{
    Format, SMALL, Sides, hosted, ours, sections, through, zstd_workspace,
};

fn codecs(criterion: &mut Criterion) {
    let section = sections();
    let mut workspace = zstd_workspace();
    let mut sides = Sides::new(&mut workspace, section.len());
    for format in Format::ALL {
        for (size, name) in [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB")] {
            let payloads = sides.payloads(format, &section, size);
            let Sides { builtin, host, plain, libraries, out } = &mut sides;
            let mut group = criterion.benchmark_group(format!("codec/{}/{name}", format.name()));
            group.throughput(Throughput::Bytes(section.len() as u64)).sample_size(10);
            group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
            group.bench_function("core", |b| {
                b.iter(|| {
                    payloads
                        .iter()
                        .map(|payload| ours(builtin, format, payload, out))
                        .sum::<usize>()
                });
            });
            group.bench_function("host", |b| {
                b.iter(|| {
                    payloads
                        .iter()
                        .map(|payload| hosted(host, format, payload, plain))
                        .sum::<usize>()
                });
            });
            for &library in format.libraries() {
                group.bench_function(library.name(), |b| {
                    b.iter(|| {
                        payloads
                            .iter()
                            .map(|payload| libraries.decode(library, format, payload, out))
                            .sum::<usize>()
                    });
                });
            }
            if size == section.len() {
                group.bench_function("core-128KiB", |b| {
                    b.iter(|| through(builtin, format, &payloads[0], &mut out[..SMALL]));
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, codecs);
criterion_main!(benches);
