//! The commands, one a file, and what they share: exit codes and error lines.
//!
//! Machine output goes to standard output; progress, warnings and errors go to
//! standard error. A closed pipe ends a command quietly.

mod analyze;
mod blob;
mod cursor;
pub(crate) mod dump;
mod recompress;
mod snappy;
mod verify;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::side::SideFile;
use crate::source;

/// Reads, measures and checks Apache Kafka log segments. Inputs are never changed.
#[derive(Debug, Parser)]
#[command(name = "std-host", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes:
  0  done, and nothing is wrong with the data
  1  could not do it: a file is missing or unreadable, or there is nothing to read
  2  wrong usage
  3  done, and some of the data is damaged";

#[derive(Debug, Subcommand)]
enum Command {
    Analyze(analyze::AnalyzeArgs),
    Blob(blob::BlobArgs),
    Cursor(cursor::CursorArgs),
    Dump(dump::DumpArgs),
    Recompress(recompress::RecompressArgs),
    Snappy(snappy::SnappyArgs),
    Verify(verify::VerifyArgs),
}

/// Runs the program on a command line, whose first item is its own name.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors; clap knows which stream is due.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut outcome = Outcome::default();
    let result = match args.command {
        Command::Analyze(args) => analyze::run(&args, &mut outcome),
        Command::Blob(args) => blob::run(&args, &mut outcome),
        Command::Cursor(args) => cursor::run(&args, &mut outcome),
        Command::Dump(args) => dump::run(&args, &mut outcome),
        Command::Recompress(args) => recompress::run(&args, &mut outcome),
        Command::Snappy(args) => snappy::run(&args, &mut outcome),
        Command::Verify(args) => verify::run(&args, &mut outcome),
    };
    match result {
        Ok(()) => {}
        Err(Stop::Usage(text)) => {
            write_error(format_args!("{text}"));
            return ExitCode::from(2);
        }
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(Stop::Output(error)) => {
            outcome.fail(format_args!("cannot write the output: {error}"));
        }
    }
    outcome.end_of_lines();
    outcome.exit_code()
}

/// Why a command ends before its time.
#[derive(Debug)]
enum Stop {
    /// The options do not fit together.
    Usage(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Error lines of a file that are written. A file that is full of damage, or none of
/// Kafka's, is told as such by fewer; JSON has them all.
const LINES: u64 = 1000;

/// What has gone wrong so far, told on standard error as it happens.
#[derive(Debug, Default)]
struct Outcome {
    failed: bool,
    damaged: bool,
    /// The file of the last lines, and how many faults it has so far.
    path: String,
    lines: u64,
}

/// Writes a line at once, so that it is not torn by those of others.
fn write_error(what: fmt::Arguments<'_>) {
    let mut line = String::from("std-host: ");
    for c in what.to_string().chars() {
        // Names and data must not steer the terminal, nor look like a line of their own.
        if c.is_control() && c != '\t' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    // Nobody is left to be told if standard error is gone.
    let _ = io::stderr().write_all(line.as_bytes());
}

impl Outcome {
    /// Something could not be done.
    fn fail(&mut self, what: fmt::Arguments<'_>) {
        self.failed = true;
        write_error(what);
    }

    /// A file could not be opened or read.
    fn fail_file(&mut self, path: &Path, error: &io::Error) {
        self.fail(format_args!("{}: {error}", path.display()));
    }

    /// A file holds something wrong.
    fn damage(&mut self, path: &str, error: &dyn fmt::Display) {
        self.damaged = true;
        if self.path != path {
            self.end_of_lines();
            path.clone_into(&mut self.path);
        }
        self.lines += 1;
        if self.lines <= LINES {
            write_error(format_args!("{path}: {error}"));
        }
    }

    /// Tells how many lines of a file were left out.
    fn end_of_lines(&mut self) {
        let more = std::mem::take(&mut self.lines).saturating_sub(LINES);
        if more > 0 {
            write_error(format_args!("{}: {more} more of its faults are not listed", self.path));
        }
    }

    /// 1 outranks 3.
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match (self.failed, self.damaged) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        })
    }
}

/// Refuses kinds of files that a command does not read.
fn refuse(paths: &[PathBuf], is_refused: fn(&Path) -> bool) -> Result<(), Stop> {
    match paths.iter().find(|path| is_refused(path)) {
        Some(path) => Err(Stop::Usage(format!(
            "{}: files of this kind are not supported by this command",
            path.display()
        ))),
        None => Ok(()),
    }
}

fn is_checkpoint(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".checkpoint") || name.ends_with("-checkpoint")
}

/// A file that lies beside segments but is none.
fn is_side_file(path: &Path) -> bool {
    is_checkpoint(path) || SideFile::of(path).is_some()
}

/// The segments that paths stand for; what cannot be looked at, and that there are none,
/// is told.
fn find_segments(paths: &[PathBuf], outcome: &mut Outcome) -> Vec<PathBuf> {
    let found = source::find(paths);
    for (path, error) in &found.failures {
        outcome.fail_file(path, error);
    }
    if found.segments.is_empty() && found.failures.is_empty() {
        outcome.fail(format_args!("no *.log file below the given paths"));
    }
    found.segments
}

/// Largest batch that is taken into memory, and most bytes one may decompress to.
#[derive(Debug, clap::Args)]
struct LimitArgs {
    /// Largest batch to look into, in bytes as stored
    #[arg(long, value_name = "BYTES", default_value_t = 128 << 20, value_parser = clap::value_parser!(u64).range(1..))]
    max_batch_bytes: u64,
    /// Most bytes a batch may decompress to
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(1..))]
    max_decompressed_bytes: u64,
}

impl LimitArgs {
    fn limits(&self) -> logseg_core::Limits {
        logseg_core::Limits::default()
            .with_batch(self.max_batch_bytes)
            .with_decompressed(self.max_decompressed_bytes)
    }
}
