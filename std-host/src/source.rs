//! Segments as files and pipes: the only place that opens inputs.
//!
//! A segment is read in pieces, a batch at a time, whatever its size: no mapping (a
//! file that shrinks would kill the program) and no slurping. Memory follows the
//! bytes that are there, never a declared size. A regular file is read up to the
//! length it had when it was opened, so that a live one has an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use logseg_core::batch::Framing;
use logseg_core::batches::Frame;
use logseg_core::{BatchHeader, Error, ErrorKind, Tail, TailKind};

/// How much is read at once.
const PIECE: usize = 256 << 10;

/// What comes next in a segment.
#[derive(Debug)]
pub enum Item {
    /// A whole entry; its bytes are behind those that the buffer had.
    Batch(BatchHeader),
    /// An entry that is left out, or the point where no entry starts.
    Error(Error),
    /// The end.
    End(Tail),
}

/// A segment that is being read.
pub struct Segment {
    input: Box<dyn Read + Send>,
    /// Length when it was opened, for regular files.
    len: Option<u64>,
    /// Largest entry that is taken into memory.
    largest: u64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position of `start` in the segment.
    position: u64,
    /// Bytes that may still be read of the input.
    budget: u64,
    dry: bool,
    tail: Option<Tail>,
}

impl Segment {
    /// Opens a file for reading, and nothing else; `-` is standard input.
    ///
    /// Entries of more than `largest` bytes are left out with an error. At most
    /// `max_bytes` of the input are looked at.
    pub fn open(path: &Path, largest: u64, max_bytes: Option<u64>) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::new(Box::new(io::stdin()), None, largest, max_bytes));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let len = metadata.is_file().then_some(metadata.len());
        advise(&file);
        Ok(Self::new(Box::new(file), len, largest, max_bytes))
    }

    /// Reads from any input; `len` is what it is known to hold.
    #[must_use]
    pub fn new(
        input: Box<dyn Read + Send>,
        len: Option<u64>,
        largest: u64,
        max_bytes: Option<u64>,
    ) -> Self {
        let budget = len.unwrap_or(u64::MAX).min(max_bytes.unwrap_or(u64::MAX));
        Self {
            input,
            len,
            largest,
            buffer: vec![0; PIECE],
            start: 0,
            end: 0,
            position: 0,
            budget,
            dry: false,
            tail: None,
        }
    }

    /// Length when it was opened, for regular files.
    #[must_use]
    pub const fn len(&self) -> Option<u64> {
        self.len
    }

    /// Whether it is known to be empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == Some(0)
    }

    /// How far it is read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Makes at least `want` bytes available, if the input has them.
    fn fill(&mut self, want: usize) -> io::Result<()> {
        while self.end - self.start < want && !self.dry {
            if self.buffer.len() - self.start < want {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let n = read_some(&mut self.input, &mut self.buffer[self.end..], self.budget)?;
            self.dry = n == 0;
            self.end += n;
            self.budget -= n as u64;
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) {
        self.start += n;
        self.position += n as u64;
    }

    /// Appends up to `n` bytes of the input to `to`.
    fn take(&mut self, mut n: usize, to: &mut Vec<u8>) -> io::Result<()> {
        let have = n.min(self.end - self.start);
        to.extend_from_slice(&self.buffer[self.start..self.start + have]);
        self.skip(have);
        n -= have;
        while n > 0 && !self.dry {
            // Grown by what arrives: a declared size alone costs nothing.
            let at = to.len();
            to.resize(at + n.min(4 * PIECE), 0);
            let read = match read_some(&mut self.input, &mut to[at..], self.budget) {
                Ok(read) => read,
                Err(error) => {
                    to.truncate(at);
                    return Err(error);
                }
            };
            to.truncate(at + read);
            self.dry = read == 0;
            self.budget -= read as u64;
            self.position += read as u64;
            n -= read;
        }
        Ok(())
    }

    /// Reads past up to `n` bytes; gives how many there were, and whether all of
    /// them were zero.
    fn pass(&mut self, mut n: u64) -> io::Result<(u64, bool)> {
        let (mut passed, mut zero) = (0, true);
        while n > 0 {
            self.fill(1)?;
            let have = self.buffered();
            let have = &have[..have.len().min(usize::try_from(n).unwrap_or(usize::MAX))];
            if have.is_empty() {
                break;
            }
            zero = zero && have.iter().all(|&byte| byte == 0);
            let len = have.len();
            self.skip(len);
            passed += len as u64;
            n -= len as u64;
        }
        Ok((passed, zero))
    }

    fn end(&mut self, kind: TailKind, position: u64, bytes: u64) -> Item {
        let tail = Tail { kind, position, bytes };
        self.tail = Some(tail);
        Item::End(tail)
    }

    /// Nothing tells where an entry might start again: the rest counts as garbage.
    fn lost(&mut self, error: Error, position: u64) -> io::Result<Item> {
        self.pass(u64::MAX)?;
        self.end(TailKind::Garbage, position, self.position - position);
        Ok(Item::Error(error))
    }

    /// The next entry, whose bytes are appended to `to`.
    ///
    /// Errors: the input cannot be read. What is wrong with the data is an item.
    pub fn next_batch(&mut self, to: &mut Vec<u8>) -> io::Result<Item> {
        if let Some(tail) = self.tail {
            return Ok(Item::End(tail));
        }
        self.fill(Framing::LEN)?;
        let position = self.position;
        let rest = self.buffered();
        let Some(prefix) = rest.first_chunk::<{ Framing::LEN }>().copied() else {
            // So little that it cannot be an entry.
            let (rest, bytes) = (Frame::parse(rest, position), rest.len());
            self.skip(bytes);
            return Ok(match rest {
                Ok(Frame::End(Tail { kind, .. })) => self.end(kind, position, bytes as u64),
                _ => self.end(TailKind::PartialBatch, position, bytes as u64),
            });
        };
        if prefix == [0; Framing::LEN] {
            let (bytes, zero) = self.pass(u64::MAX)?;
            return Ok(if zero {
                self.end(TailKind::ZeroPadding, position, bytes)
            } else {
                self.end(TailKind::Garbage, position, bytes);
                let kind = ErrorKind::BatchLength { size: 0, least: 14 };
                Item::Error(Error::new(kind, position + 8))
            });
        }
        let framing = match Framing::parse(&prefix, position) {
            Ok(framing) => framing,
            Err(error) => return self.lost(error, position),
        };
        let total = framing.total();
        if total > self.largest {
            self.fill(framing.magic.header_len())?;
            let seen = self.buffered().to_vec();
            let (passed, _) = self.pass(total)?;
            if passed == total {
                let kind = ErrorKind::BatchTooLarge { size: total, limit: self.largest };
                return Ok(Item::Error(Error::new(kind, position + 8)));
            }
            return Ok(match framing.check_partial(&seen, position) {
                Ok(()) => self.end(TailKind::PartialBatch, position, passed),
                Err(error) => self.lost(error, position)?,
            });
        }
        let before = to.len();
        self.take(usize::try_from(total).unwrap_or(usize::MAX), to)?;
        let entry = &to[before..];
        if (entry.len() as u64) < total {
            let checked = framing.check_partial(entry, position);
            let bytes = entry.len() as u64;
            to.truncate(before);
            return Ok(match checked {
                Ok(()) => self.end(TailKind::PartialBatch, position, bytes),
                Err(error) => self.lost(error, position)?,
            });
        }
        Ok(match BatchHeader::parse(entry, position) {
            Ok(header) => Item::Batch(header),
            Err(error) => self.lost(error, position)?,
        })
    }
}

fn read_some(input: &mut dyn Read, buffer: &mut [u8], budget: u64) -> io::Result<usize> {
    let most = buffer.len().min(usize::try_from(budget).unwrap_or(usize::MAX));
    loop {
        match input.read(&mut buffer[..most]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A segment is read once, front to back; the broker's own pages shall stay.
#[cfg(target_os = "linux")]
fn advise(file: &File) {
    use rustix::fs::{Advice, fadvise};
    // Advice: a file system that knows none of it is no error.
    let _ = fadvise(file, 0, None, Advice::Sequential);
    let _ = fadvise(file, 0, None, Advice::NoReuse);
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &File) {}

/// The segments that some paths stand for.
#[derive(Debug, Default)]
pub struct Found {
    /// Files, in the order of the paths; those of a directory by name.
    pub segments: Vec<PathBuf>,
    /// What could not be looked at.
    pub failures: Vec<(PathBuf, io::Error)>,
}

/// Finds segments: a file is one by being named, below a directory every `*.log`
/// is. Other kinds of files there (pipes, sockets) are not opened.
#[must_use]
pub fn find(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        if path.as_os_str() == "-" || !path.is_dir() {
            found.segments.push(path.clone());
            continue;
        }
        let walk = walkdir::WalkDir::new(path).follow_links(true).sort_by_file_name();
        for entry in walk {
            match entry {
                Ok(entry) => {
                    let is_log = entry.path().extension().is_some_and(|end| end == "log");
                    if is_log && entry.file_type().is_file() {
                        found.segments.push(entry.into_path());
                    }
                }
                // A link that leads back up has been walked already.
                Err(error) if error.loop_ancestor().is_some() => {}
                Err(error) => {
                    let at = error.path().unwrap_or(path).to_path_buf();
                    let error =
                        error.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into());
                    found.failures.push((at, error));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8], largest: u64) -> (Vec<String>, Tail) {
        let input = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut segment = Segment::new(input, None, largest, None);
        let (mut seen, mut buffer) = (Vec::new(), Vec::new());
        loop {
            match segment.next_batch(&mut buffer).unwrap() {
                Item::Batch(header) => seen.push(format!("{}+{}", header.position, header.size)),
                Item::Error(error) => seen.push(format!("{} {}", error.position(), error.name())),
                Item::End(tail) => return (seen, tail),
            }
        }
    }

    /// A v2 entry with `n` bytes of records.
    fn entry(n: usize) -> Vec<u8> {
        let mut entry = vec![0; 61 + n];
        entry[8..12].copy_from_slice(&(49 + n as i32).to_be_bytes());
        entry[16] = 2;
        entry
    }

    #[test]
    fn entries_larger_than_the_buffer_and_the_limit() {
        let bytes = [entry(3), entry(2 * PIECE), entry(5)].concat();
        let (seen, tail) = read_all(&bytes, 1 << 20);
        assert_eq!(seen, ["0+64", "64+524349", "524413+66"]);
        assert_eq!(tail, Tail { kind: TailKind::Clean, position: bytes.len() as u64, bytes: 0 });
        let (seen, _) = read_all(&bytes, 1000);
        assert_eq!(seen, ["0+64", "72 batch_length_limit", "524413+66"]);
    }

    #[test]
    fn tails() {
        let whole = entry(3);
        for (behind, kind) in [
            (vec![], TailKind::Clean),
            (vec![7], TailKind::PartialBatch),
            (vec![0; 5], TailKind::ZeroPadding),
            (vec![0; 3 * PIECE], TailKind::ZeroPadding),
            (entry(9)[..40].to_vec(), TailKind::PartialBatch),
        ] {
            let bytes = behind.len() as u64;
            let (seen, tail) = read_all(&[whole.clone(), behind].concat(), 1 << 20);
            assert_eq!(seen, ["0+64"]);
            assert_eq!(tail, Tail { kind, position: 64, bytes });
        }
        let mut late = vec![0; 3 * PIECE];
        *late.last_mut().unwrap() = 1;
        let (seen, tail) = read_all(&[whole, late].concat(), 1 << 20);
        assert_eq!(seen, ["0+64", "72 batch_length"]);
        assert_eq!((tail.kind, tail.position), (TailKind::Garbage, 64));
        assert_eq!(tail.bytes, 3 * PIECE as u64);
    }

    #[test]
    fn a_huge_declared_size_costs_nothing() {
        let mut bytes = entry(100);
        bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
        for largest in [1 << 20, u64::MAX] {
            let (seen, tail) = read_all(&bytes, largest);
            assert_eq!(seen, [""; 0]);
            assert_eq!((tail.kind, tail.bytes), (TailKind::PartialBatch, 161));
        }
    }
}
