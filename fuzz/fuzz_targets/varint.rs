//! Any bytes as varints, against the definition spelt out digit by digit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logseg_core::Cpu;
use logseg_core::arch::{PrefixDecoder, PrefixLoop, with_prefix_decoder};
use logseg_core::varint::{
    Prefix, VarintError, decode_unsigned, decode_varint, decode_varlong, varint_len, varlong_len,
};
use logseg_tests::build::put_varint;

/// Digits of seven bits, least first, at most so many; the value may be too wide.
fn digits(bytes: &[u8], most: usize) -> Result<(u128, usize), VarintError> {
    let mut value = 0;
    for (i, byte) in bytes.iter().enumerate().take(most) {
        value += u128::from(byte % 128) << (7 * i);
        if *byte < 128 {
            return Ok((value, i + 1));
        }
    }
    Err(if bytes.len() < most { VarintError::Incomplete } else { VarintError::TooLong })
}

/// The prefix that the bytes start with, by one decoder.
struct Quick<'a>(&'a [u8]);

impl PrefixLoop for Quick<'_> {
    type Output = Option<Prefix>;

    #[inline(always)]
    fn run(self, decoder: impl PrefixDecoder) -> Option<Prefix> {
        Prefix::quick(decoder, self.0)
    }
}

/// A record prefix by the definition of its fields.
fn prefix(bytes: &[u8]) -> Result<Prefix, VarintError> {
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    let (length, length_len) = decode_varint(bytes)?;
    let &attributes = rest(length_len).first().ok_or(VarintError::Incomplete)?;
    let (timestamp_delta, a) = decode_varlong(rest(length_len + 1))?;
    let (offset_delta, b) = decode_varint(rest(length_len + 1 + a))?;
    let (key_length, c) = decode_varint(rest(length_len + 1 + a + b))?;
    let key_length = u32::try_from(key_length).ok();
    let len = length_len + 1 + a + b + c;
    Ok(Prefix { length, attributes, timestamp_delta, offset_delta, key_length, length_len, len })
}

fn unzigzag(n: u64) -> i64 {
    let half = (n / 2).cast_signed();
    if n.is_multiple_of(2) { half } else { -1 - half }
}

fuzz_target!(|data: &[u8]| {
    let want = prefix(data);
    assert_eq!(Prefix::careful(data), want);
    for cpu in Cpu::detect().tiers() {
        if let Some(quick) = with_prefix_decoder(cpu, Quick(data)) {
            assert_eq!(Ok(quick), want, "{cpu:?}");
        }
    }
    let wide = digits(data, 5);
    // Bits beyond the type drop out.
    assert_eq!(decode_unsigned(data), wide.map(|(n, len)| (n as u32, len)));
    let want = wide.map(|(n, len)| (unzigzag(u64::from(n as u32)) as i32, len));
    assert_eq!(decode_varint(data), want);
    let long = digits(data, 10).map(|(n, len)| (unzigzag(n as u64), len));
    assert_eq!(decode_varlong(data), long);
    if let Ok((value, len)) = decode_varlong(data) {
        let mut again = Vec::new();
        put_varint(&mut again, value);
        assert_eq!(varlong_len(value), again.len());
        assert!(again.len() <= len);
        assert_eq!(decode_varlong(&again), Ok((value, again.len())));
    }
    if let Ok((value, len)) = decode_varint(data) {
        let mut again = Vec::new();
        put_varint(&mut again, value.into());
        assert_eq!(varint_len(value), again.len());
        assert!(again.len() <= len);
        assert_eq!(decode_varint(&again), Ok((value, again.len())));
    }
});
