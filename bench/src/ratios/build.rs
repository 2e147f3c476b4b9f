//! Batches written by core's builder and by `kafka-protocol`.

use kafka_protocol::records::Record;
use logseg_core::codec::BuiltinCompressors;
use logseg_core::{Batches, Codec};

use super::{head, race, row};
use crate::building::{batches, build, encode, lz4_memory};
use crate::segment::{Mix, Segment};

/// Bytes of records.
const LEN: usize = 1 << 20;

/// Prints a line for no codec, and for lz4 at the level of `kafka-protocol` and fast.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    head("batches");
    let segment = Segment::grouped(Mix::Mid, Codec::None, 48, LEN);
    let all = batches(&segment.bytes);
    let mut lz4 = lz4_memory();
    let mut compressors = BuiltinCompressors::new().with_lz4(&mut lz4);
    let mut memory = vec![0; 256 << 10];
    for (codec, level, mark) in
        [(Codec::None, None, "2"), (Codec::Lz4, Some(4), "2"), (Codec::Lz4, Some(0), "")]
    {
        if only.is_some_and(|only| only != codec.name()) {
            continue;
        }
        for batch in &all {
            let ours = build(batch, codec, &mut compressors, &mut memory);
            let theirs = encode(batch, level);
            assert_eq!(parse(ours), parse(&theirs));
            if codec == Codec::None {
                // What `kafka-protocol` reads of both is the same.
                let [ours, theirs] = [ours, &theirs].map(|bytes| batches(bytes).concat());
                assert!(ours.iter().zip(&theirs).all(|(a, b)| same(a, b)), "the records differ");
            }
        }
        let [core, kafka] = race(
            rounds,
            1,
            &segment.records,
            [
                &mut || {
                    let mut records = 0;
                    for batch in &all {
                        build(batch, codec, &mut compressors, &mut memory);
                        records += batch.len() as u64;
                    }
                    records
                },
                &mut || {
                    let mut records = 0;
                    for batch in &all {
                        std::hint::black_box(encode(batch, level));
                        records += batch.len() as u64;
                    }
                    records
                },
            ],
        );
        let peer = level.map_or("kafka-protocol".into(), |level| format!("the same, {level}"));
        row(codec.name(), segment.records, ("builder", core), (&peer, kafka), mark);
    }
}

fn same(a: &Record, b: &Record) -> bool {
    (a.offset, a.timestamp, &a.key, &a.value) == (b.offset, b.timestamp, &b.key, &b.value)
}

/// Number of records and base offset of a batch whose checksum is right.
fn parse(batch: &[u8]) -> (i32, i64) {
    let mut batches = Batches::new(batch, std_host::cpu::detect());
    let batch = batches.next().expect("a batch").expect("a batch");
    batch.check_crc().expect("a good batch");
    (batch.header().record_count.unwrap_or(0), batch.header().base_offset)
}
