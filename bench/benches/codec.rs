//! Core's decoders against the libraries that they wrap or replace, on the same
//! payloads: 1 MiB of records sections, cut to batches of one size.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::payload::{Format, Peer, ours, sections, through, zstd_workspace};
use logseg_core::Builtin;

/// Least window that holds the history of every codec, twice.
const SMALL: usize = 128 << 10;

fn codecs(criterion: &mut Criterion) {
    let plain = sections();
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let mut peer = Peer::default();
    let mut out = vec![0; plain.len() + (4 << 20)];
    for format in Format::ALL {
        for (size, name) in [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB")] {
            let payloads: Vec<_> = plain.chunks(size).map(|part| format.pack(part)).collect();
            for (payload, part) in payloads.iter().zip(plain.chunks(size)) {
                // Not `assert_eq`: it would print a megabyte.
                let n = ours(&mut builtin, format, payload, &mut out);
                assert!(&out[..n] == part, "core: {format:?}, {name}");
                out[..part.len()].fill(0);
                let n = peer.decode(format, payload, &mut out);
                assert!(&out[..n] == part, "peer: {format:?}, {name}");
                out[..part.len()].fill(0);
                assert_eq!(through(&mut builtin, format, payload, &mut out[..SMALL]), part.len());
            }
            let mut group = criterion.benchmark_group(format!("codec/{}/{name}", format.name()));
            group.throughput(Throughput::Bytes(plain.len() as u64)).sample_size(10);
            group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
            group.bench_function("core", |b| {
                b.iter(|| {
                    payloads
                        .iter()
                        .map(|payload| ours(&mut builtin, format, payload, &mut out))
                        .sum::<usize>()
                });
            });
            group.bench_function("peer", |b| {
                b.iter(|| {
                    payloads
                        .iter()
                        .map(|payload| peer.decode(format, payload, &mut out))
                        .sum::<usize>()
                });
            });
            if size == plain.len() {
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
