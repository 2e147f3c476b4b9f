//! `std-host analyze`.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::{case, corpus, run, run_with_input, segment};

/// A report without what differs from run to run.
fn without_times(mut report: Value) -> Value {
    let mut segments: Vec<&mut Value> = Vec::new();
    let object = report.as_object_mut().unwrap();
    for (_, value) in object.iter_mut() {
        match value {
            Value::Array(all) => segments.extend(all.iter_mut()),
            Value::Object(_) => segments.push(value),
            _ => {}
        }
    }
    for segment in segments {
        for codec in segment["codecs"].as_array_mut().unwrap() {
            codec["compress_ns"] = Value::Null;
            codec["compress_mib_per_s"] = Value::Null;
        }
    }
    report
}

fn near(got: &Value, want: &Value, percent: f64, what: &str) {
    let (got, want) = (got.as_f64().unwrap(), want.as_f64().unwrap());
    assert!((got - want).abs() <= want * percent / 100.0, "{what}: {got}, expected {want}");
}

/// Counts and sizes as computed with Kafka's own classes.
#[test]
fn figures_are_those_of_kafka() {
    let expected = fs::read_to_string(corpus().join("segments/expect.ndjson")).unwrap();
    let mut seen = 0;
    for want in expected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let name = want["file"].as_str().unwrap();
        let path = segment(name);
        let report = run(["analyze", "--format", "json", path.to_str().unwrap()]).expect(0).json();
        assert_eq!(report["schema"], "std-host/analyze/1");
        let got = &report["segments"][0];
        for field in ["original_bytes", "uncompressed_bytes", "records", "input_batches_by_codec"] {
            assert_eq!(got[field], want[field], "{name} {field}");
        }
        assert_eq!(got["batches"]["total"], want["batches"], "{name}");
        assert_eq!(got["batches"]["multi_record"], want["multi_record_batches"], "{name}");
        assert_eq!(got["batches"]["corrupt"], 0);
        near(&got["geomean_batch_bytes_original"], &want["geomean_batch_original"], 1e-3, name);
        for row in got["codecs"].as_array().unwrap() {
            let codec = row["codec"].as_str().unwrap();
            let figures = &want["codecs"][codec];
            if figures["compressed_bytes"] == 0 {
                // zstd does not exist below magic 2.
                assert_eq!(row["compressed_bytes"], got["uncompressed_bytes"]);
                continue;
            }
            let percent = if matches!(codec, "snappy" | "lz4") { 2.0 } else { 1.5 };
            let what = format!("{name} {codec}");
            near(&row["compressed_bytes"], &figures["compressed_bytes"], percent, &what);
            near(&row["geomean_batch_ratio"], &figures["geomean_ratio"], percent, &what);
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen} segments");
}

#[test]
fn the_number_of_threads_changes_nothing_but_time() {
    let paths = ["birdstrikes-mixed.log", "levels.log", "quakes-v1-mixed.log"].map(segment);
    let damaged = case("126-crc-mismatch-in-the-middle");
    let report = |threads: &str| {
        let run =
            run(["analyze", "--format", "json", "--threads", threads, "--codecs", "snappy,lz4"]
                .iter()
                .map(std::ffi::OsStr::new)
                .chain(paths.iter().chain([&damaged]).map(|path| path.as_os_str())))
            .expect(3);
        (without_times(run.json()), run.err)
    };
    let one = report("1");
    for threads in ["2", "3", "8"] {
        assert_eq!(report(threads), one, "{threads} threads");
    }
}

/// Case 200: exact figures, by hand and by Kafka's definitions.
#[test]
fn known_numbers() {
    let path = case("200-analyzer-known-numbers");
    let report = run(["analyze", "--format", "json", path.to_str().unwrap()]).expect(0).json();
    let got = &report["segments"][0];
    assert_eq!(got["original_bytes"], 36277);
    assert_eq!(got["uncompressed_bytes"], 71884);
    assert_eq!(got["records"], 288);
    assert_eq!(
        got["batches"],
        json!({"total": 24, "multi_record": 18, "control": 0, "empty": 0, "corrupt": 0})
    );
    assert_eq!(
        got["input_batches_by_codec"],
        json!({"none": 12, "gzip": 3, "snappy": 3, "lz4": 3, "zstd": 3})
    );
    near(&got["original_ratio"], &json!(1.981_531), 1e-3, "ratio");
    near(&got["original_savings_percent"], &json!(49.534), 1e-2, "savings");
    near(&got["mean_batch_bytes_original"], &json!(1_511.541_7), 1e-3, "mean");
    assert_eq!(got["trailing"], json!({"kind": "partial_batch", "position": 36277, "bytes": 100}));
    let mut total = report["total"].clone();
    assert!(total.get("path").is_none());
    total["path"] = got["path"].clone();
    for field in ["original_bytes", "records", "batches", "codecs"] {
        assert_eq!(total[field], got[field], "{field}");
    }
}

#[test]
fn text_has_the_lines_of_the_kip() {
    let path = segment("levels.log");
    let path = path.to_str().unwrap();
    let out = run(["analyze", path]).expect(0).out;
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], format!("Analyzing {path}"));
    assert_eq!(lines[1], "Original log size: 404386 bytes");
    assert_eq!(lines[2], "Uncompressed log size: 3783386 bytes");
    assert_eq!(lines[3], "Original compression ratio: 9.36");
    assert_eq!(lines[4], "Original space savings: 89.31%");
    assert!(lines.contains(&"Batch stats:"));
    assert!(lines.contains(&"  71/71 batches contain >1 message"));
    assert!(lines.contains(&"  Avg messages/batch: 127.01"));
    assert!(lines.contains(&"Number of input batches by compression type:"));
    let table = lines.iter().position(|line| line.starts_with("COMPRESSION-TYPE")).unwrap();
    for (row, codec) in lines[table + 1..].iter().zip(["gzip", "snappy", "lz4", "zstd"]) {
        assert!(row.starts_with(codec) && row.ends_with(" MB/s"), "{row}");
    }
    // Several files: a block each, then the total.
    let both =
        run(["analyze", "--codecs", "snappy", "--logs", &format!("{path},{path}")]).expect(0);
    assert_eq!(both.out.matches(&format!("Analyzing {path}")).count(), 2);
    let (_, total) = both.out.split_once("\nTotal\n").unwrap();
    assert!(total.starts_with("Original log size: 808772 bytes"), "{total}");
}

#[test]
fn levels_and_ranges() {
    let path = case("200-analyzer-known-numbers");
    let path = path.to_str().unwrap();
    let list = "zstd:-7..-5,zstd:1,zstd:19,gzip:1..2,lz4:9,lz4:12,snappy";
    let report = run(["analyze", "--format", "json", "--codecs", list, path]).expect(0).json();
    let rows: Vec<_> = report["total"]["codecs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["codec"].as_str().unwrap().to_owned(), row["level"].as_i64()))
        .collect();
    let want = [
        ("zstd", Some(-7)),
        ("zstd", Some(-6)),
        ("zstd", Some(-5)),
        ("zstd", Some(1)),
        ("zstd", Some(19)),
        ("gzip", Some(1)),
        ("gzip", Some(2)),
        ("lz4", None),
        ("lz4", Some(12)),
        ("snappy", None),
    ];
    assert_eq!(rows, want.map(|(codec, level)| (codec.to_owned(), level)));
    let sizes = |codec: &str, level: i64| {
        let rows = report["total"]["codecs"].as_array().unwrap();
        let row = rows.iter().find(|row| row["codec"] == codec && row["level"] == level);
        row.unwrap()["compressed_bytes"].as_u64().unwrap()
    };
    assert!(sizes("zstd", 19) < sizes("zstd", 1) && sizes("zstd", 1) < sizes("zstd", -7));
    let text = run(["analyze", "--codecs", "zstd:9,zstd:3", path]).expect(0).out;
    assert!(text.contains("\nzstd:9 ") && text.contains("\nzstd  "), "{text}");
}

/// Only what is stored uncompressed is compressed; all else counts as it is.
#[test]
fn no_recompression_leaves_compressed_batches_alone() {
    let path = segment("birdstrikes-mixed.log");
    let path = path.to_str().unwrap();
    let lines = run(["dump", "--format", "json", path]).lines();
    let bytes = fs::read(path).unwrap();
    let (mut plain, mut stored) = (Vec::new(), 0);
    for line in lines.iter().filter(|line| line["type"] == "batch") {
        let at = line["position"].as_u64().unwrap() as usize;
        let size = line["size"].as_u64().unwrap() as usize;
        if line["codec"] == "none" {
            plain.extend_from_slice(&bytes[at..at + size]);
        } else {
            stored += size as u64;
        }
    }
    let rest = run_with_input(["analyze", "--format", "json", "-"], &plain).expect(0).json();
    let all = run(["analyze", "--format", "json", "--no-recompression", path]).expect(0).json();
    for (row, part) in all["total"]["codecs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(rest["total"]["codecs"].as_array().unwrap())
    {
        assert_eq!(
            row["compressed_bytes"].as_u64().unwrap(),
            stored + part["compressed_bytes"].as_u64().unwrap()
        );
    }
}

#[test]
fn nothing_to_measure_is_no_nan() {
    let empty = tempfile::NamedTempFile::with_suffix(".log").unwrap();
    let control = case("202-analyzer-nothing-to-measure");
    for path in [empty.path(), control.as_path()] {
        let path = path.to_str().unwrap();
        let report = run(["analyze", "--format", "json", path]).expect(0).json();
        let got = &report["total"];
        assert_eq!(
            (&got["original_ratio"], &got["original_savings_percent"]),
            (&json!(1.0), &json!(0.0))
        );
        for row in got["codecs"].as_array().unwrap() {
            assert_eq!(row["compressed_bytes"], got["original_bytes"]);
            assert_eq!((&row["ratio"], &row["compress_mib_per_s"]), (&json!(1.0), &json!(0.0)));
        }
        let text = run(["analyze", path]).expect(0).out;
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn other_outputs() {
    let path = segment("levels.log");
    let path = path.to_str().unwrap();
    let csv = run(["analyze", "--format", "csv", "--codecs", "gzip:1,lz4", path]).expect(0).out;
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.lines().next().unwrap().contains("compressed_bytes"));
    let verbose = run(["analyze", "--verbose", "--codecs", "lz4", path]).expect(0).out;
    let line = "baseOffset: 0 lastOffset: 0 count: 1 isTransactional: false isControl: false";
    assert_eq!(verbose.matches("baseOffset: ").count(), 71, "{line}");
    assert!(verbose.contains(" compresscodec: gzip uncompressedSize: "));
    let table = verbose.find("COMPRESSION-TYPE").unwrap();
    assert!(verbose.rfind("uncompressedSize").unwrap() < table, "lines come before the table");
    // A report in a file, and nothing on standard output.
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("report.json");
    let quiet = run(["analyze", "--format", "json", path, "--output", output.to_str().unwrap()]);
    assert_eq!(quiet.expect(0).out, "");
    let report: Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
    assert_eq!(report["segments"][0]["path"], path);
    let bar = run(["analyze", "--format", "json", "--progress", "always", path]).expect(0);
    assert!(bar.json()["total"].is_object(), "the bar is on standard error");
}

/// A directory is searched for segments; other files there are not touched.
#[test]
fn directories_and_what_is_broken_in_them() {
    let directory = tempfile::tempdir().unwrap();
    for (partition, from) in [
        ("orders-0", segment("levels.log")),
        ("orders-1", case("120-partial-trailing-batch")),
        ("orders-2", case("126-crc-mismatch-in-the-middle")),
    ] {
        let partition = directory.path().join(partition);
        fs::create_dir(&partition).unwrap();
        fs::copy(from, partition.join("00000000000000000000.log")).unwrap();
        fs::write(partition.join("leader-epoch-checkpoint"), "0\n0\n").unwrap();
        fs::write(partition.join("00000000000000000000.log.deleted"), "no segment").unwrap();
    }
    let path = directory.path().to_str().unwrap();
    let run = run(["analyze", "--format", "json", "--codecs", "snappy", path]).expect(3);
    let report = run.json();
    let segments = report["segments"].as_array().unwrap();
    let paths: Vec<_> = segments.iter().map(|one| one["path"].as_str().unwrap()).collect();
    let want = [0, 1, 2].map(|n| format!("{path}/orders-{n}/00000000000000000000.log"));
    assert_eq!(paths, want);
    assert_eq!(segments[1]["trailing"]["kind"], "partial_batch");
    assert_eq!(segments[2]["batches"]["corrupt"], 3);
    assert_eq!(segments[2]["errors"].as_array().unwrap().len(), 3);
    assert_eq!(report["total"]["batches"]["corrupt"], 3);
    assert!(run.error_lines().iter().all(|line| line.contains("/orders-2/")));
}

/// Rewrites of the file while it is read cannot be timed; what they come to can.
#[test]
fn a_segment_that_is_written_to() {
    let bytes = fs::read(segment("levels.log")).unwrap();
    // Cut anywhere, as a pipe or a crash does.
    for cut in [12, 16, 17, 60, 61, 62, 5000, bytes.len() - 1] {
        let run = run_with_input(
            ["analyze", "--format", "json", "--codecs", "snappy", "-"],
            &bytes[..cut],
        )
        .expect(0);
        let report = run.json();
        let got = &report["segments"][0];
        let valid = got["valid_bytes"].as_u64().unwrap();
        assert_eq!(got["trailing"]["kind"], "partial_batch", "cut at {cut}");
        assert_eq!(valid + got["trailing"]["bytes"].as_u64().unwrap(), cut as u64);
        assert_eq!(got["original_bytes"], valid);
    }
    // A file that grows meanwhile ends where it ended when it was opened.
    let mut file = tempfile::NamedTempFile::with_suffix(".log").unwrap();
    file.write_all(&bytes).unwrap();
    let path = file.path().to_path_buf();
    let writer = std::thread::spawn({
        let bytes = bytes.clone();
        move || {
            for _ in 0..20 {
                file.write_all(&bytes).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            file
        }
    });
    let run = run(["analyze", "--format", "json", "--codecs", "snappy", path.to_str().unwrap()]);
    let report = run.expect(0).json();
    let got = &report["segments"][0];
    assert_eq!(got["batches"]["corrupt"], 0);
    assert!(got["original_bytes"].as_u64().unwrap() >= bytes.len() as u64);
    writer.join().unwrap();
}

/// What would be left with large values in a blob store, by what a dump says of them.
#[test]
fn large_messages() {
    let path = segment("webhooks-lz4.log");
    let path = path.to_str().unwrap();
    let (mut records, mut values, mut bytes) = (0, 0u64, 0u64);
    for line in run(["dump", "--format", "json", "--deep-iteration", path]).lines() {
        if let Some(len) = line["value_len"].as_i64() {
            records += 1;
            values += u64::from(len >= 8000);
            bytes += if len >= 8000 { len.cast_unsigned() } else { 0 };
        }
    }
    assert!(values > 0 && values < records, "{values} of {records}");
    let report = |args: &[&str]| {
        let all = ["analyze", "--format", "json", "--codecs", "snappy,lz4", path];
        run(all.iter().chain(args)).expect(0).json()
    };
    let got = report(&["--large-message-threshold", "8000"]);
    let total = &got["total"];
    let large = &total["large_messages"];
    assert_eq!(large["threshold"], 8000);
    assert_eq!((&large["values"], &large["value_bytes"]), (&json!(values), &json!(bytes)));
    assert_eq!(large["legacy_values"], 0);
    // A record of a reference is larger than that by the length fields, the header and the
    // number of headers; the value's own length field goes.
    let number = |name: &str| large[name].as_u64().unwrap();
    let before = total["uncompressed_bytes"].as_u64().unwrap();
    let most = before - bytes + number("reference_bytes");
    let after = number("uncompressed_bytes");
    assert!((most..most + 64 * values).contains(&after), "{after} of {most}");
    assert_eq!(
        large["uncompressed_savings_percent"].as_f64().unwrap(),
        100.0 * (1.0 - after as f64 / before as f64)
    );
    for (row, with) in
        total["codecs"].as_array().unwrap().iter().zip(large["codecs"].as_array().unwrap())
    {
        assert_eq!((&row["codec"], &row["level"]), (&with["codec"], &with["level"]));
        assert_ne!(row["compressed_bytes"], with["compressed_bytes"]);
    }
    // Everything else is as it is without.
    let mut rest = without_times(got.clone());
    rest["segments"][0].as_object_mut().unwrap().remove("large_messages");
    rest["total"].as_object_mut().unwrap().remove("large_messages");
    assert_eq!(rest, without_times(report(&[])));
    // A longer location is a longer reference.
    let long = format!("s3://bucket/{}", "x".repeat(100));
    let args = ["--large-message-threshold", "8000", "--large-message-store", &long];
    let longer = report(&args)["total"]["large_messages"]["reference_bytes"].as_u64().unwrap();
    let usual = "s3://large-messages/kafka".len() as u64;
    assert_eq!(longer, number("reference_bytes") + values * (long.len() as u64 - usual));
    // Any number of threads.
    let with = |threads: &str| {
        without_times(report(&["--large-message-threshold", "8000", "--threads", threads]))
    };
    assert_eq!(with("1"), with("3"));
    // Of values that nobody has, nothing goes.
    let none = report(&["--large-message-threshold", "1000000000"]);
    let (total, large) = (&none["total"], &none["total"]["large_messages"]);
    assert_eq!(large["values"], 0);
    for name in ["original_bytes", "uncompressed_bytes"] {
        assert_eq!(total[name], large[name]);
    }
    assert_eq!(total["codecs"][1]["compressed_bytes"], large["codecs"][1]["compressed_bytes"]);
}

/// Batches that stay as they are do so with references too; those of v0/v1 always do.
#[test]
fn large_messages_of_some_batches() {
    let path = segment("webhooks-lz4.log");
    let args = ["--no-recompression", "--large-message-threshold", "8000", "--codecs", "gzip,lz4"];
    let all = ["analyze", "--format", "json", path.to_str().unwrap()];
    let report = run(all.iter().chain(&args)).expect(0).json();
    let large = &report["total"]["large_messages"];
    assert_ne!(large["original_bytes"], report["total"]["original_bytes"]);
    for row in large["codecs"].as_array().unwrap() {
        assert_eq!(row["compressed_bytes"], large["original_bytes"], "all are compressed");
    }

    let path = segment("quakes-v1-mixed.log");
    let args = ["analyze", "--large-message-threshold", "1", path.to_str().unwrap()];
    let json = run(args.iter().chain(&["--format", "json"])).expect(0).json();
    let (total, large) = (&json["total"], &json["total"]["large_messages"]);
    let values = run(["dump", "--format", "json", "--deep-iteration", path.to_str().unwrap()]);
    let values = values.lines().iter().filter(|line| line["value_len"].as_i64() > Some(0)).count();
    assert_eq!((&large["values"], &large["legacy_values"]), (&json!(0), &json!(values)));
    assert_eq!(large["original_bytes"], total["original_bytes"]);
    let text = run(args).expect(0).out;
    assert!(text.contains("since v0/v1 messages have no headers\n"), "{text}");
}

#[test]
fn large_messages_as_text_and_csv() {
    let path = segment("webhooks-lz4.log");
    let path = path.to_str().unwrap();
    let args = ["analyze", "--codecs", "lz4,zstd:1", "--large-message-threshold", "8000", path];
    let text = run(args).expect(0).out;
    let (_, text) =
        text.split_once("\n\nWith values of 8000 bytes or more in a blob store:\n").unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("  Values moved: "), "{text}");
    assert!(lines[1].ends_with(" bytes and its header, for s3://large-messages/kafka/TOPIC/ID"));
    assert!(lines[2].starts_with("  Log size, estimated: 601450 -> "), "{text}");
    assert!(lines[3].starts_with("  Uncompressed log size: 2806223 -> "), "{text}");
    assert!(lines[5].starts_with("COMPRESSION-TYPE  COMPRESSED-SIZE  WITH-REFERENCES"), "{text}");
    assert!(lines[6].starts_with("lz4 ") && lines[7].starts_with("zstd:1 "), "{text}");
    assert_eq!(lines.len(), 8);
    let csv = run(args.iter().chain(&["--format", "csv"])).expect(0).out;
    let (head, row) = csv.split_once('\n').unwrap();
    assert!(head.ends_with(
        ",large_values,large_value_bytes,large_reference_bytes,large_legacy_values,\
         large_original_bytes,large_uncompressed_bytes,large_compressed_bytes"
    ));
    let columns = head.split(',').count();
    assert!(row.lines().all(|row| row.split(',').count() == columns), "{row}");
    for args in [&["--large-message-threshold", "0"][..], &["--large-message-store", "s3://x"]] {
        run(["analyze", path].iter().chain(args)).expect(2);
    }
}
