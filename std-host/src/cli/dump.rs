//! `std-host dump`: what is in a segment or a file beside it, as `kafka-dump-log` shows
//! it, or as JSON.

mod side;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use logseg_core::{Tail, TailKind};

use super::{LimitArgs, Outcome, Stop, find_segments, is_checkpoint, refuse};
use crate::dump::{BatchReader, Listed, json, text};
use crate::side::SideFile;
use crate::source::{Item, Segment};

/// Shows the batches of segments and their records, and the entries of files beside them
///
/// The text has the lines of kafka-dump-log, whose options are taken under their own
/// names. No key or value is printed without --print-data-log.
#[derive(Debug, clap::Args)]
pub(super) struct DumpArgs {
    /// Segment files, partition directories or log directories; - is standard input.
    /// Files beside them: .index .timeindex .txnindex .snapshot leader-epoch-checkpoint
    #[arg(value_name = "PATH", required_unless_present = "files")]
    paths: Vec<PathBuf>,
    /// The same as a comma-separated list
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    files: Vec<PathBuf>,
    /// Show every record, not only the batches
    #[arg(long)]
    deep_iteration: bool,
    /// Show keys and values too; implies --deep-iteration
    #[arg(long)]
    print_data_log: bool,
    /// Look at so many bytes of each file at most
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Leave out the metadata of records
    #[arg(long)]
    skip_record_metadata: bool,
    /// Check .index and .timeindex without listing their entries
    #[arg(long)]
    verify_index_only: bool,
    /// Check .index and .timeindex as a broker does when it starts, and nothing else
    #[arg(long)]
    index_sanity_check: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The lines of kafka-dump-log
    Text,
    /// One JSON object a line
    Json,
}

pub(super) fn run(args: &DumpArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    let paths: Vec<PathBuf> = args.paths.iter().chain(&args.files).cloned().collect();
    refuse(&paths, |path| is_checkpoint(path) && SideFile::of(path).is_none())?;
    let files = find_segments(&paths, outcome);
    let mut reader = BatchReader::new(args.limits.limits());
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    for path in &files {
        match SideFile::of(path) {
            Some(kind) => side::dump(args, path, kind, &mut out, outcome)?,
            None => dump_file(args, path, &mut reader, &mut out, outcome)?,
        }
    }
    out.flush()?;
    Ok(())
}

fn dump_file(
    args: &DumpArgs,
    path: &Path,
    reader: &mut BatchReader,
    out: &mut impl Write,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let name = path.display().to_string();
    let limits = args.limits.limits();
    let mut segment = match Segment::open(path, limits.batch, args.max_bytes) {
        Ok(segment) => segment,
        Err(error) => {
            outcome.fail_file(path, &error);
            return Ok(());
        }
    };
    let listed = Listed {
        records: args.deep_iteration || args.print_data_log,
        metadata: !args.skip_record_metadata,
        data: args.print_data_log,
    };
    let mut printer: Box<dyn Printer> = match args.format {
        Format::Text => Box::new(text::Text::new(path, listed)),
        Format::Json => Box::new(json::Json::new(&name, listed)),
    };
    printer.begin(out)?;
    let mut buffer = Vec::new();
    let mut totals = Totals::default();
    let tail = loop {
        buffer.clear();
        match segment.next_batch(&mut buffer) {
            Ok(Item::Batch(header)) => {
                let batch = reader.read(header, &buffer);
                if let Err(error) = &batch.end.verdict {
                    outcome.damage(&name, error);
                } else {
                    totals.records += batch.end.records;
                }
                totals.batches += 1;
                printer.batch(&batch, &buffer, out)?;
                if listed.records && batch.end.verdict.is_ok() {
                    reader.for_each_record(&batch, &buffer, |record| {
                        printer.record(&batch, record, out)
                    })?;
                }
            }
            Ok(Item::Error(error)) => {
                outcome.damage(&name, &error);
                printer.error(&error, out)?;
            }
            Ok(Item::End(tail)) => break Some(tail),
            Err(error) => {
                outcome.fail_file(path, &error);
                break None;
            }
        }
    };
    // A file that shrank has what was read of it.
    let read = tail.map_or(segment.position(), |tail| tail.position + tail.bytes);
    let file_size = match args.max_bytes {
        Some(_) => segment.opened_len().unwrap_or(read),
        None => read,
    };
    let valid_bytes = tail.map_or(read, |tail| tail.position);
    // What is cut because only a prefix was asked for is no tail.
    let cut = |tail: &Tail| args.max_bytes.is_some() && tail.kind == TailKind::PartialBatch;
    let tail = tail.filter(|tail| tail.bytes > 0 && !cut(tail));
    printer.end(&Summary { file_size, valid_bytes, tail, totals }, out)?;
    Ok(())
}

/// Sums over a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Batches listed, bad ones included.
    pub(crate) batches: u64,
    /// Records of the good ones.
    pub(crate) records: u64,
}

/// What is known at the end of a file.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) file_size: u64,
    pub(crate) valid_bytes: u64,
    pub(crate) tail: Option<Tail>,
    pub(crate) totals: Totals,
}

/// A format of the dump.
pub(crate) trait Printer {
    /// Before the first batch.
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;
    /// A batch, good or bad.
    fn batch(
        &mut self,
        batch: &crate::dump::BatchLine,
        entry: &[u8],
        out: &mut dyn Write,
    ) -> io::Result<()>;
    /// A record of a good batch.
    fn record(
        &mut self,
        batch: &crate::dump::BatchLine,
        record: &crate::dump::RecordLine<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()>;
    /// Damage between batches.
    fn error(&mut self, error: &logseg_core::Error, out: &mut dyn Write) -> io::Result<()>;
    /// Behind the last batch.
    fn end(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()>;
}
