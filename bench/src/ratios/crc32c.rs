//! CRC-32C: core's backends and the peers.

use std::hint::black_box;
use std::time::Instant;

use crate::crc::{SIZES, Summer, input};

/// Prints GB/s, the best of some rounds that take turns: of inputs in cache, one call
/// after the other without waiting for the sum, and of pieces of 16 KiB, each read once.
///
/// # Panics
///
/// If an answer is wrong.
pub fn run(rounds: u32, _: Option<&str>) {
    const PIECE: usize = 16 << 10;
    let bytes = input(64 << 20);
    let summers = Summer::all();
    // Aligned to a cache line, and 21 bytes behind, as the sum of a first batch begins.
    for skip in [0, 21] {
        let bytes = &bytes[bytes.as_ptr().align_offset(64) + skip..];
        for input in SIZES.iter().map(|&(size, _)| &bytes[..size]).chain(bytes.chunks_exact(PIECE))
        {
            let want = ::crc32c::crc32c(input);
            assert!(summers.iter().all(|summer| summer.sum(input) == want));
        }
        let mut best = vec![[f64::MAX; SIZES.len() + 1]; summers.len()];
        for _ in 0..rounds {
            for (at, (size, _)) in SIZES.into_iter().enumerate() {
                let input = &bytes[..size];
                let repeats = (200_000 / size).max(1);
                // Short turns, of which some are not interrupted; the first ones bring the
                // input into the cache, from which the pieces below push it out.
                for _ in 0..8 {
                    for (summer, best) in summers.iter().zip(&mut best) {
                        let start = Instant::now();
                        for _ in 0..repeats {
                            black_box(summer.sum(black_box(input)));
                        }
                        let each = start.elapsed().as_secs_f64() / (repeats * size) as f64;
                        best[at] = best[at].min(each);
                    }
                }
            }
            for (summer, best) in summers.iter().zip(&mut best) {
                let start = Instant::now();
                let pieces = bytes.chunks_exact(PIECE);
                let read = pieces.len() * PIECE;
                pieces.for_each(|piece| _ = black_box(summer.sum(piece)));
                let each = start.elapsed().as_secs_f64() / read as f64;
                best[SIZES.len()] = best[SIZES.len()].min(each);
            }
        }
        print!("GB/s, from byte {skip:<2} of 64");
        SIZES.iter().for_each(|(_, name)| print!("{name:>8}"));
        println!("    once");
        for (summer, best) in summers.iter().zip(&best) {
            print!("{:<24}", summer.name());
            best.iter().for_each(|each| print!("{:>8.2}", 1e-9 / each));
            println!();
        }
    }
}
