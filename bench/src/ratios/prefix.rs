//! Decoders of record prefixes.

use std::hint::black_box;
use std::time::Duration;

use super::time;
use crate::prefix::{MIXES, backends, mix};

/// Passes over a mix at a time.
const PASSES: u32 = 10;

/// Prints a line for each mix and backend.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    println!("mix                backend      ns/record  times the first; mark: 1.5");
    for name in MIXES.into_iter().filter(|name| only.is_none_or(|only| only == *name)) {
        let (section, backends) = (mix(name), backends());
        let want = backends[0].1(&section);
        for (backend, sums) in &backends {
            assert_eq!(sums(&section), want, "{backend}, {name}");
        }
        let mut best = vec![Duration::MAX; backends.len()];
        for _ in 0..rounds {
            for ((_, sums), best) in backends.iter().zip(&mut best) {
                time(best, || {
                    for _ in 0..PASSES {
                        black_box(sums(black_box(&section)));
                    }
                });
            }
        }
        for ((backend, _), time) in backends.iter().zip(&best) {
            let each = time.as_nanos() as f64 / (want[0] as f64 * f64::from(PASSES));
            let ratio = best[0].as_secs_f64() / time.as_secs_f64();
            println!("{name:<18} {backend:<12} {each:>9.2} {ratio:>7.2}");
        }
    }
}
