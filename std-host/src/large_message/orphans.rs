//! Blobs that no segment refers to any more.
//!
//! A blob is an orphan only if all of this holds; where there is doubt it is none:
//!
//! * it is of a topic of which whole partitions were looked at;
//! * no segment that was looked at refers to it, whatever topic that is of, whether its
//!   transaction was committed or not, by whatever may be a reference: marked values, and
//!   keys and values that look like one ([`Finder::ALL`]) or have its location in them;
//! * it was last modified longer before the search began than the minimum age.
//!
//! What is *not* found decides here. So everything that could hide a reference is told as
//! a [`Doubt`]: a damaged batch, a marked value that cannot be read, a segment that is cut
//! short, a file that cannot be read, a partition that is missing. With a doubt the search
//! is good for nothing but a look.
//!
//! The minimum age stands for what no segment can tell: a producer stores the blob first
//! and sends the record later. It has to be longer than that may take, with the retries and
//! the delivery timeout, and longer than the clocks of store and searcher differ. It is
//! counted from when the search began, or from when the newest segment of one of the topic's
//! partitions was last written to if that is earlier: of what a log was given after it was
//! copied, the copy knows nothing.
//!
//! What no search can know of are records elsewhere: those that were mirrored to another
//! cluster or forwarded to another topic with their references in them. These logs have to be
//! among the paths too.
//!
//! References are kept as 16 bytes of a digest each, in all about 40 bytes of memory a
//! blob: two of the same digest could only keep a blob too much.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use logseg_core::builder::sizes::LOG_OVERHEAD;
use logseg_core::{Error, Limits, Tail, TailKind};

use super::Blob;
use super::find::{Finder, Found, Scanner, Sighting};
use crate::dump::digest::short_digest;
use crate::source;

/// Listings of the directories before a search gives up: while files come and go faster
/// than they are read, none is complete.
const ROUNDS: u32 = 8;

/// Incomplete batches that are looked at again, and after which time.
const PATIENCE: u32 = 3;
const APPEND: Duration = Duration::from_millis(100);

/// Ends that a location in a text may have, and bytes behind the store's URL: more than any
/// blob's name.
const ENDS: usize = 64;
const LONGEST: usize = 1024;

/// Why references may have been missed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Doubt<'a> {
    /// A batch is damaged, or something that is no batch is in the way.
    Damage(&'a Error),
    /// A value is marked as a reference, and cannot be read as one.
    Unreadable {
        /// Position of its batch, in bytes.
        position: u64,
        /// Offset of its record.
        offset: i64,
        /// What is wrong with it.
        detail: &'a str,
    },
    /// The segment ends within a batch, and still does after a while. So would one whose
    /// last size is damaged, with all that follows it.
    Cut(Tail),
    /// It has no batches, and the index beside it has entries.
    Emptied,
    /// It cannot be read.
    Io(&'a io::Error),
    /// There are partitions with higher numbers, and none with this one.
    Missing {
        /// Topic of the partition.
        topic: &'a str,
        /// Number of the partition.
        partition: u32,
    },
    /// Files come and go too fast to have read them all.
    Restless,
}

impl fmt::Display for Doubt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(error) => write!(f, "{error}"),
            Self::Unreadable { position, offset, detail } => {
                write!(f, "byte {position}: reference of offset {offset}: {detail}")
            }
            Self::Cut(tail) => {
                let Tail { position, bytes, .. } = tail;
                write!(f, "byte {position}: incomplete batch of {bytes} bytes")
            }
            Self::Emptied => f.write_str("byte 0: nothing, but its index has entries"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Missing { topic, partition } => {
                write!(f, "partition {topic}-{partition} is missing")
            }
            Self::Restless => f.write_str("files come and go faster than they can be read"),
        }
    }
}

/// What a search has found.
#[derive(Debug, Default)]
pub struct Search {
    /// URL of the store, as it starts every location.
    store: String,
    /// Locations in the store.
    inside: HashSet<[u8; 16]>,
    /// Last segments of locations that are not the store's: it may go by another name
    /// where they were written.
    outside: HashSet<[u8; 16]>,
    /// Topics that were looked at as a whole.
    topics: BTreeMap<String, Topic>,
    /// Segments that were read.
    segments: u64,
    records: u64,
    references: u64,
    doubts: u64,
}

/// What is known of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topic {
    /// When the newest segment of each partition was last written to, in epoch milliseconds;
    /// `None` for segments that were named.
    newest: BTreeMap<Option<u32>, i64>,
    /// Of these the earliest: up to then all of the topic is known.
    known: i64,
}

impl Topic {
    /// Partitions that were read, in order. None if the topic was only named.
    pub fn partitions(&self) -> impl Iterator<Item = u32> + '_ {
        self.newest.keys().filter_map(|partition| *partition)
    }

    /// Whether a partition was read.
    #[must_use]
    pub fn has(&self, partition: u32) -> bool {
        self.newest.contains_key(&Some(partition))
    }

    fn read(&mut self, partition: Option<u32>, written: i64) {
        let newest = self.newest.entry(partition).or_default();
        *newest = written.max(*newest);
    }
}

/// What becomes of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Nobody refers to it.
    Orphan,
    /// A segment refers to it, or may.
    Referred,
    /// Younger than the minimum age: its record may be on its way.
    Young,
    /// No partition of its topic was looked at; or it is no blob of a topic at all.
    OtherTopic,
}

/// Which blobs are old enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// When the search began, in epoch milliseconds, before the first segment was read.
    pub began: i64,
    /// How long before that a blob must have been modified.
    pub least: Duration,
}

impl Age {
    /// Counted from now.
    #[must_use]
    pub fn from_now(least: Duration) -> Self {
        Self { began: millis(SystemTime::now()), least }
    }
}

/// In epoch milliseconds; 0 before that.
pub(crate) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Search {
    /// Reads all segments below some paths. Files may come and go meanwhile, as those of a
    /// running broker do: directories are listed again until all that is there was read.
    ///
    /// Of the directories below `paths`, those of partitions tell which topics are looked
    /// at as a whole. Segments that are named one by one do not: for them `topics` says it.
    ///
    /// `store` is the URL of the store, as it starts the location of every blob in it.
    pub fn run(
        store: &str,
        paths: &[PathBuf],
        topics: &[String],
        limits: Limits,
        doubt: &mut dyn FnMut(&Path, Doubt<'_>),
    ) -> Self {
        let mut search = Self { store: store.to_owned(), ..Self::default() };
        let mut doubts = 0;
        let mut tell = |path: &Path, why: Doubt<'_>| {
            doubts += 1;
            doubt(path, why);
        };
        search.read_all(paths, topics, limits, &mut tell);
        for (name, topic) in &mut search.topics {
            topic.known = topic.newest.values().copied().min().unwrap_or(0);
            let last = topic.partitions().last().unwrap_or(0);
            for partition in (0..last).filter(|partition| !topic.has(*partition)).take(100) {
                tell(Path::new(name), Doubt::Missing { topic: name, partition });
            }
        }
        search.doubts = doubts;
        search
    }

    fn read_all(
        &mut self,
        paths: &[PathBuf],
        topics: &[String],
        limits: Limits,
        doubt: &mut dyn FnMut(&Path, Doubt<'_>),
    ) {
        let mut scanner = Scanner::new(limits);
        let named: HashSet<&PathBuf> = paths.iter().collect();
        let (mut done, mut patience) = (HashSet::new(), HashMap::new());
        for _ in 0..ROUNDS {
            // The cleaner renames what it has written to `.swap` before it takes the old
            // segments away: between the two only that file has their records.
            let found = source::find_files(paths, |path| {
                let stem = path.with_extension("");
                let is = |path: &Path, end: &str| path.extension().is_some_and(|has| has == end);
                is(path, "log") || is(path, "swap") && is(&stem, "log")
            });
            let mut settled = true;
            for (path, error) in &found.failures {
                match error.kind() {
                    io::ErrorKind::NotFound => settled = false,
                    _ if done.insert(Identity::Path(path.clone())) => {
                        doubt(path, Doubt::Io(error));
                    }
                    _ => {}
                }
            }
            for path in &found.segments {
                let is_named = named.contains(path);
                let (identity, written) = match Identity::of(path) {
                    Ok(known) => known,
                    Err(error) if is_named => {
                        if done.insert(Identity::Path(path.clone())) {
                            doubt(path, Doubt::Io(&error));
                        }
                        continue;
                    }
                    // Gone since it was listed; where its records are now is listed next.
                    Err(_) => {
                        settled = false;
                        continue;
                    }
                };
                if done.contains(&identity) {
                    continue;
                }
                settled = false;
                let before = (self.records, self.references);
                match self.read(&mut scanner, path, doubt) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => continue,
                    Err(error) => doubt(path, Doubt::Io(&error)),
                    Ok(tail) => {
                        if tail.kind == TailKind::PartialBatch {
                            // A broker may be in the middle of an append.
                            let patience = patience.entry(path.clone()).or_insert(PATIENCE);
                            if *patience > 0 {
                                *patience -= 1;
                                (self.records, self.references) = before;
                                thread::sleep(APPEND);
                                continue;
                            }
                        }
                        // Zeros are what a file was preallocated with, but for one that is
                        // nothing else, and for fewer than any entry has.
                        let zeros = tail.kind == TailKind::ZeroPadding;
                        let none = zeros && (tail.position == 0 || tail.bytes < LOG_OVERHEAD);
                        if tail.kind == TailKind::PartialBatch || none {
                            doubt(path, Doubt::Cut(tail));
                        } else if tail.position == 0 && has_index(path) {
                            doubt(path, Doubt::Emptied);
                        }
                        self.segments += 1;
                        self.count_partition(path, is_named, topics, written);
                    }
                }
                done.insert(identity);
            }
            if settled {
                return;
            }
        }
        doubt(paths.first().map_or(Path::new(""), PathBuf::as_path), Doubt::Restless);
    }

    fn count_partition(&mut self, path: &Path, is_named: bool, topics: &[String], written: i64) {
        // What is found below a directory says itself whose it is.
        for topic in topics.iter().filter(|_| is_named) {
            self.topics.entry(topic.clone()).or_default().read(None, written);
        }
        // A directory may be given as `.`.
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if let Some((topic, partition)) = source::partition_of(&whole)
            && !is_named
        {
            self.topics.entry(topic.to_owned()).or_default().read(Some(partition), written);
        }
    }

    fn read(
        &mut self,
        scanner: &mut Scanner,
        path: &Path,
        doubt: &mut dyn FnMut(&Path, Doubt<'_>),
    ) -> io::Result<Tail> {
        // Whatever scheme somebody else's software calls it by.
        let place = self.store.find("://").map_or("", |at| &self.store[at..]).to_owned();
        let end = scanner.scan(path, &mut |sighting| match sighting {
            Sighting::Batch => {}
            Sighting::Damage(error) => doubt(path, Doubt::Damage(error)),
            Sighting::Record(record, position) => {
                self.records += 1;
                let fields = [record.key, record.value];
                let found = [Finder::ALL.key(record), Finder::ALL.value(record)];
                for (field, found) in fields.into_iter().zip(found) {
                    match found {
                        // In something that other software has made, perhaps.
                        Found::Inline => {
                            if !self.add_mentions(field.unwrap_or_default(), &place) {
                                let offset = record.offset.resolve(0);
                                let detail = "no end to a location of the store in it";
                                doubt(path, Doubt::Unreadable { position, offset, detail });
                            }
                        }
                        Found::Null => {}
                        Found::Reference(target) => self.add(&target.location),
                        Found::Unreadable(detail) => {
                            let offset = record.offset.resolve(0);
                            doubt(path, Doubt::Unreadable { position, offset, detail: &detail });
                        }
                    }
                }
            }
        })?;
        Ok(end.tail)
    }

    /// Takes every location of the store in a field as one that is referred to, with whatever
    /// scheme. Where one ends is for who wrote it to know, so all ends that it may have count.
    /// False if there are too many of them.
    fn add_mentions(&mut self, field: &[u8], place: &str) -> bool {
        // That of a store in memory is too short to say anything.
        if place.len() <= ":///".len() {
            return true;
        }
        for at in memchr::memmem::find_iter(field, place) {
            let rest = field.get(at + place.len()..).unwrap_or_default();
            let legal = |byte: &u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(byte);
            let len = rest.iter().take_while(|byte| legal(byte)).count();
            let word = |at: usize| rest.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric());
            let ends = (1..=len).filter(|end| *end == len || !word(*end));
            for (nth, end) in ends.enumerate() {
                if nth == ENDS || end > LONGEST {
                    return false;
                }
                let rest = rest.get(..end).and_then(|rest| std::str::from_utf8(rest).ok());
                if let Some(rest) = rest {
                    self.add(&format!("{}{rest}", self.store));
                }
            }
        }
        true
    }

    /// Takes a location as one that is referred to.
    pub fn add(&mut self, location: &str) {
        self.references += 1;
        // A store finds a blob by the very text of its location. Where that has what no
        // location may have, somebody else's store may still find it.
        let is_plain = |rest: &str| {
            rest.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
                && !rest.contains(['%', '?', '#', '\\'])
        };
        match self.rest(location) {
            Some(rest) if is_plain(rest) => self.inside.insert(short_digest(location.as_bytes())),
            _ => self.outside.insert(short_digest(&last_segment(location))),
        };
    }

    /// What follows the store's URL in a location.
    fn rest<'a>(&self, location: &'a str) -> Option<&'a str> {
        location.strip_prefix(&self.store)?.strip_prefix('/')
    }

    /// Topic of the blob at a location of the store.
    #[must_use]
    pub fn topic_of<'a>(&self, location: &'a str) -> Option<&'a str> {
        Some(self.rest(location)?.split_once('/')?.0)
    }

    /// Whether it is where a serializer puts a blob: `TOPIC/ID`, or bakdata's
    /// `TOPIC/values/ID` and `TOPIC/keys/ID`. Anything else below a topic is somebody else's.
    fn is_blob(&self, location: &str) -> bool {
        let mut rest = self.rest(location).unwrap_or_default().split('/').skip(1);
        match (rest.next(), rest.next(), rest.next()) {
            (Some(_), None, _) => true,
            (Some(part), Some(_), None) => matches!(part, "values" | "keys"),
            _ => false,
        }
    }

    /// What becomes of a blob that the store has.
    #[must_use]
    pub fn verdict(&self, blob: &Blob, age: Age) -> Verdict {
        let location = blob.location.as_str();
        let topic = self.topic_of(location).and_then(|topic| self.topics.get(topic));
        let Some(topic) = topic.filter(|_| self.is_blob(location)) else {
            return Verdict::OtherTopic;
        };
        if self.inside.contains(&short_digest(location.as_bytes()))
            || self.outside.contains(&short_digest(&last_segment(location)))
        {
            return Verdict::Referred;
        }
        let least = i64::try_from(age.least.as_millis()).unwrap_or(i64::MAX);
        let known = age.began.min(topic.known);
        if millis(blob.last_modified).saturating_add(least) < known {
            Verdict::Orphan
        } else {
            Verdict::Young
        }
    }

    /// Topics that were looked at as a whole.
    #[must_use]
    pub const fn topics(&self) -> &BTreeMap<String, Topic> {
        &self.topics
    }

    /// Segments that were read to their end.
    #[must_use]
    pub const fn segments(&self) -> u64 {
        self.segments
    }

    /// Records that were looked at.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// References among them.
    #[must_use]
    pub const fn references(&self) -> u64 {
        self.references
    }

    /// How often a reference may have been missed.
    #[must_use]
    pub const fn doubts(&self) -> u64 {
        self.doubts
    }
}

/// Whether the offset index beside a segment has an entry, and not only the zeros that it was
/// preallocated with.
fn has_index(segment: &Path) -> bool {
    let mut entry = [0; 8];
    let index = std::fs::File::open(segment.with_extension("index"));
    index.and_then(|mut index| index.read_exact(&mut entry)).is_ok() && entry != [0; 8]
}

/// The last segment of a location, however it is written.
fn last_segment(location: &str) -> Vec<u8> {
    let path = location.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let (mut decoded, mut rest) = (Vec::with_capacity(last.len()), last.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                rest = &behind[2..];
            }
            _ => {
                decoded.push(byte);
                rest = behind;
            }
        }
    }
    decoded
}

/// What tells a file from every other that the search has come across.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// Device, inode and time of birth: names change, and inodes are used again.
    File(u64, u64, SystemTime),
    /// Where that is not to be had.
    Path(PathBuf),
}

impl Identity {
    /// Also when the file was last written to, in epoch milliseconds.
    fn of(path: &Path) -> io::Result<(Self, i64)> {
        let metadata = path.metadata()?;
        let written = metadata.modified().map_or(0, millis);
        #[cfg(unix)]
        if let Ok(born) = metadata.created() {
            use std::os::unix::fs::MetadataExt;
            return Ok((Self::File(metadata.dev(), metadata.ino(), born), written));
        }
        Ok((Self::Path(path.to_path_buf()), written))
    }
}
