//! The lines of `kafka-dump-log`.

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use logseg_core::batch::{ControlValue, Voters};
use logseg_core::{Control, ControlType, Error, Magic};
use serde_json::json;

use super::{BatchLine, Listed, RecordLine, codec_name, offsets};
use crate::cli::dump::{Printer, Summary};

pub(crate) struct Text<'a> {
    path: &'a Path,
    listed: Listed,
    begun: bool,
    /// Offset of the record before, for gaps.
    last: Option<i64>,
    gaps: bool,
}

impl<'a> Text<'a> {
    pub(crate) const fn new(path: &'a Path, listed: Listed) -> Self {
        Self { path, listed, begun: false, last: None, gaps: false }
    }

    /// The offset that the file's name promises, or that of the first batch.
    fn starting_offset(&mut self, first: Option<i64>, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let named = self.path.file_stem().and_then(|stem| stem.to_str()?.parse::<i64>().ok());
        match named.or(first) {
            Some(offset) => writeln!(out, "Log starting offset: {offset}"),
            None => Ok(()),
        }
    }
}

const fn timestamp_type(batch: &BatchLine) -> &'static str {
    match batch.header.timestamp_type() {
        Some(kind) => kind.name(),
        None => "NoTimestampType",
    }
}

impl Printer for Text<'_> {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Dumping {}", self.path.display())
    }

    fn batch(&mut self, batch: &BatchLine, _: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let header = &batch.header;
        self.starting_offset(Some(offsets(batch).0), out)?;
        if header.magic == Magic::V2 {
            write!(
                out,
                "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} \
                 producerId: {} producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} \
                 isControl: {} deleteHorizonMs: {} ",
                header.base_offset,
                header.last_offset(),
                header.record_count.unwrap_or(0),
                header.base_sequence,
                header.last_sequence(),
                header.producer_id,
                header.producer_epoch,
                header.partition_leader_epoch,
                header.is_transactional(),
                header.is_control(),
                match header.delete_horizon_ms() {
                    Some(horizon) => format!("OptionalLong[{horizon}]"),
                    None => "OptionalLong.empty".to_owned(),
                },
            )?;
        } else {
            write!(out, "offset: {} ", header.base_offset)?;
        }
        writeln!(
            out,
            "position: {} {}: {} size: {} magic: {} compresscodec: {} crc: {} isvalid: {}",
            header.position,
            timestamp_type(batch),
            header.max_timestamp,
            header.size,
            header.magic.number(),
            codec_name(header),
            header.crc,
            batch.crc_valid,
        )
    }

    fn record(
        &mut self,
        batch: &BatchLine,
        record: &RecordLine<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let header = &batch.header;
        if let Some(last) = self.last.replace(record.offset)
            && last.checked_add(1) != Some(record.offset)
        {
            // Kafka's tool says so at its very end; a gap is normal after compaction.
            let mut lines = String::new();
            if !std::mem::replace(&mut self.gaps, true) {
                lines = format!("Non-consecutive offsets in {}\n", self.path.display());
            }
            lines += &format!("  {last} is followed by {}\n", record.offset);
            // Nobody is left to be told if standard error is gone.
            let _ = io::stderr().write_all(lines.as_bytes());
        }
        let len = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len().cast_signed());
        write!(out, "| ")?;
        if self.listed.metadata {
            write!(
                out,
                "offset: {} {}: {} keySize: {} valueSize: {}",
                record.offset,
                timestamp_type(batch),
                record.timestamp,
                len(record.key),
                len(record.value),
            )?;
            match record.crc.filter(|_| header.magic != Magic::V2) {
                Some(crc) => write!(out, " isValid: true crc: {crc}")?,
                None if header.magic != Magic::V2 => {}
                None => {
                    let keys: Vec<_> = record
                        .headers
                        .iter()
                        .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
                        .collect();
                    let sequence = header.sequence(record.offset);
                    write!(out, " sequence: {sequence} headerKeys: [{}]", keys.join(","))?;
                }
            }
        }
        if header.is_control() {
            if let Ok(control) = Control::parse(record.key, record.value) {
                write!(out, " {}", control_text(&control))?;
            }
        } else if self.listed.data {
            if let Some(key) = record.key {
                write!(out, " key: {}", String::from_utf8_lossy(key))?;
            }
            if let Some(value) = record.value {
                write!(out, " payload: {}", String::from_utf8_lossy(value))?;
            }
        }
        writeln!(out)
    }

    fn error(&mut self, _: &Error, _: &mut dyn Write) -> io::Result<()> {
        Ok(()) // standard error has it
    }

    fn end(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        self.starting_offset(None, out)?;
        match &summary.tail {
            Some(tail) => writeln!(
                out,
                "Found {} invalid bytes at the end of {}",
                tail.bytes,
                self.path.file_name().unwrap_or(self.path.as_os_str()).display()
            ),
            None => Ok(()),
        }
    }
}

/// What a control record says, in the words of `kafka-dump-log`.
fn control_text(control: &Control<'_>) -> String {
    match control.value {
        ControlValue::EndTransaction { coordinator_epoch, .. } => format!(
            "endTxnMarker: {} coordinatorEpoch: {coordinator_epoch}",
            control.control_type.name()
        ),
        ControlValue::SnapshotHeader { version, last_contained_log_timestamp } => format!(
            "SnapshotHeader {}",
            json!({"version": version, "lastContainedLogTimestamp": last_contained_log_timestamp})
        ),
        ControlValue::SnapshotFooter { version } => {
            format!("SnapshotFooter {}", json!({"version": version}))
        }
        ControlValue::KraftVersion { version, kraft_version } => {
            format!("KRaftVersion {}", json!({"version": version, "kRaftVersion": kraft_version}))
        }
        ControlValue::KraftVoters { version, voters } => {
            format!("KRaftVoters {}", json!({"version": version, "voters": voters_json(voters)}))
        }
        ControlValue::LeaderChange { .. } | ControlValue::Opaque(_) => match control.control_type {
            ControlType::Unknown(id) => format!("controlType: UNKNOWN({id})"),
            known => format!("controlType: {}({})", known.name(), known.id()),
        },
    }
}

fn voters_json(voters: Voters<'_>) -> Vec<serde_json::Value> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    voters
        .map(|voter| {
            let endpoints: Vec<_> = voter
                .endpoints
                .into_iter()
                .flatten()
                .map(|endpoint| {
                    json!({
                        "name": text(endpoint.name),
                        "host": text(endpoint.host),
                        "port": endpoint.port,
                    })
                })
                .collect();
            let (least, most) = voter.kraft_versions.unwrap_or_default();
            json!({
                "voterId": voter.id,
                "voterDirectoryId":
                    voter.directory_id.map(|id| URL_SAFE_NO_PAD.encode(id)).unwrap_or_default(),
                "endpoints": endpoints,
                "kRaftVersionFeature":
                    {"minSupportedVersion": least, "maxSupportedVersion": most},
            })
        })
        .collect()
}
