//! Zig-zag LEB128, as RecordBatch v2 uses it.
//!
//! `varint` is an i32 in at most 5 bytes, `varlong` an i64 in at most 10, both
//! zig-zag: 0 → `00`, −1 → `01`, 1 → `02`, 63 → `7e`, 64 → `80 01`. The unsigned
//! form without zig-zag occurs inside KRaft control records only.
//!
//! Decoding follows Kafka's `ByteUtils`: encodings that are longer than needed
//! are accepted, bits beyond the type's width in the last byte are dropped, and
//! only a continuation bit in the last possible byte is an error.

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
    // One byte is by far the most frequent case in record prefixes.
    match bytes.first() {
        Some(&byte) if byte < 0x80 => Ok((u32::from(byte), 1)),
        _ => decode_unsigned_long::<5>(bytes).map(|(n, len)| (low32(n), len)),
    }
}

/// Reads a zig-zag varint of at most 5 bytes; gives it and its length.
#[inline]
pub fn decode_varint(bytes: &[u8]) -> Result<(i32, usize), VarintError> {
    let (n, len) = decode_unsigned(bytes)?;
    Ok(((n >> 1).cast_signed() ^ -(n & 1).cast_signed(), len))
}

/// Reads a zig-zag varint of at most 10 bytes; gives it and its length.
#[inline]
pub fn decode_varlong(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    let (n, len) = match bytes.first() {
        Some(&byte) if byte < 0x80 => (u64::from(byte), 1),
        _ => decode_unsigned_long::<10>(bytes)?,
    };
    Ok(((n >> 1).cast_signed() ^ -(n & 1).cast_signed(), len))
}

fn decode_unsigned_long<const MOST: usize>(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
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
    let zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let bits = 64 - (zigzag | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

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
            for cut in 0..bytes.len() {
                assert_eq!(decode_varint(&bytes[..cut]), Err(VarintError::Incomplete));
            }
        }
        let least = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(decode_varlong(&least), Ok((i64::MIN, 10)));
        assert_eq!(varlong_len(i64::MIN), 10);
        assert_eq!(varlong_len(i64::MAX), 10);
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
}
