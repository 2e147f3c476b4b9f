//! Core's decoders and `std-host`'s against bare libraries, on the same payloads: 1 MiB of records sections, cut to batches of one size.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::payload::{Format, Libraries, hosted, ours, sections, through, zstd_workspace};
use logseg_core::Builtin;
use std_host::codecs::{HostCodecs, Plain};

/// Least window that holds the history of every codec, twice.
const SMALL: usize = 128 << 10;

fn codecs(criterion: &mut Criterion) {
    let section = sections();
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let (mut host, mut plain) = (HostCodecs::default(), Plain::default());
    let mut libraries = Libraries::default();
    let mut out = vec![0; section.len() + (4 << 20)];
    for format in Format::ALL {
        for (size, name) in [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB")] {
            let payloads: Vec<_> = section.chunks(size).map(|part| format.pack(part)).collect();
            for (payload, part) in payloads.iter().zip(section.chunks(size)) {
                // Not `assert_eq`: it would print a megabyte.
                let n = ours(&mut builtin, format, payload, &mut out);
                assert!(&out[..n] == part, "core: {format:?}, {name}");
                hosted(&mut host, format, payload, &mut plain);
                assert!(plain.bytes() == part, "host: {format:?}, {name}");
                for &library in format.libraries() {
                    out[..part.len()].fill(0);
                    let n = libraries.decode(library, format, payload, &mut out);
                    assert!(&out[..n] == part, "{library:?}: {format:?}, {name}");
                }
                out[..part.len()].fill(0);
                assert_eq!(through(&mut builtin, format, payload, &mut out[..SMALL]), part.len());
            }
            let mut group = criterion.benchmark_group(format!("codec/{}/{name}", format.name()));
            group.throughput(Throughput::Bytes(section.len() as u64)).sample_size(10);
            group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
            group.bench_function("core", |b| {
                b.iter(|| {
                    payloads
                        .iter()
                        .map(|payload| ours(&mut builtin, format, payload, &mut out))
                        .sum::<usize>()
                });
            });
            group.bench_function("host", |b| {
                b.iter(|| {
                    payloads
                        .iter()
                        .map(|payload| hosted(&mut host, format, payload, &mut plain))
                        .sum::<usize>()
                });
            });
            for &library in format.libraries() {
                group.bench_function(library.name(), |b| {
                    b.iter(|| {
                        payloads
                            .iter()
                            .map(|payload| libraries.decode(library, format, payload, &mut out))
                            .sum::<usize>()
                    });
                });
            }
            if size == section.len() {
                group.bench_function("core-128KiB", |b| {
                    b.iter(|| through(&mut builtin, format, &payloads[0], &mut out[..SMALL]));
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, codecs);
criterion_main!(benches);
