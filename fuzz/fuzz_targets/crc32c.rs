//! Every backend gives the sum of another library, at any alignment and split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logseg_core::Cpu;
use logseg_core::crc32c::{Crc32c, crc32c};

fuzz_target!(|data: &[u8]| {
    let [skip, first, second, data @ ..] = data else { return };
    // Up to four times, past the lengths that the fuzzer makes by itself.
    let data = data.repeat(1 + usize::from(*skip >> 6));
    let data = data.get(usize::from(*skip % 64)..).unwrap_or_default();
    let want = crc32c::crc32c(data);
    let at = |n: u8| usize::from(n) * data.len() / 255;
    let (a, b) = (at(*first.min(second)), at(*first.max(second)));
    for cpu in Cpu::detect().tiers() {
        assert_eq!(crc32c(cpu, data), want, "{cpu:?}");
        let mut sum = Crc32c::new(cpu);
        sum.update(&data[..a]);
        sum.update(&data[a..b]);
        sum.update(&data[b..]);
        assert_eq!(sum.finish(), want, "{cpu:?} in parts");
    }
});
