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
pub fn crc32c(cpu: Cpu, bytes: &[u8]) -> u32 {
    let mut sum = Crc32c::new(cpu);
    sum.update(bytes);
    sum.finish()
}

/// CRC-32 (IEEE, as in zlib) of a slice.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
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
        for cpu in [Cpu::scalar(), Cpu::detect()] {
            for &(bytes, sum) in KNOWN {
                assert_eq!(crc32c(cpu, bytes), sum, "{cpu:?} {bytes:02x?}");
            }
        }
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn every_backend_agrees_at_every_length_and_split() {
        let bytes: [u8; 300] = core::array::from_fn(|i| (i * 131 + i / 7) as u8);
        for end in 0..bytes.len() {
            let sum = crc32c(Cpu::scalar(), &bytes[..end]);
            assert_eq!(crc32c(Cpu::detect(), &bytes[..end]), sum, "length {end}");
            for cpu in [Cpu::scalar(), Cpu::detect()] {
                let mut split = Crc32c::new(cpu);
                let (a, b) = bytes[..end].split_at(end / 3);
                split.update(a);
                split.update(b);
                assert_eq!(split.finish(), sum, "{cpu:?} length {end}");
            }
        }
    }
}
