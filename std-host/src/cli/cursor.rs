//! `std-host cursor`: the metadata nodes of Apache Pulsar, plain or in their envelope.

mod analyze;
mod inspect;

use std::borrow::Cow;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};

use super::{Outcome, Stop, write_error};
use crate::cursor_info::{
    self, CompressionType, Envelope, Error, ErrorKind, Magic, ManagedCursorInfo, ManagedLedgerInfo,
    Node,
};
use crate::source;

/// Reads, writes and measures Apache Pulsar's cursor and ledger metadata
///
/// A node as ZooKeeper or etcd has it: a ManagedCursorInfo or ManagedLedgerInfo, plain or
/// compressed in the envelope of PIP-146.
#[derive(Debug, clap::Args)]
pub(super) struct CursorArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Tells what is in a node, what it costs, and what it would as other types
    Inspect {
        #[command(flatten)]
        input: Input,
        /// Output format
        #[arg(long, value_enum, default_value_t = Format::Json)]
        format: Format,
        /// All fields, each range among them (JSON only)
        #[arg(long)]
        full: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Writes the plain message to standard output
    Decompress {
        #[command(flatten)]
        input: Input,
    },
    /// Writes a plain message as a node to standard output
    Compress {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        target: Target,
    },
    /// Writes a node, plain or not, with another compression type to standard output
    Recompress {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        target: Target,
    },
    /// Compares sizes and times of the four types
    Analyze {
        /// Nodes; - is standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        message: MessageArgs,
        /// Output format
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Debug, clap::Args)]
struct Input {
    /// Node; standard input if not given
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    message: MessageArgs,
}

#[derive(Debug, clap::Args)]
struct MessageArgs {
    /// Which message the node has, as its path tells
    #[arg(long, value_enum, default_value_t = Kind::Cursor)]
    kind: Kind,
    /// Most bytes of a node, and of what it decompresses to
    #[arg(long, value_name = "BYTES", default_value_t = cursor_info::DEFAULT_LIMIT as u32, value_parser = clap::value_parser!(u32).range(1..))]
    max_bytes: u32,
}

impl MessageArgs {
    const fn limit(&self) -> usize {
        self.max_bytes as usize
    }
}

#[derive(Debug, clap::Args)]
struct StoreArgs {
    /// Most bytes of a node in its store; ZooKeeper's jute.maxbuffer, path included
    #[arg(long, value_name = "BYTES", default_value_t = 0xf_ffff)]
    limit: u64,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// Compression type; none writes the plain message
    #[arg(long, value_enum, ignore_case = true)]
    codec: Codec,
    /// Compress messages of more bytes only, as Pulsar does (its brokers: of more than 16384)
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    threshold: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// ManagedCursorInfo, of /managed-ledgers/…/TOPIC/CURSOR
    Cursor,
    /// ManagedLedgerInfo, of /managed-ledgers/…/TOPIC
    Ledger,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object
    Json,
    /// Lines to be read
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Codec {
    None,
    Lz4,
    Zlib,
    Zstd,
    Snappy,
}

impl From<Codec> for CompressionType {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::None => Self::None,
            Codec::Lz4 => Self::Lz4,
            Codec::Zlib => Self::Zlib,
            Codec::Zstd => Self::Zstd,
            Codec::Snappy => Self::Snappy,
        }
    }
}

/// Why nothing comes of a node.
enum Halt {
    Input(io::Error),
    Output(io::Error),
    Bad(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Bad(error)
    }
}

pub(super) fn run(args: &CursorArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    let mut out = BufWriter::new(io::stdout().lock());
    let (input, result) = match &args.action {
        Action::Analyze { files, message, format, store } => {
            analyze::run(files, message, *format, store.limit, &mut out, outcome)?;
            return Ok(out.flush()?);
        }
        Action::Inspect { input, format, full, store } => {
            (input, inspect(input, *format, *full, store.limit, &mut out))
        }
        Action::Decompress { input } => (input, convert(input, CompressionType::None, 0, &mut out)),
        Action::Recompress { input, target } => {
            (input, convert(input, target.codec.into(), target.threshold, &mut out))
        }
        Action::Compress { input, target } => (input, compress(input, target, &mut out)),
    };
    tell(&input.file, result, outcome)?;
    Ok(out.flush()?)
}

fn inspect(
    input: &Input,
    format: Format,
    full: bool,
    limit: u64,
    out: &mut impl Write,
) -> Result<(), Halt> {
    let bytes = read(&input.file, input.message.limit())?;
    let opened = Opened::new(&bytes, &input.message)?;
    inspect::write(&input.file, &bytes, &opened, format, full, limit, out)
}

/// A plain message as a node.
fn compress(input: &Input, target: &Target, out: &mut impl Write) -> Result<(), Halt> {
    let bytes = read(&input.file, input.message.limit())?;
    if let Node::Wrapped(Envelope { magic, .. }) = Node::parse(&bytes)? {
        let detail = format!("0x{:04x}: is in an envelope already, recompress it", magic.number());
        return Err(Error::new(ErrorKind::Envelope, 0, "magic", detail).into());
    }
    let opened = Opened::new(&bytes, &input.message)?;
    put(&opened, target.codec.into(), target.threshold, out)
}

/// Any node as another one.
fn convert(
    input: &Input,
    to: CompressionType,
    threshold: u64,
    out: &mut impl Write,
) -> Result<(), Halt> {
    let bytes = read(&input.file, input.message.limit())?;
    let opened = Opened::new(&bytes, &input.message)?;
    for warning in opened.warnings() {
        write_error(format_args!("{}: {warning}", input.file.display()));
    }
    put(&opened, to, threshold, out)
}

/// The bytes of the message stay as they are, fields that are not known here included.
fn put(
    opened: &Opened<'_>,
    to: CompressionType,
    threshold: u64,
    out: &mut impl Write,
) -> Result<(), Halt> {
    let node = cursor_info::store(to, threshold, &opened.message)?;
    out.write_all(&node).map_err(Halt::Output)
}

fn tell(file: &Path, result: Result<(), Halt>, outcome: &mut Outcome) -> Result<(), Stop> {
    match result {
        Ok(()) => {}
        Err(Halt::Input(error)) => outcome.fail_file(file, &error),
        Err(Halt::Output(error)) => return Err(error.into()),
        Err(Halt::Bad(error)) if error.kind() == ErrorKind::Compress => {
            outcome.fail(format_args!("{}: {error}", file.display()));
        }
        Err(Halt::Bad(error)) => outcome.damage(&file.display().to_string(), &error),
    }
    Ok(())
}

/// Reads a node, of which there may be `limit` bytes.
fn read(file: &Path, limit: usize) -> Result<Vec<u8>, Halt> {
    let (mut bytes, most) = (Vec::new(), limit as u64 + 1);
    let input = source::open_bytes(file).map_err(Halt::Input)?;
    input.take(most).read_to_end(&mut bytes).map_err(Halt::Input)?;
    if bytes.len() > limit {
        let detail = format!("goes on behind the limit of {limit} bytes");
        return Err(Error::new(ErrorKind::Limit, limit as u64, "node", detail).into());
    }
    Ok(bytes)
}

/// The message of a node.
enum Info {
    Cursor(ManagedCursorInfo),
    Ledger(ManagedLedgerInfo),
}

/// A node, its message as bytes, and as values.
struct Opened<'a> {
    node: Node<'a>,
    message: Cow<'a, [u8]>,
    info: Info,
    unknown_fields: u64,
}

impl<'a> Opened<'a> {
    fn new(bytes: &'a [u8], args: &MessageArgs) -> Result<Self, Error> {
        let node = Node::parse(bytes)?;
        let message = node.message(args.limit())?;
        let decoded = match args.kind {
            Kind::Cursor => cursor_info::decode(&message, 0).map(|(m, n)| (Info::Cursor(m), n)),
            Kind::Ledger => cursor_info::decode(&message, 0).map(|(m, n)| (Info::Ledger(m), n)),
        };
        let (info, unknown_fields) = decoded.map_err(|error| node.locate(error))?;
        Ok(Self { node, message, info, unknown_fields })
    }

    /// What is readable but odd.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Node::Wrapped(Envelope { magic: Magic::Draft, .. }) = self.node {
            warnings.push(
                "byte 0: magic: 0x4779 is of PIP-146's first draft, no release of Pulsar reads it"
                    .to_owned(),
            );
        }
        if self.unknown_fields > 0 {
            warnings.push(format!("{} fields of unknown number", self.unknown_fields));
        }
        warnings
    }
}

const COMPRESSED: [CompressionType; 4] =
    [CompressionType::Lz4, CompressionType::Zlib, CompressionType::Zstd, CompressionType::Snappy];

/// How many times smaller; 1 if nothing is compared.
fn ratio(plain: u64, stored: u64) -> f64 {
    if stored == 0 { 1.0 } else { plain as f64 / stored as f64 }
}
