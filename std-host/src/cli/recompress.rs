//! `std-host recompress`: a new segment with another compression type.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use logseg_core::{BatchHeader, Error, ErrorKind, Tail, TailKind};

use super::{LimitArgs, Outcome, Stop, is_side_file, refuse};
use crate::codec_spec::{self, CodecSpec};
use crate::recompress::NotDone;
use crate::rewrite::Rewriter;
use crate::source::{Item, Segment};

/// Writes a new segment in which every batch is compressed with one type
///
/// Offsets, timestamps, producer state and flags stay, and so do control batches and empty
/// ones; checksums are computed anew. An incomplete tail is left out.
#[derive(Debug, clap::Args)]
pub(super) struct RecompressArgs {
    /// Segment file; - is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// gzip, snappy, lz4 or zstd, with a level or without (zstd:9), or none
    #[arg(long, value_name = "CODEC", value_parser = parse_codec)]
    codec: Target,
    /// File to write, which must not exist yet; - is standard output
    #[arg(long, value_name = "OUT")]
    output: PathBuf,
    /// Copy what is damaged as it is instead of stopping at the first such batch
    #[arg(long)]
    keep_damaged: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// What to compress with, if at all.
#[derive(Debug, Clone, Copy)]
struct Target(Option<CodecSpec>);

fn parse_codec(codec: &str) -> Result<Target, String> {
    if codec == "none" {
        return Ok(Target(None));
    }
    match codec_spec::parse_list(codec).map_err(|error| error.to_string())?.as_slice() {
        &[spec] => Ok(Target(Some(spec))),
        _ => Err("one codec at one level is wanted".to_owned()),
    }
}

/// Why no output is left behind.
enum Halt {
    Input(io::Error),
    Output(io::Error),
    /// It has been told.
    Told,
}

pub(super) fn run(args: &RecompressArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    refuse(std::slice::from_ref(&args.input), is_side_file)?;
    let limits = args.limits.limits();
    let name = args.input.display().to_string();
    let mut segment = match Segment::open(&args.input, limits.batch, None) {
        Ok(segment) => segment,
        Err(error) => {
            outcome.fail_file(&args.input, &error);
            return Ok(());
        }
    };
    let to_stdout = args.output.as_os_str() == "-";
    let out: Box<dyn Write> = if to_stdout {
        Box::new(io::stdout().lock())
    } else {
        // Made here or not at all: neither a file nor a link is ever written over.
        match File::create_new(&args.output) {
            Ok(file) => Box::new(file),
            Err(error) => {
                outcome.fail_file(&args.output, &error);
                return Ok(());
            }
        }
    };
    let mut copy = Rewriting {
        name: &name,
        rewriter: Rewriter::new(args.codec.0, limits),
        keep_damaged: args.keep_damaged,
        out: BufWriter::with_capacity(256 << 10, out),
        batches: 0,
        from: 0,
        to: 0,
        outcome,
    };
    let result = copy.run(&mut segment);
    let Rewriting { batches, from, to, .. } = copy;
    match result {
        Ok(()) if to_stdout => return Ok(()),
        Ok(()) => {
            let output = args.output.display();
            writeln!(io::stdout(), "{output}: {batches} batches, {from} bytes are now {to}")?;
            return Ok(());
        }
        Err(Halt::Told) => {}
        Err(Halt::Input(error)) => {
            let at = segment.position();
            outcome.fail(format_args!("{name}: cannot be read behind byte {at}: {error}"));
        }
        // A reader of a pipe that has had enough.
        Err(Halt::Output(error)) if to_stdout => return Err(error.into()),
        Err(Halt::Output(error)) => outcome.fail_file(&args.output, &error),
    }
    if !to_stdout {
        remove(&args.output, outcome);
    }
    Ok(())
}

fn remove(output: &Path, outcome: &mut Outcome) {
    if let Err(error) = fs::remove_file(output) {
        outcome.fail_file(output, &error);
    }
}

/// A segment on its way.
struct Rewriting<'a> {
    name: &'a str,
    rewriter: Rewriter,
    keep_damaged: bool,
    out: BufWriter<Box<dyn Write>>,
    batches: u64,
    /// Bytes of batches read and written.
    from: u64,
    to: u64,
    outcome: &'a mut Outcome,
}

impl Rewriting<'_> {
    fn run(&mut self, segment: &mut Segment) -> Result<(), Halt> {
        let (mut entry, mut rewritten) = (Vec::new(), Vec::new());
        loop {
            entry.clear();
            match segment.next_batch(&mut entry).map_err(Halt::Input)? {
                Item::Batch(header) => self.batch(header, &entry, &mut rewritten)?,
                Item::Error(error) => {
                    self.damaged(&error)?;
                    // Of one that is too large to be taken into memory the place is known;
                    // else no entry starts here, and the tail says where that is.
                    if let ErrorKind::BatchTooLarge { size, .. } = error.kind() {
                        let from = error.position() - 8;
                        self.copy(segment, from, from + size)?;
                    }
                }
                Item::End(tail) if tail.kind == TailKind::Garbage => {
                    self.copy(segment, tail.position, u64::MAX)?;
                    return self.out.flush().map_err(Halt::Output);
                }
                Item::End(tail) => {
                    self.tell_tail(&tail);
                    return self.out.flush().map_err(Halt::Output);
                }
            }
        }
    }

    fn batch(
        &mut self,
        header: BatchHeader,
        entry: &[u8],
        rewritten: &mut Vec<u8>,
    ) -> Result<(), Halt> {
        rewritten.clear();
        let bytes = match self.rewriter.rewrite(header, entry, rewritten) {
            Ok(()) => rewritten.as_slice(),
            Err(NotDone::Damaged(error)) => {
                self.damaged(&error)?;
                entry
            }
            Err(NotDone::Failed(error)) => {
                let (name, at) = (self.name, header.position);
                self.outcome.fail(format_args!("{name}: byte {at}: {error}"));
                return Err(Halt::Told);
            }
        };
        self.out.write_all(bytes).map_err(Halt::Output)?;
        self.batches += 1;
        self.from += header.size;
        self.to += bytes.len() as u64;
        Ok(())
    }

    /// Copies what is no batch.
    fn copy(&mut self, segment: &mut Segment, from: u64, to: u64) -> Result<(), Halt> {
        match segment.copy(from, to, &mut self.out) {
            Ok(Some(bytes)) => {
                self.from += bytes;
                self.to += bytes;
                Ok(())
            }
            Ok(None) => {
                let name = self.name;
                self.outcome.fail(format_args!("{name}: byte {from}: only a file can be copied"));
                Err(Halt::Told)
            }
            Err(error) => Err(Halt::Input(error)),
        }
    }

    fn damaged(&mut self, error: &Error) -> Result<(), Halt> {
        self.outcome.damage(self.name, error);
        if self.keep_damaged { Ok(()) } else { Err(Halt::Told) }
    }

    /// A live segment has such a tail, so it is nothing wrong, but it is not copied.
    fn tell_tail(&self, tail: &Tail) {
        let what = match tail.kind {
            TailKind::PartialBatch => "of an incomplete batch",
            TailKind::ZeroPadding => "of zeros",
            TailKind::Clean | TailKind::Garbage => return,
        };
        let (name, bytes, at) = (self.name, tail.bytes, tail.position);
        super::write_error(format_args!("{name}: byte {at}: {bytes} bytes {what} are left out"));
    }
}
