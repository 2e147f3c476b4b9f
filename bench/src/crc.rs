//! CRC-32C: core's backends that this machine has, the peers, and inputs.

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
