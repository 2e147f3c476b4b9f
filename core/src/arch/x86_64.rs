//! x86-64 backends.
#![allow(clippy::cast_possible_truncation)] // the crc32 instruction yields 32 bits in a 64-bit register

use core::arch::x86_64::{__cpuid, __cpuid_count, _mm_crc32_u8, _mm_crc32_u64, _xgetbv};

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
