//! Prints the ratios that the marks are about, from interleaved rounds, best of each:
//! `ratios MODE [ROUNDS] [NAME]`. On a machine that does other work as well, these are
//! steadier than what criterion gives, which times one side after the other.

use logseg_bench::ratios::{build, codec, crc32c, peers, prefix, segment, walk};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rounds = args.get(1).map_or(10, |rounds| rounds.parse().expect("a number of rounds"));
    let only = args.get(2).map(String::as_str);
    let run = match args.first().map(String::as_str) {
        Some("build") => build::run,
        Some("codec") => codec::run,
        Some("crc32c") => crc32c::run,
        Some("peers") => peers::run,
        Some("prefix") => prefix::run,
        Some("segment") => segment::run,
        Some("walk") => walk::run,
        _ => panic!("usage: ratios build|codec|crc32c|peers|prefix|segment|walk [ROUNDS] [NAME]"),
    };
    run(rounds, only);
}
