//! `cursor inspect`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{COMPRESSED, Format, Halt, Info, Opened, ratio};
use crate::cursor_info::{
    Backlog, BatchedEntryDeletionIndexInfo, Envelope, Error, LedgerInfo, Magic, ManagedCursorInfo,
    ManagedLedgerInfo, MessageRange, Node, position,
};
use crate::dump::digest::hex;

#[derive(Serialize)]
struct Report<'a> {
    compressed: bool,
    magic: Option<String>,
    compression_type: Option<&'static str>,
    metadata_size: Option<usize>,
    payload_offset: Option<usize>,
    uncompressed_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<Cursor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backlog: Option<BacklogView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<Ledger<'a>>,
    sizes: Sizes,
    warnings: Vec<String>,
}

/// Names as in the protocol.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cursor<'a> {
    cursors_ledger_id: i64,
    mark_delete_ledger_id: Option<i64>,
    mark_delete_entry_id: Option<i64>,
    #[serde(rename = "individualDeletedMessages_count")]
    individual_deleted_messages_count: usize,
    #[serde(rename = "first_range")]
    first_range: Option<[i64; 4]>,
    #[serde(rename = "last_range")]
    last_range: Option<[i64; 4]>,
    properties: BTreeMap<&'a str, i64>,
    last_active: Option<i64>,
    #[serde(rename = "batchedEntryDeletionIndexInfo_count")]
    batched_entry_deletion_index_info_count: usize,
    #[serde(rename = "cursorProperties_count")]
    cursor_properties_count: usize,
    #[serde(flatten)]
    plain: Plain,
    #[serde(flatten)]
    full: Option<FullCursor<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FullCursor<'a> {
    individual_deleted_messages: &'a [MessageRange],
    batched_entry_deletion_index_info: &'a [BatchedEntryDeletionIndexInfo],
    cursor_properties: BTreeMap<&'a str, &'a str>,
}

/// The message as bytes.
#[derive(Serialize)]
struct Plain {
    serialized_size: usize,
    serialized_sha256: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ledger<'a> {
    #[serde(rename = "ledgerInfo_count")]
    ledger_info_count: usize,
    #[serde(rename = "first_ledger")]
    first_ledger: Option<i64>,
    #[serde(rename = "last_ledger")]
    last_ledger: Option<i64>,
    /// Sums; an open ledger has neither yet.
    entries: i64,
    size: i64,
    #[serde(rename = "offloaded_count")]
    offloaded_count: usize,
    terminated_position: Option<[i64; 2]>,
    properties: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    plain: Plain,
    #[serde(flatten)]
    full: Option<FullLedger<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FullLedger<'a> {
    ledger_info: &'a [LedgerInfo],
}

/// [`Backlog`], and what follows from it.
#[derive(Serialize)]
struct BacklogView {
    /// Otherwise the cursor's ledger has the position.
    position_is_here: bool,
    mark_delete: Option<[i64; 2]>,
    ranges: u64,
    ranges_in_one_ledger: u64,
    entries_in_them: u64,
    backward_ranges: u64,
    range_bytes: u64,
    bytes_per_range: f64,
}

#[derive(Serialize)]
struct Sizes {
    stored: u64,
    plain: u64,
    ratio: f64,
    limit: u64,
    fits: bool,
    plain_fits: bool,
    codecs: Vec<CodecSize>,
}

/// A whole node of that type.
#[derive(Serialize)]
struct CodecSize {
    compression_type: &'static str,
    size: u64,
    ratio: f64,
    fits: bool,
}

pub(super) fn write(
    file: &Path,
    bytes: &[u8],
    opened: &Opened<'_>,
    format: Format,
    full: bool,
    limit: u64,
    out: &mut impl Write,
) -> Result<(), Halt> {
    let report = Report::new(opened, sizes(bytes, &opened.message, limit)?, full);
    match format {
        Format::Json => serde_json::to_writer(&mut *out, &report)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        Format::Text => report.write_text(file, out),
    }
    .map_err(Halt::Output)
}

fn sizes(stored: &[u8], message: &[u8], limit: u64) -> Result<Sizes, Error> {
    let (stored, plain) = (stored.len() as u64, message.len() as u64);
    let codecs = COMPRESSED.into_iter().map(|compression| {
        let size = Envelope::emit(Magic::Info, compression, message)?.len() as u64;
        let (ratio, fits) = (ratio(plain, size), size <= limit);
        Ok(CodecSize { compression_type: compression.name(), size, ratio, fits })
    });
    Ok(Sizes {
        stored,
        plain,
        ratio: ratio(plain, stored),
        limit,
        fits: stored <= limit,
        plain_fits: plain <= limit,
        codecs: codecs.collect::<Result<_, Error>>()?,
    })
}

fn range([from, to]: [[i64; 2]; 2]) -> String {
    format!("({}:{}, {}:{}]", from[0], from[1], to[0], to[1])
}

const fn ends(range: &MessageRange) -> [i64; 4] {
    let [a, b] = position(&range.lower_endpoint);
    let [c, d] = position(&range.upper_endpoint);
    [a, b, c, d]
}

impl<'a> Cursor<'a> {
    fn new(cursor: &'a ManagedCursorInfo, plain: Plain, full: bool) -> Self {
        let ranges = &cursor.individual_deleted_messages;
        Self {
            cursors_ledger_id: cursor.cursors_ledger_id,
            mark_delete_ledger_id: cursor.mark_delete_ledger_id,
            mark_delete_entry_id: cursor.mark_delete_entry_id,
            individual_deleted_messages_count: ranges.len(),
            first_range: ranges.first().map(ends),
            last_range: ranges.last().map(ends),
            properties: cursor.properties.iter().map(|p| (p.name.as_str(), p.value)).collect(),
            last_active: cursor.last_active,
            batched_entry_deletion_index_info_count: cursor.batched_entry_deletion_index_info.len(),
            cursor_properties_count: cursor.cursor_properties.len(),
            plain,
            full: full.then(|| FullCursor {
                individual_deleted_messages: ranges,
                batched_entry_deletion_index_info: &cursor.batched_entry_deletion_index_info,
                cursor_properties: cursor
                    .cursor_properties
                    .iter()
                    .map(|p| (p.name.as_str(), p.value.as_str()))
                    .collect(),
            }),
        }
    }
}

impl<'a> Ledger<'a> {
    fn new(info: &'a ManagedLedgerInfo, plain: Plain, full: bool) -> Self {
        let ledgers = &info.ledger_info;
        let sum = |of: fn(&LedgerInfo) -> Option<i64>| {
            ledgers.iter().filter_map(of).fold(0, i64::saturating_add)
        };
        Self {
            ledger_info_count: ledgers.len(),
            first_ledger: ledgers.first().map(|ledger| ledger.ledger_id),
            last_ledger: ledgers.last().map(|ledger| ledger.ledger_id),
            entries: sum(|ledger| ledger.entries),
            size: sum(|ledger| ledger.size),
            offloaded_count: ledgers
                .iter()
                .filter(|ledger| {
                    ledger.offload_context.as_ref().is_some_and(|o| o.complete == Some(true))
                })
                .count(),
            terminated_position: info.terminated_position.as_ref().map(position),
            properties: info
                .properties
                .iter()
                .map(|p| (p.key.as_str(), p.value.as_str()))
                .collect(),
            plain,
            full: full.then_some(FullLedger { ledger_info: ledgers }),
        }
    }
}

impl BacklogView {
    fn new(cursor: &ManagedCursorInfo) -> Self {
        let facts = Backlog::of(cursor);
        Self {
            position_is_here: cursor.cursors_ledger_id == -1,
            mark_delete: facts.mark_delete,
            ranges: facts.ranges,
            ranges_in_one_ledger: facts.ranges_in_one_ledger,
            entries_in_them: facts.entries_in_them,
            backward_ranges: facts.backward_ranges,
            range_bytes: facts.range_bytes,
            bytes_per_range: facts.bytes_per_range(),
        }
    }

    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        match self.mark_delete {
            Some([ledger, entry]) => write!(out, "Mark-delete position: {ledger}:{entry}")?,
            None => write!(out, "Mark-delete position: not set")?,
        }
        let elsewhere = " (not up to date: the cursor's ledger has it)";
        writeln!(out, "{}", if self.position_is_here { "" } else { elsewhere })?;
        writeln!(
            out,
            "Individually deleted: {} ranges of {} bytes, {:.1} bytes each",
            self.ranges, self.range_bytes, self.bytes_per_range
        )?;
        writeln!(
            out,
            "Entries in them: {} in the {} ranges that lie in one ledger",
            self.entries_in_them, self.ranges_in_one_ledger
        )?;
        if self.backward_ranges > 0 {
            writeln!(out, "Ranges that end where they start or before: {}", self.backward_ranges)?;
        }
        Ok(())
    }
}

impl<'a> Report<'a> {
    fn new(opened: &'a Opened<'_>, sizes: Sizes, full: bool) -> Self {
        let message = &opened.message;
        let plain = Plain {
            serialized_size: message.len(),
            serialized_sha256: hex(&Sha256::digest(message)),
        };
        let envelope = match &opened.node {
            Node::Wrapped(envelope) => Some(envelope),
            Node::Plain(_) => None,
        };
        let (cursor, backlog, ledger) = match &opened.info {
            Info::Cursor(cursor) => {
                let view = Cursor::new(cursor, plain, full);
                (Some(view), Some(BacklogView::new(cursor)), None)
            }
            Info::Ledger(ledger) => (None, None, Some(Ledger::new(ledger, plain, full))),
        };
        Self {
            compressed: envelope.is_some(),
            magic: envelope.map(|e| format!("0x{:04x}", e.magic.number())),
            compression_type: envelope.map(|e| e.compression_type.name()),
            metadata_size: envelope.map(|e| e.metadata_size),
            payload_offset: envelope.map(Envelope::payload_offset),
            uncompressed_size: envelope.map(|e| e.uncompressed_size),
            cursor,
            backlog,
            ledger,
            sizes,
            warnings: opened.warnings(),
        }
    }

    fn write_text(&self, file: &Path, out: &mut impl Write) -> io::Result<()> {
        let what = if self.ledger.is_some() { "ManagedLedgerInfo" } else { "ManagedCursorInfo" };
        match (&self.magic, self.compression_type) {
            (Some(magic), Some(name)) => {
                writeln!(out, "{}: {what}, {name} (magic {magic})", file.display())?;
            }
            _ => writeln!(out, "{}: {what}, plain", file.display())?,
        }
        if let Some(cursor) = &self.cursor {
            cursor.write_text(out)?;
        }
        if let Some(backlog) = &self.backlog {
            backlog.write_text(out)?;
        }
        if let Some(ledger) = &self.ledger {
            ledger.write_text(out)?;
        }
        self.sizes.write_text(out)?;
        for warning in &self.warnings {
            writeln!(out, "Warning: {warning}")?;
        }
        Ok(())
    }
}

impl Cursor<'_> {
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "Cursor's ledger: {}", self.cursors_ledger_id)?;
        let [first, last] = [self.first_range, self.last_range].map(|ends| {
            ends.map_or_else(|| "none".to_owned(), |[a, b, c, d]| range([[a, b], [c, d]]))
        });
        writeln!(out, "First and last range: {first}, {last}")?;
        writeln!(
            out,
            "Partly acknowledged batches: {}; properties: {}, of the cursor: {}",
            self.batched_entry_deletion_index_info_count,
            self.properties.len(),
            self.cursor_properties_count
        )
    }
}

impl Ledger<'_> {
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "Ledgers: {}, {} offloaded; entries: {}, bytes: {}",
            self.ledger_info_count, self.offloaded_count, self.entries, self.size
        )?;
        if let (Some(first), Some(last)) = (self.first_ledger, self.last_ledger) {
            writeln!(out, "First and last ledger: {first}, {last}")?;
        }
        match self.terminated_position {
            Some([ledger, entry]) => writeln!(out, "Terminated at: {ledger}:{entry}"),
            None => Ok(()),
        }
    }
}

impl Sizes {
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let fit = |fits| if fits { "fits" } else { "too large" };
        writeln!(
            out,
            "Stored size: {} bytes of {} plain, ratio {:.2}; a node may have {}: {}",
            self.stored,
            self.plain,
            self.ratio,
            self.limit,
            fit(self.fits)
        )?;
        writeln!(out, "\n{:<16}  {:>12}  {:>8}  NODE", "COMPRESSION-TYPE", "SIZE", "RATIO")?;
        writeln!(
            out,
            "{:<16}  {:>12}  {:>8.2}  {}",
            "NONE",
            self.plain,
            1.0,
            fit(self.plain_fits)
        )?;
        for codec in &self.codecs {
            let CodecSize { compression_type, size, ratio, fits } = codec;
            writeln!(out, "{compression_type:<16}  {size:>12}  {ratio:>8.2}  {}", fit(*fits))?;
        }
        Ok(())
    }
}
