//! The five fields that a record starts with: length, attributes, timestamp delta, offset
//! delta and length of the key. They are what a walk decodes of every record, and they
//! are adjacent, so a decoder may take them all at once.

use logseg_core::arch::{PrefixDecoder, PrefixLoop, with_prefix_decoder};
use logseg_core::cpu::{Cpu, Feature};
use logseg_core::varint::{Prefix, decode_varint, decode_varlong};

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

/// Where the records of a section start.
#[must_use]
pub fn starts(section: &[u8]) -> Vec<u32> {
    let base = section.as_ptr().addr();
    split_records(section).map(|record| (record.as_ptr().addr() - base) as u32).collect()
}

/// Number of records, then the sums of the fields and of the sizes of the prefixes: if
/// they are right, all of it has been decoded.
pub type Sums = [i64; 7];

fn add(sums: &mut Sums, prefix: &Prefix) {
    let fields = [
        1,
        prefix.length.into(),
        prefix.attributes.into(),
        prefix.timestamp_delta,
        prefix.offset_delta.into(),
        prefix.key_length.map_or(-1, i64::from),
        prefix.len as i64,
    ];
    for (sum, field) in sums.iter_mut().zip(fields) {
        *sum = sum.wrapping_add(field);
    }
}

/// Which records of a section are decoded in a row.
#[derive(Debug, Clone, Copy)]
pub enum Way<'a> {
    /// From record to record, each of which says where the next one starts.
    Chained,
    /// At these positions. A walk with anything else to do comes close to this, since the
    /// processor goes ahead along the chain.
    At(&'a [u32]),
}

/// Runs over a section with one decoder, inlined.
#[inline(always)]
fn sum(section: &[u8], way: Way<'_>, decode: impl Fn(&[u8]) -> Prefix) -> Sums {
    let mut sums = [0; 7];
    match way {
        Way::Chained => {
            let mut rest = section;
            while !rest.is_empty() {
                let prefix = decode(rest);
                rest = &rest[prefix.length_len + prefix.length as usize..];
                add(&mut sums, &prefix);
            }
        }
        Way::At(starts) => {
            for &at in starts {
                add(&mut sums, &decode(&section[at as usize..]));
            }
        }
    }
    sums
}

/// A decoder with its name.
pub type Backend = (&'static str, Box<dyn Fn(&[u8], Way<'_>) -> Sums>);

/// All that there are on this machine. The first one is the measure for the others.
#[must_use]
pub fn backends() -> Vec<Backend> {
    let mut backends: Vec<Backend> = vec![
        ("unrolled", Box::new(unrolled)),
        ("word", Box::new(|section, way| core(Cpu::scalar(), section, way))),
    ];
    let cpu = Cpu::detect();
    for (feature, name) in [(Feature::Bmi2, "bmi2"), (Feature::Neon, "neon")] {
        if cpu.has(feature) {
            backends.push((name, Box::new(move |section, way| core(cpu, section, way))));
        }
    }
    backends.push(("bytes", Box::new(byte_by_byte)));
    #[cfg(target_arch = "x86_64")]
    backends.push(("varint-simd", Box::new(varint_simd)));
    backends
}

/// Core's decoders of whole prefixes.
fn core(cpu: Cpu, section: &[u8], way: Way<'_>) -> Sums {
    struct Sum<'a>(&'a [u8], Way<'a>);

    impl PrefixLoop for Sum<'_> {
        type Output = Sums;

        #[inline(always)]
        fn run(self, decoder: impl PrefixDecoder) -> Sums {
            sum(
                self.0,
                self.1,
                #[inline(always)]
                |bytes| match Prefix::quick(decoder, bytes) {
                    Some(prefix) => prefix,
                    None => Prefix::careful(bytes).expect("a prefix"),
                },
            )
        }
    }

    with_prefix_decoder(cpu, Sum(section, way))
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
    let mut len = length_len + 1;
    let (timestamp_delta, n) = varlong(&bytes[len..]);
    len += n;
    let (offset_delta, n) = varint(&bytes[len..]);
    len += n;
    let (key_length, n) = varint(&bytes[len..]);
    len += n;
    let key_length = u32::try_from(key_length).ok();
    Prefix { length, attributes, timestamp_delta, offset_delta, key_length, length_len, len }
}

/// Core's decoders of single fields, which are unrolled: what whole prefixes must beat.
fn unrolled(section: &[u8], way: Way<'_>) -> Sums {
    let varint = |bytes: &[u8]| decode_varint(bytes).expect("a varint");
    let varlong = |bytes: &[u8]| decode_varlong(bytes).expect("a varlong");
    sum(section, way, |bytes| field_by_field(bytes, varint, varlong))
}

/// The loop that one writes first.
fn byte_by_byte(section: &[u8], way: Way<'_>) -> Sums {
    sum(section, way, |bytes| field_by_field(bytes, varint, varlong))
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
fn varint_simd(section: &[u8], way: Way<'_>) -> Sums {
    let varint = |bytes: &[u8]| varint_simd::decode_zigzag::<i32>(bytes).expect("a varint");
    let varlong = |bytes: &[u8]| varint_simd::decode_zigzag::<i64>(bytes).expect("a varlong");
    sum(section, way, |bytes| field_by_field(bytes, varint, varlong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_backends_agree_on_all_mixes() {
        for name in MIXES {
            let section = mix(name);
            let starts = starts(&section);
            let want = byte_by_byte(&section, Way::Chained);
            assert_eq!(want[0], starts.len() as i64);
            for (backend, sums) in backends() {
                assert_eq!(sums(&section, Way::Chained), want, "{backend}, {name}");
                assert_eq!(sums(&section, Way::At(&starts)), want, "{backend}, {name}");
            }
        }
    }
}
