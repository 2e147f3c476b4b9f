//! `std-host dump` of the files beside a segment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{Run, program, run, side};

const INDEX: &str = "00000000000000000050.index";
const TIME_INDEX: &str = "00000000000000000050.timeindex";
const TXN_INDEX: &str = "00000000000000000050.txnindex";
const SNAPSHOT: &str = "00000000000000000125.snapshot";
const EPOCHS: &str = "leader-epoch-checkpoint";
const LOG: &str = "00000000000000000050.log";

/// A directory with some files of Kafka's, to be changed.
struct Partition(tempfile::TempDir);

impl Partition {
    fn with(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::copy(side("orders-0").join(name), directory.path().join(name)).unwrap();
        }
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Overwrites some bytes of a file.
    fn patch(&self, name: &str, at: usize, bytes: &[u8]) {
        let mut all = self.bytes(name);
        all[at..at + bytes.len()].copy_from_slice(bytes);
        self.write(name, &all);
    }

    fn dump(&self, name: &str, options: &[&str]) -> Run {
        dump(&self.path(name), options)
    }
}

fn dump(path: &Path, options: &[&str]) -> Run {
    run([&["dump", path.to_str().unwrap()], options].concat())
}

/// The faults of a file, told alike on standard error and in JSON.
fn faults(path: &Path) -> Vec<String> {
    let text = dump(path, &[]).expect(3);
    let json = dump(path, &["--format", "json"]).expect(3);
    assert_eq!(text.error_lines(), json.error_lines());
    let lines = json.lines();
    let errors: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "error")
        .map(|line| {
            assert_eq!(line["kind"], "side_file");
            format!("byte {}: {}", line["position"], line["detail"].as_str().unwrap())
        })
        .collect();
    let told: Vec<_> = text
        .error_lines()
        .iter()
        .map(|line| {
            line.strip_prefix(&format!("std-host: {}: ", path.display())).unwrap().to_owned()
        })
        .collect();
    assert_eq!(errors, told);
    assert_eq!(lines.last().unwrap()["type"], "side_file", "the report is whole");
    errors
}

fn last_line(path: &Path) -> Value {
    dump(path, &["--format", "json"]).lines().pop().unwrap()
}

/// What `org.apache.kafka.tools.DumpLogSegments` of Kafka 4.4.0 prints, byte for byte.
#[test]
fn the_lines_of_kafkas_own_tool() {
    let files = [INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT].join(",");
    let output = program()
        .args(["dump", "--files", &files])
        .current_dir(side("orders-0"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let run = Run::of(output).expect(0);
    assert_eq!(run.out, fs::read_to_string(side("orders-0/kafka-dump-log.txt")).unwrap());
    assert_eq!(run.err, "");
}

#[test]
fn json_lines() {
    for (name, count, first, last) in [
        (
            INDEX,
            10,
            json!({"type": "offset_index", "offset": 57, "position": 680}),
            json!({"type": "offset_index", "offset": 122, "position": 6921}),
        ),
        (
            TIME_INDEX,
            9,
            json!({"type": "time_index", "timestamp": 1_700_000_002_507i64, "offset": 57}),
            json!({"type": "time_index", "timestamp": 1_700_000_014_181i64, "offset": 124}),
        ),
        (
            TXN_INDEX,
            9,
            json!({"type": "aborted_txn", "version": 0, "producer_id": 4000, "first_offset": 52,
                   "last_offset": 58, "last_stable_offset": 57}),
            json!({"type": "aborted_txn", "version": 0, "producer_id": 4002, "first_offset": 111,
                   "last_offset": 121, "last_stable_offset": 122}),
        ),
        (
            SNAPSHOT,
            5,
            json!({"type": "producer", "producer_id": 4000, "producer_epoch": 2,
                   "coordinator_epoch": 8, "current_txn_first_offset": 122,
                   "last_timestamp": 1_700_000_013_176i64,
                   "batch": {"first_sequence": 24, "last_sequence": 24, "last_offset": 122,
                             "offset_delta": 0}}),
            json!({"type": "producer", "producer_id": 4004, "producer_epoch": 0,
                   "coordinator_epoch": 1, "current_txn_first_offset": null,
                   "last_timestamp": 1_700_000_014_181i64, "batch": null}),
        ),
    ] {
        let path = side("orders-0").join(name);
        let run = dump(&path, &["--format", "json"]).expect(0);
        let lines = run.lines();
        assert_eq!(lines.len(), count + 1, "{name}");
        assert_eq!((&lines[0], &lines[count - 1]), (&first, &last));
        let has_log = name == INDEX || name == TIME_INDEX;
        let log = has_log.then(|| path.with_file_name(LOG).display().to_string());
        assert_eq!(
            lines[count],
            json!({"type": "side_file", "path": path.to_str().unwrap(), "entries": first["type"],
                   "file_size": fs::metadata(&path).unwrap().len(), "entry_count": count,
                   "trailing_bytes": 0, "trailing_kind": null, "log": log})
        );
    }
}

/// Which Kafka's own tool does not know.
#[test]
fn leader_epochs() {
    let partition = Partition::with(&[]);
    let path = partition.path(EPOCHS);
    partition.write(EPOCHS, b"0\n2\n0 1000\n3 1454\n");
    let text = partition.dump(EPOCHS, &[]).expect(0).out;
    let lines = "epoch: 0 startOffset: 1000\nepoch: 3 startOffset: 1454\n";
    assert_eq!(text, format!("Dumping {}\n{lines}", path.display()));
    let json = partition.dump(EPOCHS, &["--format", "json"]).expect(0).lines();
    assert_eq!(
        json,
        [
            json!({"type": "leader_epoch", "epoch": 0, "start_offset": 1000}),
            json!({"type": "leader_epoch", "epoch": 3, "start_offset": 1454}),
            json!({"type": "side_file", "path": path.to_str().unwrap(), "entries": "leader_epoch",
                   "file_size": 18, "entry_count": 2, "trailing_bytes": 0, "trailing_kind": null,
                   "log": null}),
        ]
    );
    partition.write(EPOCHS, b"");
    assert_eq!(partition.dump(EPOCHS, &[]).expect(0).out, format!("Dumping {}\n", path.display()));
    partition.write(EPOCHS, b"0\n4\n0 1000\n3 x\n3 900\n");
    assert_eq!(
        faults(&path),
        [
            "byte 11: entry: \"3 x\" is not an epoch and an offset",
            "byte 15: start_offset: 900 is not above 1000 of the entry before",
            "byte 2: count: 4 entries are declared, the file has 3",
        ]
    );
    // Other checkpoints are not read.
    partition.write("recovery-point-offset-checkpoint", b"0\n0\n");
    partition.dump("recovery-point-offset-checkpoint", &[]).expect(2);
}

/// As a broker has them: 10 MiB, nearly all of it never written.
#[test]
fn a_zero_tail_is_told_and_is_no_damage() {
    for (name, size, count) in [(INDEX, 10_485_760, 10), (TIME_INDEX, 10_485_756, 9)] {
        let partition = Partition::with(&[name]);
        let mut bytes = partition.bytes(name);
        let zeros = size - bytes.len();
        bytes.resize(size, 0);
        partition.write(name, &bytes);
        let text = partition.dump(name, &[]).expect(0);
        let tail = format!("Found {zeros} preallocated bytes at the end of {name}\n");
        assert!(text.out.ends_with(&tail), "{}", text.out);
        assert_eq!(text.out.lines().count(), count + 2);
        let last = last_line(&partition.path(name));
        assert_eq!(last["entry_count"], count);
        assert_eq!(
            (&last["trailing_kind"], &last["trailing_bytes"]),
            (&json!("zero_padding"), &json!(zeros))
        );
    }
    // Written by Kafka so.
    for (name, count, zeros) in [(INDEX, 10, 80), (TIME_INDEX, 8, 60)] {
        let path = side("live").join(name);
        dump(&path, &[]).expect(0);
        let last = last_line(&path);
        assert_eq!((&last["entry_count"], &last["trailing_bytes"]), (&json!(count), &json!(zeros)));
    }
}

#[test]
fn empty_files() {
    let partition = Partition::with(&[LOG]);
    for name in [INDEX, TIME_INDEX, TXN_INDEX] {
        for bytes in [&[][..], &[0; 4080]] {
            if name == TXN_INDEX && !bytes.is_empty() {
                continue; // never preallocated
            }
            partition.write(name, bytes);
            let path = partition.path(name);
            let text = partition.dump(name, &[]).expect(0).out;
            let is_empty = text.contains(&format!("{} is empty.\n", path.display()));
            assert_eq!(is_empty, name == INDEX, "{text}");
            assert_eq!(last_line(&path)["entry_count"], 0);
        }
    }
    partition.write(SNAPSHOT, &[]);
    let fault = "byte 0: size: 0 bytes are fewer than the 10 of a header";
    assert_eq!(faults(&partition.path(SNAPSHOT)), [fault]);
}

#[test]
fn truncated_files() {
    let partition = Partition::with(&[INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT]);
    for (name, fault, count, trailing) in [
        (INDEX, "byte 72: size: 75 bytes end with 3 of an entry of 8", 9, 3),
        (TIME_INDEX, "byte 96: size: 103 bytes end with 7 of an entry of 12", 8, 7),
        (TXN_INDEX, "byte 272: size: 301 bytes end with 29 of an entry of 34", 8, 29),
        (SNAPSHOT, "byte 6: count: 5 entries make 240 bytes, the file has 235", 0, 0),
    ] {
        let bytes = partition.bytes(name);
        partition.write(name, &bytes[..bytes.len() - 5]);
        let path = partition.path(name);
        assert_eq!(faults(&path), [fault]);
        let last = last_line(&path);
        assert_eq!(
            (&last["entry_count"], &last["trailing_bytes"]),
            (&json!(count), &json!(trailing))
        );
        let kind = if trailing > 0 { json!("partial_entry") } else { Value::Null };
        assert_eq!(last["trailing_kind"], kind);
    }
    // At any length there is an answer.
    for name in [INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT] {
        let bytes = fs::read(side("orders-0").join(name)).unwrap();
        for n in 0..40.min(bytes.len()) {
            partition.write(name, &bytes[..n]);
            let code = partition.dump(name, &[]).code;
            assert!(code == 0 || code == 3, "{name} of {n} bytes: {code}");
        }
    }
}

#[test]
fn corrupt_files() {
    for (name, at, bytes, fault) in [
        (INDEX, 8, &[0xff; 4][..], "byte 8: relative_offset: -1 is negative"),
        (INDEX, 8, &[0, 0, 0, 3], "byte 8: relative_offset: 3 is not above 7 of the entry before"),
        (INDEX, 12, &[0, 0, 2, 0xa8], "byte 8: position: 680 is not above 680 of the entry before"),
        (INDEX, 8, &[0; 16], "byte 8: entry: 16 bytes of zeros, and entries behind them"),
        (TIME_INDEX, 12, &[0x80], "byte 12: timestamp: -9223370336854771289 is negative"),
        (TIME_INDEX, 23, &[6], "byte 12: relative_offset: 6 is below 7 of the entry before"),
        (TXN_INDEX, 35, &[1], "byte 34: version: 1 is not 0"),
        (TXN_INDEX, 36, &[0xff], "byte 34: producer_id: -72057594037923934 is negative"),
        (TXN_INDEX, 59, &[57], "byte 34: last_offset: 57 is not above the first offset 57"),
        (SNAPSHOT, 1, &[2], "byte 0: version: 2 is not 1"),
        (SNAPSHOT, 40, &[0xff], ""),
        (
            SNAPSHOT,
            6,
            &[0x7f],
            "byte 6: count: 2130706437 entries make 98012496112 bytes, the file has 240",
        ),
    ] {
        // Without the segment, so that the file speaks for itself.
        let partition = Partition::with(&[name]);
        partition.patch(name, at, bytes);
        let faults = faults(&partition.path(name));
        if fault.is_empty() {
            assert_eq!(faults.len(), 1);
            assert!(faults[0].starts_with("byte 2: crc: stored 0x0ea7df30, computed 0x"));
            assert_eq!(last_line(&partition.path(name))["entry_count"], 0, "nothing is believed");
        } else {
            assert_eq!(faults, [fault]);
        }
    }
}

#[test]
fn compared_with_the_segment() {
    let partition = Partition::with(&[LOG, INDEX, TIME_INDEX]);
    // Within the batch instead of its end, as where several were appended at once; and the
    // timestamps of two batches.
    partition.patch(INDEX, 8, &14i32.to_be_bytes());
    partition.patch(TIME_INDEX, 24, &1_700_000_005_047i64.to_be_bytes());
    partition.patch(TIME_INDEX, 68, &48i32.to_be_bytes());
    for (name, told, warnings) in [
        (
            INDEX,
            vec![
                format!("Mismatches in :{}", partition.path(INDEX).display()),
                "  Index offset: 64, log offset: 65".to_owned(),
            ],
            vec!["Index offset: 64, log offset: 65"],
        ),
        (
            TIME_INDEX,
            vec![
                format!("Found timestamp mismatch in :{}", partition.path(TIME_INDEX).display()),
                "  Index timestamp: 1700000005047, log timestamp: 1700000005046".to_owned(),
                "The following indexed offsets are not found in the log.".to_owned(),
                "Indexed offset: 98, found log offset: 99".to_owned(),
            ],
            vec![
                "Index timestamp: 1700000005047, log timestamp: 1700000005046",
                "Indexed offset: 98, found log offset: 99",
            ],
        ),
    ] {
        // Odd, no damage.
        let text = partition.dump(name, &[]).expect(0);
        assert_eq!(text.err.lines().collect::<Vec<_>>(), told);
        let quiet = partition.dump(name, &["--verify-index-only"]).expect(0);
        assert_eq!(quiet.err, text.err);
        assert_eq!(quiet.out, format!("Dumping {}\n", partition.path(name).display()));
        for options in [&["--format", "json"][..], &["--format", "json", "--verify-index-only"]] {
            let lines = partition.dump(name, options).expect(0).lines();
            let seen: Vec<_> =
                lines.iter().filter_map(|line| line["warnings"][0].as_str()).collect();
            assert_eq!(seen, warnings);
            if options.len() > 2 {
                assert_eq!(lines.len(), warnings.len() + 1);
            }
        }
    }
}

/// An index that a search would go wrong with.
#[test]
fn what_the_segment_contradicts_is_damage() {
    for (name, at, bytes, fault) in [
        (INDEX, 76, 6922, "byte 72: position: no batch starts at byte 6922 of the segment"),
        (INDEX, 76, 9000, "byte 72: position: no batch starts at byte 9000 of the segment"),
        (
            INDEX,
            72,
            71,
            "byte 72: position: the batch at byte 6921 of the segment starts with offset 122, above 121",
        ),
        (TIME_INDEX, 104, 75, "byte 96: relative_offset: the segment ends before offset 125"),
    ] {
        let partition = Partition::with(&[LOG, name]);
        partition.patch(name, at, &i32::to_be_bytes(bytes));
        assert_eq!(faults(&partition.path(name)), [fault]);
    }
    // An index that was flushed before its segment, which a crash then cut.
    let partition = Partition::with(&[LOG, INDEX]);
    let log = partition.bytes(LOG);
    partition.write(LOG, &log[..6950]);
    let fault = "byte 72: position: no batch starts at byte 6921 of the segment";
    assert_eq!(faults(&partition.path(INDEX)), [fault]);
    // What is no segment at all is told.
    let partition = Partition::with(&[INDEX]);
    fs::create_dir(partition.path(LOG)).unwrap();
    partition.dump(INDEX, &[]).expect(1);
}

#[test]
fn the_check_of_a_broker() {
    let option = &["--index-sanity-check"][..];
    for name in [INDEX, TIME_INDEX] {
        let path = side("orders-0").join(name);
        let passed = format!("Dumping {0}\n{0} passed sanity check.\n", path.display());
        assert_eq!(dump(&path, option).expect(0).out, passed);
        let json = dump(&path, &["--index-sanity-check", "--format", "json"]).expect(0);
        assert_eq!(json.lines().len(), 1);
        let partition = Partition::with(&[name]);
        let mut bytes = partition.bytes(name);
        bytes.push(0);
        partition.write(name, &bytes);
        assert!(partition.dump(name, option).expect(3).err.contains(": size: "));
    }
    // A broker that was killed builds this one anew, and keeps the other.
    let killed = dump(&side("live").join(TIME_INDEX), option).expect(3);
    let fault = "byte 144: timestamp: last timestamp 0 is below the first, 1700000002507";
    assert!(killed.err.contains(fault), "{}", killed.err);
    dump(&side("live").join(INDEX), option).expect(0);
}

#[test]
fn names_and_files_that_cannot_be() {
    let partition = Partition::with(&[INDEX, TXN_INDEX, SNAPSHOT]);
    let renamed = |from: &str, to: &str| {
        fs::copy(partition.path(from), partition.path(to)).unwrap();
        dump(&partition.path(to), &[])
    };
    assert!(renamed(INDEX, "orders.index").expect(1).err.contains("base offset"));
    // These do not depend on it.
    renamed(TXN_INDEX, "orders.txnindex").expect(0);
    renamed(SNAPSHOT, "orders.snapshot").expect(0);
    // Noise is damage, never a panic, and its lines have an end.
    let noise: Vec<u8> =
        (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for name in [INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT, EPOCHS, "9223372036854775807.index"] {
        partition.write(name, &noise);
        let run = partition.dump(name, &[]).expect(3);
        assert!(run.error_lines().len() <= 1001);
        partition.dump(name, &["--format", "json"]).expect(3);
    }
}
