//! What the encoders of snappy and lz4 share: reading what may match, collecting a block,
//! and handing out what it came to.

use super::compress::Written;
use super::out::Out;
use super::{CodecError, Pause};

/// An encoder that collects its input to blocks.
pub(crate) trait Blocks {
    /// Writes what waits, as far as there is room; false if some still waits.
    fn drain(&mut self, out: &mut Out<'_>) -> bool;

    /// Room of the block that is collected, never none.
    fn spare(&mut self) -> &mut [u8];

    /// So many bytes of the room are filled; a block that is full is compressed, and waits.
    fn filled(&mut self, n: usize) -> Result<(), CodecError>;
}

/// [`super::Compress::advance`] of such an encoder.
pub(crate) fn advance(
    blocks: &mut impl Blocks,
    input: &[u8],
    out: &mut [u8],
) -> Result<Written, CodecError> {
    let mut out = Out::new(out);
    let mut consumed = 0;
    loop {
        if !blocks.drain(&mut out) {
            return Ok(Written { consumed, produced: out.len(), pause: Pause::WindowFull });
        }
        let rest = input.get(consumed..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(Written { consumed, produced: out.len(), pause: Pause::InputDry });
        }
        let n = Out::new(blocks.spare()).some(rest);
        blocks.filled(n)?;
        consumed += n;
    }
}

/// A few bytes that wait for room in the output, and behind them a part of lent memory
/// whose start and end this knows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waiting {
    head: [u8; 16],
    head_at: usize,
    head_len: usize,
    body_at: usize,
    body_len: usize,
}

impl Waiting {
    /// `head`, at most 16 bytes, and then `body` bytes of the memory.
    pub(crate) fn set(&mut self, head: &[u8], body: usize) {
        let mut bytes = [0; 16];
        let mut out = Out::new(&mut bytes);
        let head_len = out.some(head);
        *self = Self { head: bytes, head_at: 0, head_len, body_at: 0, body_len: body };
    }

    /// Bytes that wait.
    pub(crate) const fn len(&self) -> usize {
        self.head_len - self.head_at + (self.body_len - self.body_at)
    }

    /// Writes what there is room for; false if some still waits. `memory` is what the
    /// second part is of.
    pub(crate) fn drain(&mut self, memory: &[u8], out: &mut Out<'_>) -> bool {
        let head = self.head.get(self.head_at..self.head_len).unwrap_or_default();
        self.head_at += out.some(head);
        if self.head_at == self.head_len {
            let body = memory.get(self.body_at..self.body_len).unwrap_or_default();
            self.body_at += out.some(body);
        }
        self.len() == 0
    }
}

/// Four bytes at `at`, little-endian; 0 beyond the end.
#[inline(always)]
pub(crate) fn load32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// How many bytes from `earlier` on are as those from `later` on, up to `end`.
#[inline(always)]
pub(crate) fn common_len(bytes: &[u8], earlier: usize, later: usize, end: usize) -> usize {
    let mut left = bytes.get(earlier..).unwrap_or_default();
    let mut right = bytes.get(later..end).unwrap_or_default();
    let mut len = 0;
    while let (Some((a, behind_a)), Some((b, behind_b))) =
        (left.split_first_chunk::<8>(), right.split_first_chunk::<8>())
    {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return len + (differ.trailing_zeros() / 8) as usize;
        }
        (left, right) = (behind_a, behind_b);
        len += 8;
    }
    len + left.iter().zip(right).take_while(|(a, b)| a == b).count()
}
