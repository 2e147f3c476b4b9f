//! `std-host blob put`.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{MaxBytes, Outcome, StoreArgs, Stop, name};
use crate::large_message::{BlobStore, JsonFormatter, LargeMessageFormatter, Reference};
use crate::source;

/// Stores a file as a blob, and writes the reference to it to standard output
///
/// The reference is what the large-message serializer puts into a record, and a line feed.
#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Topic that the blob belongs to
    #[arg(long, value_name = "TOPIC")]
    topic: String,
    /// How the blob is called: uuid, a name of its own each time, or sha256, by its content
    #[arg(long, value_name = "GENERATOR", default_value = "uuid")]
    id: String,
    /// What to store; standard input if not given
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    limit: MaxBytes,
}

pub(super) fn run(args: &PutArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    let store = args.store.open(&args.id)?;
    let limit = args.limit.max_bytes;
    let mut data = Vec::new();
    let read = source::open_bytes(&args.file)
        .and_then(|input| input.take(limit.saturating_add(1)).read_to_end(&mut data));
    if let Err(error) = read {
        outcome.fail_file(&args.file, &error);
        return Ok(());
    }
    if data.len() as u64 > limit {
        outcome.fail(format_args!("{}: more than {limit} bytes", name(&args.file)));
        return Ok(());
    }
    let (size, sha256) = (data.len() as u64, Sha256::digest(&data).into());
    match store.put(&args.topic, data.into()) {
        Ok(location) => {
            let reference = Reference {
                full_blob_path: location,
                blob_store_class: Some(store.name().to_owned()),
                blob_id_generator_class: Some(args.id.clone()),
                large_message_formatter_class: Some(JsonFormatter::NAME.to_owned()),
                size: Some(size),
                sha256: Some(sha256),
            };
            let mut out = io::stdout().lock();
            out.write_all(&JsonFormatter.format(&reference))?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Err(error) => outcome.fail(format_args!("{error}")),
    }
    Ok(())
}
