//! The only unsafe code of the crate, one backend a file.
//!
//! Every backend of an operation computes the same answer as `scalar`; the
//! tests below run on each one that the machine has.
#![allow(unsafe_code)]

#[cfg(any(feature = "lz4", feature = "snappy"))]
pub(crate) mod copy;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
#[cfg(feature = "zstd")]
pub(crate) mod zstd;

use crate::cpu::{Cpu, Feature};

/// Everything this processor has.
pub(crate) fn detect() -> Cpu {
    #[cfg(target_arch = "x86_64")]
    return x86_64::detect();
    #[cfg(target_arch = "aarch64")]
    return Cpu::scalar()
        .with(Feature::Crc, cfg!(target_feature = "crc"))
        .with(Feature::Neon, cfg!(target_feature = "neon"));
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Cpu::scalar()
}

/// Continues a raw (not inverted) CRC-32C register over `bytes`, with the best
/// instructions that `cpu` allows.
pub(crate) fn crc32c_update(cpu: Cpu, state: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if cpu.has(Feature::Sse42) {
        // SAFETY: a Cpu with Sse42 comes only from CPUID, so the processor has it.
        return unsafe { x86_64::crc32c_sse42(state, bytes) };
    }
    let _ = cpu;
    scalar::crc32c(state, bytes)
}
