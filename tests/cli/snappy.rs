//! `std-host snappy`.

use std::fs;

use serde_json::{Value, json};

use crate::{Run, run, run_with_input, segment};

fn snappy(args: &[&str], input: &[u8]) -> Run {
    run_with_input(["snappy"].iter().chain(args), input)
}

fn encode(plain: &[u8], block_size: &str) -> Vec<u8> {
    snappy(&["encode", "--block-size", block_size], plain).expect(0).bytes
}

fn inspect(stream: &[u8], code: i32) -> Vec<Value> {
    snappy(&["inspect", "--format", "json"], stream).expect(code).lines()
}

/// Text that compresses, of a length that is no multiple of a block's.
fn plain() -> Vec<u8> {
    (0..20_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect()
}

#[test]
fn what_is_encoded_decodes() {
    let plain = plain();
    for size in ["1024", "32768", "1000000"] {
        let stream = encode(&plain, size);
        assert!(stream.starts_with(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"));
        assert!(stream.len() < plain.len());
        for framing in ["auto", "xerial"] {
            let run = snappy(&["decode", "--framing", framing], &stream).expect(0);
            assert!(run.bytes == plain, "{size} {framing}");
        }
        // The rest of the stream's header tells of it; blocks add up.
        let lines = inspect(&stream, 0);
        let blocks = plain.len().div_ceil(size.parse().unwrap());
        assert_eq!(lines.len(), blocks + 2);
        let want = json!({"type": "header", "position": 0, "version": 1, "compatible_version": 1});
        assert_eq!(lines[0], want);
        let last = lines.last().unwrap();
        assert_eq!(last["blocks"], blocks);
        assert_eq!(last["uncompressed_size"], plain.len());
        assert_eq!(last["file_size"], stream.len());
    }
    assert_eq!(encode(b"", "32768").len(), 16);
    assert!(snappy(&["decode"], &encode(b"", "32768")).expect(0).bytes.is_empty());
}

#[test]
fn streams_one_behind_the_other_and_raw_blocks() {
    let (a, b) = (encode(b"first", "32768"), encode(b"second", "32768"));
    let both = [a, b].concat();
    assert_eq!(snappy(&["decode"], &both).expect(0).bytes, b"firstsecond");
    let types: Vec<Value> = inspect(&both, 0).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(types, ["header", "block", "header", "block", "stream"]);
    // 12 bytes: "ab", then ten more from two back.
    let raw = [12, 0x04, b'a', b'b', (10 - 4) << 2 | 1, 2];
    for framing in ["auto", "raw"] {
        let run = snappy(&["decode", "--framing", framing], &raw).expect(0);
        assert_eq!(run.bytes, b"abababababab");
    }
    let want = json!({
        "type": "raw", "position": 0, "compressed_size": 6, "uncompressed_size": 12
    });
    assert_eq!(inspect(&raw, 0), [want]);
    snappy(&["decode", "--framing", "xerial"], &raw).expect(3);
    snappy(&["decode", "--framing", "raw"], &both).expect(3);
}

/// The payload of a batch that Kafka's Java client wrote.
#[test]
fn reads_what_kafka_wrote() {
    let segment = fs::read(segment("webhooks-snappy.log")).unwrap();
    let size = 12 + u32::from_be_bytes(segment[8..12].try_into().unwrap()) as usize;
    let payload = &segment[61..size];
    let plain = snappy(&["decode"], payload).expect(0).bytes;
    let last = inspect(payload, 0).pop().unwrap();
    assert_eq!(last["uncompressed_size"], plain.len());
    let dump = run_with_input(["dump", "--format", "json", "-"], &segment[..size]).lines();
    assert_eq!(dump[0]["uncompressed_records_size"], plain.len());
    // The blocks are those that a producer makes, so that encoding gives as many.
    let lines = inspect(&encode(&plain, "32768"), 0);
    assert_eq!(lines.last().unwrap()["blocks"], last["blocks"]);
}

#[test]
fn faults_are_named_with_their_byte() {
    let stream = encode(&plain(), "32768");
    let second = 16 + 4 + u32::from_be_bytes(stream[16..20].try_into().unwrap()) as usize;
    // Cut within the second block: what is before it comes out, and the fault is told.
    let cut = snappy(&["decode"], &stream[..second + 100]).expect(3);
    assert!(cut.bytes == plain()[..cut.bytes.len()] && cut.bytes.len() >= 32768);
    assert!(cut.err.contains(&format!("byte {}", second + 100)), "{}", cut.err);
    inspect(&stream[..second + 100], 3);
    // Less than a length is the end, as for snappy-java.
    snappy(&["decode"], &stream[..second + 3]).expect(0);
    inspect(&stream[..second + 3], 0);
    for (at, byte) in [(second, 0xff), (second + 4, 0xff)] {
        let mut bad = stream.clone();
        bad[at] = byte;
        let run = snappy(&["decode"], &bad).expect(3);
        assert!(run.err.contains("byte "), "{}", run.err);
    }
    let mut zero = stream.clone();
    zero[second..second + 4].fill(0);
    assert!(snappy(&["inspect"], &zero).expect(3).err.contains(&format!("byte {second}")));
    snappy(&["decode"], &zero).expect(3);
    for action in ["inspect", "decode"] {
        snappy(&[action], b"").expect(3);
        snappy(&[action], &[0xff; 40]).expect(3);
        run(["snappy", action, "/nonexistent/stream"]).expect(1);
    }
}
