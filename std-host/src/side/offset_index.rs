//! `.index`: where in the segment an offset is.
//!
//! ```text
//! 0  relative_offset  i32  offset − base offset of the segment
//! 4  position         i32  of the batch in the segment, in bytes
//! ```
//!
//! Kafka's `storage/internals/log/OffsetIndex.java`. An entry is written when more than
//! `index.interval.bytes` have been appended since the last, never for position 0; the
//! offset is the *largest* of the append at that position. Both fields only grow.

use logseg_core::cursor::Cursor;
use logseg_core::{BatchHeader, Codec, Magic};
use serde::Serialize;

use super::{Entry, Fault, Index, Mismatch, Wrong, check_length, cut, none_negative};

/// An entry of an offset index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OffsetPosition {
    /// Absolute: base offset and the stored one.
    pub offset: i64,
    /// In the segment, in bytes.
    pub position: i32,
    /// As stored.
    #[serde(skip)]
    pub relative_offset: i32,
}

impl Entry for OffsetPosition {
    const SIZE: usize = 8;
    const PREALLOCATED: bool = true;

    fn parse(bytes: &[u8], base_offset: i64) -> Result<Self, Wrong> {
        let mut cursor = Cursor::new(bytes);
        let mut fields = || Some((cursor.i32()?, cursor.i32()?));
        let (relative_offset, position) = fields().ok_or_else(|| cut::<Self>(bytes))?;
        let offset = base_offset.wrapping_add(relative_offset.into());
        Ok(Self { offset, position, relative_offset })
    }

    fn check(&self, before: Option<&Self>, _: i64) -> Result<(), Wrong> {
        none_negative([
            ("relative_offset", self.relative_offset.into()),
            ("position", self.position.into()),
        ])?;
        let Some(before) = before else { return Ok(()) };
        let fields = [
            ("relative_offset", self.relative_offset, before.relative_offset),
            ("position", self.position, before.position),
        ];
        match fields.into_iter().find(|(_, this, before)| this <= before) {
            Some((field, this, before)) => {
                Err(Wrong::new(field, format!("{this} is not above {before} of the entry before")))
            }
            None => Ok(()),
        }
    }
}

impl Index for OffsetPosition {
    fn sanity_check(
        _: Option<&Self>,
        last: Option<&Self>,
        base_offset: i64,
        length: u64,
    ) -> Result<(), Fault> {
        if let Some(last) = last.filter(|last| last.offset < base_offset) {
            let how = format!("last offset {} is below the base offset {base_offset}", last.offset);
            let entries = length / Self::SIZE as u64;
            return Err(Wrong::new("offset", how).at((entries - 1) * Self::SIZE as u64));
        }
        check_length::<Self>(length)
    }
}

impl OffsetPosition {
    /// Compares an entry with the batch at its position, `None` if no batch starts there.
    ///
    /// An index serves its purpose if a search for the offset, or a larger one, that
    /// starts at the position misses nothing: else it is an error. `kafka-dump-log` wants
    /// the batch to end with the offset, which is not so where a follower has appended
    /// several batches at once.
    pub fn compare(&self, batch: Option<&BatchHeader>) -> Result<Option<Mismatch>, Wrong> {
        let wrong = |how| Err(Wrong::new("position", how));
        let Some(batch) = batch else {
            return wrong(format!("no batch starts at byte {} of the segment", self.position));
        };
        // A compressed message of v0/v1 has the offset of its last one inside.
        let starts_with = batch.magic == Magic::V2 || batch.attributes.codec() == Ok(Codec::None);
        if starts_with && batch.base_offset > self.offset {
            return wrong(format!(
                "the batch at byte {} of the segment starts with offset {}, above {}",
                self.position, batch.base_offset, self.offset
            ));
        }
        let last_offset = batch.last_offset();
        Ok((last_offset != self.offset).then(|| Mismatch {
            heading: "Mismatches in :",
            line: format!("  Index offset: {}, log offset: {last_offset}", self.offset),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hex, read};
    use super::*;

    #[test]
    fn entries_of_kafka() {
        let bytes = hex("00000005 00001018  0000000a 00002328");
        let (entries, faults, _) = read::<OffsetPosition>(&bytes, 50);
        assert_eq!(faults, [""; 0]);
        let seen: Vec<_> = entries.iter().map(|entry| (entry.offset, entry.position)).collect();
        assert_eq!(seen, [(55, 4120), (60, 9000)]);
    }

    #[test]
    fn faults() {
        for (bytes, fault) in [
            ("ffffffff 00001018", "byte 0: relative_offset: -1 is negative"),
            ("00000005 80000000", "byte 0: position: -2147483648 is negative"),
            (
                "00000005 00001018 00000005 00002000",
                "byte 8: relative_offset: 5 is not above 5 of the entry before",
            ),
            (
                "00000005 00001018 00000006 00001018",
                "byte 8: position: 4120 is not above 4120 of the entry before",
            ),
        ] {
            assert_eq!(read::<OffsetPosition>(&hex(bytes), 50).1, [fault]);
        }
        // The largest base offset there is: nothing overflows.
        let (entries, _, _) = read::<OffsetPosition>(&hex("7fffffff 00000001"), i64::MAX);
        assert_eq!(entries[0].offset, i64::MIN + i64::from(i32::MAX) - 1);
    }

    #[test]
    fn compared_with_batches() {
        // v2, offsets 50 to 53.
        let v2 = hex("0000000000000032 00000031 00000005 02 00000000 0000 00000003");
        let v2 = [v2, vec![0; 34]].concat();
        // v1, gzip: 53 is the last of the messages inside.
        let v1 = hex("0000000000000035 00000016 00000000 01 01 0000000000000000");
        let compare = |offset, bytes: &[u8]| {
            let entry = OffsetPosition { offset, position: 7, relative_offset: 0 };
            let batch = BatchHeader::parse(bytes, 7).unwrap();
            match entry.compare(Some(&batch)) {
                Ok(None) => String::new(),
                Ok(Some(mismatch)) => mismatch.line,
                Err(wrong) => wrong.to_string(),
            }
        };
        assert_eq!(compare(53, &v2), "");
        assert_eq!(compare(53, &v1), "");
        assert_eq!(compare(50, &v2), "  Index offset: 50, log offset: 53");
        assert_eq!(compare(54, &v2), "  Index offset: 54, log offset: 53");
        assert_eq!(compare(50, &v1), "  Index offset: 50, log offset: 53");
        assert_eq!(
            compare(49, &v2),
            "position: the batch at byte 7 of the segment starts with offset 50, above 49"
        );
    }

    #[test]
    fn kafkas_own_check_looks_at_the_end_only() {
        let entry = |offset| OffsetPosition { offset, position: 1, relative_offset: 0 };
        let check = |last: Option<i64>, length| {
            OffsetPosition::sanity_check(None, last.map(entry).as_ref(), 50, length)
                .map_err(|fault| fault.to_string())
        };
        assert_eq!(check(None, 0), Ok(()));
        assert_eq!(check(Some(50), 16), Ok(()));
        let below = "byte 8: offset: last offset 49 is below the base offset 50";
        assert_eq!(check(Some(49), 16), Err(below.to_owned()));
        let size = "byte 16: size: 17 bytes end with 1 of an entry of 8";
        assert_eq!(check(Some(50), 17), Err(size.to_owned()));
    }
}
