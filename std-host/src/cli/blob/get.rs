//! `std-host blob get`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{MaxBytes, Outcome, StoreArgs, Stop, name};
use crate::large_message::{
    BlobErrorKind, BlobStore, JsonFormatter, LargeMessageFormatter, MAX_REFERENCE_BYTES, Reference,
    UuidGenerator,
};
use crate::source;

/// Reads the blob that a reference is about
///
/// Nothing is written before the whole blob is there and has the size and the SHA-256 that
/// the reference says. A blob that is not there is exit code 1; one that is another than
/// the reference says, a reference that cannot be read, and one that leads out of the store
/// are exit code 3.
#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Reference, as it stands in a record; standard input if not given
    #[arg(value_name = "REFERENCE", default_value = "-", conflicts_with = "location")]
    reference: PathBuf,
    /// Location of the blob, instead of a reference
    #[arg(long, value_name = "URL")]
    location: Option<String>,
    /// File to write, which must not exist yet; standard output if not given
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limit: MaxBytes,
}

pub(super) fn run(args: &GetArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    let store = args.store.open(UuidGenerator::NAME)?;
    // What the blob is asked for by: a bad location is then its fault.
    let (from, reference) = match &args.location {
        Some(location) => {
            let full_blob_path = location.clone();
            ("--location".to_owned(), Reference { full_blob_path, ..Reference::default() })
        }
        None => match read_reference(&args.reference, outcome) {
            Some(reference) => (name(&args.reference), reference),
            None => return Ok(()),
        },
    };
    let blob = store
        .get(&reference.full_blob_path, args.limit.max_bytes)
        .and_then(|blob| reference.check(&blob).map(|()| blob));
    let blob = match blob {
        Ok(blob) => blob,
        Err(error) => {
            match error.kind() {
                BlobErrorKind::NotAllowed if args.location.is_some() => {
                    return Err(Stop::Usage(format!("--location: {error}")));
                }
                BlobErrorKind::NotAllowed | BlobErrorKind::Mismatch => {
                    outcome.damage(&from, &error);
                }
                _ => outcome.fail(format_args!("{error}")),
            }
            return Ok(());
        }
    };
    let output = args.output.as_deref().filter(|output| output.as_os_str() != "-");
    match output {
        None => {
            let mut out = io::stdout().lock();
            out.write_all(&blob)?;
            out.flush()?;
        }
        Some(output) => {
            if let Err(error) = write_new(output, &blob) {
                outcome.fail_file(output, &error);
            }
        }
    }
    Ok(())
}

/// Reads and parses a reference; `None` if it has been told why not.
fn read_reference(file: &Path, outcome: &mut Outcome) -> Option<Reference> {
    let mut bytes = Vec::new();
    let most = MAX_REFERENCE_BYTES as u64 + 1;
    let read = source::open_bytes(file)
        .and_then(|input| input.take(most).read_to_end(&mut bytes));
    if let Err(error) = read {
        outcome.fail_file(file, &error);
        return None;
    }
    match JsonFormatter.parse(&bytes) {
        Ok(reference) => Some(reference),
        Err(error) => {
            outcome.damage(&name(file), &format_args!("byte 0: {error}"));
            None
        }
    }
}

/// Writes a file that is not there yet, wholly or not at all.
fn write_new(output: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(output)?;
    let written = file.write_all(bytes);
    if written.is_err() {
        drop(file);
        fs::remove_file(output)?;
    }
    written
}
