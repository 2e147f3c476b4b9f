//! `std-host verify`: everything that a dump checks, without the listing.
//!
//! Batches are read as they stream by, so memory does not depend on their size. After
//! damage the next entry is looked for, and what lies between is told as lost.

use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use logseg_core::{
    BatchEnd, BatchHeader, Error, ErrorKind, Event, Limits, Tail, TailKind, Unpacker,
};
use serde::Serialize;

use super::{LimitArgs, Outcome, Stop, find_segments, is_side_file, refuse};
use crate::codecs::HostCodecs;
use crate::dump::BatchReader;
use crate::dump::json::{self, Fault, tail_name};
use crate::source::Segment;

/// Window of the decoders: history of any codec that producers use, many times over.
const WINDOW: usize = 4 << 20;

/// Checks segments: batches, records and offsets, and what damage has cost
///
/// A line per problem on standard error, a summary per file on standard output. After
/// damage it finds the next batch and goes on, and names the bytes and the offsets that
/// are lost.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Segment files, partition directories or log directories; - is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A summary per file
    Text,
    /// One JSON object a line
    Json,
}

pub(super) fn run(args: &VerifyArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    refuse(&args.paths, is_side_file)?;
    let segments = find_segments(&args.paths, outcome);
    let limits = args.limits.limits();
    let mut codecs = HostCodecs::default();
    let mut window = vec![0; WINDOW];
    let mut out = BufWriter::new(io::stdout().lock());
    for path in &segments {
        let name = path.display().to_string();
        let mut segment = match Segment::open(path, limits.batch, None) {
            Ok(segment) => segment,
            Err(error) => {
                outcome.fail_file(path, &error);
                continue;
            }
        };
        let mut check = Check::new(&name, args.format, &mut out, outcome);
        let tail = check.read(&mut segment, &mut codecs, &mut window, limits)?;
        check.finish(path, tail, &segment)?;
    }
    out.flush()?;
    Ok(())
}

/// Bytes that belong to no good batch, and the offsets that may have been in them.
#[derive(Debug, Serialize)]
struct Lost {
    r#type: &'static str,
    from: u64,
    to: u64,
    /// Behind the last good batch before; null if there is none.
    first_offset: Option<i64>,
    /// Before the first good batch behind; null if there is none.
    last_offset: Option<i64>,
}

#[derive(Serialize)]
struct Summary<'a> {
    r#type: &'static str,
    path: &'a str,
    file_size: u64,
    valid_bytes: u64,
    trailing_bytes: u64,
    trailing_kind: Option<&'static str>,
    batch_count: u64,
    record_count: u64,
    corrupt_batches: u64,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    lost_bytes: u64,
    /// False if the file could not be read to its end.
    complete: bool,
}

/// What is known of a file so far.
struct Check<'a, W> {
    path: &'a str,
    format: Format,
    out: &'a mut W,
    outcome: &'a mut Outcome,
    batches: u64,
    records: u64,
    corrupt: u64,
    problems: u64,
    offsets: Option<(i64, i64)>,
    /// A range that is lost, and whose end is not known.
    lost: Option<Range<u64>>,
    lost_bytes: u64,
    searches: u32,
    /// For batches that want a larger window.
    whole: Option<BatchReader>,
}

/// Why a file is not read to its end.
enum Halt {
    Input(io::Error),
    Output(io::Error),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The bytes before the next entry, if there is one.
fn find(segment: &mut Segment) -> Result<Option<Range<u64>>, Halt> {
    loop {
        if let found @ Some(_) = segment.reader().resync() {
            return Ok(found);
        }
        if !segment.feed().map_err(Halt::Input)? {
            // What is at the very end may have waited for more.
            return Ok(segment.reader().resync());
        }
    }
}

impl<'a, W: Write> Check<'a, W> {
    fn new(path: &'a str, format: Format, out: &'a mut W, outcome: &'a mut Outcome) -> Self {
        Self {
            path,
            format,
            out,
            outcome,
            batches: 0,
            records: 0,
            corrupt: 0,
            problems: 0,
            offsets: None,
            lost: None,
            lost_bytes: 0,
            searches: 0,
            whole: None,
        }
    }

    /// Reads a file to its end; `None` if it cannot be read to there.
    fn read(
        &mut self,
        segment: &mut Segment,
        codecs: &mut HostCodecs,
        window: &mut [u8],
        limits: Limits,
    ) -> io::Result<Option<Tail>> {
        match self.walk(segment, codecs, window, limits) {
            Ok(tail) => Ok(Some(tail)),
            Err(Halt::Output(error)) => Err(error),
            Err(Halt::Input(error)) => {
                let (path, at) = (self.path, segment.position());
                self.outcome.fail(format_args!("{path}: cannot be read behind byte {at}: {error}"));
                Ok(None)
            }
        }
    }

    fn walk(
        &mut self,
        segment: &mut Segment,
        codecs: &mut HostCodecs,
        window: &mut [u8],
        limits: Limits,
    ) -> Result<Tail, Halt> {
        let mut unpacker = Unpacker::new(codecs, window).with_limits(limits);
        let mut header = None;
        loop {
            match unpacker.poll(segment.reader()) {
                Ok(Event::NeedInput) => {
                    segment.feed().map_err(Halt::Input)?;
                }
                Ok(Event::Batch(next)) => {
                    if segment.reader().is_whole() || next.is_plausible() {
                        header = Some(next);
                        continue;
                    }
                    // Its end is not in sight, and it may be no entry at all.
                    unpacker.abandon();
                    segment.reader().distrust();
                    let size = i32::try_from(next.size - 12).unwrap_or(i32::MAX);
                    let kind = ErrorKind::NotASegment { size };
                    self.error(&Error::new(kind, next.position + 8))?;
                    self.resync(segment)?;
                }
                Ok(Event::Record(_) | Event::Piece(_)) => {}
                Ok(Event::BatchEnd(end)) => {
                    if let Some(header) = header.take() {
                        self.batch(segment, &header, &end, limits)?;
                    }
                }
                Ok(Event::End(tail)) => {
                    unpacker.abandon();
                    if !self.search_tail(segment, &tail)? {
                        return Ok(tail);
                    }
                }
                Err(error) => {
                    self.error(&error)?;
                    self.resync(segment)?;
                }
            }
        }
    }

    /// Looks for the next entry, and takes what lies before it as lost.
    fn resync(&mut self, segment: &mut Segment) -> Result<(), Halt> {
        if let Some(range) = find(segment)? {
            self.lose(range);
        }
        Ok(())
    }

    /// A batch that the input ends in may be whole but for its size field: then others
    /// follow inside of what it declares. A pipe cannot be read again to find them.
    fn search_tail(&mut self, segment: &mut Segment, tail: &Tail) -> Result<bool, Halt> {
        let cut = tail.kind == TailKind::PartialBatch && self.may_search();
        if !cut || !segment.rewind_to(tail.position).map_err(Halt::Input)? {
            return Ok(false);
        }
        segment.reader().distrust();
        let Some(range) = find(segment)? else { return Ok(false) };
        let detail = "batch length: it reaches beyond the end, but batches follow before that";
        self.problem("batch_length", tail.position + 8, &detail)?;
        self.corrupt += 1;
        self.lose(range);
        Ok(true)
    }

    /// Going back costs reading again: it is worth it now and then, but not for ever.
    fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= 64
    }

    /// Takes the verdict on a batch.
    fn batch(
        &mut self,
        segment: &mut Segment,
        header: &BatchHeader,
        end: &BatchEnd,
        limits: Limits,
    ) -> Result<(), Halt> {
        let error = match end.verdict {
            Ok(()) => return Ok(self.good(header, end)?),
            Err(error) => error,
        };
        match error.kind() {
            // The tail that follows tells of a batch that is cut, and it is no damage.
            ErrorKind::PartialBatch { .. } => return Ok(()),
            // So does it of what is lost where there was none.
            ErrorKind::NotASegment { .. } => return Ok(self.error(&error)?),
            ErrorKind::BufferTooSmall { .. } => {
                return self.larger_window(segment, header, &error, limits);
            }
            _ => {}
        }
        self.error(&error)?;
        self.corrupt += 1;
        let outer = error.position() == header.crc_position();
        if outer && matches!(error.kind(), ErrorKind::CrcMismatch { .. }) {
            while !segment.reader().knows_what_follows() && segment.feed().map_err(Halt::Input)? {}
            // No entry behind it: its size may be what is wrong.
            if !segment.reader().is_followed_up()
                && (segment.reader().is_whole()
                    || (self.may_search()
                        && segment.rewind_to(header.position).map_err(Halt::Input)?))
            {
                segment.reader().distrust();
                return self.resync(segment);
            }
        }
        self.lose(header.position..header.position + header.size);
        Ok(())
    }

    /// A batch whose copies reach back further than the window: nothing is wrong with it.
    fn larger_window(
        &mut self,
        segment: &mut Segment,
        header: &BatchHeader,
        error: &Error,
        limits: Limits,
    ) -> Result<(), Halt> {
        let Some(entry) = segment.reader().entry().map(<[u8]>::to_vec) else {
            let (path, size) = (self.path, header.size);
            self.outcome.fail(format_args!(
                "{path}: {error}: a batch of {size} bytes cannot be checked in flat memory"
            ));
            return Ok(());
        };
        let reader = self.whole.get_or_insert_with(|| BatchReader::new(limits));
        let end = reader.read(*header, &entry).end;
        match end.verdict {
            Ok(()) => Ok(self.good(header, &end)?),
            Err(error) => {
                self.corrupt += 1;
                self.lose(header.position..header.position + header.size);
                Ok(self.error(&error)?)
            }
        }
    }

    fn error(&mut self, error: &Error) -> io::Result<()> {
        self.problem(error.name(), error.position(), &error.detail())
    }

    fn good(&mut self, header: &BatchHeader, end: &BatchEnd) -> io::Result<()> {
        let (mut first, mut last) = (header.base_offset, header.last_offset());
        if let (None, Some(offsets)) = (header.record_count, end.offsets) {
            (first, last) = offsets;
        }
        self.close_lost(Some(first))?;
        let before = self.offsets.map_or(first.saturating_sub(1), |(_, before)| before);
        if first <= before || last < first {
            let detail = format!("offset: {first} to {last} follows {before}");
            self.problem("malformed_record_offset_order", header.position, &detail)?;
        }
        self.batches += 1;
        self.records += end.records;
        self.offsets = Some((self.offsets.map_or(first, |(first, _)| first), last));
        Ok(())
    }

    fn problem(
        &mut self,
        kind: &'static str,
        position: u64,
        detail: &dyn std::fmt::Display,
    ) -> io::Result<()> {
        self.problems += 1;
        self.outcome.damage(self.path, &format_args!("byte {position}: {detail}"));
        if self.format == Format::Json {
            let detail = detail.to_string();
            json::fault_line(&mut *self.out, Fault { kind, detail, position })?;
        }
        Ok(())
    }

    /// These bytes belong to no good batch.
    fn lose(&mut self, range: Range<u64>) {
        self.lost = Some(match self.lost.take() {
            Some(before) => before.start.min(range.start)..before.end.max(range.end),
            None => range,
        });
    }

    /// A good batch, or the end, follows what is lost.
    fn close_lost(&mut self, next: Option<i64>) -> io::Result<()> {
        let Some(range) = self.lost.take() else { return Ok(()) };
        self.lost_bytes += range.end - range.start;
        let lost = Lost {
            r#type: "lost",
            from: range.start,
            to: range.end,
            first_offset: self.offsets.map(|(_, last)| last.saturating_add(1)),
            last_offset: next.map(|next| next.saturating_sub(1)),
        };
        if self.format == Format::Json {
            return json::line(&mut *self.out, &lost);
        }
        write!(
            self.out,
            "{}: lost bytes {} to {} ({}), ",
            self.path,
            lost.from,
            lost.to,
            lost.to - lost.from
        )?;
        match (lost.first_offset, lost.last_offset) {
            (Some(first), Some(last)) if last < first => writeln!(self.out, "no offset"),
            (Some(first), Some(last)) => writeln!(self.out, "offsets {first} to {last} at most"),
            (Some(first), None) => writeln!(self.out, "offsets from {first} on"),
            (None, Some(last)) => writeln!(self.out, "offsets up to {last}"),
            (None, None) => writeln!(self.out, "offsets unknown"),
        }
    }

    fn finish(mut self, path: &Path, tail: Option<Tail>, segment: &Segment) -> io::Result<()> {
        if let Some(tail) = tail.filter(|tail| tail.kind == TailKind::Garbage) {
            self.lose(tail.position..tail.position + tail.bytes);
        }
        self.close_lost(None)?;
        let complete = tail.is_some();
        let tail = tail.filter(|tail| tail.bytes > 0);
        let summary = Summary {
            r#type: "segment",
            path: self.path,
            file_size: segment.position(),
            valid_bytes: tail.map_or(segment.position(), |tail| tail.position),
            trailing_bytes: tail.map_or(0, |tail| tail.bytes),
            trailing_kind: tail.and_then(|tail| tail_name(tail.kind)),
            batch_count: self.batches,
            record_count: self.records,
            corrupt_batches: self.corrupt,
            first_offset: self.offsets.map(|(first, _)| first),
            last_offset: self.offsets.map(|(_, last)| last),
            lost_bytes: self.lost_bytes,
            complete,
        };
        if self.format == Format::Json {
            return json::line(&mut *self.out, &summary);
        }
        write!(
            self.out,
            "{}: {} good {}, {} records",
            path.display(),
            self.batches,
            if self.batches == 1 { "batch" } else { "batches" },
            self.records
        )?;
        if let Some((first, last)) = self.offsets {
            write!(self.out, ", offsets {first} to {last}")?;
        }
        if let Some(tail) = tail {
            let what = match tail.kind {
                TailKind::ZeroPadding => "bytes of zero padding",
                TailKind::PartialBatch => "bytes of an incomplete batch",
                TailKind::Garbage | TailKind::Clean => "bytes of garbage",
            };
            write!(self.out, ", then {} {what}", tail.bytes)?;
        }
        if !complete {
            write!(self.out, ", not read beyond byte {}", segment.position())?;
        }
        match self.problems {
            0 if !complete => writeln!(self.out),
            0 => writeln!(self.out, ": ok"),
            problems => writeln!(
                self.out,
                ": {problems} problem{}, {} bytes lost",
                if problems == 1 { "" } else { "s" },
                self.lost_bytes
            ),
        }
    }
}
