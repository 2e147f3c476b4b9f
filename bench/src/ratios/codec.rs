//! Core's decoders and `std-host`'s against bare libraries.

use std::time::Duration;

use super::time;
use crate::payload::{Format, SMALL, Sides, hosted, ours, sections, through, zstd_workspace};

/// Prints a line for each format and size.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    let section = sections();
    let mut workspace = zstd_workspace();
    let mut sides = Sides::new(&mut workspace, section.len());
    let speed = |best: Duration| section.len() as f64 / best.as_secs_f64() / 1e6;
    println!("MB/s, and core against each library; mark: 0.8 of the first one");
    println!("codec       size      core  128 KiB   host");
    for format in Format::ALL.into_iter().filter(|f| only.is_none_or(|only| only == f.name())) {
        for (size, name) in [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB")] {
            let payloads = sides.payloads(format, &section, size);
            let Sides { builtin, host, plain, libraries, out } = &mut sides;
            let [mut core, mut small, mut hosts] = [Duration::MAX; 3];
            let mut others = vec![Duration::MAX; format.libraries().len()];
            for _ in 0..rounds {
                time(&mut core, || {
                    for payload in &payloads {
                        ours(builtin, format, payload, out);
                    }
                });
                time(&mut small, || {
                    for payload in &payloads {
                        through(builtin, format, payload, &mut out[..SMALL]);
                    }
                });
                time(&mut hosts, || {
                    for payload in &payloads {
                        hosted(host, format, payload, plain);
                    }
                });
                for (&library, other) in format.libraries().iter().zip(&mut others) {
                    time(other, || {
                        for payload in &payloads {
                            libraries.decode(library, format, payload, out);
                        }
                    });
                }
            }
            let [c, s, h] = [core, small, hosts].map(speed);
            print!("{:<11} {name:<6} {c:>7.0} {s:>8.0} {h:>6.0}", format.name());
            for (library, other) in format.libraries().iter().zip(others) {
                print!("  {} {:.0}: {:.2}", library.name(), speed(other), c / speed(other));
            }
            println!();
        }
    }
}
