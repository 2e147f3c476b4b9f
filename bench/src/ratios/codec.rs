//! Core's decoders and `std-host`'s against bare libraries.

use std::time::Duration;

use logseg_core::Builtin;
use std_host::codecs::{HostCodecs, Plain};

use super::time;
use crate::payload::{Format, Libraries, hosted, ours, sections, through, zstd_workspace};

/// Prints a line for each format and size.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    let section = sections();
    let mut workspace = zstd_workspace();
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let (mut host, mut plain, mut libraries) =
        (HostCodecs::default(), Plain::default(), Libraries::default());
    let mut out = vec![0; section.len() + (4 << 20)];
    let speed = |best: Duration| section.len() as f64 / best.as_secs_f64() / 1e6;
    println!("MB/s, and core against each library; mark: 0.8 of the first one");
    println!("codec       size      core  128 KiB   host");
    for format in Format::ALL.into_iter().filter(|f| only.is_none_or(|only| only == f.name())) {
        for (size, name) in [(4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB")] {
            let payloads: Vec<_> = section.chunks(size).map(|part| format.pack(part)).collect();
            for (payload, part) in payloads.iter().zip(section.chunks(size)) {
                let n = ours(&mut builtin, format, payload, &mut out);
                assert!(&out[..n] == part, "{format:?}, {name}");
                let small = through(&mut builtin, format, payload, &mut out[..128 << 10]);
                assert_eq!(small, part.len(), "{format:?}, {name}");
                hosted(&mut host, format, payload, &mut plain);
                assert!(plain.bytes() == part, "{format:?}, {name}");
                for &library in format.libraries() {
                    out[..part.len()].fill(0);
                    let n = libraries.decode(library, format, payload, &mut out);
                    assert!(&out[..n] == part, "{library:?}, {format:?}, {name}");
                }
                out[..part.len()].fill(0);
            }
            let [mut core, mut small, mut hosts] = [Duration::MAX; 3];
            let mut others = vec![Duration::MAX; format.libraries().len()];
            for _ in 0..rounds {
                time(&mut core, || {
                    for payload in &payloads {
                        ours(&mut builtin, format, payload, &mut out);
                    }
                });
                time(&mut small, || {
                    for payload in &payloads {
                        through(&mut builtin, format, payload, &mut out[..128 << 10]);
                    }
                });
                time(&mut hosts, || {
                    for payload in &payloads {
                        hosted(&mut host, format, payload, &mut plain);
                    }
                });
                for (&library, other) in format.libraries().iter().zip(&mut others) {
                    time(other, || {
                        for payload in &payloads {
                            libraries.decode(library, format, payload, &mut out);
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
