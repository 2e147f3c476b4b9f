//! Bugs that other readers had: input, and right outcome.
//!
//! Judged as leniently as the outcome allows: errors by their class, and by the batch
//! that they are in.

use logseg_core::error::Error;
use logseg_core::{Control, Limits, TailKind, TimestampType};
use logseg_tests::build::Rec;
use logseg_tests::corpus::cases;
use logseg_tests::digest::{RecordsDigest, sha256};
use logseg_tests::read::{ReadBatch, Reading};
use logseg_tests::{hex, read};
use serde_json::Value;

/// Class and kinds, those of the cases behind those of this reader. A kind is of the
/// class of every name that it equals or goes on from.
const KINDS: &[(&str, &[&str])] = &[
    ("checksum", &["crc_mismatch", "lz4_header_checksum", "lz4_content_checksum"]),
    ("checksum", &["lz4_block_checksum", "gzip_checksum"]),
    ("decompress", &["codec_checksum", "decompress", "lz4", "gzip", "zstd", "snappy"]),
    ("codec", &["unknown_codec", "nested_compression"]),
    ("count", &["record_count", "empty_wrapper"]),
    ("record", &["malformed_record", "malformed_wrapper", "malformed_varint"]),
    ("record", &["nested_compression", "bad_wrapper_offset", "null_wrapper_value"]),
    ("record", &["empty_wrapper", "inner_magic_mismatch", "control_malformed"]),
    ("record", &["batch_size_too_small", "truncated_batch"]),
    ("control", &["malformed_control", "control_malformed"]),
    ("framing", &["batch_length", "unknown_magic", "batch_size_too_small", "truncated_batch"]),
];

fn classes(kind: &str) -> Vec<&'static str> {
    let of = |name: &&str| {
        kind.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    KINDS.iter().filter(|(_, names)| names.iter().any(of)).map(|(class, _)| *class).collect()
}

/// Collects what is wrong, so that one run shows all of it.
struct Check {
    at: String,
    wrong: Vec<String>,
}

impl Check {
    fn equal(&mut self, field: &str, want: &Value, got: impl Into<Value>) {
        let got = got.into();
        if *want != got {
            self.wrong.push(format!("{}: {field}: expected {want}, got {got}", self.at));
        }
    }

    fn fail(&mut self, text: &str) {
        self.wrong.push(format!("{}: {text}", self.at));
    }

    /// All fields of the header that the case names.
    fn header(&mut self, want: &Value, got: &ReadBatch) {
        let header = got.header;
        let v2 = header.magic.number() == 2;
        let crc_bad = got.fault() == Some("crc_mismatch")
            && got.end.verdict.is_err_and(|error| error.position() == header.crc_position());
        let fields = [
            ("position", Value::from(header.position)),
            ("size", header.size.into()),
            ("magic", header.magic.number().into()),
            ("crc", header.crc.into()),
            ("crc_valid", (!crc_bad).into()),
        ];
        for (field, value) in fields {
            self.equal(field, &want[field], value);
        }
        match header.attributes.codec() {
            Ok(codec) => self.equal("codec", &want["codec"], codec.name()),
            Err(id) => self.equal("codec", &want["codec"], format!("unknown({id})")),
        }
        if header.magic.number() > 0 {
            let kind = header.timestamp_type().map(TimestampType::name);
            self.equal("timestamp_type", &want["timestamp_type"], kind);
            self.equal("max_timestamp", &want["max_timestamp"], header.max_timestamp);
        }
        if !v2 {
            return;
        }
        for (field, value) in [
            ("base_offset", Value::from(header.base_offset)),
            ("last_offset", header.last_offset().into()),
            ("base_timestamp", header.base_timestamp.into()),
            ("producer_id", header.producer_id.into()),
            ("producer_epoch", header.producer_epoch.into()),
            ("base_sequence", header.base_sequence.into()),
            ("partition_leader_epoch", header.partition_leader_epoch.into()),
            ("is_transactional", header.is_transactional().into()),
            ("is_control", header.is_control().into()),
            ("delete_horizon_ms", header.delete_horizon_ms().into()),
            ("header_record_count", header.record_count.into()),
        ] {
            self.equal(field, &want[field], value);
        }
    }

    /// A batch is reported as bad: the right class, in this batch.
    fn error(&mut self, want: &Value, got: &ReadBatch, error: Error) {
        let mut kinds: Vec<String> = Vec::new();
        for field in ["error", "control_error"] {
            kinds.extend(want[field]["kind"].as_str().map(String::from));
            kinds.extend(also(&want[field]["also_acceptable"]));
        }
        kinds.extend(also(&want["accept"]));
        let mut fits: Vec<&str> = kinds.iter().flat_map(|kind| classes(kind)).collect();
        // Nothing came out for n records.
        if kinds.iter().any(|kind| kind == "decompress_truncated") {
            fits.push("count");
        }
        let name = error.name();
        if !classes(name).iter().any(|class| fits.contains(class)) {
            self.fail(&format!("error {name} ({error}), expected {kinds:?}"));
        }
        let range = got.header.position..=got.header.position + got.header.size;
        if !range.contains(&error.position()) {
            self.fail(&format!("the position of {error} is not in its batch"));
        }
    }

    fn batch(&mut self, want: &Value, got: &ReadBatch) {
        self.header(want, got);
        if let Err(error) = got.end.verdict {
            return self.error(want, got, error);
        }
        for bad in ["error", "control_error"] {
            if !want[bad].is_null() {
                self.fail(&format!("no error, expected {}", want[bad]["kind"]));
            }
        }
        let mut digest = RecordsDigest::default();
        got.records.iter().for_each(|record| digest.rec(record));
        if let Some(size) = want.get("uncompressed_records_size") {
            self.equal("uncompressed_records_size", size, got.end.records_bytes);
        }
        self.equal("record_count", &want["record_count"], got.end.records);
        self.equal("records_digest", &want["records_digest"], digest.hex());
        let ends = [("first_record", got.records.first()), ("last_record", got.records.last())];
        for (field, record) in ends {
            if let (Some(want), Some(record)) = (want.get(field), record) {
                self.record(want, record);
            }
        }
        if let Some(records) = want["records"].as_array() {
            for (want, record) in records.iter().zip(&got.records) {
                self.record(want, record);
            }
        }
        if !want["control"].is_null() {
            self.control(&want["control"], &got.records);
        }
    }

    fn record(&mut self, want: &Value, got: &Rec) {
        let len = |field: &Option<Vec<u8>>| field.as_ref().map_or(-1, |bytes| bytes.len() as i64);
        let sum = |field: &Option<Vec<u8>>| field.as_ref().map(|bytes| sha256(bytes));
        self.equal("offset", &want["offset"], got.offset);
        self.equal("timestamp", &want["timestamp"], got.timestamp);
        self.equal("key_len", &want["key_len"], len(&got.key));
        self.equal("value_len", &want["value_len"], len(&got.value));
        self.equal("key_sha256", &want["key_sha256"], sum(&got.key));
        self.equal("value_sha256", &want["value_sha256"], sum(&got.value));
        let headers: Vec<Value> = got
            .headers
            .iter()
            .map(|(key, value)| {
                let key = String::from_utf8(key.clone()).expect("UTF-8 in the cases");
                serde_json::json!([key, value.as_deref().map(hex)])
            })
            .collect();
        self.equal("headers", &want["headers"], headers);
    }

    fn control(&mut self, want: &Value, records: &[Rec]) {
        let controls: Vec<Control<'_>> = records
            .iter()
            .map(|r| Control::parse(r.key.as_deref(), r.value.as_deref()).expect("it was checked"))
            .collect();
        let ids: Vec<Value> = controls.iter().map(|c| c.control_type.id().into()).collect();
        let one = Value::Array(vec![want["type_id"].clone()]);
        self.equal("type_ids", want.get("type_ids").unwrap_or(&one), ids);
        for (control, name) in controls.iter().zip(want["types"].as_array().into_iter().flatten()) {
            let name = name.as_str().expect("a name");
            let known = name.split('(').next().expect("a part");
            self.equal("type", &known.into(), control.control_type.name());
        }
        if let Some(epoch) = want.get("coordinator_epoch") {
            let logseg_core::batch::ControlValue::EndTransaction { coordinator_epoch, .. } =
                controls[0].value
            else {
                return self.fail("no transaction marker");
            };
            self.equal("coordinator_epoch", epoch, coordinator_epoch);
        }
    }

    fn segment(&mut self, expect: &Value, got: &Reading) {
        let segment = &expect["segment"];
        let batches = segment["batches"].as_array().expect("batches");
        self.equal("batch_count", &Value::from(batches.len()), got.batches.len());
        let at = self.at.clone();
        for (number, (want, got)) in batches.iter().zip(&got.batches).enumerate() {
            self.at = format!("{at}, batch {number} at {}", got.header.position);
            self.batch(want, got);
        }
        self.at = at;
        self.equal("valid_bytes", &segment["valid_bytes"], got.tail.position);
        self.equal("trailing_bytes", &segment["trailing_bytes"], got.tail.bytes);
        let kind = match got.tail.kind {
            TailKind::Clean => None,
            TailKind::PartialBatch => Some("partial_batch"),
            TailKind::ZeroPadding => Some("zero_padding"),
            TailKind::Garbage => Some("garbage"),
        };
        if expect["outcome"] == "stop_error" {
            let stop = &expect["error"];
            self.equal("trailing_kind", &"garbage".into(), kind);
            let [error] = got.errors[..] else { return self.fail("one error was expected") };
            let range = &stop["byte_range"];
            let range = range[0].as_u64().expect("from")..range[1].as_u64().expect("to");
            if !classes(error.name()).contains(&"framing") || !range.contains(&error.position()) {
                self.fail(&format!("{error} in place of {stop}"));
            }
            return;
        }
        self.equal("errors", &0.into(), got.errors.len());
        let kinds = expect["trailing"]["kind"].as_str().unwrap_or_default();
        if kind.is_some_and(|kind| !kinds.split(" or ").any(|k| k == kind))
            || kind.is_none() != (segment["trailing_bytes"] == 0)
        {
            self.fail(&format!("trailing {kind:?}, expected {kinds:?}"));
        }
    }
}

/// Kinds named in the text of `accept` and `also_acceptable`.
fn also(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts
        .filter_map(|text| text.split("error kind ").nth(1))
        .filter_map(|rest| rest.split(' ').next())
        .map(String::from)
        .collect()
}

#[test]
fn all_of_them() {
    let cases = cases();
    assert_eq!(cases.len(), 50, "47 cases, three with a second input or more");
    let mut check = Check { at: String::new(), wrong: Vec::new() };
    // The bomb of case 150 may end in its limit.
    let limits = Limits::default().with_decompressed(64 << 20);
    for case in &cases {
        for window in [(64 << 10) + 100, 16 << 20] {
            check.at = format!("{} (window {window})", case.file.name);
            let reading = read(&case.file.bytes, window, limits);
            check.segment(&case.expect, &reading);
        }
    }
    assert!(check.wrong.is_empty(), "{}", check.wrong.join("\n"));
}
