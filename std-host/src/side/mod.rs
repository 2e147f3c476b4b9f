//! The files beside a segment: their entries and what can be wrong with them, without I/O.
//!
//! ```text
//! 00000000000000000050.log        the segment, base offset 50
//! 00000000000000000050.index      offset → position        8 bytes an entry
//! 00000000000000000050.timeindex  timestamp → offset      12 bytes an entry
//! 00000000000000000050.txnindex   aborted transactions    34 bytes an entry
//! 00000000000000000125.snapshot   producers up to 125     10 bytes, then 46 an entry
//! leader-epoch-checkpoint         epoch → offset          text, a line an entry
//! ```
//!
//! All but the last are arrays of fixed entries, big-endian, and but for the snapshot without
//! header and checksum (Kafka's `storage/internals/log/AbstractIndex.java`). The index
//! files of the active segment are preallocated to `segment.index.bytes`, 10 MiB, and
//! zero-filled; a crash leaves them so. [`Entries`] tells such a tail from damage.

pub mod leader_epoch;
pub mod offset_index;
pub mod snapshot;
pub mod time_index;
pub mod txn_index;

use std::fmt;
use std::path::Path;

pub use leader_epoch::{Checkpoint, LeaderEpoch};
pub use offset_index::OffsetPosition;
pub use snapshot::{ProducerStateEntry, SnapshotHeader};
pub use time_index::TimestampOffset;
pub use txn_index::AbortedTxn;

/// Kinds of side files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideFile {
    /// `.index`
    OffsetIndex,
    /// `.timeindex`
    TimeIndex,
    /// `.txnindex`
    TransactionIndex,
    /// `.snapshot`
    ProducerSnapshot,
    /// `leader-epoch-checkpoint`
    LeaderEpochCheckpoint,
}

impl SideFile {
    /// The kind that a file's name says.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        if path.file_name()? == "leader-epoch-checkpoint" {
            return Some(Self::LeaderEpochCheckpoint);
        }
        match path.extension()?.to_str()? {
            "index" => Some(Self::OffsetIndex),
            "timeindex" => Some(Self::TimeIndex),
            "txnindex" => Some(Self::TransactionIndex),
            "snapshot" => Some(Self::ProducerSnapshot),
            _ => None,
        }
    }
}

/// The offset that a file's name begins with: base offset of the segment, or for a
/// snapshot the end of what it covers.
#[must_use]
pub fn named_offset(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    name.split('.').next()?.parse().ok().filter(|&offset| offset >= 0)
}

/// What is wrong, and where in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Of the entry, or of the field if there is no entry, in bytes from the start.
    pub position: u64,
    /// Which field, and how.
    pub wrong: Wrong,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.position, self.wrong)
    }
}

/// A field that is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// In Kafka's words.
    pub field: &'static str,
    /// What is there, and what should be.
    pub how: String,
}

impl Wrong {
    pub(crate) fn new(field: &'static str, how: String) -> Self {
        Self { field, how }
    }

    pub(crate) fn at(self, position: u64) -> Fault {
        Fault { position, wrong: self }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.how)
    }
}

/// Fails if one of the fields is negative.
pub(crate) fn none_negative<const N: usize>(fields: [(&'static str, i64); N]) -> Result<(), Wrong> {
    match fields.into_iter().find(|&(_, value)| value < 0) {
        Some((field, value)) => Err(Wrong::new(field, format!("{value} is negative"))),
        None => Ok(()),
    }
}

/// Fails unless the length of a file is that of whole entries.
pub(crate) fn check_length<E: Entry>(length: u64) -> Result<(), Fault> {
    match length % E::SIZE as u64 {
        0 => Ok(()),
        partial => Err(not_whole::<E>(length, partial)),
    }
}

/// A file that ends within an entry, of which `partial` bytes are there.
fn not_whole<E: Entry>(length: u64, partial: u64) -> Fault {
    let how = format!("{length} bytes end with {partial} of an entry of {}", E::SIZE);
    Wrong::new("size", how).at(length - partial)
}

/// An entry of fixed size.
pub trait Entry: Copy {
    /// In bytes, at most 64.
    const SIZE: usize;
    /// Whether a file of them may end in zeros that were never written.
    const PREALLOCATED: bool;

    /// Reads the fields.
    ///
    /// Errors: fewer than [`Entry::SIZE`] bytes, or a version whose fields are others.
    fn parse(bytes: &[u8], base_offset: i64) -> Result<Self, Wrong>;

    /// Checks an entry by itself and against the one before.
    fn check(&self, before: Option<&Self>, base_offset: i64) -> Result<(), Wrong>;
}

/// An index that a broker looks at when it starts.
pub trait Index: Entry {
    /// Kafka's own `sanityCheck`, which decides whether a broker builds the index anew:
    /// of first and last entry and the length of the file, nothing between.
    fn sanity_check(
        first: Option<&Self>,
        last: Option<&Self>,
        base_offset: i64,
        length: u64,
    ) -> Result<(), Fault>;
}

/// How an entry differs from the segment beside it, where that may be as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Kafka's line above such differences; with a colon at its end, the file follows.
    pub heading: &'static str,
    /// Kafka's line for one.
    pub line: String,
}

/// What [`Entries`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<E> {
    /// An entry at a position, and what is wrong with it.
    Entry(E, u64, Option<Wrong>),
    /// Bytes that are no entry.
    Fault(Fault),
}

/// What follows the last entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Entries before it.
    pub entries: u64,
    /// Preallocated bytes that were never written.
    pub zeros: u64,
    /// Bytes of an entry that is cut.
    pub partial: u64,
}

/// Takes entries one by one and tells them from a zero-filled tail.
///
/// An entry of zeros is the start of the tail, which Kafka's tools stop at too, except for
/// the first if no second one follows: timestamp 0 at the base offset looks like this.
/// What is not zero behind zeros means that a crash has lost the page before it.
#[derive(Debug)]
pub struct Entries<E> {
    base_offset: i64,
    /// Of the next entry, or of the zeros.
    position: u64,
    /// Bytes of zeros since then.
    zeros: u64,
    before: Option<E>,
    count: u64,
}

static ZEROS: [u8; 64] = [0; 64];

impl<E: Entry> Entries<E> {
    /// Entries that begin at `position` of a file.
    #[must_use]
    pub const fn at(position: u64, base_offset: i64) -> Self {
        Self { base_offset, position, zeros: 0, before: None, count: 0 }
    }

    /// Takes the next [`Entry::SIZE`] bytes.
    pub fn next<X>(
        &mut self,
        bytes: &[u8],
        visit: &mut impl FnMut(Found<E>) -> Result<(), X>,
    ) -> Result<(), X> {
        if E::PREALLOCATED && bytes == &ZEROS[..E::SIZE] {
            self.zeros += E::SIZE as u64;
            return Ok(());
        }
        if self.is_first_entry_of_zeros() {
            self.entry(&ZEROS[..E::SIZE], visit)?;
        } else if self.zeros > 0 {
            let how = format!("{} bytes of zeros, and entries behind them", self.zeros);
            visit(Found::Fault(Wrong::new("entry", how).at(self.position)))?;
            self.position += self.zeros;
        }
        self.zeros = 0;
        self.entry(bytes, visit)
    }

    /// Ends the file, whose last `partial` bytes are fewer than an entry.
    pub fn end<X>(
        mut self,
        partial: usize,
        visit: &mut impl FnMut(Found<E>) -> Result<(), X>,
    ) -> Result<Tail, X> {
        if self.is_first_entry_of_zeros() {
            self.entry(&ZEROS[..E::SIZE], visit)?;
            self.zeros = 0;
        }
        let partial = partial as u64;
        if partial > 0 {
            let length = self.position + self.zeros + partial;
            visit(Found::Fault(not_whole::<E>(length, partial)))?;
        }
        Ok(Tail { entries: self.count, zeros: self.zeros, partial })
    }

    fn is_first_entry_of_zeros(&self) -> bool {
        self.position == 0 && self.zeros == E::SIZE as u64
    }

    fn entry<X>(
        &mut self,
        bytes: &[u8],
        visit: &mut impl FnMut(Found<E>) -> Result<(), X>,
    ) -> Result<(), X> {
        let position = self.position;
        self.position += E::SIZE as u64;
        let found = match E::parse(bytes, self.base_offset) {
            Ok(entry) => {
                let wrong = entry.check(self.before.as_ref(), self.base_offset).err();
                self.before = Some(entry);
                self.count += 1;
                Found::Entry(entry, position, wrong)
            }
            Err(wrong) => Found::Fault(wrong.at(position)),
        };
        visit(found)
    }
}

/// Bytes that are too few for an entry.
pub(crate) fn cut<E: Entry>(bytes: &[u8]) -> Wrong {
    Wrong::new("entry", format!("{} bytes of {}", bytes.len(), E::SIZE))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::dump::digest::unhex;

    /// Bytes of hexadecimal digits, which blanks may part.
    pub(crate) fn hex(text: &str) -> Vec<u8> {
        unhex(&text.split_whitespace().collect::<String>()).unwrap()
    }

    /// The entries of some bytes, all faults as error lines have them, and the tail.
    pub(crate) fn read<E: Entry>(bytes: &[u8], base_offset: i64) -> (Vec<E>, Vec<String>, Tail) {
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        let mut visit = |found| {
            match found {
                Found::Entry(entry, position, wrong) => {
                    entries.push(entry);
                    faults.extend(wrong.map(|wrong| wrong.at(position).to_string()));
                }
                Found::Fault(fault) => faults.push(fault.to_string()),
            }
            Ok::<(), Infallible>(())
        };
        let mut walk = Entries::<E>::at(0, base_offset);
        let chunks = bytes.chunks_exact(E::SIZE);
        let partial = chunks.remainder().len();
        for chunk in chunks {
            walk.next(chunk, &mut visit).unwrap();
        }
        let tail = walk.end(partial, &mut visit).unwrap();
        (entries, faults, tail)
    }

    #[test]
    fn names() {
        for (name, kind, offset) in [
            ("a/00000000000000000050.index", Some(SideFile::OffsetIndex), Some(50)),
            ("50.timeindex", Some(SideFile::TimeIndex), Some(50)),
            ("9223372036854775807.txnindex", Some(SideFile::TransactionIndex), Some(i64::MAX)),
            ("9223372036854775808.snapshot", Some(SideFile::ProducerSnapshot), None),
            ("-5.index", Some(SideFile::OffsetIndex), None),
            ("orders.index", Some(SideFile::OffsetIndex), None),
            ("50.index.deleted", None, Some(50)),
            ("50.log", None, Some(50)),
            (".index", None, None),
            ("a/leader-epoch-checkpoint", Some(SideFile::LeaderEpochCheckpoint), None),
            ("leader-epoch-checkpoint.tmp", None, None),
        ] {
            let path = Path::new(name);
            assert_eq!((SideFile::of(path), named_offset(path)), (kind, offset), "{name}");
        }
    }

    #[test]
    fn zeros_are_a_tail_and_no_damage() {
        let entry = hex("00000005 00001018");
        for (bytes, entries, zeros) in [
            (vec![], 0, 0),
            (vec![0; 800], 0, 800),
            (vec![0; 8], 1, 0), // what Kafka takes it for as well
            ([vec![0; 8], entry.clone()].concat(), 2, 0),
            ([entry.clone(), vec![0; 8]].concat(), 1, 8),
            ([entry.clone(), vec![0; 10 << 20]].concat(), 1, 10 << 20),
        ] {
            let (_, faults, tail) = read::<OffsetPosition>(&bytes, 50);
            assert_eq!(faults, [""; 0]);
            assert_eq!(tail, Tail { entries, zeros, partial: 0 });
        }
    }

    #[test]
    fn what_is_behind_zeros_is_damage() {
        let (entry, later) = (hex("00000005 00001018"), hex("00000006 00002018"));
        let bytes = [entry, vec![0; 16], later, vec![0; 24]].concat();
        let (entries, faults, tail) = read::<OffsetPosition>(&bytes, 50);
        assert_eq!(entries.len(), 2);
        assert_eq!(faults, ["byte 8: entry: 16 bytes of zeros, and entries behind them"]);
        assert_eq!(tail, Tail { entries: 2, zeros: 24, partial: 0 });
    }

    #[test]
    fn a_length_that_is_none() {
        for (n, at) in [(1, 0), (7, 0), (9, 8), (15, 8)] {
            let (_, faults, tail) = read::<OffsetPosition>(&vec![0; n], 50);
            let partial = n as u64 % 8;
            let how = format!("{n} bytes end with {partial} of an entry of 8");
            assert_eq!(faults, [format!("byte {at}: size: {how}")]);
            assert_eq!(tail.partial, partial);
        }
    }
}
