//! Whole segments written by Kafka's own classes, against its figures.

use logseg_core::{Batches, Codec, Cpu, Limits, TailKind};
use logseg_tests::build::Rec;
use logseg_tests::corpus::{Segment, segments};
use logseg_tests::digest::kafka_digest;
use logseg_tests::pack::unpack;
use logseg_tests::read;
use logseg_tests::read::{Reading, owned};
use serde_json::json;

fn bytes(field: Option<&Vec<u8>>) -> u64 {
    field.map_or(0, |bytes| bytes.len() as u64)
}

/// As a line of `expect.ndjson` has it.
fn figures(segment: &Segment, reading: &Reading) -> serde_json::Value {
    let mut codecs = serde_json::Map::new();
    let (mut plain, mut multi) = (0, 0);
    for batch in &reading.batches {
        let codec = batch.header.codec().unwrap();
        let count = codecs.entry(codec.name()).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap() + 1);
        let header = if batch.header.magic.number() == 2 { 61 } else { 0 };
        plain += batch.end.records_bytes + header;
        multi += u64::from(batch.records.len() > 1);
    }
    let records: Vec<&Rec> = reading.records().collect();
    let offsets = records.first().zip(records.last()).unwrap();
    let nulls = |of: fn(&Rec) -> bool| records.iter().filter(|r| of(r)).count();
    json!({
        "file": segment.expect["file"],
        "original_bytes": reading.batches.iter().map(|b| b.header.size).sum::<u64>(),
        "uncompressed_bytes": plain,
        "batches": reading.batches.len(),
        "records": records.len(),
        "multi_record_batches": multi,
        "control_batches": reading.batches.iter().filter(|b| b.header.is_control()).count(),
        "first_offset": offsets.0.offset,
        "last_offset": offsets.1.offset,
        "max_timestamp": records.iter().map(|r| r.timestamp).max(),
        "key_bytes": records.iter().map(|r| bytes(r.key.as_ref())).sum::<u64>(),
        "value_bytes": records.iter().map(|r| bytes(r.value.as_ref())).sum::<u64>(),
        "null_keys": nulls(|r| r.key.is_none()),
        "null_values": nulls(|r| r.value.is_none()),
        "headers": records.iter().map(|r| r.headers.len()).sum::<usize>(),
        "records_sha256": kafka_digest(records.iter().copied()),
        "input_batches_by_codec": codecs,
    })
}

fn same(segment: &Segment, a: &Reading, b: &Reading) {
    let name = &segment.file.name;
    assert_eq!(a.batches.len(), b.batches.len(), "{name}");
    for (a, b) in a.batches.iter().zip(&b.batches) {
        assert_eq!(a.header, b.header, "{name}");
        assert_eq!(a.end, b.end, "{name}");
        assert!(a.records == b.records, "{name}: batch at {}", a.header.position);
    }
    assert_eq!((&a.errors, a.tail), (&b.errors, b.tail), "{name}");
}

#[test]
fn figures_are_those_of_kafka() {
    let segments = segments();
    assert_eq!(segments.len(), 10);
    for segment in &segments {
        let large = read(&segment.file.bytes, 16 << 20, Limits::default());
        let mut got = figures(segment, &large);
        for (field, want) in segment.expect.as_object().unwrap() {
            if let Some(got) = got.get_mut(field) {
                assert_eq!(got, want, "{}: {field}", segment.file.name);
            }
        }
        assert_eq!(large.tail.kind, TailKind::Clean);
        assert_eq!(large.tail.position, segment.file.bytes.len() as u64);
        // Little more than what the codecs' history takes.
        let small = read(&segment.file.bytes, (64 << 10) + 2000, Limits::default());
        same(segment, &small, &large);
        let middle = read(&segment.file.bytes, (128 << 10) + 1234, Limits::default());
        same(segment, &middle, &large);
        independent(segment, &large);
    }
}

/// Decompressed by other libraries, then walked as a slice.
fn independent(segment: &Segment, reading: &Reading) {
    let batches = Batches::new(&segment.file.bytes, Cpu::scalar());
    for (batch, read) in batches.zip(&reading.batches) {
        let batch = batch.unwrap();
        let header = *batch.header();
        assert_eq!(header, read.header);
        let codec = header.codec().unwrap();
        let records: Vec<Rec> = if codec == Codec::None {
            batch.records().unwrap().map(|record| owned(&record.unwrap())).collect()
        } else {
            batch.check_crc().unwrap();
            let plain = unpack(codec, header.magic.number(), batch.payload().unwrap()).unwrap();
            assert_eq!(plain.len() as u64, read.end.records_bytes);
            batch.records_in(&plain).unwrap().map(|record| owned(&record.unwrap())).collect()
        };
        assert!(records == read.records, "{} at {}", segment.file.name, header.position);
    }
}
