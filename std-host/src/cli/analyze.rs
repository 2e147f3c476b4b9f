//! `std-host analyze`: what each compression type would make of a log (KIP-640).
//!
//! Every thread runs the same loop: take the next few batches from the files under a
//! lock, measure them, and hand the figures in. They are put together in the order
//! of the files, so the report is the same for any number of threads, and one thread
//! means no second one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use logseg_core::{BatchHeader, Error, Limits, Magic, Tail};

use super::{LimitArgs, Outcome, Stop, is_side_file, refuse};
use crate::analysis::{AnalysisReport, Fault, Figures, LargeMessages, SegmentReport, Trailing};
use crate::by_reference::ByReference;
use crate::codec_spec::{self, CodecSpec};
use crate::dump::{codec_name, json::tail_name};
use crate::measure::Measurer;
use crate::recompress::NotDone;
use crate::report;
use crate::source::{self, Item, Segment};

/// Stored bytes that a thread takes at once: enough to make the lock cheap, little
/// enough that all threads have work to the end.
const SHARE: usize = 128 << 10;

/// In references, for segments that are in no partition directory.
const UNKNOWN_TOPIC: &str = "topic";

/// Measures what each compression type would make of a log, as KIP-640 proposes
///
/// Every batch is decompressed and compressed again as a Java producer of that type
/// would have sent it; batches are never merged or split.
#[derive(Debug, clap::Args)]
pub(super) struct AnalyzeArgs {
    /// Segment files, partition directories or log directories; - is standard input
    #[arg(value_name = "PATH", required_unless_present = "logs")]
    paths: Vec<PathBuf>,
    /// The same as a comma-separated list
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    logs: Vec<PathBuf>,
    /// Compress only the batches that are stored uncompressed; the others count as they are
    #[arg(long)]
    no_recompression: bool,
    /// A line per batch before the table
    #[arg(long)]
    verbose: bool,
    /// What to try: name, name:level or name:low..high, e.g. zstd:1..9,gzip:6,lz4
    ///
    /// Levels: gzip 1 to 9, lz4 1 to 17 (9, the default, is the fast compressor, all
    /// others are HC), zstd -131072 to 22. At most 64 in all.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "gzip,snappy,lz4,zstd",
        allow_hyphen_values = true
    )]
    codecs: String,
    /// Threads to use; 1 makes it a single-threaded program [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Where to write the report; never inside an analysed directory
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A bar on standard error
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
    /// Measure also what would be left with values of N bytes or more in a blob store
    ///
    /// Each of them is replaced by a reference as the large-message serializer writes it,
    /// with its header; blobs are not compressed. v0/v1 messages, which have no headers,
    /// stay.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    large_message_threshold: Option<u64>,
    /// URL of that store, which is part of every reference; nothing is sent there
    #[arg(
        long,
        value_name = "URL",
        default_value = "s3://large-messages/kafka",
        requires = "large_message_threshold"
    )]
    large_message_store: String,
    #[command(flatten)]
    limits: LimitArgs,
}

impl AnalyzeArgs {
    fn large_messages(&self) -> Option<LargeMessages> {
        let threshold = self.large_message_threshold?;
        let store = self.large_message_store.trim_end_matches('/').to_owned();
        Some(LargeMessages { threshold, store })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The table of KIP-640
    Text,
    /// One JSON document
    Json,
    /// A line per file and codec
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// If standard error is a terminal
    Auto,
    Always,
    Never,
}

pub(super) fn run(args: &AnalyzeArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    let specs =
        codec_spec::parse_list(&args.codecs).map_err(|error| Stop::Usage(error.to_string()))?;
    let paths: Vec<PathBuf> = args.paths.iter().chain(&args.logs).cloned().collect();
    refuse(&paths, is_side_file)?;
    let found = source::find(&paths);
    let output = args.output.as_deref().filter(|output| output.as_os_str() != "-");
    if let Some(output) = output {
        check_output(output, &paths, &found.segments).map_err(Stop::Usage)?;
    }
    for (path, error) in &found.failures {
        outcome.fail_file(path, error);
    }
    if found.segments.is_empty() {
        if found.failures.is_empty() {
            outcome.fail(format_args!("no *.log file below the given paths"));
        }
        return Ok(());
    }
    let out: Box<dyn Write + Send> = match output {
        Some(path) => match File::create(path) {
            Ok(file) => Box::new(file),
            Err(error) => {
                outcome.fail_file(path, &error);
                return Ok(());
            }
        },
        None => Box::new(io::stdout()),
    };
    let threads = args
        .threads
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
        .min(shares(&found.segments));
    let bar = progress(args.progress, &found.segments);
    let limits = args.limits.limits();
    let feed = Mutex::new(Feed {
        waiting: found.segments.iter(),
        open: None,
        topic: UNKNOWN_TOPIC,
        limits,
        taken: 0,
        bar: bar.clone(),
    });
    let results = Mutex::new(Results {
        args,
        specs: &specs,
        several: found.segments.len() > 1,
        out: BufWriter::new(out),
        early: BTreeMap::new(),
        next: 0,
        current: None,
        report: AnalysisReport {
            large_messages: args.large_messages(),
            ..AnalysisReport::new(specs.clone())
        },
        begun: false,
        outcome,
        broken: None,
        bar: bar.clone(),
    });
    thread::scope(|scope| {
        for _ in 1..threads {
            let thread = || work(&feed, &results, &specs, args, limits);
            // With as many threads as the system gives.
            if thread::Builder::new().spawn_scoped(scope, thread).is_err() {
                break;
            }
        }
        work(&feed, &results, &specs, args, limits);
    });
    bar.finish_and_clear();
    results.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}

/// How many threads could have something to do.
fn shares(segments: &[PathBuf]) -> usize {
    const MOST: u64 = 1024;
    let shares = segments.iter().map(|path| match path.metadata() {
        Ok(file) if file.is_file() => file.len() / SHARE as u64 + 1,
        // As long as a pipe goes on.
        _ => MOST,
    });
    usize::try_from(shares.fold(0, u64::saturating_add).clamp(1, MOST)).unwrap_or(1)
}

/// A report inside an analysed directory would be a new file next to the broker's,
/// and one over an input would destroy it.
pub(super) fn check_output(
    output: &Path,
    paths: &[PathBuf],
    segments: &[PathBuf],
) -> Result<(), String> {
    let refuse = |input: &Path| {
        Err(format!(
            "--output {}: lies inside what is read ({})",
            output.display(),
            input.display()
        ))
    };
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    // Where the directory does not exist, opening the file will say so.
    let Ok(parent) = parent.unwrap_or(Path::new(".")).canonicalize() else { return Ok(()) };
    // A link leads to where the report would really be written, there or not.
    let mut target = parent.join(output.file_name().unwrap_or_default());
    for _ in 0..40 {
        let Ok(link) = target.read_link() else { break };
        target = target.parent().unwrap_or(&parent).join(link);
    }
    let target = target.canonicalize().unwrap_or_else(|_| {
        let parent = target.parent().and_then(|parent| parent.canonicalize().ok());
        parent.map_or(target.clone(), |parent| parent.join(target.file_name().unwrap_or_default()))
    });
    for path in paths.iter().filter(|path| path.is_dir()) {
        if path.canonicalize().is_ok_and(|input| target.starts_with(input)) {
            return refuse(path);
        }
    }
    for path in segments {
        // What standard input comes from is an input as well.
        let file = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
        if same_file(file, &target) {
            return refuse(path);
        }
    }
    Ok(())
}

/// Whether two names are of one file, hard links included.
fn same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
        id(one).is_some_and(|file| id(other) == Some(file))
    }
    #[cfg(not(unix))]
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn progress(when: When, segments: &[PathBuf]) -> ProgressBar {
    let shown = match when {
        When::Auto => io::stderr().is_terminal(),
        When::Always => true,
        When::Never => false,
    };
    if !shown {
        return ProgressBar::hidden();
    }
    let total = segments.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len());
    let target = if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        // Asked for although nobody looks: plain lines, a few of them.
        ProgressDrawTarget::term_like_with_hz(Box::new(Plain), 1)
    };
    let bar = ProgressBar::with_draw_target(Some(total.sum()), target);
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar
}

/// Standard error that is no terminal.
#[derive(Debug)]
struct Plain;

impl indicatif::TermLike for Plain {
    fn width(&self) -> u16 {
        80
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, line: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{line}")
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() { Ok(()) } else { writeln!(io::stderr(), "{}", text.trim_end()) }
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that died has said why; the others go on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(
    feed: &Mutex<Feed<'_>>,
    results: &Mutex<Results<'_>>,
    specs: &[CodecSpec],
    args: &AnalyzeArgs,
    limits: Limits,
) {
    let mut measurer = Measurer::new(specs, limits, args.no_recompression);
    if let Some(large) = args.large_messages() {
        measurer = measurer.with_references(ByReference::new(large.threshold, &large.store));
    }
    let mut share = Share::default();
    while lock(feed).next(&mut share) {
        let result = measure(&mut measurer, &mut share, specs.len(), args.verbose);
        if !lock(results).hand_in(result) {
            return;
        }
    }
}

/// Batches of one file for one thread.
#[derive(Default)]
struct Share {
    number: u64,
    /// That of the file, as its directory is called.
    topic: String,
    bytes: Vec<u8>,
    items: Vec<Result<(BatchHeader, usize), Error>>,
    /// Set for the first share of a file.
    start: Option<PathBuf>,
    /// Set for the last.
    end: Option<FileEnd>,
}

#[derive(Debug)]
enum FileEnd {
    Read { tail: Tail, file_size: u64 },
    Unopened(io::Error),
    Broken { error: io::Error, position: u64 },
}

/// The files, read in order.
struct Feed<'a> {
    waiting: std::slice::Iter<'a, PathBuf>,
    open: Option<Segment>,
    /// Of the file that is open.
    topic: &'a str,
    limits: Limits,
    taken: u64,
    bar: ProgressBar,
}

impl<'a> Feed<'a> {
    /// Fills a share; false if there is nothing left.
    fn next(&mut self, share: &mut Share) -> bool {
        share.bytes.clear();
        share.items.clear();
        share.start = None;
        share.end = None;
        if self.open.is_none() {
            let Some(path) = self.waiting.next() else { return false };
            share.start = Some(path.clone());
            self.topic = source::partition_of(path).map_or(UNKNOWN_TOPIC, |(topic, _)| topic);
            match Segment::open(path, self.limits.batch, None) {
                Ok(segment) => self.open = Some(segment),
                Err(error) => share.end = Some(FileEnd::Unopened(error)),
            }
        }
        if let Some(segment) = &mut self.open {
            share.end = Self::fill(segment, share);
            self.bar.inc(share.bytes.len() as u64);
        }
        if share.end.is_some() {
            self.open = None;
        }
        self.topic.clone_into(&mut share.topic);
        share.number = self.taken;
        self.taken += 1;
        true
    }

    fn fill(segment: &mut Segment, share: &mut Share) -> Option<FileEnd> {
        while share.bytes.len() < SHARE {
            let at = share.bytes.len();
            match segment.next_batch(&mut share.bytes) {
                Ok(Item::Batch(header)) => share.items.push(Ok((header, at))),
                Ok(Item::Error(error)) => share.items.push(Err(error)),
                Ok(Item::End(tail)) => {
                    let file_size = segment.opened_len().unwrap_or(0).max(segment.position());
                    // A file that shrank has what was read of it.
                    let file_size = file_size.min(tail.position + tail.bytes);
                    return Some(FileEnd::Read { tail, file_size });
                }
                Err(error) => {
                    share.bytes.truncate(at);
                    return Some(FileEnd::Broken { error, position: segment.position() });
                }
            }
        }
        None
    }
}

/// What a share came to.
struct ShareResult {
    number: u64,
    start: Option<PathBuf>,
    end: Option<FileEnd>,
    figures: Figures,
    errors: Vec<Error>,
    /// What a compressor could not do.
    failures: Vec<String>,
    verbose: String,
}

fn measure(
    measurer: &mut Measurer,
    share: &mut Share,
    codecs: usize,
    verbose: bool,
) -> ShareResult {
    let mut figures = Figures::new(codecs);
    let (mut errors, mut failures) = (Vec::new(), Vec::new());
    let mut lines = String::new();
    measurer.set_topic(&share.topic);
    for item in &share.items {
        let (header, at) = match item {
            Ok(item) => item,
            Err(error) => {
                errors.push(*error);
                figures.batches.corrupt += u64::from(error.name() == "batch_length_limit");
                continue;
            }
        };
        let entry = &share.bytes[*at..*at + usize::try_from(header.size).unwrap_or(0)];
        match measurer.measure(*header, entry) {
            Ok(batch) => {
                if verbose {
                    verbose_line(&mut lines, header, batch.uncompressed);
                }
                figures.add(&batch);
            }
            Err(NotDone::Damaged(error)) => {
                figures.batches.corrupt += 1;
                errors.push(error);
            }
            Err(NotDone::Failed(error)) => {
                failures.push(format!("byte {}: {error}", header.position));
            }
        }
    }
    ShareResult {
        number: share.number,
        start: share.start.take(),
        end: share.end.take(),
        figures,
        errors,
        failures,
        verbose: lines,
    }
}

fn verbose_line(lines: &mut String, header: &BatchHeader, uncompressed: u64) {
    // Writing to a String cannot fail.
    let _ = match header.magic {
        Magic::V2 => write!(
            lines,
            "baseOffset: {} lastOffset: {} count: {} isTransactional: {} isControl: {} ",
            header.base_offset,
            header.last_offset(),
            header.record_count.unwrap_or(0),
            header.is_transactional(),
            header.is_control(),
        ),
        Magic::V0 | Magic::V1 => write!(lines, "offset: {} ", header.base_offset),
    };
    let _ = writeln!(
        lines,
        "position: {} size: {} magic: {} compresscodec: {} uncompressedSize: {uncompressed}",
        header.position,
        header.size,
        header.magic.number(),
        codec_name(header),
    );
}

/// Puts the results together, in the order of the shares.
struct Results<'a> {
    args: &'a AnalyzeArgs,
    specs: &'a [CodecSpec],
    several: bool,
    out: BufWriter<Box<dyn Write + Send>>,
    /// Results whose turn has not come.
    early: BTreeMap<u64, ShareResult>,
    next: u64,
    current: Option<SegmentReport>,
    report: AnalysisReport,
    /// A block has been written.
    begun: bool,
    outcome: &'a mut Outcome,
    broken: Option<io::Error>,
    bar: ProgressBar,
}

impl Results<'_> {
    /// Takes a result; false if the output is broken and nothing more is wanted.
    fn hand_in(&mut self, result: ShareResult) -> bool {
        self.early.insert(result.number, result);
        while let Some(result) = self.early.remove(&self.next) {
            self.next += 1;
            if self.broken.is_none()
                && let Err(error) = self.in_order(result)
            {
                self.broken = Some(error);
            }
        }
        self.broken.is_none()
    }

    fn in_order(&mut self, result: ShareResult) -> io::Result<()> {
        if let Some(path) = result.start {
            let path = path.display().to_string();
            let opened = !matches!(result.end, Some(FileEnd::Unopened(_)));
            if self.args.format == Format::Text && opened {
                let first = !std::mem::replace(&mut self.begun, true);
                report::text::begin(&path, first, &mut self.out)?;
            }
            self.current = Some(SegmentReport::new(Some(path), self.specs.len()));
        }
        let Some(segment) = &mut self.current else { return Ok(()) };
        let path = segment.path.clone().unwrap_or_default();
        segment.figures.merge(&result.figures);
        for error in &result.errors {
            self.bar.suspend(|| self.outcome.damage(&path, error));
            // Only JSON shows them all: of millions the others keep the first few.
            if self.args.format == Format::Json || segment.errors.len() < report::ERRORS_LISTED {
                segment.errors.push(Fault {
                    position: error.position(),
                    kind: error.name(),
                    detail: error.detail().to_string(),
                });
            } else {
                segment.more_errors += 1;
            }
        }
        for failure in &result.failures {
            self.bar.suspend(|| self.outcome.fail(format_args!("{path}: {failure}")));
        }
        if !result.verbose.is_empty() {
            if self.args.format == Format::Text {
                self.out.write_all(result.verbose.as_bytes())?;
            } else {
                // Nobody is left to be told if standard error is gone.
                let _ = self.bar.suspend(|| write!(io::stderr(), "{}", result.verbose));
            }
        }
        let Some(end) = result.end else { return Ok(()) };
        let Some(mut segment) = self.current.take() else { return Ok(()) };
        match end {
            FileEnd::Read { tail, file_size } => {
                segment.file_size = file_size;
                segment.valid_bytes = tail.position;
                segment.trailing = tail_name(tail.kind).map(|kind| Trailing {
                    kind,
                    position: tail.position,
                    bytes: tail.bytes,
                });
            }
            FileEnd::Unopened(error) => {
                self.bar.suspend(|| self.outcome.fail_file(Path::new(&path), &error));
                return Ok(());
            }
            FileEnd::Broken { error, position } => {
                self.bar.suspend(|| {
                    self.outcome.fail(format_args!(
                        "{path}: cannot be read behind byte {position}: {error}"
                    ));
                });
                segment.file_size = position;
                segment.valid_bytes = position;
            }
        }
        if self.args.format == Format::Text {
            let large = self.report.large_messages.as_ref();
            report::text::figures(&segment, self.specs, large, &mut self.out)?;
            self.out.flush()?;
            segment.errors = Vec::new();
        }
        self.report.push(segment);
        Ok(())
    }

    fn finish(mut self) -> Result<(), Stop> {
        if let Some(error) = self.broken {
            return Err(Stop::Output(error));
        }
        match self.args.format {
            Format::Text if self.several => {
                let large = self.report.large_messages.as_ref();
                report::text::total(&self.report.total, self.specs, large, &mut self.out)?;
            }
            Format::Text => {}
            Format::Json => report::json::write(&self.report, &mut self.out)?,
            Format::Csv => report::csv::write(&self.report, &mut self.out)?,
        }
        self.out.flush()?;
        Ok(())
    }
}
