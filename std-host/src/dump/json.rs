//! One JSON object a line: batches, records, and the segment last.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use logseg_core::{Error, Magic, TailKind};
use serde::Serialize;

use super::digest::hex;
use super::{BatchLine, Listed, RecordLine, codec_name, java, offsets, snappy_framing};
use crate::cli::dump::{Printer, Summary};

pub(crate) struct Json<'a> {
    path: &'a str,
    listed: Listed,
}

#[derive(Serialize)]
struct Batch<'a> {
    r#type: &'static str,
    position: u64,
    size: u64,
    magic: u8,
    base_offset: i64,
    last_offset: i64,
    codec: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    snappy_framing: Option<Option<&'static str>>,
    crc: u32,
    crc_valid: bool,
    timestamp_type: Option<&'static str>,
    base_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    producer_id: Option<i64>,
    producer_epoch: Option<i16>,
    base_sequence: Option<i32>,
    partition_leader_epoch: Option<i32>,
    is_transactional: Option<bool>,
    is_control: Option<bool>,
    delete_horizon_ms: Option<i64>,
    header_record_count: Option<i32>,
    uncompressed_records_size: Option<u64>,
    record_count: Option<u64>,
    records_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Option<Control>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Control {
    r#type: &'static str,
    type_id: i16,
    coordinator_epoch: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    type_ids: Option<Vec<i16>>,
}

/// What is wrong, in a batch line or on a line of its own.
#[derive(Serialize)]
pub(crate) struct Fault {
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
    pub(crate) position: u64,
}

#[derive(Serialize)]
struct FaultLine {
    r#type: &'static str,
    #[serde(flatten)]
    fault: Fault,
}

/// A line for a fault that has no batch line.
pub(crate) fn fault_line(out: impl Write, fault: Fault) -> io::Result<()> {
    line(out, &FaultLine { r#type: "error", fault })
}

#[derive(Serialize)]
struct Record {
    r#type: &'static str,
    offset: i64,
    timestamp: i64,
    key_len: i64,
    value_len: i64,
    headers: Vec<(String, Option<String>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Option<String>>,
}

#[derive(Serialize)]
struct Segment<'a> {
    r#type: &'static str,
    path: &'a str,
    file_size: u64,
    valid_bytes: u64,
    trailing_bytes: u64,
    trailing_kind: Option<&'static str>,
    batch_count: u64,
    record_count: u64,
}

fn fault(error: &Error) -> Fault {
    Fault { kind: error.name(), detail: error.detail().to_string(), position: error.position() }
}

fn len(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX))
}

impl<'a> Json<'a> {
    pub(crate) const fn new(path: &'a str, listed: Listed) -> Self {
        Self { path, listed }
    }
}

/// An object on a line of its own.
pub(crate) fn line(mut out: impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")
}

impl Printer for Json<'_> {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &BatchLine, entry: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let header = &batch.header;
        let good = batch.end.verdict.is_ok();
        let v2 = header.magic == Magic::V2;
        let (base_offset, last_offset) = offsets(batch);
        let codec = codec_name(header);
        let line = Batch {
            r#type: "batch",
            position: header.position,
            size: header.size,
            magic: header.magic.number(),
            base_offset,
            last_offset,
            snappy_framing: (codec == "snappy").then(|| snappy_framing(header, entry)),
            codec,
            crc: header.crc,
            crc_valid: batch.crc_valid,
            timestamp_type: header.timestamp_type().map(|kind| kind.name()),
            base_timestamp: v2.then_some(header.base_timestamp),
            max_timestamp: (header.magic != Magic::V0).then_some(header.max_timestamp),
            producer_id: v2.then_some(header.producer_id),
            producer_epoch: v2.then_some(header.producer_epoch),
            base_sequence: v2.then_some(header.base_sequence),
            partition_leader_epoch: v2.then_some(header.partition_leader_epoch),
            is_transactional: v2.then_some(header.is_transactional()),
            is_control: v2.then_some(header.is_control()),
            delete_horizon_ms: header.delete_horizon_ms(),
            header_record_count: header.record_count,
            uncompressed_records_size: good.then_some(batch.end.records_bytes),
            record_count: good.then_some(batch.end.records),
            records_digest: good.then_some(&batch.digest),
            control: header.is_control().then(|| {
                batch.control.as_ref().and_then(|control| {
                    let &(name, id) = control.types.first()?;
                    let several = control.types.len() > 1;
                    Some(Control {
                        r#type: name,
                        type_id: id,
                        coordinator_epoch: control.coordinator_epoch,
                        types: several.then(|| control.types.iter().map(|t| t.0).collect()),
                        type_ids: several.then(|| control.types.iter().map(|t| t.1).collect()),
                    })
                })
            }),
            error: batch.end.verdict.as_ref().err().map(fault),
            warnings: &batch.warnings,
        };
        self::line(out, &line)
    }

    fn record(
        &mut self,
        _: &BatchLine,
        record: &RecordLine<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let encode = |bytes: Option<&[u8]>| bytes.map(|bytes| STANDARD.encode(bytes));
        let line = Record {
            r#type: "record",
            offset: record.offset,
            timestamp: record.timestamp,
            key_len: len(record.key),
            value_len: len(record.value),
            headers: record
                .headers
                .iter()
                .map(|(key, value)| (java::utf8(key).into_owned(), value.map(hex)))
                .collect(),
            key: self.listed.data.then(|| encode(record.key)),
            value: self.listed.data.then(|| encode(record.value)),
        };
        self::line(out, &line)
    }

    fn error(&mut self, error: &Error, out: &mut dyn Write) -> io::Result<()> {
        fault_line(out, fault(error))
    }

    fn end(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        let tail = summary.tail.as_ref();
        let line = Segment {
            r#type: "segment",
            path: self.path,
            file_size: summary.file_size,
            valid_bytes: summary.valid_bytes,
            trailing_bytes: tail.map_or(0, |tail| tail.bytes),
            trailing_kind: tail.and_then(|tail| tail_name(tail.kind)),
            batch_count: summary.totals.batches,
            record_count: summary.totals.records,
        };
        self::line(out, &line)
    }
}

/// The name of a tail in JSON, `None` for a clean end.
pub(crate) const fn tail_name(kind: TailKind) -> Option<&'static str> {
    match kind {
        TailKind::Clean => None,
        TailKind::PartialBatch => Some("partial_batch"),
        TailKind::ZeroPadding => Some("zero_padding"),
        TailKind::Garbage => Some("garbage"),
    }
}
