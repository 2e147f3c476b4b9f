//! The report as text, after KIP-640: one block per file, a blank line between blocks,
//! and for more than one file a block `Total`.
//!
//! A block is [`begin`], the caller's lines per batch if there are any, and [`figures`].
//!
//! ```text
//! COMPRESSION-TYPE  COMPRESSED-SIZE  SPACE-SAVINGS  TOTAL-RATIO  AVG-RATIO/BATCH  TOTAL-TIME        SPEED
//! gzip                       422829         97.37%        38.03            21.43       168ms   91.28 MB/s
//! ```
//! These are the prototype's columns: `%-16s %16d %13.2f%% %12.2f %16.2f %9dms
//! %7.2f MB/s`. Where something is wider, its column widens for the whole table.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use super::ERRORS_LISTED;
use crate::analysis::{Figures, LargeMessages, SegmentReport, savings_percent};
use crate::codec_spec::CodecSpec;

const COLUMNS: [(&str, usize); 7] = [
    ("COMPRESSION-TYPE", 16),
    ("COMPRESSED-SIZE", 16),
    ("SPACE-SAVINGS", 14),
    ("TOTAL-RATIO", 12),
    ("AVG-RATIO/BATCH", 16),
    ("TOTAL-TIME", 11),
    ("SPEED", 12),
];

/// Starts the block of a file.
pub fn begin(path: &str, first: bool, w: &mut dyn Write) -> io::Result<()> {
    if !first {
        writeln!(w)?;
    }
    writeln!(w, "Analyzing {path}")
}

/// The block of a file behind its first line: figures, table, and what is wrong.
pub fn figures(
    segment: &SegmentReport,
    specs: &[CodecSpec],
    large: Option<&LargeMessages>,
    w: &mut dyn Write,
) -> io::Result<()> {
    sums(&segment.figures, specs, w)?;
    by_reference(&segment.figures, specs, large, w)?;
    remarks(segment, w)
}

/// The block `Total`, behind those of the files. What is wrong stands in theirs.
pub fn total(
    total: &SegmentReport,
    specs: &[CodecSpec],
    large: Option<&LargeMessages>,
    w: &mut dyn Write,
) -> io::Result<()> {
    writeln!(w, "\nTotal")?;
    sums(&total.figures, specs, w)?;
    by_reference(&total.figures, specs, large, w)?;
    match total.figures.batches.corrupt {
        0 => Ok(()),
        corrupt => write!(w, "\n{}.\n", left_out(corrupt)),
    }
}

fn sums(figures: &Figures, specs: &[CodecSpec], w: &mut dyn Write) -> io::Result<()> {
    let two = |value| round_half_up(value, 2);
    let whole = |value| round_half_up(value, 0);
    writeln!(w, "Original log size: {} bytes", figures.original_bytes)?;
    writeln!(w, "Uncompressed log size: {} bytes", figures.uncompressed_bytes)?;
    writeln!(w, "Original compression ratio: {}", two(figures.original_ratio()))?;
    writeln!(w, "Original space savings: {}%", two(figures.original_savings_percent()))?;
    writeln!(w)?;
    writeln!(w, "Batch stats:")?;
    let batches = &figures.batches;
    writeln!(w, "  {}/{} batches contain >1 message", batches.multi_record, batches.total)?;
    writeln!(w, "  Avg messages/batch: {}", two(figures.mean_records_per_batch()))?;
    let (original, uncompressed) =
        (figures.mean_batch_bytes_original(), figures.mean_batch_bytes_uncompressed());
    writeln!(w, "  Avg batch size (original): {} bytes", whole(original))?;
    writeln!(w, "  Avg batch size (uncompressed): {} bytes", whole(uncompressed))?;
    writeln!(w)?;
    writeln!(w, "Number of input batches by compression type:")?;
    for (codec, count) in figures.input_codecs() {
        writeln!(w, "  {codec}: {count}")?;
    }
    writeln!(w)?;
    table(figures, specs, w)
}

fn table(figures: &Figures, specs: &[CodecSpec], w: &mut dyn Write) -> io::Result<()> {
    let two = |value| round_half_up(value, 2);
    let rows: Vec<[String; 7]> = specs
        .iter()
        .zip(figures.summaries())
        .map(|(spec, summary)| {
            [
                spec.label(),
                summary.compressed_bytes.to_string(),
                two(summary.savings_percent) + "%",
                two(summary.ratio),
                two(summary.mean_batch_ratio),
                format!("{}ms", milliseconds(summary.time)),
                two(summary.compress_mib_per_s) + " MB/s",
            ]
        })
        .collect();
    write_table(COLUMNS, &rows, w)
}

/// A table whose first column is left-aligned; columns widen where something is wider.
fn write_table<const N: usize>(
    columns: [(&str, usize); N],
    rows: &[[String; N]],
    w: &mut dyn Write,
) -> io::Result<()> {
    let mut widths = columns.map(|(_, width)| width);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let mut write_row = |cells: [&str; N]| {
        for (nth, (cell, width)) in cells.into_iter().zip(widths).enumerate() {
            match nth {
                0 => write!(w, "{cell:<width$}")?,
                _ => write!(w, " {cell:>width$}")?,
            }
        }
        writeln!(w)
    };
    write_row(columns.map(|(name, _)| name))?;
    rows.iter().try_for_each(|row| write_row(row.each_ref().map(String::as_str)))
}

/// What would be left of the log with its large values in a blob store.
fn by_reference(
    figures: &Figures,
    specs: &[CodecSpec],
    large: Option<&LargeMessages>,
    w: &mut dyn Write,
) -> io::Result<()> {
    let Some(LargeMessages { threshold, store }) = large else { return Ok(()) };
    let (with, moved) = (&figures.by_reference, &figures.by_reference.moved);
    let less = |before, after| round_half_up(savings_percent(before, after), 2);
    writeln!(w)?;
    writeln!(w, "With values of {threshold} bytes or more in a blob store:")?;
    writeln!(
        w,
        "  Values moved: {} of {} records, {} bytes in blobs",
        moved.values, figures.records, moved.value_bytes
    )?;
    if moved.legacy_values > 0 {
        let n = moved.legacy_values;
        writeln!(w, "  Values that stay: {n}, since v0/v1 messages have no headers")?;
    }
    let mean = moved.reference_bytes.checked_div(moved.values).unwrap_or(0);
    writeln!(w, "  Avg reference size: {mean} bytes and its header, for {store}/TOPIC/ID")?;
    let (before, after) = (figures.original_bytes, with.original_bytes);
    writeln!(
        w,
        "  Log size, estimated: {before} -> {after} bytes, {}% less (changed batches at their codec's \
         default level)",
        less(before, after)
    )?;
    let (before, after) = (figures.uncompressed_bytes, with.uncompressed_bytes);
    writeln!(
        w,
        "  Uncompressed log size: {before} -> {after} bytes, {}% less",
        less(before, after)
    )?;
    writeln!(w)?;
    let rows: Vec<[String; 4]> = specs
        .iter()
        .zip(&figures.codecs)
        .zip(&with.compressed_bytes)
        .map(|((spec, sums), &after)| {
            let before = sums.compressed_bytes;
            [spec.label(), before.to_string(), after.to_string(), less(before, after) + "%"]
        })
        .collect();
    let columns = [
        ("COMPRESSION-TYPE", 16),
        ("COMPRESSED-SIZE", 16),
        ("WITH-REFERENCES", 16),
        ("SPACE-SAVINGS", 14),
    ];
    write_table(columns, &rows, w)
}

/// The last paragraph, if there is something to say.
fn remarks(segment: &SegmentReport, w: &mut dyn Write) -> io::Result<()> {
    let (corrupt, errors) = (segment.figures.batches.corrupt, &segment.errors);
    if corrupt == 0 && errors.is_empty() && segment.trailing.is_none() {
        return Ok(());
    }
    writeln!(w)?;
    let count = errors.len() as u64 + segment.more_errors;
    let heading = match (corrupt, count) {
        (0, 0) => None,
        (0, 1) => Some("1 fault".to_owned()),
        (0, many) => Some(format!("{many} faults")),
        (corrupt, _) => Some(left_out(corrupt)),
    };
    if let Some(heading) = heading {
        writeln!(w, "{heading}{}", if errors.is_empty() { "." } else { ":" })?;
    }
    for fault in errors.iter().take(ERRORS_LISTED) {
        writeln!(w, "  byte {}: {}: {}", fault.position, fault.kind, fault.detail)?;
    }
    if let more @ 1.. = count.saturating_sub(ERRORS_LISTED as u64) {
        writeln!(w, "  and {more} more")?;
    }
    if let Some(trailing) = segment.trailing {
        let what: Cow<'_, str> = match trailing.kind {
            "partial_batch" => "Incomplete last batch at".into(),
            "zero_padding" => "Zero padding from".into(),
            "garbage" => "Not readable as Kafka entries from".into(),
            other => format!("Trailing {other} at").into(),
        };
        writeln!(w, "{what} byte {}: {} bytes", trailing.position, trailing.bytes)?;
    }
    Ok(())
}

fn left_out(corrupt: u64) -> String {
    match corrupt {
        1 => "1 corrupt batch is left out of the figures above".to_owned(),
        _ => format!("{corrupt} corrupt batches are left out of the figures above"),
    }
}

const fn milliseconds(time: Duration) -> u128 {
    (time.as_nanos() + 500_000) / 1_000_000
}

/// `value` in decimal, rounded as Java's `%.2f` does: half up, away from zero, and of
/// the shortest decimal that means `value`, so that 1.005 is 1.01. No negative zero.
fn round_half_up(value: f64, decimals: usize) -> String {
    let shortest = value.abs().to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    // Infinity and NaN, which no figure is.
    if !whole.bytes().all(|digit| digit.is_ascii_digit()) {
        return value.to_string();
    }
    let mut fraction = fraction.bytes().chain(std::iter::repeat(b'0'));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.clone().take(decimals)).collect();
    if fraction.nth(decimals).is_some_and(|next| next >= b'5') {
        let nines = digits.iter().rev().take_while(|digit| **digit == b'9').count();
        let at = digits.len() - nines;
        let (head, tail) = digits.split_at_mut(at);
        tail.fill(b'0');
        match head.last_mut() {
            Some(last) => *last += 1,
            None => digits.insert(0, b'1'),
        }
    }
    let negative = value < 0.0 && digits.iter().any(|digit| *digit != b'0');
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let text = |digits: &[u8]| digits.iter().copied().map(char::from).collect::<String>();
    let sign = if negative { "-" } else { "" };
    let point = if decimals > 0 { "." } else { "" };
    format!("{sign}{}{point}{}", text(whole), text(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{damaged, kip, report};

    fn rendered(segments: Vec<SegmentReport>) -> String {
        let (mut out, report) = (Vec::new(), report(segments));
        for (i, segment) in report.segments.iter().enumerate() {
            begin(segment.path.as_deref().unwrap(), i == 0, &mut out).unwrap();
            figures(segment, &report.specs, None, &mut out).unwrap();
        }
        if report.segments.len() > 1 {
            total(&report.total, &report.specs, None, &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_file() {
        assert_eq!(
            rendered(vec![kip("t-0/00000000000000000000.log")]),
            "\
Analyzing t-0/00000000000000000000.log
Original log size: 4020039 bytes
Uncompressed log size: 16080153 bytes
Original compression ratio: 4.00
Original space savings: 75.00%

Batch stats:
  1/1 batches contain >1 message
  Avg messages/batch: 17.00
  Avg batch size (original): 4020039 bytes
  Avg batch size (uncompressed): 16080153 bytes

Number of input batches by compression type:
  lz4: 1

COMPRESSION-TYPE  COMPRESSED-SIZE  SPACE-SAVINGS  TOTAL-RATIO  AVG-RATIO/BATCH  TOTAL-TIME        SPEED
gzip                       422829         97.37%        38.03            38.03       168ms   91.28 MB/s
zstd:9                   16080153          0.00%         1.00             1.00         0ms    0.00 MB/s
"
        );
    }

    /// The KIP's own line: its batches came to a mean ratio of 21.43.
    #[test]
    fn row_of_the_kip() {
        use crate::analysis::{BatchFigures, Compressed};
        let mut figures = Figures::new(1);
        // u/c: 40.04 and 2.82.
        let batches = [(16_015_762, 400_000), (64_391, 22_829)];
        for (uncompressed, bytes) in batches {
            figures.add(&BatchFigures {
                size: 61,
                uncompressed,
                records: 1,
                codec: logseg_core::Codec::None,
                is_control: false,
                compressed: &[Compressed { bytes, time: Duration::from_millis(84) }],
                by_reference: None,
            });
        }
        let mut out = Vec::new();
        table(&figures, &["gzip".parse().unwrap()], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let row = "gzip                       422829         97.37%        38.03            \
                   21.43       168ms   91.28 MB/s";
        assert_eq!(out.lines().nth(1), Some(row));
    }

    #[test]
    fn several_files_with_damage() {
        let text = rendered(vec![kip("a.log"), damaged("b.log")]);
        let blocks: Vec<&str> =
            text.split("\nAnalyzing ").flat_map(|block| block.split("\nTotal\n")).collect();
        let [_, damaged, total] = blocks[..] else { panic!("{text}") };
        assert!(damaged.starts_with("b.log\nOriginal log size: 139 bytes\n"), "{text}");
        assert!(
            damaged.ends_with(
                " MB/s

2 corrupt batches are left out of the figures above:
  byte 156: crc_mismatch: stored 0x00000000, computed 0x12345678
  byte 517: crc_mismatch: stored 0x00000000, computed 0x12345678
Incomplete last batch at byte 890: 1848 bytes
"
            ),
            "{text}"
        );
        assert!(total.starts_with("Original log size: 4020178 bytes\n"), "{text}");
        assert!(total.contains("  1/3 batches contain >1 message\n"), "{text}");
        assert!(total.contains("type:\n  none: 2\n  lz4: 1\n\n"), "{text}");
        let last = " MB/s\n\n2 corrupt batches are left out of the figures above.\n";
        assert!(total.ends_with(last), "{text}");
    }

    #[test]
    fn remarks_are_short() {
        let mut segment = damaged("a.log");
        segment.figures.batches.corrupt = 0;
        segment.trailing.as_mut().unwrap().kind = "garbage";
        let fault = segment.errors.pop().unwrap();
        let say = |segment: &SegmentReport| {
            let mut out = Vec::new();
            remarks(segment, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            say(&segment),
            "\n1 fault:\n  byte 156: crc_mismatch: stored 0x00000000, computed 0x12345678\n\
             Not readable as Kafka entries from byte 890: 1848 bytes\n"
        );
        segment.errors = vec![fault; 7];
        segment.trailing = None;
        let text = say(&segment);
        assert!(text.starts_with("\n7 faults:\n"), "{text}");
        assert!(text.ends_with("computed 0x12345678\n  and 2 more\n"), "{text}");
        assert_eq!(text.lines().count(), 1 + 1 + 5 + 1);
        segment.errors.clear();
        assert_eq!(say(&segment), "");
        segment.trailing = damaged("").trailing;
        segment.trailing.as_mut().unwrap().kind = "zero_padding";
        assert_eq!(say(&segment), "\nZero padding from byte 890: 1848 bytes\n");
    }

    #[test]
    fn columns_widen_together() {
        let mut segment = kip("a.log");
        segment.figures.codecs[0].compressed_bytes = u64::MAX;
        segment.figures.codecs[0].time = Duration::from_secs(123_456_789);
        let mut out = Vec::new();
        let specs = ["zstd:-131072".parse().unwrap(), "gzip".parse().unwrap()];
        table(&segment.figures, &specs, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lens: Vec<usize> = out.lines().map(str::len).collect();
        assert_eq!(lens, [lens[0]; 3], "{out}");
        assert!(out.contains("zstd:-131072     18446744073709551615 -114717"), "{out}");
        assert!(out.contains(" 123456789000ms "), "{out}");
    }

    #[test]
    fn rounding_is_javas() {
        for (value, decimals, expected) in [
            (0.0, 2, "0.00"),
            (0.125, 2, "0.13"),
            (0.375, 2, "0.38"),
            (1.005, 2, "1.01"),
            (1.004_999, 2, "1.00"),
            (2.5, 0, "3"),
            (3.5, 0, "4"),
            (0.4, 0, "0"),
            (99.995, 2, "100.00"),
            (9.5, 0, "10"),
            (-0.125, 2, "-0.13"),
            (-0.004, 2, "0.00"),
            (-30.113, 2, "-30.11"),
            (1e21, 2, "1000000000000000000000.00"),
            (1e-9, 2, "0.00"),
            (f64::INFINITY, 2, "inf"),
        ] {
            assert_eq!(round_half_up(value, decimals), expected, "{value}");
        }
        assert_eq!(milliseconds(Duration::from_micros(1_499)), 1);
        assert_eq!(milliseconds(Duration::from_micros(1_500)), 2);
    }
}
