//! A token that says which instructions may be used.
//!
//! Backends in [`crate::arch`] take a [`Cpu`] instead of detecting anything
//! themselves: no global state, and every backend can be chosen in a test.

/// Which instruction sets the code may use; a `Copy` token without state.
///
/// Only [`Cpu::detect`] hands out a token with more than the target's baseline,
/// so holding one with a feature set proves that the processor has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cpu {
    sse42: bool,
}

impl Cpu {
    /// Portable code only, whatever the processor has.
    #[must_use]
    pub const fn scalar() -> Self {
        Self { sse42: false }
    }

    /// Everything this processor has. On x86-64 it asks CPUID, which needs no
    /// operating system; elsewhere it is the same as [`Cpu::scalar`].
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            // Leaf 1, ECX bit 20. SSE registers are part of the x86-64 ABI, so
            // no XCR0 check is due.
            let leaf1 = core::arch::x86_64::__cpuid(1);
            Self { sse42: leaf1.ecx & (1 << 20) != 0 }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::scalar()
    }

    /// Whether the `crc32` instruction of SSE4.2 may be used.
    #[must_use]
    pub const fn has_sse42(self) -> bool {
        self.sse42
    }
}
