//! `.txnindex`: the aborted transactions whose markers are in the segment.
//!
//! ```text
//!  0  version             i16  0
//!  2  producer_id         i64
//! 10  first_offset        i64  of the transaction, may lie in an earlier segment
//! 18  last_offset         i64  of the marker that aborted it
//! 26  last_stable_offset  i64  when it was aborted
//! ```
//!
//! Kafka's `storage/internals/log/TransactionIndex.java` and `AbortedTxn.java`. The file is
//! there only if it is needed, and not preallocated. Last offsets grow.

use logseg_core::cursor::Cursor;
use serde::Serialize;

use super::{Entry, Wrong, cut, none_negative};

/// An entry of a transaction index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbortedTxn {
    /// Always 0.
    pub version: i16,
    /// Whose transaction.
    pub producer_id: i64,
    /// Of its first record.
    pub first_offset: i64,
    /// Of its marker.
    pub last_offset: i64,
    /// Below it everything was decided when the marker was written. Another transaction
    /// that is older and still open holds it back.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    /// The only version there is.
    pub const VERSION: i16 = 0;

    fn fields(mut cursor: Cursor<'_>) -> Option<Self> {
        Some(Self {
            version: cursor.i16()?,
            producer_id: cursor.i64()?,
            first_offset: cursor.i64()?,
            last_offset: cursor.i64()?,
            last_stable_offset: cursor.i64()?,
        })
    }
}

impl Entry for AbortedTxn {
    const SIZE: usize = 34;
    const PREALLOCATED: bool = false;

    fn parse(bytes: &[u8], _: i64) -> Result<Self, Wrong> {
        let entry = Self::fields(Cursor::new(bytes)).ok_or_else(|| cut::<Self>(bytes))?;
        // Kafka looks at the first of the two bytes only.
        if entry.version != Self::VERSION {
            return Err(Wrong::new("version", format!("{} is not 0", entry.version)));
        }
        Ok(entry)
    }

    fn check(&self, before: Option<&Self>, base_offset: i64) -> Result<(), Wrong> {
        none_negative([
            ("producer_id", self.producer_id),
            ("first_offset", self.first_offset),
            ("last_offset", self.last_offset),
            ("last_stable_offset", self.last_stable_offset),
        ])?;
        let wrong = |how| Err(Wrong::new("last_offset", how));
        let last = self.last_offset;
        if last <= self.first_offset {
            // That of the marker, which comes behind at least one record.
            return wrong(format!("{last} is not above the first offset {}", self.first_offset));
        }
        if last < base_offset {
            return wrong(format!("{last} is below the base offset {base_offset}"));
        }
        match before {
            Some(before) if last <= before.last_offset => {
                wrong(format!("{last} is not above {} of the entry before", before.last_offset))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hex, read};
    use super::*;

    const ENTRY: &str = "0000 0000000000000fa0 000000000000000a 000000000000000c 000000000000000d";

    #[test]
    fn an_entry_of_kafka() {
        let (entries, faults, tail) = read::<AbortedTxn>(&hex(ENTRY), 0);
        assert_eq!(faults, [""; 0]);
        let want = AbortedTxn {
            version: 0,
            producer_id: 4000,
            first_offset: 10,
            last_offset: 12,
            last_stable_offset: 13,
        };
        assert_eq!((entries, tail.entries), (vec![want], 1));
    }

    #[test]
    fn faults() {
        let at = |at: usize, byte: u8| {
            let mut bytes = hex(ENTRY);
            bytes[at] = byte;
            bytes
        };
        for (bytes, base_offset, fault) in [
            (at(1, 1), 0, "byte 0: version: 1 is not 0"),
            (at(0, 0xff), 0, "byte 0: version: -256 is not 0"),
            (at(2, 0x80), 0, "byte 0: producer_id: -9223372036854771808 is negative"),
            (at(10, 0x80), 0, "byte 0: first_offset: -9223372036854775798 is negative"),
            (at(18, 0x80), 0, "byte 0: last_offset: -9223372036854775796 is negative"),
            (at(26, 0x80), 0, "byte 0: last_stable_offset: -9223372036854775795 is negative"),
            (at(25, 10), 0, "byte 0: last_offset: 10 is not above the first offset 10"),
            (hex(ENTRY), 13, "byte 0: last_offset: 12 is below the base offset 13"),
            (
                hex(&ENTRY.repeat(2)),
                0,
                "byte 34: last_offset: 12 is not above 12 of the entry before",
            ),
            // Not preallocated: zeros are no tail.
            (vec![0; 34], 0, "byte 0: last_offset: 0 is not above the first offset 0"),
            (vec![0; 33], 0, "byte 0: size: 33 bytes end with 33 of an entry of 34"),
        ] {
            assert_eq!(read::<AbortedTxn>(&bytes, base_offset).1, [fault]);
        }
    }
}
