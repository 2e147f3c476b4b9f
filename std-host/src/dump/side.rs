//! Entries of side files: the lines of `kafka-dump-log`, and JSON.
//!
//! JSON has a line for each entry, `{"type":"offset_index","offset","position"}`,
//! `{"type":"time_index","timestamp","offset"}`, `{"type":"aborted_txn","version",…}`,
//! `{"type":"producer","producer_id",…,"batch":{…} or null}` or
//! `{"type":"leader_epoch","epoch","start_offset"}`, with `warnings` if the segment has
//! something else; an `error` line of kind `side_file` behind the entry that is
//! wrong, or in its place; and `{"type":"side_file","path","entries","file_size",
//! "entry_count","trailing_bytes","trailing_kind","log"}` last. `entries` is the type of
//! the entries, `trailing_kind` null, `zero_padding` or `partial_entry`, and `log` the
//! segment that they were compared with, or null.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::json;
use crate::side::{
    AbortedTxn, Fault, LeaderEpoch, Mismatch, OffsetPosition, ProducerStateEntry, Tail,
    TimestampOffset,
};

/// An entry that has a line.
pub(crate) trait EntryLine: Serialize {
    /// `type` in JSON.
    const TYPE: &'static str;
    /// Whether the text says of a file that it is empty: Kafka's does for `.index` only.
    const TELLS_EMPTY: bool = false;
    /// The line of `kafka-dump-log`.
    fn text(&self) -> String;
}

impl EntryLine for OffsetPosition {
    const TYPE: &'static str = "offset_index";
    const TELLS_EMPTY: bool = true;

    fn text(&self) -> String {
        format!("offset: {} position: {}", self.offset, self.position)
    }
}

impl EntryLine for TimestampOffset {
    const TYPE: &'static str = "time_index";

    fn text(&self) -> String {
        format!("timestamp: {} offset: {}", self.timestamp, self.offset)
    }
}

impl EntryLine for AbortedTxn {
    const TYPE: &'static str = "aborted_txn";

    fn text(&self) -> String {
        format!(
            "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
            self.version,
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset
        )
    }
}

impl EntryLine for ProducerStateEntry {
    const TYPE: &'static str = "producer";

    fn text(&self) -> String {
        let txn = match self.current_txn_first_offset {
            Some(offset) => format!("OptionalLong[{offset}]"),
            None => "OptionalLong.empty".to_owned(),
        };
        let mut line = format!(
            "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {txn} \
             lastTimestamp: {}",
            self.producer_id, self.producer_epoch, self.coordinator_epoch, self.last_timestamp
        );
        if let Some(batch) = self.batch {
            line += &format!(
                " firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
                batch.first_sequence,
                batch.last_sequence,
                batch.last_offset,
                batch.offset_delta,
                self.last_timestamp
            );
        }
        line
    }
}

/// Kafka's tool does not know this file; its words are those of the others.
impl EntryLine for LeaderEpoch {
    const TYPE: &'static str = "leader_epoch";

    fn text(&self) -> String {
        format!("epoch: {} startOffset: {}", self.epoch, self.start_offset)
    }
}

/// What is known at the end of a side file.
#[derive(Debug, Default)]
pub(crate) struct SideSummary<'a> {
    pub(crate) file_size: u64,
    pub(crate) tail: Tail,
    /// The segment that the entries were compared with.
    pub(crate) log: Option<&'a Path>,
}

/// A format of the dump of a side file.
pub(crate) trait SidePrinter<E> {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;
    fn entry(
        &mut self,
        entry: &E,
        mismatch: Option<&Mismatch>,
        out: &mut dyn Write,
    ) -> io::Result<()>;
    fn fault(&mut self, fault: &Fault, out: &mut dyn Write) -> io::Result<()>;
    /// Kafka's own check of an index has found nothing.
    fn passed(&mut self, out: &mut dyn Write) -> io::Result<()>;
    fn end(&mut self, summary: &SideSummary<'_>, out: &mut dyn Write) -> io::Result<()>;
}

/// The lines of `kafka-dump-log`.
pub(crate) struct SideText<'a> {
    pub(crate) path: &'a Path,
    /// Entries, not only what is wrong with them.
    pub(crate) listed: bool,
    /// Of the mismatch before.
    pub(crate) heading: &'static str,
}

impl SideText<'_> {
    /// Kafka's tool tells mismatches at its very end, which would want memory for them.
    fn mismatch(&mut self, mismatch: &Mismatch) {
        let mut lines = String::new();
        if std::mem::replace(&mut self.heading, mismatch.heading) != mismatch.heading {
            lines += mismatch.heading;
            if mismatch.heading.ends_with(':') {
                lines += &self.path.display().to_string();
            }
            lines.push('\n');
        }
        lines += &mismatch.line;
        lines.push('\n');
        // Nobody is left to be told if standard error is gone.
        let _ = io::stderr().write_all(lines.as_bytes());
    }
}

impl<E: EntryLine> SidePrinter<E> for SideText<'_> {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Dumping {}", self.path.display())
    }

    fn entry(
        &mut self,
        entry: &E,
        mismatch: Option<&Mismatch>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(mismatch) = mismatch {
            self.mismatch(mismatch);
        }
        if self.listed { writeln!(out, "{}", entry.text()) } else { Ok(()) }
    }

    fn fault(&mut self, _: &Fault, _: &mut dyn Write) -> io::Result<()> {
        Ok(()) // standard error has it
    }

    fn passed(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} passed sanity check.", self.path.display())
    }

    fn end(&mut self, summary: &SideSummary<'_>, out: &mut dyn Write) -> io::Result<()> {
        if E::TELLS_EMPTY && summary.tail.entries == 0 {
            writeln!(out, "{} is empty.", self.path.display())?;
        }
        match summary.tail.zeros {
            0 => Ok(()),
            zeros => writeln!(
                out,
                "Found {zeros} preallocated bytes at the end of {}",
                self.path.file_name().unwrap_or(self.path.as_os_str()).display()
            ),
        }
    }
}

/// One JSON object a line.
pub(crate) struct SideJson<'a> {
    pub(crate) path: &'a str,
    /// Entries, not only what is wrong with them.
    pub(crate) listed: bool,
}

#[derive(Serialize)]
struct Line<'a, E> {
    r#type: &'static str,
    #[serde(flatten)]
    entry: &'a E,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<[&'a str; 1]>,
}

#[derive(Serialize)]
struct Last<'a> {
    r#type: &'static str,
    path: &'a str,
    entries: &'static str,
    file_size: u64,
    entry_count: u64,
    trailing_bytes: u64,
    trailing_kind: Option<&'static str>,
    log: Option<String>,
}

impl<E: EntryLine> SidePrinter<E> for SideJson<'_> {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &E,
        mismatch: Option<&Mismatch>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if !self.listed && mismatch.is_none() {
            return Ok(());
        }
        let warnings = mismatch.map(|mismatch| [mismatch.line.trim_start()]);
        json::line(out, &Line { r#type: E::TYPE, entry, warnings })
    }

    fn fault(&mut self, fault: &Fault, out: &mut dyn Write) -> io::Result<()> {
        let detail = fault.wrong.to_string();
        json::fault_line(out, json::Fault { kind: "side_file", detail, position: fault.position })
    }

    fn passed(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(()) // no error is the answer
    }

    fn end(&mut self, summary: &SideSummary<'_>, out: &mut dyn Write) -> io::Result<()> {
        let Tail { entries, zeros, partial } = summary.tail;
        let last = Last {
            r#type: "side_file",
            path: self.path,
            entries: E::TYPE,
            file_size: summary.file_size,
            entry_count: entries,
            trailing_bytes: zeros + partial,
            trailing_kind: match (zeros, partial) {
                (0, 0) => None,
                (_, 0) => Some("zero_padding"),
                _ => Some("partial_entry"),
            },
            log: summary.log.map(|log| log.display().to_string()),
        };
        json::line(out, &last)
    }
}
