//! Cuts an input in pieces.

/// A small generator (splitmix64): the same numbers everywhere, from a seed.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % end as u64).expect("below a usize")
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.bits().to_le_bytes()[7]
    }

    /// Bytes that compress like real data: words, runs, copies and noise.
    pub fn data(&mut self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 300);
        while out.len() < len {
            let n = 1 + self.below(300);
            match self.below(5) {
                0 => out.extend(std::iter::repeat_n(self.byte(), n)),
                1 => out.extend((0..n / 4 + 1).map(|_| self.byte())),
                2 if !out.is_empty() => {
                    // As far back as it goes: across blocks and windows.
                    let back = 1 + self.below(out.len());
                    for _ in 0..n {
                        out.push(out[out.len() - back]);
                    }
                }
                _ => {
                    for _ in 0..n / 8 + 1 {
                        let word = ["offset ", "batch ", "record ", "0123456 ", "{\"key\": "];
                        out.extend(word[self.below(word.len())].as_bytes());
                    }
                }
            }
        }
        out.truncate(len);
        out
    }
}

/// How an input is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunking {
    /// Not at all.
    Whole,
    /// One byte at a time.
    Bytes,
    /// Once.
    At(usize),
    /// Anywhere, by a seed: pieces of 1 to 40 bytes, and some larger.
    Random(u64),
}

impl Chunking {
    /// The pieces. None is empty.
    #[must_use]
    pub fn cut(self, input: &[u8]) -> Vec<&[u8]> {
        let mut rest = input;
        let mut random = match self {
            Self::Random(seed) => Random(seed),
            _ => Random(0),
        };
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let n = match self {
                Self::Whole => rest.len(),
                Self::Bytes => 1,
                Self::At(cut) if pieces.is_empty() && cut > 0 => cut,
                Self::At(_) => rest.len(),
                Self::Random(_) if random.below(8) == 0 => 1 + random.below(20_000),
                Self::Random(_) => 1 + random.below(40),
            };
            let (piece, behind) = rest.split_at(n.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces
    }

    /// Every way to cut `input` once.
    pub fn every_split(input: &[u8]) -> impl Iterator<Item = Self> {
        (0..=input.len()).map(Self::At)
    }
}
