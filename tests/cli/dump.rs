//! `std-host dump`.

use std::fs;

use serde_json::{Value, json};

use crate::{case, run, run_with_input, segment};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Three records with headers and a null key.
const THREE: &str = "00000000000000640000005b0000000502387757e70000000000020000018bcfe568000000018bcfe56805ffffffffffffffffffffffffffff0000000328000000046b310a68656c6c6f0402680278026e0116000a02010a776f726c640010000104046b330100";

#[test]
fn the_lines_of_kafka_dump_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("00000000000000000100.log");
    fs::write(&path, hex(THREE)).unwrap();
    let path = path.to_str().unwrap();
    let batch = "baseOffset: 100 lastOffset: 102 count: 3 baseSequence: -1 lastSequence: -1 \
                 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 5 isTransactional: false \
                 isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: \
                 1700000000005 size: 103 magic: 2 compresscodec: none crc: 947345383 isvalid: true";
    let head = format!("Dumping {path}\nLog starting offset: 100\n{batch}\n");
    assert_eq!(run(["dump", path]).expect(0).out, head);
    let records = "\
        | offset: 100 CreateTime: 1700000000000 keySize: 2 valueSize: 5 sequence: -1 headerKeys: [h,n] key: k1 payload: hello\n\
        | offset: 101 CreateTime: 1700000000005 keySize: -1 valueSize: 5 sequence: -1 headerKeys: [] payload: world\n\
        | offset: 102 CreateTime: 1699999999999 keySize: 2 valueSize: -1 sequence: -1 headerKeys: [] key: k3\n";
    let deep = run(["dump", "--print-data-log", "--files", path]).expect(0);
    assert_eq!(deep.out, format!("{head}{records}"));
    // Keys and values only on request.
    // The path may have any letters.
    let plain = run(["dump", "--deep-iteration", path]).expect(0).out.replace(path, "");
    assert!(plain.contains("keySize: 2") && !plain.contains("hello") && !plain.contains("k1"));
    let bare = run(["dump", "--print-data-log", "--skip-record-metadata", path]).expect(0).out;
    assert!(bare.ends_with("| key: k1 payload: hello\n| payload: world\n| key: k3\n"), "{bare}");
}

#[test]
fn json_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("three.log");
    fs::write(&path, hex(THREE)).unwrap();
    let path = path.to_str().unwrap();
    let lines = run(["dump", "--format", "json", "--print-data-log", path]).expect(0).lines();
    assert_eq!(lines.len(), 5);
    let batch = json!({
        "type": "batch", "position": 0, "size": 103, "magic": 2, "base_offset": 100,
        "last_offset": 102, "codec": "none", "crc": 947_345_383u32, "crc_valid": true,
        "timestamp_type": "CreateTime", "base_timestamp": 1_700_000_000_000i64,
        "max_timestamp": 1_700_000_000_005i64, "producer_id": -1, "producer_epoch": -1,
        "base_sequence": -1, "partition_leader_epoch": 5, "is_transactional": false,
        "is_control": false, "delete_horizon_ms": null, "header_record_count": 3,
        "uncompressed_records_size": 42, "record_count": 3,
        "records_digest": lines[0]["records_digest"],
    });
    assert_eq!(lines[0], batch);
    assert_eq!(
        lines[1],
        json!({"type": "record", "offset": 100, "timestamp": 1_700_000_000_000i64, "key_len": 2,
               "value_len": 5, "headers": [["h", "78"], ["n", null]], "key": "azE=",
               "value": "aGVsbG8="})
    );
    assert_eq!(lines[2]["key"], Value::Null);
    assert_eq!(
        lines[4],
        json!({"type": "segment", "path": path, "file_size": 103, "valid_bytes": 103,
               "trailing_bytes": 0, "trailing_kind": null, "batch_count": 1, "record_count": 3})
    );
    let deep = run(["dump", "--format", "json", "--deep-iteration", path]).expect(0).lines();
    assert!(deep[1].get("key").is_none() && deep[1].get("value").is_none());
}

#[test]
fn a_pipe_gives_what_the_file_gives() {
    for name in ["birdstrikes-mixed.log", "quakes-v1-mixed.log"] {
        let path = segment(name);
        let from_file = run(["dump", "--format", "json", path.to_str().unwrap()]).expect(0);
        let from_pipe =
            run_with_input(["dump", "--format", "json", "-"], &fs::read(&path).unwrap()).expect(0);
        let renamed = from_file.out.replace(path.to_str().unwrap(), "-");
        assert_eq!(from_pipe.out, renamed);
    }
}

#[test]
fn damage_is_named_and_passed_over() {
    let path = case("126-crc-mismatch-in-the-middle");
    let run = run(["dump", "--format", "json", path.to_str().unwrap()]).expect(3);
    let lines = run.lines();
    let bad: Vec<_> = lines.iter().filter(|line| line.get("error").is_some()).collect();
    assert_eq!(bad.len(), 3);
    for line in &bad {
        assert_eq!(line["error"]["kind"], "crc_mismatch");
        assert_eq!((&line["crc_valid"], &line["record_count"]), (&json!(false), &Value::Null));
    }
    assert!(
        lines.iter().filter(|line| line["type"] == "batch" && line.get("error").is_none()).count()
            >= 2
    );
    // stored 3708646060, computed 2834034413 at byte 199 + 17
    let want = format!(
        "std-host: {}: byte 216: batch crc: stored 0xdd0d72ac, computed 0xa8ebeeed",
        path.display()
    );
    assert_eq!(run.error_lines()[0], want);
    let text = crate::run(["dump", path.to_str().unwrap()]).expect(3).out;
    assert_eq!(text.matches("isvalid: false").count(), 3);
}

#[test]
fn the_tail_is_told_and_is_no_damage() {
    for (name, kind, bytes) in [
        ("120-partial-trailing-batch", "partial_batch", 1848),
        ("122-preallocated-zero-tail", "zero_padding", 20000),
        ("124-batch-length-huge", "partial_batch", 200),
    ] {
        let path = case(name);
        let path = path.to_str().unwrap();
        let lines = run(["dump", "--format", "json", path]).expect(0).lines();
        let last = lines.last().unwrap();
        assert_eq!(last["trailing_kind"], kind, "{name}");
        assert_eq!(last["trailing_bytes"], bytes, "{name}");
        let text = run(["dump", path]).expect(0).out;
        assert!(text.ends_with(&format!("Found {bytes} invalid bytes at the end of input.log\n")));
    }
}

#[test]
fn a_prefix_on_request() {
    let path = segment("levels.log");
    let path = path.to_str().unwrap();
    let all = run(["dump", "--format", "json", path]).expect(0).lines();
    let second = all[1]["position"].as_u64().unwrap();
    let third = all[2]["position"].as_u64().unwrap();
    for most in [third, third + 40, third + 100] {
        let most = most.to_string();
        let some = run(["dump", "--format", "json", "--max-bytes", &most, path]).expect(0).lines();
        assert_eq!(some.len(), 3, "two batches and the segment");
        assert_eq!(some[1]["position"], second);
        assert_eq!(some[2]["trailing_bytes"], 0);
        let text = run(["dump", "--max-bytes", &most, path]).expect(0).out;
        assert!(!text.contains("invalid bytes"));
    }
}

#[test]
fn limits_cost_one_batch_only() {
    let path = segment("levels.log");
    let path = path.to_str().unwrap();
    let sizes: Vec<u64> = run(["dump", "--format", "json", path])
        .lines()
        .iter()
        .filter_map(|line| line.get("size")?.as_u64())
        .collect();
    let most = *sizes.iter().max().unwrap();
    let limited =
        run(["dump", "--format", "json", "--max-batch-bytes", &(most - 1).to_string(), path])
            .expect(3);
    let errors: Vec<_> =
        limited.lines().into_iter().filter(|line| line["type"] == "error").collect();
    assert_eq!(errors.len(), sizes.iter().filter(|&&size| size == most).count());
    assert_eq!(errors[0]["kind"], "batch_length_limit");
    let batches = limited.lines().iter().filter(|line| line["type"] == "batch").count();
    assert_eq!(batches + errors.len(), sizes.len());
    let unpacked =
        run(["dump", "--format", "json", "--max-decompressed-bytes", "1000", path]).expect(3);
    assert!(
        unpacked.out.contains("decompress_limit") && unpacked.out.contains("limit of 1000 bytes")
    );
}

/// Every type of KRaft's control records, as `DumpLogSegments` of Kafka 4.4.0 has them.
#[test]
fn control_records_of_kraft() {
    let path = case("144-kraft-control-records");
    let text = run(["dump", "--deep-iteration", path.to_str().unwrap()]).expect(0).out;
    let said: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once(" sequence: -1 headerKeys: [] ").map(|(_, said)| said))
        .collect();
    assert_eq!(
        said,
        [
            r#"LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[{"voterId":1}]}"#,
            r#"KRaftVersion {"version":0,"kRaftVersion":1}"#,
            r#"KRaftVoters {"version":0,"voters":[{"voterId":1,"voterDirectoryId":"tpx8pd1IQDqJwMfGzXj6GA","endpoints":[{"name":"CONTROLLER","host":"localhost","port":9093}],"kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}"#,
            r#"SnapshotHeader {"version":0,"lastContainedLogTimestamp":10000}"#,
            r#"SnapshotFooter {"version":0}"#,
        ]
    );
}
