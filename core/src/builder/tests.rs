extern crate std;
#[cfg(any(feature = "lz4", feature = "snappy"))]
use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::batches::Batches;
#[cfg(feature = "lz4")]
use crate::codec::lz4_encode;
#[cfg(feature = "snappy")]
use crate::codec::xerial_encode;
use crate::codec::{BuiltinCompressors, CodecError, Written, compress};

const T: i64 = 1_700_000_000_000;

fn hex(bytes: &[u8]) -> std::string::String {
    bytes.iter().map(|byte| std::format!("{byte:02x}")).collect()
}

type Builder<'c> = MemoryRecordsBuilder<'c, LentBuffer<'c>>;

/// Gives `test` a builder over a buffer of `capacity` bytes.
fn try_with<R>(
    capacity: usize,
    options: BuilderOptions,
    test: impl FnOnce(Result<Builder<'_>, Error>) -> R,
) -> R {
    let mut memory = std::vec![0x5a; capacity];
    #[cfg(feature = "lz4")]
    let mut lz4 = Box::new(lz4_encode::Memory::new());
    #[cfg(feature = "snappy")]
    let mut snappy = Box::new(xerial_encode::Memory::new());
    let compressors = BuiltinCompressors::new();
    #[cfg(feature = "lz4")]
    let compressors = compressors.with_lz4(&mut lz4);
    #[cfg(feature = "snappy")]
    let compressors = compressors.with_snappy(&mut snappy);
    let mut compressors = compressors;
    let buffer = LentBuffer::new(&mut memory);
    test(MemoryRecordsBuilder::new(buffer, options, &mut compressors, Cpu::detect()))
}

fn with<R>(options: BuilderOptions, test: impl FnOnce(Builder<'_>) -> R) -> R {
    try_with(4096, options, |builder| test(builder.unwrap()))
}

fn options(magic: Magic, codec: Codec) -> BuilderOptions {
    BuilderOptions::new(magic, codec)
}

fn fault<T: core::fmt::Debug>(result: Result<T, Error>) -> BuilderFault {
    match result.unwrap_err().kind() {
        ErrorKind::Builder(fault) => fault,
        kind => panic!("{kind}"),
    }
}

#[test]
fn v2_min() {
    with(options(Magic::V2, Codec::None), |mut builder| {
        assert_eq!(builder.append(-1, None, None, &[]), Ok(None));
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000000000038ffffffff02baab5a07000000000000ffffffffffffffffffffffffff\
             ffffffffffffffffffffffffffffffffff000000010c000000010100"
        );
        assert_eq!(builder.info(), RecordsInfo { max_timestamp: -1, offset_of_max_timestamp: -1 });
    });
}

#[test]
fn v2_three() {
    let options =
        options(Magic::V2, Codec::None).with_base_offset(100).with_partition_leader_epoch(5);
    with(options, |mut builder| {
        let headers = [Header { key: b"h", value: Some(b"x") }, Header { key: b"n", value: None }];
        builder.append(T, Some(b"k1"), Some(b"hello"), &headers).unwrap();
        builder.append(T + 5, None, Some(b"world"), &[]).unwrap();
        builder.append_with_offset(102, T - 1, Some(b"k3"), None, &[]).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "00000000000000640000005b0000000502387757e70000000000020000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff0000000328000000046b310a68656c6c6f0402680278026e011600\
             0a02010a776f726c640010000104046b330100"
        );
        assert_eq!((builder.size_in_bytes(), builder.record_count()), (103, 3));
        let info = RecordsInfo { max_timestamp: T + 5, offset_of_max_timestamp: 102 };
        assert_eq!(builder.info(), info);
    });
}

#[test]
fn v2_transactional_with_log_append_time() {
    let producer = ProducerState { producer_id: 4000, producer_epoch: 3, base_sequence: 17 };
    let options = options(Magic::V2, Codec::None)
        .with_base_offset(7)
        .with_partition_leader_epoch(9)
        .with_timestamps(Timestamps::LogAppendTime(1_700_000_001_234))
        .with_producer(producer)
        .with_transactional(true);
    with(options, |mut builder| {
        builder.append(T, Some(b""), Some(b""), &[]).unwrap();
        builder.append(T + 1, Some(b"a"), Some(b"b"), &[]).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "00000000000000070000004100000009029b8d8c6c0018000000010000018bcfe568000000018bcfe56c\
             d20000000000000fa0000300000011000000020c000000000000100002020261026200"
        );
        let info = RecordsInfo { max_timestamp: 1_700_000_001_234, offset_of_max_timestamp: 8 };
        assert_eq!(builder.info(), info);
    });
}

#[test]
fn end_transaction_markers() {
    let producer = ProducerState { producer_id: 4000, producer_epoch: 2, base_sequence: -1 };
    let options = options(Magic::V2, Codec::None)
        .with_base_offset(12)
        .with_partition_leader_epoch(3)
        .with_producer(producer)
        .with_transactional(true)
        .with_control(true);
    for (control_type, want) in [
        (
            ControlType::Commit,
            "000000000000000c000000420000000302049b7c7c0030000000000000018bcfe568000000018bcfe568\
             000000000000000fa00002ffffffff000000012000000008000000010c00000000000800",
        ),
        (
            ControlType::Abort,
            "000000000000000c000000420000000302f0a5aa340030000000000000018bcfe568000000018bcfe568\
             000000000000000fa00002ffffffff000000012000000008000000000c00000000000800",
        ),
    ] {
        with(options, |mut builder| {
            assert_eq!(
                fault(builder.append_end_txn_marker(T, ControlType::LeaderChange, 8)),
                BuilderFault::EndTxnMarker
            );
            assert_eq!(
                fault(builder.append(T, None, None, &[])),
                BuilderFault::ControlRecord,
                "data in a control batch"
            );
            builder.append_end_txn_marker(T, control_type, 8).unwrap();
            assert_eq!(hex(builder.build().unwrap()), want);
        });
    }
    with(options.with_transactional(false), |mut builder| {
        let marker = builder.append_end_txn_marker(T, ControlType::Abort, 8);
        assert_eq!(fault(marker), BuilderFault::EndTxnMarker);
    });
    with(options.with_producer(ProducerState::NONE), |mut builder| {
        let marker = builder.append_end_txn_marker(T, ControlType::Abort, 8);
        assert_eq!(fault(marker), BuilderFault::EndTxnMarker);
    });
    with(options.with_control(false), |mut builder| {
        let marker = builder.append_end_txn_marker(T, ControlType::Abort, 8);
        assert_eq!(fault(marker), BuilderFault::ControlRecord);
    });
}

#[test]
fn leader_change() {
    let options = options(Magic::V2, Codec::None).with_partition_leader_epoch(1).with_control(true);
    with(options, |mut builder| {
        let value = [0, 0, 0, 0, 0, 1, 1, 1, 0];
        builder.append_control(T, ControlType::LeaderChange, &value).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000000000045000000010213d27a030020000000000000018bcfe568000000018bcfe568\
             00ffffffffffffffffffffffffffff000000012600000008000000021200000000000101010000"
        );
    });
}

#[test]
fn delete_horizon_and_a_last_offset_of_ones_own() {
    let options = options(Magic::V2, Codec::None)
        .with_base_offset(50)
        .with_partition_leader_epoch(1)
        .with_delete_horizon(1_700_000_500_000);
    with(options, |mut builder| {
        builder.append_with_offset(51, T, Some(b"k"), None, &[]).unwrap();
        let far = builder.override_last_offset(1 << 40);
        assert_eq!(fault(far), BuilderFault::OffsetDelta { offset: 1 << 40, base: 50 });
        builder.override_last_offset(53).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "00000000000000320000003b00000001024daddb0c0040000000030000018bcfed09200000018bcfe568\
             00ffffffffffffffffffffffffffff000000011200bf843d02026b0100"
        );
        assert_eq!(fault(builder.override_last_offset(54)), BuilderFault::Built);
    });
}

/// The two records of the compressed vectors.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn two(builder: &mut Builder<'_>) {
    builder.append(T, Some(b"k"), Some(&[b'a'; 32]), &[]).unwrap();
    builder.append(T + 1, Some(b"k"), Some(&[b'a'; 32]), &[]).unwrap();
}

#[test]
#[cfg(feature = "snappy")]
fn v2_snappy_of_java() {
    with(options(Magic::V2, Codec::Snappy).with_partition_leader_epoch(0), |mut builder| {
        two(&mut builder);
        assert_eq!(
            hex(builder.build().unwrap()),
            "00000000000000000000005b00000000025a3bfbc70002000000010000018bcfe568000000018bcfe568\
             01ffffffffffffffffffffffffffff0000000282534e4150505900000000010000000100000016501c4e\
             000000026b40617a010010004e0002028e2800"
        );
    });
}

#[test]
#[cfg(feature = "lz4")]
fn v2_lz4_of_java() {
    with(options(Magic::V2, Codec::Lz4).with_partition_leader_epoch(0), |mut builder| {
        two(&mut builder);
        assert_eq!(
            hex(builder.build().unwrap()),
            "00000000000000000000005b00000000029e3ddb3b0003000000010000018bcfe568000000018bcfe568\
             01ffffffffffffffffffffffffffff0000000204224d186040821b0000008f4e000000026b406101000c\
             5f004e00020228000c50616161610000000000"
        );
    });
}

/// The stored streams of the vectors, where an encoder has nothing to match.
#[test]
#[cfg(feature = "snappy")]
fn v2_snappy_stored() {
    with(options(Magic::V2, Codec::Snappy).with_partition_leader_epoch(0), |mut builder| {
        builder.append(T, Some(b"k"), Some(b"v"), &[]).unwrap();
        builder.append(T + 5, None, Some(b"w"), &[]).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "0000000000000000000000580000000002f4a85ee60002000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff0000000282534e4150505900000000010000000100000013114010\
             000000026b0276000e000a0201027700"
        );
    });
}

#[test]
#[cfg(feature = "lz4")]
fn v2_lz4_stored() {
    with(options(Magic::V2, Codec::Lz4).with_partition_leader_epoch(0), |mut builder| {
        builder.append(T, Some(b"k"), Some(b"v"), &[]).unwrap();
        builder.append(T + 5, None, Some(b"w"), &[]).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "0000000000000000000000510000000002058815cb0003000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff0000000204224d186040821100008010000000026b0276000e000a\
             020102770000000000"
        );
    });
}

/// The records of the legacy vectors; gives their CRCs.
fn legacy(builder: &mut Builder<'_>) -> [Option<u32>; 2] {
    [
        builder.append(T, Some(b"k"), Some(&[b'v'; 20]), &[]).unwrap(),
        builder.append(T - 10, None, Some(b"w"), &[]).unwrap(),
    ]
}

#[test]
fn messages_that_are_not_compressed() {
    with(options(Magic::V0, Codec::None).with_base_offset(10), |mut builder| {
        assert_eq!(legacy(&mut builder), [Some(0xfa2d_ca8c), Some(0xa50b_8f63)]);
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000a00000023fa2dca8c0000000000016b00000014767676767676767676767676767676\
             7676767676000000000000000b0000000fa50b8f630000ffffffff0000000177"
        );
        assert_eq!(builder.compression_ratio(), 1.0);
    });
    with(options(Magic::V1, Codec::None).with_base_offset(10), |mut builder| {
        assert_eq!(legacy(&mut builder), [Some(0xe919_2685), Some(0x38ca_124b)]);
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000a0000002be919268501000000018bcfe56800000000016b0000001476767676767676\
             76767676767676767676767676000000000000000b0000001738ca124b01000000018bcfe567f6ffffff\
             ff0000000177"
        );
    });
    let append_time = Timestamps::LogAppendTime(1_700_000_010_000 - 1);
    let options = options(Magic::V1, Codec::None).with_base_offset(10);
    with(options.with_timestamps(append_time), |mut builder| {
        builder.append(T, None, None, &[]).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000a000000164c76985c01080000018bcfe58f0fffffffffffffffff"
        );
    });
}

#[test]
#[cfg(feature = "lz4")]
fn messages_in_a_wrapper_of_lz4() {
    with(options(Magic::V0, Codec::Lz4).with_base_offset(10), |mut builder| {
        legacy(&mut builder);
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000b000000538961cdec0003ffffffff0000004504224d1860401a3600000012000100910a00\
             000023fa2dca8c0f007f016b0000001476010000011f00f00700000b0000000fa50b8f630000ffffffff\
             000000017700000000",
            "with the broken header checksum"
        );
    });
    with(options(Magic::V1, Codec::Lz4).with_base_offset(10), |mut builder| {
        legacy(&mut builder);
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000b0000006268b3f52b01030000018bcfe56800ffffffff0000004c04224d186040823d\
             00000016000100e02be919268501000000018bcfe56818007f016b0000001476010000001e00002a0084\
             0000001738ca124b3700b067f6ffffffff000000017700000000"
        );
    });
}

#[test]
#[cfg(feature = "snappy")]
fn messages_in_a_wrapper_of_snappy() {
    with(options(Magic::V1, Codec::Snappy).with_base_offset(10), |mut builder| {
        legacy(&mut builder);
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000b0000006904de3ad901020000018bcfe56800ffffffff0000005382534e4150505900\
             00000001000000010000003f5a00001901342be919268501000000018bcfe568011818016b0000001476\
             4a010000000901012e101738ca124b010938018bcfe567f6ffffffff0000000177"
        );
    });
    let append_time = Timestamps::LogAppendTime(1_700_000_010_000 - 1);
    let options = options(Magic::V1, Codec::Snappy).with_base_offset(10);
    with(options.with_timestamps(append_time), |mut builder| {
        builder.append(T, Some(b"a"), Some(b"b"), &[]).unwrap();
        assert_eq!(
            hex(builder.build().unwrap()),
            "000000000000000a0000004955da93e1010a0000018bcfe58f0fffffffff0000003382534e4150505900\
             00000001000000010000001f240000190160182433780c01080000018bcfe58f0f000000016100000001\
             62"
        );
    });
}

/// Write limit 200, key of 3 bytes, value of 20, timestamp 1: estimates after each record,
/// and what was built.
fn worked_run(magic: Magic, codec: Codec) -> (Vec<u64>, usize, f32) {
    with(options(magic, codec).with_write_limit(200), |mut builder| {
        let mut estimates = std::vec![builder.estimated_bytes_written()];
        let (key, value) = (Some(&b"key"[..]), Some(&[0; 20][..]));
        while builder.has_room_for(1, key, value, &[]) {
            builder.append(1, key, value, &[]).unwrap();
            estimates.push(builder.estimated_bytes_written());
        }
        let built = builder.build().unwrap().len();
        assert_eq!(builder.size_in_bytes(), built as u64, "exact once it is built");
        (estimates, built, builder.compression_ratio())
    })
}

#[test]
fn the_worked_run() {
    let (estimates, built, ratio) = worked_run(Magic::V2, Codec::None);
    assert_eq!((&estimates[..], built, ratio), (&[61, 91, 121, 151, 181][..], 181, 1.0));
    let (estimates, built, ratio) = worked_run(Magic::V1, Codec::None);
    assert_eq!((&estimates[..], built, ratio), (&[0, 57, 114, 171][..], 171, 1.0));
}

#[test]
#[cfg(feature = "snappy")]
fn the_worked_run_with_snappy() {
    let (estimates, built, ratio) = worked_run(Magic::V2, Codec::Snappy);
    assert_eq!((&estimates[..], built), (&[61, 92, 123, 155, 186][..], 114));
    assert!((ratio - 0.44167).abs() < 1e-5, "{ratio}");
    let (estimates, built, _) = worked_run(Magic::V1, Codec::Snappy);
    assert_eq!((&estimates[..], built), (&[34, 93, 153][..], 88));
}

/// Timestamps 30, 50, 50, 40 in Kafka's own classes.
#[test]
fn info_for_the_time_index() {
    let info = |options: BuilderOptions| {
        with(options, |mut builder| {
            for timestamp in [30, 50, 50, 40] {
                builder.append(timestamp, None, None, &[]).unwrap();
            }
            builder.close().unwrap();
            let info = builder.info();
            (info.max_timestamp, info.offset_of_max_timestamp)
        })
    };
    assert_eq!(info(options(Magic::V0, Codec::None)), (-1, -1));
    assert_eq!(info(options(Magic::V1, Codec::None)), (50, 1));
    assert_eq!(info(options(Magic::V2, Codec::None)), (50, 3));
    let append_time = Timestamps::LogAppendTime(99);
    let stamped = |magic, codec| {
        info(options(magic, codec).with_base_offset(10).with_timestamps(append_time))
    };
    assert_eq!(stamped(Magic::V0, Codec::None), (-1, -1));
    assert_eq!(stamped(Magic::V1, Codec::None), (99, 10));
    assert_eq!(stamped(Magic::V2, Codec::None), (99, 13));
    #[cfg(feature = "lz4")]
    {
        assert_eq!(info(options(Magic::V1, Codec::Lz4)), (50, 3));
        assert_eq!(stamped(Magic::V1, Codec::Lz4), (99, 13));
    }
}

#[test]
fn room_by_kafkas_rule() {
    let key = Some(&[0; 300][..]);
    with(options(Magic::V2, Codec::None).with_write_limit(100), |mut builder| {
        assert!(!builder.is_full(), "not without a record");
        assert!(builder.has_room_for(1, key, None, &[]), "the first always");
        assert_eq!(builder.max_allowed_bytes(), 39);
        assert_eq!(builder.initial_capacity(), 4096);
        builder.append(1, None, Some(&[1; 31]), &[]).unwrap();
        assert_eq!(builder.estimated_bytes_written(), 99);
        assert!(!builder.is_full());
        assert!(!builder.has_room_for(1, None, None, &[]));
        // Nothing that an append is refused for.
        builder.append(1, None, None, &[]).unwrap();
        assert!(builder.is_full());
        builder.close_for_record_appends().unwrap();
        assert_eq!(fault(builder.append(1, None, None, &[])), BuilderFault::NotOpen);
        assert_eq!(builder.build().unwrap().len(), 106);
        assert!(builder.is_closed() && builder.is_full());
    });
    with(options(Magic::V2, Codec::None), |mut builder| {
        builder.close_for_record_appends().unwrap();
        assert!(builder.is_full() && !builder.has_room_for(1, None, None, &[]));
    });
    with(options(Magic::V2, Codec::None).with_write_limit(68 + 70), |mut builder| {
        builder.append(1, None, None, &[]).unwrap();
        let headers = [Header { key: b"h", value: Some(&[0; 59]) }];
        assert!(builder.has_room_for(1, None, None, &headers), "exactly 70");
        assert!(!builder.has_room_for(100, None, None, &headers), "a byte more of delta");
    });
}

#[test]
#[cfg(feature = "lz4")]
fn the_estimate_follows_the_ratio() {
    let options = options(Magic::V2, Codec::Lz4).with_estimated_compression_ratio(0.5);
    with(options, |mut builder| {
        builder.append(1, None, Some(&[7; 992]), &[]).unwrap();
        assert_eq!(builder.uncompressed_bytes_written(), 61 + 1001);
        assert_eq!(builder.estimated_bytes_written(), 61 + 525);
        builder.set_estimated_compression_ratio(1.0);
        assert_eq!(builder.estimated_bytes_written(), 61 + 1051);
        builder.close().unwrap();
        assert!(builder.compression_ratio() < 0.05);
    });
}

#[test]
fn what_is_refused_leaves_the_builder_as_it_was() {
    let producer = ProducerState { producer_id: 1, producer_epoch: 0, base_sequence: 0 };
    let refused = |options: BuilderOptions| try_with(4096, options, |b| b.map(|_| ()));
    for magic in [Magic::V0, Magic::V1] {
        let legacy = options(magic, Codec::None);
        assert_eq!(fault(refused(legacy.with_transactional(true))), BuilderFault::Transactional);
        assert_eq!(fault(refused(legacy.with_control(true))), BuilderFault::ControlBatch);
        assert_eq!(fault(refused(legacy.with_delete_horizon(1))), BuilderFault::DeleteHorizon);
        let zstd = refused(options(magic, Codec::Zstd)).unwrap_err();
        assert_eq!(zstd.kind(), ErrorKind::UnknownCodec { id: 4 });
        with(legacy, |mut builder| {
            let headers = [Header { key: b"h", value: None }];
            assert_eq!(fault(builder.append(1, None, None, &headers)), BuilderFault::Headers);
            builder.set_producer_state(producer, false).unwrap();
            builder.append(1, None, None, &[]).unwrap();
            assert_eq!(fault(builder.close()), BuilderFault::Idempotent);
        });
    }
    let zstd = refused(options(Magic::V2, Codec::Zstd)).unwrap_err();
    assert_eq!(zstd.kind(), ErrorKind::CodecNotBuiltIn { codec: Codec::Zstd });
    let options = options(Magic::V2, Codec::None).with_base_offset(5);
    assert_eq!(fault(refused(options.with_policy(Policy::Legacy))), BuilderFault::LegacyPolicy);
    with(options, |mut builder| {
        builder.append(-1, None, None, &[]).unwrap();
        let before = (builder.estimated_bytes_written(), builder.info(), builder.last_offset());
        let append = |builder: &mut Builder<'_>, offset, timestamp| {
            fault(builder.append_with_offset(offset, timestamp, None, None, &[]))
        };
        let order = BuilderFault::OffsetOrder { offset: 5, previous: 5 };
        assert_eq!(append(&mut builder, 5, 1), order);
        assert_eq!(append(&mut builder, 6, -2), BuilderFault::Timestamp(-2));
        let offset = 6 + i64::from(i32::MAX);
        assert_eq!(append(&mut builder, offset, 1), BuilderFault::OffsetDelta { offset, base: 5 });
        let control = builder.append_control(1, ControlType::Commit, b"");
        assert_eq!(fault(control), BuilderFault::ControlRecord);
        let message = builder.append_message_with_offset(6, b"");
        assert_eq!(fault(message), BuilderFault::Message);
        let after = (builder.estimated_bytes_written(), builder.info(), builder.last_offset());
        assert_eq!(before, after);
        assert_eq!(builder.build().unwrap().len(), 68);
        assert_eq!(builder.build().unwrap().len(), 68, "once more");
        assert_eq!(fault(builder.set_producer_state(producer, false)), BuilderFault::Built);
    });
    // An offset below the base is not refused, as in Kafka.
    with(options, |mut builder| {
        builder.append_with_offset(3, 1, None, None, &[]).unwrap();
        let built = builder.build().unwrap();
        let header = BatchHeader::parse(built, 0).unwrap();
        assert_eq!((header.base_offset, header.last_offset_delta), (5, -2));
    });
}

#[test]
fn the_producer_state_is_checked_when_it_is_closed() {
    let state = |producer_id, producer_epoch, base_sequence| ProducerState {
        producer_id,
        producer_epoch,
        base_sequence,
    };
    let data = options(Magic::V2, Codec::None);
    for (options, want) in [
        (data.with_transactional(true), BuilderFault::ProducerId),
        (data.with_producer(state(1, -1, 0)), BuilderFault::ProducerEpoch),
        (data.with_producer(state(1, 0, -1)), BuilderFault::BaseSequence),
    ] {
        with(options, |mut builder| {
            builder.append(1, None, None, &[]).unwrap();
            assert_eq!(fault(builder.close()), want);
            // It can be mended, and built again with another.
            builder.set_producer_state(state(7, 8, 9), true).unwrap();
            let first = BatchHeader::parse(builder.build().unwrap(), 0).unwrap();
            assert_eq!((first.producer_id, first.base_sequence), (7, 9));
            builder.reopen_and_rewrite_producer_state(state(7, 9, 0), false).unwrap();
            assert_eq!(fault(builder.append(1, None, None, &[])), BuilderFault::NotOpen);
            let built = builder.build().unwrap();
            let batch = Batches::new(built, Cpu::detect()).next().unwrap().unwrap();
            assert_eq!(batch.check_crc(), Ok(()));
            let header = batch.header();
            assert_eq!((header.producer_epoch, header.base_sequence), (9, 0));
            assert!(!header.attributes.is_transactional());
        });
    }
}

#[test]
fn nothing_and_aborted() {
    let none = options(Magic::V2, Codec::None);
    with(none, |mut builder| {
        assert_eq!(builder.build(), Ok(&[][..]), "not an empty batch");
        assert_eq!(builder.into_buffer().len(), 0);
    });
    #[cfg(feature = "lz4")]
    with(options(Magic::V1, Codec::Lz4), |mut builder| {
        assert_eq!(builder.build(), Ok(&[][..]));
    });
    with(none, |mut builder| {
        builder.append(1, None, None, &[]).unwrap();
        builder.abort();
        assert_eq!(fault(builder.append(1, None, None, &[])), BuilderFault::NotOpen);
        assert_eq!(fault(builder.build()), BuilderFault::Aborted);
        let reopened = builder.reopen_and_rewrite_producer_state(ProducerState::NONE, false);
        assert_eq!(fault(reopened), BuilderFault::Aborted);
        assert_eq!(builder.into_buffer().len(), 0);
    });
}

#[test]
fn batches_behind_one_another() {
    let mut memory = [0; 300];
    let mut compressors = BuiltinCompressors::new();
    let mut buffer = LentBuffer::new(&mut memory);
    for base in [0, 1, 2] {
        let options = options(Magic::V2, Codec::None).with_base_offset(base);
        let mut builder =
            MemoryRecordsBuilder::new(&mut buffer, options, &mut compressors, Cpu::detect())
                .unwrap();
        builder.append(1, None, None, &[]).unwrap();
        // The second is given up.
        if base != 1 {
            builder.close().unwrap();
        }
        let _ = builder.into_buffer();
    }
    let segment = buffer.into_written();
    let bases: Vec<i64> = Batches::new(segment, Cpu::detect())
        .map(|batch| {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            batch.header().base_offset
        })
        .collect();
    assert_eq!(bases, [0, 2]);
}

#[test]
fn too_small_a_buffer_is_told_before_anything_is_written() {
    let none = options(Magic::V2, Codec::None);
    try_with(60, none, |builder| {
        let error = builder.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferTooSmall { need: 61, have: 60 });
    });
    try_with(75, none, |builder| {
        let mut builder = builder.unwrap();
        builder.append(1, None, None, &[]).unwrap();
        let error = builder.append(2, None, Some(b"v"), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferTooSmall { need: 76, have: 75 });
        assert_eq!((error.position(), error.name()), (68, "decompress_limit_buffer"));
        builder.append(2, None, None, &[]).unwrap();
        let batch = builder.build().unwrap();
        let batch = Batches::new(batch, Cpu::detect()).next().unwrap().unwrap();
        assert_eq!(batch.records().unwrap().map(|r| r.unwrap().timestamp).sum::<i64>(), 3);
    });
}

#[test]
fn records_that_were_read_go_in_again() {
    let source = options(Magic::V1, Codec::None).with_base_offset(10);
    let bytes = with(source, |mut builder| {
        legacy(&mut builder);
        builder.build().unwrap().to_vec()
    });
    let codec = if cfg!(feature = "lz4") { Codec::Lz4 } else { Codec::None };
    let records = |append: &dyn Fn(&mut Builder<'_>, &[u8])| {
        with(options(Magic::V1, codec).with_base_offset(10), |mut builder| {
            append(&mut builder, &bytes);
            builder.build().unwrap().to_vec()
        })
    };
    let raw = records(&|builder, bytes| {
        for batch in Batches::new(bytes, Cpu::detect()) {
            let batch = batch.unwrap();
            let offset = batch.header().base_offset;
            let crc = builder.append_message_with_offset(offset, batch.bytes()).unwrap();
            assert_eq!(crc, batch.header().crc);
            let again = builder.append_message_with_offset(offset, batch.bytes());
            let order = BuilderFault::OffsetOrder { offset, previous: offset };
            assert_eq!(fault(again), order);
        }
    });
    let parsed = records(&|builder, bytes| {
        for batch in Batches::new(bytes, Cpu::detect()) {
            for record in batch.unwrap().records().unwrap() {
                let record = record.unwrap();
                assert_eq!(builder.append_record(&record).unwrap(), record.crc);
            }
        }
    });
    assert_eq!(raw, parsed);
    if codec == Codec::None {
        assert_eq!(raw, bytes);
    }
}

/// Sizes and estimates of Kafka's own classes: three records, with headers and null fields
/// where the version has them.
#[test]
fn sizes_of_records() {
    let headers = [Header { key: b"h", value: Some(b"x") }, Header { key: b"n", value: None }];
    for (magic, headers, want) in
        [(Magic::V0, &[][..], 92), (Magic::V1, &[], 116), (Magic::V2, &headers, 103)]
    {
        let batch = with(options(magic, Codec::None).with_base_offset(100), |mut builder| {
            builder.append(T, Some(b"k1"), Some(b"hello"), headers).unwrap();
            builder.append(T + 5, None, Some(b"world"), &[]).unwrap();
            builder.append(T - 1, Some(b"k3"), None, &[]).unwrap();
            builder.build().unwrap().to_vec()
        });
        let records = Batches::new(&batch, Cpu::detect())
            .flat_map(|batch| batch.unwrap().records().unwrap())
            .map(Result::unwrap);
        let size = sizes::size_in_bytes(magic, 100, records);
        assert_eq!((size, batch.len()), (want, want as usize));
        assert_eq!(sizes::estimate_size_in_bytes(Codec::None, size), want);
        assert_eq!(sizes::estimate_size_in_bytes(Codec::Gzip, size), 1024);
    }
    assert_eq!(sizes::size_in_bytes(Magic::V2, 0, []), 0);
}

/// The same, with a delete horizon, from which timestamps count.
#[test]
fn room_with_a_delete_horizon() {
    let options = options(Magic::V2, Codec::None)
        .with_base_offset(50)
        .with_delete_horizon(1_700_000_500_000)
        .with_write_limit(138);
    with(options, |mut builder| {
        assert!(builder.has_room_for(T, None, Some(&[0; 500]), &[]), "the first");
        builder.append(T, None, None, &[]).unwrap();
        assert_eq!(builder.size_in_bytes(), 70);
        assert!(builder.has_room_for(T, None, Some(&[0; 58]), &[]));
        assert!(!builder.has_room_for(T, None, Some(&[0; 59]), &[]));
        assert_eq!(builder.build().unwrap().len(), 70);
    });
}

/// The last offset may come to lie anywhere, as in Kafka.
#[test]
fn an_overridden_last_offset() {
    with(options(Magic::V2, Codec::None).with_base_offset(10), |mut builder| {
        builder.append(5, None, Some(b"w"), &[]).unwrap();
        builder.override_last_offset(3).unwrap();
        let header = BatchHeader::parse(builder.build().unwrap(), 0).unwrap();
        assert_eq!((header.base_offset, header.last_offset_delta), (10, -7));
    });
    #[cfg(feature = "lz4")]
    with(options(Magic::V1, Codec::Lz4).with_base_offset(10), |mut builder| {
        builder.append(5, None, Some(b"w"), &[]).unwrap();
        builder.override_last_offset(40).unwrap();
        let header = BatchHeader::parse(builder.build().unwrap(), 0).unwrap();
        assert_eq!(header.base_offset, 40, "that of the wrapper");
    });
    // With no records that is all there is to it.
    with(options(Magic::V2, Codec::None), |mut builder| {
        builder.override_last_offset(7).unwrap();
        assert_eq!(builder.build(), Ok(&[][..]));
    });
}

#[test]
fn abort_comes_last() {
    with(options(Magic::V2, Codec::None), |mut builder| {
        builder.append(1, None, None, &[]).unwrap();
        builder.close().unwrap();
        builder.abort();
        assert_eq!(fault(builder.build()), BuilderFault::Aborted, "as in Kafka");
        assert!(!builder.is_closed());
    });
}

/// 0.9 and 0.10.
mod before_0_11 {
    use super::*;

    fn options(codec: Codec) -> BuilderOptions {
        super::options(Magic::V1, codec).with_policy(Policy::Legacy)
    }

    #[test]
    fn an_oversized_first_record_has_no_room() {
        try_with(100, options(Codec::None), |builder| {
            let builder = builder.unwrap();
            assert!(builder.has_room_for(1, None, Some(&[0; 66]), &[]), "34 + 66");
            assert!(!builder.has_room_for(1, None, Some(&[0; 67]), &[]));
        });
        // A limit that is reached without records.
        with(options(Codec::None).with_write_limit(0), |builder| assert!(builder.is_full()));
    }

    /// What was in the buffer before counts.
    #[test]
    fn estimates_of_codec_none_are_the_position() {
        let mut memory = [0; 300];
        let mut buffer = LentBuffer::new(&mut memory);
        buffer.commit(100);
        let mut compressors = BuiltinCompressors::new();
        let options = options(Codec::None).with_write_limit(200);
        let mut builder =
            MemoryRecordsBuilder::new(buffer, options, &mut compressors, Cpu::detect()).unwrap();
        assert_eq!(builder.estimated_bytes_written(), 100);
        builder.append(1, None, Some(&[0; 16]), &[]).unwrap();
        assert_eq!((builder.estimated_bytes_written(), builder.size_in_bytes()), (150, 150));
        assert!(builder.has_room_for(1, None, Some(&[0; 16]), &[]));
        assert!(!builder.has_room_for(1, None, Some(&[0; 17]), &[]));
        builder.close_for_record_appends().unwrap();
        assert!(builder.is_full() && !builder.has_room_for(1, None, None, &[]));
        assert_eq!(builder.build().unwrap().len(), 50);
        assert_eq!(builder.compression_ratio(), 1.0);
    }

    #[test]
    #[cfg(feature = "snappy")]
    fn estimates_sizes_and_the_wrapper() {
        with(options(Codec::Snappy).with_write_limit(200), |mut builder| {
            assert_eq!(builder.estimated_bytes_written(), 0, "no header");
            assert_eq!(builder.size_in_bytes(), 34, "the position, with the wrapper");
            for timestamp in [5, 9, 7] {
                assert!(builder.has_room_for(timestamp, None, Some(&[7; 20]), &[]));
                builder.append(timestamp, None, Some(&[7; 20]), &[]).unwrap();
            }
            assert_eq!(builder.estimated_bytes_written(), 170, "162 × 1.05");
            assert!(!builder.has_room_for(1, None, Some(&[7; 20]), &[]));
            assert!(builder.size_in_bytes() < 170, "the codec holds them");
            let built = builder.build().unwrap().to_vec();
            let header = BatchHeader::parse(&built, 0).unwrap();
            assert_eq!((header.base_offset, header.max_timestamp), (2, 9));
            assert_eq!(builder.size_in_bytes(), built.len() as u64);
            assert_eq!(builder.compression_ratio(), built.len() as f32 / 162.0, "with the header");
        });
        // The wrapper's offset is the number of records − 1 whatever they have.
        with(options(Codec::Snappy).with_base_offset(40), |mut builder| {
            builder.append(1, None, None, &[]).unwrap();
            let header = BatchHeader::parse(builder.build().unwrap(), 0).unwrap();
            assert_eq!(header.base_offset, 0);
        });
    }
}

/// A codec from outside that does not keep to its bound, or does not go on.
#[test]
fn a_codec_that_breaks_its_promise_aborts_the_builder() {
    struct Broken {
        stuck: bool,
    }
    impl Compress for Broken {
        fn reset(&mut self) {}
        fn advance(&mut self, input: &[u8], out: &mut [u8]) -> Result<Written, CodecError> {
            let produced = if self.stuck { 0 } else { out.len() };
            let consumed = if self.stuck { 0 } else { input.len().min(1) };
            Ok(Written { consumed, produced, pause: Pause::WindowFull })
        }
        fn finish(&mut self, _: &mut [u8]) -> Result<Written, CodecError> {
            Ok(Written { consumed: 0, produced: 0, pause: Pause::WindowFull })
        }
        fn bound(&self, _: u64) -> u64 {
            0
        }
    }
    impl Compressors for Broken {
        fn compressor(&mut self, _: Codec, _: Magic) -> Option<&mut dyn Compress> {
            Some(self)
        }
    }
    for stuck in [false, true] {
        let mut memory = [0; 200];
        let mut broken = Broken { stuck };
        let mut builder = MemoryRecordsBuilder::new(
            LentBuffer::new(&mut memory),
            options(Magic::V2, Codec::Zstd),
            &mut broken,
            Cpu::detect(),
        )
        .unwrap();
        let appended = builder.append(1, None, Some(&[0; 100]), &[]);
        if let Ok(None) = appended {
            assert!(builder.close().is_err());
        }
        assert_eq!(fault(builder.build()), BuilderFault::Aborted);
    }
}

#[test]
fn capacities() {
    let none = options(Magic::V2, Codec::None);
    assert_eq!(none.capacity_for(200, 30), 200);
    assert_eq!(none.capacity_for(200, 1000), 61 + 1000);
    let lz4 = options(Magic::V2, Codec::Lz4);
    assert_eq!(lz4.capacity_for(200, 30), 61 + compress::bound(Codec::Lz4, 141));
    let half = lz4.with_estimated_compression_ratio(0.5);
    assert_eq!(half.capacity_for(2161, 0), 61 + compress::bound(Codec::Lz4, 4002));
    let nothing = lz4.with_estimated_compression_ratio(0.0);
    assert_eq!(nothing.capacity_for(200, 30), u64::MAX);
}
