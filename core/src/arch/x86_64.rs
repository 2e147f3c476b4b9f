//! x86-64 backends.
#![allow(clippy::cast_possible_truncation)] // 32 bits, or 16, come in wider registers

use core::arch::x86_64::{__cpuid, __cpuid_count, _mm_crc32_u8, _mm_crc32_u64, _pext_u64, _xgetbv};

use super::masks::MASKS;
use super::{Fields, PrefixDecoder, PrefixLoop};
use crate::cpu::{Cpu, Feature};

/// Asks CPUID, and XCR0 for the registers that the operating system must save.
///
/// Bits: Intel's Software Developer's Manual, volume 2, CPUID.
pub(crate) fn detect() -> Cpu {
    let highest = __cpuid(0).eax;
    let leaf1 = __cpuid(1);
    let bit = |word: u32, n: u32| word >> n & 1 != 0;
    let (sse42, pclmulqdq) = (bit(leaf1.ecx, 20), bit(leaf1.ecx, 1));
    // SSE registers are part of the x86-64 ABI: no question about those.
    let mut cpu =
        Cpu::scalar().with(Feature::Sse42, sse42).with(Feature::Pclmulqdq, sse42 && pclmulqdq);
    if highest < 7 {
        return cpu;
    }
    let leaf7 = __cpuid_count(7, 0);
    // BMI1 and BMI2 have general registers only.
    let bmi = bit(leaf7.ebx, 3) && bit(leaf7.ebx, 8);
    cpu = cpu.with(Feature::Bmi2, bmi && !pext_is_microcode(leaf1.eax));
    // OSXSAVE says that XGETBV is there, and AVX that it has something to tell.
    if !(bit(leaf1.ecx, 27) && bit(leaf1.ecx, 28)) {
        return cpu;
    }
    // SAFETY: OSXSAVE was looked at just now.
    let saved = unsafe { xcr0() };
    let avx2 = saved & 0x6 == 0x6 && bit(leaf7.ebx, 5);
    let vpclmulqdq = pclmulqdq && bit(leaf7.ecx, 10);
    let avx512 = saved & 0xe6 == 0xe6 && [16, 30, 31].iter().all(|&n| bit(leaf7.ebx, n));
    cpu.with(Feature::Vpclmulqdq, sse42 && avx2 && vpclmulqdq)
        .with(Feature::Avx512, sse42 && avx512 && vpclmulqdq)
}

#[target_feature(enable = "xsave")]
fn xcr0() -> u64 {
    // SAFETY: register 0 is there wherever XGETBV is.
    unsafe { _xgetbv(0) }
}

/// AMD before Zen 3 (family 19h) and Hygon have a `pext` of up to some hundred cycles.
fn pext_is_microcode(leaf1_eax: u32) -> bool {
    let vendor = __cpuid(0);
    let is = |name: &[u8; 12]| {
        let [a, b, c] = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        name.as_chunks().0 == [a, b, c]
    };
    let family = (leaf1_eax >> 8 & 0xf) + (leaf1_eax >> 20 & 0xff);
    is(b"HygonGenuine") || is(b"AuthenticAMD") && family < 0x19
}

/// CRC-32C with the `crc32` instruction, eight bytes a step.
#[target_feature(enable = "sse4.2")]
pub(crate) fn crc32c_sse42(state: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut wide = u64::from(state);
    for &chunk in chunks {
        wide = _mm_crc32_u64(wide, u64::from_le_bytes(chunk));
    }
    let mut state = wide as u32;
    for &byte in rest {
        state = _mm_crc32_u8(state, byte);
    }
    state
}

/// Decodes the three varints of a record prefix by `pext`. Having one proves that the
/// processor has BMI2.
#[derive(Clone, Copy)]
pub(crate) struct Bmi2(());

impl Bmi2 {
    pub(crate) const fn new(cpu: Cpu) -> Option<Self> {
        if cpu.has(Feature::Bmi2) { Some(Self(())) } else { None }
    }

    /// Runs a loop compiled for these instructions.
    #[inline]
    pub(crate) fn run<L: PrefixLoop>(self, body: L) -> L::Output {
        // SAFETY: the processor has BMI2, or there were no `self`.
        unsafe { run_bmi2(self, body) }
    }
}

#[target_feature(enable = "bmi1,bmi2")]
fn run_bmi2<L: PrefixLoop>(decoder: Bmi2, body: L) -> L::Output {
    body.run(decoder)
}

impl PrefixDecoder for Bmi2 {
    #[inline(always)]
    fn fields(self, word: u64) -> Option<Fields> {
        // SAFETY: the processor has BMI2, or there were no `self`.
        unsafe { fields_bmi2(word) }
    }
}

#[target_feature(enable = "bmi1,bmi2")]
#[inline]
fn fields_bmi2(word: u64) -> Option<Fields> {
    let pattern = _pext_u64(word, 0x8080_8080_8080_8080) as u8;
    let masks = MASKS.of(pattern);
    if masks.len == 0 {
        return None;
    }
    let timestamp = _pext_u64(word, masks.timestamp);
    let offset = _pext_u64(word, masks.offset) as u32;
    let key = _pext_u64(word, masks.key) as u32;
    Some(Fields {
        timestamp_delta: (timestamp >> 1).cast_signed() ^ -(timestamp & 1).cast_signed(),
        offset_delta: (offset >> 1).cast_signed() ^ -(offset & 1).cast_signed(),
        key_length: (key & 1 == 0).then_some(key >> 1),
        len: masks.len.into(),
    })
}
