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
//! output has to be in memory. As long as both are, `Block::run` is quick about it.
//! Copies reach back at most 64 KiB with most encoders in use; that of franz-go
//! (klauspost's `s2.EncodeSnappy`) reaches back as far as its block goes, which takes a
//! window as large as that.

use super::{CodecError, CodecErrorKind};
use crate::arch::copy::Sink;
use crate::error::Corruption;
use crate::window::Window;

/// History that C++ snappy, snappy-java and librdkafka keep to.
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
                    at += self.run(rest, out);
                    let rest = input.get(at..).unwrap_or_default();
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
                        at += usize::from(extra);
                        self.element(tag, all & keep, at - 1)?;
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
                            // Farther copies may follow, but none beyond the block.
                            need: self.declared,
                            have: out.capacity() as u64,
                        },
                        at,
                    })?;
                    self.produced += n as u64;
                    self.left_over(left, n, |left| State::Copy { distance, left });
                }
            }
        }
    }

    /// Decodes whole elements as long as input and room are ample, so that each copy
    /// may write more than it has to; gives the bytes consumed. Stops before the first
    /// element that is anything but good: what is wrong with it is said elsewhere.
    fn run(&mut self, input: &[u8], out: &mut Window<'_>) -> usize {
        let left = usize::try_from(self.declared - self.produced).unwrap_or(usize::MAX);
        let (unit, start) = out.unit();
        let Some(mut sink) = Sink::new(unit, start, start.saturating_add(left)) else { return 0 };
        let mut rest = input;
        while let Some(behind) = element(rest, &mut sink) {
            rest = behind;
        }
        let produced = sink.at() - start;
        out.commit(produced);
        self.produced += produced as u64;
        input.len() - rest.len()
    }

    /// Goes on with what is left of an element, or with the next tag.
    fn left_over(&mut self, left: u32, n: usize, state: impl Fn(u32) -> State) -> Option<Step> {
        let left = left.saturating_sub(u32::try_from(n).unwrap_or(u32::MAX));
        self.state = if left == 0 { State::Tag } else { state(left) };
        (left > 0).then_some(Step::Dry)
    }

    /// Starts the element of `tag` with its extra bytes; `at`, the last of them, is for
    /// the error.
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

/// By tag: length, or for long literals 60 and the number of extra bytes; for copies the
/// high bits of the distance at 8, and the number of extra bytes at 11.
static ELEMENTS: [u16; 256] = elements();

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler
const fn elements() -> [u16; 256] {
    let mut all = [0; 256];
    let mut tag = 0;
    while tag < 256 {
        let high = tag as u16 >> 2;
        all[tag] = match tag & 3 {
            0 => high + 1,
            1 => (4 + (high & 7)) | (high >> 3) << 8 | 1 << 11,
            2 => (high + 1) | 2 << 11,
            _ => (high + 1) | 4 << 11,
        };
        tag += 1;
    }
    all
}

/// Decodes the element that `input` starts with; gives what is behind it. `None`, and
/// nothing is done, if it is not ample or not good.
#[inline(always)]
fn element<'i>(input: &'i [u8], sink: &mut Sink<'_>) -> Option<&'i [u8]> {
    let (&tag, rest) = input.split_first()?;
    // A short literal, or extra bytes.
    let ahead = rest.first_chunk::<16>()?;
    let [e0, e1, e2, e3, ..] = *ahead;
    let extra = u32::from_le_bytes([e0, e1, e2, e3]);
    let entry = ELEMENTS.get(usize::from(tag)).copied()?;
    let len = usize::from(entry & 0x7f);
    if tag & 3 != 0 {
        let n = entry >> 11;
        let distance = u32::from(entry & 0x700) | low_bytes(extra, n);
        let rest = rest.get(usize::from(n)..)?;
        return sink.repeat(usize::try_from(distance).ok()?, len).then_some(rest);
    }
    if len <= ahead.len() {
        let rest = rest.get(len..)?;
        return sink.short(ahead, len).then_some(rest);
    }
    let (len, rest) = if len <= 60 {
        (len, rest)
    } else {
        let n = (entry & 0x7f) - 60;
        let len = low_bytes(extra, n).checked_add(1)?;
        (usize::try_from(len).ok()?, rest.get(usize::from(n)..)?)
    };
    let (literal, rest) = rest.split_at_checked(len)?;
    sink.long(literal).then_some(rest)
}

/// The low `n` bytes of a word, 1 to 4.
#[inline(always)]
fn low_bytes(word: u32, n: u16) -> u32 {
    word & u32::MAX.wrapping_shr(32 - 8 * u32::from(n))
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
    extern crate std;
    use std::vec;
    use std::vec::Vec;

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
        assert_eq!(fault(before), (corrupt(Corruption::CopyBeforeStart), 2));
        let too_long = &[1, 0x04, b'a', b'b'];
        assert_eq!(fault(too_long), (corrupt(Corruption::Length), 1));
    }

    /// Decodes in steps of at most `step` bytes of input, through a window of `room`
    /// bytes; gives the output and the end, with positions in the block.
    fn outcome(block: &[u8], step: usize, room: usize) -> (Vec<u8>, Result<usize, CodecError>) {
        let mut buf = vec![0xee; room];
        let (mut window, mut decoder) = (Window::new(&mut buf), Block::new());
        let (mut at, mut plain) = (0, Vec::new());
        loop {
            let part = &block[at..block.len().min(at + step)];
            let end = decoder.advance(part, &mut window);
            plain.extend_from_slice(window.unread());
            window.consume(usize::MAX);
            match end {
                Err(error) => return (plain, Err(CodecError { at: error.at + at, ..error })),
                Ok((n, Step::Done)) => return (plain, Ok(at + n)),
                Ok((n, Step::Dry)) if at + n == block.len() => return (plain, Ok(usize::MAX)),
                Ok((n, Step::Dry)) => at += n,
                Ok((n, Step::Full)) => {
                    at += n;
                    window.slide(256);
                }
            }
        }
    }

    #[test]
    fn quick_and_careful_agree() {
        // Elements of all kinds, then the same with faults: a step of one byte never
        // lets `run` do anything, and whatever it does must not show.
        let mut random = 1u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            (random >> 8) % below
        };
        for round in 0..400 {
            let (mut body, mut len) = (Vec::new(), 0u32);
            for _ in 0..next(120) {
                let back = len.min(250);
                let (kind, n) = (next(5), 1 + next(64));
                let mut literal = |body: &mut Vec<u8>, n: u32, next: &mut dyn FnMut(u32) -> u32| {
                    body.extend((0..n).map(|_| next(256) as u8));
                    len += n;
                };
                match kind {
                    0 if n <= 60 => {
                        body.push((n as u8 - 1) << 2);
                        literal(&mut body, n, &mut next);
                    }
                    1 if n > 40 => {
                        let n = n + next(300);
                        body.extend([61 << 2, (n - 1) as u8, ((n - 1) >> 8) as u8]);
                        literal(&mut body, n, &mut next);
                    }
                    2 if back > 0 => {
                        let (n, distance) = (4 + n % 8, 1 + next(back));
                        body.push(1 | (n as u8 - 4) << 2 | ((distance >> 8) as u8) << 5);
                        body.push(distance as u8);
                        len += n;
                    }
                    3 if back > 0 => {
                        let distance = 1 + next(back.min(20));
                        body.extend([2 | (n as u8 - 1) << 2, distance as u8, 0]);
                        len += n;
                    }
                    4 if back > 0 => {
                        body.extend([3 | (n as u8 - 1) << 2, 1 + next(back) as u8, 0, 0, 0]);
                        len += n;
                    }
                    _ => {}
                }
            }
            let mut block = vec![len as u8 | 0x80, (len >> 7) as u8 | 0x80, (len >> 14) as u8];
            block.extend_from_slice(&body);
            if round % 2 == 1 {
                for _ in 0..1 + next(3) {
                    let at = next(block.len() as u32) as usize;
                    block[at] = next(256) as u8;
                }
            }
            let slow = outcome(&block, 1, 1 << 16);
            if round % 2 == 0 {
                assert_eq!((slow.0.len() as u32, slow.1), (len, Ok(block.len())));
            }
            for step in [7, 40, 333, usize::MAX >> 1] {
                assert_eq!(outcome(&block, step, 1 << 16), slow, "round {round}, step {step}");
                if round % 2 == 0 {
                    assert_eq!(outcome(&block, step, 400), slow, "round {round}, step {step}");
                }
            }
        }
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
