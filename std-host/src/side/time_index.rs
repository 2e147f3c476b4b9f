//! `.timeindex`: which offset to begin with for a timestamp.
//!
//! ```text
//! 0  timestamp        i64  largest so far, in milliseconds
//! 8  relative_offset  i32  last offset of the batch that has it − base offset
//! ```
//!
//! Kafka's `storage/internals/log/TimeIndex.java`. No record before the offset has a
//! larger timestamp. An entry is written only if the timestamp has grown; the offset may
//! not go back.

use logseg_core::BatchHeader;
use logseg_core::cursor::Cursor;
use serde::Serialize;

use super::{Entry, Fault, Index, Mismatch, Wrong, check_length, cut, none_negative};

/// An entry of a time index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimestampOffset {
    /// In milliseconds.
    pub timestamp: i64,
    /// Absolute: base offset and the stored one.
    pub offset: i64,
    /// As stored.
    #[serde(skip)]
    pub relative_offset: i32,
}

impl Entry for TimestampOffset {
    const SIZE: usize = 12;
    const PREALLOCATED: bool = true;

    fn parse(bytes: &[u8], base_offset: i64) -> Result<Self, Wrong> {
        let mut cursor = Cursor::new(bytes);
        let mut fields = || Some((cursor.i64()?, cursor.i32()?));
        let (timestamp, relative_offset) = fields().ok_or_else(|| cut::<Self>(bytes))?;
        let offset = base_offset.wrapping_add(relative_offset.into());
        Ok(Self { timestamp, offset, relative_offset })
    }

    fn check(&self, before: Option<&Self>, _: i64) -> Result<(), Wrong> {
        none_negative([
            ("timestamp", self.timestamp),
            ("relative_offset", self.relative_offset.into()),
        ])?;
        let Some(before) = before else { return Ok(()) };
        if self.timestamp <= before.timestamp {
            let how = format!("{} is not above {}", self.timestamp, before.timestamp);
            return Err(Wrong::new("timestamp", how + " of the entry before"));
        }
        if self.relative_offset < before.relative_offset {
            let how = format!("{} is below {}", self.relative_offset, before.relative_offset);
            return Err(Wrong::new("relative_offset", how + " of the entry before"));
        }
        Ok(())
    }
}

impl Index for TimestampOffset {
    fn sanity_check(
        first: Option<&Self>,
        last: Option<&Self>,
        base_offset: i64,
        length: u64,
    ) -> Result<(), Fault> {
        if let (Some(first), Some(last)) = (first, last) {
            let at = (length / Self::SIZE as u64 - 1) * Self::SIZE as u64;
            let (timestamp, offset) = (last.timestamp, last.offset);
            if timestamp < first.timestamp {
                let how = format!("last timestamp {timestamp} is below the first");
                return Err(Wrong::new("timestamp", format!("{how}, {}", first.timestamp)).at(at));
            }
            if offset < base_offset {
                let how = format!("last offset {offset} is below the base offset {base_offset}");
                return Err(Wrong::new("offset", how).at(at));
            }
        }
        check_length::<Self>(length)
    }
}

impl TimestampOffset {
    /// Compares an entry with the first batch of the segment that ends with its offset or
    /// a later one, `None` if there is no such batch.
    ///
    /// The batch's own largest timestamp is taken; `kafka-dump-log` takes that of the
    /// records that compaction has left in it.
    pub fn compare(&self, batch: Option<&BatchHeader>) -> Result<Option<Mismatch>, Wrong> {
        let Self { timestamp, offset, .. } = *self;
        let Some(batch) = batch else {
            let how = format!("the segment ends before offset {offset}");
            return Err(Wrong::new("relative_offset", how));
        };
        let (last_offset, max_timestamp) = (batch.last_offset(), batch.max_timestamp);
        Ok(if last_offset != offset {
            Some(Mismatch {
                heading: "The following indexed offsets are not found in the log.",
                line: format!("Indexed offset: {offset}, found log offset: {last_offset}"),
            })
        } else if max_timestamp != timestamp {
            Some(Mismatch {
                heading: "Found timestamp mismatch in :",
                line: format!("  Index timestamp: {timestamp}, log timestamp: {max_timestamp}"),
            })
        } else {
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hex, read};
    use super::*;

    #[test]
    fn entries_of_kafka() {
        let (entries, faults, _) = read::<TimestampOffset>(&hex("0000018bcfe56800 00000005"), 50);
        assert_eq!(faults, [""; 0]);
        assert_eq!((entries[0].timestamp, entries[0].offset), (1_700_000_000_000, 55));
    }

    #[test]
    fn the_first_entry_may_be_zero() {
        let (entries, faults, _) =
            read::<TimestampOffset>(&hex("0000000000000000 00000000 0000000000000001 00000000"), 7);
        assert_eq!(faults, [""; 0]);
        assert_eq!((entries[0].timestamp, entries[0].offset), (0, 7));
        assert_eq!(entries.len(), 2);
    }

    #[test]
    fn faults() {
        for (bytes, fault) in [
            ("ffffffffffffffff 00000005", "byte 0: timestamp: -1 is negative"),
            ("0000000000000009 fffffffe", "byte 0: relative_offset: -2 is negative"),
            (
                "0000000000000009 00000005 0000000000000009 00000006",
                "byte 12: timestamp: 9 is not above 9 of the entry before",
            ),
            (
                "0000000000000009 00000005 000000000000000a 00000004",
                "byte 12: relative_offset: 4 is below 5 of the entry before",
            ),
        ] {
            assert_eq!(read::<TimestampOffset>(&hex(bytes), 50).1, [fault]);
        }
    }

    #[test]
    fn compared_with_batches() {
        // v1, offset 53, timestamp 9.
        let bytes = hex("0000000000000035 00000016 00000000 01 00 0000000000000009");
        let batch = BatchHeader::parse(&bytes, 0).unwrap();
        let compare = |timestamp, offset| {
            TimestampOffset { timestamp, offset, relative_offset: 0 }
                .compare(Some(&batch))
                .map(|mismatch| mismatch.map(|mismatch| mismatch.line).unwrap_or_default())
                .unwrap()
        };
        assert_eq!(compare(9, 53), "");
        assert_eq!(compare(8, 53), "  Index timestamp: 8, log timestamp: 9");
        assert_eq!(compare(8, 52), "Indexed offset: 52, found log offset: 53");
        let entry = TimestampOffset { timestamp: 9, offset: 54, relative_offset: 4 };
        let wrong = entry.compare(None).unwrap_err().to_string();
        assert_eq!(wrong, "relative_offset: the segment ends before offset 54");
    }

    #[test]
    fn kafkas_own_check_looks_at_both_ends_only() {
        let entry = |(timestamp, offset)| TimestampOffset { timestamp, offset, relative_offset: 0 };
        let check = |first, last, length| {
            let (first, last) = (entry(first), entry(last));
            TimestampOffset::sanity_check(Some(&first), Some(&last), 50, length)
                .map_err(|fault| fault.to_string())
        };
        assert_eq!(check((9, 51), (9, 51), 12), Ok(()));
        // A zero tail: a broker builds this index anew.
        let zero = "byte 24: timestamp: last timestamp 0 is below the first, 9";
        assert_eq!(check((9, 51), (0, 50), 36), Err(zero.to_owned()));
        let below = "byte 12: offset: last offset 49 is below the base offset 50";
        assert_eq!(check((9, 51), (10, 49), 24), Err(below.to_owned()));
        let size = "byte 12: size: 13 bytes end with 1 of an entry of 12";
        assert_eq!(check((9, 51), (9, 51), 13), Err(size.to_owned()));
        assert_eq!(TimestampOffset::sanity_check(None, None, 50, 0), Ok(()));
    }
}
