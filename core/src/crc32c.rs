//! CRC-32C (Castagnoli), the checksum of RecordBatch v2 over bytes [21, end),
//! and beside it CRC-32 (IEEE), that of v0/v1 messages over [16, end).
//!
//! Both are plain values: no masking, as Snappy framing or TFRecord would have.

use crate::arch;
use crate::cpu::Cpu;

/// Incremental CRC-32C: any chunking of the input gives the same sum.
#[derive(Debug, Clone, Copy)]
pub struct Crc32c {
    cpu: Cpu,
    state: u32,
}

impl Crc32c {
    /// Starts a sum that uses the instructions `cpu` allows.
    #[must_use]
    pub const fn new(cpu: Cpu) -> Self {
        Self { cpu, state: !0 }
    }

    /// Adds bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.state = arch::crc32c_update(self.cpu, self.state, bytes);
    }

    /// The sum of everything added so far.
    #[must_use]
    pub const fn finish(self) -> u32 {
        !self.state
    }
}

/// CRC-32C of a slice.
///
/// ```
/// use logseg_core::{Cpu, crc32c::crc32c};
/// assert_eq!(crc32c(Cpu::detect(), b"123456789"), 0xe306_9283);
/// ```
#[must_use]
#[inline]
pub fn crc32c(cpu: Cpu, bytes: &[u8]) -> u32 {
    let mut sum = Crc32c::new(cpu);
    sum.update(bytes);
    sum.finish()
}

/// What computes a CRC-32C with a token: `table`, `sse42`, `sse42-pclmulqdq`,
/// `vpclmulqdq-256`, `vpclmulqdq-512` or `aarch64-crc`.
#[must_use]
pub fn backend(cpu: Cpu) -> &'static str {
    arch::Crc32cBackend::of(cpu).name()
}

/// CRC-32 (IEEE, as in zlib) of a slice.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    /// RFC 3720 appendix B.4, and the check value of the catalogue of CRCs.
    const KNOWN: &[(&[u8], u32)] = &[
        (b"", 0),
        (b"123456789", 0xe306_9283),
        (&[0; 32], 0x8a91_36aa),
        (&[0xff; 32], 0x62a8_ab43),
    ];

    #[test]
    fn every_backend_gives_the_known_sums() {
        let up: [u8; 32] = core::array::from_fn(|i| i as u8);
        let down = up.map(|byte| 31 - byte);
        // "An iSCSI - SCSI Read (10) Command PDU".
        let mut read = [0; 48];
        for (at, byte) in
            [(0, 1), (1, 0xc0), (16, 0x14), (22, 4), (27, 0x14), (31, 0x18), (32, 0x28), (40, 2)]
        {
            read[at] = byte;
        }
        let lists: [(&[u8], u32); 3] =
            [(&up, 0x46dd_794e), (&down, 0x113f_db5c), (&read, 0xd996_3a56)];
        for cpu in backends() {
            for &(bytes, sum) in KNOWN.iter().chain(&lists) {
                assert_eq!(crc32c(cpu, bytes), sum, "{} {bytes:02x?}", backend(cpu));
            }
        }
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn tiers_go_through_every_backend() {
        let names: Vec<_> = backends().into_iter().map(backend).collect();
        assert_eq!(names.last(), Some(&"table"));
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("crc") {
            assert_eq!(names, ["aarch64-crc", "table"]);
        }
        #[cfg(target_arch = "x86_64")]
        {
            let all = ["vpclmulqdq-512", "vpclmulqdq-256", "sse42-pclmulqdq", "sse42", "table"];
            assert!(all.ends_with(&names) || names.len() == 1, "{names:?}");
        }
    }

    /// Bit by bit: raw registers over `bytes` of every length, from `state`.
    fn registers(mut state: u32, bytes: &[u8]) -> Vec<u32> {
        let mut registers = vec![state];
        for &byte in bytes {
            state ^= u32::from(byte);
            for _ in 0..8 {
                state = if state & 1 == 1 { state >> 1 ^ 0x82f6_3b78 } else { state >> 1 };
            }
            registers.push(state);
        }
        registers
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut seed = 1u32;
        (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect()
    }

    /// One of each backend.
    fn backends() -> Vec<Cpu> {
        let mut cpus: Vec<_> = arch::detect_with_std().tiers().collect();
        cpus.dedup_by_key(|cpu| backend(*cpu));
        cpus
    }

    #[test]
    fn every_backend_is_right_at_every_length_and_alignment() {
        let bytes = noise(1200);
        for skip in [0, 1, 7, 21, 63] {
            let bytes = &bytes[skip..];
            for (len, register) in registers(!0, &bytes[..1100]).into_iter().enumerate() {
                for cpu in backends() {
                    let sum = crc32c(cpu, &bytes[..len]);
                    assert_eq!(sum, !register, "{}, {len} bytes from {skip}", backend(cpu));
                }
            }
        }
    }

    /// Around what backends take at once, and where they begin to align.
    #[test]
    fn every_backend_is_right_around_its_thresholds() {
        let bytes = noise(20_000);
        for skip in [0, 61] {
            let bytes = &bytes[skip..];
            let registers = registers(!0, &bytes[..17_000]);
            for at in [3 << 10, 4 << 10, 6 << 10, 16 << 10] {
                for len in (at - 66..at + 66).chain([at + 300, at + 555]) {
                    for cpu in backends() {
                        let sum = crc32c(cpu, &bytes[..len]);
                        assert_eq!(sum, !registers[len], "{}, {len} from {skip}", backend(cpu));
                    }
                }
            }
        }
    }

    #[test]
    fn every_backend_goes_on_at_every_split() {
        for len in [40, 300, 700, 1500] {
            let bytes = noise(len);
            let want = !registers(!0, &bytes)[len];
            for cpu in backends() {
                for split in 0..=len {
                    let (a, b) = bytes.split_at(split);
                    let mut sum = Crc32c::new(cpu);
                    sum.update(a);
                    sum.update(b);
                    assert_eq!(sum.finish(), want, "{}, {split} of {len}", backend(cpu));
                }
                for chunk in [1, 3, 64, 255, 256, 257, 511, 600] {
                    let mut sum = Crc32c::new(cpu);
                    bytes.chunks(chunk).for_each(|chunk| sum.update(chunk));
                    assert_eq!(sum.finish(), want, "{}, {len} by {chunk}", backend(cpu));
                }
            }
        }
    }
}
