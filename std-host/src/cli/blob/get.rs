//! `std-host blob get`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{MaxBytes, Outcome, Stop, StoreArgs, wrong};
use crate::large_message::{
    BlobError, BlobErrorKind, DeserializerConfig, JsonFormatter, LargeMessageDeserializer,
    LargeMessageFormatter, MAX_REFERENCE_BYTES, Reference, UuidGenerator, VALUE_HEADER, VERSION,
};
use crate::serde::{Deserializer, Headers, SerdeError};
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
    let deserializer = LargeMessageDeserializer::open(DeserializerConfig {
        max_blob_bytes: args.limit.max_bytes,
        ..DeserializerConfig::new(args.store.config(UuidGenerator::NAME))
    })
    .map_err(wrong)?;
    let reference = match &args.location {
        Some(location) => {
            let full_blob_path = location.clone();
            JsonFormatter.format(&Reference { full_blob_path, ..Reference::default() })
        }
        None => match read_reference(&args.reference) {
            Ok(reference) => reference,
            Err(error) => {
                outcome.fail_file(&args.reference, &error);
                return Ok(());
            }
        },
    };
    let mut headers = Headers::new();
    headers.add(VALUE_HEADER, Some(Bytes::from_static(VERSION)));
    let blob = match deserializer.deserialize("", &mut headers, Some(&reference)) {
        Ok(blob) => blob.unwrap_or_default(),
        Err(error) => return tell(args, &error, outcome),
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

/// Tells what is wrong: with a location that was given, with the reference and what it leads
/// to, or with the store.
fn tell(args: &GetArgs, error: &SerdeError, outcome: &mut Outcome) -> Result<(), Stop> {
    let from = args.reference.display().to_string();
    let Some(blob) = error.cause::<BlobError>() else {
        // A reference that cannot be read.
        outcome.damage(&from, &format_args!("byte 0: {error}"));
        return Ok(());
    };
    match blob.kind() {
        BlobErrorKind::NotAllowed if args.location.is_some() => {
            return Err(Stop::Usage(format!("--location: {blob}")));
        }
        BlobErrorKind::NotAllowed | BlobErrorKind::Mismatch => {
            outcome.damage(&from, &format_args!("byte 0: full-blob-path: {blob}"));
        }
        _ => outcome.fail(format_args!("{blob}")),
    }
    Ok(())
}

/// Reads a reference, or enough of what is none for that to be seen.
fn read_reference(file: &Path) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    let most = MAX_REFERENCE_BYTES as u64 + 1;
    source::open_bytes(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes.into())
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
