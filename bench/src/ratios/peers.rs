//! Whole segments against `kafka-protocol` and `rskafka`, checksums checked.

use bytes::Bytes;
use logseg_core::{Builtin, Codec};
use std_host::codecs::{HostCodecs, Plain};

use super::{head, race, row};
use crate::payload::zstd_workspace;
use crate::peers::{kafka_protocol, rskafka};
use crate::segment::{Mix, Segment, hosted, records, slice};
use crate::{Bare, split};

/// Bytes of records in a segment, and in one with a batch for every record.
pub const LEN: usize = 64 << 20;
/// As [`LEN`]: `kafka-protocol` takes its time there.
pub const SINGLE: usize = 2 << 20;

/// Prints lines for the uncompressed segment, for each codec and for one record a batch.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    head("batches");
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    if wanted("none") {
        uncompressed(rounds);
    }
    // The marks of core's own decoders and of the host's.
    for (codec, builtin, host) in [
        (Codec::Gzip, "1.2", "2.2"),
        (Codec::Snappy, "1.5", ""),
        (Codec::Lz4, "2", "2.4"),
        (Codec::Zstd, "2", "2.4"),
    ] {
        if wanted(codec.name()) {
            let segment = Segment::grouped(Mix::Mid, codec, 48, LEN);
            compressed(rounds, codec, codec.name(), &segment, builtin, host);
        }
    }
    if wanted("single") {
        let segment = Segment::grouped(Mix::Mid, Codec::Zstd, 1, SINGLE);
        compressed(rounds, Codec::Zstd, "zstd, single", &segment, "8", "8");
    }
}

fn uncompressed(rounds: u32) {
    let segment = Segment::grouped(Mix::Mid, Codec::None, 48, LEN);
    let (bytes, shared) = (&segment.bytes, Bytes::copy_from_slice(&segment.bytes));
    let (mut builtin, mut window) = (Builtin::new(), vec![0; 256 << 10]);
    let want = records(bytes);
    assert_eq!(want.records, segment.records);
    let [core, unpacker, kafka, rs] = race(
        rounds,
        1,
        &want,
        [
            &mut || records(bytes),
            &mut || slice(bytes, &mut builtin, &mut window),
            &mut || kafka_protocol(&shared),
            &mut || rskafka(bytes),
        ],
    );
    for ours in [("Batch::records", core), ("Unpacker", unpacker)] {
        row("none", want.records, ours, ("kafka-protocol", kafka), "4");
        row("none", want.records, ours, ("rskafka", rs), "7");
    }
}

fn compressed(
    rounds: u32,
    codec: Codec,
    name: &str,
    segment: &Segment,
    builtin_mark: &str,
    host_mark: &str,
) {
    let (bytes, shared) = (&segment.bytes, Bytes::copy_from_slice(&segment.bytes));
    let (mut workspace, mut window) = (zstd_workspace(), vec![0; 256 << 10]);
    let mut builtin = Builtin::new().with_zstd(&mut workspace);
    let (mut host, mut plain) = (HostCodecs::default(), Plain::default());
    let want = slice(bytes, &mut builtin, &mut window);
    assert_eq!(want.records, segment.records);
    let snappy = codec == Codec::Snappy;
    let (mut bare, entries) = (Bare::default(), split(bytes));
    let plain_len = |bare: &mut Bare| entries.iter().map(|entry| bare.section(entry).len()).sum();
    let all: usize = plain_len(&mut bare);
    let [core, hosted, kafka, rs, library] = race(
        rounds,
        1,
        &want,
        [
            &mut || slice(bytes, &mut builtin, &mut window),
            &mut || hosted(bytes, &mut host, &mut plain),
            &mut || kafka_protocol(&shared),
            &mut || if snappy { rskafka(bytes) } else { want },
            &mut || {
                assert_eq!(plain_len(&mut bare), all);
                want
            },
        ],
    );
    for (ours, mark) in [(("Builtin", core), builtin_mark), (("HostCodecs", hosted), host_mark)] {
        row(name, want.records, ours, ("kafka-protocol", kafka), mark);
        if snappy {
            row(name, want.records, ours, ("rskafka", rs), "");
        }
    }
    // What of it is the library that the host's decoder calls, contexts kept: at most 1.
    row(name, want.records, ("HostCodecs", hosted), ("  library alone", library), "");
}
