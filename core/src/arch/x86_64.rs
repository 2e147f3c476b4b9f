//! x86-64 backends.
#![allow(clippy::cast_possible_truncation)] // the crc32 instruction yields 32 bits in a 64-bit register

use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

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
