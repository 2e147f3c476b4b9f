//! `std-host blob scan`: the references in segments, and whether their blobs are there.
//!
//! Blobs are asked for a few hundred at a time, each once, by several threads: a store
//! takes long to answer, and does not mind being asked many things at once. Memory is that
//! of the largest batch and two digests of 16 bytes for each blob, of its location alone and
//! with its size.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::ValueEnum;
use logseg_core::TailKind;
use serde::Serialize;

use super::{StoreOptions, name};
use crate::cli::{LimitArgs, Outcome, Stop, find_segments, is_side_file, refuse, write_error};
use crate::dump::digest::short_digest;
use crate::dump::json::tail_name;
use crate::large_message::find::{Finder, Found, Scanner, SegmentEnd, Sighting, Target};
use crate::large_message::{BlobError, BlobErrorKind, ObjectBlobStore};

/// Blobs that are asked for before their answers are told.
const ASKED: usize = 512;
/// Threads that ask.
const ASKING: usize = 16;

/// Finds the references in segments, and with --store whether their blobs are there
///
/// A reference is a value, or a key, whose record has the header that marks it. Blobs are
/// asked for by location, and nothing of them is read. A reference that cannot be read, and a
/// blob that is missing or of another size, are damage (exit code 3).
#[derive(Debug, clap::Args)]
pub(super) struct ScanArgs {
    /// Segment files, partition directories or log directories; - is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Where blobs are, prefix included; without it no store is asked
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    options: StoreOptions,
    /// Also values without a header that look like a reference: JSON with full-blob-path
    #[arg(long)]
    sniff: bool,
    /// Also the references of bakdata's serde, by header or by flag byte
    #[arg(long)]
    bakdata: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A few lines per file
    Text,
    /// One JSON document
    Json,
}

/// Name and version of the JSON document.
const SCHEMA: &str = "std-host/blob-scan/1";

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Batches {
    total: u64,
    corrupt: u64,
}

/// What was counted in a file, or in all of them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Counts {
    batches: Batches,
    records: u64,
    null_values: u64,
    inline_values: u64,
    references: u64,
    /// Sum of the sizes in them.
    referred_bytes: u64,
    references_without_size: u64,
    unreadable_references: u64,
    /// Blobs, each counted once, where it is referred to first.
    blobs: u64,
    blob_bytes: u64,
    /// What the store says of those blobs, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Answers>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Answers {
    found: u64,
    missing: u64,
    size_mismatches: u64,
    /// Not below the store's URL, so it was not asked.
    outside: u64,
    /// It could not tell.
    unchecked: u64,
}

impl Counts {
    fn merge(&mut self, others: &Self) {
        self.batches.total += others.batches.total;
        self.batches.corrupt += others.batches.corrupt;
        self.records += others.records;
        self.null_values += others.null_values;
        self.inline_values += others.inline_values;
        self.references += others.references;
        self.referred_bytes = self.referred_bytes.saturating_add(others.referred_bytes);
        self.references_without_size += others.references_without_size;
        self.unreadable_references += others.unreadable_references;
        self.blobs += others.blobs;
        self.blob_bytes = self.blob_bytes.saturating_add(others.blob_bytes);
        if let (Some(store), Some(others)) = (&mut self.store, others.store) {
            store.found += others.found;
            store.missing += others.missing;
            store.size_mismatches += others.size_mismatches;
            store.outside += others.outside;
            store.unchecked += others.unchecked;
        }
    }
}

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    files: Vec<File>,
    total: Counts,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    /// Null if the file could not be read to its end.
    file_size: Option<u64>,
    valid_bytes: Option<u64>,
    trailing_kind: Option<&'static str>,
    #[serde(flatten)]
    counts: Counts,
    errors: Vec<Fault>,
}

#[derive(Debug, Serialize)]
struct Fault {
    position: u64,
    kind: &'static str,
    detail: String,
}

/// A blob that is to be asked for.
struct Question {
    position: u64,
    offset: i64,
    target: Target,
}

/// The files so far.
struct Scan<'a> {
    finder: Finder,
    store: Option<&'a ObjectBlobStore>,
    /// Blobs that were referred to, in any file.
    seen: HashSet<[u8; 16]>,
    questions: Vec<Question>,
    /// The store has failed, and is left alone.
    store_failed: bool,
    /// That a blob is not the store's to tell of was told.
    outside_told: bool,
    file: File,
    outcome: &'a mut Outcome,
}

pub(super) fn run(args: &ScanArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    refuse(&args.paths, is_side_file)?;
    let store = args.store.as_deref().map(|url| args.options.open(url)).transpose()?;
    if store.is_none() && !args.options.options.is_empty() {
        return Err(Stop::Usage("--option: there is no --store that it is for".to_owned()));
    }
    // Without the store itself no blob of it would be told from one that is missing. Who may
    // read may not be allowed to list, and then it is not known.
    let store_failed = match store.as_ref().and_then(|store| store.list().next()) {
        Some(Err(error))
            if !matches!(error.kind(), BlobErrorKind::Denied | BlobErrorKind::NotAllowed) =>
        {
            outcome.fail(format_args!("{error}"));
            true
        }
        _ => false,
    };
    let segments = find_segments(&args.paths, outcome);
    let mut scanner = Scanner::new(args.limits.limits());
    let mut out = BufWriter::new(io::stdout().lock());
    let none = Counts { store: store.as_ref().map(|_| Answers::default()), ..Counts::default() };
    let mut document = Document { schema: SCHEMA, files: Vec::new(), total: none };
    let mut scan = Scan {
        finder: Finder { sniff: args.sniff, bakdata: args.bakdata, doubt: false },
        store: store.as_ref(),
        seen: HashSet::new(),
        questions: Vec::new(),
        store_failed,
        outside_told: false,
        file: File::new(Path::new(""), none),
        outcome,
    };
    for path in &segments {
        scan.file = File::new(path, none);
        match scanner.scan(path, &mut |sighting| scan.sighting(&sighting)) {
            Ok(end) => scan.file.end(&end),
            Err(error) => scan.outcome.fail_file(path, &error),
        }
        scan.ask();
        let file = std::mem::replace(&mut scan.file, File::new(Path::new(""), none));
        document.total.merge(&file.counts);
        match args.format {
            Format::Text => {
                text(&file.path, &file.counts, &mut out)?;
                out.flush()?;
            }
            Format::Json => document.files.push(file),
        }
    }
    match args.format {
        Format::Text if segments.len() > 1 => text("Total", &document.total, &mut out)?,
        Format::Text => {}
        Format::Json => {
            serde_json::to_writer(&mut out, &document).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(out.flush()?)
}

impl File {
    fn new(path: &Path, counts: Counts) -> Self {
        Self {
            path: name(path),
            file_size: None,
            valid_bytes: None,
            trailing_kind: None,
            counts,
            errors: Vec::new(),
        }
    }

    fn end(&mut self, end: &SegmentEnd) {
        self.file_size = Some(end.file_size);
        self.valid_bytes = Some(end.tail.position);
        self.trailing_kind = match end.tail.kind {
            TailKind::Clean => None,
            kind => tail_name(kind),
        };
    }
}

impl Scan<'_> {
    fn sighting(&mut self, sighting: &Sighting<'_>) {
        let counts = &mut self.file.counts;
        match sighting {
            Sighting::Batch => counts.batches.total += 1,
            Sighting::Damage(error) => {
                counts.batches.corrupt += 1;
                self.outcome.damage(&self.file.path, error);
                self.file.errors.push(Fault {
                    position: error.position(),
                    kind: error.name(),
                    detail: error.detail().to_string(),
                });
            }
            Sighting::Record(record, position) => {
                counts.records += 1;
                let offset = record.offset.resolve(0);
                match self.finder.value(record) {
                    Found::Null => counts.null_values += 1,
                    Found::Inline => counts.inline_values += 1,
                    found => self.found(*position, offset, found),
                }
                self.found(*position, offset, self.finder.key(record));
            }
        }
    }

    fn found(&mut self, position: u64, offset: i64, found: Found) {
        match found {
            Found::Null | Found::Inline => {}
            Found::Unreadable(detail) => {
                self.file.counts.unreadable_references += 1;
                self.fault(position, offset, "blob_reference", &detail);
            }
            Found::Reference(target) => self.reference(position, offset, target),
        }
    }

    fn reference(&mut self, position: u64, offset: i64, target: Target) {
        let counts = &mut self.file.counts;
        counts.references += 1;
        let size = target.size.unwrap_or(0);
        counts.referred_bytes = counts.referred_bytes.saturating_add(size);
        counts.references_without_size += u64::from(target.size.is_none());
        let is_new = self.seen.insert(short_digest(target.location.as_bytes()));
        if is_new {
            counts.blobs += 1;
            counts.blob_bytes = counts.blob_bytes.saturating_add(size);
        }
        if self.store.is_none() {
            return;
        }
        // The store is asked once for each size that somebody expects of a blob. No location
        // has a blank in it.
        let is_asked = match target.size {
            None => is_new,
            Some(size) => {
                self.seen.insert(short_digest(format!("{} {size}", target.location).as_bytes()))
            }
        };
        if is_asked {
            self.questions.push(Question { position, offset, target });
            if self.questions.len() == ASKED {
                self.ask();
            }
        }
    }

    fn fault(&mut self, position: u64, offset: i64, kind: &'static str, detail: &str) {
        let detail = format!("reference of offset {offset}: {detail}");
        self.outcome.damage(&self.file.path, &format_args!("byte {position}: {detail}"));
        self.file.errors.push(Fault { position, kind, detail });
    }

    /// Asks the store for the blobs that are due.
    fn ask(&mut self) {
        let Some(store) = self.store else { return };
        let questions = std::mem::take(&mut self.questions);
        let answers = if self.store_failed { Vec::new() } else { sizes(store, &questions) };
        let mut answers = answers.into_iter();
        for Question { position, offset, target } in questions {
            let answer = answers.next().flatten();
            let counts = self.file.counts.store.get_or_insert_default();
            match answer {
                Some(Ok(size)) => match target.size {
                    Some(referred) if referred != size => {
                        counts.size_mismatches += 1;
                        let detail = format!(
                            "{}: the blob has {size} bytes, the reference says {referred}",
                            target.location
                        );
                        self.fault(position, offset, "blob_size", &detail);
                    }
                    _ => counts.found += 1,
                },
                Some(Err(error)) => match error.kind() {
                    BlobErrorKind::NotFound => {
                        counts.missing += 1;
                        let detail = format!("{}: the blob is missing", target.location);
                        self.fault(position, offset, "blob_missing", &detail);
                    }
                    BlobErrorKind::NotAllowed => {
                        counts.outside += 1;
                        if !std::mem::replace(&mut self.outside_told, true) {
                            write_error(format_args!(
                                "{}: byte {position}: reference of offset {offset}: {error}; \
                                 no more of these are told",
                                self.file.path
                            ));
                        }
                    }
                    _ => {
                        counts.unchecked += 1;
                        // What it cannot do for one blob it cannot do for the others, unless
                        // it is the blob that it cannot do with.
                        let stops = error.kind() != BlobErrorKind::Other;
                        if !self.store_failed {
                            self.outcome.fail(format_args!("{error}"));
                        }
                        self.store_failed |= stops;
                    }
                },
                None => counts.unchecked += 1,
            }
        }
    }
}

/// The sizes of some blobs, in their order; none where a thread has died.
fn sizes(store: &ObjectBlobStore, questions: &[Question]) -> Vec<Option<Result<u64, BlobError>>> {
    let next = AtomicUsize::new(0);
    let ask = || {
        let mut answers = Vec::new();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(question) = questions.get(nth) else { return answers };
            answers.push((nth, store.head(&question.target.location).map(|blob| blob.size)));
        }
    };
    let mut answers: Vec<_> = questions.iter().map(|_| None).collect();
    thread::scope(|scope| {
        // With as many threads as the system gives.
        let threads: Vec<_> = (1..ASKING.min(questions.len()))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, ask).ok())
            .collect();
        let own = ask();
        let others = threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default());
        for (nth, answer) in own.into_iter().chain(others) {
            answers[nth] = Some(answer);
        }
    });
    answers
}

fn text(name: &str, counts: &Counts, w: &mut impl Write) -> io::Result<()> {
    let Counts { records, references, referred_bytes, blobs, blob_bytes, .. } = counts;
    writeln!(
        w,
        "{name}: {records} records, {references} references to {referred_bytes} bytes, \
         {blobs} blobs of {blob_bytes} bytes"
    )?;
    let Counts { inline_values, null_values, references_without_size, .. } = counts;
    write!(w, "  {inline_values} inline values, {null_values} null")?;
    if *references_without_size > 0 {
        write!(w, ", {references_without_size} references without a size")?;
    }
    if counts.unreadable_references > 0 {
        write!(w, ", {} references that cannot be read", counts.unreadable_references)?;
    }
    if counts.batches.corrupt > 0 {
        write!(w, ", {} corrupt batches", counts.batches.corrupt)?;
    }
    writeln!(w)?;
    if let Some(Answers { found, missing, size_mismatches, outside, unchecked }) = counts.store {
        write!(w, "  in the store: {found} found, {missing} missing")?;
        for (count, what) in [
            (size_mismatches, "of another size"),
            (outside, "outside of it"),
            (unchecked, "not checked"),
        ] {
            if count > 0 {
                write!(w, ", {count} {what}")?;
            }
        }
        writeln!(w)?;
    }
    Ok(())
}
