//! A segment of 64 MiB of each codec: the slice source, and the streaming source that
//! is given pieces of 64 KiB, with buffers that hold a batch and ones that do not.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::payload::zstd_workspace;
use logseg_bench::segment::{Segment, records, slice, stream};
use logseg_core::{Builtin, Codec};

const LEN: usize = 64 << 20;

fn segments(criterion: &mut Criterion) {
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let mut window = vec![0; 256 << 10];
    let mut buffer = vec![0; 256 << 10];
    for codec in Codec::ALL {
        for (segment, suffix, len) in [
            (Segment::of(codec, LEN), "", 256 << 10),
            // Joined batches do not fit this buffer: they pass through it.
            (Segment::large(codec, LEN), "-passing", 64 << 10),
        ] {
            let Segment { bytes, records: count } = segment;
            let seen = slice(&bytes, &mut builtin, &mut window);
            assert_eq!(seen.records, count);
            assert_eq!(stream(&bytes, &mut builtin, &mut buffer[..len], &mut window), seen);
            let mut group = criterion.benchmark_group(format!("segment/{codec}{suffix}"));
            group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(10);
            group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
            if codec == Codec::None {
                assert_eq!(records(&bytes), seen);
                group.bench_function("records", |b| b.iter(|| records(&bytes)));
            }
            group.bench_function("slice", |b| {
                b.iter(|| slice(&bytes, &mut builtin, &mut window));
            });
            group.bench_function("stream", |b| {
                b.iter(|| stream(&bytes, &mut builtin, &mut buffer[..len], &mut window));
            });
            group.finish();
        }
    }
}

criterion_group!(benches, segments);
criterion_main!(benches);
