//! `std-host cursor`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Run, corpus, run, run_with_input};

const CODECS: [&str; 4] = ["lz4", "zlib", "zstd", "snappy"];

fn cursor(args: &[&str], input: &[u8]) -> Run {
    run_with_input(["cursor"].iter().chain(args), input)
}

fn case(name: &str) -> PathBuf {
    corpus().join("cases").join(name)
}

fn plain() -> Vec<u8> {
    fs::read(case("160-pulsar-all-codecs-magic-4778").join("cursor-plain.bin")).unwrap()
}

/// A case's inputs with what has to come of each.
fn inputs(name: &str) -> Vec<(PathBuf, Value)> {
    let folder = case(name);
    let expect: Value =
        serde_json::from_slice(&fs::read(folder.join("expect.json")).unwrap()).unwrap();
    let inputs = expect["inputs_expect"].as_object().unwrap();
    inputs.iter().map(|(name, want)| (folder.join(name), want.clone())).collect()
}

/// Asserts that every field of `want` is in `got`.
fn has(got: &Value, want: &Value, at: &str) {
    for (name, want) in want.as_object().unwrap() {
        match want {
            Value::Object(_) if name == "cursor" => has(&got[name], want, at),
            _ => assert_eq!(&got[name], want, "{at}: {name}"),
        }
    }
}

#[test]
fn all_codecs_of_pulsar() {
    let inputs = inputs("160-pulsar-all-codecs-magic-4778");
    assert_eq!(inputs.len(), 6);
    for (path, mut want) in inputs {
        let name = path.to_str().unwrap();
        want.as_object_mut().unwrap().remove("outcome");
        let report = run(["cursor", "inspect", name]).expect(0).json();
        if want["compressed"] == false {
            assert_eq!(report["magic"], Value::Null);
            assert_eq!(report["compression_type"], Value::Null);
            want = json!({"compressed": false, "cursor": want["cursor"]});
        } else {
            assert_eq!(report["magic"], "0x4778");
        }
        has(&report, &want, name);
        assert_eq!(report["warnings"], json!([]));
        let stored = fs::read(&path).unwrap();
        assert_eq!(report["sizes"]["stored"], stored.len());
        assert_eq!(report["sizes"]["plain"], plain().len());
        assert!(run(["cursor", "decompress", name]).expect(0).bytes == plain());
        assert!(cursor(&["decompress"], &stored).expect(0).bytes == plain());
    }
}

#[test]
fn what_is_told_of_a_cursor() {
    let report = cursor(&["inspect"], &plain()).expect(0).json();
    let backlog = &report["backlog"];
    assert_eq!(backlog["mark_delete"], json!([8123, 99]));
    assert_eq!((&backlog["ranges"], &backlog["ranges_in_one_ledger"]), (&json!(300), &json!(300)));
    assert_eq!(backlog["position_is_here"], true);
    assert_eq!(report["cursor"].get("individualDeletedMessages"), None);
    // The sum of the ranges' lengths, and each of them only if asked for.
    let full = cursor(&["inspect", "--full"], &plain()).expect(0).json();
    let ranges = full["cursor"]["individualDeletedMessages"].as_array().unwrap();
    let entries = ranges.iter().map(|range| {
        range["upperEndpoint"]["entryId"].as_i64().unwrap()
            - range["lowerEndpoint"]["entryId"].as_i64().unwrap()
    });
    assert_eq!(backlog["entries_in_them"], entries.sum::<i64>());
    assert_eq!(ranges.len(), 300);
    // The sizes are those that compress writes.
    for codec in report["sizes"]["codecs"].as_array().unwrap() {
        let name = codec["compression_type"].as_str().unwrap();
        let node = cursor(&["compress", "--codec", name], &plain()).expect(0).bytes;
        assert_eq!(codec["size"], node.len());
        assert_eq!(codec["fits"], true);
    }
    let small = cursor(&["inspect", "--limit", "1000"], &plain()).expect(0).json();
    assert_eq!((&small["sizes"]["fits"], &small["sizes"]["limit"]), (&json!(false), &json!(1000)));
    let text = cursor(&["inspect", "--format", "text", "--limit", "1000"], &plain()).expect(0).out;
    for line in [
        "-: ManagedCursorInfo, plain\n",
        "Mark-delete position: 8123:99\n",
        "Individually deleted: 300 ranges of ",
        "First and last range: (8123:103, 8123:107], (8123:2230, 8123:2232]\n",
        "ratio 1.00; a node may have 1000: too large\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn draft_is_read_with_a_note() {
    let folder = case("161-pulsar-draft-magic-4779");
    let expect: Value =
        serde_json::from_slice(&fs::read(folder.join("expect.json")).unwrap()).unwrap();
    let input = folder.join("input.bin");
    let name = input.to_str().unwrap();
    let report = run(["cursor", "inspect", name]).expect(0).json();
    has(&report, &json!({"magic": "0x4779", "cursor": expect["cursor"]}), name);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1);
    let plain = run(["cursor", "decompress", name]).expect(0);
    assert!(plain.err.contains("input.bin: byte 0: magic: 0x4779"), "{}", plain.err);
    let node = run(["cursor", "recompress", "--codec", "zstd", name]).expect(0);
    assert!(node.err.contains("0x4779") && node.bytes.starts_with(b"\x47\x78"));
    assert_eq!(cursor(&["decompress"], &node.bytes).expect(0).bytes, plain.bytes);
}

#[test]
fn malformed_envelopes_name_byte_and_field() {
    let inputs = inputs("163-pulsar-malformed-envelopes");
    assert_eq!(inputs.len(), 21);
    for (path, want) in inputs {
        let file = path.file_name().unwrap().to_str().unwrap();
        let field = match (file, want["error"]["kind"].as_str().unwrap()) {
            ("one-byte.bin", _) => "byte 0: magic: ",
            ("two-bytes.bin" | "five-bytes.bin", _) => ": metadata size: cut after ",
            (name, _) if name.starts_with("meta-size") => "byte 2: metadata size: ",
            ("meta-no-size.bin", _) => "byte 6: metadata.uncompressedSize: is required",
            ("meta-empty.bin" | "type-9.bin", _) => "byte 6: metadata.compressionType: ",
            ("meta-garbage.bin", _) => "byte 6: metadata.tag: ",
            (_, "pulsar_size_mismatch") => ": metadata.uncompressedSize: ",
            (_, "decompress_truncated") => "): ends too early",
            (_, "protobuf_missing_required") => {
                "byte 0: ManagedCursorInfo.cursorsLedgerId: is required and missing"
            }
            other => panic!("{other:?}"),
        };
        for action in ["inspect", "decompress"] {
            let run = run(["cursor", action, path.to_str().unwrap()]).expect(3);
            let lines = run.error_lines();
            assert!(run.bytes.is_empty() && lines.len() == 1, "{file}: {lines:?}");
            assert!(lines[0].contains(&format!("{file}: byte ")), "{lines:?}");
            assert!(lines[0].contains(field), "{file}: {lines:?}");
        }
    }
}

#[test]
fn compress_and_recompress() {
    let plain = plain();
    for codec in CODECS {
        let node = cursor(&["compress", "--codec", codec], &plain).expect(0).bytes;
        assert!(node.starts_with(b"\x47\x78") && node.len() < plain.len());
        for other in CODECS {
            let again = cursor(&["recompress", "--codec", other], &node).expect(0).bytes;
            let direct = cursor(&["compress", "--codec", other], &plain).expect(0).bytes;
            assert!(again == direct, "{codec} {other}");
        }
        assert!(cursor(&["recompress", "--codec", "none"], &node).expect(0).bytes == plain);
        // Only what is larger than the threshold.
        for (threshold, is_plain) in [(plain.len() - 1, false), (plain.len(), true)] {
            let threshold = threshold.to_string();
            let args = ["compress", "--codec", codec, "--threshold", &threshold];
            assert_eq!(cursor(&args, &plain).expect(0).bytes == plain, is_plain);
        }
        let twice = cursor(&["compress", "--codec", codec], &node).expect(3);
        assert!(twice.err.contains("-: byte 0: magic: 0x4778"), "{}", twice.err);
    }
    // What no broker could read is not written.
    assert!(cursor(&["compress", "--codec", "lz4"], b"\x10\x07").expect(3).bytes.is_empty());
}

#[test]
fn ledgers() {
    // Ledger 5 with 10 entries of 1000 bytes, and one that is open; terminated at 5:9.
    let plain = b"\x0a\x07\x08\x05\x10\x0a\x18\xe8\x07\x0a\x02\x08\x06\x12\x04\x08\x05\x10\x09";
    let node = cursor(&["compress", "--kind", "ledger", "--codec", "zlib"], plain).expect(0).bytes;
    let report = cursor(&["inspect", "--kind", "ledger", "--full"], &node).expect(0).json();
    let want = json!({
        "ledgerInfo_count": 2, "first_ledger": 5, "last_ledger": 6, "entries": 10, "size": 1000,
        "offloaded_count": 0, "terminatedPosition": [5, 9], "properties": {},
    });
    has(&report["ledger"], &want, "ledger");
    assert_eq!(report["ledger"]["ledgerInfo"][0]["entries"], 10);
    assert_eq!(report["ledger"]["ledgerInfo"][1]["entries"], Value::Null);
    assert_eq!(report.get("cursor"), None);
    let text = cursor(&["inspect", "--kind", "ledger", "--format", "text"], &node).expect(0).out;
    assert!(text.contains("Ledgers: 2, 0 offloaded; entries: 10, bytes: 1000\n"), "{text}");
    // No ledgers are nothing wrong; and a ledger's node is no cursor's.
    let empty = cursor(&["inspect", "--kind", "ledger"], b"").expect(0).json();
    assert_eq!(empty["ledger"]["ledgerInfo_count"], 0);
    assert!(cursor(&["inspect"], &node).expect(3).err.contains("ManagedCursorInfo."));
}

#[test]
fn analyze_compares_the_four() {
    let folder = case("160-pulsar-all-codecs-magic-4778");
    let names: Vec<String> = ["cursor-plain.bin", "cursor-zstd.bin"]
        .map(|name| folder.join(name).to_str().unwrap().to_owned())
        .into();
    let report = run(["cursor", "analyze", "--format", "json", &names[0], &names[1]]);
    let report = report.expect(0).json();
    assert_eq!(report["schema"], "std-host/cursor-analyze/1");
    let nodes = report["nodes"].as_array().unwrap();
    assert_eq!(nodes[0]["stored_bytes"], 5442);
    assert_eq!(nodes[1]["stored_bytes"], 870);
    for index in 0..4 {
        let of = |figures: &Value| figures["codecs"][index]["compressed_bytes"].as_u64().unwrap();
        assert_eq!(of(&nodes[0]), of(&nodes[1]), "the same message");
        assert_eq!(of(&report["total"]), 2 * of(&nodes[0]));
        assert!(nodes[0]["codecs"][index]["decompress_ns"].as_u64().unwrap() > 0);
    }
    let text = run(["cursor", "analyze", &names[0], &names[1]]).expect(0).out;
    assert_eq!(text.lines().filter(|line| line.starts_with("ZSTD ")).count(), 3);
    assert!(text.contains("\nTotal: 6312 bytes, 10884 plain\n"), "{text}");
    // One that is damaged, or not there, does not stop the others.
    let bad = case("163-pulsar-malformed-envelopes").join("type-9.bin");
    let some = run(["cursor", "analyze", bad.to_str().unwrap(), &names[0]]).expect(3);
    assert!(some.out.contains("cursor-plain.bin: 5442 bytes"), "{}", some.out);
    run(["cursor", "analyze", "/nonexistent/node", bad.to_str().unwrap(), &names[0]]).expect(1);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let input = case("160-pulsar-all-codecs-magic-4778").join("cursor-plain.bin");
    for args in [&["inspect", "--full"][..], &["decompress"], &["analyze"]] {
        let mut program = crate::program();
        crate::ends_quietly_without_a_reader(program.arg("cursor").args(args).arg(&input));
    }
}

#[test]
fn limits() {
    let node = cursor(&["compress", "--codec", "zstd"], &plain()).expect(0).bytes;
    let run = cursor(&["inspect", "--max-bytes", "5441"], &node).expect(3);
    assert!(run.err.contains("byte 6: metadata.uncompressedSize: 5442 is more"), "{}", run.err);
    cursor(&["inspect", "--max-bytes", "5442"], &node).expect(0);
    let run = cursor(&["inspect", "--max-bytes", "5441"], &plain()).expect(3);
    assert!(run.err.contains("-: byte 5441: node: "), "{}", run.err);
    for action in ["inspect", "decompress", "analyze"] {
        crate::run(["cursor", action, "/nonexistent/node"]).expect(1);
    }
}
