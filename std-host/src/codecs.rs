//! Fast decoders behind the core's traits.
//!
//! Whole payloads go through the quickest library there is as long as they are what
//! producers write. Anything unusual is decoded once more by the core, whose word
//! counts: it knows every form that Kafka accepts, and says exactly what is wrong.

use logseg_core::codec::{CodecErrorKind, xerial, zstd};
use logseg_core::error::{Checksummed, CodecFault, Corruption, Refusal};
use logseg_core::window::{Marks, Window};
use logseg_core::{
    Builtin, Codec, CodecError, Codecs, Decompress, Error, ErrorKind, Magic, Pause, Progress,
};
use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// Largest zstd window, 128 MiB, as Kafka.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Decompressed bytes, in a buffer that is used again and again.
#[derive(Debug, Default)]
pub struct Plain {
    buffer: Vec<u8>,
    len: usize,
}

impl Plain {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The bytes, to be changed.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    /// The bytes, and nothing is left to be used again.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.truncate(std::mem::take(&mut self.len));
        bytes
    }

    /// How many bytes it keeps allocated.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Makes room for `more` bytes behind those that are there.
    fn room(&mut self, more: usize) -> &mut [u8] {
        let end = self.len + more;
        if self.buffer.len() < end {
            self.buffer.resize(end.max(self.buffer.len() + self.buffer.len() / 2), 0);
        }
        &mut self.buffer[self.len..end]
    }

    /// Replaces the contents.
    pub fn set(&mut self, bytes: &[u8]) {
        self.len = 0;
        self.room(bytes.len()).copy_from_slice(bytes);
        self.len = bytes.len();
    }
}

/// All decoders of a thread.
pub struct HostCodecs {
    core: Builtin<'static>,
    zstd: HostZstd,
    inflate: libdeflater::Decompressor,
    snappy: snap::raw::Decoder,
}

impl Default for HostCodecs {
    fn default() -> Self {
        Self {
            core: Builtin::new(),
            zstd: HostZstd::new(),
            inflate: libdeflater::Decompressor::new(),
            snappy: snap::raw::Decoder::new(),
        }
    }
}

impl Codecs for HostCodecs {
    fn decoder(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Decompress> {
        match codec {
            Codec::Zstd => Some(&mut self.zstd),
            _ => self.core.decoder(codec, magic),
        }
    }
}

impl HostCodecs {
    /// Decompresses a whole payload into `out`.
    ///
    /// Errors are those of the core's decoders, and
    /// [`ErrorKind::TooMuchOutput`] beyond `limit` bytes; `position` is that of the
    /// payload.
    pub fn unpack(
        &mut self,
        codec: Codec,
        magic: Magic,
        payload: &[u8],
        position: u64,
        limit: u64,
        out: &mut Plain,
    ) -> Result<(), Error> {
        out.len = 0;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let quick = match codec {
            Codec::None => {
                out.set(payload);
                Some(())
            }
            Codec::Gzip => self.quick_gzip(payload, most, out),
            Codec::Snappy => self.quick_snappy(payload, most, out),
            Codec::Lz4 => quick_lz4(magic, payload, most, out),
            Codec::Zstd => None,
        };
        if quick.is_some() {
            return Ok(());
        }
        let none = CodecError { kind: CodecErrorKind::NotBuiltIn, at: 0 };
        let decoder =
            self.decoder(codec, magic).ok_or_else(|| none.in_batch(codec, position, 0))?;
        match through_window(decoder, payload, most, out) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::new(ErrorKind::TooMuchOutput { limit }, position)),
            Err(error) => Err(error.in_batch(codec, position, 0)),
        }
    }

    /// One member without optional fields.
    fn quick_gzip(&mut self, payload: &[u8], most: usize, out: &mut Plain) -> Option<()> {
        if !payload.starts_with(b"\x1f\x8b\x08\0") || payload.len() < 18 {
            return None;
        }
        // libdeflate reads the first member and does not say where it ends. A second
        // one would start like this.
        if memchr::memmem::find(&payload[1..], b"\x1f\x8b\x08").is_some() {
            return None;
        }
        // The trailer's length is a guess, and what it may cost follows from what is there:
        // a megabyte may well be 64 at once, more than that grows step by step.
        let (_, trailer) = payload.split_last_chunk::<4>()?;
        let times = if payload.len() <= 1 << 20 { 64 } else { 4 };
        let honest = payload.len().saturating_mul(times).saturating_add(64 << 10);
        let mut size = usize::try_from(u32::from_le_bytes(*trailer)).ok()?.clamp(1, honest);
        loop {
            let room = out.room(size.min(most));
            match self.inflate.gzip_decompress(payload, room) {
                Ok(n) => {
                    out.len = n;
                    return Some(());
                }
                Err(libdeflater::DecompressionError::InsufficientSpace) if size < most => {
                    size = size.saturating_mul(4);
                }
                Err(_) => return None,
            }
        }
    }

    /// One xerial stream, or one raw block.
    fn quick_snappy(&mut self, payload: &[u8], most: usize, out: &mut Plain) -> Option<()> {
        match xerial::Framing::of(payload) {
            xerial::Framing::Xerial => {
                let mut rest = &payload[16..];
                while let Some((word, behind)) = rest.split_first_chunk::<4>() {
                    let len = usize::try_from(i32::from_be_bytes(*word)).ok()?;
                    let (block, behind) = behind.split_at_checked(len)?;
                    self.snappy_block(block, most, out)?;
                    rest = behind;
                }
                Some(())
            }
            xerial::Framing::Raw => self.snappy_block(payload, most, out),
            xerial::Framing::Unknown => None,
        }
    }

    fn snappy_block(&mut self, block: &[u8], most: usize, out: &mut Plain) -> Option<()> {
        let len = snap::raw::decompress_len(block).ok()?;
        // Three bytes give at most 64, whatever the block declares.
        if len / 22 > block.len() || len > most - out.len {
            return None;
        }
        let n = self.snappy.decompress(block, out.room(len)).ok()?;
        out.len += n;
        Some(())
    }
}

/// A frame as Kafka's clients write it: independent blocks and no checksums.
fn quick_lz4(magic: Magic, payload: &[u8], most: usize, out: &mut Plain) -> Option<()> {
    let (&[0x04, 0x22, 0x4d, 0x18, 0x60, bd, hc], mut rest) = payload.split_first_chunk()? else {
        return None;
    };
    let (largest, sum) = match bd {
        0x40 => (64 << 10, 0x82),
        0x50 => (256 << 10, 0xfb),
        0x60 => (1 << 20, 0x51),
        0x70 => (4 << 20, 0x73),
        _ => return None,
    };
    if magic != Magic::V0 && hc != sum {
        return None;
    }
    loop {
        let (word, behind) = rest.split_first_chunk::<4>()?;
        let word = u32::from_le_bytes(*word);
        let len = usize::try_from(word & 0x7fff_ffff).ok()?;
        if len == 0 {
            return Some(());
        }
        let (block, behind) = behind.split_at_checked(len)?;
        if len > largest || out.len + largest > most {
            return None;
        }
        let n = if word >> 31 == 1 {
            out.room(len).copy_from_slice(block);
            len
        } else {
            // A byte of input gives at most 255 of output.
            let room = largest.min(len.saturating_mul(255));
            lzzzz::lz4::decompress(block, out.room(room)).ok().filter(|&n| n > 0)?
        };
        out.len += n;
        rest = behind;
    }
}

/// Through a window that grows; false if it would have to grow beyond `most`.
fn through_window(
    decoder: &mut dyn Decompress,
    payload: &[u8],
    most: usize,
    out: &mut Plain,
) -> Result<bool, CodecError> {
    decoder.reset();
    out.len = 0;
    let first = payload.len().saturating_mul(4).max(64 << 10).min(most.saturating_add(1));
    out.room(first);
    let (mut marks, mut at) = (Marks::default(), 0);
    loop {
        // One byte more than allowed, so that too much is told as such and not as what a
        // buffer that happens to be longer would come upon.
        let cap = out.buffer.len().min(most.saturating_add(1));
        let mut window = Window::resume(&mut out.buffer[..cap], marks);
        let input = &payload[at..];
        let progress = decoder
            .advance(input, &mut window)
            .map_err(|error| CodecError { at: error.at + at, ..error })?;
        let before = marks.end();
        marks = window.marks();
        at += progress.consumed;
        if marks.end() > most {
            return Ok(false);
        }
        match progress.pause {
            Pause::Finished => {
                out.len = marks.end();
                return Ok(true);
            }
            Pause::InputDry if input.is_empty() && marks.end() == before => {
                let truncated = CodecErrorKind::Fault(CodecFault::Truncated);
                return Err(CodecError { kind: truncated, at });
            }
            Pause::InputDry => {}
            Pause::WindowFull => {
                out.len = marks.end();
                let more = (out.buffer.len() - out.len) + out.buffer.len();
                out.room(more.min(most.saturating_add(1).saturating_sub(out.len).max(1)));
            }
        }
    }
}

/// zstd with a context on the heap, which is kept.
struct HostZstd {
    context: DCtx<'static>,
    /// Within a frame.
    inside: bool,
}

impl HostZstd {
    fn new() -> Self {
        let mut context = DCtx::create();
        // It is the library's own default; said here since the limit is promised.
        let _ = context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX));
        Self { context, inside: false }
    }
}

fn zstd_fault(code: usize) -> CodecFault {
    use ZSTD_ErrorCode as E;
    let is = |kind| zstd_safe::is_error_kind(code, kind);
    if is(E::ZSTD_error_frameParameter_windowTooLarge) {
        CodecFault::Refused(Refusal::Window)
    } else if is(E::ZSTD_error_checksum_wrong) {
        CodecFault::Checksum { of: Checksummed::Content, stored: 0, computed: 0 }
    } else if is(E::ZSTD_error_dictionary_wrong) || is(E::ZSTD_error_dictionary_corrupted) {
        CodecFault::Refused(Refusal::Dictionary)
    } else if is(E::ZSTD_error_prefix_unknown) || is(E::ZSTD_error_version_unsupported) {
        CodecFault::Corrupt(Corruption::NotThisFormat)
    } else {
        CodecFault::Corrupt(Corruption::Data)
    }
}

impl Decompress for HostZstd {
    fn reset(&mut self) {
        let _ = self.context.reset(ResetDirective::SessionOnly);
        self.inside = false;
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        let Self { context, inside } = self;
        zstd::drive(input, out, inside, |from, to| {
            let (mut from, mut to) = (InBuffer::around(from), OutBuffer::around(to));
            match context.decompress_stream(&mut to, &mut from) {
                Ok(hint) => Ok((from.pos(), to.pos(), hint)),
                Err(code) => Err(CodecErrorKind::Fault(zstd_fault(code))),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use logseg_core::Batches;

    use super::*;

    /// What the core says of a payload, without any quick way.
    fn slow(codec: Codec, magic: Magic, payload: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut codecs = HostCodecs::default();
        let mut out = Plain::default();
        let decoder = codecs.decoder(codec, magic).unwrap();
        match through_window(decoder, payload, most, &mut out) {
            Ok(true) => Ok(out.bytes().to_vec()),
            Ok(false) => Err("too much".to_owned()),
            Err(error) => Err(format!("{:?}", error.kind)),
        }
    }

    fn quick(
        codecs: &mut HostCodecs,
        codec: Codec,
        magic: Magic,
        payload: &[u8],
        most: usize,
    ) -> Result<Vec<u8>, String> {
        let mut out = Plain::default();
        match codecs.unpack(codec, magic, payload, 0, most as u64, &mut out) {
            Ok(()) => Ok(out.bytes().to_vec()),
            Err(error) => Err(match error.kind() {
                ErrorKind::TooMuchOutput { .. } => "too much".to_owned(),
                ErrorKind::Codec { fault, .. } => format!("{:?}", CodecErrorKind::Fault(fault)),
                other => format!("{other:?}"),
            }),
        }
    }

    /// Whatever the bytes are, the quick ways give what the core's decoders give.
    #[test]
    fn quick_ways_change_nothing() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
        let mut codecs = HostCodecs::default();
        let (mut seed, mut compared, mut good) = (0x2545_f491_4f6c_dd1du64, 0, 0);
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 16) as usize % below.max(1)
        };
        let names = ["segments/birdstrikes-mixed.log", "segments/quakes-v0-mixed.log"];
        let mut paths: Vec<_> = names.iter().map(|name| corpus.join(name)).collect();
        for entry in std::fs::read_dir(corpus.join("cases")).unwrap() {
            let path = entry.unwrap().path().join("input.log");
            // The bomb takes its time without saying more than the others.
            if path.exists() && !path.to_string_lossy().contains("150-zstd-bomb") {
                paths.push(path);
            }
        }
        for path in paths {
            let bytes = std::fs::read(&path).unwrap();
            let mut batches = Vec::new();
            for batch in Batches::new(&bytes, crate::cpu::detect()).map_while(Result::ok) {
                let codec = batch.header().codec().unwrap_or(Codec::None);
                if codec != Codec::None
                    && let Ok(payload) = batch.payload()
                    && payload.len() < 100_000
                {
                    batches.push((codec, batch.header().magic, payload.to_vec()));
                }
            }
            let every = batches.len() / 40 + 1;
            for (codec, magic, payload) in batches.into_iter().step_by(every) {
                for round in 0..8 {
                    let mut payload = payload.clone();
                    let at = random(payload.len());
                    match round {
                        0 => {}
                        1 => payload.truncate(at),
                        2 => payload.extend_from_slice(&payload.clone()),
                        3 => payload.extend_from_slice(b"\0\0\0\0trailing"),
                        4 => drop(payload.splice(at..at, [0xff; 3])),
                        _ if payload.is_empty() => {}
                        _ => payload[at] ^= 1 << random(8),
                    }
                    let most = if round == 5 { 1000 } else { 16 << 20 };
                    let want = slow(codec, magic, &payload, most);
                    let got = quick(&mut codecs, codec, magic, &payload, most);
                    compared += 1;
                    good += usize::from(want.is_ok());
                    assert!(
                        got == want,
                        "{codec} {} round {round}: {got:.80?} {want:.80?}",
                        path.display()
                    );
                }
            }
        }
        assert!(compared > 1000 && good > compared / 4, "{good} of {compared}");
    }
}
