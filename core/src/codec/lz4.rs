//! LZ4 frames, as far as Kafka accepts them.
//!
//! ```text
//!  04 22 4d 18     magic
//!  FLG             bits 7–6 version = 01; 5 blocks independent; 4 block checksums;
//!                  3 content size; 2 content checksum; 1 reserved; 0 dictionary
//!  BD              bits 6–4: largest block, 4 to 7 = 64 KiB, 256 KiB, 1 MiB, 4 MiB
//!  content size    u64 LE, if bit 3 (not believed)
//!  HC              second byte of xxh32 over FLG … content size
//!  block size      u32 LE, bit 31 = stored; 0 ends the frame
//!  block           and its xxh32, if bit 4; again and again
//!  content xxh32   if bit 2
//! ```
//! Only the first frame counts; bytes behind it are ignored. Linked blocks are
//! refused. In magic 0 HC is not looked at: all clients computed it over the magic
//! as well (KAFKA-3160). Source: `Lz4BlockInputStream.java`; unlike it, the content
//! checksum is verified.
//!
//! A block that is whole in the input and fits the window goes through `lz4_flex`;
//! all else is decoded sequence by sequence:
//!
//! ```text
//!  token           high half: literals, low half: match length − 4
//!  + bytes of 255  where a half is 15, until one is less
//!  literals
//!  distance        u16 LE, not in the last sequence
//!  + bytes of 255  for the match
//! ```

use core::hash::Hasher;

use twox_hash::XxHash32;

use super::held::Held;
use super::{CodecError, CodecErrorKind, Decompress, Pause, Progress};
use crate::arch::copy::Sink;
use crate::error::{Checksummed, CodecFault, Corruption, Refusal};
use crate::window::Window;

/// Distances are 16 bits.
pub const HISTORY: usize = 64 << 10;

const MAGIC: u32 = 0x184d_2204;
const STORED: u32 = 1 << 31;

/// In a block: where a sequence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequence {
    Token,
    LiteralLength { token: u8, length: u32 },
    Literals { token: u8, left: u32 },
    Distance { token: u8 },
    DistanceHigh { token: u8, low: u8 },
    MatchLength { distance: u16, length: u32 },
    Match { distance: u16, left: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Magic, FLG and BD, or all of the descriptor once FLG is known.
    Descriptor,
    BlockSize,
    /// Stored or compressed bytes left of a block.
    Stored {
        left: u32,
    },
    Block {
        left: u32,
        sequence: Sequence,
    },
    BlockChecksum,
    ContentChecksum,
    Finished,
}

/// Decoder of LZ4 batches.
#[derive(Clone)]
pub struct Frame {
    state: State,
    check_header: bool,
    /// Bytes of the descriptor or of a word.
    held: Held<15>,
    flags: u8,
    /// Largest block of this frame, and what the present one has produced.
    largest: u32,
    produced: u32,
    block_sum: XxHash32,
    content_sum: XxHash32,
}

// No decoder hoards its input.
const _: () = assert!(size_of::<Frame>() <= 256);

impl core::fmt::Debug for Frame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Frame").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            state: State::Descriptor,
            check_header: true,
            held: Held::new(),
            flags: 0,
            largest: 0,
            produced: 0,
            block_sum: XxHash32::with_seed(0),
            content_sum: XxHash32::with_seed(0),
        }
    }
}

/// 32 bits of a hash whose `finish` yields 64.
fn sum(hash: &XxHash32) -> u32 {
    let [_, _, _, _, a, b, c, d] = hash.finish().to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

impl Frame {
    /// Whether the descriptor's checksum must be right; not so in magic 0.
    pub fn check_header(&mut self, check: bool) {
        self.check_header = check;
    }

    const fn has_block_sums(&self) -> bool {
        self.flags & 0x10 != 0
    }

    const fn has_content_size(&self) -> bool {
        self.flags & 0x08 != 0
    }

    const fn has_content_sum(&self) -> bool {
        self.flags & 0x04 != 0
    }

    /// The word that was held, little-endian.
    fn word(&mut self) -> u32 {
        let word = u32::from_le_bytes(self.held.array());
        self.held.clear();
        word
    }

    /// Bytes of magic and descriptor, HC included, once seven of them are there.
    fn descriptor_len(&mut self, at: usize) -> Result<usize, CodecError> {
        let at = at.saturating_sub(1);
        let [m0, m1, m2, m3, flags, bd] = self.held.array();
        if u32::from_le_bytes([m0, m1, m2, m3]) != MAGIC {
            return Err(CodecError::corrupt(Corruption::NotThisFormat, at));
        }
        if flags >> 6 != 1 || flags & 0x02 != 0 || bd & 0x8f != 0 || bd >> 4 < 4 {
            return Err(CodecError::corrupt(Corruption::Header, at));
        }
        if flags & 0x20 == 0 {
            return Err(CodecError::fault(CodecFault::Refused(Refusal::LinkedBlocks), at));
        }
        if flags & 0x01 != 0 {
            return Err(CodecError::fault(CodecFault::Refused(Refusal::Dictionary), at));
        }
        self.flags = flags;
        self.largest = 1 << (8 + 2 * u32::from(bd >> 4));
        Ok(if self.has_content_size() { 15 } else { 7 })
    }

    fn finish_descriptor(&mut self, len: usize, at: usize) -> Result<(), CodecError> {
        let held = self.held.bytes();
        let covered = held.get(4..len - 1).unwrap_or_default();
        let computed = XxHash32::oneshot(0, covered) >> 8 & 0xff;
        let stored = held.get(len - 1).copied().map_or(0, u32::from);
        if self.check_header && stored != computed {
            let of = Checksummed::Header;
            let fault = CodecFault::Checksum { of, stored, computed };
            return Err(CodecError::fault(fault, at.saturating_sub(1)));
        }
        self.held.clear();
        self.state = State::BlockSize;
        Ok(())
    }

    fn start_block(&mut self, out: &mut Window<'_>, at: usize) -> Result<(), CodecError> {
        let word = self.word();
        let left = word & !STORED;
        // Kafka takes a stored block of no bytes for the end mark as well.
        if left == 0 {
            self.state =
                if self.has_content_sum() { State::ContentChecksum } else { State::Finished };
            return Ok(());
        }
        if left > self.largest {
            return Err(CodecError::corrupt(Corruption::BlockSize, at.saturating_sub(1)));
        }
        out.start_unit();
        self.produced = 0;
        if self.has_block_sums() {
            self.block_sum = XxHash32::with_seed(0);
        }
        self.state = if word & STORED == 0 {
            State::Block { left, sequence: Sequence::Token }
        } else {
            State::Stored { left }
        };
        Ok(())
    }

    fn end_block(&mut self, at: usize) -> Result<(), CodecError> {
        if self.produced == 0 {
            return Err(CodecError::corrupt(Corruption::EmptyBlock, at));
        }
        self.state = if self.has_block_sums() { State::BlockChecksum } else { State::BlockSize };
        Ok(())
    }

    /// Adds what a step consumed and produced to the checksums in use.
    fn account(&mut self, input: &[u8], out: &Window<'_>, produced: usize) {
        if self.has_block_sums() {
            self.block_sum.write(input);
        }
        if self.has_content_sum() {
            self.content_sum.write(out.written(produced));
        }
        self.produced += u32::try_from(produced).unwrap_or(u32::MAX);
    }

    /// A whole block at once, if it is all there and its output fits for sure. One with
    /// a fault is left to [`Frame::sequences`], which says where that is and gives what
    /// comes before it.
    fn whole_block(&mut self, input: &[u8], left: u32, out: &mut Window<'_>) -> Option<usize> {
        let most = usize::try_from(self.largest).ok()?;
        let block = input.get(..usize::try_from(left).ok()?)?;
        let room = out.spare().get_mut(..most)?;
        let n = lz4_flex::block::decompress_into(block, room).ok()?;
        out.commit(n);
        self.account(block, out, n);
        Some(block.len())
    }

    /// Decodes whole sequences as long as input and room are ample, so that each copy
    /// may write more than it has to; gives the bytes consumed. Stops before the first
    /// sequence that is anything but good.
    fn run(&mut self, input: &[u8], out: &mut Window<'_>) -> usize {
        let left = usize::try_from(self.largest.saturating_sub(self.produced)).unwrap_or(0);
        let (unit, start) = out.unit();
        let Some(mut sink) = Sink::new(unit, start, start.saturating_add(left)) else { return 0 };
        let (mut rest, mut end) = (input, start);
        while let Some(behind) = sequence(rest, &mut sink) {
            (rest, end) = (behind, sink.at());
        }
        out.commit(end - start);
        self.account(&[], out, end - start);
        input.len() - rest.len()
    }

    /// Decodes sequences of a block from `input`, which holds no more than that.
    fn sequences(
        &mut self,
        input: &[u8],
        sequence: &mut Sequence,
        last: bool,
        out: &mut Window<'_>,
    ) -> Result<(usize, Option<Pause>), CodecError> {
        let mut at = 0;
        loop {
            let mut rest = input.get(at..).unwrap_or_default();
            if *sequence == Sequence::Token {
                at += self.run(rest, out);
                rest = input.get(at..).unwrap_or_default();
            }
            // Every state but these two starts with a byte of input.
            let byte = match *sequence {
                Sequence::Literals { .. } | Sequence::Match { .. } => 0,
                _ => match rest.first() {
                    Some(&byte) => {
                        at += 1;
                        byte
                    }
                    None => return Ok((at, Some(Pause::InputDry))),
                },
            };
            *sequence = match *sequence {
                Sequence::Token if byte >> 4 == 15 => {
                    Sequence::LiteralLength { token: byte, length: 15 }
                }
                Sequence::Token => Sequence::Literals { token: byte, left: u32::from(byte >> 4) },
                Sequence::LiteralLength { token, length } => {
                    let length = length.saturating_add(byte.into());
                    if byte == 255 {
                        Sequence::LiteralLength { token, length }
                    } else {
                        Sequence::Literals { token, left: length }
                    }
                }
                Sequence::Literals { token, left: 0 } => {
                    // The last sequence ends behind its literals.
                    if last && rest.is_empty() {
                        return Ok((at, None));
                    }
                    Sequence::Distance { token }
                }
                Sequence::Literals { token, left } => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    self.room(left, at)?;
                    if out.spare_len() == 0 {
                        return Ok((at, Some(Pause::WindowFull)));
                    }
                    let n = out.put(rest.get(..most).unwrap_or(rest));
                    if n == 0 {
                        return Ok((at, Some(Pause::InputDry)));
                    }
                    at += n;
                    self.account(&[], out, n);
                    Sequence::Literals { token, left: left - u32::try_from(n).unwrap_or(left) }
                }
                Sequence::Distance { token } => Sequence::DistanceHigh { token, low: byte },
                Sequence::DistanceHigh { token, low } => {
                    let distance = u16::from_le_bytes([low, byte]);
                    if distance == 0 || u32::from(distance) > self.produced {
                        return Err(CodecError::corrupt(Corruption::CopyBeforeStart, at - 1));
                    }
                    let length = u32::from(token & 15) + 4;
                    if length == 19 {
                        Sequence::MatchLength { distance, length }
                    } else {
                        Sequence::Match { distance, left: length }
                    }
                }
                Sequence::MatchLength { distance, length } => {
                    let length = length.saturating_add(byte.into());
                    if byte == 255 {
                        Sequence::MatchLength { distance, length }
                    } else {
                        Sequence::Match { distance, left: length }
                    }
                }
                Sequence::Match { left: 0, .. } => Sequence::Token,
                Sequence::Match { distance, left } => {
                    self.room(left, at)?;
                    if out.spare_len() == 0 {
                        return Ok((at, Some(Pause::WindowFull)));
                    }
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let n = out.copy_back(distance.into(), most).ok_or_else(|| CodecError {
                        kind: CodecErrorKind::BufferTooSmall {
                            need: u64::from(distance) + 1,
                            have: out.history_len() as u64,
                        },
                        at,
                    })?;
                    self.account(&[], out, n);
                    Sequence::Match { distance, left: left - u32::try_from(n).unwrap_or(left) }
                }
            };
        }
    }

    /// A block may not grow beyond what its frame declares.
    fn room(&self, left: u32, at: usize) -> Result<(), CodecError> {
        if left > self.largest.saturating_sub(self.produced) {
            return Err(CodecError::corrupt(Corruption::BlockSize, at));
        }
        Ok(())
    }

    fn check(of: Checksummed, stored: u32, computed: u32, at: usize) -> Result<(), CodecError> {
        if stored == computed {
            return Ok(());
        }
        let at = at.saturating_sub(1);
        Err(CodecError::fault(CodecFault::Checksum { of, stored, computed }, at))
    }
}

/// Decodes the sequence that `input` starts with; gives what is behind it. `None` if
/// it is the last one, or not ample, or not good: it may have left bytes in the sink.
#[inline(always)]
fn sequence<'i>(input: &'i [u8], sink: &mut Sink<'_>) -> Option<&'i [u8]> {
    let (&token, rest) = input.split_first()?;
    let literals = usize::from(token >> 4);
    let mut rest = if literals < 15 {
        if !sink.short(rest.first_chunk()?, literals) {
            return None;
        }
        rest.get(literals..)?
    } else {
        let (literals, rest) = extend(literals, rest)?;
        let (bytes, rest) = rest.split_at_checked(literals)?;
        if !sink.long(bytes) {
            return None;
        }
        rest
    };
    let (&distance, behind) = rest.split_first_chunk()?;
    rest = behind;
    let mut len = usize::from(token & 15) + 4;
    if len == 19 {
        (len, rest) = extend(len, rest)?;
    }
    sink.repeat(u16::from_le_bytes(distance).into(), len).then_some(rest)
}

/// Adds the bytes of a long length to its start.
#[inline]
fn extend(mut len: usize, mut input: &[u8]) -> Option<(usize, &[u8])> {
    loop {
        let (&byte, rest) = input.split_first()?;
        (len, input) = (len.checked_add(byte.into())?, rest);
        if byte < 255 {
            return Some((len, input));
        }
    }
}

impl Decompress for Frame {
    fn reset(&mut self) {
        *self = Self { check_header: self.check_header, ..Self::default() };
    }

    fn history(&self) -> usize {
        HISTORY
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        let ended = input.is_empty();
        let mut at = 0;
        let dry = |at| {
            if ended {
                return Err(CodecError::truncated(at));
            }
            Ok(Progress { consumed: at, pause: Pause::InputDry })
        };
        let full = |at| Ok(Progress { consumed: at, pause: Pause::WindowFull });
        loop {
            let rest = input.get(at..).unwrap_or_default();
            match self.state {
                State::Descriptor => {
                    if !self.held.fill(input, &mut at, 7) {
                        return dry(at);
                    }
                    let len = self.descriptor_len(at)?;
                    if !self.held.fill(input, &mut at, len) {
                        return dry(at);
                    }
                    self.finish_descriptor(len, at)?;
                }
                State::BlockSize => {
                    if !self.held.fill(input, &mut at, 4) {
                        return dry(at);
                    }
                    self.start_block(out, at)?;
                }
                State::Stored { left: 0 } => self.end_block(at)?,
                State::Stored { left } => {
                    if out.spare_len() == 0 {
                        return full(at);
                    }
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let part = rest.get(..most).unwrap_or(rest);
                    let n = out.put(part);
                    if n == 0 {
                        return dry(at);
                    }
                    self.account(part.get(..n).unwrap_or_default(), out, n);
                    at += n;
                    self.state = State::Stored { left: left - u32::try_from(n).unwrap_or(left) };
                }
                State::Block { left, sequence } => {
                    if sequence == Sequence::Token
                        && self.produced == 0
                        && let Some(n) = self.whole_block(rest, left, out)
                    {
                        at += n;
                        self.end_block(at)?;
                        continue;
                    }
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let part = rest.get(..most).unwrap_or(rest);
                    let mut sequence = sequence;
                    let (n, pause) = self
                        .sequences(part, &mut sequence, part.len() == most, out)
                        .map_err(|error| CodecError { at: error.at + at, ..error })?;
                    if self.has_block_sums() {
                        self.block_sum.write(part.get(..n).unwrap_or_default());
                    }
                    at += n;
                    let left = left - u32::try_from(n).unwrap_or(left);
                    self.state = State::Block { left, sequence };
                    match pause {
                        None => self.end_block(at)?,
                        Some(Pause::InputDry) if left > 0 => return dry(at),
                        // The block ends within a sequence.
                        Some(Pause::InputDry) => {
                            return Err(CodecError::corrupt(Corruption::Length, at));
                        }
                        Some(_) => return full(at),
                    }
                }
                State::BlockChecksum => {
                    if !self.held.fill(input, &mut at, 4) {
                        return dry(at);
                    }
                    let stored = self.word();
                    Self::check(Checksummed::Block, stored, sum(&self.block_sum), at)?;
                    self.state = State::BlockSize;
                }
                State::ContentChecksum => {
                    if !self.held.fill(input, &mut at, 4) {
                        return dry(at);
                    }
                    let stored = self.word();
                    Self::check(Checksummed::Content, stored, sum(&self.content_sum), at)?;
                    self.state = State::Finished;
                }
                State::Finished => return Ok(Progress { consumed: at, pause: Pause::Finished }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    /// Decodes in steps of at most `step` bytes of input, through a window of `room`
    /// bytes; gives the output and the end, with positions in the frame.
    fn outcome(frame: &[u8], step: usize, room: usize) -> (Vec<u8>, Result<usize, CodecError>) {
        let mut buf = vec![0xee; room];
        let (mut window, mut decoder) = (Window::new(&mut buf), Frame::default());
        let (mut at, mut plain) = (0, Vec::new());
        loop {
            let part = &frame[at..frame.len().min(at + step)];
            let end = decoder.advance(part, &mut window);
            plain.extend_from_slice(window.unread());
            window.consume(usize::MAX);
            match end {
                Err(error) => return (plain, Err(CodecError { at: error.at + at, ..error })),
                Ok(progress) => at += progress.consumed,
            }
            match end.map(|progress| progress.pause) {
                Ok(Pause::Finished) => return (plain, Ok(at)),
                Ok(Pause::WindowFull) => window.slide(300),
                _ => {}
            }
        }
    }

    #[test]
    fn quick_and_careful_agree() {
        // Sequences of all kinds, then the same with faults: neither `lz4_flex` nor `run`
        // has a say where there is one byte at a time, and neither must show.
        let mut random = 7u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            (random >> 8) % below
        };
        let extend = |block: &mut Vec<u8>, mut n: u32| {
            while n >= 255 {
                block.push(255);
                n -= 255;
            }
            block.push(n as u8);
        };
        for round in 0..400 {
            let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
            let mut len = 0;
            for _ in 0..1 + next(3) {
                let (mut block, mut have) = (Vec::new(), 0);
                for last in (0..next(60)).map(|_| false).chain([true]) {
                    let long = next(9) == 0;
                    let literals = u32::from(last || have == 0) + next(if long { 600 } else { 20 });
                    let long = next(9) == 0;
                    let copy = next(if long { 600 } else { 20 });
                    let high = literals.min(15) << 4;
                    block.push((if last { high } else { high | copy.min(15) }) as u8);
                    if literals >= 15 {
                        extend(&mut block, literals - 15);
                    }
                    block.extend((0..literals).map(|_| next(256) as u8));
                    have += literals;
                    if !last {
                        let near = if next(2) == 0 { 20 } else { 290 };
                        let distance = 1 + next(have.min(near)) as u16;
                        block.extend_from_slice(&distance.to_le_bytes());
                        if copy >= 15 {
                            extend(&mut block, copy - 15);
                        }
                        have += copy + 4;
                    }
                }
                frame.extend_from_slice(&(block.len() as u32).to_le_bytes());
                frame.extend_from_slice(&block);
                len += have as usize;
            }
            frame.extend_from_slice(&[0; 4]);
            if round % 2 == 1 {
                for _ in 0..1 + next(3) {
                    let at = 11 + next(frame.len() as u32 - 11) as usize;
                    frame[at] = next(256) as u8;
                }
            }
            let slow = outcome(&frame, 1, 1 << 19);
            if round % 2 == 0 {
                assert_eq!((slow.0.len(), slow.1), (len, Ok(frame.len())));
            }
            for step in [7, 40, 333, usize::MAX >> 1] {
                assert_eq!(outcome(&frame, step, 1 << 19), slow, "round {round}, step {step}");
                if round % 2 == 0 {
                    assert_eq!(outcome(&frame, step, 500), slow, "round {round}, step {step}");
                }
            }
        }
    }
}
