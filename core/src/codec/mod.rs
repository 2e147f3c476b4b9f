//! Compression formats, one a file, behind two small traits: [`Decompress`] and
//! [`Compress`].

pub mod compress;
#[cfg(feature = "gzip")]
pub mod gzip;
#[cfg(any(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd"))]
mod held;
#[cfg(feature = "lz4")]
pub mod lz4;
#[cfg(feature = "lz4")]
pub mod lz4_encode;
#[cfg(any(feature = "lz4", feature = "snappy"))]
mod matches;
pub(crate) mod out;
#[cfg(feature = "snappy")]
pub mod snappy;
#[cfg(feature = "snappy")]
mod snappy_encode;
#[cfg(feature = "snappy")]
pub mod xerial;
#[cfg(feature = "snappy")]
pub mod xerial_encode;
#[cfg(feature = "zstd")]
pub mod zstd;

pub use compress::{BuiltinCompressors, Compress, Compressors, Plain, Written};

use core::fmt;

use crate::batch::Magic;
#[cfg(any(feature = "gzip", feature = "lz4", feature = "snappy"))]
use crate::error::Corruption;
use crate::error::{CodecFault, Error, ErrorKind};
use crate::window::Window;

/// Compression type of a batch, by its id in the attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Codec {
    /// 0
    None,
    /// 1
    Gzip,
    /// 2: xerial framing, or one raw block
    Snappy,
    /// 3: LZ4 frame
    Lz4,
    /// 4: only in v2
    Zstd,
}

impl Codec {
    /// All of them, in id order.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// From the id in the attributes; 5 to 7 are unknown.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The id in the attributes.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Kafka's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a call to [`Decompress::advance`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Why it stopped.
    pub pause: Pause,
}

/// Why a decoder, or an encoder, stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Pause {
    /// All of the input is consumed, and more is wanted.
    InputDry,
    /// The window, or the output of an encoder, has no room left, or too little for the
    /// next step.
    WindowFull,
    /// The stream is complete; input behind it is not consumed.
    Finished,
}

/// A fault of compressed bytes, or of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CodecError {
    /// What is wrong.
    pub kind: CodecErrorKind,
    /// Where, in bytes from the start of the input of that call: the last byte of the
    /// element that is wrong, which may have started in a call before.
    pub at: usize,
}

/// What is wrong: with the bytes, or with what was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CodecErrorKind {
    /// The bytes.
    Fault(CodecFault),
    /// The window, or the workspace, is too small for this stream.
    BufferTooSmall {
        /// Bytes that would do.
        need: u64,
        /// Bytes that were lent.
        have: u64,
    },
    /// There is no decoder for it.
    NotBuiltIn,
}

impl CodecError {
    /// The error of a batch whose payload starts at `position`, from a call before which
    /// `read` bytes of it were consumed.
    ///
    /// Inflate and zstd look ahead as far as they are fed, so what they find wrong is
    /// told at the start of the payload: it does not depend on how the input came.
    #[must_use]
    pub const fn in_batch(self, codec: Codec, position: u64, read: u64) -> Error {
        let kind = match self.kind {
            CodecErrorKind::Fault(fault) => ErrorKind::Codec { codec, fault },
            CodecErrorKind::BufferTooSmall { need, have } => {
                ErrorKind::BufferTooSmall { need, have }
            }
            CodecErrorKind::NotBuiltIn => ErrorKind::CodecNotBuiltIn { codec },
        };
        let at = match codec {
            Codec::Snappy | Codec::Lz4 => read + self.at as u64,
            _ => 0,
        };
        Error::new(kind, position + at)
    }

    pub(crate) const fn fault(fault: CodecFault, at: usize) -> Self {
        Self { kind: CodecErrorKind::Fault(fault), at }
    }

    #[cfg(any(feature = "gzip", feature = "lz4", feature = "snappy"))]
    pub(crate) const fn corrupt(what: Corruption, at: usize) -> Self {
        Self::fault(CodecFault::Corrupt(what), at)
    }

    pub(crate) const fn truncated(at: usize) -> Self {
        Self::fault(CodecFault::Truncated, at)
    }
}

/// A decoder that can be stopped at any byte of its input and of its output.
pub trait Decompress {
    /// Starts a new stream.
    fn reset(&mut self);

    /// Decodes from `input` into `out`.
    ///
    /// An empty `input` means that no more will ever come: a decoder that still
    /// wants some then gives [`CodecFault::Truncated`], or is finished. Every call
    /// consumes, produces or ends, unless the window is full.
    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError>;

    /// Bytes of its own output that it must find in the window: how far a copy may
    /// reach back.
    fn history(&self) -> usize {
        0
    }
}

/// The decoders that a reader may choose from, one for each codec.
pub trait Codecs {
    /// The decoder for `codec` in a batch of version `magic`, not reset; `None` if
    /// there is none. Magic 0 differs for lz4: its header checksum is wrong in all
    /// that Kafka clients wrote (KAFKA-3160) and is not looked at.
    fn decoder(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Decompress>;
}

impl<C: Codecs + ?Sized> Codecs for &mut C {
    fn decoder(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Decompress> {
        (**self).decoder(codec, magic)
    }
}

/// The decoders of this crate, as far as its features go.
#[derive(Default)]
pub struct Builtin<'w> {
    #[cfg(feature = "gzip")]
    gzip: gzip::Gzip,
    #[cfg(feature = "snappy")]
    snappy: xerial::Xerial,
    #[cfg(feature = "lz4")]
    lz4: lz4::Frame,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::Zstd<'w>>,
    lent: core::marker::PhantomData<&'w mut [u8]>,
}

impl<'w> Builtin<'w> {
    /// All but zstd, which wants memory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lends zstd its workspace; [`zstd::workspace_len`] says how much a window
    /// size takes.
    #[cfg(feature = "zstd")]
    #[must_use]
    pub fn with_zstd(mut self, workspace: &'w mut [u8]) -> Self {
        self.lend_zstd(workspace);
        self
    }

    /// The same in place: with gzip this value is 10 KB, which a small stack does not want
    /// to hold twice. False if the workspace is too small for any frame.
    #[cfg(feature = "zstd")]
    pub fn lend_zstd(&mut self, workspace: &'w mut [u8]) -> bool {
        self.zstd = zstd::Zstd::new(workspace);
        self.zstd.is_some()
    }
}

impl fmt::Debug for Builtin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").finish_non_exhaustive()
    }
}

impl Codecs for Builtin<'_> {
    fn decoder(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Decompress> {
        let _ = magic;
        match codec {
            #[cfg(feature = "gzip")]
            Codec::Gzip => Some(&mut self.gzip),
            #[cfg(feature = "snappy")]
            Codec::Snappy => Some(&mut self.snappy),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => {
                self.lz4.check_header(magic != Magic::V0);
                Some(&mut self.lz4)
            }
            #[cfg(feature = "zstd")]
            Codec::Zstd => self.zstd.as_mut().map(|zstd| zstd as &mut dyn Decompress),
            _ => None,
        }
    }
}

#[cfg(test)]
extern crate std;

/// Bytes of four kinds: noise, one byte, text of few words, and noise that repeats from
/// farther and farther back.
#[cfg(all(test, any(feature = "lz4", feature = "snappy")))]
pub(crate) fn shaped(len: usize, shape: usize) -> std::vec::Vec<u8> {
    let mut seed = 1u32;
    let mut noise = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as u16
    };
    let mut bytes = std::vec::Vec::new();
    while bytes.len() < len {
        match shape {
            0 => bytes.push(noise().to_le_bytes()[0]),
            1 => bytes.push(b'a'),
            2 => {
                bytes.extend([&b"offset "[..], b"batch ", b"of ", b"a log "][noise() as usize % 4])
            }
            _ => {
                let n = 1 + noise() as usize % 90;
                let back = 1 + noise() as usize * 2;
                for _ in 0..n {
                    let byte = match bytes.len().checked_sub(back) {
                        Some(at) => bytes[at],
                        None => noise().to_le_bytes()[0],
                    };
                    bytes.push(byte);
                }
                bytes.push(noise().to_le_bytes()[0]);
            }
        }
    }
    bytes.truncate(len);
    bytes
}

/// Compresses with inputs and outputs of these sizes; holds every call to the trait.
#[cfg(all(test, any(feature = "lz4", feature = "snappy")))]
pub(super) fn encode(
    codec: Codec,
    encoder: &mut dyn Compress,
    plain: &[u8],
    input: usize,
    room: usize,
) -> std::vec::Vec<u8> {
    encoder.reset();
    let mut out = std::vec::Vec::new();
    let most = encoder.bound(plain.len() as u64);
    assert!(most <= compress::bound(codec, plain.len() as u64));
    let mut left = plain.len() as u64;
    let mut step = std::vec![0; room];
    for piece in plain.chunks(input) {
        let mut rest = piece;
        loop {
            let written = encoder.advance(rest, &mut step).unwrap();
            out.extend(&step[..written.produced]);
            rest = &rest[written.consumed..];
            left -= written.consumed as u64;
            assert!(out.len() as u64 + encoder.bound(left) <= most, "it only falls");
            if written.pause == Pause::InputDry {
                assert!(rest.is_empty());
                break;
            }
            assert_eq!((written.pause, written.produced), (Pause::WindowFull, room));
        }
    }
    loop {
        let written = encoder.finish(&mut step).unwrap();
        out.extend(&step[..written.produced]);
        if written.pause == Pause::Finished {
            break;
        }
        assert_eq!((written.pause, written.produced), (Pause::WindowFull, room));
    }
    assert_eq!(encoder.bound(0), 0);
    out
}
