//! What records take, exactly and at most.
//!
//! ```text
//!  v0 record   14 + key + value                 (null counts 0), 12 more with offset and size
//!  v1 record   22 + key + value
//!  v2 record   varint(body) + body
//!       body   1 + varlong(timestamp delta) + varint(offset delta)
//!              + sized(key) + sized(value) + varint(headers) + Σ sized(key) + sized(value)
//!      sized   varint(len) + len; null is the varint of −1, one byte
//! ```
//! Source: `AbstractRecords.java`, `LegacyRecord.java`, `DefaultRecord.java`,
//! `DefaultRecordBatch.java` of Apache Kafka.

use super::write::{RecordFields, sized};
use crate::batch::{Header, Magic, Record};
use crate::codec::Codec;
use crate::varint::varlong_len;

/// Offset and size before every entry (`Records.LOG_OVERHEAD`), in bytes.
pub const LOG_OVERHEAD: u64 = 12;
/// Header of a v2 batch (`RECORD_BATCH_OVERHEAD`), in bytes.
pub const RECORD_BATCH_OVERHEAD: u64 = 61;
/// Most bytes of a v2 record beside key, value and headers: 5 of length, 10 of timestamp
/// delta, 5 of offset delta, 1 of attributes (`MAX_RECORD_OVERHEAD`).
pub const MAX_RECORD_OVERHEAD: u64 = 21;

/// Bytes of a v0/v1 message without offset and size, key and value: 14 or 22. Of a v2
/// batch there is no such thing; it gives [`MAX_RECORD_OVERHEAD`].
#[must_use]
pub const fn record_overhead(magic: Magic) -> u64 {
    match magic {
        Magic::V0 => 14,
        Magic::V1 => 22,
        Magic::V2 => MAX_RECORD_OVERHEAD,
    }
}

/// Bytes that a builder reserves before its records: the header of a v2 batch, or the
/// wrapper of a compressed v0/v1 set.
#[must_use]
pub const fn batch_header_size(magic: Magic, codec: Codec) -> u64 {
    match (magic, codec) {
        (Magic::V2, _) => RECORD_BATCH_OVERHEAD,
        (_, Codec::None) => 0,
        (Magic::V0 | Magic::V1, _) => LOG_OVERHEAD + record_overhead(magic),
    }
}

/// Bytes of a v0/v1 message, without its 12 of offset and size.
#[must_use]
pub fn legacy_record_size(magic: Magic, key: Option<&[u8]>, value: Option<&[u8]>) -> u64 {
    record_overhead(magic) + len(key) + len(value)
}

/// Bytes of a v2 record.
#[must_use]
pub fn default_record_size(
    offset_delta: i32,
    timestamp_delta: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[Header<'_>],
) -> u64 {
    let headers = headers.iter().copied();
    RecordFields::new(offset_delta, timestamp_delta, key, value, headers).size()
}

/// Most bytes of a record in the stream of its batch, whatever its offset and timestamp
/// (`recordSizeUpperBound`); exactly those of a v0/v1 message, with its 12 of offset and size.
/// [`super::BuilderOptions::capacity_for`] wants it of the first record.
#[must_use]
pub fn record_size_upper_bound(
    magic: Magic,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[Header<'_>],
) -> u64 {
    match magic {
        Magic::V0 | Magic::V1 => LOG_OVERHEAD + legacy_record_size(magic, key, value),
        Magic::V2 => MAX_RECORD_OVERHEAD + fields_size(key, value, headers),
    }
}

/// Bytes of one batch of these records that is not compressed, header included
/// (`sizeInBytes`); of none, 0. In v2 the first timestamp is the base timestamp; relative
/// offsets count from the base offset.
#[must_use]
pub fn size_in_bytes<'a>(
    magic: Magic,
    base_offset: i64,
    records: impl IntoIterator<Item = Record<'a>>,
) -> u64 {
    let mut records = records.into_iter().peekable();
    let Some(base_timestamp) = records.peek().map(|first| first.timestamp) else { return 0 };
    let size = |Record { offset, timestamp, key, value, headers, .. }: Record<'_>| match magic {
        Magic::V0 | Magic::V1 => LOG_OVERHEAD + legacy_record_size(magic, key, value),
        Magic::V2 => {
            let delta = offset.resolve(base_offset).wrapping_sub(base_offset);
            // Beyond an i32 there is no such batch.
            let delta = i32::try_from(delta).unwrap_or(i32::MAX);
            let delta_ms = timestamp.wrapping_sub(base_timestamp);
            RecordFields::new(delta, delta_ms, key, value, headers).size()
        }
    };
    batch_header_size(magic, Codec::None) + records.map(size).sum::<u64>()
}

/// Most bytes of an entry with this one record (`estimateSizeInBytesUpperBound`), in a
/// batch of its own. As in Kafka, the 12 bytes of offset and size that a message has
/// inside a wrapper are not counted.
#[must_use]
pub fn estimate_size_in_bytes_upper_bound(
    magic: Magic,
    codec: Codec,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[Header<'_>],
) -> u64 {
    match magic {
        Magic::V2 => RECORD_BATCH_OVERHEAD + record_size_upper_bound(magic, key, value, headers),
        Magic::V0 | Magic::V1 => {
            let record = legacy_record_size(magic, key, value);
            match codec {
                Codec::None => LOG_OVERHEAD + record,
                _ => batch_header_size(magic, codec) + record,
            }
        }
    }
}

/// Size of a buffer for records that are uncompressed `size` bytes, headers included
/// ([`size_in_bytes`]), to be compressed anew (`estimateSizeInBytes`): the same for codec
/// none, otherwise half of it within 1 KiB and 64 KiB.
#[must_use]
pub const fn estimate_size_in_bytes(codec: Codec, size: u64) -> u64 {
    match codec {
        Codec::None => size,
        _ if size / 2 < 1 << 10 => 1 << 10,
        _ if size / 2 > 1 << 16 => 1 << 16,
        _ => size / 2,
    }
}

pub(super) fn len(field: Option<&[u8]>) -> u64 {
    field.map_or(0, |bytes| bytes.len() as u64)
}

/// Key, value and headers of a v2 record.
fn fields_size(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) -> u64 {
    let count = i64::try_from(headers.len()).unwrap_or(i64::MAX);
    let headers = headers.iter().map(|Header { key, value }| sized(Some(key)) + sized(*value));
    sized(key) + sized(value) + varlong_len(count) as u64 + headers.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Kafka's own classes give.
    #[test]
    fn upper_bounds_of_every_version() {
        let none = |magic, key, value| {
            estimate_size_in_bytes_upper_bound(magic, Codec::None, key, value, &[])
        };
        let gzip = |magic, key, value| {
            estimate_size_in_bytes_upper_bound(magic, Codec::Gzip, key, value, &[])
        };
        let (key, value) = (Some(&b"key"[..]), Some(&b"value"[..]));
        assert_eq!((none(Magic::V0, key, value), none(Magic::V0, None, None)), (34, 26));
        assert_eq!((gzip(Magic::V0, key, value), gzip(Magic::V0, None, None)), (48, 40));
        assert_eq!((none(Magic::V1, key, value), none(Magic::V1, None, None)), (42, 34));
        assert_eq!((gzip(Magic::V1, key, value), gzip(Magic::V1, None, None)), (64, 56));
        assert_eq!((none(Magic::V2, key, value), none(Magic::V2, None, None)), (93, 85));
        assert_eq!((gzip(Magic::V2, key, value), gzip(Magic::V2, None, None)), (93, 85));
        let headers = [Header { key: b"h", value: Some(b"x") }, Header { key: b"n", value: None }];
        let size = estimate_size_in_bytes_upper_bound(Magic::V2, Codec::None, key, value, &headers);
        assert_eq!(size, 93 + 4 + 3);
    }

    #[test]
    fn upper_bounds_of_a_record() {
        let (key, value) = (Some(&b"key"[..]), Some(&b"value"[..]));
        let headers = [Header { key: b"h", value: Some(b"x") }];
        assert_eq!(record_size_upper_bound(Magic::V0, key, value, &[]), 34);
        assert_eq!(record_size_upper_bound(Magic::V1, key, value, &[]), 42);
        assert_eq!(record_size_upper_bound(Magic::V2, key, value, &[]), 32);
        assert_eq!(record_size_upper_bound(Magic::V2, key, value, &headers), 32 + 4);
        let widest = default_record_size(i32::MIN, i64::MIN, key, value, &headers);
        assert!(widest <= record_size_upper_bound(Magic::V2, key, value, &headers));
    }

    #[test]
    fn exact_sizes() {
        assert_eq!(default_record_size(0, 0, None, None, &[]), 7);
        assert_eq!(default_record_size(64, -1, Some(&[0; 64]), Some(b""), &[]), 1 + 72 + 1);
        let wide = default_record_size(i32::MIN, i64::MIN, None, None, &[]);
        assert_eq!(wide, MAX_RECORD_OVERHEAD - 4 + 3);
        assert_eq!(legacy_record_size(Magic::V0, Some(b"k"), None), 15);
        assert_eq!(legacy_record_size(Magic::V1, None, Some(b"va")), 24);
    }

    #[test]
    fn reserves_and_buffers() {
        for codec in Codec::ALL {
            assert_eq!(batch_header_size(Magic::V2, codec), 61);
        }
        assert_eq!(batch_header_size(Magic::V0, Codec::None), 0);
        assert_eq!(batch_header_size(Magic::V0, Codec::Gzip), 26);
        assert_eq!(batch_header_size(Magic::V1, Codec::Lz4), 34);
        assert_eq!(estimate_size_in_bytes(Codec::None, 10), 10);
        for (size, want) in [(10, 1024), (2050, 1025), (131_072, 65_536), (1 << 30, 65_536)] {
            assert_eq!(estimate_size_in_bytes(Codec::Zstd, size), want);
        }
    }
}
