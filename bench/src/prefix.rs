//! The five fields that a record starts with: length, attributes, timestamp delta, offset
//! delta and length of the key. They are what a walk decodes of every record, and they
//! are adjacent, so a decoder may take them all at once.

use logseg_core::varint::{decode_varint, decode_varlong};

use crate::{plain, split_records};

/// Segments of the corpus, whose records are a mix each.
pub const MIXES: [&str; 4] = ["flights-zstd", "levels", "birdstrikes-mixed", "webhooks-snappy"];

/// Bytes of a mix, at most: they stay in the second-level cache.
const MOST: usize = 512 << 10;

/// The records of a mix, as they lie in a records section.
///
/// # Panics
///
/// If the corpus is not there.
#[must_use]
pub fn mix(name: &str) -> Vec<u8> {
    let section = plain(name);
    let mut mix = Vec::with_capacity(MOST);
    for record in split_records(&section) {
        if mix.len() + record.len() > MOST {
            break;
        }
        mix.extend_from_slice(record);
    }
    mix
}

/// A prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes behind the length field.
    pub length: i32,
    /// Not used by anyone yet.
    pub attributes: u8,
    /// Against the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Against the batch's base offset.
    pub offset_delta: i32,
    /// Negative for null.
    pub key_len: i32,
    /// Bytes of the length field.
    pub length_len: usize,
    /// Bytes of the prefix.
    pub size: usize,
}

/// Number of records, then the sums of the fields and of the sizes of the prefixes: if
/// they are right, all of it has been decoded.
pub type Sums = [i64; 7];

/// Goes from record to record with one decoder, inlined.
#[inline(always)]
fn sum(section: &[u8], decode: impl Fn(&[u8]) -> Prefix) -> Sums {
    let (mut sums, mut at): (Sums, _) = ([0; 7], 0);
    while at < section.len() {
        let prefix = decode(&section[at..]);
        at += prefix.length_len + prefix.length as usize;
        let fields = [
            1,
            prefix.length.into(),
            prefix.attributes.into(),
            prefix.timestamp_delta,
            prefix.offset_delta.into(),
            prefix.key_len.into(),
            prefix.size as i64,
        ];
        for (sum, field) in sums.iter_mut().zip(fields) {
            *sum = sum.wrapping_add(field);
        }
    }
    sums
}

/// A decoder with its name.
pub type Backend = (&'static str, fn(&[u8]) -> Sums);

/// All that there are on this machine. The first one is the measure for the others.
#[must_use]
pub fn backends() -> Vec<Backend> {
    vec![
        ("core-fields", core_fields),
        // Core's own decoders of whole prefixes, one line for each of its backends, go
        // here, and a function for each below.
        ("bytes", byte_by_byte),
        #[cfg(target_arch = "x86_64")]
        ("varint-simd", varint_simd),
    ]
}

/// Five fields, one after the other, `varint` and `varlong` being given.
#[inline(always)]
fn field_by_field(
    bytes: &[u8],
    varint: impl Fn(&[u8]) -> (i32, usize),
    varlong: impl Fn(&[u8]) -> (i64, usize),
) -> Prefix {
    let (length, length_len) = varint(bytes);
    let attributes = bytes[length_len];
    let mut size = length_len + 1;
    let (timestamp_delta, n) = varlong(&bytes[size..]);
    size += n;
    let (offset_delta, n) = varint(&bytes[size..]);
    size += n;
    let (key_len, n) = varint(&bytes[size..]);
    size += n;
    Prefix { length, attributes, timestamp_delta, offset_delta, key_len, length_len, size }
}

/// Core's decoders of single fields.
fn core_fields(section: &[u8]) -> Sums {
    let varint = |bytes: &[u8]| decode_varint(bytes).expect("a varint");
    let varlong = |bytes: &[u8]| decode_varlong(bytes).expect("a varlong");
    sum(section, |bytes| field_by_field(bytes, varint, varlong))
}

/// The loop that one writes first.
fn byte_by_byte(section: &[u8]) -> Sums {
    sum(section, |bytes| field_by_field(bytes, varint, varlong))
}

/// A varint and its length, byte by byte.
///
/// # Panics
///
/// If the bytes end within it.
#[must_use]
#[inline]
pub fn varint(bytes: &[u8]) -> (i32, usize) {
    let (value, len) = varlong(bytes);
    (value as i32, len)
}

#[inline]
fn varlong(bytes: &[u8]) -> (i64, usize) {
    let (mut value, mut at) = (0u64, 0);
    loop {
        let byte = bytes[at];
        value |= u64::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte < 0x80 {
            return ((value >> 1) as i64 ^ -((value & 1) as i64), at);
        }
    }
}

/// `varint-simd`, field by field, its safe functions. Those for two and four fields at
/// once are there only if SSSE3 is assumed of the machine at compile time.
#[cfg(target_arch = "x86_64")]
fn varint_simd(section: &[u8]) -> Sums {
    let varint = |bytes: &[u8]| varint_simd::decode_zigzag::<i32>(bytes).expect("a varint");
    let varlong = |bytes: &[u8]| varint_simd::decode_zigzag::<i64>(bytes).expect("a varlong");
    sum(section, |bytes| field_by_field(bytes, varint, varlong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_backends_agree_on_all_mixes() {
        for name in MIXES {
            let section = mix(name);
            let want = byte_by_byte(&section);
            assert_eq!(want[0], split_records(&section).count() as i64);
            for (backend, sums) in backends() {
                assert_eq!(sums(&section), want, "{backend}, {name}");
            }
        }
    }
}
