//! Segments, and the files beside them, as files and pipes: the only place that opens
//! inputs.
//!
//! A segment is read in pieces through the core's [`BatchReader`], whatever its size: no
//! mapping (a file that shrinks would kill the program) and no slurping. Memory follows
//! the bytes that are there, never a declared size. A regular file is read up to the
//! length it had when it was opened, so that a live one has an end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use logseg_core::reader::Entry;
use logseg_core::{BatchHeader, BatchReader, Error, ErrorKind, Tail};

use crate::cpu;

/// Length of the buffer to begin with. Larger batches make it grow.
const BUFFER: usize = 512 << 10;

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
    input: Input,
    /// Length when it was opened, for regular files.
    len: Option<u64>,
    /// Largest entry that is taken into memory.
    largest: u64,
    reader: BatchReader<Vec<u8>>,
    /// Bytes that may be read of the input in all, and still.
    most: u64,
    budget: u64,
}

enum Input {
    /// Can be read again from anywhere.
    File(File),
    Stream(Box<dyn Read + Send>),
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
        let (file, len) = open(path)?;
        advise(&file);
        let input = match len {
            Some(_) => Input::File(file),
            None => Input::Stream(Box::new(file)),
        };
        Ok(Self::of(input, len, largest, max_bytes))
    }

    /// Reads from any input; `len` is what it is known to hold.
    #[must_use]
    pub fn new(
        input: Box<dyn Read + Send>,
        len: Option<u64>,
        largest: u64,
        max_bytes: Option<u64>,
    ) -> Self {
        Self::of(Input::Stream(input), len, largest, max_bytes)
    }

    fn of(input: Input, len: Option<u64>, largest: u64, max_bytes: Option<u64>) -> Self {
        let most = len.unwrap_or(u64::MAX).min(max_bytes.unwrap_or(u64::MAX));
        let reader = BatchReader::new(vec![0; BUFFER], cpu::detect());
        Self { input, len, largest, reader, most, budget: most }
    }

    /// Goes back to `position`, if the input can: not so for a pipe.
    pub fn rewind_to(&mut self, position: u64) -> io::Result<bool> {
        let Input::File(file) = &mut self.input else { return Ok(false) };
        file.seek(SeekFrom::Start(position))?;
        let buffer = std::mem::take(self.reader.buffer_mut());
        self.reader = BatchReader::at(buffer, position, cpu::detect());
        self.budget = self.most.saturating_sub(position);
        Ok(true)
    }

    /// Writes bytes of the input as they are and goes on behind them, if the input can go
    /// back: not so for a pipe. Gives how many there were; `to` may lie beyond the end.
    pub fn copy(&mut self, from: u64, to: u64, out: &mut dyn Write) -> io::Result<Option<u64>> {
        let Input::File(file) = &mut self.input else { return Ok(None) };
        file.seek(SeekFrom::Start(from))?;
        let most = to.min(self.most).saturating_sub(from);
        let copied = io::copy(&mut file.take(most), out)?;
        self.rewind_to(from + copied)?;
        Ok(Some(copied))
    }

    /// Length when it was opened, for regular files.
    #[must_use]
    pub const fn opened_len(&self) -> Option<u64> {
        self.len
    }

    /// How far it is read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.reader.position()
    }

    /// The reader, for who takes batches as they come. It wants [`Segment::feed`] when it
    /// needs input.
    pub const fn reader(&mut self) -> &mut BatchReader<Vec<u8>> {
        &mut self.reader
    }

    /// Gives the reader more of the input, or tells it that there is no more; false then.
    pub fn feed(&mut self) -> io::Result<bool> {
        let spare = self.reader.spare();
        let most = spare.len().min(usize::try_from(self.budget).unwrap_or(usize::MAX));
        let n = match &mut self.input {
            Input::File(file) => read(file, &mut spare[..most])?,
            Input::Stream(input) => read(input, &mut spare[..most])?,
        };
        self.budget -= n as u64;
        if n == 0 {
            self.reader.finish();
        }
        self.reader.commit(n);
        Ok(n > 0)
    }

    /// The next entry, whose bytes are appended to `to`.
    ///
    /// Errors: the input cannot be read. What is wrong with the data is an item.
    pub fn next_batch(&mut self, to: &mut Vec<u8>) -> io::Result<Item> {
        loop {
            let header = match self.reader.poll_entry() {
                Ok(Entry::NeedInput) => {
                    self.feed()?;
                    continue;
                }
                Ok(Entry::Whole(batch)) if batch.header().size > self.largest => *batch.header(),
                Ok(Entry::Whole(batch)) => {
                    to.extend_from_slice(batch.bytes());
                    return Ok(Item::Batch(*batch.header()));
                }
                Ok(Entry::End(tail)) => return Ok(Item::End(tail)),
                Ok(Entry::Large(header)) => header,
                Err(error) => return Ok(Item::Error(error)),
            };
            if header.size > self.largest {
                loop {
                    match self.reader.pass_over() {
                        Ok(true) => break,
                        Ok(false) => self.feed()?,
                        Err(error) => return Ok(Item::Error(error)),
                    };
                }
                if self.reader.read_to() >= header.position + header.size {
                    let kind = ErrorKind::BatchTooLarge { size: header.size, limit: self.largest };
                    return Ok(Item::Error(Error::new(kind, header.position + 8)));
                }
            } else if self.reader.is_full() {
                // Grown by what has arrived: a declared size alone costs nothing.
                let buffer = self.reader.buffer_mut();
                let size = usize::try_from(header.size).unwrap_or(usize::MAX);
                buffer.resize(size.min(2 * buffer.len()), 0);
            } else {
                self.feed()?;
            }
        }
    }
}

/// Opens a file for reading, and tells its length if it is a regular one.
fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let len = metadata.is_file().then_some(metadata.len());
    Ok((file, len))
}

/// Reads once; 0 at the end.
fn read(input: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(to) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Fills a buffer, or with what is left of the input; gives how much that is.
pub fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read(input, &mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// A regular file beside a segment, up to the length it had when it was opened.
#[derive(Debug)]
pub struct SideInput {
    file: File,
    len: u64,
    position: u64,
}

impl SideInput {
    /// Opens a file for reading, and nothing else.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Asked before: to open a pipe is to wait for who writes it.
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let (file, len) = open(path)?;
        Ok(Self { file, len: len.unwrap_or(0), position: 0 })
    }

    /// Length when it was opened.
    #[must_use]
    pub const fn opened_len(&self) -> u64 {
        self.len
    }

    /// Goes to a position.
    pub fn seek_to(&mut self, position: u64) -> io::Result<()> {
        self.position = self.file.seek(SeekFrom::Start(position))?;
        Ok(())
    }

    /// Fills a buffer, or what is left of the file.
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let filled = fill(&mut self.file, &mut buffer[..most])?;
        self.position += filled as u64;
        Ok(filled)
    }
}

/// The headers of a segment's batches, each read where it is asked for.
#[derive(Debug)]
pub struct BatchHeaders {
    input: SideInput,
    /// Bytes of the segment from `start` on. Small batches have many headers in one page.
    page: [u8; 4096],
    start: u64,
    filled: usize,
}

impl BatchHeaders {
    /// Opens a segment, `None` if there is none.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match SideInput::open(path) {
            Ok(input) => Ok(Some(Self { input, page: [0; 4096], start: 0, filled: 0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The header of the batch that starts at `position`, `None` if no whole one does.
    ///
    /// Its CRC is not checked: that of the batch is what `verify` is for.
    pub fn at(&mut self, position: u64) -> io::Result<Option<BatchHeader>> {
        let here = match self.header_in_page(position) {
            None if position < self.input.len => {
                self.input.seek_to(position)?;
                self.filled = self.input.fill(&mut self.page)?;
                self.start = position;
                self.header_in_page(position)
            }
            here => here,
        };
        let end = |header: &BatchHeader| position.checked_add(header.size);
        let fits = |header: &BatchHeader| end(header).is_some_and(|end| end <= self.input.len);
        Ok(here.filter(|header| header.is_plausible() && fits(header)))
    }

    fn header_in_page(&self, position: u64) -> Option<BatchHeader> {
        let at = usize::try_from(position.checked_sub(self.start)?).ok()?;
        BatchHeader::parse(self.page[..self.filled].get(at..)?, position).ok()
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

/// Opens what is no segment, to be read front to back; `-` is standard input.
pub fn open_bytes(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(open(path)?.0))
}

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
    find_files(paths, |path| path.extension().is_some_and(|end| end == "log"))
}

/// As [`find`], with other files below the directories.
#[must_use]
pub fn find_files(paths: &[PathBuf], is_wanted: impl Fn(&Path) -> bool) -> Found {
    let mut found = Found::default();
    for path in paths {
        if path.as_os_str() == "-" || !path.is_dir() {
            found.segments.push(path.clone());
            continue;
        }
        let walk = walkdir::WalkDir::new(path).follow_links(true).sort_by_file_name();
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_dir() || !is_wanted(entry.path()) => {}
                Ok(entry) if entry.file_type().is_file() => {
                    found.segments.push(entry.into_path());
                }
                Ok(entry) => {
                    let error = io::Error::other("not a regular file");
                    found.failures.push((entry.into_path(), error));
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

/// Topic and number of the partition that a segment belongs to, by the name of its
/// directory: `topic-N` (`LogManager.parseTopicPartitionName`). Not of a directory that is
/// being moved or deleted, whose name goes on behind that.
#[must_use]
pub fn partition_of(segment: &Path) -> Option<(&str, u32)> {
    let (topic, number) = segment.parent()?.file_name()?.to_str()?.rsplit_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    // Kafka writes no zeros in front.
    if topic.is_empty() || !digits || (number.len() > 1 && number.starts_with('0')) {
        return None;
    }
    Some((topic, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use logseg_core::TailKind;

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
        let bytes = [entry(3), entry(3 * BUFFER), entry(5)].concat();
        let (seen, tail) = read_all(&bytes, 1 << 24);
        assert_eq!(seen, ["0+64", "64+1572925", "1572989+66"]);
        assert_eq!(tail, Tail { kind: TailKind::Clean, position: bytes.len() as u64, bytes: 0 });
        let (seen, _) = read_all(&bytes, 1000);
        assert_eq!(seen, ["0+64", "72 batch_length_limit", "1572989+66"]);
    }

    #[test]
    fn partitions_by_their_directory() {
        for (path, partition) in [
            ("/data/orders-0/00000000000000000000.log", Some(("orders", 0))),
            ("a-b-12/0.log", Some(("a-b", 12))),
            ("__consumer_offsets-49/0.log", Some(("__consumer_offsets", 49))),
            ("orders-0.0123456789abcdef-delete/0.log", None),
            ("orders-+1/0.log", None),
            ("orders-/0.log", None),
            ("-1/0.log", None),
            ("orders-4294967296/0.log", None),
            ("orders/0.log", None),
            ("0.log", None),
            ("-", None),
        ] {
            assert_eq!(partition_of(Path::new(path)), partition, "{path}");
        }
    }

    #[test]
    fn headers_where_they_are_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        assert!(BatchHeaders::open(&path).unwrap().is_none());
        assert!(BatchHeaders::open(directory.path()).is_err());
        let bytes = [entry(3), entry(6000), entry(5)].concat();
        std::fs::write(&path, &bytes).unwrap();
        let mut headers = BatchHeaders::open(&path).unwrap().unwrap();
        let mut at = |position| headers.at(position).unwrap().map(|header| header.size);
        assert_eq!([at(0), at(64), at(6125)], [Some(64), Some(6061), Some(66)]);
        assert_eq!([at(64), at(0)], [Some(6061), Some(64)], "back again");
        let end = bytes.len() as u64;
        assert_eq!([at(1), at(end - 1), at(end), at(u64::MAX >> 1)], [None; 4]);
        // The last one is cut.
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let mut headers = BatchHeaders::open(&path).unwrap().unwrap();
        assert_eq!(headers.at(6125).unwrap(), None);
    }

    #[test]
    fn tails() {
        let whole = entry(3);
        for (behind, kind) in [
            (vec![], TailKind::Clean),
            (vec![7], TailKind::PartialBatch),
            (vec![0; 5], TailKind::ZeroPadding),
            (vec![0; 3 * BUFFER], TailKind::ZeroPadding),
            (entry(9)[..40].to_vec(), TailKind::PartialBatch),
        ] {
            let bytes = behind.len() as u64;
            let (seen, tail) = read_all(&[whole.clone(), behind].concat(), 1 << 20);
            assert_eq!(seen, ["0+64"]);
            assert_eq!(tail, Tail { kind, position: 64, bytes });
        }
        let mut late = vec![0; 3 * BUFFER];
        *late.last_mut().unwrap() = 1;
        let (seen, tail) = read_all(&[whole, late].concat(), 1 << 20);
        assert_eq!(seen, ["0+64", "72 batch_length"]);
        assert_eq!((tail.kind, tail.position), (TailKind::Garbage, 64));
        assert_eq!(tail.bytes, 3 * BUFFER as u64);
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
