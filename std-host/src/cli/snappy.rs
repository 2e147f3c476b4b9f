//! `std-host snappy`: the xerial stream that Kafka calls snappy.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use logseg_core::codec::xerial_encode::{BLOCK, HEADER};
use logseg_core::codec::{CodecError, CodecErrorKind, xerial};
use logseg_core::error::{CodecFault, Corruption};
use logseg_core::{Codec, Decompress, Pause, Window};
use serde::Serialize;

use super::{Outcome, Stop};
use crate::source;

/// Reads and writes the xerial stream, which is Kafka's snappy
///
/// That of snappy-java: a header, then blocks of raw snappy with their lengths. Some
/// clients send one raw block instead, which is read as well.
#[derive(Debug, clap::Args)]
pub(super) struct SnappyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists header and blocks
    Inspect {
        /// Stream; standard input if not given
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// Output format
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Writes what was compressed to standard output
    Decode {
        /// Stream; standard input if not given
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// What the stream has to be
        #[arg(long, value_enum, default_value_t = Framing::Auto)]
        framing: Framing,
    },
    /// Writes a xerial stream to standard output
    Encode {
        /// Plain bytes; standard input if not given
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// Plain bytes of a block
        #[arg(long, value_name = "BYTES", default_value_t = BLOCK as u32, value_parser = clap::value_parser!(u32).range(1024..=512 << 20))]
        block_size: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each block
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Framing {
    /// Whatever it is
    Auto,
    /// The xerial stream, or several one behind the other
    Xerial,
    /// One raw block
    Raw,
}

/// Window of the decoder. Copies reach back 64 KiB, but for raw blocks of franz-go.
const WINDOW: usize = 8 << 20;

/// Why a stream is not read to its end.
enum Halt {
    Input(io::Error),
    Output(io::Error),
    /// At a position of the stream.
    Corrupt(u64, CodecErrorKind),
}

impl Halt {
    const fn corrupt(at: u64, corruption: Corruption) -> Self {
        Self::Corrupt(at, CodecErrorKind::Fault(CodecFault::Corrupt(corruption)))
    }

    const fn truncated(at: u64) -> Self {
        Self::Corrupt(at, CodecErrorKind::Fault(CodecFault::Truncated))
    }
}

pub(super) fn run(args: &SnappyArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    let (Action::Inspect { file, .. } | Action::Decode { file, .. } | Action::Encode { file, .. }) =
        &args.action;
    let input = match source::open_bytes(file) {
        Ok(input) => BufReader::with_capacity(256 << 10, input),
        Err(error) => {
            outcome.fail_file(file, &error);
            return Ok(());
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let result = match &args.action {
        Action::Inspect { format, .. } => inspect(input, *format, &mut out),
        Action::Decode { framing, .. } => decode(input, *framing, &mut out),
        Action::Encode { block_size, .. } => encode(input, *block_size as usize, &mut out),
    };
    match result.and_then(|()| out.flush().map_err(Halt::Output)) {
        Ok(()) => Ok(()),
        Err(halt) => {
            // What was read so far is worth something to who reads along.
            let _ = out.flush();
            tell(file, halt, outcome)
        }
    }
}

fn tell(file: &Path, halt: Halt, outcome: &mut Outcome) -> Result<(), Stop> {
    match halt {
        Halt::Input(error) => outcome.fail_file(file, &error),
        Halt::Output(error) => return Err(error.into()),
        Halt::Corrupt(at, kind) => {
            let error = CodecError { kind, at: 0 }.in_batch(Codec::Snappy, at, 0);
            outcome.damage(&file.display().to_string(), &error);
        }
    }
    Ok(())
}

/// Fills the buffer as far as there is input.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Halt> {
    source::fill(input, buffer).map_err(Halt::Input)
}

/// What `inspect` tells, one a line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Header { position: u64, version: i32, compatible_version: i32 },
    Block { position: u64, compressed_size: u64, uncompressed_size: u64 },
    Raw { position: u64, compressed_size: u64, uncompressed_size: u64 },
    Stream { file_size: u64, blocks: u64, compressed_size: u64, uncompressed_size: u64 },
}

impl Line {
    fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        if format == Format::Json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        match self {
            Self::Header { position, version, compatible_version } => writeln!(
                out,
                "byte {position}: header, version {version}, compatible with {compatible_version}"
            ),
            Self::Block { position, compressed_size, uncompressed_size } => {
                writeln!(
                    out,
                    "byte {position}: block, {compressed_size} bytes of {uncompressed_size}"
                )
            }
            Self::Raw { position, compressed_size, uncompressed_size } => writeln!(
                out,
                "byte {position}: one raw block, {compressed_size} bytes of {uncompressed_size}"
            ),
            Self::Stream { blocks, compressed_size, uncompressed_size, .. } => {
                writeln!(out, "{blocks} blocks, {compressed_size} bytes of {uncompressed_size}")
            }
        }
    }
}

/// Walks the lengths, without decoding what they are of.
fn inspect(mut input: impl Read, format: Format, out: &mut impl Write) -> Result<(), Halt> {
    let mut head = [0; HEADER.len()];
    let len = fill(&mut input, &mut head)?;
    let put = |out: &mut _, line: Line| line.write(format, out).map_err(Halt::Output);
    if len == 0 {
        return Err(Halt::truncated(0));
    }
    if xerial::Framing::of(&head[..len]) != xerial::Framing::Xerial {
        let uncompressed_size = uncompressed_size(0, &head[..len])?;
        let compressed_size = len as u64 + skip(&mut input, u64::MAX)?;
        return put(out, Line::Raw { position: 0, compressed_size, uncompressed_size });
    }
    let mut position = HEADER.len() as u64;
    let (mut blocks, mut compressed, mut uncompressed) = (0, 0, 0);
    put(out, header(0, &head))?;
    loop {
        let mut word = [0; 4];
        let n = fill(&mut input, &mut word)?;
        if n < word.len() {
            // As snappy-java: less than a length is the end.
            position += n as u64;
            break;
        }
        if word == HEADER[..4] {
            head[..4].copy_from_slice(&word);
            let n = fill(&mut input, &mut head[4..])?;
            if n < HEADER.len() - 4 {
                return Err(Halt::truncated(position + 4 + n as u64));
            }
            if head[..8] != HEADER[..8] {
                return Err(Halt::corrupt(position, Corruption::Header));
            }
            put(out, header(position, &head))?;
            position += HEADER.len() as u64;
            continue;
        }
        let size = match u64::try_from(i32::from_be_bytes(word)) {
            Ok(0) => return Err(Halt::corrupt(position, Corruption::EmptyBlock)),
            Ok(size) => size,
            Err(_) => return Err(Halt::corrupt(position, Corruption::Length)),
        };
        let mut preamble = [0; 5];
        let most = preamble.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        let n = fill(&mut input, &mut preamble[..most])?;
        let plain = uncompressed_size(position + 4, &preamble[..n])?;
        let there = n as u64 + skip(&mut input, size - n as u64)?;
        if there < size {
            return Err(Halt::truncated(position + 4 + there));
        }
        put(out, Line::Block { position, compressed_size: size, uncompressed_size: plain })?;
        position += 4 + size;
        (blocks, compressed, uncompressed) = (blocks + 1, compressed + size, uncompressed + plain);
    }
    let line = Line::Stream {
        file_size: position,
        blocks,
        compressed_size: compressed,
        uncompressed_size: uncompressed,
    };
    put(out, line)
}

fn header(position: u64, head: &[u8; HEADER.len()]) -> Line {
    let [.., a, b, c, d, e, f, g, h] = *head;
    Line::Header {
        position,
        version: i32::from_be_bytes([a, b, c, d]),
        compatible_version: i32::from_be_bytes([e, f, g, h]),
    }
}

/// What a raw block declares that starts at a position, in at most five bytes.
fn uncompressed_size(position: u64, block: &[u8]) -> Result<u64, Halt> {
    let preamble = block.get(..5).unwrap_or(block);
    match snap::raw::decompress_len(preamble) {
        Ok(size) if !preamble.is_empty() => Ok(size as u64),
        Err(snap::Error::TooBig { .. }) => Err(Halt::corrupt(position, Corruption::Length)),
        _ if preamble.len() < 5 => Err(Halt::truncated(position + preamble.len() as u64)),
        _ => Err(Halt::corrupt(position, Corruption::Length)),
    }
}

/// Reads bytes away; gives how many there were.
fn skip(input: &mut impl Read, most: u64) -> Result<u64, Halt> {
    io::copy(&mut input.take(most), &mut io::sink()).map_err(Halt::Input)
}

fn decode(mut input: impl Read, framing: Framing, out: &mut impl Write) -> Result<(), Halt> {
    let mut buffer = vec![0; 64 << 10];
    let mut len = fill(&mut input, &mut buffer)?;
    let found = xerial::Framing::of(&buffer[..len.min(HEADER.len())]);
    if found == xerial::Framing::Unknown {
        return Err(Halt::truncated(0));
    }
    if matches!(
        (framing, found),
        (Framing::Xerial, xerial::Framing::Raw) | (Framing::Raw, xerial::Framing::Xerial)
    ) {
        return Err(Halt::corrupt(0, Corruption::NotThisFormat));
    }
    let mut decoder = xerial::Xerial::default();
    let mut memory = vec![0; WINDOW];
    let mut window = Window::new(&mut memory);
    let (mut at, mut position) = (0, 0);
    loop {
        let progress = decoder
            .advance(&buffer[at..len], &mut window)
            .map_err(|error| Halt::Corrupt(position + error.at as u64, error.kind))?;
        at += progress.consumed;
        position += progress.consumed as u64;
        out.write_all(window.unread()).map_err(Halt::Output)?;
        window.consume(usize::MAX);
        match progress.pause {
            Pause::Finished => return Ok(()),
            Pause::WindowFull => window.slide(WINDOW / 2),
            Pause::InputDry => {}
        }
        if at == len && progress.pause == Pause::InputDry {
            (len, at) = (fill(&mut input, &mut buffer)?, 0);
        }
    }
}

fn encode(mut input: impl Read, block_size: usize, out: &mut impl Write) -> Result<(), Halt> {
    let mut encoder = snap::raw::Encoder::new();
    let mut plain = Vec::new();
    let mut packed = Vec::new();
    out.write_all(&HEADER).map_err(Halt::Output)?;
    loop {
        plain.clear();
        let n = (&mut input).take(block_size as u64).read_to_end(&mut plain);
        if n.map_err(Halt::Input)? == 0 {
            return Ok(());
        }
        packed.resize(snap::raw::max_compress_len(plain.len()), 0);
        let n =
            encoder.compress(&plain, &mut packed).map_err(|error| Halt::Output(error.into()))?;
        // At most 512 MiB and a sixth.
        out.write_all(&(n as u32).to_be_bytes()).map_err(Halt::Output)?;
        out.write_all(&packed[..n]).map_err(Halt::Output)?;
    }
}
