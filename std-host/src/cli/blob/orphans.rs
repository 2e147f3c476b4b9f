//! `std-host blob orphans`: blobs that no segment refers to, listed; and deleted, if a list
//! of a former run says so.
//!
//! A list is JSON lines: what was searched, then a line for each orphan.
//!
//! ```text
//! {"type":"orphans","schema":"std-host/blob-orphans/1","store":URL,"began":MS,
//!  "min_age_ms":MS,"topics":{TOPIC:[PARTITION…]…},"segments":N,"records":N,"references":N,
//!  "doubts":N}
//! {"type":"orphan","location":URL,"size":BYTES,"last_modified":MS}
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{StoreArgs, delete, parse_age};
use crate::cli::{LimitArgs, Outcome, Stop, analyze, is_side_file, refuse, write_error};
use crate::large_message::orphans::{Age, Doubt, Search, Verdict, millis};
use crate::large_message::{Blob, BlobError, ObjectBlobStore};
use crate::source;

/// Lists the blobs that no segment refers to; deletes those of a list that it made before
///
/// Give it every partition of a topic, as the brokers have it now: what refers to a blob in
/// a segment that is not read is not known. Blobs of other topics are left alone. If a
/// reference may have been missed (damage, unreadable files, missing partitions) nothing is
/// listed.
///
/// A blob is stored before its record is sent, so a young one may be about to be referred
/// to: --min-age has to be longer than any producer takes for that, with its retries and
/// its transaction.
#[derive(Debug, clap::Args)]
pub(super) struct OrphansArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Partition directories or log directories, or segment files with --topic
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Topic whose segments are all given, though not in partition directories; repeatable
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,
    /// Leave alone what was modified more recently before the search: ms, s, m, h or d
    #[arg(long, value_name = "AGE", default_value = "24h", value_parser = parse_age)]
    min_age: Duration,
    /// File for the list, which must not exist yet; standard output if not given
    #[arg(long, value_name = "LIST", conflicts_with = "delete")]
    output: Option<PathBuf>,
    /// List although references may have been missed; such a list is for reading only
    #[arg(long, conflicts_with = "delete")]
    despite_damage: bool,
    /// Delete the blobs on this list that are orphans still
    ///
    /// The list is a file that --output has written; lines may be taken out of it. Segments
    /// are read anew, and every blob is looked at again: one that is referred to by now, is
    /// too young, was changed or lies outside of the store stays, and that is told.
    #[arg(long, value_name = "LIST")]
    delete: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Name and version of the list.
pub(super) const SCHEMA: &str = "std-host/blob-orphans/1";

/// The first line of a list.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) r#type: String,
    pub(super) schema: String,
    pub(super) store: String,
    pub(super) began: i64,
    pub(super) min_age_ms: u64,
    pub(super) topics: BTreeMap<String, Vec<u32>>,
    pub(super) segments: u64,
    pub(super) records: u64,
    pub(super) references: u64,
    pub(super) doubts: u64,
}

/// Any other line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) r#type: String,
    pub(super) location: String,
    pub(super) size: u64,
    pub(super) last_modified: i64,
}

/// A search, and what it was about.
pub(super) struct Searched {
    pub(super) search: Search,
    pub(super) age: Age,
}

impl Searched {
    pub(super) fn verdict(&self, blob: &Blob) -> Verdict {
        self.search.verdict(blob, self.age)
    }
}

pub(super) fn run(args: &OrphansArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    refuse(&args.paths, is_side_file)?;
    // What is piped in cannot be found again by who reads the list.
    refuse(&args.paths, |path| path.as_os_str() == "-")?;
    let output = args.output.as_deref().filter(|output| output.as_os_str() != "-");
    if let Some(output) = output {
        let found = source::find(&args.paths);
        analyze::check_output(output, &args.paths, &found.segments).map_err(Stop::Usage)?;
    }
    let list = args.delete.as_deref().map(delete::List::read).transpose()?;
    let store = args.store.open()?;
    if let Some(output) = output
        && store.holds(output)
    {
        let output = output.display();
        return Err(Stop::Usage(format!("--output {output}: would be a blob of the store")));
    }
    if let Some(list) = &list {
        list.check(&store)?;
    }
    let least = list.as_ref().map_or(Duration::ZERO, delete::List::min_age);
    let searched = search(args, least, &store, outcome);
    let doubts = searched.search.doubts();
    if searched.search.segments() == 0 {
        if doubts == 0 {
            outcome.fail(format_args!("no *.log file below the given paths"));
        }
        return Ok(());
    }
    let unread = args.topics.iter().find(|topic| !searched.search.topics().contains_key(*topic));
    if let Some(topic) = unread {
        return Err(Stop::Usage(format!(
            "--topic {topic}: tells whose the segments are that are named one by one, and none is"
        )));
    }
    if searched.search.topics().is_empty() {
        outcome.fail(format_args!(
            "no partition directory below the given paths: --topic says whose segments they are"
        ));
        return Ok(());
    }
    if doubts > 0 {
        let what = if list.is_some() { "deleted" } else { "listed" };
        write_error(format_args!(
            "references may have been missed, in {doubts} places: nothing is {what}{}",
            if args.despite_damage { " but to be read" } else { "" }
        ));
        if !args.despite_damage {
            return Ok(());
        }
    }
    match &list {
        Some(list) => delete::run(list, &store, &searched, outcome),
        None => write_list(args, output, &store, &searched, outcome),
    }
}

/// With a minimum age of `least`, or more if the arguments say so.
fn search(
    args: &OrphansArgs,
    least: Duration,
    store: &ObjectBlobStore,
    outcome: &mut Outcome,
) -> Searched {
    // Before the first segment is read.
    let age = Age::from_now(args.min_age.max(least));
    let limits = args.limits.limits();
    let search =
        Search::run(store.url(), &args.paths, &args.topics, limits, &mut |path, why| match why {
            Doubt::Io(error) => outcome.fail_file(path, error),
            Doubt::Missing { .. } | Doubt::Restless => {
                outcome.fail(format_args!("{}: {why}", path.display()));
            }
            _ => outcome.damage(&path.display().to_string(), &why),
        });
    Searched { search, age }
}

fn write_list(
    args: &OrphansArgs,
    output: Option<&Path>,
    store: &ObjectBlobStore,
    searched: &Searched,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let Some(path) = output else {
        let mut out = BufWriter::new(io::stdout().lock());
        match list(args, store, searched, &mut out)? {
            Ok(sums) => write_error(format_args!("{}", sums.text())),
            Err(error) => outcome.fail(format_args!("{error}")),
        }
        return Ok(());
    };
    let file = match File::create_new(path) {
        Ok(file) => file,
        Err(error) => {
            outcome.fail_file(path, &error);
            return Ok(());
        }
    };
    match list(args, store, searched, &mut BufWriter::new(file)) {
        Ok(Ok(sums)) => {
            writeln!(io::stdout(), "{}: {}", path.display(), sums.text())?;
            return Ok(());
        }
        Ok(Err(error)) => outcome.fail(format_args!("{error}")),
        Err(error) => outcome.fail_file(path, &error),
    }
    if let Err(error) = fs::remove_file(path) {
        outcome.fail_file(path, &error);
    }
    Ok(())
}

/// What a listing came to.
#[derive(Debug, Default)]
struct Sums {
    orphans: u64,
    bytes: u64,
    referred: u64,
    young: u64,
    elsewhere: u64,
}

impl Sums {
    fn text(&self) -> String {
        let Self { orphans, bytes, referred, young, elsewhere } = self;
        format!(
            "{orphans} orphans of {bytes} bytes; {referred} blobs are referred to, {young} too \
             young, {elsewhere} not of these topics"
        )
    }
}

/// Lists the orphans of all topics that were searched. The outer error is the output's.
fn list(
    args: &OrphansArgs,
    store: &ObjectBlobStore,
    searched: &Searched,
    out: &mut impl Write,
) -> io::Result<Result<Sums, BlobError>> {
    let search = &searched.search;
    let topics = search.topics().iter();
    let head = Head {
        r#type: "orphans".to_owned(),
        schema: SCHEMA.to_owned(),
        store: store.url().to_owned(),
        began: searched.age.began,
        min_age_ms: u64::try_from(args.min_age.as_millis()).unwrap_or(u64::MAX),
        topics: topics
            .map(|(topic, found)| (topic.clone(), found.partitions().collect()))
            .collect(),
        segments: search.segments(),
        records: search.records(),
        references: search.references(),
        doubts: search.doubts(),
    };
    json_line(out, &head)?;
    let mut sums = Sums::default();
    for blob in store.list() {
        let blob = match blob {
            Ok(blob) => blob,
            Err(error) => return Ok(Err(error)),
        };
        match searched.verdict(&blob) {
            Verdict::Orphan => {
                sums.orphans += 1;
                sums.bytes = sums.bytes.saturating_add(blob.size);
                let line = Line {
                    r#type: "orphan".to_owned(),
                    location: blob.location,
                    size: blob.size,
                    last_modified: millis(blob.last_modified),
                };
                json_line(out, &line)?;
            }
            Verdict::Referred => sums.referred += 1,
            Verdict::Young => sums.young += 1,
            _ => sums.elsewhere += 1,
        }
    }
    out.flush()?;
    Ok(Ok(sums))
}

fn json_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    writeln!(out)
}
