//! CRC-32C: core's backends that this machine has, the peers, and inputs.

use std::hint::black_box;
use std::time::Instant;

use logseg_core::Cpu;
use logseg_core::crc32c::{backend, crc32c};

/// Bytes of the inputs, with names.
pub const SIZES: [(usize, &str); 6] = [
    (16, "16"),
    (64, "64"),
    (256, "256"),
    (4 << 10, "4KiB"),
    (16 << 10, "16KiB"),
    (1 << 20, "1MiB"),
];

/// What computes a sum.
#[derive(Debug, Clone, Copy)]
pub enum Summer {
    /// The core, with a token.
    Core(Cpu),
    /// The `crc32c` crate.
    Crc32c,
    /// The `crc-fast` crate.
    CrcFast,
}

impl Summer {
    /// Every backend of the core once, the best first, then the peers.
    pub fn all() -> Vec<Self> {
        let mut cpus: Vec<_> = Cpu::detect().tiers().collect();
        cpus.dedup_by_key(|cpu| backend(*cpu));
        cpus.into_iter().map(Self::Core).chain([Self::Crc32c, Self::CrcFast]).collect()
    }

    /// As the groups are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core(cpu) => backend(cpu),
            Self::Crc32c => "peer-crc32c",
            Self::CrcFast => "peer-crc-fast",
        }
    }

    /// The sum of `bytes`.
    #[inline]
    pub fn sum(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Core(cpu) => crc32c(cpu, bytes),
            Self::Crc32c => ::crc32c::crc32c(bytes),
            Self::CrcFast => crc_fast::crc32_iscsi(bytes),
        }
    }
}

/// Bytes without a pattern. All agree on their sums, at every size.
///
/// # Panics
///
/// If they do not.
#[must_use]
pub fn input(len: usize) -> Vec<u8> {
    let bytes: Vec<u8> =
        (0..len as u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    for (size, name) in SIZES {
        let bytes = &bytes[..size];
        for summer in Summer::all() {
            assert_eq!(summer.sum(bytes), ::crc32c::crc32c(bytes), "{} of {name}", summer.name());
        }
    }
    bytes
}

/// Prints GB/s, the best of some rounds that take turns: of inputs in cache, one call
/// after the other without waiting for the sum, and of pieces of 16 KiB, each read once.
pub fn print(rounds: u32) {
    const PIECE: usize = 16 << 10;
    let bytes = input(64 << 20);
    let summers = Summer::all();
    // Aligned to a cache line, and 21 bytes behind, as the sum of a first batch begins.
    for skip in [0, 21] {
        let bytes = &bytes[bytes.as_ptr().align_offset(64) + skip..];
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
