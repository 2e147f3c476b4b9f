//! Prints the ratios that the marks are about, from interleaved rounds, best of each:
//! `ratios codec|segment|crc32c [ROUNDS] [NAME]`. On a machine that does other work as well,
//! these are steadier than what criterion gives, which times one side after the other.

use std::hint::black_box;
use std::time::{Duration, Instant};

use logseg_bench::payload::{Format, Peer, ours, sections, through, zstd_workspace};
use logseg_bench::segment::{Seen, Segment, records, slice, stream};
use logseg_core::{Builtin, Codec};

fn time<T>(best: &mut Duration, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let answer = black_box(run());
    *best = start.elapsed().min(*best);
    answer
}

fn codecs(rounds: u32, only: Option<&str>) {
    let plain = sections();
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let mut peer = Peer::default();
    let mut out = vec![0; plain.len() + (4 << 20)];
    let speed = |best: Duration| plain.len() as f64 / best.as_secs_f64() / 1e6;
    println!("codec       size     core MB/s  peer MB/s  ratio  window of 128 KiB");
    for format in Format::ALL.into_iter().filter(|f| only.is_none_or(|only| only == f.name())) {
        for (size, name) in [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB")] {
            let payloads: Vec<_> = plain.chunks(size).map(|part| format.pack(part)).collect();
            for (payload, part) in payloads.iter().zip(plain.chunks(size)) {
                let n = ours(&mut builtin, format, payload, &mut out);
                assert!(&out[..n] == part, "{format:?}, {name}");
                out[..part.len()].fill(0);
                let n = peer.decode(format, payload, &mut out);
                assert!(&out[..n] == part, "{format:?}, {name}");
                out[..part.len()].fill(0);
            }
            let [mut core, mut other, mut small] = [Duration::MAX; 3];
            for _ in 0..rounds {
                time(&mut core, || {
                    for payload in &payloads {
                        ours(&mut builtin, format, payload, &mut out);
                    }
                });
                time(&mut other, || {
                    for payload in &payloads {
                        peer.decode(format, payload, &mut out);
                    }
                });
                time(&mut small, || {
                    for payload in &payloads {
                        through(&mut builtin, format, payload, &mut out[..128 << 10]);
                    }
                });
            }
            println!(
                "{:<11} {name:<7} {:>9.0} {:>10.0} {:>7.2} {:>7.2}",
                format.name(),
                speed(core),
                speed(other),
                other.as_secs_f64() / core.as_secs_f64(),
                other.as_secs_f64() / small.as_secs_f64(),
            );
        }
    }
}

fn segments(rounds: u32, only: Option<&str>) {
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let (mut window, mut buffer) = (vec![0; 256 << 10], vec![0; 256 << 10]);
    println!("codec  batches  records    ns/record slice stream  ratio");
    for codec in Codec::ALL.into_iter().filter(|c| only.is_none_or(|only| only == c.name())) {
        for (segment, kind, len) in [
            (Segment::of(codec, 64 << 20), "whole", 256 << 10),
            (Segment::large(codec, 64 << 20), "passing", 64 << 10),
        ] {
            let [mut sliced, mut streamed, mut walked] = [Duration::MAX; 3];
            let mut seen = [Seen::default(); 3];
            for _ in 0..rounds {
                let bytes = &segment.bytes;
                if codec == Codec::None {
                    seen[2] = time(&mut walked, || records(bytes));
                }
                seen[0] = time(&mut sliced, || slice(bytes, &mut builtin, &mut window));
                seen[1] = time(&mut streamed, || {
                    stream(bytes, &mut builtin, &mut buffer[..len], &mut window)
                });
            }
            assert_eq!(seen[0].records, segment.records);
            assert_eq!(seen[0], seen[1]);
            let each = |best: Duration| best.as_nanos() as f64 / segment.records as f64;
            print!(
                "{:<6} {kind:<8} {:>8} {:>10.1} {:>10.1} {:>7.2}",
                codec.name(),
                segment.records,
                each(sliced),
                each(streamed),
                sliced.as_secs_f64() / streamed.as_secs_f64(),
            );
            if codec == Codec::None {
                assert_eq!(seen[0], seen[2]);
                let ratio = walked.as_secs_f64() / streamed.as_secs_f64();
                print!("   Batch::records {:.1}: {ratio:.2}", each(walked));
            }
            println!();
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rounds = args.get(1).map_or(10, |rounds| rounds.parse().expect("a number of rounds"));
    let only = args.get(2).map(String::as_str);
    match args.first().map(String::as_str) {
        Some("codec") => codecs(rounds, only),
        Some("segment") => segments(rounds, only),
        Some("crc32c") => logseg_bench::crc::print(rounds),
        _ => panic!("usage: ratios codec|segment|crc32c [ROUNDS] [NAME]"),
    }
}
