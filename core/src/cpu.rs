//! A token that says which instructions may be used.
//!
//! Backends in [`crate::arch`] take a [`Cpu`] instead of detecting anything
//! themselves: no global state, and every backend can be chosen in a test.
//!
//! On x86-64 the processor tells what it has (CPUID), and which registers the operating
//! system saves (XCR0); no call of that system is needed. On aarch64 a program may not
//! ask by itself: there it is what the target is compiled for, or what a host that did
//! ask says to `Cpu::assume_crc`.

/// A set of instructions that some backend makes use of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Feature {
    /// x86-64: the `crc32` instruction.
    Sse42,
    /// x86-64: BMI1 and BMI2 with a `pext` that is not microcode.
    Bmi2,
    /// x86-64: carry-less multiplication of 128-bit registers.
    Pclmulqdq,
    /// x86-64: carry-less multiplication of 256-bit registers, with AVX2.
    Vpclmulqdq,
    /// x86-64: carry-less multiplication of 512-bit registers, with AVX-512 F, BW and VL.
    Avx512,
    /// aarch64: the `crc32c` instructions.
    Crc,
    /// aarch64: NEON, which its usual targets always have.
    Neon,
}

impl Feature {
    /// All of them; of those that do the same the best one is last.
    pub const ALL: &[Self] = &[
        Self::Sse42,
        Self::Bmi2,
        Self::Pclmulqdq,
        Self::Vpclmulqdq,
        Self::Avx512,
        Self::Crc,
        Self::Neon,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

const _: () = assert!(Feature::ALL.len() <= 8, "they are bits of a byte");

/// Which instructions the code may use; a `Copy` token without state.
///
/// Only `Cpu::detect` and, unsafe, `Cpu::assume_crc` give a token with more than
/// [`Cpu::scalar`] has, so holding one with a feature proves that the processor has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cpu {
    features: u8,
}

impl Cpu {
    /// Portable code only, whatever the processor has.
    #[must_use]
    pub const fn scalar() -> Self {
        Self { features: 0 }
    }

    /// Whether instructions may be used.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.features & feature.bit() != 0
    }

    /// The same without some instructions: to choose a backend, in tests and benches.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self { features: self.features & !feature.bit() }
    }

    /// This token, and it again and again without the last of the features that it has
    /// left, down to [`Cpu::scalar`]: so every backend that the processor can run gets its turn.
    pub fn tiers(self) -> impl Iterator<Item = Self> {
        core::iter::successors(Some(self), |cpu| {
            let last = Feature::ALL.iter().rfind(|&&feature| cpu.has(feature))?;
            Some(cpu.without(*last))
        })
    }

    /// For `arch`, which alone may claim that the processor has something: every backend
    /// there relies on it.
    #[cfg_attr(
        not(any(test, target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "nothing but portable code")
    )]
    pub(crate) const fn with(self, feature: Feature, has: bool) -> Self {
        if has { Self { features: self.features | feature.bit() } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_go_down_to_scalar_one_feature_at_a_time() {
        let all = Feature::ALL.iter().fold(Cpu::scalar(), |cpu, &feature| cpu.with(feature, true));
        assert_eq!(all.tiers().count(), 1 + Feature::ALL.len());
        assert_eq!(all.tiers().last(), Some(Cpu::scalar()));
        assert!(!all.without(Feature::Sse42).has(Feature::Sse42));
        assert!(all.without(Feature::Sse42).has(Feature::Bmi2));
        assert_eq!(Cpu::scalar().tiers().count(), 1);
        assert_eq!(Cpu::scalar().with(Feature::Crc, false), Cpu::scalar());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn detects_what_the_standard_library_detects() {
        extern crate std;
        let cpu = Cpu::detect();
        assert_eq!(cpu.has(Feature::Sse42), std::is_x86_feature_detected!("sse4.2"));
        assert_eq!(cpu.has(Feature::Pclmulqdq), std::is_x86_feature_detected!("pclmulqdq"));
        assert_eq!(
            cpu.has(Feature::Vpclmulqdq),
            std::is_x86_feature_detected!("vpclmulqdq") && std::is_x86_feature_detected!("avx2")
        );
        assert_eq!(
            cpu.has(Feature::Avx512),
            std::is_x86_feature_detected!("vpclmulqdq")
                && ["f", "bw", "vl"].iter().all(|&part| match part {
                    "f" => std::is_x86_feature_detected!("avx512f"),
                    "bw" => std::is_x86_feature_detected!("avx512bw"),
                    _ => std::is_x86_feature_detected!("avx512vl"),
                })
        );
        // Slow ones of AMD are left out on purpose.
        assert!(!cpu.has(Feature::Bmi2) || std::is_x86_feature_detected!("bmi2"));
    }
}
