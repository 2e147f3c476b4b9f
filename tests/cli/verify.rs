//! `std-host verify`.

use std::fs;

use serde_json::{Value, json};

use crate::{case, corpus, run, run_with_input, segment};

/// The lines of `verify --format json` for some bytes.
fn verify(bytes: &[u8], code: i32) -> Vec<Value> {
    let lines = run_with_input(["verify", "--format", "json", "-"], bytes).expect(code).lines();
    assert_eq!(lines.last().unwrap()["type"], "segment");
    lines
}

/// The same for a file.
fn verify_file(bytes: &[u8], code: i32) -> Vec<Value> {
    let file = tempfile::NamedTempFile::with_suffix(".log").unwrap();
    fs::write(file.path(), bytes).unwrap();
    run(["verify", "--format", "json", file.path().to_str().unwrap()]).expect(code).lines()
}

/// Position, size, first and last offset of every batch.
fn batches(bytes: &[u8]) -> Vec<(usize, usize, i64, i64)> {
    run_with_input(["dump", "--format", "json", "-"], bytes)
        .lines()
        .iter()
        .filter(|line| line["type"] == "batch")
        .map(|line| {
            let number = |name: &str| line[name].as_i64().unwrap();
            let size = |name: &str| usize::try_from(number(name)).unwrap();
            (size("position"), size("size"), number("base_offset"), number("last_offset"))
        })
        .collect()
}

#[test]
fn good_segments_are_good() {
    for entry in fs::read_dir(corpus().join("segments")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "log") {
            continue;
        }
        let path = path.to_str().unwrap();
        let lines = run(["verify", "--format", "json", path]).expect(0).lines();
        assert_eq!(lines.len(), 1, "{path}");
        let dump = run(["dump", "--format", "json", path]).expect(0).lines();
        for field in ["file_size", "valid_bytes", "batch_count", "record_count", "trailing_kind"] {
            assert_eq!(lines[0][field], dump.last().unwrap()[field], "{path} {field}");
        }
        assert_eq!(lines[0]["lost_bytes"], 0);
        assert!(run(["verify", path]).expect(0).out.ends_with(": ok\n"));
    }
    run(["verify", case("122-preallocated-zero-tail").to_str().unwrap()]).expect(0);
    run(["verify", case("120-partial-trailing-batch").to_str().unwrap()]).expect(0);
}

/// Garbage between batches: found by nothing but the next batch itself.
#[test]
fn goes_on_behind_garbage() {
    let bytes = fs::read(segment("levels.log")).unwrap();
    let all = batches(&bytes);
    for (n, garbage) in [
        (3, vec![0xff; 100_000]),
        (10, b"not a batch".to_vec()),
        (20, vec![2; 70]),
        (70, vec![7; 9]),
    ] {
        let (at, _, base, _) = all[n];
        let mut damaged = bytes.clone();
        let len = garbage.len();
        damaged.splice(at..at, garbage);
        let lines = verify(&damaged, 3);
        let lost: Vec<_> = lines.iter().filter(|line| line["type"] == "lost").collect();
        assert_eq!(lost.len(), 1, "batch {n}");
        assert_eq!((&lost[0]["from"], &lost[0]["to"]), (&json!(at), &json!(at + len)));
        // No offset is missing.
        assert_eq!(lost[0]["first_offset"], json!(base));
        assert_eq!(lost[0]["last_offset"], json!(base - 1));
        let summary = lines.last().unwrap();
        assert_eq!(summary["batch_count"], all.len());
        assert_eq!(summary["lost_bytes"], len);
    }
}

/// Bytes that are missing, or a size field that is wrong, cost the batch they are in and
/// no other.
#[test]
fn a_broken_batch_costs_itself_only() {
    let bytes = fs::read(segment("levels.log")).unwrap();
    let all = batches(&bytes);
    for n in [0, 5, 40] {
        let (at, size, base, last) = all[n];
        let mut missing = bytes.clone();
        missing.drain(at + 30..at + 47);
        let mut longer = bytes.clone();
        longer[at + 11] ^= 0x10;
        let mut huge = bytes.clone();
        huge[at + 8] = 0x7f;
        let mut flipped = bytes.clone();
        flipped[at + size - 1] ^= 1;
        let mut magic = bytes.clone();
        magic[at + 16] = 77;
        for (what, damaged, len) in [
            ("bytes missing", missing, size - 17),
            ("wrong size", longer, size),
            ("flipped bit", flipped, size),
            ("magic", magic, size),
            ("size beyond the end", huge, size),
        ] {
            // As a file: what reaches beyond the buffer or the end takes reading again.
            let lines = verify_file(&damaged, 3);
            let lost: Vec<_> = lines.iter().filter(|line| line["type"] == "lost").collect();
            assert_eq!(lost.len(), 1, "{what} in batch {n}");
            assert_eq!(lost[0]["from"], at, "{what} in batch {n}");
            assert_eq!(lost[0]["to"], at + len, "{what} in batch {n}");
            let before = (n > 0).then_some(base);
            assert_eq!(lost[0]["first_offset"], json!(before), "{what} in batch {n}");
            assert_eq!(lost[0]["last_offset"], last, "{what} in batch {n}");
            let summary = lines.last().unwrap();
            assert_eq!(summary["batch_count"], all.len() - 1, "{what} in batch {n}");
        }
    }
}

/// A size field of a megabyte more covers many good batches.
#[test]
fn a_size_that_swallows_others() {
    let bytes = fs::read(segment("levels.log")).unwrap();
    let all = batches(&bytes);
    let next = all.last().unwrap().3 + 1;
    let mut long = Vec::new();
    for copy in 0..8 {
        for &(at, size, base, _) in &all {
            // Outside of the checksum.
            long.extend((base + copy * next).to_be_bytes());
            long.extend_from_slice(&bytes[at + 8..at + size]);
        }
    }
    long[9] = 0x10;
    let lines = verify_file(&long, 3);
    let (_, size, _, last) = all[0];
    let lost: Vec<_> = lines.iter().filter(|line| line["type"] == "lost").collect();
    assert_eq!(lost.len(), 1);
    assert_eq!((&lost[0]["from"], &lost[0]["to"]), (&json!(0), &json!(size)));
    assert_eq!(lost[0]["last_offset"], last);
    assert_eq!(lines.last().unwrap()["batch_count"], 8 * all.len() - 1);
}

#[test]
fn offsets_must_go_up() {
    let bytes = fs::read(segment("levels.log")).unwrap();
    let (_, first, ..) = batches(&bytes)[0];
    let twice = [&bytes[..first], &bytes[..]].concat();
    let lines = verify(&twice, 3);
    assert_eq!(lines[0]["kind"], "malformed_record_offset_order");
    assert_eq!(lines[0]["position"], first);
    assert_eq!(lines.len(), 2);
}

#[test]
fn other_files_and_lost_ends() {
    let text = "2026-01-01 12:00:00,123 INFO [main] started\n".repeat(5000);
    let lines = verify(text.as_bytes(), 3);
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["error", "lost", "segment"]);
    assert_eq!(lines[1]["to"], text.len());
    assert_eq!((&lines[1]["first_offset"], &lines[1]["last_offset"]), (&Value::Null, &Value::Null));
    let run = run(["verify", case("126-crc-mismatch-in-the-middle").to_str().unwrap()]).expect(3);
    assert!(run.out.contains("lost bytes 199 to 727 (528), offsets 2 to 8 at most"), "{}", run.out);
    assert_eq!(run.error_lines().len(), 3);
}

/// Bytes that look like headers everywhere: it takes seconds at most, not hours.
#[test]
fn garbage_full_of_headers() {
    let pattern = [0u8, 3].repeat(2 << 20);
    let (at, size, ..) = batches(&fs::read(segment("levels.log")).unwrap())[0];
    let good = fs::read(segment("levels.log")).unwrap()[at..at + size].to_vec();
    // A header with everything right but its checksum, again and again.
    let headers = good[..61].repeat(20_000);
    for garbage in [pattern, headers] {
        let start = std::time::Instant::now();
        let bytes = [garbage.as_slice(), &good].concat();
        let lines = verify_file(&bytes, 3);
        assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
        let summary = lines.last().unwrap();
        assert_eq!(summary["batch_count"], 1);
        assert_eq!(summary["lost_bytes"], garbage.len());
    }
}
