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
mod poly;
pub(crate) mod scalar;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod shuffle;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
#[cfg(feature = "zstd")]
pub(crate) mod zstd;

use crate::cpu::Cpu;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::cpu::Feature;
pub use scalar::Scalar;
pub(crate) use scalar::{unzigzag, unzigzag_long};

impl Cpu {
    /// Everything this processor has. On x86-64 it asks CPUID, which takes some
    /// hundred nanoseconds, or microseconds in a virtual machine: ask once, keep the
    /// token. On aarch64 it is what the target is compiled for. Elsewhere it is
    /// [`Cpu::scalar`].
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        return x86_64::detect();
        #[cfg(target_arch = "aarch64")]
        return aarch64::detect();
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        Self::scalar()
    }
}

/// The same for tests, which may ask the operating system where a program may not.
#[cfg(test)]
pub(crate) fn detect_with_std() -> Cpu {
    #[cfg(target_arch = "aarch64")]
    {
        extern crate std;
        if std::arch::is_aarch64_feature_detected!("crc") {
            // SAFETY: it was asked just now.
            return unsafe { Cpu::detect().assume_crc() };
        }
    }
    Cpu::detect()
}

/// What computes a CRC-32C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crc32cBackend {
    Table,
    #[cfg(target_arch = "x86_64")]
    Sse42,
    #[cfg(target_arch = "x86_64")]
    ThreeWay,
    #[cfg(target_arch = "x86_64")]
    Fold256,
    #[cfg(target_arch = "x86_64")]
    Fold512,
    #[cfg(target_arch = "aarch64")]
    Crc,
}

impl Crc32cBackend {
    #[inline]
    pub(crate) const fn of(cpu: Cpu) -> Self {
        #[cfg(target_arch = "x86_64")]
        if cpu.has(Feature::Sse42) {
            return if cpu.has(Feature::Avx512) {
                Self::Fold512
            } else if cpu.has(Feature::Vpclmulqdq) {
                Self::Fold256
            } else if cpu.has(Feature::Pclmulqdq) {
                Self::ThreeWay
            } else {
                Self::Sse42
            };
        }
        #[cfg(target_arch = "aarch64")]
        if cpu.has(Feature::Crc) {
            return Self::Crc;
        }
        let _ = cpu;
        Self::Table
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            #[cfg(target_arch = "x86_64")]
            Self::Sse42 => "sse42",
            #[cfg(target_arch = "x86_64")]
            Self::ThreeWay => "sse42-pclmulqdq",
            #[cfg(target_arch = "x86_64")]
            Self::Fold256 => "vpclmulqdq-256",
            #[cfg(target_arch = "x86_64")]
            Self::Fold512 => "vpclmulqdq-512",
            #[cfg(target_arch = "aarch64")]
            Self::Crc => "aarch64-crc",
        }
    }
}

/// Continues a raw (not inverted) CRC-32C register over `bytes`, with the best
/// instructions that `cpu` allows.
#[inline]
pub(crate) fn crc32c_update(cpu: Cpu, state: u32, bytes: &[u8]) -> u32 {
    // Asked first, since for few bytes the way to the backend counts.
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < x86_64::LONG && cpu.has(Feature::Sse42) {
        // SAFETY: a Cpu with Sse42 comes only from CPUID, so the processor has it.
        return unsafe { x86_64::crc32c_sse42(state, bytes) };
    }
    crc32c_long(cpu, state, bytes)
}

fn crc32c_long(cpu: Cpu, state: u32, bytes: &[u8]) -> u32 {
    match Crc32cBackend::of(cpu) {
        Crc32cBackend::Table => scalar::crc32c(state, bytes),
        // SAFETY: each is for a Cpu with Sse42, and with Pclmulqdq, Vpclmulqdq (which is
        // AVX2 as well) or Avx512 (F, BW, VL and VPCLMULQDQ), as each function needs. Those
        // come only from CPUID and XCR0: the processor has them.
        #[cfg(target_arch = "x86_64")]
        Crc32cBackend::Sse42 => unsafe { x86_64::crc32c_sse42(state, bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Crc32cBackend::ThreeWay => unsafe { x86_64::crc32c_three_way(state, bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Crc32cBackend::Fold256 => unsafe { x86_64::crc32c_fold_256(state, bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Crc32cBackend::Fold512 => unsafe { x86_64::crc32c_fold_512(state, bytes) },
        // SAFETY: it is for a Cpu with Crc, which the target or `assume_crc` promises.
        #[cfg(target_arch = "aarch64")]
        Crc32cBackend::Crc => unsafe { aarch64::crc32c_three_way(state, bytes) },
    }
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

mod sealed {
    /// What decodes is trusted to give lengths that are there.
    pub trait Sealed {}

    impl Sealed for super::Scalar {}
    #[cfg(target_arch = "x86_64")]
    impl Sealed for super::x86_64::Bmi2 {}
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    impl Sealed for super::aarch64::Neon {}
}

/// Decodes [`Fields`].
pub trait PrefixDecoder: sealed::Sealed + Copy {
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
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    if let Some(decoder) = aarch64::Neon::new(cpu) {
        return body.run(decoder);
    }
    let _ = cpu;
    body.run(Scalar)
}
