//! x86-64 backends.
//!
//! CRC-32C: the `crc32` instruction takes 8 bytes a cycle, but each time waits 3 cycles for
//! the one before. Three chains side by side hide that. A carry-less multiplier takes as
//! much as its registers are wide, every second cycle: see [`super::poly`] for the powers
//! that merge and fold. Every register folds its own place of each block into the next
//! block, 16 bytes by 16 bytes; then the registers fold into one, that one into its last 16
//! bytes, and `crc32` over those is the sum.
#![allow(clippy::cast_possible_truncation)] // 32 bits, or 8, come in a register of 64

use core::arch::x86_64::*;

use super::masks::MASKS;
use super::poly::{Thirds, fold_by};
use super::{Fields, PrefixDecoder, PrefixLoop, unzigzag, unzigzag_long};
use crate::cpu::{Cpu, Feature};

/// Asks CPUID, and XCR0 for the registers that the operating system must save.
///
/// Bits: Intel's Software Developer's Manual, volume 2, CPUID.
pub(crate) fn detect() -> Cpu {
    let leaf0 = __cpuid(0);
    let leaf1 = __cpuid(1);
    let bit = |word: u32, n: u32| word >> n & 1 != 0;
    let (sse42, pclmulqdq) = (bit(leaf1.ecx, 20), bit(leaf1.ecx, 1));
    // Its registers are part of the x86-64 ABI; but not where a kernel is compiled to leave
    // them to the programs. The `crc32` instruction has general ones.
    let sse = cfg!(target_feature = "sse2");
    let mut cpu = Cpu::scalar()
        .with(Feature::Sse42, sse42)
        .with(Feature::Pclmulqdq, sse && sse42 && pclmulqdq);
    if leaf0.eax < 7 {
        return cpu;
    }
    let leaf7 = __cpuid_count(7, 0);
    // BMI1 and BMI2 have general registers only.
    let bmi = bit(leaf7.ebx, 3) && bit(leaf7.ebx, 8);
    cpu = cpu.with(Feature::Bmi2, bmi && !pext_is_microcode(leaf0, leaf1.eax));
    // OSXSAVE says that XGETBV is there, and AVX that it has something to tell.
    if !(sse && bit(leaf1.ecx, 27) && bit(leaf1.ecx, 28)) {
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
fn pext_is_microcode(vendor: CpuidResult, leaf1_eax: u32) -> bool {
    let is = |name: &[u8; 12]| {
        let [a, b, c] = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        name.as_chunks().0 == [a, b, c]
    };
    let family = (leaf1_eax >> 8 & 0xf) + (leaf1_eax >> 20 & 0xff);
    is(b"HygonGenuine") || is(b"AuthenticAMD") && family < 0x19
}

/// Bytes from which on other backends than the single chain pay, also in a loop over
/// short inputs, where the processor runs several chains at once anyway.
pub(crate) const LONG: usize = 256;

/// CRC-32C with the `crc32` instruction, one chain.
#[target_feature(enable = "sse4.2")]
pub(crate) fn crc32c_sse42(state: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut wide = u64::from(state);
    for &word in words {
        wide = _mm_crc32_u64(wide, u64::from_le_bytes(word));
    }
    let mut state = wide as u32;
    if rest.is_empty() {
        return state;
    }
    let (four, rest) = rest.as_chunks::<4>();
    for &four in four {
        state = _mm_crc32_u32(state, u32::from_le_bytes(four));
    }
    for &byte in rest {
        state = _mm_crc32_u8(state, byte);
    }
    state
}

/// CRC-32C with the `crc32` instruction, three chains over the thirds of a block, merged
/// by carry-less products.
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(crate) fn crc32c_three_way(mut state: u32, mut bytes: &[u8]) -> u32 {
    // Less does not pay for the merge.
    while bytes.len() >= 3 * 128 {
        let Some((thirds, behind)) = Thirds::of(bytes) else { break };
        let (mut a, mut b, mut c) = (u64::from(state), 0, 0);
        for [first, second, third] in thirds.words() {
            a = _mm_crc32_u64(a, u64::from_le_bytes(first));
            b = _mm_crc32_u64(b, u64::from_le_bytes(second));
            c = _mm_crc32_u64(c, u64::from_le_bytes(third));
        }
        let moved = clmul(a as u32, thirds.twice) ^ clmul(b as u32, thirds.once);
        state = (_mm_crc32_u64(0, moved) ^ c) as u32;
        bytes = behind;
    }
    crc32c_sse42(state, bytes)
}

#[inline]
#[target_feature(enable = "pclmulqdq")]
fn clmul(a: u32, b: u32) -> u64 {
    let (a, b) = (_mm_cvtsi32_si128(a.cast_signed()), _mm_cvtsi32_si128(b.cast_signed()));
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(a, b)).cast_unsigned()
}

/// What [`fold_by`] gives, as a register.
#[inline]
#[target_feature(enable = "sse2")]
fn factors([low, high]: [u32; 2]) -> __m128i {
    _mm_set_epi64x(i64::from(high), i64::from(low))
}

/// The register over 16 bytes alone.
#[inline]
#[target_feature(enable = "sse4.2")]
fn reduce(x: __m128i) -> u32 {
    let low = _mm_crc32_u64(0, _mm_cvtsi128_si64(x).cast_unsigned());
    _mm_crc32_u64(low, _mm_extract_epi64::<1>(x).cast_unsigned()) as u32
}

/// CRC-32C by folding with 256-bit registers, four of them.
#[target_feature(enable = "avx2,vpclmulqdq,sse4.2")]
pub(crate) fn crc32c_fold_256(state: u32, bytes: &[u8]) -> u32 {
    let (vectors, rest) = bytes.as_chunks::<32>();
    let (blocks, vectors) = vectors.as_chunks::<4>();
    let Some(([a, b, c, d], blocks)) = blocks.split_first() else {
        return crc32c_sse42(state, bytes);
    };
    let (mut a, mut b, mut c, mut d) = (load_256(a), load_256(b), load_256(c), load_256(d));
    let state = _mm_cvtsi32_si128(state.cast_signed());
    a = _mm256_xor_si256(a, _mm256_zextsi128_si256(state));
    let by_block = _mm256_broadcastsi128_si256(factors(const { fold_by(128) }));
    for block in blocks {
        prefetch(block);
        let [next_a, next_b, next_c, next_d] = block;
        a = fold_256(a, by_block, load_256(next_a));
        b = fold_256(b, by_block, load_256(next_b));
        c = fold_256(c, by_block, load_256(next_c));
        d = fold_256(d, by_block, load_256(next_d));
    }
    let by_one = _mm256_broadcastsi128_si256(factors(const { fold_by(32) }));
    let by_two = _mm256_broadcastsi128_si256(factors(const { fold_by(64) }));
    let mut x = fold_256(fold_256(a, by_one, b), by_two, fold_256(c, by_one, d));
    for vector in vectors {
        x = fold_256(x, by_one, load_256(vector));
    }
    let (first, last) = (_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
    let by_half = factors(const { fold_by(16) });
    let low = _mm_clmulepi64_si128::<0x00>(first, by_half);
    let high = _mm_clmulepi64_si128::<0x11>(first, by_half);
    crc32c_sse42(reduce(_mm_xor_si128(_mm_xor_si128(low, high), last)), rest)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_256(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes to read, at any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Moves the two lanes of `x` on, and adds what is there.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
fn fold_256(x: __m256i, by: __m256i, there: __m256i) -> __m256i {
    let low = _mm256_clmulepi64_epi128::<0x00>(x, by);
    let high = _mm256_clmulepi64_epi128::<0x11>(x, by);
    _mm256_xor_si256(_mm256_xor_si256(low, there), high)
}

/// Lengths from which on it pays to align the loads: each of 64 bytes would touch two
/// cache lines, which shows where they come from farther than the first cache.
const ALIGN_FROM: usize = 4 << 10;

/// CRC-32C by folding with 512-bit registers, eight of them.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,sse4.2")]
pub(crate) fn crc32c_fold_512(mut state: u32, mut bytes: &[u8]) -> u32 {
    if bytes.len() >= ALIGN_FROM
        && let Some((head, aligned)) = bytes.split_at_checked(bytes.as_ptr().align_offset(64))
    {
        (state, bytes) = (crc32c_sse42(state, head), aligned);
    }
    let (vectors, rest) = bytes.as_chunks::<64>();
    let (blocks, vectors) = vectors.as_chunks::<4>();
    let (pairs, single) = blocks.as_chunks::<2>();
    let by_block = lanes_512(const { fold_by(256) });
    let [a, b, c, d] = if let Some(([first, second], pairs)) = pairs.split_first() {
        let by_pair = lanes_512(const { fold_by(512) });
        let (mut near, mut far) = (start_512(state, first), load_512(second));
        for [first, second] in pairs {
            prefetch(first);
            prefetch(second);
            near = fold_512(near, by_pair, load_512(first));
            far = fold_512(far, by_pair, load_512(second));
        }
        let mut x = fold_512(near, by_block, far);
        for block in single {
            x = fold_512(x, by_block, load_512(block));
        }
        x
    } else if let [block] = single {
        start_512(state, block)
    } else {
        return crc32c_sse42(state, bytes);
    };
    let by_one = lanes_512(const { fold_by(64) });
    let by_two = lanes_512(const { fold_by(128) });
    let mut x = step_512(step_512(a, by_one, b), by_two, step_512(c, by_one, d));
    for vector in vectors {
        x = step_512(x, by_one, load(vector));
    }
    // The first three lanes go to the last one.
    let [l0, h0] = const { fold_by(48) }.map(i64::from);
    let [l1, h1] = const { fold_by(32) }.map(i64::from);
    let [l2, h2] = const { fold_by(16) }.map(i64::from);
    let by_lane = _mm512_set_epi64(0, 0, h2, l2, h1, l1, h0, l0);
    let low = _mm512_clmulepi64_epi128::<0x00>(x, by_lane);
    let moved = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x11>(x, by_lane));
    let sum = _mm_ternarylogic_epi64::<XOR3>(
        _mm512_castsi512_si128(moved),
        _mm512_extracti32x4_epi32::<1>(moved),
        _mm512_extracti32x4_epi32::<2>(moved),
    );
    let last = _mm512_extracti32x4_epi32::<3>(x);
    crc32c_sse42(reduce(_mm_xor_si128(sum, last)), rest)
}

/// Bytes that are asked for ahead of their turn.
const AHEAD: usize = 4 << 10;

/// Asks for what lies ahead of a block, also behind the input's end: that is where the
/// next batch is, most often. Out of memory it is a fifth less time for a whole segment,
/// in the cache a tenth more for the sum.
#[inline]
#[target_feature(enable = "sse")]
fn prefetch<const N: usize>(block: &[[u8; N]; 4]) {
    for line in block.iter().step_by(64 / N) {
        // It is a hint, which no address makes fault.
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(AHEAD).cast());
    }
}

/// `a ^ b ^ c` as the truth table of a ternary operation.
const XOR3: i32 = 0x96;

/// 256 bytes in four registers.
type Block = [__m512i; 4];

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: 64 bytes to read, at any alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_512([a, b, c, d]: &[[u8; 64]; 4]) -> Block {
    [load(a), load(b), load(c), load(d)]
}

/// The first block, with the register over what was before it.
#[inline]
#[target_feature(enable = "avx512f")]
fn start_512(state: u32, block: &[[u8; 64]; 4]) -> Block {
    let [a, b, c, d] = load_512(block);
    let state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(state.cast_signed()));
    [_mm512_xor_si512(a, state), b, c, d]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lanes_512(by: [u32; 2]) -> __m512i {
    _mm512_broadcast_i32x4(factors(by))
}

/// Moves the four lanes of `x` on, and adds what is there.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn step_512(x: __m512i, by: __m512i, there: __m512i) -> __m512i {
    let low = _mm512_clmulepi64_epi128::<0x00>(x, by);
    let high = _mm512_clmulepi64_epi128::<0x11>(x, by);
    _mm512_ternarylogic_epi64::<XOR3>(low, high, there)
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_512([a, b, c, d]: Block, by: __m512i, [e, f, g, h]: Block) -> Block {
    [step_512(a, by, e), step_512(b, by, f), step_512(c, by, g), step_512(d, by, h)]
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
        timestamp_delta: unzigzag_long(timestamp),
        offset_delta: unzigzag(offset),
        key_length: (key & 1 == 0).then_some(key >> 1),
        len: masks.len.into(),
    })
}
