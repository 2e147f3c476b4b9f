//! What Kafka calls snappy: the xerial stream of snappy-java, or one raw block.
//!
//! ```text
//!  82 53 4e 41 50 50 59 00   magic
//!  version i32, compatible version i32     not checked (Redpanda wrote little-endian)
//!  n i32, n bytes of raw snappy            again and again; a header may recur
//! ```
//! There is no end mark: 0 to 3 bytes where a block's length should be are the end
//! of the stream, as in `SnappyInputStream.java`. What does not start with the
//! magic is one raw block (librdkafka, franz-go, old sarama); a raw block cannot
//! start with it, since its first element would be a copy.

use super::held::Held;
use super::snappy::{Block, HISTORY, Step};
use super::{CodecError, Decompress, Pause, Progress};
use crate::error::Corruption;
use crate::window::Window;

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER: usize = 16;
/// Start of Google's framing format, which Kafka never uses.
const SNAPPY_FRAMED: &[u8] = b"\xff\x06\0\0sNaPpY";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not enough bytes yet to tell xerial from raw.
    Start,
    Raw,
    /// In the length of a block, of which `held` has some bytes.
    Length,
    /// In a header that recurs.
    Header,
    /// In a block of which so many compressed bytes are left.
    Block {
        left: u32,
    },
    Finished,
}

/// Decoder of snappy batches.
#[derive(Debug, Clone)]
pub struct Xerial {
    state: State,
    /// Bytes of a header, of a length, or of a raw block before it is known as one.
    held: Held<HEADER>,
    /// How much of `held` the raw block has taken.
    taken: usize,
    block: Block,
}

// No decoder hoards its input.
const _: () = assert!(size_of::<Xerial>() <= 128);

/// How a snappy payload was framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Nothing was read.
    Unknown,
    /// The xerial stream.
    Xerial,
    /// One raw block.
    Raw,
}

impl Framing {
    /// How a payload that starts with these bytes is framed; for fewer than 16
    /// bytes that is all of it.
    #[must_use]
    pub fn of(payload: &[u8]) -> Self {
        match payload.first_chunk::<HEADER>() {
            _ if payload.is_empty() => Self::Unknown,
            Some(header) if header.starts_with(&MAGIC) => Self::Xerial,
            _ => Self::Raw,
        }
    }
}

impl Default for Xerial {
    fn default() -> Self {
        Self { state: State::Start, held: Held::new(), taken: 0, block: Block::new() }
    }
}

impl Xerial {
    fn start(&mut self) {
        if Framing::of(self.held.bytes()) == Framing::Xerial {
            self.state = State::Length;
            self.held.clear();
        } else {
            self.state = State::Raw;
            self.taken = 0;
        }
    }

    /// Positions count from the start of the stream as long as bytes are held.
    fn raw(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        // Bytes held from before come first.
        while let rest @ [_, ..] = self.held.bytes().get(self.taken..).unwrap_or_default() {
            let (n, step) = self
                .block
                .advance(rest, out)
                .map_err(|error| CodecError { kind: self.raw_fault(error).kind, at: 0 })?;
            self.taken += n;
            match step {
                Step::Dry => {}
                Step::Full => return Ok(Progress { consumed: 0, pause: Pause::WindowFull }),
                Step::Done if self.taken < self.held.bytes().len() => {
                    return Err(CodecError::corrupt(Corruption::Trailing, 0));
                }
                Step::Done => break,
            }
        }
        let (consumed, step) = self.block.advance(input, out).map_err(|e| self.raw_fault(e))?;
        match step {
            Step::Full => Ok(Progress { consumed, pause: Pause::WindowFull }),
            Step::Dry if input.is_empty() => Err(CodecError::truncated(0)),
            Step::Dry => Ok(Progress { consumed, pause: Pause::InputDry }),
            Step::Done if consumed < input.len() => {
                Err(CodecError::corrupt(Corruption::Trailing, consumed))
            }
            // More input would be trailing: wait for the end to be told.
            Step::Done if input.is_empty() => {
                self.state = State::Finished;
                Ok(Progress { consumed, pause: Pause::Finished })
            }
            Step::Done => Ok(Progress { consumed, pause: Pause::InputDry }),
        }
    }

    fn raw_fault(&self, error: CodecError) -> CodecError {
        if self.held.bytes().starts_with(SNAPPY_FRAMED) {
            return CodecError::corrupt(Corruption::SnappyFramed, error.at);
        }
        error
    }

    /// A length word: the length of a block, or the start of another header.
    fn length(&mut self, at: usize) -> Result<(), CodecError> {
        let word = self.held.array::<4>();
        if MAGIC.starts_with(&word) {
            self.state = State::Header;
            return Ok(());
        }
        match u32::try_from(i32::from_be_bytes(word)) {
            Ok(left) if left > 0 => {
                self.state = State::Block { left };
                self.block = Block::new();
                self.held.clear();
                Ok(())
            }
            // A raw block has at least one byte, its length.
            _ => Err(CodecError::corrupt(Corruption::Length, at.saturating_sub(1))),
        }
    }

    fn header(&mut self, at: usize) -> Result<(), CodecError> {
        let [magic @ .., v0, v1, v2, v3] = self.held.array::<12>();
        let good = magic == MAGIC && i32::from_be_bytes([v0, v1, v2, v3]) >= 1;
        if !good {
            return Err(CodecError::corrupt(Corruption::Header, at.saturating_sub(1)));
        }
        self.state = State::Length;
        self.held.clear();
        Ok(())
    }
}

impl Decompress for Xerial {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn history(&self) -> usize {
        HISTORY
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        let ended = input.is_empty();
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            match self.state {
                State::Start => {
                    let all = self.held.fill(input, &mut at, HEADER);
                    if all || (ended && !self.held.bytes().is_empty()) {
                        self.start();
                    } else if ended {
                        return Err(CodecError::truncated(at));
                    } else {
                        return Ok(Progress { consumed: at, pause: Pause::InputDry });
                    }
                }
                State::Raw => {
                    if rest.is_empty() && !ended {
                        return Ok(Progress { consumed: at, pause: Pause::InputDry });
                    }
                    let progress = self
                        .raw(rest, out)
                        .map_err(|error| CodecError { at: error.at + at, ..error })?;
                    return Ok(Progress { consumed: at + progress.consumed, ..progress });
                }
                State::Length | State::Header => {
                    let want = if self.state == State::Length { 4 } else { HEADER };
                    if self.held.fill(input, &mut at, want) {
                        if want == 4 {
                            self.length(at)?;
                        } else {
                            self.header(at)?;
                        }
                    } else if !ended {
                        return Ok(Progress { consumed: at, pause: Pause::InputDry });
                    } else if self.state == State::Header {
                        return Err(CodecError::truncated(at));
                    } else {
                        self.state = State::Finished;
                    }
                }
                State::Block { left } => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let part = rest.get(..most).unwrap_or(rest);
                    let (n, step) = self
                        .block
                        .advance(part, out)
                        .map_err(|error| CodecError { at: error.at + at, ..error })?;
                    at += n;
                    let left = left.saturating_sub(u32::try_from(n).unwrap_or(u32::MAX));
                    self.state = State::Block { left };
                    match step {
                        Step::Full => {
                            return Ok(Progress { consumed: at, pause: Pause::WindowFull });
                        }
                        Step::Done if left == 0 => self.state = State::Length,
                        // The block's bytes and its length disagree.
                        Step::Done => return Err(CodecError::corrupt(Corruption::Length, at)),
                        Step::Dry if left == 0 => {
                            return Err(CodecError::corrupt(Corruption::Length, at));
                        }
                        Step::Dry if ended => return Err(CodecError::truncated(at)),
                        Step::Dry => {
                            return Ok(Progress { consumed: at, pause: Pause::InputDry });
                        }
                    }
                }
                State::Finished => return Ok(Progress { consumed: at, pause: Pause::Finished }),
            }
        }
    }
}
