//! gzip: members one behind the other, each a header, deflate, and a trailer.
//!
//! ```text
//!  1f 8b 08        magic, deflate
//!  FLG             1 header CRC; 2 extra field; 3 name; 4 comment (bit numbers)
//!  MTIME 4, XFL 1, OS 1
//!  extra           u16 LE length, bytes      if bit 2
//!  name, comment   up to a zero byte         if bits 3, 4
//!  header CRC      u16 LE, low half of the CRC-32 of all before it, if bit 1
//!  deflate
//!  CRC-32 u32 LE, length modulo 2^32 u32 LE
//! ```
//! As `GZIPInputStream` of Java: further members are decoded, anything else behind
//! a member is ignored, reserved flags are accepted, and the header CRC is checked.

use crc32fast::Hasher;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::held::Held;
use super::{CodecError, Decompress, Pause, Progress};
use crate::error::{Checksummed, CodecFault, Corruption};
use crate::window::Window;

/// Deflate's window.
pub const HISTORY: usize = 32 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a member's header, at this field.
    Header(Field),
    Deflate,
    Trailer,
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Fixed,
    ExtraLength,
    Extra { left: u32 },
    Name,
    Comment,
    Crc,
}

/// Decoder of gzip batches: 10.5 KB, most of it inflate's tables.
#[derive(Clone)]
pub struct Gzip {
    state: State,
    /// Nothing was decoded yet: what is no header now is an error.
    first: bool,
    flags: u8,
    held: Held<10>,
    header_crc: Hasher,
    content_crc: Hasher,
    content_len: u32,
    inflate: DecompressorOxide,
}

// No decoder hoards its input: inflate itself says that it has 10.5 KB of state.
const _: () = assert!(size_of::<Gzip>() <= 11 << 10);

impl core::fmt::Debug for Gzip {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Gzip").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Default for Gzip {
    fn default() -> Self {
        Self {
            state: State::Header(Field::Fixed),
            first: true,
            flags: 0,
            held: Held::new(),
            header_crc: Hasher::new(),
            content_crc: Hasher::new(),
            content_len: 0,
            inflate: DecompressorOxide::new(),
        }
    }
}

/// A header that is not one.
enum NoHeader {
    Dry,
    Fault(CodecFault),
}

impl Gzip {
    /// Goes on with the header; done when the state is no longer a header's.
    fn header(&mut self, mut field: Field, input: &[u8], at: &mut usize) -> Result<(), NoHeader> {
        let result = self.header_fields(&mut field, input, at);
        if self.state != State::Deflate {
            self.state = State::Header(field);
        }
        result
    }

    fn header_fields(
        &mut self,
        field: &mut Field,
        input: &[u8],
        at: &mut usize,
    ) -> Result<(), NoHeader> {
        loop {
            let start = *at;
            match *field {
                Field::Fixed => {
                    let all = self.held.fill(input, at, 10);
                    // Told at the first wrong byte, not after ten.
                    let seen = self.held.bytes();
                    if !b"\x1f\x8b\x08".starts_with(seen.get(..3).unwrap_or(seen)) {
                        let what = CodecFault::Corrupt(Corruption::NotThisFormat);
                        return Err(NoHeader::Fault(what));
                    }
                    if !all {
                        return Err(NoHeader::Dry);
                    }
                    self.header_crc.update(self.held.bytes());
                    [_, _, _, self.flags] = self.held.array();
                    self.held.clear();
                    *field = Field::ExtraLength;
                }
                Field::ExtraLength if self.flags & 0x04 == 0 => *field = Field::Name,
                Field::ExtraLength => {
                    if !self.held.fill(input, at, 2) {
                        return Err(NoHeader::Dry);
                    }
                    let [low, high] = self.held.array();
                    self.header_crc.update(&[low, high]);
                    self.held.clear();
                    *field = Field::Extra { left: u16::from_le_bytes([low, high]).into() };
                }
                Field::Extra { left: 0 } => *field = Field::Name,
                Field::Extra { left } => {
                    let rest = input.get(start..).unwrap_or_default();
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let part = rest.get(..most).unwrap_or(rest);
                    if part.is_empty() {
                        return Err(NoHeader::Dry);
                    }
                    self.header_crc.update(part);
                    *at += part.len();
                    let taken = u32::try_from(part.len()).unwrap_or(left);
                    *field = Field::Extra { left: left - taken };
                }
                Field::Name if self.flags & 0x08 == 0 => *field = Field::Comment,
                Field::Comment if self.flags & 0x10 == 0 => *field = Field::Crc,
                Field::Name | Field::Comment => {
                    let rest = input.get(start..).unwrap_or_default();
                    let zero = rest.iter().position(|&byte| byte == 0);
                    let len = zero.map_or(rest.len(), |zero| zero + 1);
                    self.header_crc.update(rest.get(..len).unwrap_or_default());
                    *at += len;
                    if zero.is_none() {
                        return Err(NoHeader::Dry);
                    }
                    *field = if *field == Field::Name { Field::Comment } else { Field::Crc };
                }
                Field::Crc => {
                    if self.flags & 0x02 != 0 {
                        if !self.held.fill(input, at, 2) {
                            return Err(NoHeader::Dry);
                        }
                        let [low, high] = self.held.array();
                        let stored = u32::from(u16::from_le_bytes([low, high]));
                        let computed = self.header_crc.clone().finalize() & 0xffff;
                        self.held.clear();
                        if stored != computed {
                            let of = Checksummed::Header;
                            let fault = CodecFault::Checksum { of, stored, computed };
                            return Err(NoHeader::Fault(fault));
                        }
                    }
                    self.state = State::Deflate;
                    return Ok(());
                }
            }
        }
    }

    fn start_member(&mut self, out: &mut Window<'_>) {
        out.start_unit();
        self.inflate.init();
        self.content_crc.reset();
        self.content_len = 0;
    }

    fn trailer(&self, at: usize) -> Result<(), CodecError> {
        let [c0, c1, c2, c3, l0, l1, l2, l3] = self.held.array();
        for (of, stored, computed) in [
            (
                Checksummed::Content,
                u32::from_le_bytes([c0, c1, c2, c3]),
                self.content_crc.clone().finalize(),
            ),
            (Checksummed::Length, u32::from_le_bytes([l0, l1, l2, l3]), self.content_len),
        ] {
            if stored != computed {
                let fault = CodecFault::Checksum { of, stored, computed };
                return Err(CodecError::fault(fault, at.saturating_sub(8)));
            }
        }
        Ok(())
    }
}

impl Decompress for Gzip {
    fn reset(&mut self) {
        // Inflate's tables are set up anew by each member's start.
        self.state = State::Header(Field::Fixed);
        self.first = true;
        self.held.clear();
        self.header_crc.reset();
    }

    fn history(&self) -> usize {
        HISTORY
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        let ended = input.is_empty();
        let mut at = 0;
        loop {
            match self.state {
                State::Header(field) => match self.header(field, input, &mut at) {
                    Ok(()) => self.start_member(out),
                    Err(NoHeader::Dry) if !ended => {
                        return Ok(Progress { consumed: at, pause: Pause::InputDry });
                    }
                    Err(NoHeader::Dry) if self.first => return Err(CodecError::truncated(at)),
                    Err(NoHeader::Fault(fault)) if self.first => {
                        return Err(CodecError::fault(fault, 0));
                    }
                    // Java ignores what follows a member and is none.
                    Err(_) => self.state = State::Finished,
                },
                State::Deflate => {
                    let rest = input.get(at..).unwrap_or_default();
                    let (unit, start) = out.unit();
                    let flags = inflate_flags::TINFL_FLAG_HAS_MORE_INPUT
                        | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
                    let (status, consumed, produced) =
                        decompress(&mut self.inflate, rest, unit, start, flags);
                    out.commit(produced);
                    at += consumed;
                    self.content_crc.update(out.written(produced));
                    let len = u32::try_from(produced).unwrap_or(u32::MAX);
                    self.content_len = self.content_len.wrapping_add(len);
                    match status {
                        TINFLStatus::Done => self.state = State::Trailer,
                        TINFLStatus::HasMoreOutput => {
                            return Ok(Progress { consumed: at, pause: Pause::WindowFull });
                        }
                        TINFLStatus::NeedsMoreInput if !ended => {
                            return Ok(Progress { consumed: at, pause: Pause::InputDry });
                        }
                        TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                            return Err(CodecError::truncated(at));
                        }
                        _ => return Err(CodecError::corrupt(Corruption::Data, at)),
                    }
                }
                State::Trailer => {
                    if self.held.fill(input, &mut at, 8) {
                        self.trailer(at)?;
                        self.state = State::Header(Field::Fixed);
                        self.first = false;
                        self.held.clear();
                        self.header_crc.reset();
                    } else if ended {
                        return Err(CodecError::truncated(at));
                    } else {
                        return Ok(Progress { consumed: at, pause: Pause::InputDry });
                    }
                }
                State::Finished => return Ok(Progress { consumed: at, pause: Pause::Finished }),
            }
        }
    }
}
