//! The law: any bytes as a segment, in any pieces and through small buffers, give what
//! they give as a whole.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use logseg_core::codec::zstd;
use logseg_core::{Batch, BatchReader, Batches, Builtin, Cpu, CrcPolicy, Limits, Unpacker};
use logseg_tests::Chunking;
use logseg_tests::build::fix_crcs;
use logseg_tests::read::{Reading, assert_same, read_with, stream_with, walk};

const HUGE: usize = 9 << 20;
const LIMIT: u64 = 8 << 20;

struct Buffers {
    input: Vec<u8>,
    window: Vec<u8>,
    workspace: Vec<u8>,
}

thread_local! {
    /// Not cleared in between: what one input leaves there must not matter to the next.
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        input: vec![0; 64 << 10],
        window: vec![0; HUGE],
        workspace: vec![0; zstd::workspace_len(8 << 20)],
    });
}

fn read(segment: &[u8], crc: CrcPolicy, stream: Option<(Chunking, usize, usize)>) -> Reading {
    BUFFERS.with_borrow_mut(|Buffers { input, window, workspace }| {
        let codecs = Builtin::new().with_zstd(workspace);
        let (_, buffer, room) = stream.unwrap_or((Chunking::Whole, 0, HUGE));
        let mut unpacker = Unpacker::new(codecs, &mut window[..room])
            .with_limits(Limits::default().with_decompressed(LIMIT))
            .with_crc_policy(crc);
        let Some((chunking, ..)) = stream else { return read_with(segment, &mut unpacker) };
        let mut reader = BatchReader::new(&mut input[..buffer], Cpu::detect());
        stream_with(segment, chunking, &mut reader, &mut unpacker)
    })
}

fuzz_target!(|data: &[u8]| {
    let [how, cut, segment @ ..] = data else { return };
    let chunking = match cut {
        0 => Chunking::Bytes,
        1 => Chunking::Whole,
        2..100 => Chunking::At(usize::from(*cut) * 2),
        seed => Chunking::Random((*seed).into()),
    };
    let buffer = [61, 62 + usize::from(*cut), 1 << 10, 64 << 10][usize::from(how % 4)];
    let window = [66 << 10, 130 << 10, HUGE][usize::from(how / 4 % 3)];
    // Most of what is to be found is behind the checksum.
    let crc = if how & 0x40 == 0 { CrcPolicy::Verify } else { CrcPolicy::Skip };
    let mut segment = segment.to_vec();
    if how & 0x80 == 0 {
        fix_crcs(&mut segment);
    }
    let whole = read(&segment, crc, None);
    let stream = read(&segment, crc, Some((chunking, buffer, window)));
    assert_same(&whole, &stream, "stream and slice");
    // The slice API with every backend; it asserts that they agree.
    for batch in Batches::new(&segment, Cpu::scalar()).map_while(Result::ok) {
        let _ = walk(&batch, Batch::records_unchecked);
    }
});
