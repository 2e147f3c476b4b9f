//! Any bytes as snappy: raw, and as the blocks of a xerial stream, against `snap`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logseg_core::codec::xerial::{Framing, Xerial};
use logseg_tests::Chunking;
use logseg_tests::pack::XERIAL_HEADER;
use logseg_tests::read::decode_some;

const MOST: usize = 1 << 20;

/// What `snap` makes of a block; `None` if it would be too much.
fn block(data: &[u8]) -> Option<Result<Vec<u8>, snap::Error>> {
    match snap::raw::decompress_len(data) {
        Ok(len) if len >= MOST => None,
        _ => Some(snap::raw::Decoder::new().decompress_vec(data)),
    }
}

fn core(data: &[u8], chunking: Chunking) -> Option<Vec<u8>> {
    let mut window = vec![0; MOST + (64 << 10)];
    decode_some(&mut Xerial::default(), data, chunking, &mut window, MOST).ok()
}

fuzz_target!(|data: &[u8]| {
    let Some((&cut, data)) = data.split_first() else { return };
    let chunking = if cut == 0 { Chunking::Whole } else { Chunking::Random(cut.into()) };
    if Framing::of(data) == Framing::Raw
        && let Some(want) = block(data)
    {
        assert!(core(data, chunking) == want.ok(), "raw");
    }
    // Blocks of the lengths that the bytes themselves tell.
    let mut stream = XERIAL_HEADER.to_vec();
    let mut want = Some(Vec::new());
    let mut rest = data;
    while let Some((&len, behind)) = rest.split_first() {
        let n = usize::from(len).min(behind.len());
        let (part, behind) = behind.split_at(n);
        rest = behind;
        if len == 0xff {
            stream.extend(XERIAL_HEADER);
        }
        if part.is_empty() {
            continue;
        }
        stream.extend(u32::from(len).min(n as u32).to_be_bytes());
        stream.extend(part);
        let Some(plain) = block(part) else { return };
        want = want.zip(plain.ok()).map(|(mut all, plain)| {
            all.extend(plain);
            all
        });
    }
    if want.as_ref().is_none_or(|all| all.len() < MOST) {
        assert!(core(&stream, chunking) == want, "xerial");
    }
});
