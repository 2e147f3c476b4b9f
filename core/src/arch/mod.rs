//! The only unsafe code of the crate, one backend a file.
//!
//! Every backend of an operation computes the same answer as `scalar`; the
//! tests below run on each one that the machine has.
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
#[cfg(any(feature = "lz4", feature = "snappy"))]
pub(crate) mod copy;
#[cfg(target_arch = "x86_64")]
mod masks;
pub(crate) mod scalar;
#[cfg(target_arch = "aarch64")]
mod shuffle;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
#[cfg(feature = "zstd")]
pub(crate) mod zstd;

use crate::cpu::{Cpu, Feature};
pub use scalar::Scalar;

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

/// The three adjacent varints behind the attributes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// Timestamp delta.
    pub timestamp_delta: i64,
    /// Offset delta.
    pub offset_delta: i32,
    /// Length of the key, `None` for null.
    pub key_length: Option<u32>,
    /// Bytes that they take.
    pub len: usize,
}

/// Decodes [`Fields`].
pub trait PrefixDecoder: Copy {
    /// Decodes them from eight bytes, of which `word` has the first one lowest. `None` if
    /// they take more, or if the decoder leaves them to the long way.
    fn fields(self, word: u64) -> Option<Fields>;
}

/// A loop over record prefixes, compiled once for each decoder of them.
pub trait PrefixLoop {
    /// What it comes to.
    type Output;
    /// Runs it. To be inlined always, or the decoder's instructions are calls.
    fn run(self, decoder: impl PrefixDecoder) -> Self::Output;
}

/// Runs a loop with the best decoder that `cpu` allows.
#[inline]
pub fn with_prefix_decoder<L: PrefixLoop>(cpu: Cpu, body: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(decoder) = x86_64::Bmi2::new(cpu) {
        return decoder.run(body);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(decoder) = aarch64::Neon::new(cpu) {
        return body.run(decoder);
    }
    let _ = cpu;
    body.run(Scalar)
}
