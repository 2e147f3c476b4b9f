//! `leader-epoch-checkpoint`: where the records of each leader of a partition begin.
//!
//! ```text
//! 0           version
//! 2           number of entries
//! 0 1000      epoch, offset of the first record
//! 3 1454
//! ```
//!
//! Text, a line each, fields parted by blanks; an empty file has no entries. Both fields
//! rise from entry to entry: a broker that reads others drops what they contradict. Kafka's
//! `server-common/checkpoint/CheckpointFile.java` and
//! `storage/internals/checkpoint/LeaderEpochCheckpointFile.java`.

use serde::Serialize;

use super::{Found, Tail, Wrong, none_negative};

/// An entry: a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LeaderEpoch {
    /// Of the leader.
    pub epoch: i32,
    /// Of its first record.
    pub start_offset: i64,
}

impl LeaderEpoch {
    fn parse(line: &[u8]) -> Option<Self> {
        // Nothing but digits and blanks is meant, so bytes that are no text fail as well.
        let line = str::from_utf8(line).ok().filter(|line| !line.starts_with([' ', '\t']))?;
        let mut fields = line.split_ascii_whitespace();
        let entry = Self {
            epoch: fields.next()?.parse().ok()?,
            start_offset: fields.next()?.parse().ok()?,
        };
        fields.next().is_none().then_some(entry)
    }

    fn check(&self, before: Option<&Self>) -> Result<(), Wrong> {
        none_negative([("epoch", self.epoch.into()), ("start_offset", self.start_offset)])?;
        let Some(before) = before else { return Ok(()) };
        let rises = |field, value: i64, before: i64| {
            let how = || format!("{value} is not above {before} of the entry before");
            if value > before { Ok(()) } else { Err(Wrong::new(field, how())) }
        };
        rises("epoch", self.epoch.into(), before.epoch.into())?;
        rises("start_offset", self.start_offset, before.start_offset)
    }
}

/// Longer lines are none of Kafka's: two numbers take 31 bytes.
const LONGEST: usize = 80;

/// What the next line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Version,
    Count,
    Entry,
    /// Of another version nothing is known.
    Nothing,
}

/// Takes a checkpoint piece by piece, and gives its entries.
#[derive(Debug)]
pub struct Checkpoint {
    /// What is there of the line, up to [`LONGEST`] and one more.
    line: Vec<u8>,
    /// Where the line begins, and the next piece.
    start: u64,
    position: u64,
    next: Next,
    /// As declared, and where.
    count: Option<(u64, u64)>,
    before: Option<LeaderEpoch>,
    entries: u64,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self {
            line: Vec::with_capacity(LONGEST + 1),
            start: 0,
            position: 0,
            next: Next::Version,
            count: None,
            before: None,
            entries: 0,
        }
    }
}

impl Checkpoint {
    /// The only version there is.
    pub const VERSION: i32 = 0;

    /// Takes the next bytes.
    pub fn push<X>(
        &mut self,
        bytes: &[u8],
        visit: &mut impl FnMut(Found<LeaderEpoch>) -> Result<(), X>,
    ) -> Result<(), X> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.position += piece.len() as u64;
            let (text, ends) =
                piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LONGEST + 1 - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end_of_line(visit)?;
            }
        }
        Ok(())
    }

    /// Ends the file.
    pub fn end<X>(
        mut self,
        visit: &mut impl FnMut(Found<LeaderEpoch>) -> Result<(), X>,
    ) -> Result<Tail, X> {
        if self.position > self.start {
            self.end_of_line(visit)?;
        }
        if let Some((count, at)) = self.count
            && count != self.entries
        {
            let how = format!("{count} entries are declared, the file has {}", self.entries);
            visit(Found::Fault(Wrong::new("count", how).at(at)))?;
        }
        Ok(Tail { entries: self.entries, ..Tail::default() })
    }

    fn end_of_line<X>(
        &mut self,
        visit: &mut impl FnMut(Found<LeaderEpoch>) -> Result<(), X>,
    ) -> Result<(), X> {
        let at = std::mem::replace(&mut self.start, self.position);
        let found = self.line_at(at);
        self.line.clear();
        found.map_or(Ok(()), visit)
    }

    fn line_at(&mut self, at: u64) -> Option<Found<LeaderEpoch>> {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let number = || str::from_utf8(line).ok()?.trim_end().parse::<i32>().ok();
        let wrong = |field, how: &str| {
            let shown = String::from_utf8_lossy(&line[..line.len().min(LONGEST)]);
            Found::Fault(Wrong::new(field, format!("{shown:?} {how}")).at(at))
        };
        match self.next {
            Next::Version => {
                if number() == Some(Self::VERSION) {
                    self.next = Next::Count;
                    return None;
                }
                self.next = Next::Nothing;
                Some(wrong("version", "is not 0"))
            }
            Next::Count => {
                self.next = Next::Entry;
                match number().and_then(|count| u64::try_from(count).ok()) {
                    Some(count) => {
                        self.count = Some((count, at));
                        None
                    }
                    None => Some(wrong("count", "is no number of entries")),
                }
            }
            Next::Entry => {
                self.entries += 1;
                let Some(entry) = LeaderEpoch::parse(line) else {
                    return Some(wrong("entry", "is not an epoch and an offset"));
                };
                let checked = entry.check(self.before.as_ref());
                self.before = Some(entry);
                Some(Found::Entry(entry, at, checked.err()))
            }
            Next::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Entries and faults of a file that comes in pieces of some size.
    fn read(text: &[u8], piece: usize) -> (Vec<(i32, i64)>, Vec<String>, u64) {
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        let mut visit = |found| {
            match found {
                Found::Entry(LeaderEpoch { epoch, start_offset }, position, wrong) => {
                    entries.push((epoch, start_offset));
                    faults.extend(wrong.map(|wrong: Wrong| wrong.at(position).to_string()));
                }
                Found::Fault(fault) => faults.push(fault.to_string()),
            }
            Ok::<(), Infallible>(())
        };
        let mut checkpoint = Checkpoint::default();
        for piece in text.chunks(piece) {
            checkpoint.push(piece, &mut visit).unwrap();
        }
        let tail = checkpoint.end(&mut visit).unwrap();
        (entries, faults, tail.entries)
    }

    #[test]
    fn entries_and_faults() {
        let long = format!("0\n1\n{}\n", "1".repeat(1000));
        let longest = format!("byte 4: entry: {:?} is not an epoch and an offset", "1".repeat(80));
        for (text, entries, faults) in [
            // The example of Kafka's own classes.
            ("0\n2\n0 1\n1 2\n", &[(0, 1), (1, 2)][..], &[][..]),
            ("0\r\n1\r\n7  9223372036854775807 \r\n", &[(7, i64::MAX)], &[]),
            ("0\n1\n7\t8", &[(7, 8)], &[]), // the last line has an end or not
            ("", &[], &[]),
            ("0\n", &[], &[]),
            ("0\n0\n", &[], &[]),
            ("1\n1\n0 1\n", &[], &["byte 0: version: \"1\" is not 0"]),
            ("\n0\n0\n", &[], &["byte 0: version: \"\" is not 0"]),
            ("0\n-1\n0 1\n", &[(0, 1)], &["byte 2: count: \"-1\" is no number of entries"]),
            (
                "0\n3\n0 1\n1 2\n",
                &[(0, 1), (1, 2)],
                &["byte 2: count: 3 entries are declared, the file has 2"],
            ),
            (
                "0\n1\n0 1\n1 2\n",
                &[(0, 1), (1, 2)],
                &["byte 2: count: 1 entries are declared, the file has 2"],
            ),
            (
                "0\n4\n0 1\n1 2 3\n\n2 9\n",
                &[(0, 1), (2, 9)],
                &[
                    "byte 8: entry: \"1 2 3\" is not an epoch and an offset",
                    "byte 14: entry: \"\" is not an epoch and an offset",
                ],
            ),
            ("0\n1\n 1 2\n", &[], &["byte 4: entry: \" 1 2\" is not an epoch and an offset"]),
            (
                "0\n3\n0 1\n0 2\n1 2\n",
                &[(0, 1), (0, 2), (1, 2)],
                &[
                    "byte 8: epoch: 0 is not above 0 of the entry before",
                    "byte 12: start_offset: 2 is not above 2 of the entry before",
                ],
            ),
            ("0\n1\n-1 2\n", &[(-1, 2)], &["byte 4: epoch: -1 is negative"]),
            ("0\n1\n1 -2\n", &[(1, -2)], &["byte 4: start_offset: -2 is negative"]),
            (&long, &[], &[&longest]),
        ] {
            for piece in [1, 3, 4096] {
                let (read_entries, read_faults, count) = read(text.as_bytes(), piece);
                assert_eq!(read_entries, entries, "{text:?}");
                assert_eq!(read_faults, faults, "{text:?}");
                assert!(count >= entries.len() as u64);
            }
        }
        let (_, faults, _) = read(b"0\n1\n\xff 1\n", 4096);
        assert_eq!(faults, ["byte 4: entry: \"\u{fffd} 1\" is not an epoch and an offset"]);
    }
}
