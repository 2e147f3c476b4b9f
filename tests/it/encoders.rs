//! What encoders write that share nothing with those of the kit.

use std::fs;

use logseg_core::error::ErrorKind;
use logseg_core::{BatchReader, Builtin, Codec, Codecs, Cpu, Magic, Unpacker};
use logseg_tests::chunks::Chunking;
use logseg_tests::corpus::root;
use logseg_tests::digest::sha256;
use logseg_tests::pack::Packing;
use logseg_tests::read::{decode, stream_with};
use logseg_tests::{BatchBuilder, MessageBuilder};

/// The records section that all of them are made from: 217 records, 264,388 bytes.
const PLAIN: &str = "a03661e3c3a5139d493ff29eabc4688f0189d3991bca71d77de3cbecbc827db5";
/// The values of its records, one behind the other.
const VALUES: &str = "aa40a54655b4b390467d8627454b81360fc854e8f226368da48571cc0d8a81ba";

fn vectors() -> Vec<(String, Codec, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(root().join("encoders"))
        .expect("encoders")
        .map(|file| {
            let path = file.expect("a file").path();
            let codec = match path.extension().and_then(|end| end.to_str()) {
                Some("lz4") => Codec::Lz4,
                Some("snappy") => Codec::Snappy,
                other => panic!("{other:?}"),
            };
            let name = path.file_name().expect("a name").display().to_string();
            (name, codec, fs::read(path).expect("a vector"))
        })
        .collect();
    found.sort();
    assert_eq!(found.len(), 6);
    found
}

/// As little as a stream is promised to get by with: 64 KiB of history, and some room.
const WINDOW: usize = (64 << 10) + 64;

/// Whether it copies from farther back than 64 KiB, as klauspost's encoders do.
fn reaches_far(name: &str) -> bool {
    name.starts_with("s2")
}

#[test]
fn they_decode_over_64_kib_of_history() {
    for (name, codec, payload) in vectors() {
        let mut codecs = Builtin::new();
        for (window, chunking) in [
            (WINDOW, Chunking::Random(1)),
            (2 * WINDOW, Chunking::Bytes),
            (2 * WINDOW, Chunking::Whole),
            (8 << 20, Chunking::Whole),
        ] {
            if reaches_far(&name) && window < 8 << 20 {
                continue;
            }
            let decoder = codecs.decoder(codec, Magic::V2).unwrap();
            let plain = decode(decoder, &payload, chunking, &mut vec![0x5a; window]).unwrap();
            assert_eq!(plain.len(), 264_388, "{name}");
            assert_eq!(sha256(&plain), PLAIN, "{name}: window {window}, {chunking:?}");
        }
    }
}

#[test]
fn their_batches_pass_through() {
    for (name, codec, payload) in vectors() {
        let batch = BatchBuilder::new(Vec::new())
            .packing(Packing::java(codec))
            .payload(payload)
            .count(217)
            .last_offset_delta(216)
            .build();
        for (buffer, chunking) in [(61, Chunking::Whole), (4096, Chunking::Random(2))] {
            // The second is as large as what comes out.
            for window in [WINDOW + 4096, 264_388] {
                let mut window = vec![0; window];
                let have = window.len() as u64;
                let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
                let mut reader = BatchReader::new(vec![0; buffer], Cpu::detect());
                let reading = stream_with(&batch, chunking, &mut reader, &mut unpacker);
                let [read] = &reading.batches[..] else { panic!("{name}") };
                if reaches_far(&name) && have < 264_388 {
                    // Nothing is wrong with it, and it says how much would do.
                    let kind = ErrorKind::BufferTooSmall { need: 264_388, have };
                    assert_eq!(read.end.verdict.unwrap_err().kind(), kind, "{name}");
                    continue;
                }
                assert_eq!(read.end.verdict, Ok(()), "{name}");
                assert_eq!((read.records.len(), read.end.offsets), (217, Some((0, 216))));
                let values: Vec<u8> =
                    read.records.iter().flat_map(|record| record.value.clone().unwrap()).collect();
                assert_eq!(sha256(&values), VALUES, "{name}");
            }
        }
    }
}

#[test]
fn their_payload_is_no_set_of_messages() {
    // In a wrapper of magic 1 it decodes as well, and holds no messages.
    for (name, codec, payload) in vectors() {
        let wrapper = MessageBuilder::new(1, &logseg_tests::Rec::default())
            .value(Some(payload))
            .attributes(codec.id())
            .build();
        let mut window = vec![0; 1 << 20];
        let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
        let mut reader = BatchReader::new(vec![0; 61], Cpu::detect());
        let reading = stream_with(&wrapper, Chunking::Whole, &mut reader, &mut unpacker);
        assert_eq!(reading.batches[0].fault(), Some("malformed_wrapper"), "{name}");
    }
}
