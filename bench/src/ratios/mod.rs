//! The modes of the `ratios` program, one a file. All of them time their sides in
//! interleaved rounds and take the best of each, and have every answer asserted first.

pub mod build;
pub mod codec;
pub mod crc32c;
pub mod peers;
pub mod prefix;
pub mod segment;
pub mod walk;

use std::fmt::Debug;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs it, and keeps the time if it is better.
pub fn time<T>(best: &mut Duration, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let answer = black_box(run());
    *best = start.elapsed().min(*best);
    answer
}

/// The best time of each side for one pass. A side goes over its data `passes` times in
/// a row, so that with many of them it finds it in its cache.
fn race<T: PartialEq + Debug, const N: usize>(
    rounds: u32,
    passes: u32,
    want: &T,
    mut sides: [&mut dyn FnMut() -> T; N],
) -> [Duration; N] {
    for (at, side) in sides.iter_mut().enumerate() {
        assert_eq!(side(), *want, "side {at}");
    }
    let mut best = [Duration::MAX; N];
    for _ in 0..rounds {
        for (side, best) in sides.iter_mut().zip(&mut best) {
            time(best, || {
                for _ in 0..passes {
                    black_box(side());
                }
            });
        }
    }
    best.map(|best| best / passes)
}

/// A line of a table: ours, a peer, nanoseconds a record, how many times as fast ours is,
/// and what it should be.
fn row(
    what: &str,
    records: u64,
    (ours, our_time): (&str, Duration),
    (peer, peer_time): (&str, Duration),
    mark: &str,
) {
    let each = |time: Duration| time.as_nanos() as f64 / records as f64;
    println!(
        "{what:<16} {ours:<14} {:>9.1}  {peer:<16} {:>9.1} {:>7.2}  {mark}",
        each(our_time),
        each(peer_time),
        peer_time.as_secs_f64() / our_time.as_secs_f64(),
    );
}

/// What is above such lines.
fn head(what: &str) {
    println!("{what:<16} ours           ns/record  peer             ns/record   ratio  mark");
}
