//! The lines of `kafka-dump-log`.

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use logseg_core::batch::{ControlValue, Voter};
use logseg_core::{Control, Error, Magic};
use serde::Serialize;

use super::{BatchLine, Listed, RecordLine, codec_name, java, offsets};
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

impl Text<'_> {
    /// Everything about a record but key and value.
    fn metadata(
        &self,
        batch: &BatchLine,
        record: &RecordLine<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let header = &batch.header;
        let len = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len().cast_signed());
        write!(
            out,
            "| offset: {} {}: {} keySize: {} valueSize: {}",
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
                let keys: Vec<_> = record.headers.iter().map(|(key, _)| java::utf8(key)).collect();
                let sequence = header.sequence(record.offset);
                write!(out, " sequence: {sequence} headerKeys: [{}]", keys.join(","))?;
            }
        }
        if header.is_control()
            && let Ok(control) = Control::parse(record.key, record.value)
        {
            write!(out, " {}", control_text(&control))?;
        }
        Ok(())
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
        if self.listed.metadata {
            self.metadata(batch, record, out)?;
        }
        if self.listed.data && !header.is_control() {
            // Kafka's tool indents what it begins a line with, and leaves it empty for none.
            let mut indent = if self.listed.metadata { " " } else { "| " };
            for (name, bytes) in [("key", record.key), ("payload", record.value)] {
                if let Some(bytes) = bytes {
                    write!(out, "{indent}{name}: {}", java::utf8(bytes))?;
                    indent = " ";
                }
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
        ControlValue::LeaderChange { version, leader_id, voters, granting_voters } => {
            let [voters, granting_voters] =
                [voters, granting_voters].map(|voters| voters.map(LeaderVoter::new).collect());
            let message = LeaderChange { version, leader_id, voters, granting_voters };
            format!("LeaderChange: {}", json(&message))
        }
        ControlValue::SnapshotHeader { version, last_contained_log_timestamp } => {
            let message = SnapshotHeader { version, last_contained_log_timestamp };
            format!("SnapshotHeader {}", json(&message))
        }
        ControlValue::SnapshotFooter { version } => {
            format!("SnapshotFooter {}", json(&SnapshotFooter { version }))
        }
        ControlValue::KraftVersion { version, kraft_version } => {
            format!("KRaftVersion {}", json(&KraftVersion { version, kraft_version }))
        }
        ControlValue::KraftVoters { version, voters } => {
            let voters = voters.map(KraftVoter::new).collect();
            format!("KRaftVoters {}", json(&KraftVoters { version, voters }))
        }
        ControlValue::Opaque(_) => {
            let kind = control.control_type;
            format!("controlType: {}({})", kind.name(), kind.id())
        }
    }
}

fn json(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// A UUID as Kafka writes it.
fn uuid(bytes: [u8; 16]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

// The messages with their fields in the order of Kafka's definitions.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaderChange {
    version: i16,
    leader_id: i32,
    voters: Vec<LeaderVoter>,
    granting_voters: Vec<LeaderVoter>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaderVoter {
    voter_id: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    voter_directory_id: Option<String>,
}

impl LeaderVoter {
    fn new(voter: Voter<'_>) -> Self {
        Self { voter_id: voter.id, voter_directory_id: voter.directory_id.map(uuid) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotHeader {
    version: i16,
    last_contained_log_timestamp: i64,
}

#[derive(Serialize)]
struct SnapshotFooter {
    version: i16,
}

#[derive(Serialize)]
struct KraftVersion {
    version: i16,
    #[serde(rename = "kRaftVersion")]
    kraft_version: i16,
}

#[derive(Serialize)]
struct KraftVoters {
    version: i16,
    voters: Vec<KraftVoter>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KraftVoter {
    voter_id: i32,
    voter_directory_id: String,
    endpoints: Vec<KraftEndpoint>,
    #[serde(rename = "kRaftVersionFeature")]
    kraft_version_feature: KraftVersionFeature,
}

#[derive(Serialize)]
struct KraftEndpoint {
    name: String,
    host: String,
    port: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KraftVersionFeature {
    min_supported_version: i16,
    max_supported_version: i16,
}

impl KraftVoter {
    fn new(voter: Voter<'_>) -> Self {
        let endpoints = voter.endpoints.into_iter().flatten().map(|endpoint| KraftEndpoint {
            name: java::utf8(endpoint.name).into_owned(),
            host: java::utf8(endpoint.host).into_owned(),
            port: endpoint.port,
        });
        let (min_supported_version, max_supported_version) =
            voter.kraft_versions.unwrap_or_default();
        Self {
            voter_id: voter.id,
            voter_directory_id: voter.directory_id.map(uuid).unwrap_or_default(),
            endpoints: endpoints.collect(),
            kraft_version_feature: KraftVersionFeature {
                min_supported_version,
                max_supported_version,
            },
        }
    }
}
