//! Any bytes as a compressed stream. The first byte chooses the codec, the second how
//! the rest is cut: pieces through a small window give what the whole gives through a
//! large one, and nothing comes out that was in the window before.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use logseg_core::codec::{CodecError, CodecErrorKind, zstd};
use logseg_core::{Builtin, Codec, Codecs, Magic};
use logseg_tests::Chunking;
use logseg_tests::read::decode_some;

const HUGE: usize = 6 << 20;
const MOST: usize = 1 << 20;

thread_local! {
    static BUFFERS: RefCell<(Vec<u8>, Vec<u8>)> =
        RefCell::new((vec![0; HUGE], vec![0; zstd::workspace_len(8 << 20)]));
}

fn run(
    (codec, magic): (Codec, Magic),
    data: &[u8],
    chunking: Chunking,
    window: usize,
    fill: Option<u8>,
) -> Result<Vec<u8>, CodecErrorKind> {
    BUFFERS.with_borrow_mut(|(buffer, workspace)| {
        if let Some(fill) = fill {
            buffer[..window].fill(fill);
        }
        let mut codecs = Builtin::new().with_zstd(workspace);
        let decoder = codecs.decoder(codec, magic).expect("it is built in");
        decode_some(decoder, data, chunking, &mut buffer[..window], MOST)
    })
}

fuzz_target!(|data: &[u8]| {
    let [how, cut, data @ ..] = data else { return };
    let codec = match how % 5 {
        0 => (Codec::Gzip, Magic::V2),
        1 => (Codec::Snappy, Magic::V2),
        2 => (Codec::Lz4, Magic::V2),
        3 => (Codec::Lz4, Magic::V0),
        _ => (Codec::Zstd, Magic::V2),
    };
    let chunking = match cut {
        0 => Chunking::Bytes,
        1 => Chunking::Whole,
        2..100 => Chunking::At(usize::from(*cut) - 2),
        seed => Chunking::Random((*seed).into()),
    };
    let small = (64 << 10) + 512 + 16 * usize::from(*how);
    let whole = run(codec, data, Chunking::Whole, HUGE, None);
    let zeros = run(codec, data, chunking, small, Some(0));
    let ones = run(codec, data, chunking, small, Some(0xff));
    assert!(zeros == ones, "something was in the window before");
    let name = |result: &Result<Vec<u8>, CodecErrorKind>| {
        result.as_ref().err().map(|&kind| CodecError { kind, at: 0 }.in_batch(codec.0, 0, 0).name())
    };
    if matches!(zeros, Err(CodecErrorKind::BufferTooSmall { .. })) {
        return;
    }
    let full = |result: &Result<Vec<u8>, _>| result.as_ref().is_ok_and(|out| out.len() == MOST);
    match (full(&whole), full(&zeros)) {
        // A fault behind the limit is met by the one and not by the other.
        (false, true) if whole.is_err() => {}
        _ => assert_eq!(name(&whole), name(&zeros)),
    }
    if let (Ok(whole), Ok(zeros)) = (whole, zeros) {
        assert!(whole == zeros);
    }
});
