use prost::Message;

use super::*;

/// {cursorsLedgerId −1, mark-delete 10:5, three ranges, lastActive 1700000000000}, and what
/// the libraries that Python wraps (lz4, zlib, zstandard, python-snappy) make of it.
const PLAIN: &str = "08ffffffffffffffffff01100a1805220c0a04080a10071204080a1008220c0a04080a10091204080a100a220c0a04080a100b1204080a100c3080d095ffbc31";
const VECTORS: [(CompressionType, &str); 4] = [
    (
        CompressionType::Lz4,
        "477800000004080110402408ff0100f30401100a1805220c0a04080a10071204080a10080e0011090e00130a0e00110b0e00800c3080d095ffbc31",
    ),
    (
        CompressionType::Zlib,
        "47780000000408021040789ce2f80f038c025c12ac4a3c5c2c1c5c02ec42209203cae304f3b8a03c6e308fc7a0e1c2d4ff7b0c01000000ffff",
    ),
    (
        CompressionType::Zstd,
        "4778000000040803104028b52ffd2440650100e008ff01100a1805220c0a04080a10071208090a0b0c3080d095ffbc3106004008c8038dc5742165a91760014d23befe",
    ),
    (
        CompressionType::Snappy,
        "47780000000408041040400408ff11013401100a1805220c0a04080a100712010600080d0e0009050e000a0d0e340b1204080a100c3080d095ffbc31",
    ),
];

fn unhex(text: &str) -> Vec<u8> {
    crate::dump::digest::unhex(text).unwrap()
}

/// The whole way that a reader goes.
fn open(bytes: &[u8], limit: usize) -> Result<ManagedCursorInfo, Error> {
    let node = Node::parse(bytes)?;
    let message = node.message(limit)?;
    decode(&message, 0).map(|(cursor, _)| cursor).map_err(|error| node.locate(error))
}

fn cursor() -> ManagedCursorInfo {
    open(&unhex(PLAIN), 64).unwrap()
}

/// Numbers that are the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A cursor as large as `size` says.
    fn cursor(&mut self, size: u64) -> ManagedCursorInfo {
        let mut entry = self.below(1000).cast_signed();
        let ledger = self.below(1 << 40).cast_signed();
        let at = |entry| NestedPositionInfo { ledger_id: ledger, entry_id: entry };
        let individual_deleted_messages = (0..self.below(size + 1))
            .map(|_| {
                let lower = entry + 1 + self.below(5).cast_signed();
                entry = lower + 1 + self.below(1 << 12).cast_signed();
                MessageRange { lower_endpoint: at(lower), upper_endpoint: at(entry) }
            })
            .collect();
        ManagedCursorInfo {
            cursors_ledger_id: if self.below(2) == 0 { -1 } else { ledger },
            mark_delete_ledger_id: (self.below(4) > 0).then_some(ledger),
            mark_delete_entry_id: (self.below(4) > 0).then_some(7),
            individual_deleted_messages,
            properties: (0..self.below(4))
                .map(|n| LongProperty { name: format!("p{n}"), value: -n.cast_signed() })
                .collect(),
            last_active: (self.below(2) == 0).then_some(1_700_000_000_000),
            batched_entry_deletion_index_info: (0..self.below(3))
                .map(|n| BatchedEntryDeletionIndexInfo {
                    position: at(n.cast_signed()),
                    delete_set: (0..self.below(9)).map(|_| self.next().cast_signed()).collect(),
                })
                .collect(),
            cursor_properties: (0..self.below(3))
                .map(|n| StringProperty { name: format!("é{n}"), value: "x".repeat(40) })
                .collect(),
        }
    }
}

#[test]
fn vectors_are_read() {
    let cursor = cursor();
    assert_eq!(cursor.cursors_ledger_id, -1);
    assert_eq!(cursor.mark_delete_ledger_id, Some(10));
    assert_eq!(cursor.mark_delete_entry_id, Some(5));
    assert_eq!(cursor.last_active, Some(1_700_000_000_000));
    let ends: Vec<[i64; 2]> = cursor
        .individual_deleted_messages
        .iter()
        .map(|range| [range.lower_endpoint.entry_id, range.upper_endpoint.entry_id])
        .collect();
    assert_eq!(ends, [[7, 8], [9, 10], [11, 12]]);
    assert_eq!(cursor.encode_to_vec(), unhex(PLAIN));
    for (compression, vector) in VECTORS {
        let bytes = unhex(vector);
        let envelope = Envelope::parse(&bytes).unwrap().unwrap();
        assert_eq!(envelope.compression_type, compression);
        assert_eq!((envelope.metadata_size, envelope.payload_offset()), (4, 10));
        assert_eq!(envelope.uncompressed_size, 64);
        assert_eq!(envelope.unpack(64).unwrap(), unhex(PLAIN), "{}", compression.name());
    }
}

/// zlib is the same everywhere; the others may find other matches in other versions.
#[test]
fn vectors_are_written() {
    for (compression, vector) in VECTORS {
        let node = Envelope::emit(Magic::Info, compression, &unhex(PLAIN)).unwrap();
        let same = if compression == CompressionType::Zlib { node.len() } else { 10 };
        assert_eq!(node[..same], unhex(vector)[..same], "{}", compression.name());
        assert!(node.len() < unhex(vector).len() + 4, "{}", compression.name());
    }
    let node = Envelope::emit(Magic::Draft, CompressionType::Zstd, b"").unwrap();
    assert_eq!(node[..10], [0x47, 0x79, 0, 0, 0, 4, 8, 3, 16, 0]);
    // Pulsar's zstd has a content checksum.
    assert_eq!(node[14] & 4, 4);
}

#[test]
fn threshold_of_pip_270() {
    let plain = unhex(PLAIN);
    let store = |compression, threshold| store(compression, threshold, &plain).unwrap();
    assert_eq!(store(CompressionType::None, 0), plain);
    assert_eq!(store(CompressionType::Zstd, 64), plain, "not larger than it");
    assert_ne!(store(CompressionType::Zstd, 63), plain);
}

#[test]
fn what_comes_back() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..150u64 {
        let cursor = random.cursor(round * 10);
        let plain = cursor.encode_to_vec();
        for compression in CompressionType::ALL {
            for magic in [Magic::Info, Magic::Draft] {
                let node = Envelope::emit(magic, compression, &plain).unwrap();
                let envelope = Envelope::parse(&node).unwrap().unwrap();
                assert_eq!(envelope.magic, magic);
                assert_eq!(envelope.unpack(plain.len()).unwrap(), plain);
            }
            let node = store(compression, 0, &plain).unwrap();
            assert_eq!(open(&node, plain.len()).unwrap(), cursor);
            assert_eq!(open(&node, plain.len() - 1).unwrap_err().kind(), ErrorKind::Limit);
        }
    }
}

#[test]
fn empty_and_large_messages() {
    for size in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
        for plain in [vec![7; size], (0..size).map(|n| ((n * n) >> 7) as u8).collect()] {
            for compression in CompressionType::ALL {
                let node = Envelope::emit(Magic::Info, compression, &plain).unwrap();
                let envelope = Envelope::parse(&node).unwrap().unwrap();
                assert!(envelope.unpack(size).unwrap() == plain, "{size} {compression:?}");
            }
        }
    }
}

/// Finished, and cut within the trailer, which Pulsar never has.
#[test]
fn zlib_finished_or_not() {
    use std::io::Write;
    let plain = unhex(PLAIN);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&plain).unwrap();
    let finished = encoder.finish().unwrap();
    let node = |payload: &[u8]| [b"\x47\x78\0\0\0\x04\x08\x02\x10\x40", payload].concat();
    let at = |payload: &[u8]| open(&node(payload), 64).map_err(|error| error.kind());
    assert_eq!(at(&finished), Ok(cursor()));
    assert_eq!(at(&finished[..finished.len() - 2]), Ok(cursor()));
    assert_eq!(at(&finished[..20]), Err(ErrorKind::Truncated));
    assert_eq!(at(&[&finished[..], b"more"].concat()), Err(ErrorKind::Payload));
    let mut sum = finished.clone();
    *sum.last_mut().unwrap() ^= 1;
    assert_eq!(at(&sum), Err(ErrorKind::Payload));
}

/// Field and kind of what is wrong with the envelope of a vector.
fn fault(node: &[u8]) -> (ErrorKind, u64, String) {
    let error = open(node, DEFAULT_LIMIT).unwrap_err();
    (error.kind(), error.position(), error.field().to_owned())
}

#[test]
fn headers_that_cannot_be() {
    let lz4 = unhex(VECTORS[0].1);
    for (node, want) in [
        (&b""[..], (ErrorKind::Message, 0, "ManagedCursorInfo.cursorsLedgerId")),
        (b"\x47", (ErrorKind::Envelope, 0, "magic")),
        (b"\x08", (ErrorKind::Envelope, 0, "magic")),
        (b"\x47\x78", (ErrorKind::Envelope, 2, "metadata size")),
        (b"\x47\x79\0\0\0", (ErrorKind::Envelope, 5, "metadata size")),
        (b"\x47\x78\xff\xff\xff\xff\x08", (ErrorKind::Envelope, 2, "metadata size")),
        (b"\x47\x78\x7f\xff\xff\xff\x08", (ErrorKind::Envelope, 2, "metadata size")),
        (b"\x47\x78\0\0\0\x02\x08", (ErrorKind::Envelope, 2, "metadata size")),
        (b"\x47\x78\0\0\0\0", (ErrorKind::Envelope, 6, "metadata.compressionType")),
        (b"\x47\x78\0\0\0\x02\x08\x01", (ErrorKind::Envelope, 6, "metadata.uncompressedSize")),
        (
            b"\x47\x78\0\0\0\x04\x08\x05\x10\x01a",
            (ErrorKind::Envelope, 6, "metadata.compressionType"),
        ),
        (
            b"\x47\x78\0\0\0\x08\x08\x00\x10\xff\xff\xff\xff\x0fa",
            (ErrorKind::Envelope, 9, "metadata.uncompressedSize"),
        ),
        (&lz4[..10], (ErrorKind::Truncated, 10, "payload (LZ4)")),
        (b"\x47\x77\0\0", (ErrorKind::Message, 0, "ManagedCursorInfo.tag")),
    ] {
        let (kind, position, field) = want;
        assert_eq!(fault(node), (kind, position, field.to_owned()), "{node:x?}");
    }
}

/// Sizes that the payload does not have, up to the largest there is.
#[test]
fn sizes_that_lie() {
    for (compression, vector) in VECTORS {
        let (node, plain) = (unhex(vector), unhex(PLAIN));
        let payload = &Envelope::parse(&node).unwrap().unwrap().payload.to_vec();
        for declared in [0, 1, 63, 65, 1000, 1 << 20, i32::MAX, -1] {
            let metadata = ManagedInfoMetadata {
                compression_type: compression.number(),
                uncompressed_size: declared,
            }
            .encode_to_vec();
            let node =
                [b"\x47\x78\0\0\0", &[metadata.len() as u8][..], &metadata, payload].concat();
            let (kind, position, field) = fault(&node);
            let beyond = compression == CompressionType::Zstd && declared == i32::MAX;
            let want = if beyond { ErrorKind::Limit } else { ErrorKind::Size };
            assert_eq!((kind, &*field), (want, "metadata.uncompressedSize"), "{declared}");
            assert_eq!(position, 6);
        }
        // Cut at any byte: never taken for whole, but for zlib without its flush, of which
        // the message is whole.
        for len in 10..node.len() {
            match open(&node[..len], 64) {
                Ok(cursor) => {
                    assert_eq!(compression, CompressionType::Zlib);
                    assert_eq!(cursor.encode_to_vec(), plain);
                    assert!(len + 6 > node.len());
                }
                Err(error) => assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::Truncated | ErrorKind::Payload | ErrorKind::Size
                    ),
                    "{len}: {error}"
                ),
            }
        }
        assert_eq!(open(&node, 64).unwrap().encode_to_vec(), plain);
    }
}

/// Any byte changed to any other: an error or a value, and never more than is declared. With
/// zstd's checksum the value is the right one; the others have none, so that theirs may be
/// another.
#[test]
fn any_byte_flipped() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let large = random.cursor(40).encode_to_vec();
    for plain in [unhex(PLAIN), large] {
        let want: ManagedCursorInfo = decode(&plain, 0).unwrap().0;
        for compression in CompressionType::ALL {
            let node = Envelope::emit(Magic::Info, compression, &plain).unwrap();
            for at in 0..node.len() {
                let step = if node.len() < 100 { 1 } else { 37 };
                for change in (1..=255).step_by(step) {
                    let mut node = node.clone();
                    node[at] ^= change;
                    let Ok(found) = Node::parse(&node) else { continue };
                    let Ok(message) = found.message(1 << 20) else { continue };
                    assert!(message.len() <= 1 << 20);
                    let value = decode::<ManagedCursorInfo>(&message, 0);
                    if let (CompressionType::Zstd, Ok((value, _))) = (compression, value) {
                        assert_eq!(value, want, "byte {at} by {change:#x}");
                    }
                }
            }
        }
    }
}

/// Fields of a later Pulsar are in the message still after it went through other types.
#[test]
fn unknown_fields_stay() {
    let plain = [&unhex(PLAIN)[..], b"\xa2\x06\x05later"].concat();
    assert_eq!(decode::<ManagedCursorInfo>(&plain, 0).unwrap().1, 1);
    for compression in CompressionType::ALL {
        let node = store(compression, 0, &plain).unwrap();
        assert_eq!(Node::parse(&node).unwrap().message(1000).unwrap(), plain);
    }
}

#[test]
fn errors_in_a_compressed_message_tell_both_places() {
    let node = Envelope::emit(Magic::Info, CompressionType::Lz4, b"\x08\x01\x22\0").unwrap();
    assert_eq!(
        open(&node, 64).unwrap_err().to_string(),
        "byte 10: MessageRange.lowerEndpoint: is required and missing, at byte 4 of the \
         decompressed message"
    );
}

#[test]
fn backlog() {
    let mut cursor = cursor();
    assert_eq!(
        Backlog::of(&cursor),
        Backlog {
            mark_delete: Some([10, 5]),
            ranges: 3,
            ranges_in_one_ledger: 3,
            entries_in_them: 3,
            backward_ranges: 0,
            range_bytes: 42,
        }
    );
    assert_eq!(Backlog::of(&cursor).bytes_per_range(), 14.0);
    let at = |ledger_id, entry_id| NestedPositionInfo { ledger_id, entry_id };
    for (lower_endpoint, upper_endpoint) in
        [(at(10, 20), at(11, 2)), (at(12, 5), at(12, 5)), (at(13, i64::MIN), at(13, i64::MAX))]
    {
        let range = MessageRange { lower_endpoint, upper_endpoint };
        cursor.individual_deleted_messages.push(range);
    }
    let facts = Backlog::of(&cursor);
    assert_eq!((facts.ranges, facts.ranges_in_one_ledger, facts.backward_ranges), (6, 4, 1));
    assert_eq!(facts.entries_in_them, u64::MAX, "as many as can be said");
    cursor.individual_deleted_messages.clear();
    cursor.mark_delete_entry_id = None;
    assert_eq!(Backlog::of(&cursor), Backlog::default());
    assert_eq!(Backlog::of(&cursor).bytes_per_range(), 0.0);
}

#[test]
fn ledgers() {
    let info = ManagedLedgerInfo {
        ledger_info: vec![LedgerInfo {
            ledger_id: 5,
            entries: Some(10),
            size: Some(1 << 40),
            timestamp: None,
            offload_context: Some(Box::new(OffloadContext {
                complete: Some(true),
                driver_metadata: Some(OffloadDriverMetadata {
                    name: "S3".to_owned(),
                    properties: vec![KeyValue { key: "k".to_owned(), value: "v".to_owned() }],
                }),
                offload_segment: vec![OffloadSegment {
                    end_entry_id: Some(3),
                    ..OffloadSegment::default()
                }],
                ..OffloadContext::default()
            })),
        }],
        terminated_position: Some(NestedPositionInfo { ledger_id: 5, entry_id: 9 }),
        properties: Vec::new(),
    };
    let plain = info.encode_to_vec();
    for compression in CompressionType::ALL {
        let node = store(compression, 0, &plain).unwrap();
        let message = Node::parse(&node).unwrap().message(1000).unwrap().into_owned();
        assert_eq!(decode::<ManagedLedgerInfo>(&message, 0).unwrap(), (info.clone(), 0));
    }
    let positions = PositionInfo {
        individual_deleted_message_ranges: vec![LongListMap { key: 1, values: vec![2, 3] }],
        ..PositionInfo::default()
    };
    assert_eq!(decode(&positions.encode_to_vec(), 0), Ok((positions, 0)));
}
