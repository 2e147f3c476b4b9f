//! Decoders of record prefixes.

use std::hint::black_box;
use std::time::Duration;

use super::time;
use crate::prefix::{MIXES, Way, backends, mix, starts};

/// Passes over a mix at a time.
const PASSES: u32 = 3;

/// Prints a line for each mix and backend.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    println!("ns a record, times the first; mark: 1.5   chained         at known starts");
    for name in MIXES.into_iter().filter(|name| only.is_none_or(|only| only == *name)) {
        let (section, backends) = (mix(name), backends());
        let starts = starts(&section);
        let ways = [Way::Chained, Way::At(&starts)];
        let want = backends[0].1(&section, Way::Chained);
        for (backend, sums) in &backends {
            for way in ways {
                assert_eq!(sums(&section, way), want, "{backend}, {name}");
            }
        }
        let mut best = vec![[Duration::MAX; 2]; backends.len()];
        for _ in 0..rounds * 4 {
            for ((_, sums), best) in backends.iter().zip(&mut best) {
                for (way, best) in ways.into_iter().zip(best) {
                    time(best, || {
                        for _ in 0..PASSES {
                            black_box(sums(black_box(&section), way));
                        }
                    });
                }
            }
        }
        for ((backend, _), times) in backends.iter().zip(&best) {
            print!("{name:<20} {backend:<12}");
            for (time, first) in times.iter().zip(best[0]) {
                let each = time.as_nanos() as f64 / (want[0] as f64 * f64::from(PASSES));
                let ratio = first.as_secs_f64() / time.as_secs_f64();
                print!("     {each:>7.2} {ratio:>6.2}");
            }
            println!();
        }
    }
}
