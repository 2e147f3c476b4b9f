//! `std-host blob orphans --delete`: deletes what a list has, if it is an orphan still.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::orphans::{Head, Line, SCHEMA, Searched};
use crate::cli::{Outcome, Stop, write_error};
use crate::large_message::orphans::{Verdict, millis};
use crate::large_message::{BlobError, BlobErrorKind, ObjectBlobStore};

/// A list of a former run.
pub(super) struct List {
    path: PathBuf,
    head: Head,
    lines: Vec<(usize, Line)>,
}

impl List {
    /// Errors: a list that cannot be read, or is none.
    pub(super) fn read(path: &Path) -> Result<Self, Stop> {
        let name = path.display();
        let wrong = |what: &str| Stop::Usage(format!("--delete {name}: {what}"));
        // One that nobody has had a chance to look at.
        if path.as_os_str() == "-" {
            return Err(wrong("the list must be a file"));
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let (_, head) = lines.next().ok_or_else(|| wrong("empty"))?;
        let head: Head = serde_json::from_str(head)
            .map_err(|error| wrong(&format!("line 1: no list of orphans: {error}")))?;
        if head.r#type != "orphans" || head.schema != SCHEMA {
            return Err(wrong("line 1: a list of another schema"));
        }
        if head.doubts > 0 {
            return Err(wrong("references may have been missed when it was made"));
        }
        let lines = lines.map(|(number, line)| match serde_json::from_str::<Line>(line) {
            Ok(line) if line.r#type == "orphan" => Ok((number, line)),
            Ok(_) => Err(wrong(&format!("line {number}: no orphan"))),
            Err(error) => Err(wrong(&format!("line {number}: {error}"))),
        });
        Ok(Self { path: path.to_path_buf(), head, lines: lines.collect::<Result<_, _>>()? })
    }

    /// What it was made with.
    pub(super) const fn min_age(&self) -> Duration {
        Duration::from_millis(self.head.min_age_ms)
    }

    /// Errors: a list that is of another store.
    pub(super) fn check(&self, store: &ObjectBlobStore) -> Result<(), Stop> {
        if self.head.store == store.url() {
            return Ok(());
        }
        let (name, of) = (self.path.display(), &self.head.store);
        Err(Stop::Usage(format!("--delete {name}: it is a list of the store {of}")))
    }

    /// Whether a partition is missing that was there when the list was made.
    fn missing(&self, searched: &Searched) -> Option<String> {
        let topics = searched.search.topics();
        self.head.topics.iter().find_map(|(topic, partitions)| match topics.get(topic) {
            None => Some(topic.clone()),
            Some(now) => partitions
                .iter()
                .find(|partition| !now.has(**partition))
                .map(|partition| format!("{topic}-{partition}")),
        })
    }
}

pub(super) fn run(
    list: &List,
    store: &ObjectBlobStore,
    searched: &Searched,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let path = list.path.display();
    if let Some(missing) = list.missing(searched) {
        outcome.fail(format_args!(
            "{path}: {missing} was searched for this list and is not among the paths now: \
             nothing is deleted"
        ));
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let mut unwritten = None;
    let (mut deleted, mut bytes, mut kept) = (0u64, 0u64, 0u64);
    for (number, line) in &list.lines {
        let location = &line.location;
        let stays = judge(line, store, searched).and_then(|stays| match stays {
            None => store.delete(location).map(|()| None),
            why => Ok(why),
        });
        match stays {
            Ok(None) => {
                deleted += 1;
                bytes = bytes.saturating_add(line.size);
                // What was deleted is told, if not there then here.
                if unwritten.is_none() {
                    unwritten = writeln!(out, "deleted {location}").err();
                }
                if unwritten.is_some() {
                    write_error(format_args!("deleted {location}"));
                }
            }
            Ok(Some(why)) => {
                kept += 1;
                write_error(format_args!("{path}: line {number}: {location}: not deleted: {why}"));
            }
            Err(error) => {
                kept += 1;
                outcome.fail(format_args!("{path}: line {number}: {error}"));
            }
        }
    }
    let sums = format!("{deleted} blobs of {bytes} bytes deleted, {kept} not");
    if unwritten.is_none() {
        unwritten = writeln!(out, "{sums}").and_then(|()| out.flush()).err();
    }
    if let Some(error) = unwritten {
        outcome.fail(format_args!("cannot write the output: {error}: {sums}"));
    }
    Ok(())
}

/// Why a blob stays, if it does.
fn judge(
    line: &Line,
    store: &ObjectBlobStore,
    searched: &Searched,
) -> Result<Option<&'static str>, BlobError> {
    let blob = match store.head(&line.location) {
        Ok(blob) => blob,
        Err(error) => {
            return match error.kind() {
                BlobErrorKind::NotFound => Ok(Some("it is gone")),
                BlobErrorKind::NotAllowed => Ok(Some("it lies outside of the store")),
                _ => Err(error),
            };
        }
    };
    Ok(match searched.verdict(&blob) {
        Verdict::Orphan => {
            // Some stores have milliseconds in a list, and only seconds for a single blob.
            let second = |millis: i64| millis.div_euclid(1000);
            let now = (blob.size, second(millis(blob.last_modified)));
            (now != (line.size, second(line.last_modified))).then_some("it has changed")
        }
        Verdict::Referred => Some("a segment refers to it"),
        Verdict::Young => Some("it is too young"),
        _ => Some("its topic was not searched"),
    })
}
