//! Zig-zag LEB128, as RecordBatch v2 uses it.
//!
//! `varint` is an i32 in at most 5 bytes, `varlong` an i64 in at most 10, both
//! zig-zag: 0 → `00`, −1 → `01`, 1 → `02`, 63 → `7e`, 64 → `80 01`. The unsigned
//! form without zig-zag occurs inside KRaft control records only.
//!
//! Decoding follows Kafka's `ByteUtils`: encodings that are longer than needed
//! are accepted, bits beyond the type's width in the last byte are dropped, and
//! only a continuation bit in the last possible byte is an error.

use crate::arch::{Fields, PrefixDecoder, unzigzag, unzigzag_long};

/// Why a number could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum VarintError {
    /// The bytes end before the number does.
    Incomplete,
    /// The last possible byte still says that more follow.
    TooLong,
}

/// Reads an unsigned varint of at most 5 bytes; gives it and its length.
#[inline]
pub fn decode_unsigned(bytes: &[u8]) -> Result<(u32, usize), VarintError> {
    decode::<5>(bytes).map(|(n, len)| (low32(n), len))
}

/// Reads a zig-zag varint of at most 5 bytes; gives it and its length.
#[inline]
pub fn decode_varint(bytes: &[u8]) -> Result<(i32, usize), VarintError> {
    decode_unsigned(bytes).map(|(n, len)| (unzigzag(n), len))
}

/// Reads a zig-zag varint of at most 10 bytes; gives it and its length.
#[inline]
pub fn decode_varlong(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    decode::<10>(bytes).map(|(n, len)| (unzigzag_long(n), len))
}

/// Three bytes are unrolled: lengths below 1 MiB, timestamp deltas of 17 minutes.
#[inline(always)]
fn decode<const MOST: usize>(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let low = |byte: u8| u64::from(byte & 0x7f);
    match *bytes {
        [a, ..] if a < 0x80 => Ok((a.into(), 1)),
        [a, b, ..] if b < 0x80 => Ok((low(a) | u64::from(b) << 7, 2)),
        [a, b, c, ..] if c < 0x80 => Ok((low(a) | low(b) << 7 | u64::from(c) << 14, 3)),
        _ => decode_long::<MOST>(bytes),
    }
}

#[cold]
#[inline(never)]
fn decode_long<const MOST: usize>(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut value = 0u64;
    let mut shift = 0u32;
    for (at, &byte) in bytes.iter().take(MOST).enumerate() {
        // The tenth byte is shifted by 63: all but its lowest bit drop out.
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value, at + 1));
        }
        shift += 7;
    }
    Err(if bytes.len() < MOST { VarintError::Incomplete } else { VarintError::TooLong })
}

/// The five fields that a v2 record starts with, which are adjacent: its length,
/// attributes, timestamp delta, offset delta and the length of its key.
///
/// ```text
///  varint  i8  varlong  varint  varint │ key …
///  ◀──────────── len, 5 to 26 ────────▶
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Prefix {
    /// Bytes that the record has behind the length field.
    pub length: i32,
    /// Not used yet by anyone; 0.
    pub attributes: u8,
    /// Against the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Against the batch's base offset.
    pub offset_delta: i32,
    /// Bytes of the key, `None` for null: any negative number.
    pub key_length: Option<u32>,
    /// Bytes that the length field takes.
    pub length_len: usize,
    /// Bytes that all five take.
    pub len: usize,
}

impl Prefix {
    /// Reads a prefix of up to three bytes of length, and up to eight bytes behind the
    /// attributes; `None` for others, for negative lengths, and where fewer than twelve
    /// bytes are there.
    #[inline(always)]
    pub fn quick(decoder: impl PrefixDecoder, bytes: &[u8]) -> Option<Self> {
        let window = bytes.first_chunk::<12>()?;
        let [a, b, c, ..] = *window;
        if a & 1 != 0 {
            return None; // negative
        }
        // Halved by zig-zag. The branches let the processor go on to the next record before
        // it has seen how long this one is; continuation bits are taken off the sum, since
        // masking each byte would make the chain from record to record longer.
        let [a, b, c] = [u32::from(a), u32::from(b), u32::from(c)];
        let (length, length_len) = if a < 0x80 {
            (a >> 1, 1)
        } else if b < 0x80 {
            ((a >> 1) + (b << 6) - 0x40, 2)
        } else if c < 0x80 {
            ((a >> 1) + (b << 6) + (c << 13) - 0x2040, 3)
        } else {
            return None;
        };
        let length = length.cast_signed();
        let attributes = *window.get(length_len)?;
        let word = u64::from_le_bytes(*window.get(length_len + 1..)?.first_chunk()?);
        let Fields { timestamp_delta, offset_delta, key_length, len } = decoder.fields(word)?;
        let len = length_len + 1 + len;
        Some(Self {
            length,
            attributes,
            timestamp_delta,
            offset_delta,
            key_length,
            length_len,
            len,
        })
    }

    /// Reads the fields one by one.
    ///
    /// Errors: the bytes end before the prefix does, or a field is too long.
    #[inline(never)]
    pub fn careful(bytes: &[u8]) -> Result<Self, VarintError> {
        let rest = |at: usize| bytes.get(at..).ok_or(VarintError::Incomplete);
        let (length, length_len) = decode_varint(bytes)?;
        let attributes = *bytes.get(length_len).ok_or(VarintError::Incomplete)?;
        let at = length_len + 1;
        let (timestamp_delta, n) = decode_varlong(rest(at)?)?;
        let at = at + n;
        let (offset_delta, n) = decode_varint(rest(at)?)?;
        let at = at + n;
        let (key_length, n) = decode_varint(rest(at)?)?;
        let key_length = u32::try_from(key_length).ok();
        let len = at + n;
        Ok(Self { length, attributes, timestamp_delta, offset_delta, key_length, length_len, len })
    }
}

/// A zig-zag varint of at most 5 bytes, not decoded from zig-zag, and what is behind it.
#[inline(always)]
pub(crate) fn take_zigzag(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (n, len) = decode_unsigned(bytes).ok()?;
    Some((n, bytes.get(len..)?))
}

#[allow(clippy::cast_possible_truncation)] // Kafka drops the high bits of byte 5 as well
const fn low32(n: u64) -> u32 {
    n as u32
}

/// Bytes that `value` takes as a zig-zag varint, 1 to 5.
#[must_use]
pub const fn varint_len(value: i32) -> usize {
    varlong_len(value as i64)
}

/// Bytes that `value` takes as a zig-zag varlong, 1 to 10.
#[must_use]
pub const fn varlong_len(value: i64) -> usize {
    zigzag_len(zigzag(value))
}

/// Bytes that an unsigned varint takes, 1 to 10.
#[inline(always)]
const fn zigzag_len(zigzag: u64) -> usize {
    let bits = 64 - (zigzag | 1).leading_zeros();
    // Divided by 7 and rounded up, for up to 64 bits.
    ((bits * 9 + 64) >> 6) as usize
}

/// Signed as unsigned, small ones of either sign first.
#[inline(always)]
pub(crate) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// A zig-zag varlong that is going to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Varlong {
    zigzag: u64,
    /// Its bytes, the first one lowest, if they are no more than four.
    word: u32,
    len: usize,
}

impl Varlong {
    #[inline(always)]
    pub(crate) const fn new(value: i64) -> Self {
        Self::of_zigzag(zigzag(value))
    }

    /// Of a length that was checked to fit, −1 for null.
    #[inline(always)]
    pub(crate) const fn of_length(field: Option<&[u8]>) -> Self {
        match field {
            Some(bytes) => Self::of_zigzag((bytes.len() as u64) << 1),
            None => Self::of_zigzag(1),
        }
    }

    #[inline(always)]
    const fn of_zigzag(zigzag: u64) -> Self {
        let n = low32(zigzag);
        // Most take one or two bytes.
        if zigzag < 1 << 7 {
            return Self { zigzag, word: n, len: 1 };
        }
        let two = n & 0x7f | 0x80 | (n & 0x7f << 7) << 1;
        if zigzag < 1 << 14 {
            return Self { zigzag, word: two, len: 2 };
        }
        let three = two | 0x8000 | (n & 0x7f << 14) << 2;
        if zigzag < 1 << 21 {
            return Self { zigzag, word: three, len: 3 };
        }
        let four = three | 0x80_0000 | (n & 0x7f << 21) << 3;
        Self { zigzag, word: four, len: zigzag_len(zigzag) }
    }

    /// Bytes that it takes, 1 to 10.
    #[inline(always)]
    pub(crate) const fn len(self) -> usize {
        self.len
    }

    /// Its bytes, the first one lowest, if they are no more than four.
    #[inline(always)]
    pub(crate) fn word(self) -> Option<u32> {
        (self.len <= 4).then_some(self.word)
    }

    /// All of it, and its length.
    pub(crate) const fn bytes(self) -> ([u8; 10], usize) {
        encode_unsigned(self.zigzag)
    }
}

/// Writes a zig-zag varlong; gives it and its length, 1 to 10. That of an i32 is the same
/// as its varint, of at most 5 bytes.
#[must_use]
pub const fn encode_varlong(value: i64) -> ([u8; 10], usize) {
    encode_unsigned(zigzag(value))
}

const fn encode_unsigned(value: u64) -> ([u8; 10], usize) {
    let mut rest = value;
    let mut bytes = [0; 10];
    let mut left: &mut [u8] = &mut bytes;
    let mut len = 0;
    while let Some((slot, behind)) = left.split_first_mut() {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        len += 1;
        if rest == 0 {
            *slot = low & 0x7f;
            break;
        }
        *slot = low | 0x80;
        left = behind;
    }
    (bytes, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{PrefixLoop, with_prefix_decoder};
    use crate::cpu::{Cpu, Feature};

    #[test]
    fn vectors_of_kafkas_byte_utils() {
        for &(value, bytes) in &[
            (0i32, &[0x00u8][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (8191, &[0xfe, 0x7f]),
            (-8193, &[0x81, 0x80, 0x01]),
            (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            assert_eq!(decode_varint(bytes), Ok((value, bytes.len())));
            assert_eq!(varint_len(value), bytes.len(), "{value}");
            assert_eq!(decode_varlong(bytes), Ok((i64::from(value), bytes.len())));
            let (written, len) = encode_varlong(value.into());
            assert_eq!(&written[..len], bytes);
            for cut in 0..bytes.len() {
                assert_eq!(decode_varint(&bytes[..cut]), Err(VarintError::Incomplete));
            }
        }
        let least = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(decode_varlong(&least), Ok((i64::MIN, 10)));
        assert_eq!(varlong_len(i64::MIN), 10);
        assert_eq!(varlong_len(i64::MAX), 10);
        assert_eq!(encode_varlong(i64::MIN), (least, 10));
    }

    #[test]
    fn short_ones_are_as_all_others() {
        let around = (0..64).flat_map(|bit| [-1, 0, 1].map(|d| (1i64 << bit).wrapping_add(d)));
        for value in around.flat_map(|n| [n, n.wrapping_neg()]) {
            let (bytes, len) = encode_varlong(value);
            assert_eq!(varlong_len(value), len, "{value}");
            let short = Varlong::new(value);
            assert_eq!((short.len(), short.bytes()), (len, (bytes, len)), "{value}");
            match short.word() {
                Some(word) => assert_eq!(&word.to_le_bytes()[..len], &bytes[..len]),
                None => assert!(len > 4, "{value}"),
            }
        }
    }

    #[test]
    fn tolerates_what_kafka_tolerates() {
        assert_eq!(decode_varint(&[0x80, 0x00]), Ok((0, 2)), "longer than needed");
        assert_eq!(
            decode_varint(&[0xff, 0xff, 0xff, 0xff, 0x7f]),
            Ok((i32::MIN, 5)),
            "bits beyond 32 are dropped"
        );
        assert_eq!(decode_varint(&[0x80; 5]), Err(VarintError::TooLong));
        assert_eq!(decode_varlong(&[0x80; 10]), Err(VarintError::TooLong));
        assert_eq!(decode_varlong(&[0x80; 9]), Err(VarintError::Incomplete));
        let high = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e];
        assert_eq!(decode_varlong(&high), Ok((0, 10)), "bits beyond 64 are dropped");
    }

    /// Every prefix of a set of bytes, by one decoder.
    struct All<'a>(&'a [u8], Cpu);

    impl PrefixLoop for All<'_> {
        type Output = ();

        fn run(self, decoder: impl PrefixDecoder) {
            for at in 0..self.0.len() {
                let bytes = &self.0[at..];
                let careful = Prefix::careful(bytes);
                let quick = Prefix::quick(decoder, bytes);
                if let Some(quick) = quick {
                    assert_eq!(Ok(quick), careful, "{:02x?}", &bytes[..12]);
                }
                // What each of them has to do itself.
                let most = if self.1.has(Feature::Bmi2) {
                    [8, 5, 5]
                } else if self.1.has(Feature::Neon) {
                    [4, 4, 4]
                } else {
                    [3, 3, 3]
                };
                if let Ok(careful) = careful
                    && let Some(window) = bytes.first_chunk::<12>()
                {
                    let mut at = careful.length_len + 1;
                    let mut fits = careful.length >= 0
                        && careful.length_len <= 3
                        && careful.len - careful.length_len - 1 <= 8;
                    for most in most {
                        let len = bytes[at..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
                        (fits, at) = (fits && len <= most, at + len);
                    }
                    assert_eq!(quick.is_some(), fits, "{:?} {window:02x?}", self.1);
                }
            }
        }
    }

    #[test]
    fn every_prefix_decoder_agrees_with_the_careful_one() {
        // Every pattern of continuation bits, among digits of all kinds.
        let mut state = 1u32;
        let mut bytes = [0u8; 4096];
        for round in 0..200u32 {
            for byte in &mut bytes {
                state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
                let [.., noise, b] = state.to_be_bytes();
                // From mostly short to mostly long.
                let goes_on = u32::from(noise) < round;
                *byte = if goes_on { b | 0x80 } else { b & 0x7f };
            }
            for cpu in Cpu::detect().tiers() {
                with_prefix_decoder(cpu, All(&bytes, cpu));
            }
        }
    }

    #[test]
    fn prefixes_of_all_widths() {
        let wide = |byte: u8, len: usize| {
            let mut field = [byte | 0x80; 10];
            field[len - 1] = byte & 0x7f;
            (field, len)
        };
        for widths in 0..5 * 10 * 5 * 5 {
            let (length, widths) = (1 + widths % 5, widths / 5);
            let (timestamp, widths) = (1 + widths % 10, widths / 10);
            let (offset, key) = (1 + widths % 5, 1 + widths / 5);
            let (mut bytes, mut at) = ([0xff; 40], 0);
            let attributes = ([0x80; 10], 1);
            for (field, len) in
                [wide(2, length), attributes, wide(3, timestamp), wide(5, offset), wide(8, key)]
            {
                bytes[at..at + len].copy_from_slice(&field[..len]);
                at += len;
            }
            for cpu in Cpu::detect().tiers() {
                with_prefix_decoder(cpu, All(&bytes, cpu));
            }
            let prefix = Prefix::careful(&bytes).unwrap();
            assert_eq!((prefix.length_len, prefix.len), (length, at));
            assert_eq!(prefix.attributes, 0x80);
            for cut in 0..at {
                assert_eq!(Prefix::careful(&bytes[..cut]), Err(VarintError::Incomplete));
            }
        }
    }
}
