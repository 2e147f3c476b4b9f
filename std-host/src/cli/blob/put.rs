//! `std-host blob put`.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::{MaxBytes, Outcome, Stop, StoreArgs, wrong};
use crate::large_message::{LargeMessageSerializer, SerializerConfig, is_topic};
use crate::serde::{Headers, Serializer};
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
    let limit = args.limit.max_bytes;
    let serializer = LargeMessageSerializer::open(SerializerConfig {
        threshold_bytes: 0,
        max_blob_bytes: limit,
        ..SerializerConfig::new(args.store.config(&args.id))
    })
    .map_err(wrong)?;
    if !is_topic(&args.topic) {
        return Err(Stop::Usage(format!("--topic {}: no legal name of a topic", args.topic)));
    }
    let mut data = Vec::new();
    let read = source::open_bytes(&args.file)
        .and_then(|input| input.take(limit.saturating_add(1)).read_to_end(&mut data));
    if let Err(error) = read {
        outcome.fail_file(&args.file, &error);
        return Ok(());
    }
    if data.len() as u64 > limit {
        outcome.fail(format_args!("{}: more than {limit} bytes", args.file.display()));
        return Ok(());
    }
    let reference = serializer.serialize(&args.topic, &mut Headers::new(), Some(&data.into()));
    match reference {
        Ok(reference) => {
            let mut line = reference.unwrap_or_default().to_vec();
            line.push(b'\n');
            let mut out = io::stdout().lock();
            // The blob is there, and this is all that knows where: told in any case.
            if let Err(error) = out.write_all(&line).and_then(|()| out.flush()) {
                outcome.fail(format_args!(
                    "cannot write the reference: {error}: {}",
                    String::from_utf8_lossy(line.trim_ascii_end())
                ));
            }
        }
        Err(error) => outcome.fail(format_args!("{error}")),
    }
    Ok(())
}
