//! One raw snappy block: its length, then elements.
//!
//! ```text
//!  length           unsigned varint, at most 5 bytes: bytes the block decodes to
//!  tag & 3 = 0      literal of (tag >> 2) + 1 bytes; 60 to 63: 1 to 4 length bytes (LE)
//!  tag & 3 = 1      copy of 4 + (tag >> 2 & 7), 11 bits of distance: tag >> 5, byte
//!  tag & 3 = 2      copy of 1 + (tag >> 2), 2 bytes of distance (LE)
//!  tag & 3 = 3      copy of 1 + (tag >> 2), 4 bytes of distance (LE)
//! ```
//! Decoded element by element over the window, so that neither the block nor its
//! output has to be in memory. Copies reach back at most 64 KiB with every encoder
//! in use, though the format allows more.

use super::{CodecError, CodecErrorKind};
use crate::error::Corruption;
use crate::window::Window;

/// History that every encoder in use keeps to.
pub const HISTORY: usize = 64 << 10;

/// Where a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the length: bits so far, and where the next ones go.
    Length {
        value: u64,
        shift: u32,
    },
    /// Before a tag.
    Tag,
    /// Behind a tag, with some of its extra bytes.
    Extra {
        tag: u8,
        value: u32,
        have: u8,
    },
    Literal {
        left: u32,
    },
    Copy {
        distance: u32,
        left: u32,
    },
}

/// How a call to [`Block::advance`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Dry,
    Full,
    Done,
}

/// Decodes one raw block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    state: State,
    /// Bytes the block decodes to, and those of them that are decoded.
    declared: u64,
    produced: u64,
}

// No decoder hoards its input.
const _: () = assert!(size_of::<Block>() <= 48);

impl Block {
    pub(crate) const fn new() -> Self {
        Self { state: State::Length { value: 0, shift: 0 }, declared: 0, produced: 0 }
    }

    /// Decodes from `input`, which may be cut anywhere; gives what it consumed.
    pub(crate) fn advance(
        &mut self,
        input: &[u8],
        out: &mut Window<'_>,
    ) -> Result<(usize, Step), CodecError> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            match self.state {
                State::Length { value, shift } => {
                    let Some(&byte) = rest.first() else { return Ok((at, Step::Dry)) };
                    let value = value | u64::from(byte & 0x7f) << shift;
                    if byte >= 0x80 && shift < 28 {
                        self.state = State::Length { value, shift: shift + 7 };
                    } else if byte >= 0x80 || value > u64::from(u32::MAX) {
                        return Err(CodecError::corrupt(Corruption::NotThisFormat, at));
                    } else {
                        self.declared = value;
                        self.state = State::Tag;
                        out.start_unit();
                    }
                    at += 1;
                }
                State::Tag => {
                    if self.produced == self.declared {
                        return Ok((at, Step::Done));
                    }
                    let Some(&tag) = rest.first() else { return Ok((at, Step::Dry)) };
                    at += 1;
                    self.state = State::Extra { tag, value: 0, have: 0 };
                    // The common case: all of its extra bytes are here.
                    if let Some(&[b0, b1, b2, b3]) = rest.get(1..).and_then(|r| r.first_chunk()) {
                        let all = u32::from_le_bytes([b0, b1, b2, b3]);
                        let extra = extra_bytes(tag);
                        let keep = u32::MAX.checked_shr(8 * (4 - u32::from(extra))).unwrap_or(0);
                        self.element(tag, all & keep, at - 1)?;
                        at += usize::from(extra);
                    }
                }
                State::Extra { tag, value, have } => {
                    if have == extra_bytes(tag) {
                        self.element(tag, value, at.saturating_sub(1))?;
                        continue;
                    }
                    let Some(&byte) = rest.first() else { return Ok((at, Step::Dry)) };
                    at += 1;
                    let value = value | u32::from(byte) << (8 * u32::from(have));
                    self.state = State::Extra { tag, value, have: have + 1 };
                }
                State::Literal { left } => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let n = out.put(rest.get(..most).unwrap_or(rest));
                    at += n;
                    self.produced += n as u64;
                    if let Some(pause) = self.left_over(left, n, |left| State::Literal { left }) {
                        if out.spare_len() == 0 {
                            return Ok((at, Step::Full));
                        }
                        return Ok((at, pause));
                    }
                }
                State::Copy { distance, left } => {
                    if out.spare_len() == 0 {
                        return Ok((at, Step::Full));
                    }
                    let back = usize::try_from(distance).unwrap_or(usize::MAX);
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let n = out.copy_back(back, most).ok_or_else(|| CodecError {
                        kind: CodecErrorKind::BufferTooSmall {
                            need: u64::from(distance) + 1,
                            have: out.history_len() as u64,
                        },
                        at,
                    })?;
                    self.produced += n as u64;
                    self.left_over(left, n, |left| State::Copy { distance, left });
                }
            }
        }
    }

    /// Goes on with what is left of an element, or with the next tag.
    fn left_over(&mut self, left: u32, n: usize, state: impl Fn(u32) -> State) -> Option<Step> {
        let left = left.saturating_sub(u32::try_from(n).unwrap_or(u32::MAX));
        self.state = if left == 0 { State::Tag } else { state(left) };
        (left > 0).then_some(Step::Dry)
    }

    /// Starts the element of `tag` with its extra bytes; `at` is for the error.
    #[inline]
    fn element(&mut self, tag: u8, extra: u32, at: usize) -> Result<(), CodecError> {
        let high = u32::from(tag >> 2);
        let (len, distance) = match tag & 3 {
            0 if high < 60 => (high + 1, None),
            0 => (extra.checked_add(1).ok_or(CodecError::corrupt(Corruption::Length, at))?, None),
            1 => (4 + (high & 7), Some(u32::from(tag >> 5) << 8 | extra)),
            _ => (high + 1, Some(extra)),
        };
        if u64::from(len) > self.declared - self.produced {
            return Err(CodecError::corrupt(Corruption::Length, at));
        }
        self.state = match distance {
            None => State::Literal { left: len },
            Some(distance) if distance == 0 || u64::from(distance) > self.produced => {
                return Err(CodecError::corrupt(Corruption::CopyBeforeStart, at));
            }
            Some(distance) => State::Copy { distance, left: len },
        };
        Ok(())
    }
}

#[inline]
const fn extra_bytes(tag: u8) -> u8 {
    match tag & 3 {
        0 => (tag >> 2).saturating_sub(59),
        1 => 1,
        2 => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(block: &[u8], cut: usize) -> Result<([u8; 64], usize), CodecError> {
        let mut buf = [0u8; 64];
        let mut window = Window::new(&mut buf);
        let mut decoder = Block::new();
        let (first, second) = block.split_at(cut);
        let (n, step) = decoder.advance(first, &mut window)?;
        assert_eq!((n, step), (cut, Step::Dry));
        let (n, step) = decoder.advance(second, &mut window)?;
        assert_eq!((n, step), (second.len(), Step::Done));
        let len = window.unread_len();
        Ok((buf, len))
    }

    #[test]
    fn elements_of_every_kind_at_every_split() {
        // "abcd" literal, copy-1 of 4 from 4, copy-2 of 3 from 1, copy-4 of 2 from 8,
        // and a literal with one length byte.
        let block = [
            17, 0x0c, b'a', b'b', b'c', b'd', 0x01, 4, 0x0a, 1, 0, 0x07, 8, 0, 0, 0, 0xf0, 3, b'w',
            b'x', b'y', b'z',
        ];
        for cut in 0..block.len() {
            let (buf, len) = decode(&block, cut).unwrap();
            assert_eq!(&buf[..len], b"abcdabcdddddawxyz", "cut at {cut}");
        }
    }

    #[test]
    fn what_no_encoder_writes() {
        let fault = |block: &[u8]| {
            let mut buf = [0u8; 64];
            let error = Block::new().advance(block, &mut Window::new(&mut buf)).unwrap_err();
            (error.kind, error.at)
        };
        let corrupt = |what| CodecErrorKind::Fault(crate::error::CodecFault::Corrupt(what));
        assert_eq!(fault(&[0xff; 6]).0, corrupt(Corruption::NotThisFormat));
        let before = &[4, 0x01, 1, 0, 0, 0, 0];
        assert_eq!(fault(before), (corrupt(Corruption::CopyBeforeStart), 1));
        let too_long = &[1, 0x04, b'a', b'b'];
        assert_eq!(fault(too_long), (corrupt(Corruption::Length), 1));
    }

    #[test]
    fn stops_where_the_window_is_full() {
        let block = [8, 0x00, b'a', 0x1a, 1, 0];
        let mut buf = [0u8; 4];
        let mut window = Window::new(&mut buf);
        let mut decoder = Block::new();
        assert_eq!(decoder.advance(&block, &mut window), Ok((6, Step::Full)));
        assert_eq!(window.unread(), b"aaaa");
        window.consume(4);
        window.slide(1);
        assert_eq!(decoder.advance(&[], &mut window), Ok((0, Step::Full)));
        window.consume(3);
        window.slide(1);
        assert_eq!(decoder.advance(&[], &mut window), Ok((0, Step::Done)));
        assert_eq!(window.unread(), b"a");
    }
}
