//! The files beside segments, each read through one buffer of a fixed size.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use logseg_core::BatchHeader;
use logseg_core::crc32c::Crc32c;

use super::{DumpArgs, Format};
use crate::cli::{Outcome, Stop};
use crate::cpu;
use crate::dump::side::{EntryLine, SideJson, SidePrinter, SideSummary, SideText};
use crate::side::{
    AbortedTxn, Checkpoint, Entries, Entry, Fault, Found, Index, LeaderEpoch, Mismatch,
    OffsetPosition, ProducerStateEntry, SideFile, SnapshotHeader, Tail, TimestampOffset, Wrong,
    named_offset,
};
use crate::source::{BatchHeaders, SideInput};

/// Bytes of a file that are in memory.
const BUFFER: usize = 16 << 10;

/// Lists a side file and tells what is wrong with it.
pub(super) fn dump(
    args: &DumpArgs,
    path: &Path,
    kind: SideFile,
    out: &mut dyn Write,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let base_offset = match (named_offset(path), kind) {
        (Some(offset), _) => offset,
        (None, SideFile::OffsetIndex | SideFile::TimeIndex) => {
            outcome.fail(format_args!(
                "{}: the name does not begin with the base offset that its entries are relative to",
                path.display()
            ));
            return Ok(());
        }
        (None, _) => 0, // these hold whole offsets
    };
    let input = match SideInput::open(path) {
        Ok(input) => input,
        Err(error) => {
            outcome.fail_file(path, &error);
            return Ok(());
        }
    };
    let name = path.display().to_string();
    let mut dump = Dump { args, path, name: &name, base_offset, input, out, outcome };
    let done = match kind {
        SideFile::OffsetIndex => dump.index::<OffsetPosition>(),
        SideFile::TimeIndex => dump.index::<TimestampOffset>(),
        SideFile::TransactionIndex => dump.txn_index(),
        SideFile::ProducerSnapshot => dump.snapshot(),
        SideFile::LeaderEpochCheckpoint => dump.leader_epochs(),
    };
    match done {
        Err(Halt::Output(error)) => return Err(Stop::Output(error)),
        Err(Halt::Input(error)) => dump.outcome.fail_file(path, &error),
        Ok(()) => {}
    }
    Ok(())
}

/// Why a file is not listed to its end.
enum Halt {
    Input(io::Error),
    Output(io::Error),
}

/// Whether an entry fits the segment beside it.
type Compared = Result<Option<Mismatch>, Wrong>;

/// A side file that is being listed.
struct Dump<'a> {
    args: &'a DumpArgs,
    path: &'a Path,
    name: &'a str,
    base_offset: i64,
    input: SideInput,
    out: &'a mut dyn Write,
    outcome: &'a mut Outcome,
}

impl<'a> Dump<'a> {
    /// `.index` or `.timeindex`.
    fn index<E: LogIndex + EntryLine + 'a>(&mut self) -> Result<(), Halt> {
        if self.args.index_sanity_check {
            return self.sanity_check::<E>();
        }
        let mut printer = self.begin::<E>(!self.args.verify_index_only)?;
        let mut log = self.log();
        let mut compare = |entry: &E| log.as_mut().map_or(Ok(None), |log| log.compare(entry));
        let tail = self.entries(0, &mut *printer, &mut compare)?;
        let log = log.map(|log| match log.failure {
            Some(error) => {
                self.outcome.fail_file(&log.path, &error);
                log.path
            }
            None => log.path,
        });
        self.end(&mut *printer, tail, log.as_deref())
    }

    /// What a broker does when it starts.
    fn sanity_check<E: Index + EntryLine + 'a>(&mut self) -> Result<(), Halt> {
        let mut printer = self.begin::<E>(true)?;
        let length = self.input.opened_len();
        let count = length / E::SIZE as u64;
        let first = self.entry_at(0)?;
        let last = self.entry_at(count.saturating_sub(1) * E::SIZE as u64)?;
        match E::sanity_check(first.as_ref(), last.as_ref(), self.base_offset, length) {
            Err(fault) => self.fault(&fault, &mut *printer)?,
            Ok(()) if count == 0 && E::TELLS_EMPTY => {}
            Ok(()) => printer.passed(self.out).map_err(Halt::Output)?,
        }
        let tail = Tail { entries: count, zeros: 0, partial: length % E::SIZE as u64 };
        self.end(&mut *printer, tail, None)
    }

    /// `.txnindex`
    fn txn_index(&mut self) -> Result<(), Halt> {
        let mut printer = self.begin::<AbortedTxn>(true)?;
        let tail = self.entries(0, &mut *printer, &mut |_| Ok(None))?;
        self.end(&mut *printer, tail, None)
    }

    /// `.snapshot`: nothing of it is listed unless all of it has passed its checksum.
    fn snapshot(&mut self) -> Result<(), Halt> {
        let mut printer = self.begin::<ProducerStateEntry>(true)?;
        let tail = match self.check_snapshot().map_err(Halt::Input)? {
            Ok(()) => {
                let start = SnapshotHeader::LEN as u64;
                self.input.seek_to(start).map_err(Halt::Input)?;
                self.entries(start, &mut *printer, &mut |_| Ok(None))?
            }
            Err(fault) => {
                self.fault(&fault, &mut *printer)?;
                Tail::default()
            }
        };
        self.end(&mut *printer, tail, None)
    }

    /// `leader-epoch-checkpoint`
    fn leader_epochs(&mut self) -> Result<(), Halt> {
        let mut printer = self.begin::<LeaderEpoch>(true)?;
        let mut checkpoint = Checkpoint::default();
        let mut buffer = [0; BUFFER];
        let tail = loop {
            let n = self.input.fill(&mut buffer).map_err(Halt::Input)?;
            let mut visit = |found| self.found(found, &mut *printer, &mut |_| Ok(None));
            if n == 0 {
                break checkpoint.end(&mut visit)?;
            }
            checkpoint.push(&buffer[..n], &mut visit)?;
        };
        self.end(&mut *printer, tail, None)
    }

    fn check_snapshot(&mut self) -> io::Result<Result<(), Fault>> {
        let mut bytes = [0; SnapshotHeader::LEN];
        let n = self.input.fill(&mut bytes)?;
        let header = match SnapshotHeader::parse(&bytes[..n], self.input.opened_len()) {
            Ok(header) => header,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut crc = Crc32c::new(cpu::detect());
        crc.update(&bytes[SnapshotHeader::CRC_START..]);
        let mut buffer = [0; BUFFER];
        loop {
            match self.input.fill(&mut buffer)? {
                0 => return Ok(header.check_crc(crc.finish())),
                n => crc.update(&buffer[..n]),
            }
        }
    }

    /// Lists the entries from `start`, where the input is, to the end of the file.
    fn entries<E: Entry + EntryLine>(
        &mut self,
        start: u64,
        printer: &mut dyn SidePrinter<E>,
        compare: &mut dyn FnMut(&E) -> Compared,
    ) -> Result<Tail, Halt> {
        let mut entries = Entries::<E>::at(start, self.base_offset);
        let mut buffer = [0; BUFFER];
        let whole = BUFFER / E::SIZE * E::SIZE;
        loop {
            let n = self.input.fill(&mut buffer[..whole]).map_err(Halt::Input)?;
            let chunks = buffer[..n].chunks_exact(E::SIZE);
            let partial = chunks.remainder().len();
            let mut visit = |found| self.found(found, printer, compare);
            for chunk in chunks {
                entries.next(chunk, &mut visit)?;
            }
            if n < whole {
                return entries.end(partial, &mut visit);
            }
        }
    }

    fn found<E: EntryLine>(
        &mut self,
        found: Found<E>,
        printer: &mut dyn SidePrinter<E>,
        compare: &mut dyn FnMut(&E) -> Compared,
    ) -> Result<(), Halt> {
        let (entry, position, wrong) = match found {
            Found::Entry(entry, position, wrong) => (entry, position, wrong),
            Found::Fault(fault) => return self.fault(&fault, printer),
        };
        let compared = wrong.map_or_else(|| compare(&entry), Err);
        let mismatch = compared.as_ref().ok().and_then(Option::as_ref);
        printer.entry(&entry, mismatch, self.out).map_err(Halt::Output)?;
        compared.map_or_else(|wrong| self.fault(&wrong.at(position), printer), |_| Ok(()))
    }

    fn fault<E>(&mut self, fault: &Fault, printer: &mut dyn SidePrinter<E>) -> Result<(), Halt> {
        self.outcome.damage(self.name, fault);
        printer.fault(fault, self.out).map_err(Halt::Output)
    }

    /// The printer of the format that is asked for, begun.
    fn begin<E: EntryLine + 'a>(
        &mut self,
        listed: bool,
    ) -> Result<Box<dyn SidePrinter<E> + 'a>, Halt> {
        let mut printer: Box<dyn SidePrinter<E>> = match self.args.format {
            Format::Text => Box::new(SideText { path: self.path, listed, heading: "" }),
            Format::Json => Box::new(SideJson { path: self.name, listed }),
        };
        printer.begin(self.out).map_err(Halt::Output)?;
        Ok(printer)
    }

    fn end<E>(
        &mut self,
        printer: &mut dyn SidePrinter<E>,
        tail: Tail,
        log: Option<&Path>,
    ) -> Result<(), Halt> {
        let summary = SideSummary { file_size: self.input.opened_len(), tail, log };
        printer.end(&summary, self.out).map_err(Halt::Output)
    }

    /// The segment beside the file, if it is there.
    fn log(&mut self) -> Option<Log> {
        let stem = self.path.file_name()?.to_str()?.split('.').next()?;
        let path = self.path.with_file_name(format!("{stem}.log"));
        match BatchHeaders::open(&path) {
            Ok(headers) => Some(Log { path, headers: headers?, position: 0, failure: None }),
            Err(error) => {
                self.outcome.fail_file(&path, &error);
                None
            }
        }
    }

    fn entry_at<E: Entry>(&mut self, position: u64) -> Result<Option<E>, Halt> {
        let mut bytes = [0; 64];
        self.input.seek_to(position).map_err(Halt::Input)?;
        let n = self.input.fill(&mut bytes[..E::SIZE]).map_err(Halt::Input)?;
        Ok(E::parse(&bytes[..n], self.base_offset).ok())
    }
}

/// A segment that the entries of an index are compared with.
struct Log {
    path: PathBuf,
    headers: BatchHeaders,
    /// Batches before it end with offsets that have been passed.
    position: u64,
    /// Why it cannot be read; nothing is compared from then on.
    failure: Option<io::Error>,
}

impl Log {
    fn compare<E: LogIndex>(&mut self, entry: &E) -> Compared {
        if self.failure.is_some() {
            return Ok(None);
        }
        match entry.batch(self) {
            Ok(batch) => entry.compare(batch.as_ref()),
            Err(error) => {
                self.failure = Some(error);
                Ok(None)
            }
        }
    }

    /// The first batch that ends with an offset or a later one. Offsets of a time index do
    /// not go back, so the segment is walked through once; whatever is wrong with an
    /// `.index` does not matter.
    fn batch_of(&mut self, offset: i64) -> io::Result<Option<BatchHeader>> {
        loop {
            match self.headers.at(self.position)? {
                Some(batch) if batch.last_offset() < offset => self.position += batch.size,
                found => return Ok(found),
            }
        }
    }
}

/// An index of a segment's batches.
trait LogIndex: Index {
    /// The batch that an entry is about.
    fn batch(&self, log: &mut Log) -> io::Result<Option<BatchHeader>>;
    fn compare(&self, batch: Option<&BatchHeader>) -> Compared;
}

impl LogIndex for OffsetPosition {
    fn batch(&self, log: &mut Log) -> io::Result<Option<BatchHeader>> {
        log.headers.at(self.position.cast_unsigned().into())
    }

    fn compare(&self, batch: Option<&BatchHeader>) -> Compared {
        Self::compare(self, batch)
    }
}

impl LogIndex for TimestampOffset {
    fn batch(&self, log: &mut Log) -> io::Result<Option<BatchHeader>> {
        log.batch_of(self.offset)
    }

    fn compare(&self, batch: Option<&BatchHeader>) -> Compared {
        Self::compare(self, batch)
    }
}
