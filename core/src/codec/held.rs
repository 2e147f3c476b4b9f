//! The few bytes of a header or a word that a cut input makes a decoder hold.

use heapless::Vec;

/// At most `N` bytes, which come piece by piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held<const N: usize>(Vec<u8, N>);

impl<const N: usize> Held<N> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes bytes of `input` from `at` on until `want` are held; true once they are.
    pub(crate) fn fill(&mut self, input: &[u8], at: &mut usize, want: usize) -> bool {
        let rest = input.get(*at..).unwrap_or_default();
        let missing = want.saturating_sub(self.0.len());
        let part = rest.get(..missing).unwrap_or(rest);
        // Nobody wants more than there is room for.
        if self.0.extend_from_slice(part).is_ok() {
            *at += part.len();
        }
        self.0.len() >= want
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The first `M` bytes; zeros for those that are not held.
    pub(crate) fn array<const M: usize>(&self) -> [u8; M] {
        let mut array = [0; M];
        for (to, &from) in array.iter_mut().zip(&self.0) {
            *to = from;
        }
        array
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
