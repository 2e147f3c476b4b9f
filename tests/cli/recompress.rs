//! `std-host recompress`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{case, corpus, run, run_with_input};

/// A name in a directory of its own, which must not exist yet.
struct Output(tempfile::TempDir);

impl Output {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("new.log")
    }
}

/// Runs it; gives what was written, if anything.
fn recompress(input: &Path, codec: &str, more: &[&str], code: i32) -> (Option<Vec<u8>>, String) {
    let output = Output::new();
    let path = output.path();
    let mut args = vec!["recompress", input.to_str().unwrap(), "--codec", codec];
    args.extend(["--output", path.to_str().unwrap()]);
    args.extend(more);
    let run = run(args).expect(code);
    let written = fs::read(&path).ok();
    assert_eq!(fs::read_dir(output.0.path()).unwrap().count(), usize::from(written.is_some()));
    (written, run.err)
}

/// The lines of `dump --format json` of some bytes, batches or records.
fn dump(bytes: &[u8]) -> Vec<Value> {
    run_with_input(["dump", "--format", "json", "-"], bytes).lines()
}

fn batches(bytes: &[u8]) -> Vec<Value> {
    dump(bytes).into_iter().filter(|line| line["type"] == "batch").collect()
}

/// Segments of the corpus.
fn segments() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(corpus().join("segments")).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "log")
}

/// What must not change in a batch, whatever its compression.
const SAME: [&str; 16] = [
    "magic",
    "base_offset",
    "last_offset",
    "timestamp_type",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "partition_leader_epoch",
    "is_transactional",
    "is_control",
    "delete_horizon_ms",
    "record_count",
    "records_digest",
    "crc_valid",
];

#[test]
fn everything_but_the_compression_stays() {
    for path in segments() {
        let before = batches(&fs::read(&path).unwrap());
        for codec in ["none", "gzip:1", "snappy", "lz4", "zstd:9"] {
            let is_old = before.iter().any(|batch| batch["magic"] != 2);
            if codec == "zstd:9" && is_old {
                let (written, err) = recompress(&path, codec, &[], 1);
                assert!(written.is_none() && err.contains("is not allowed in magic"), "{err}");
                continue;
            }
            let after = batches(&recompress(&path, codec, &[], 0).0.unwrap());
            let what = format!("{} {codec}", path.display());
            if !is_old {
                assert_eq!(after.len(), before.len(), "{what}");
                for (a, b) in after.iter().zip(&before) {
                    for field in SAME {
                        assert_eq!(a[field], b[field], "{what}: {field} of {b}");
                    }
                    let plain = b["record_count"] == 0 || b["is_control"] == true;
                    let want = if plain {
                        &b["codec"]
                    } else {
                        &Value::from(&codec[..codec.find(':').unwrap_or(codec.len())])
                    };
                    assert_eq!(&a["codec"], want, "{what}");
                }
            }
        }
    }
}

/// Messages of v0/v1 go in and out of wrappers: the same records each way.
#[test]
fn the_records_of_old_messages_stay() {
    let records = |bytes: &[u8]| -> Vec<Value> {
        let args = ["dump", "--format", "json", "--print-data-log", "-"];
        let lines = run_with_input(args, bytes).lines();
        lines.into_iter().filter(|line| line["type"] == "record").collect()
    };
    let mut seen = 0;
    let cases = [
        "100-v1-relative-offsets",
        "102-v0-absolute-offsets",
        "104-v1-log-append-time",
        "105-mixed-magic-in-one-segment",
        "221-recompress-constraints",
    ];
    for path in segments().chain(cases.map(case)) {
        let bytes = fs::read(&path).unwrap();
        if batches(&bytes).iter().all(|batch| batch["magic"] == 2) {
            continue;
        }
        let before = records(&bytes);
        assert!(!before.is_empty());
        for codec in ["none", "gzip", "snappy", "lz4"] {
            let after = recompress(&path, codec, &[], 0).0.unwrap();
            assert!(records(&after) == before, "{} {codec}", path.display());
            run_with_input(["verify", "-"], &after).expect(0);
            seen += before.len();
        }
    }
    assert!(seen > 1000, "{seen}");
}

/// The size is the one that `analyze` told of.
#[test]
fn sizes_are_those_of_analyze() {
    let path = corpus().join("segments/birdstrikes-mixed.log");
    let list = "gzip:1,snappy,lz4,zstd:3";
    let name = path.to_str().unwrap();
    let args = ["analyze", "--format", "json", "--codecs", list, name];
    let report: Value = serde_json::from_str(&run(args).expect(0).out).unwrap();
    let codecs = report["segments"][0]["codecs"].as_array().unwrap();
    assert_eq!(codecs.len(), 4);
    for (codec, figures) in list.split(',').zip(codecs) {
        let written = recompress(&path, codec, &[], 0).0.unwrap();
        assert_eq!(figures["compressed_bytes"], written.len(), "{codec}");
    }
}

#[test]
fn nothing_is_written_over() {
    let input = corpus().join("segments/levels.log");
    let output = Output::new();
    let path = output.path();
    fs::write(&path, "mine").unwrap();
    for target in [path.to_str().unwrap(), input.to_str().unwrap()] {
        let args = ["recompress", input.to_str().unwrap(), "--codec", "lz4", "--output", target];
        let before = fs::read(target).unwrap();
        assert!(run(args).expect(1).err.contains(target));
        assert!(fs::read(target).unwrap() == before);
    }
}

#[test]
fn damage_stops_it_or_is_copied() {
    for name in
        ["126-crc-mismatch-in-the-middle", "029-lz4-truncated-frames", "086-unknown-codec-ids"]
    {
        let path = case(name);
        let bytes = fs::read(&path).unwrap();
        let (written, err) = recompress(&path, "zstd", &[], 3);
        assert!(written.is_none() && err.contains("byte "), "{name}: {err}");
        let written = recompress(&path, "zstd", &["--keep-damaged"], 3).0.unwrap();
        // What is damaged comes out as it went in, so the same is told of it.
        let told = |bytes: &[u8]| -> Vec<Value> {
            let lines = dump(bytes).into_iter();
            lines
                .filter(|line| !line["error"].is_null())
                .map(|line| line["error"]["kind"].clone())
                .collect()
        };
        assert!(!told(&bytes).is_empty(), "{name}");
        assert_eq!(told(&written), told(&bytes), "{name}");
    }
}

#[test]
fn what_is_no_batch_stops_it_or_is_copied() {
    let good = fs::read(corpus().join("segments/levels.log")).unwrap();
    let bytes = [&good[..], b"no batch starts here: neither now nor later"].concat();
    let file = tempfile::NamedTempFile::with_suffix(".log").unwrap();
    fs::write(file.path(), &bytes).unwrap();
    assert!(recompress(file.path(), "none", &[], 3).0.is_none());
    let written = recompress(file.path(), "none", &["--keep-damaged"], 3).0.unwrap();
    assert!(written.ends_with(&bytes[good.len()..]));
    assert_eq!(batches(&written).len(), batches(&good).len());
    // A batch that is too large to be looked into.
    let largest = batches(&good).iter().map(|batch| batch["size"].as_u64().unwrap()).max();
    let limit = (largest.unwrap() - 1).to_string();
    let limits = ["--max-batch-bytes", limit.as_str()];
    assert!(recompress(file.path(), "none", &limits, 3).0.is_none());
    let more = [&limits[..], &["--keep-damaged"]].concat();
    let written = recompress(file.path(), "none", &more, 3).0.unwrap();
    let digests = |bytes: &[u8]| -> Vec<Value> {
        batches(bytes).iter().map(|batch| batch["records_digest"].clone()).collect()
    };
    assert!(digests(&written) == digests(&good));
    // A pipe cannot be gone back in.
    let args = ["recompress", "-", "--codec", "none", "--output", "-", "--keep-damaged"];
    run_with_input(args, &bytes).expect(1);
}

#[test]
fn a_tail_is_left_out_and_told() {
    for name in ["120-partial-trailing-batch", "122-preallocated-zero-tail"] {
        let path = case(name);
        let (written, err) = recompress(&path, "none", &[], 0);
        assert!(err.contains("are left out"), "{err}");
        let lines = dump(&written.unwrap());
        assert_eq!(lines.last().unwrap()["trailing_bytes"], 0);
    }
}

#[test]
fn pipes_at_both_ends() {
    let input = fs::read(corpus().join("segments/levels.log")).unwrap();
    let args = ["recompress", "-", "--codec", "gzip", "--output", "-"];
    let run = run_with_input(args, &input);
    assert_eq!(run.code, 0);
    let digests = |bytes: &[u8]| -> Vec<Value> {
        batches(bytes).iter().map(|batch| batch["records_digest"].clone()).collect()
    };
    assert!(digests(&run.bytes) == digests(&input));
}
