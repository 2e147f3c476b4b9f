//! The arithmetic behind the backends of CRC-32C: polynomials over GF(2) modulo
//! Castagnoli's P, computed by the compiler.
//!
//! Bits are reflected: bit `i` of an `n`-bit word is the coefficient of `x^(n-1-i)`, so
//! the first byte of the input has the highest powers. A raw register `s` becomes, over
//! `n` bytes with the polynomial `D`,
//!
//! ```text
//!   (s·x^(8n) + D·x^32) mod P
//! ```
//!
//! This is linear. So parts of an input may be summed on their own, each from a register
//! of 0, then moved to their places by multiplication with a power of `x`, and added (XOR).
//! A carry-less product of reflected words comes out one bit too low, that is multiplied
//! by `x`; the `crc32` instruction reduces what it gets, and multiplies it by `x^32`. The
//! powers below make up for both.

/// Castagnoli's polynomial, reflected, without its `x^32`.
const POLY: u32 = 0x82f6_3b78;

/// `a·x mod P`.
pub(super) const fn times_x(a: u32) -> u32 {
    if a & 1 == 0 { a >> 1 } else { a >> 1 ^ POLY }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test))]
pub(super) use powers::*;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test))]
mod powers {
    use super::times_x;

    /// `a·b mod P`.
    pub(in crate::arch) const fn multiply(a: u32, mut b: u32) -> u32 {
        let mut product = 0;
        let mut bit = 1 << 31;
        while bit != 0 {
            if a & bit != 0 {
                product ^= b;
            }
            b = times_x(b);
            bit >>= 1;
        }
        product
    }

    /// `x^n mod P`.
    pub(in crate::arch) const fn x_to_the(mut n: u32) -> u32 {
        let (mut power, mut square) = (1 << 31, 1 << 30);
        while n != 0 {
            if n & 1 != 0 {
                power = multiply(power, square);
            }
            square = multiply(square, square);
            n >>= 1;
        }
        power
    }

    /// What moves a register `n` bytes on: the carry-less product of both has 63 bits,
    /// and the `crc32` instruction makes `s·x^(8n)` of it, since `1 + 32` powers come in
    /// on the way.
    pub(in crate::arch) const fn shift_by(n: u32) -> u32 {
        x_to_the(8 * n - 33)
    }

    /// What moves 128 bits `n` bytes on: `[low, high]`, for the low 64 bits, which have
    /// the powers from 64, and for the high ones. The product of 64 bits and such a word
    /// of 32 has 32 bits less than 128 at its end: `32 + 1` powers come in.
    #[cfg(any(target_arch = "x86_64", test))]
    pub(in crate::arch) const fn fold_by(n: u32) -> [u32; 2] {
        [x_to_the(8 * n + 64 - 33), x_to_the(8 * n - 33)]
    }

    /// Words of 8 bytes that each of three chains takes at most before they are merged.
    pub(in crate::arch) const LONGEST: usize = 128;

    /// What moves a register `n` words of 8 bytes on, and twice as far. The first is a
    /// filler.
    pub(in crate::arch) static SHIFT: [[u32; 2]; LONGEST + 1] = {
        let mut shift = [[0; 2]; LONGEST + 1];
        let mut n = 1;
        while n <= LONGEST {
            // Evaluated by the compiler, which would tell.
            #[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)]
            {
                shift[n] = [shift_by(8 * n as u32), shift_by(16 * n as u32)];
            }
            n += 1;
        }
        shift
    };

    /// The start of an input, as long as three chains of equal length can take it at once.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(in crate::arch) struct Thirds<'a> {
        parts: [&'a [[u8; 8]]; 3],
        /// What moves the register of the second third over the last one.
        pub(in crate::arch) once: u32,
        /// And that of the first one over both.
        pub(in crate::arch) twice: u32,
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    impl<'a> Thirds<'a> {
        /// Of an input of 24 bytes and more; gives what is behind them, too.
        #[inline(always)]
        pub(in crate::arch) fn of(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
            let n = (bytes.len() / 24).min(LONGEST);
            let &[once, twice] = SHIFT.get(n)?;
            let (block, behind) = bytes.split_at_checked(24 * n)?;
            let (words, _) = block.as_chunks::<8>();
            let (first, words) = words.split_at_checked(n)?;
            let (second, third) = words.split_at_checked(n)?;
            Some((Self { parts: [first, second, third], once, twice }, behind))
        }

        /// A word of each.
        #[inline(always)]
        pub(in crate::arch) fn words(&self) -> impl Iterator<Item = [[u8; 8]; 3]> {
            let [first, second, third] = self.parts;
            first.iter().zip(second).zip(third).map(|((&a, &b), &c)| [a, b, c])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::scalar;

    /// Product without reduction.
    fn clmul(a: u64, b: u32) -> u128 {
        (0..32).filter(|bit| b >> bit & 1 != 0).fold(0, |sum, bit| sum ^ u128::from(a) << bit)
    }

    #[test]
    fn powers_are_repeated_products() {
        let mut power = 1 << 31;
        for n in 0..2000 {
            assert_eq!(x_to_the(n), power, "x^{n}");
            power = times_x(power);
        }
        assert_eq!(multiply(x_to_the(70), x_to_the(1 << 20)), x_to_the((1 << 20) + 70));
    }

    #[test]
    fn a_shift_is_as_many_zero_bytes() {
        let zeros = [0; 16 * LONGEST];
        for state in [1, 1 << 31, 0x1234_5678, !0] {
            let moved = |shift| {
                let product = clmul(u64::from(state), shift) as u64;
                scalar::crc32c(0, &product.to_le_bytes())
            };
            for (n, &[once, twice]) in SHIFT.iter().enumerate().skip(1) {
                assert_eq!(moved(once), scalar::crc32c(state, &zeros[..8 * n]), "{n} words");
                assert_eq!(moved(twice), scalar::crc32c(state, &zeros[..16 * n]), "{n} words");
            }
        }
    }

    #[test]
    fn a_fold_is_as_many_zero_bytes() {
        let bytes: [u8; 16] = core::array::from_fn(|i| (i * 77 + 5) as u8);
        let (low, high) = bytes.split_at(8);
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap());
        for n in [16, 32, 48, 64, 128, 256, 512] {
            let [l, h] = fold_by(n);
            let folded = clmul(word(low), l) ^ clmul(word(high), h);
            let mut long = [0; 528];
            long[..16].copy_from_slice(&bytes);
            let want = scalar::crc32c(0, &long[..16 + n as usize]);
            assert_eq!(scalar::crc32c(0, &folded.to_le_bytes()), want, "{n} bytes");
        }
    }
}
