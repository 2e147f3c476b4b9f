//! aarch64 backends.
//!
//! CRC-32C: the `crc32c` instructions take 8 bytes a cycle, but wait 2 or 3 cycles for the
//! one before. Three chains side by side hide that. The carry-less products that merge
//! them (see [`super::poly`]) are made of usual ones: not every processor that has `crc`
//! has PMULL, and three blocks cost only two of them.

use core::arch::aarch64::*;

use super::poly::Thirds;
#[cfg(target_feature = "neon")]
use super::shuffle::{CONTROLS, NONE};
#[cfg(target_feature = "neon")]
use super::{Fields, PrefixDecoder};
use crate::cpu::{Cpu, Feature};

/// What the target is compiled for. A program may not ask the processor.
pub(crate) const fn detect() -> Cpu {
    Cpu::scalar()
        .with(Feature::Crc, cfg!(target_feature = "crc"))
        .with(Feature::Neon, cfg!(target_feature = "neon"))
}

impl Cpu {
    /// The same with the `crc32c` instructions, for a host that asked its operating
    /// system, say with std's `is_aarch64_feature_detected!("crc")`.
    ///
    /// # Safety
    ///
    /// The processor has the instructions `crc32cb` to `crc32cx` (FEAT_CRC32).
    #[must_use]
    pub const unsafe fn assume_crc(self) -> Self {
        self.with(Feature::Crc, true)
    }
}

/// Bytes from which on three chains pay for their merge.
const LONG: usize = 512;

/// CRC-32C with the `crc32c` instructions: one chain for short inputs, three over the
/// thirds of each block for long ones.
#[target_feature(enable = "crc")]
pub(crate) fn crc32c_three_way(mut state: u32, mut bytes: &[u8]) -> u32 {
    while bytes.len() >= LONG {
        let Some((thirds, behind)) = Thirds::of(bytes) else { break };
        let (mut a, mut b, mut c) = (state, 0, 0);
        for [first, second, third] in thirds.words() {
            a = __crc32cd(a, u64::from_le_bytes(first));
            b = __crc32cd(b, u64::from_le_bytes(second));
            c = __crc32cd(c, u64::from_le_bytes(third));
        }
        state = __crc32cd(0, clmul(a, thirds.twice) ^ clmul(b, thirds.once)) ^ c;
        bytes = behind;
    }
    chain(state, bytes)
}

#[inline]
#[target_feature(enable = "crc")]
fn chain(mut state: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    for &word in words {
        state = __crc32cd(state, u64::from_le_bytes(word));
    }
    let (four, rest) = rest.as_chunks::<4>();
    for &four in four {
        state = __crc32cw(state, u32::from_le_bytes(four));
    }
    let (two, rest) = rest.as_chunks::<2>();
    for &two in two {
        state = __crc32ch(state, u16::from_le_bytes(two));
    }
    for &byte in rest {
        state = __crc32cb(state, byte);
    }
    state
}

/// Carry-less product by usual ones of every fourth bit: at most 8 bits meet in a place,
/// so the carries stay below the next place that counts.
fn clmul(a: u32, b: u32) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let every = |word: u32| [0, 1, 2, 3].map(|i| u64::from(word) & EVERY_FOURTH << i);
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (every(a), every(b));
    let places = [
        a0 * b0 ^ a1 * b3 ^ a2 * b2 ^ a3 * b1,
        a0 * b1 ^ a1 * b0 ^ a2 * b3 ^ a3 * b2,
        a0 * b2 ^ a1 * b1 ^ a2 * b0 ^ a3 * b3,
        a0 * b3 ^ a1 * b2 ^ a2 * b1 ^ a3 * b0,
    ];
    places.into_iter().zip(0..).fold(0, |sum, (place, i)| sum | place & EVERY_FOURTH << i)
}

// Where the registers are left to others, as in kernels, they are not touched.
/// Decodes the three varints of a record prefix at once. Having one proves that the
/// processor has NEON.
#[cfg(target_feature = "neon")]
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

#[cfg(target_feature = "neon")]
impl Neon {
    pub(crate) const fn new(cpu: Cpu) -> Option<Self> {
        if cpu.has(Feature::Neon) { Some(Self(())) } else { None }
    }
}

#[cfg(target_feature = "neon")]
impl PrefixDecoder for Neon {
    #[inline(always)]
    fn fields(self, word: u64) -> Option<Fields> {
        // SAFETY: the processor has NEON, or there were no `self`.
        unsafe { fields_neon(word) }
    }
}

#[cfg(target_feature = "neon")]
#[target_feature(enable = "neon")]
#[inline]
fn fields_neon(word: u64) -> Option<Fields> {
    // The continuation bits, 8 apart, brought together: bit 8i times 2^(7(8 - i)) is
    // bit 56 + i, and no two products meet.
    let bits = word >> 7 & 0x0101_0101_0101_0101;
    let [.., pattern] = bits.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
    let control = CONTROLS.of(pattern);
    let [.., len] = *control;
    if len == NONE {
        return None;
    }
    // SAFETY: the control is 16 bytes long.
    let control = unsafe { vld1q_u8(control.as_ptr()) };
    let bytes = vcombine_u8(vcreate_u8(word), vdup_n_u8(0));
    let digits = vreinterpretq_u16_u8(vandq_u8(vqtbl1q_u8(bytes, control), vdupq_n_u8(0x7f)));
    // Digits of 7 bits to ones of 14, to one of 28.
    let low = vandq_u16(digits, vdupq_n_u16(0x7f));
    let high = vandq_u16(vshrq_n_u16::<1>(digits), vdupq_n_u16(0x3f80));
    let pairs = vreinterpretq_u32_u16(vorrq_u16(low, high));
    let low = vandq_u32(pairs, vdupq_n_u32(0x3fff));
    let high = vandq_u32(vshrq_n_u32::<2>(pairs), vdupq_n_u32(0x0fff_c000));
    let numbers = vorrq_u32(low, high);
    // Zig-zag: n / 2, inverted where n is odd.
    let odd = vreinterpretq_s32_u32(vandq_u32(numbers, vdupq_n_u32(1)));
    let sign = vreinterpretq_u32_s32(vnegq_s32(odd));
    let values = veorq_u32(vshrq_n_u32::<1>(numbers), sign);
    let key = vgetq_lane_u32::<2>(numbers);
    Some(Fields {
        timestamp_delta: vgetq_lane_u32::<0>(values).cast_signed().into(),
        offset_delta: vgetq_lane_u32::<1>(values).cast_signed(),
        key_length: (key & 1 == 0).then_some(key >> 1),
        len: (len - NONE).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_no_carries() {
        let words = [0, 1, 2, 0x8000_0000, 0xffff_ffff, 0x82f6_3b78, 0x1234_5678, 0xdead_beef];
        for a in words {
            for b in words {
                let want = (0..32)
                    .filter(|bit| b >> bit & 1 != 0)
                    .fold(0, |sum, bit| sum ^ u64::from(a) << bit);
                assert_eq!(clmul(a, b), want, "{a:x} {b:x}");
            }
        }
    }
}
