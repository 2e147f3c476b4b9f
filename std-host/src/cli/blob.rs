//! `std-host blob`: blobs of large messages, and the references to them in segments.

mod delete;
mod get;
mod orphans;
mod put;
mod scan;

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;

use super::{Outcome, Stop};
use crate::large_message::config::DEFAULT_MAX_BLOB_BYTES;
use crate::large_message::{BlobStoreConfig, ConfigError, ObjectBlobStore, UuidGenerator};

/// Stores and reads blobs of large messages, and finds the references to them
///
/// A value of the threshold or more lies in a blob store, and its record has a reference
/// to it, as KIP-1159 proposes.
#[derive(Debug, clap::Args)]
pub(super) struct BlobArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Put(put::PutArgs),
    Get(get::GetArgs),
    Scan(scan::ScanArgs),
    Orphans(orphans::OrphansArgs),
}

/// Which store.
#[derive(Debug, clap::Args)]
struct StoreArgs {
    /// Where blobs are, prefix included: file:///dir, s3://bucket/prefix, gs://…, az://…
    #[arg(long, value_name = "URL")]
    store: String,
    #[command(flatten)]
    options: StoreOptions,
}

/// What a store needs beside its URL.
#[derive(Debug, clap::Args)]
struct StoreOptions {
    /// An option of the store, e.g. region=eu-central-1 or aws_endpoint=http://…; repeatable
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = parse_option)]
    options: Vec<(String, String)>,
    /// Longest time of one attempt, with the whole blob transferred: ms, s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_age)]
    timeout: Duration,
}

fn parse_option(option: &str) -> Result<(String, String), String> {
    match option.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE is wanted".to_owned()),
    }
}

impl StoreOptions {
    fn config(&self, url: &str, id: &str) -> BlobStoreConfig {
        let config = BlobStoreConfig::at(url);
        BlobStoreConfig {
            options: self.options.iter().cloned().collect(),
            timeout: self.timeout,
            blob_id_generator: id.to_owned(),
            // No client waits: all attempts have their time.
            deadline: Some(self.timeout.saturating_mul(config.retry_count + 2)),
            ..config
        }
    }

    /// Errors: a URL or options that no store can be made of.
    fn open(&self, url: &str) -> Result<ObjectBlobStore, Stop> {
        ObjectBlobStore::open(&self.config(url, UuidGenerator::NAME)).map_err(wrong)
    }
}

fn wrong(error: ConfigError) -> Stop {
    Stop::Usage(error.to_string())
}

impl StoreArgs {
    fn config(&self, id: &str) -> BlobStoreConfig {
        self.options.config(&self.store, id)
    }

    fn open(&self) -> Result<ObjectBlobStore, Stop> {
        self.options.open(&self.store)
    }
}

/// Most bytes of a blob.
#[derive(Debug, clap::Args)]
struct MaxBytes {
    /// Largest blob, which is held in memory
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_BLOB_BYTES)]
    max_bytes: u64,
}

pub(super) fn run(args: &BlobArgs, outcome: &mut Outcome) -> Result<(), Stop> {
    match &args.action {
        Action::Put(args) => put::run(args, outcome),
        Action::Get(args) => get::run(args, outcome),
        Action::Scan(args) => scan::run(args, outcome),
        Action::Orphans(args) => orphans::run(args, outcome),
    }
}

/// `24h`, `7d`, `90m`, `30s`, `500ms`: a whole number and its unit.
fn parse_age(age: &str) -> Result<Duration, String> {
    let wanted = || "a number with its unit is wanted: ms, s, m, h or d".to_owned();
    let digits = age.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = age.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wanted())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wanted()),
    };
    let age = number.checked_mul(millis).filter(|millis| i64::try_from(*millis).is_ok());
    age.map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
}

/// How a file is called in messages.
fn name(file: &Path) -> String {
    file.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("90m", 5_400_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse_age(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "24", "h", "-1h", "1.5h", "24 h", "1w", "18446744073709551615d"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }
}
