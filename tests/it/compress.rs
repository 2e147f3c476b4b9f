//! Core's own encoders against the libraries that Kafka's clients call, and any chunking.

use logseg_core::codec::{
    BuiltinCompressors, Compress, Compressors, compress::bound, lz4_encode, xerial_encode,
};
use logseg_core::{Codec, Magic, Pause};
use logseg_tests::Packing;
use logseg_tests::chunks::Random;
use logseg_tests::corpus::segments;
use logseg_tests::pack::unpack;
use proptest::prelude::*;

use super::law::config;

/// Compresses, with inputs and outputs of random sizes up to these.
fn encode(
    compressor: &mut dyn Compress,
    plain: &[u8],
    input: usize,
    room: usize,
    seed: u64,
) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = Vec::new();
    let mut step = vec![0; room];
    compressor.reset();
    let mut rest = plain;
    while !rest.is_empty() {
        let piece = &rest[..rest.len().min(1 + random.below(input))];
        let spare = random.below(room + 1);
        let written = compressor.advance(piece, &mut step[..spare]).expect("it does not fail");
        out.extend(&step[..written.produced]);
        rest = &rest[written.consumed..];
        let full = written.pause == Pause::WindowFull;
        assert!(if full { written.produced == spare } else { written.consumed == piece.len() });
    }
    loop {
        let spare = random.below(room + 1);
        let written = compressor.finish(&mut step[..spare]).expect("it does not fail");
        out.extend(&step[..written.produced]);
        if written.pause == Pause::Finished {
            return out;
        }
    }
}

/// The frame of Kafka's `Lz4BlockOutputStream` with C lz4, the library of lz4-java.
fn c_lz4(plain: &[u8], magic: Magic) -> Vec<u8> {
    let mut frame = b"\x04\x22\x4d\x18\x60\x40".to_vec();
    frame.push(if magic == Magic::V0 { 0x1a } else { 0x82 });
    for block in plain.chunks(64 << 10) {
        let mut packed = Vec::new();
        lzzzz::lz4::compress_to_vec(block, &mut packed, lzzzz::lz4::ACC_LEVEL_DEFAULT)
            .expect("lz4");
        let (word, bytes) = if packed.len() < block.len() {
            (packed.len(), &packed[..])
        } else {
            (block.len() | 1 << 31, block)
        };
        frame.extend(u32::try_from(word).expect("fits").to_le_bytes());
        frame.extend(bytes);
    }
    frame.extend([0; 4]);
    frame
}

/// Holds one input to all laws of both encoders.
fn check(plain: &[u8], seed: u64) {
    let mut lz4 = Box::new(lz4_encode::Memory::new());
    let mut snappy = Box::new(xerial_encode::Memory::new());
    let mut compressors = BuiltinCompressors::new().with_lz4(&mut lz4).with_snappy(&mut snappy);
    for (codec, magic) in
        [(Codec::Lz4, Magic::V0), (Codec::Lz4, Magic::V2), (Codec::Snappy, Magic::V2)]
    {
        let compressor = compressors.compressor(codec, magic).expect("built in");
        let whole = encode(compressor, plain, 1 << 20, 1 << 20, seed);
        assert!(whole.len() as u64 <= bound(codec, plain.len() as u64));
        assert_eq!(unpack(codec, magic.number(), &whole).as_deref(), Ok(plain), "{codec}");
        for (input, room) in [(5000, 50), (70_000, 7), (300, 100_000)] {
            let parts = encode(compressor, plain, input, room, seed);
            assert!(parts == whole, "{codec} by {input}, {room}");
        }
        let peer = match codec {
            Codec::Lz4 => c_lz4(plain, magic),
            // Its hash differs from that of snappy-java in the tables of short blocks.
            _ if (1..=8 << 10).contains(&(plain.len() % (32 << 10))) => continue,
            _ => Packing::java(codec).pack(plain),
        };
        assert!(whole == peer, "{codec}: {} and {} bytes", whole.len(), peer.len());
    }
}

#[test]
fn the_corpus_compresses_to_the_bytes_of_the_libraries() {
    let mut total = 0;
    for segment in segments() {
        let bytes = &segment.file.bytes[..segment.file.bytes.len().min(300_000)];
        check(bytes, total);
        total += bytes.len() as u64;
    }
    assert!(total > 100_000, "{total}");
}

/// Text of few words, noise, runs, and what repeats from far back.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        (any::<u8>(), 0..3000usize).prop_map(|(byte, n)| vec![byte; n]),
        proptest::collection::vec(0..4usize, 0..300).prop_map(|words| {
            words
                .into_iter()
                .flat_map(|n| ["key ", "topic-1 ", "x", "value: "][n].bytes())
                .collect()
        }),
    ];
    (proptest::collection::vec(piece, 0..12), 1..20usize)
        .prop_map(|(pieces, times)| pieces.concat().repeat(times))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn any_bytes_compress_to_the_bytes_of_the_libraries(plain in data(), seed in any::<u64>()) {
        check(&plain, seed);
    }
}
