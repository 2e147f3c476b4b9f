//! Nothing that was in the window before, and nothing that nobody wrote, comes out.

use logseg_core::codec::{CodecErrorKind, zstd};
use logseg_core::crc32c::crc32;
use logseg_core::error::CodecFault;
use logseg_core::{Builtin, Codec, Codecs, Limits, Magic, Unpacker};
use logseg_tests::chunks::{Chunking, Random};
use logseg_tests::corpus::files;
use logseg_tests::pack::Packing;
use logseg_tests::read::decode;
use logseg_tests::read_with;

/// Decodes over a window, and with a workspace, full of this byte.
fn over(
    fill: u8,
    codec: Codec,
    packed: &[u8],
    chunking: Chunking,
) -> Result<Vec<u8>, CodecErrorKind> {
    let mut workspace = vec![fill; zstd::workspace_len(2 << 20)];
    let mut codecs = Builtin::new().with_zstd(&mut workspace);
    let decoder = codecs.decoder(codec, Magic::V2).unwrap();
    decode(decoder, packed, chunking, &mut vec![fill; (64 << 10) + 3000])
}

#[test]
fn decoders_give_nothing_that_was_there_before() {
    let mut random = Random(11);
    for packing in Packing::all() {
        let codec = packing.codec();
        if codec == Codec::None {
            continue;
        }
        let packed = packing.pack(&random.data(3000));
        for _ in 0..60 {
            // Mostly distances and lengths that are wrong.
            let mut bad = packed.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bad.len());
                bad[at] = random.byte();
            }
            let chunking = Chunking::Random(random.bits());
            for chunking in [Chunking::Whole, chunking] {
                let first = over(0x00, codec, &bad, chunking);
                let second = over(0xff, codec, &bad, chunking);
                assert!(first == second, "{packing:?} {chunking:?}: {bad:02x?}");
            }
        }
    }
}

#[test]
fn a_copy_does_not_reach_the_block_before() {
    // A block of "secret", then one whose first element copies six bytes from six back.
    let mut stream = logseg_tests::pack::XERIAL_HEADER.to_vec();
    let secret = logseg_tests::pack::snappy_block(b"secret");
    stream.extend([0, 0, 0, 8]);
    stream.extend(&secret);
    let first = stream.len();
    stream.extend([0, 0, 0, 4, 6, 0x16, 6, 0]);
    assert_eq!(over(0, Codec::Snappy, &stream[..first], Chunking::Whole).unwrap(), b"secret");
    let error = over(0, Codec::Snappy, &stream, Chunking::Bytes).unwrap_err();
    assert!(matches!(error, CodecErrorKind::Fault(_)), "{error:?}");
    // The same in lz4: stored block, then a match of 6 at distance 6.
    let mut frame = logseg_tests::unhex("04224d18604082 06000080 736563726574 04000000");
    frame.extend([0x02, 6, 0, 0x00]);
    frame.extend([0; 4]);
    let error = over(0, Codec::Lz4, &frame, Chunking::Bytes).unwrap_err();
    assert!(matches!(error, CodecErrorKind::Fault(_)), "{error:?}");
    let error = over(0, Codec::Lz4, &frame, Chunking::Whole).unwrap_err();
    assert!(matches!(error, CodecErrorKind::Fault(_)), "{error:?}");
    // And in gzip: a second member of "sec", copied from the end of the first.
    let mut members = Packing::java(Codec::Gzip).pack(b"secret");
    members.extend(logseg_tests::unhex("1f8b0800000000000000 039200"));
    members.extend(crc32(b"sec").to_le_bytes());
    members.extend([3, 0, 0, 0]);
    for chunking in [Chunking::Whole, Chunking::Bytes] {
        let error = over(0, Codec::Gzip, &members, chunking).unwrap_err();
        assert!(matches!(error, CodecErrorKind::Fault(CodecFault::Corrupt(_))), "{error:?}");
    }
}

#[test]
fn readers_give_the_same_over_any_garbage() {
    // One unpacker after the other over the same window and workspace, so that each
    // finds what the one before left there.
    let mut workspace = vec![0x11; zstd::workspace_len(1 << zstd::WINDOW_LOG_MAX)];
    let mut window = vec![0x11; (64 << 10) + 3000];
    for file in files().iter().filter(|file| file.bytes.len() < 100_000) {
        let limits = Limits::default().with_decompressed(16 << 20);
        let mut readings = Vec::new();
        for fill in [None, Some(0x00), Some(0xff)] {
            if let Some(fill) = fill {
                window.fill(fill);
            }
            let codecs = Builtin::new().with_zstd(&mut workspace);
            let mut unpacker = Unpacker::new(codecs, &mut window).with_limits(limits);
            readings.push(read_with(&file.bytes, &mut unpacker));
        }
        for reading in &readings[1..] {
            assert_eq!(reading.batches.len(), readings[0].batches.len(), "{}", file.name);
            for (a, b) in reading.batches.iter().zip(&readings[0].batches) {
                assert_eq!(a.end, b.end, "{}", file.name);
                assert!(a.records == b.records, "{}", file.name);
            }
        }
    }
}
