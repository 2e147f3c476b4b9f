//! The walk of uncompressed batches that are in the cache, checksums not counted.

use bytes::Bytes;
use logseg_core::Codec;

use super::{head, race, row};
use crate::peers::{kafka_protocol, kafka_protocol_headers, rskafka_unchecked};
use crate::segment::{Mix, Seen, Segment, folded, records_unchecked};

/// Bytes of records: two batches as producers make them by default, which the first-level
/// cache holds as it does after the pass of a checksum.
pub const LEN: usize = 32 << 10;
/// And as many as only the second-level cache holds, and no branch predictor knows by
/// heart.
const FARTHER: usize = 256 << 10;

/// Prints lines for each mix.
///
/// # Panics
///
/// If the corpus is not there, or an answer is wrong.
pub fn run(rounds: u32, only: Option<&str>) {
    head("mix");
    let mixes = Mix::ALL.into_iter().filter(|mix| only.is_none_or(|only| only == mix.name()));
    for (mix, (len, cache)) in mixes.flat_map(|mix| [(mix, (LEN, "L1")), (mix, (FARTHER, "L2"))]) {
        let segment = Segment::grouped(mix, Codec::None, mix.batch(), len);
        let (bytes, shared) = (&segment.bytes, Bytes::copy_from_slice(&segment.bytes));
        let want = records_unchecked(bytes);
        assert_eq!(want.records, segment.records);
        let [core, fold, kafka, headers, rs] = race(
            rounds * 10,
            (FARTHER / len) as u32,
            &want,
            [
                &mut || records_unchecked(bytes),
                &mut || folded(bytes),
                &mut || kafka_protocol(&shared),
                // It has no records to tell of.
                &mut || Seen { records: kafka_protocol_headers(&shared), ..want },
                &mut || rskafka_unchecked(bytes),
            ],
        );
        let core = ("Batch::records", core);
        let mark = if mix == Mix::Small { "10, at most 5 ns" } else { "10" };
        row(
            &format!("{}, {cache}", mix.name()),
            want.records,
            core,
            ("kafka-protocol", kafka),
            "(its checksum counted)",
        );
        row("", want.records, core, ("  less checksum", kafka.saturating_sub(headers)), mark);
        row("", want.records, core, ("rskafka", rs), "");
        row("", want.records, core, ("  the same, fold", fold), "");
    }
}
