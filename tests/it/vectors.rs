//! Vectors made with Kafka's own classes, or by hand and read by them.

use logseg_core::batch::ControlValue;
use logseg_core::codec::{CodecErrorKind, gzip::Gzip, lz4::Frame, xerial::Xerial};
use logseg_core::error::{Checksummed, CodecFault, Corruption, Refusal};
use logseg_core::{
    Batches, Codec, Control, ControlType, Cpu, Decompress, Limits, Magic, TailKind, TimestampType,
};
use logseg_tests::build::{Rec, message_set};
use logseg_tests::pack::right_header_checksum;
use logseg_tests::read::{ReadBatch, decode, owned};
use logseg_tests::{BatchBuilder, Chunking, MessageBuilder, Packing, read, unhex};

const T: i64 = 1_700_000_000_000;

fn rec(offset: i64, timestamp: i64, key: Option<&str>, value: Option<&str>) -> Rec {
    let bytes = |field: Option<&str>| field.map(|text| text.as_bytes().to_vec());
    Rec { offset, timestamp, key: bytes(key), value: bytes(value), headers: Vec::new() }
}

/// Reads a good batch through small and large windows, and as a slice where it is not
/// compressed; all must tell the same.
fn one(hex: &str) -> ReadBatch {
    let bytes = unhex(hex);
    let small = read(&bytes, (64 << 10) + 64, Limits::default());
    let mut reading = read(&bytes, 1 << 20, Limits::default());
    assert_eq!(reading.errors, [], "{hex}");
    assert_eq!(reading.tail.kind, TailKind::Clean);
    assert_eq!(reading.tail.position, bytes.len() as u64);
    for batch in &reading.batches {
        assert_eq!(batch.end.verdict, Ok(()), "{hex}");
    }
    let slice: Vec<Rec> = Batches::new(&bytes, Cpu::scalar())
        .filter_map(|batch| batch.unwrap().records().ok())
        .flat_map(|records| records.map(|record| owned(&record.unwrap())))
        .collect();
    let all: Vec<Rec> = reading.records().cloned().collect();
    assert_eq!(small.records().cloned().collect::<Vec<_>>(), all);
    if !slice.is_empty() {
        assert_eq!(slice, all);
    }
    let mut first = reading.batches.remove(0);
    for more in reading.batches {
        first.records.extend(more.records);
    }
    first
}

#[test]
fn v2_min() {
    let batch =
        one("000000000000000000000038ffffffff02baab5a07000000000000ffffffffffffffffffffffffff\
        ffffffffffffffffffffffffffffffffff000000010c000000010100");
    assert_eq!(batch.records, [rec(0, -1, None, None)]);
    let header = batch.header;
    assert_eq!((header.position, header.size, header.magic), (0, 68, Magic::V2));
    assert_eq!((header.crc, header.partition_leader_epoch), (0xbaab_5a07, -1));
    assert_eq!((header.base_timestamp, header.max_timestamp), (-1, -1));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (-1, -1, -1));
    assert_eq!((batch.end.records_bytes, batch.end.offsets), (7, Some((0, 0))));
}

#[test]
fn v2_three() {
    let hex = "00000000000000640000005b0000000502387757e70000000000020000018bcfe568000000018bcf\
        e56805ffffffffffffffffffffffffffff0000000328000000046b310a68656c6c6f0402680278026e0116\
        000a02010a776f726c640010000104046b330100";
    let batch = one(hex);
    let mut first = rec(100, T, Some("k1"), Some("hello"));
    first.headers = vec![(b"h".to_vec(), Some(b"x".to_vec())), (b"n".to_vec(), None)];
    let records = [first, rec(101, T + 5, None, Some("world")), rec(102, T - 1, Some("k3"), None)];
    assert_eq!(batch.records, records);
    assert_eq!((batch.header.partition_leader_epoch, batch.header.crc), (5, 0x3877_57e7));
    assert_eq!((batch.header.base_offset, batch.header.last_offset()), (100, 102));
    // The kit builds the same bytes, so what it builds is what Kafka builds.
    let built = BatchBuilder::new(records.to_vec()).base_offset(100).leader_epoch(5).build();
    assert_eq!(built, unhex(hex));
}

#[test]
fn v2_transactional_with_log_append_time() {
    let batch = one("00000000000000070000004100000009029b8d8c6c0018000000010000018bcfe56800000001\
        8bcfe56cd20000000000000fa0000300000011000000020c000000000000100002020261026200");
    let append = 1_700_000_001_234;
    assert_eq!(
        batch.records,
        [rec(7, append, Some(""), Some("")), rec(8, append, Some("a"), Some("b"))]
    );
    let header = batch.header;
    assert!(header.is_transactional() && !header.is_control());
    assert_eq!(header.timestamp_type(), Some(TimestampType::LogAppendTime));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4000, 3, 17));
    assert_eq!((header.base_timestamp, header.last_sequence()), (T, 18));
}

#[test]
fn v2_control_batches() {
    for (hex, kind) in [
        (
            "000000000000000c000000420000000302049b7c7c0030000000000000018bcfe568000000018bcfe568\
             000000000000000fa00002ffffffff000000012000000008000000010c00000000000800",
            ControlType::Commit,
        ),
        (
            "000000000000000c000000420000000302f0a5aa340030000000000000018bcfe568000000018bcfe568\
             000000000000000fa00002ffffffff000000012000000008000000000c00000000000800",
            ControlType::Abort,
        ),
    ] {
        let batch = one(hex);
        assert!(batch.header.is_control() && batch.header.is_transactional());
        assert_eq!((batch.header.producer_id, batch.header.producer_epoch), (4000, 2));
        assert_eq!(batch.header.base_sequence, -1);
        let [record] = &batch.records[..] else { panic!("{} records", batch.records.len()) };
        assert_eq!((record.offset, record.timestamp), (12, T));
        let control = Control::parse(record.key.as_deref(), record.value.as_deref()).unwrap();
        assert_eq!((control.key_version, control.control_type), (0, kind));
        let ControlValue::EndTransaction { version: 0, coordinator_epoch: 8 } = control.value
        else {
            panic!("{:?}", control.value)
        };
    }
    let batch =
        one("000000000000000000000045000000010213d27a030020000000000000018bcfe568000000018b\
        cfe56800ffffffffffffffffffffffffffff000000012600000008000000021200000000000101010000");
    assert!(batch.header.is_control() && !batch.header.is_transactional());
    let record = &batch.records[0];
    let control = Control::parse(record.key.as_deref(), record.value.as_deref()).unwrap();
    let ControlValue::LeaderChange { leader_id: 1, voters, granting_voters, .. } = control.value
    else {
        panic!("{:?}", control.value)
    };
    assert_eq!((voters.count(), granting_voters.count()), (0, 0));
}

#[test]
fn v2_that_compaction_left() {
    let empty =
        one("00000000000000c800000031000000060288e1d9c1001000000004ffffffffffffffff0000018b\
        cfe56be70000000000000fa000020000001400000000");
    assert_eq!(empty.records, []);
    assert_eq!((empty.header.base_offset, empty.header.last_offset()), (200, 204));
    assert_eq!((empty.header.size, empty.header.record_count), (61, Some(0)));
    assert_eq!((empty.header.base_timestamp, empty.header.max_timestamp), (-1, T + 999));
    assert_eq!((empty.header.producer_id, empty.header.base_sequence), (4000, 20));
    assert!(empty.header.is_transactional());
    assert_eq!((empty.end.offsets, empty.end.records_bytes), (None, 0));

    let horizon =
        one("00000000000000320000003b00000001024daddb0c0040000000030000018bcfed092000000\
        18bcfe56800ffffffffffffffffffffffffffff000000011200bf843d02026b0100");
    assert_eq!(horizon.records, [rec(51, T, Some("k"), None)]);
    assert_eq!(horizon.header.delete_horizon_ms(), Some(T + 500_000));
    assert_eq!((horizon.header.base_offset, horizon.header.last_offset()), (50, 53));
}

#[test]
fn v2_compressed_by_java() {
    let a = "a".repeat(32);
    let records = [rec(0, T, Some("k"), Some(&a)), rec(1, T + 1, Some("k"), Some(&a))];
    for (codec, hex) in [
        (
            Codec::Gzip,
            "00000000000000000000005600000000023b4434f80001000000010000018bcfe568000000018bcfe568\
             01ffffffffffffffffffffffffffff000000021f8b08000000000000fff363606060ca7648240018fc18\
             989888510700fb219e3c50000000",
        ),
        (
            Codec::Snappy,
            "00000000000000000000005b00000000025a3bfbc70002000000010000018bcfe568000000018bcfe568\
             01ffffffffffffffffffffffffffff0000000282534e4150505900000000010000000100000016501c4e\
             000000026b40617a010010004e0002028e2800",
        ),
        (
            Codec::Lz4,
            "00000000000000000000005b00000000029e3ddb3b0003000000010000018bcfe568000000018bcfe568\
             01ffffffffffffffffffffffffffff0000000204224d186040821b0000008f4e000000026b406101000c\
             5f004e00020228000c50616161610000000000",
        ),
        (
            Codec::Zstd,
            "00000000000000000000005200000000028cc370fb0004000000010000018bcfe568000000018bcfe568\
             01ffffffffffffffffffffffffffff0000000228b52ffd0058ac0000684e000000026b4061004e000202\
             020097227503b8010000",
        ),
    ] {
        let batch = one(hex);
        assert_eq!(batch.header.codec(), Ok(codec));
        assert_eq!(batch.records, records, "{codec}");
        assert_eq!(batch.end.records_bytes, 80, "{codec}");
    }
}

#[test]
fn v2_in_streams_that_store() {
    let records = [rec(0, T, Some("k"), Some("v")), rec(1, T + 5, None, Some("w"))];
    for (codec, hex) in [
        (
            Codec::Gzip,
            "00000000000000000000005900000000021a3ea8a40001000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff000000021f8b08000000000000ff011100eeff10000000026b0276\
             000e000a02010277009d678e5111000000",
        ),
        (
            Codec::Snappy,
            "0000000000000000000000440000000002592233510002000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff00000002114010000000026b0276000e000a0201027700",
        ),
        (
            Codec::Snappy,
            "0000000000000000000000580000000002f4a85ee60002000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff0000000282534e4150505900000000010000000100000013114010\
             000000026b0276000e000a0201027700",
        ),
        (
            Codec::Lz4,
            "0000000000000000000000510000000002058815cb0003000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff0000000204224d186040821100008010000000026b0276000e000a\
             020102770000000000",
        ),
        (
            Codec::Zstd,
            "00000000000000000000004b000000000261dd19080004000000010000018bcfe568000000018bcfe568\
             05ffffffffffffffffffffffffffff0000000228b52ffd201189000010000000026b0276000e000a0201\
             027700",
        ),
    ] {
        let batch = one(hex);
        assert_eq!(batch.header.codec(), Ok(codec));
        assert_eq!(batch.records, records, "{codec}");
        assert_eq!(batch.end.records_bytes, 17, "{codec}");
    }
}

/// Two messages from offset 10 on.
fn legacy(magic: u8) -> [Rec; 2] {
    let v = "v".repeat(20);
    let (first, second) = if magic == 0 { (-1, -1) } else { (T, T - 10) };
    [rec(10, first, Some("k"), Some(&v)), rec(11, second, None, Some("w"))]
}

#[test]
fn v0_and_v1() {
    for (magic, codec, hex) in [
        (
            0,
            Codec::None,
            "000000000000000a00000023fa2dca8c0000000000016b00000014767676767676767676767676767676\
             7676767676000000000000000b0000000fa50b8f630000ffffffff0000000177",
        ),
        (
            0,
            Codec::Lz4,
            "000000000000000b000000538961cdec0003ffffffff0000004504224d1860401a3600000012000100910\
             a00000023fa2dca8c0f007f016b0000001476010000011f00f00700000b0000000fa50b8f630000ffffff\
             ff000000017700000000",
        ),
        (
            0,
            Codec::Gzip,
            "000000000000000b00000048d5406b610001ffffffff0000003a1f8b08000000000000ff636000032e20\
             56fea57baa07cc63cc0612226558004435033710f32fe5ee4f6660f80f04202de500fad9b7a24a000000",
        ),
        (
            1,
            Codec::None,
            "000000000000000a0000002be919268501000000018bcfe56800000000016b0000001476767676767676\
             76767676767676767676767676000000000000000b0000001738ca124b01000000018bcfe567f6ffffff\
             ff0000000177",
        ),
        (
            1,
            Codec::Gzip,
            "000000000000000b00000056c5b99d0701010000018bcfe56800ffffffff000000401f8b080000000000\
             00ff63608003ed97926aad8c400663f7f9a7192011c66c202152860540b580548b5b9c12f286694bfff6\
             1f08409c7200dc96063e5a000000",
        ),
        (
            1,
            Codec::Lz4,
            "000000000000000b0000006268b3f52b01030000018bcfe56800ffffffff0000004c04224d186040823d\
             00000016000100e02be919268501000000018bcfe56818007f016b0000001476010000001e00002a0084\
             0000001738ca124b3700b067f6ffffffff000000017700000000",
        ),
        (
            1,
            Codec::Snappy,
            "000000000000000b0000006904de3ad901020000018bcfe56800ffffffff0000005382534e4150505900\
             00000001000000010000003f5a00001901342be919268501000000018bcfe568011818016b0000001476\
             4a010000000901012e101738ca124b010938018bcfe567f6ffffffff0000000177",
        ),
    ] {
        let batch = one(hex);
        assert_eq!(batch.header.codec(), Ok(codec), "v{magic}");
        assert_eq!(batch.header.magic.number(), magic);
        assert_eq!(batch.header.timestamp_type().is_none(), magic == 0);
        assert_eq!(batch.records, legacy(magic), "v{magic} {codec}");
    }
}

#[test]
fn the_kit_builds_the_same_messages() {
    let hex = "000000000000000b00000056c5b99d0701010000018bcfe56800ffffffff000000401f8b08000000000\
        000ff63608003ed97926aad8c400663f7f9a7192011c66c202152860540b580548b5b9c12f286694bfff61f08\
        409c7200dc96063e5a000000";
    let plain: Vec<u8> = legacy(1).iter().flat_map(|r| MessageBuilder::new(1, r).build()).collect();
    assert_eq!(
        plain,
        unhex(
            "000000000000000a0000002be919268501000000018bcfe56800000000016b00000014767676767676\
             7676767676767676767676767676000000000000000b0000001738ca124b01000000018bcfe567f6ff\
             ffffff0000000177"
        )
    );
    // Offsets are relative inside; zlib's own header names another operating system.
    let set = message_set(1, &legacy(1));
    let mut packed = Packing::java(Codec::Gzip).pack(&set);
    packed[9] = 0xff;
    let wrapper = Rec { offset: 11, timestamp: T, value: Some(packed), ..Rec::default() };
    assert_eq!(MessageBuilder::new(1, &wrapper).attributes(1).build(), unhex(hex));
}

#[test]
fn v1_log_append_time() {
    let alone = one("000000000000000a000000164c76985c01080000018bcfe58f0fffffffffffffffff");
    assert_eq!(alone.records, [rec(10, T + 9999, None, None)]);
    assert_eq!(alone.header.size, 34);
    let set = one(
        "000000000000000a0000004955da93e1010a0000018bcfe58f0fffffffff0000003382534e415050\
        590000000001000000010000001f240000190160182433780c01080000018bcfe58f0f00000001610000000162",
    );
    assert_eq!(set.records, [rec(10, T + 9999, Some("a"), Some("b"))]);
    assert_eq!(set.header.timestamp_type(), Some(TimestampType::LogAppendTime));
}

#[test]
fn v1_wrapper_offset_12_makes_0_and_1_11_and_12() {
    let batch =
        one("000000000000000c00000061cfdcc9730102000000000000012cffffffff0000004b48f04700000\
        0000000000000000018a7a5a34101000000000000000064000000016100000001310000000000000001000000\
        184f1634900100000000000000012c00000001620000000132");
    assert_eq!(
        batch.records,
        [rec(11, 100, Some("a"), Some("1")), rec(12, 300, Some("b"), Some("2"))]
    );
    assert_eq!((batch.header.base_offset, batch.end.offsets), (12, Some((11, 12))));
}

fn plain(decoder: &mut dyn Decompress, stream: &[u8]) -> Result<Vec<u8>, CodecErrorKind> {
    let mut window = vec![0; (64 << 10) + 1];
    let whole = decode(decoder, stream, Chunking::Whole, &mut window);
    let cuts = Chunking::every_split(stream).chain([Chunking::Bytes]);
    for chunking in cuts {
        let part = decode(decoder, stream, chunking, &mut window);
        assert_eq!(part, whole, "{chunking:?}");
    }
    whole
}

#[test]
fn codec_streams() {
    let hello = unhex("82534e4150505900000000010000000100000007051068656c6c6f");
    let xerial = &mut Xerial::default();
    assert_eq!(plain(xerial, &hello).unwrap(), b"hello");
    assert_eq!(plain(xerial, &hello[..16]).unwrap(), b"", "a header and nothing else");
    assert_eq!(plain(xerial, &hello[16 + 4..]).unwrap(), b"hello", "the raw block");

    let gzip = &mut Gzip::default();
    let empty = unhex("1f8b08000000000000ff03000000000000000000");
    assert_eq!(plain(gzip, &empty).unwrap(), b"");
    let stream = unhex("1f8b08000000000000ffcb48cdc9c9070086a6103605000000");
    assert_eq!(plain(gzip, &stream).unwrap(), b"hello");
    let twice = [&stream[..], &empty, &stream].concat();
    assert_eq!(plain(gzip, &twice).unwrap(), b"hellohello");
    let junk = [&stream[..], b"\x1f\x8b\x09junk"].concat();
    assert_eq!(plain(gzip, &junk).unwrap(), b"hello", "as Java, junk behind a member is ignored");

    let lz4 = &mut Frame::default();
    let empty = unhex("04224d1860408200000000");
    assert_eq!(plain(lz4, &empty).unwrap(), b"");
    let behind = [&empty[..], &empty].concat();
    assert_eq!(plain(lz4, &behind).unwrap(), b"", "only the first frame counts");
}

#[test]
fn xerial_streams_in_a_row() {
    let corrupt = |what| Err(CodecErrorKind::Fault(CodecFault::Corrupt(what)));
    let hello = unhex("82534e4150505900000000010000000100000007051068656c6c6f");
    let behind = |more: &[u8]| [&hello[..], more].concat();
    let xerial = &mut Xerial::default();
    assert_eq!(plain(xerial, &behind(&hello)).unwrap(), b"hellohello");
    assert_eq!(plain(xerial, &behind(&[0; 4])), corrupt(Corruption::Length), "no end mark");
    assert_eq!(plain(xerial, &behind(&[0; 3])).unwrap(), b"hello", "as snappy-java");
    assert_eq!(plain(xerial, &behind(&[0, 0, 0, 1, 0])).unwrap(), b"hello", "an empty block");
    let truncated = Err(CodecErrorKind::Fault(CodecFault::Truncated));
    assert_eq!(plain(xerial, &behind(&hello[..15])), truncated);
    assert_eq!(plain(xerial, &hello[..26]), truncated);
    assert_eq!(plain(xerial, &[]), truncated);
    let mut version_0 = hello.clone();
    version_0[8..12].fill(0);
    assert_eq!(plain(xerial, &version_0).unwrap(), b"hello", "the first one is not looked at");
    assert_eq!(plain(xerial, &behind(&version_0)), corrupt(Corruption::Header));
    let framed = unhex("ff060000734e6150705901090000bb1f1c1968656c6c6f");
    assert_eq!(plain(xerial, &framed), corrupt(Corruption::SnappyFramed));
}

#[test]
fn gzip_trailers_and_headers_are_checked() {
    let gzip = &mut Gzip::default();
    let stream = unhex("1f8b08000000000000ffcb48cdc9c9070086a6103605000000");
    for at in 0..stream.len() {
        let mut bad = stream.clone();
        bad[at] ^= 0x10;
        let got = plain(gzip, &bad);
        let of = match at {
            17..21 => Some(Checksummed::Content),
            21..25 => Some(Checksummed::Length),
            _ => None,
        };
        if let Some(of) = of {
            let Err(CodecErrorKind::Fault(CodecFault::Checksum { of: found, .. })) = got else {
                panic!("byte {at}: {got:?}")
            };
            assert_eq!(found, of, "byte {at}");
        } else if at < 3 {
            let fault = CodecFault::Corrupt(Corruption::NotThisFormat);
            assert_eq!(got, Err(CodecErrorKind::Fault(fault)), "byte {at}");
        }
    }
    // FHCRC, right and wrong.
    let mut with_crc = stream.clone();
    with_crc[3] = 0x02;
    let crc = logseg_core::crc32c::crc32(&with_crc[..10]).to_le_bytes();
    with_crc.splice(10..10, [crc[0], crc[1]]);
    assert_eq!(plain(gzip, &with_crc).unwrap(), b"hello");
    with_crc[10] ^= 1;
    let got = plain(gzip, &with_crc);
    let Err(CodecErrorKind::Fault(CodecFault::Checksum { of: Checksummed::Header, .. })) = got
    else {
        panic!("{got:?}")
    };
}

#[test]
fn lz4_frames_that_kafka_refuses() {
    let fault = |frame: &[u8]| match plain(&mut Frame::default(), frame) {
        Err(CodecErrorKind::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    };
    let frame = |flags: u8, bd: u8, behind: &str| {
        let hc = right_header_checksum(&[flags, bd]);
        [&b"\x04\x22\x4d\x18"[..], &[flags, bd, hc], &unhex(behind)].concat()
    };
    let hello = "0500008068656c6c6f";
    let good = frame(0x60, 0x40, &format!("{hello} 00000000"));
    assert_eq!(plain(&mut Frame::default(), &good).unwrap(), b"hello");
    assert_eq!(fault(&frame(0x60, 0x40, hello)), CodecFault::Truncated, "no end mark");
    let linked = CodecFault::Refused(Refusal::LinkedBlocks);
    assert_eq!(fault(&frame(0x40, 0x40, hello)), linked);
    assert_eq!(fault(&frame(0x61, 0x40, hello)), CodecFault::Refused(Refusal::Dictionary));
    for (flags, bd) in [(0x62, 0x40), (0xa0, 0x40), (0x60, 0x30), (0x60, 0xc0), (0x60, 0x41)] {
        let header = CodecFault::Corrupt(Corruption::Header);
        assert_eq!(fault(&frame(flags, bd, hello)), header, "{flags:x} {bd:x}");
    }
    let mut bad = good.clone();
    bad[6] ^= 1;
    let computed = right_header_checksum(&[0x60, 0x40]);
    let stored = u32::from(computed ^ 1);
    let of = Checksummed::Header;
    assert_eq!(fault(&bad), CodecFault::Checksum { of, stored, computed: computed.into() });
    let mut lenient = Frame::default();
    lenient.check_header(false);
    assert_eq!(plain(&mut lenient, &bad).unwrap(), b"hello", "as in magic 0");

    // One byte, and a match that makes more of it than the 64 KiB of the frame.
    let block = |extra: usize| {
        let mut block = vec![0x1f, b'x', 1, 0];
        block.extend(vec![0xff; extra / 255]);
        block.push((extra % 255) as u8);
        block.extend([0x10, b'y']);
        let mut frame = frame(0x60, 0x40, "");
        frame.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
        frame.extend(block);
        frame.extend([0; 4]);
        frame
    };
    let most = 65_536 - 2 - 19;
    assert_eq!(plain(&mut Frame::default(), &block(most)).unwrap().len(), 65_536);
    for more in [1, 2, 1000, 200_000] {
        let what = CodecFault::Corrupt(Corruption::BlockSize);
        assert_eq!(fault(&block(most + more)), what, "{more} bytes too many");
    }
    let what = CodecFault::Corrupt(Corruption::BlockSize);
    assert_eq!(fault(&frame(0x60, 0x40, "01000180 00")), what, "a stored block of 64 KiB + 1");
    let what = CodecFault::Corrupt(Corruption::EmptyBlock);
    assert_eq!(fault(&frame(0x60, 0x40, "01000000 00 00000000")), what);
}

/// A message of a set is checked also when it comes in pieces.
#[test]
fn crc_of_messages_inside() {
    for magic in [0, 1] {
        for (at, len) in [(16 + 40, 100), (16 + 40, 100_000), (100_050, 100_000)] {
            let big = Rec::new(1, -1, b"k", &vec![b'v'; len]);
            let mut set = message_set(magic, &[Rec::new(0, -1, b"a", b"b"), big]);
            set[at] ^= 1;
            let packing = Packing::java(Codec::Gzip);
            let wrapper = MessageBuilder::wrapper(magic, 1, 1, &set, &packing).build();
            for window in [(32 << 10) + 200, 1 << 20] {
                let reading = read(&wrapper, window, Limits::default());
                let batch = &reading.batches[0];
                assert_eq!(batch.fault(), Some("crc_mismatch"), "v{magic} {at} {window}");
                let error = batch.end.verdict.unwrap_err();
                assert!(error.inflated().is_some(), "{error}");
            }
        }
    }
}
