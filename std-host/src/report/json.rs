//! The report as one JSON document, schema `std-host/analyze/1`: sizes in bytes,
//! durations in nanoseconds, numbers always finite.
//!
//! `trailing` of the total is null, and the faults in its `errors` name their file in
//! `detail`.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::analysis::{AnalysisReport, Figures, LargeMessages, SegmentReport, savings_percent};
use crate::codec_spec::CodecSpec;

/// Name and version of the schema.
pub const SCHEMA: &str = "std-host/analyze/1";

/// Writes the document and a line feed.
pub fn write(report: &AnalysisReport, w: &mut dyn Write) -> io::Result<()> {
    let segment = |segment| Segment::new(segment, &report.specs, report.large_messages.as_ref());
    let document = Document {
        schema: SCHEMA,
        segments: report.segments.iter().map(segment).collect(),
        total: segment(&report.total),
    };
    serde_json::to_writer(&mut *w, &document)?;
    writeln!(w)
}

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    segments: Vec<Segment<'a>>,
    total: Segment<'a>,
}

#[derive(serde::Serialize)]
struct Segment<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    file_size: u64,
    valid_bytes: u64,
    trailing: Option<Trailing>,
    original_bytes: u64,
    uncompressed_bytes: u64,
    original_ratio: f64,
    original_savings_percent: f64,
    batches: Batches,
    records: u64,
    mean_records_per_batch: f64,
    mean_batch_bytes_original: f64,
    mean_batch_bytes_uncompressed: f64,
    geomean_batch_bytes_original: f64,
    geomean_batch_bytes_uncompressed: f64,
    input_batches_by_codec: InputCodecs<'a>,
    codecs: Vec<Row>,
    /// Only there if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    large_messages: Option<ByReference<'a>>,
    errors: Vec<Fault<'a>>,
}

/// The log with its large values in a blob store; savings are against the log without.
#[derive(serde::Serialize)]
struct ByReference<'a> {
    threshold: u64,
    store: &'a str,
    values: u64,
    value_bytes: u64,
    reference_bytes: u64,
    legacy_values: u64,
    original_bytes: u64,
    original_savings_percent: f64,
    uncompressed_bytes: u64,
    uncompressed_savings_percent: f64,
    codecs: Vec<ReferenceRow>,
}

#[derive(serde::Serialize)]
struct ReferenceRow {
    codec: &'static str,
    level: Option<i32>,
    compressed_bytes: u64,
    savings_percent: f64,
}

impl<'a> ByReference<'a> {
    fn new(figures: &Figures, specs: &[CodecSpec], large: &'a LargeMessages) -> Self {
        let (with, moved) = (&figures.by_reference, &figures.by_reference.moved);
        let rows = specs.iter().zip(&figures.codecs).zip(&with.compressed_bytes);
        let rows = rows.map(|((spec, sums), &after)| ReferenceRow {
            codec: spec.codec().name(),
            level: spec.level(),
            compressed_bytes: after,
            savings_percent: savings_percent(sums.compressed_bytes, after),
        });
        Self {
            threshold: large.threshold,
            store: &large.store,
            values: moved.values,
            value_bytes: moved.value_bytes,
            reference_bytes: moved.reference_bytes,
            legacy_values: moved.legacy_values,
            original_bytes: with.original_bytes,
            original_savings_percent: savings_percent(figures.original_bytes, with.original_bytes),
            uncompressed_bytes: with.uncompressed_bytes,
            uncompressed_savings_percent: savings_percent(
                figures.uncompressed_bytes,
                with.uncompressed_bytes,
            ),
            codecs: rows.collect(),
        }
    }
}

#[derive(serde::Serialize)]
struct Trailing {
    kind: &'static str,
    position: u64,
    bytes: u64,
}

#[derive(serde::Serialize)]
struct Batches {
    total: u64,
    multi_record: u64,
    control: u64,
    empty: u64,
    corrupt: u64,
}

#[derive(serde::Serialize)]
struct Row {
    codec: &'static str,
    level: Option<i32>,
    compressed_bytes: u64,
    savings_percent: f64,
    ratio: f64,
    mean_batch_ratio: f64,
    geomean_batch_ratio: f64,
    compress_ns: u64,
    compress_mib_per_s: f64,
}

#[derive(serde::Serialize)]
struct Fault<'a> {
    position: u64,
    kind: &'static str,
    detail: &'a str,
}

/// An object with a number for each codec that occurs.
struct InputCodecs<'a>(&'a Figures);

impl Serialize for InputCodecs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (codec, count) in self.0.input_codecs() {
            map.serialize_entry(codec.name(), &count)?;
        }
        map.end()
    }
}

impl<'a> Segment<'a> {
    fn new(
        segment: &'a SegmentReport,
        specs: &[CodecSpec],
        large: Option<&'a LargeMessages>,
    ) -> Self {
        let figures = &segment.figures;
        let rows = specs.iter().zip(figures.summaries()).map(|(spec, summary)| Row {
            codec: spec.codec().name(),
            level: spec.level(),
            compressed_bytes: summary.compressed_bytes,
            savings_percent: summary.savings_percent,
            ratio: summary.ratio,
            mean_batch_ratio: summary.mean_batch_ratio,
            geomean_batch_ratio: summary.geomean_batch_ratio,
            compress_ns: u64::try_from(summary.time.as_nanos()).unwrap_or(u64::MAX),
            compress_mib_per_s: summary.compress_mib_per_s,
        });
        let errors = segment.errors.iter().map(|fault| Fault {
            position: fault.position,
            kind: fault.kind,
            detail: &fault.detail,
        });
        Self {
            path: segment.path.as_deref(),
            file_size: segment.file_size,
            valid_bytes: segment.valid_bytes,
            trailing: segment.trailing.map(|trailing| Trailing {
                kind: trailing.kind,
                position: trailing.position,
                bytes: trailing.bytes,
            }),
            original_bytes: figures.original_bytes,
            uncompressed_bytes: figures.uncompressed_bytes,
            original_ratio: figures.original_ratio(),
            original_savings_percent: figures.original_savings_percent(),
            batches: Batches {
                total: figures.batches.total,
                multi_record: figures.batches.multi_record,
                control: figures.batches.control,
                empty: figures.batches.empty,
                corrupt: figures.batches.corrupt,
            },
            records: figures.records,
            mean_records_per_batch: figures.mean_records_per_batch(),
            mean_batch_bytes_original: figures.mean_batch_bytes_original(),
            mean_batch_bytes_uncompressed: figures.mean_batch_bytes_uncompressed(),
            geomean_batch_bytes_original: figures.geomean_batch_bytes_original(),
            geomean_batch_bytes_uncompressed: figures.geomean_batch_bytes_uncompressed(),
            input_batches_by_codec: InputCodecs(figures),
            codecs: rows.collect(),
            large_messages: large.map(|large| ByReference::new(figures, specs, large)),
            errors: errors.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::report::samples::{damaged, kip, report};

    fn rendered(segments: Vec<SegmentReport>) -> (String, Value) {
        let mut out = Vec::new();
        write(&report(segments), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }

    /// Where each of `keys` first stands in `text`; they must be there in this order.
    fn in_order(text: &str, keys: &str) {
        let mut rest = text;
        for key in keys.split_whitespace() {
            let quoted = format!("\"{key}\":");
            let (_, behind) = rest.split_once(&quoted).unwrap_or_else(|| panic!("{key}: {text}"));
            rest = behind;
        }
    }

    fn keys(value: &Value) -> usize {
        value.as_object().unwrap().len()
    }

    #[test]
    fn keys_of_the_contract() {
        let (text, value) = rendered(vec![damaged("a.log")]);
        assert_eq!(keys(&value), 3);
        assert_eq!(value["schema"], SCHEMA);
        let segment = &value["segments"][0];
        assert_eq!((keys(segment), keys(&value["total"])), (18, 17));
        in_order(
            &text,
            "schema segments path file_size valid_bytes trailing kind position bytes \
             original_bytes uncompressed_bytes original_ratio original_savings_percent \
             batches total multi_record control empty corrupt \
             records mean_records_per_batch \
             mean_batch_bytes_original mean_batch_bytes_uncompressed \
             geomean_batch_bytes_original geomean_batch_bytes_uncompressed \
             input_batches_by_codec none codecs \
             codec level compressed_bytes savings_percent ratio mean_batch_ratio \
             geomean_batch_ratio compress_ns compress_mib_per_s errors position kind detail total",
        );
        assert_eq!(keys(&segment["trailing"]), 3);
        assert_eq!(keys(&segment["batches"]), 5);
        assert_eq!(keys(&segment["codecs"][0]), 9);
        assert_eq!(keys(&segment["errors"][0]), 3);
        assert!(value["total"].get("path").is_none());
    }

    #[test]
    fn values() {
        let (_, value) = rendered(vec![kip("a \"b\".log"), damaged("c.log")]);
        let [kip, damaged] = &value["segments"].as_array().unwrap()[..] else { panic!() };
        assert_eq!(kip["path"], "a \"b\".log");
        assert_eq!(kip["trailing"], Value::Null);
        assert_eq!(kip["codecs"][0]["level"], Value::Null);
        assert_eq!(kip["codecs"][0]["compress_ns"], 168_000_000);
        assert_eq!(kip["codecs"][1]["codec"], "zstd");
        assert_eq!(kip["codecs"][1]["level"], 9);
        assert_eq!(kip["input_batches_by_codec"], json!({"lz4": 1}));
        let trailing = json!({"kind": "partial_batch", "position": 890, "bytes": 1848});
        assert_eq!(damaged["trailing"], trailing);
        let batches =
            json!({"total": 2, "multi_record": 0, "control": 1, "empty": 1, "corrupt": 2});
        assert_eq!(damaged["batches"], batches);
        assert_eq!(damaged["errors"][1]["position"], 517);
        let total = &value["total"];
        assert_eq!(total["original_bytes"], 4_020_178);
        assert_eq!(total["input_batches_by_codec"], json!({"none": 2, "lz4": 1}));
        assert_eq!(total["errors"].as_array().map(Vec::len), Some(2));
        assert!(total["errors"][0]["detail"].as_str().unwrap().starts_with("c.log: stored"));
    }

    #[test]
    fn without_segments() {
        let (_, value) = rendered(Vec::new());
        assert_eq!(value["segments"], json!([]));
        assert_eq!(value["total"]["original_ratio"], 1.0);
        assert_eq!(value["total"]["codecs"][0]["geomean_batch_ratio"], 1.0);
    }
}
