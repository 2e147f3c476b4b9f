//! The streaming source against the slice source.

use std::time::Duration;

use logseg_core::{Builtin, Codec};

use super::time;
use crate::payload::zstd_workspace;
use crate::segment::{Segment, records, slice, stream};

/// Prints a line for each codec, with batches that fit the reader's buffer and with ones
/// that pass through it.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let (mut window, mut buffer) = (vec![0; 256 << 10], vec![0; 256 << 10]);
    println!("codec  batches  records    ns/record slice stream  ratio  mark: 0.7");
    for codec in Codec::ALL.into_iter().filter(|c| only.is_none_or(|only| only == c.name())) {
        for (segment, kind, len) in [
            (Segment::of(codec, 64 << 20), "whole", 256 << 10),
            (Segment::large(codec, 64 << 20), "passing", 64 << 10),
        ] {
            let bytes = &segment.bytes;
            let want = slice(bytes, &mut builtin, &mut window);
            assert_eq!(want.records, segment.records);
            assert_eq!(stream(bytes, &mut builtin, &mut buffer[..len], &mut window), want);
            let [mut sliced, mut streamed, mut walked] = [Duration::MAX; 3];
            for _ in 0..rounds {
                if codec == Codec::None {
                    assert_eq!(time(&mut walked, || records(bytes)), want);
                }
                time(&mut sliced, || slice(bytes, &mut builtin, &mut window));
                time(&mut streamed, || {
                    stream(bytes, &mut builtin, &mut buffer[..len], &mut window)
                });
            }
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
                let ratio = walked.as_secs_f64() / streamed.as_secs_f64();
                print!("   Batch::records {:.1}: {ratio:.2}", each(walked));
            }
            println!();
        }
    }
}
