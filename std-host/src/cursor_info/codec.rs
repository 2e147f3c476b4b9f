//! The codecs as Pulsar means them: none has a frame or a length that Pulsar did not ask for.
//!
//! ```text
//!  LZ4     raw LZ4 block
//!  ZLIB    78 9c │ deflate, flushed and never finished: ends 00 00 ff ff, no Adler-32
//!  ZSTD    28 b5 2f fd │ one frame, level 3, with content checksum
//!  SNAPPY  raw snappy block
//! ```
//! The declared size comes from the envelope, so nothing is reserved by it before the payload
//! has been seen to make as much: the lengths of an LZ4 block are added up first, snappy has
//! to say the same and be long enough, zlib and zstd grow their output as it comes.
//!
//! Source: `pulsar-common/.../compression/CompressionCodec*.java` of Apache Pulsar.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer};

use super::CompressionType;
use super::envelope::HEADER;
use super::error::{Error, ErrorKind};

const ZSTD_LEVEL: i32 = 3;
/// A window is reserved as soon as a frame declares it. 8 MiB is what every decoder should
/// take (RFC 8878); a larger one, up to zstd's own 128 MiB, is only of use to a larger message.
const ZSTD_WINDOW_LOG: u32 = 23;
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Room for the output of a stream at first, and least growth of it.
const STEP: usize = 64 << 10;

/// Decompresses a payload that has to give `declared` bytes; `base` is its position.
///
/// [`ErrorKind::Size`] if it gives more or less, [`ErrorKind::Truncated`] if it ends before
/// its end, [`ErrorKind::Payload`] if it is broken.
pub(super) fn decompress(
    compression: CompressionType,
    payload: &[u8],
    declared: usize,
    base: u64,
) -> Result<Vec<u8>, Error> {
    let from = Payload { compression, bytes: payload, declared, base };
    match compression {
        CompressionType::None => from.sized(payload.len()).map(|()| payload.to_vec()),
        CompressionType::Lz4 => from.lz4(),
        CompressionType::Zlib => from.zlib(),
        CompressionType::Zstd => from.zstd(),
        CompressionType::Snappy => from.snappy(),
    }
}

struct Payload<'a> {
    compression: CompressionType,
    bytes: &'a [u8],
    declared: usize,
    base: u64,
}

impl Payload<'_> {
    fn fault(&self, kind: ErrorKind, at: usize, detail: &str) -> Error {
        let field = format!("payload ({})", self.compression.name());
        Error::new(kind, self.base + at as u64, field, detail)
    }

    fn truncated(&self) -> Error {
        self.fault(ErrorKind::Truncated, self.bytes.len(), "ends too early")
    }

    fn wrong_size(&self, what: &str) -> Error {
        let detail = format!("{} is declared, the payload {what}", self.declared);
        Error::new(ErrorKind::Size, HEADER as u64, "metadata.uncompressedSize", detail)
    }

    /// Whether that many bytes are as declared.
    fn sized(&self, len: usize) -> Result<(), Error> {
        if len == self.declared { Ok(()) } else { Err(self.wrong_size(&format!("gives {len}"))) }
    }

    fn lz4(&self) -> Result<Vec<u8>, Error> {
        if i32::try_from(self.bytes.len()).is_err() {
            return Err(self.fault(ErrorKind::Payload, 0, "more than 2 GiB"));
        }
        self.sized(self.lz4_size()?)?;
        let mut plain = vec![0; self.declared];
        if plain.is_empty() {
            return Ok(plain);
        }
        match lzzzz::lz4::decompress(self.bytes, &mut plain) {
            Ok(n) => self.sized(n).map(|()| plain),
            Err(error) => Err(self.fault(ErrorKind::Payload, 0, &error.to_string())),
        }
    }

    /// Adds up what the sequences of a block give, without making it.
    fn lz4_size(&self) -> Result<usize, Error> {
        let (mut at, mut size) = (0, 0usize);
        loop {
            let token = self.byte(&mut at)?;
            let literals = self.lz4_length(token >> 4, &mut at)?;
            if literals > self.bytes.len() - at {
                return Err(self.truncated());
            }
            at += literals;
            size += literals;
            if at == self.bytes.len() {
                return Ok(size);
            }
            let start = at;
            let offset = usize::from(self.byte(&mut at)?) | usize::from(self.byte(&mut at)?) << 8;
            if offset == 0 || offset > size {
                let detail = format!("copies from {offset} bytes back, {size} are there");
                return Err(self.fault(ErrorKind::Payload, start, &detail));
            }
            // At most 255 times the payload, which is in memory: no overflow on 64 bits.
            size = size.saturating_add(4 + self.lz4_length(token & 15, &mut at)?);
        }
    }

    fn byte(&self, at: &mut usize) -> Result<u8, Error> {
        let byte = self.bytes.get(*at).ok_or_else(|| self.truncated())?;
        *at += 1;
        Ok(*byte)
    }

    fn lz4_length(&self, nibble: u8, at: &mut usize) -> Result<usize, Error> {
        let mut len = usize::from(nibble);
        if nibble == 15 {
            loop {
                let more = self.byte(at)?;
                len += usize::from(more);
                if more != 255 {
                    break;
                }
            }
        }
        Ok(len)
    }

    fn snappy(&self) -> Result<Vec<u8>, Error> {
        if self.bytes.is_empty() {
            return Err(self.truncated());
        }
        let broken = |error: snap::Error| {
            use snap::Error as E;
            match error {
                E::HeaderMismatch { .. } | E::CopyRead { .. } => self.truncated(),
                E::Literal { len, src_len, .. } if len > src_len => self.truncated(),
                _ => self.fault(ErrorKind::Payload, 0, &error.to_string()),
            }
        };
        self.sized(snap::raw::decompress_len(self.bytes).map_err(broken)?)?;
        // Three bytes give at most 64.
        if self.declared / 22 > self.bytes.len() {
            return Err(self.truncated());
        }
        let mut plain = vec![0; self.declared];
        let n = snap::raw::Decoder::new().decompress(self.bytes, &mut plain).map_err(broken)?;
        self.sized(n).map(|()| plain)
    }

    /// Room for more, up to one byte beyond what is declared: more than that is not wanted.
    fn grow(&self, plain: &mut Vec<u8>) {
        let most = self.declared + 1;
        let more = plain.len().max(STEP).min(most - plain.len());
        if plain.capacity() - plain.len() < more {
            plain.reserve_exact(more);
        }
    }

    /// What came out of a stream.
    fn stream_end(&self, plain: Vec<u8>) -> Result<Vec<u8>, Error> {
        match plain.len() {
            n if n > self.declared => Err(self.wrong_size("gives more")),
            n => self.sized(n).map(|()| plain),
        }
    }

    /// The end of the stream is not asked for: Pulsar's has none.
    fn zlib(&self) -> Result<Vec<u8>, Error> {
        let (mut inflate, mut plain) = (Decompress::new(true), Vec::new());
        loop {
            let at = usize::try_from(inflate.total_in()).unwrap_or(usize::MAX);
            let rest = self.bytes.get(at..).unwrap_or_default();
            self.grow(&mut plain);
            let before = plain.len();
            let status = inflate.decompress_vec(rest, &mut plain, FlushDecompress::Sync);
            match status {
                Ok(Status::StreamEnd) => {
                    let end = usize::try_from(inflate.total_in()).unwrap_or(usize::MAX);
                    if end < self.bytes.len() {
                        return Err(self.fault(ErrorKind::Payload, end, "goes on behind its end"));
                    }
                    return self.stream_end(plain);
                }
                Ok(_) if plain.len() > self.declared => return self.stream_end(plain),
                Ok(_) if plain.len() == before && inflate.total_in() == at as u64 => {
                    return self.zlib_unfinished(plain);
                }
                Ok(_) => {}
                Err(error) => {
                    let at = usize::try_from(inflate.total_in()).unwrap_or(0);
                    return Err(self.fault(ErrorKind::Payload, at, &error.to_string()));
                }
            }
        }
    }

    /// All input is used up. Flushed, it ends with an empty stored block; without that it is
    /// cut, unless only the trailer is.
    fn zlib_unfinished(&self, plain: Vec<u8>) -> Result<Vec<u8>, Error> {
        let flushed = self.bytes.ends_with(b"\0\0\xff\xff");
        if plain.len() < self.declared && !flushed {
            return Err(self.truncated());
        }
        self.stream_end(plain)
    }

    fn zstd(&self) -> Result<Vec<u8>, Error> {
        let mut context = DCtx::create();
        let broken =
            |at: usize, code| self.fault(ErrorKind::Payload, at, zstd_safe::get_error_name(code));
        let message = usize::BITS - self.declared.leading_zeros();
        context
            .set_parameter(DParameter::WindowLogMax(
                message.clamp(ZSTD_WINDOW_LOG, ZSTD_WINDOW_LOG_MAX),
            ))
            .map_err(|code| broken(0, code))?;
        let (mut input, mut plain) = (InBuffer::around(self.bytes), Vec::new());
        // Of an empty payload nothing is left to be decoded, and it is no frame.
        let mut hint = 1;
        loop {
            self.grow(&mut plain);
            let (before, at) = (plain.len(), input.pos());
            if hint != 0 || at < self.bytes.len() {
                let mut output = OutBuffer::around_pos(&mut plain, before);
                hint = context
                    .decompress_stream(&mut output, &mut input)
                    .map_err(|code| broken(at, code))?;
            }
            if plain.len() > self.declared {
                return self.stream_end(plain);
            }
            if plain.len() == before && input.pos() == at {
                // No frame is under way.
                return if hint == 0 { self.stream_end(plain) } else { Err(self.truncated()) };
            }
        }
    }
}

/// Compresses as Pulsar does.
pub(super) fn compress(compression: CompressionType, plain: &[u8]) -> Result<Vec<u8>, Error> {
    let result = match compression {
        CompressionType::None => Ok(plain.to_vec()),
        CompressionType::Lz4 => lz4(plain),
        CompressionType::Zlib => zlib(plain).map_err(|error| error.to_string()),
        CompressionType::Zstd => {
            zstd(plain).map_err(|code| zstd_safe::get_error_name(code).to_owned())
        }
        CompressionType::Snappy => {
            snap::raw::Encoder::new().compress_vec(plain).map_err(|error| error.to_string())
        }
    };
    result.map_err(|detail| {
        Error::new(ErrorKind::Compress, 0, format!("payload ({})", compression.name()), detail)
    })
}

fn lz4(plain: &[u8]) -> Result<Vec<u8>, String> {
    if plain.is_empty() {
        // A token without literals, as liblz4 has it; lzzzz does not call it then.
        return Ok(vec![0]);
    }
    let mut out = Vec::new();
    lzzzz::lz4::compress_to_vec(plain, &mut out, lzzzz::lz4::ACC_LEVEL_DEFAULT)
        .map_err(|error| error.to_string())?;
    Ok(out)
}

/// Flushed and not finished, as Pulsar's `Deflater` is.
fn zlib(plain: &[u8]) -> Result<Vec<u8>, flate2::CompressError> {
    let (mut deflate, mut out) = (Compress::new(Compression::default(), true), Vec::new());
    loop {
        let at = usize::try_from(deflate.total_in()).unwrap_or(usize::MAX);
        let rest = plain.get(at..).unwrap_or_default();
        out.reserve(STEP.max(rest.len() / 2));
        deflate.compress_vec(rest, &mut out, FlushCompress::Sync)?;
        // Room that is left over says that the flush is complete.
        if deflate.total_in() == plain.len() as u64 && out.len() < out.capacity() {
            out.shrink_to_fit();
            return Ok(out);
        }
    }
}

fn zstd(plain: &[u8]) -> Result<Vec<u8>, usize> {
    let mut context = CCtx::create();
    context.set_parameter(CParameter::CompressionLevel(ZSTD_LEVEL))?;
    context.set_parameter(CParameter::ChecksumFlag(true))?;
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
    context.compress2(&mut out, plain)?;
    out.shrink_to_fit();
    Ok(out)
}
