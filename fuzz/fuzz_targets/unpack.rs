//! Any bytes as a segment: no panic, an end, and the same verdicts through a small
//! window as through a huge one.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use logseg_core::codec::zstd;
use logseg_core::{Builtin, CrcPolicy, Limits, Unpacker};
use logseg_tests::read::{Reading, read_with};

const HUGE: usize = 4 << 20;
const LIMIT: u64 = 8 << 20;

thread_local! {
    /// Not cleared in between: what one input leaves there must not matter to the next.
    static BUFFERS: RefCell<(Vec<u8>, Vec<u8>)> =
        RefCell::new((vec![0; HUGE], vec![0; zstd::workspace_len(8 << 20)]));
}

fn read(segment: &[u8], window: usize, crc: CrcPolicy) -> Reading {
    BUFFERS.with_borrow_mut(|(buffer, workspace)| {
        let codecs = Builtin::new().with_zstd(workspace);
        let limits = Limits::default().with_decompressed(LIMIT);
        let mut unpacker =
            Unpacker::new(codecs, &mut buffer[..window]).with_limits(limits).with_crc_policy(crc);
        read_with(segment, &mut unpacker)
    })
}

fuzz_target!(|data: &[u8]| {
    // Most of what is to be found is behind the checksum.
    let room = [64, 700, 5000][data.len() % 3];
    let small = read(data, (64 << 10) + room, CrcPolicy::Skip);
    let huge = read(data, HUGE, CrcPolicy::Skip);
    let verified = read(data, (64 << 10) + room, CrcPolicy::Verify);
    assert_eq!((&small.errors, small.tail), (&huge.errors, huge.tail));
    assert_eq!((&small.errors, small.tail), (&verified.errors, verified.tail));
    assert_eq!(small.batches.len(), huge.batches.len());
    for ((a, b), v) in small.batches.iter().zip(&huge.batches).zip(&verified.batches) {
        assert_eq!(a.header, b.header);
        if v.fault() != Some("crc_mismatch") {
            assert_eq!(v.end, a.end);
        }
        // A limit may be met before or behind a fault, and a small window be too small.
        let limit = |name: Option<&str>| name.is_some_and(|n| n.starts_with("decompress_limit"));
        if a.fault() == Some("decompress_limit_buffer") {
            continue;
        }
        if !limit(a.fault()) && !limit(b.fault()) {
            assert_eq!(a.end.verdict, b.end.verdict);
        }
        assert_eq!(a.end.verdict.is_ok(), b.end.verdict.is_ok(), "{:?} and {:?}", a.end, b.end);
        if a.end.verdict.is_ok() {
            assert_eq!(a.end, b.end);
            assert!(a.records == b.records);
        }
    }
});
