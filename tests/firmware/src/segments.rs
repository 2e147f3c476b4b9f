//! What is in flash. `tests/corpus/README.md` tells where it is from.

/// The start of a larger segment: only so much of it gets into the program. It is cut
/// anywhere, so most end in a partial batch.
const fn start<const LEN: usize>(segment: &[u8]) -> [u8; LEN] {
    match segment.first_chunk() {
        Some(start) => *start,
        None => panic!("the segment is shorter"),
    }
}

macro_rules! cases {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../../corpus/cases/", $name, "/input.log")))),*]
    };
}

macro_rules! starts {
    ($($name:literal $len:literal)*) => {
        &[$(($name, {
            static START: [u8; $len] =
                start(include_bytes!(concat!("../../corpus/segments/", $name, ".log")));
            &START
        })),*]
    };
}

/// A name, and the bytes.
pub type Segment = (&'static str, &'static [u8]);

/// Every codec and every magic, sound and broken.
pub const CASES: &[Segment] = cases![
    "001-snappy-xerial-multi-block"
    "002-snappy-raw-unframed"
    "003-snappy-xerial-redpanda-version-le"
    "006-snappy-short-payloads"
    "008-snappy-raw-hostile-uncompressed-length"
    "009-snappy-google-framing-not-kafka"
    "020-lz4-v0-broken-header-checksum"
    "021-lz4-v1-v2-right-header-checksum"
    "022-lz4-v2-broken-header-checksum"
    "024-lz4-all-optional-header-fields"
    "025-lz4-linked-blocks"
    "028-lz4-extreme-ratio"
    "029-lz4-truncated-frames"
    "040-gzip-optional-header-fields"
    "042-gzip-truncated"
    "050-zstd-no-content-size"
    "051-zstd-multi-frame"
    "055-zstd-codec-mask-three-bits"
    "057-zstd-in-legacy-wrapper"
    "060-empty-batches-kept-by-cleaner"
    "061-compacted-offset-gaps"
    "071-null-versus-empty"
    "072-headers-duplicate-unicode-many"
    "080-header-count-negative-or-huge"
    "082-record-count-off-by-one"
    "084-record-length-lies"
    "086-unknown-codec-ids"
    "100-v1-relative-offsets"
    "102-v0-absolute-offsets"
    "104-v1-log-append-time"
    "105-mixed-magic-in-one-segment"
    "106-nested-compression"
    "108-v0-v1-null-empty-and-crc-bounds"
    "120-partial-trailing-batch"
    "124-batch-length-huge"
    "126-crc-mismatch-in-the-middle"
    "140-abort-marker-only-log"
    "141-transactions-aborted-compressed"
    "143-malformed-control"
    "144-kraft-control-records"
    "200-analyzer-known-numbers"
];

/// What Kafka's own classes wrote. The zstd frames among them declare 2 MiB of window
/// and must be refused as too large for this device, and nothing else.
pub const STARTS: &[Segment] = starts![
    "birdstrikes-mixed" 24000
    "levels" 36000
    "webhooks-lz4" 16000
    "webhooks-snappy" 16000
    "quakes-v0-gzip" 12000
    "quakes-v0-lz4" 12000
    "quakes-v0-mixed" 24000
    "quakes-v1-mixed" 24000
    "quakes-v1-snappy" 12000
];

/// What the corpus lacks; `segments/make.py` made it. zstd with windows of 1, 2, 4, 8
/// and, too large for this device, 16 KiB; and records larger than the input buffer in
/// batches that are not compressed.
pub const MADE: &[Segment] = &[
    ("zstd-windows", include_bytes!("../segments/zstd-windows.log")),
    ("large-plain", include_bytes!("../segments/large-plain.log")),
];

/// All of them.
pub fn all() -> impl Iterator<Item = Segment> {
    [CASES, STARTS, MADE].into_iter().flatten().copied()
}
