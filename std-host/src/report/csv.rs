//! The report as CSV: a header line, and one line per file and codec.
//!
//! Columns are named as the fields of the JSON document; those of a file are the same
//! in all of its lines. `level` is empty for the default one, `trailing_…` where
//! nothing trails. For more than one file the total follows, in lines whose path is
//! `TOTAL`: leave them out when summing. The columns of large values are there if they
//! were asked for.

use std::io::{self, Write};

use crate::analysis::{AnalysisReport, CodecSummary, SegmentReport};
use crate::codec_spec::CodecSpec;

/// The `path` of the total's lines. No segment is called so, for want of `.log`.
pub const TOTAL: &str = "TOTAL";

/// Writes the header line and all others.
pub fn write(report: &AnalysisReport, w: &mut dyn Write) -> io::Result<()> {
    let mut text = csv::Writer::from_writer(w);
    // The names of the columns do not depend on the values.
    for names in lines("", &SegmentReport::new(None, 1), report).take(1) {
        text.write_record(names.into_iter().map(|(name, _)| name))?;
    }
    let segments = report.segments.iter();
    let segments = segments.map(|segment| (segment.path.as_deref().unwrap_or("-"), segment));
    let total = (report.segments.len() > 1).then_some((TOTAL, &report.total));
    for (path, segment) in segments.chain(total) {
        for line in lines(path, segment, report) {
            text.write_record(line.into_iter().map(|(_, value)| value))?;
        }
    }
    text.flush()
}

/// A line for each codec.
fn lines<'a>(
    path: &'a str,
    segment: &'a SegmentReport,
    report: &'a AnalysisReport,
) -> impl Iterator<Item = Vec<(&'static str, String)>> + 'a {
    let rows = report.specs.iter().zip(segment.figures.summaries());
    rows.enumerate().map(move |(nth, (spec, summary))| {
        let mut line = fields(path, segment, *spec, &summary);
        if report.large_messages.is_some() {
            line.extend(by_reference(segment, nth));
        }
        line
    })
}

/// The columns of large values, for the codec with this index.
fn by_reference(segment: &SegmentReport, nth: usize) -> [(&'static str, String); 7] {
    let with = &segment.figures.by_reference;
    let compressed = with.compressed_bytes.get(nth).copied().unwrap_or_default();
    [
        ("large_values", with.moved.values),
        ("large_value_bytes", with.moved.value_bytes),
        ("large_reference_bytes", with.moved.reference_bytes),
        ("large_legacy_values", with.moved.legacy_values),
        ("large_original_bytes", with.original_bytes),
        ("large_uncompressed_bytes", with.uncompressed_bytes),
        ("large_compressed_bytes", compressed),
    ]
    .map(|(name, value)| (name, value.to_string()))
}

/// The columns, names and values.
fn fields(
    path: &str,
    segment: &SegmentReport,
    spec: CodecSpec,
    summary: &CodecSummary,
) -> Vec<(&'static str, String)> {
    let figures = &segment.figures;
    let batches = &figures.batches;
    let trailing = segment.trailing;
    let or_empty = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    vec![
        ("path", path.to_owned()),
        ("file_size", segment.file_size.to_string()),
        ("valid_bytes", segment.valid_bytes.to_string()),
        ("trailing_kind", trailing.map(|trailing| trailing.kind.to_owned()).unwrap_or_default()),
        ("trailing_position", or_empty(trailing.map(|trailing| trailing.position))),
        ("trailing_bytes", or_empty(trailing.map(|trailing| trailing.bytes))),
        ("original_bytes", figures.original_bytes.to_string()),
        ("uncompressed_bytes", figures.uncompressed_bytes.to_string()),
        ("original_ratio", figures.original_ratio().to_string()),
        ("original_savings_percent", figures.original_savings_percent().to_string()),
        ("batches_total", batches.total.to_string()),
        ("batches_multi_record", batches.multi_record.to_string()),
        ("batches_control", batches.control.to_string()),
        ("batches_empty", batches.empty.to_string()),
        ("batches_corrupt", batches.corrupt.to_string()),
        ("records", figures.records.to_string()),
        ("mean_records_per_batch", figures.mean_records_per_batch().to_string()),
        ("mean_batch_bytes_original", figures.mean_batch_bytes_original().to_string()),
        ("mean_batch_bytes_uncompressed", figures.mean_batch_bytes_uncompressed().to_string()),
        ("geomean_batch_bytes_original", figures.geomean_batch_bytes_original().to_string()),
        (
            "geomean_batch_bytes_uncompressed",
            figures.geomean_batch_bytes_uncompressed().to_string(),
        ),
        ("errors", (segment.errors.len() as u64 + segment.more_errors).to_string()),
        ("codec", spec.codec().name().to_owned()),
        ("level", spec.level().map(|level| level.to_string()).unwrap_or_default()),
        ("compressed_bytes", summary.compressed_bytes.to_string()),
        ("savings_percent", summary.savings_percent.to_string()),
        ("ratio", summary.ratio.to_string()),
        ("mean_batch_ratio", summary.mean_batch_ratio.to_string()),
        ("geomean_batch_ratio", summary.geomean_batch_ratio.to_string()),
        ("compress_ns", summary.time.as_nanos().to_string()),
        ("compress_mib_per_s", summary.compress_mib_per_s.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::report::samples::{damaged, kip, report};

    fn rendered(segments: Vec<SegmentReport>) -> Vec<HashMap<String, String>> {
        let mut out = Vec::new();
        write(&report(segments), &mut out).unwrap();
        assert!(out.starts_with(b"path,file_size,valid_bytes,"));
        let mut reader = csv::Reader::from_reader(&out[..]);
        reader.deserialize().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn one_file() {
        let rows = rendered(vec![kip("a, \"b\".log")]);
        assert_eq!(rows.len(), 2, "no total");
        assert_eq!(rows[0].len(), 31, "the names are all different");
        for (column, expected) in [
            ("path", "a, \"b\".log"),
            ("trailing_kind", ""),
            ("uncompressed_bytes", "16080153"),
            ("codec", "gzip"),
            ("level", ""),
            ("compressed_bytes", "422829"),
            ("compress_ns", "168000000"),
        ] {
            assert_eq!(rows[0][column], expected, "{column}");
        }
        let ratio: f64 = rows[0]["ratio"].parse().unwrap();
        assert_eq!(ratio, 16_080_153.0 / 422_829.0);
        assert_eq!((&*rows[1]["codec"], &*rows[1]["level"]), ("zstd", "9"));
    }

    #[test]
    fn several_files() {
        let rows = rendered(vec![kip("a.log"), damaged("b.log")]);
        let paths: Vec<&str> = rows.iter().map(|row| &*row["path"]).collect();
        assert_eq!(paths, ["a.log", "a.log", "b.log", "b.log", TOTAL, TOTAL]);
        for (column, expected) in [
            ("trailing_kind", "partial_batch"),
            ("trailing_position", "890"),
            ("trailing_bytes", "1848"),
            ("batches_corrupt", "2"),
            ("batches_empty", "1"),
            ("errors", "2"),
        ] {
            assert_eq!(rows[3][column], expected, "{column}");
        }
        assert_eq!(rows[5]["batches_total"], "3");
        assert_eq!(rendered(Vec::new()).len(), 0);
    }
}
