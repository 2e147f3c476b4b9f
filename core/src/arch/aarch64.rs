//! aarch64 backends.

use core::arch::aarch64::{
    vandq_u8, vandq_u16, vandq_u32, vcombine_u8, vcreate_u8, vdup_n_u8, vdupq_n_u8, vdupq_n_u16,
    vdupq_n_u32, veorq_u32, vgetq_lane_u32, vld1q_u8, vnegq_s32, vorrq_u16, vorrq_u32, vqtbl1q_u8,
    vreinterpretq_s32_u32, vreinterpretq_u16_u8, vreinterpretq_u32_s32, vreinterpretq_u32_u16,
    vshrq_n_u16, vshrq_n_u32,
};

use super::shuffle::{CONTROLS, NONE};
use super::{Fields, PrefixDecoder};
use crate::cpu::{Cpu, Feature};

/// Decodes the three varints of a record prefix at once. Having one proves that the
/// processor has NEON.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) const fn new(cpu: Cpu) -> Option<Self> {
        if cpu.has(Feature::Neon) { Some(Self(())) } else { None }
    }
}

impl PrefixDecoder for Neon {
    #[inline(always)]
    fn fields(self, word: u64) -> Option<Fields> {
        // SAFETY: the processor has NEON, or there were no `self`.
        unsafe { fields_neon(word) }
    }
}

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
