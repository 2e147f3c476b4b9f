//! Every key with its default, and what must hold between them.

use std::time::Duration;

use std_host::large_message::config::*;
use std_host::large_message::{
    BlobStoreConfig, DeserializerConfig, ObjectBlobStore, SerializerConfig,
};

const CLASS: (&str, &str) = ("large.message.blob.store.class", "object-store");

fn writing(map: &[(&str, &str)]) -> Result<SerializerConfig, ConfigError> {
    SerializerConfig::from_map([CLASS].iter().chain(map).copied())
}

fn reading(map: &[(&str, &str)]) -> Result<DeserializerConfig, ConfigError> {
    DeserializerConfig::from_map([CLASS].iter().chain(map).copied())
}

/// What both make of a key.
#[track_caller]
fn both<T: PartialEq + std::fmt::Debug>(
    key: &str,
    default: T,
    other: (&str, T),
    bad: &[&str],
    field: impl Fn(&BlobStoreConfig) -> T,
) {
    assert_eq!(field(&writing(&[]).unwrap().store), default);
    assert_eq!(field(&reading(&[]).unwrap().store), default);
    assert_eq!(field(&writing(&[(key, other.0)]).unwrap().store), other.1);
    assert_eq!(field(&reading(&[(key, other.0)]).unwrap().store), other.1);
    for bad in bad {
        let error = writing(&[(key, bad)]).unwrap_err();
        assert_eq!(error.key(), key, "{bad:?}: {error}");
        assert_eq!(reading(&[(key, bad)]).unwrap_err(), error);
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn large_message_blob_store_class() {
    let key = "large.message.blob.store.class";
    both(key, "object-store".into(), (" other ", "other".to_owned()), &[""], |store| {
        store.class.clone()
    });
    let none: [(&str, &str); 0] = [];
    for error in [
        SerializerConfig::from_map(none).unwrap_err(),
        DeserializerConfig::from_map(none).unwrap_err(),
    ] {
        assert_eq!(error.key(), key);
        assert!(error.to_string().contains("required"), "{error}");
    }
    // A name that is registered nowhere is of use only with a store of one's own.
    let error = std_host::large_message::open(&BlobStoreConfig::new("com.example.Store"));
    assert_eq!(error.err().unwrap().key(), key);
}

#[test]
fn large_message_blob_store_timeout_ms() {
    let key = "large.message.blob.store.timeout.ms";
    both(key, ms(10_000), ("2500", ms(2500)), &["", "0", "-1", "1.5", "10s"], |store| {
        store.timeout
    });
}

#[test]
fn large_message_blob_store_retry_count() {
    let key = "large.message.blob.store.retry.count";
    both(key, 5, ("0", 0), &["-1", "many", "4294967296"], |store| store.retry_count);
}

#[test]
fn large_message_blob_store_retry_delay_backoff_ms() {
    let key = "large.message.blob.store.retry.delay.backoff.ms";
    both(key, ms(100), ("0", ms(0)), &["-1", "x", "10001"], |store| store.retry_delay_backoff);
}

#[test]
fn large_message_blob_store_retry_max_backoff_ms() {
    let key = "large.message.blob.store.retry.max.backoff.ms";
    both(key, ms(10_000), ("100", ms(100)), &["-1", "x"], |store| store.retry_max_backoff);
    // Not below the first delay, whichever of the two was given.
    let error = writing(&[(key, "99")]).unwrap_err();
    assert_eq!(error.key(), "large.message.blob.store.retry.delay.backoff.ms");
}

#[test]
fn large_message_blob_store_blob_id_generator() {
    let key = "large.message.blob.store.blob.id.generator";
    both(key, "uuid".into(), ("sha256", "sha256".to_owned()), &["", "md5"], |store| {
        store.blob_id_generator.clone()
    });
    let java = "org.apache.kafka.common.serialization.largemessage.blobstore.\
                BlobIdGenerator.DefaultBlobIDGenerator";
    assert!(writing(&[(key, java)]).is_ok());
}

#[test]
fn large_message_threshold_bytes() {
    let key = "large.message.threshold.bytes";
    assert_eq!(writing(&[]).unwrap().threshold_bytes, 1_048_576);
    assert_eq!(writing(&[(key, "1000000")]).unwrap().threshold_bytes, 1_000_000);
    assert_eq!(writing(&[(key, "-1")]).unwrap_err().key(), key);
    // The consumer may have it in its map.
    assert!(reading(&[(key, "1000000")]).is_ok());
}

#[test]
fn large_message_skip_not_found_error() {
    let key = "large.message.skip.not.found.error";
    assert!(!reading(&[]).unwrap().skip_not_found_error);
    for (text, want) in [("true", true), ("TRUE", true), ("false", false), ("False", false)] {
        assert_eq!(reading(&[(key, text)]).unwrap().skip_not_found_error, want);
    }
    assert_eq!(reading(&[(key, "yes")]).unwrap_err().key(), key);
    assert!(writing(&[(key, "true")]).is_ok());
}

#[test]
fn large_message_blob_store_url() {
    let key = "large.message.blob.store.url";
    both(key, None, ("memory:///x", Some("memory:///x".into())), &[], |store| store.url.clone());
    let error = ObjectBlobStore::open(&writing(&[]).unwrap().store).unwrap_err();
    assert_eq!(error.key(), key);
    for (url, detail) in [
        ("nowhere", "not a URL"),
        ("ftp://host/x", "no store of this kind"),
        ("http://host/x", "no store of this kind"),
        ("s3://key:secret@bucket/x", "written into every reference"),
        ("file:///", "not the root"),
        #[cfg(not(feature = "s3"))]
        ("s3://bucket", "the feature s3"),
        #[cfg(not(feature = "gcs"))]
        ("gs://bucket", "the feature gcs"),
        #[cfg(not(feature = "azure"))]
        ("az://container", "the feature azure"),
    ] {
        let error = ObjectBlobStore::open(&BlobStoreConfig::at(url)).unwrap_err();
        assert_eq!(error.key(), key, "{url}");
        assert!(error.to_string().contains(detail), "{url}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn large_message_blob_store_option() {
    let map = [("large.message.blob.store.option.endpoint", "http://localhost:9000")];
    let store = writing(&map).unwrap().store;
    assert_eq!(store.options["endpoint"], "http://localhost:9000");
    assert!(writing(&[]).unwrap().store.options.is_empty());
    assert!(writing(&[("large.message.blob.store.option.", "x")]).is_err());
    let secret = writing(&[("large.message.blob.store.option.aws_secret_access_key", "hush")]);
    assert!(!format!("{secret:?}").contains("hush"));
    // Stores without options say so.
    let mut config = BlobStoreConfig::at("memory:///");
    config.options = store.options;
    let error = ObjectBlobStore::open(&config).unwrap_err();
    assert_eq!(error.key(), "large.message.blob.store.option.endpoint");
}

#[test]
fn large_message_formatter_class() {
    let key = "large.message.formatter.class";
    assert_eq!(writing(&[]).unwrap().formatter, "json");
    assert_eq!(reading(&[]).unwrap().formatter, "json");
    for class in ["", "com.example.Formatter"] {
        assert_eq!(writing(&[(key, class)]).unwrap_err().key(), key);
        assert_eq!(reading(&[(key, class)]).unwrap_err().key(), key);
    }
}

#[test]
fn large_message_max_blob_bytes() {
    let key = "large.message.max.blob.bytes";
    assert_eq!(writing(&[]).unwrap().max_blob_bytes, 1 << 30);
    assert_eq!(reading(&[]).unwrap().max_blob_bytes, 1 << 30);
    assert_eq!(reading(&[(key, "5")]).unwrap().max_blob_bytes, 5);
    assert_eq!(reading(&[(key, "x")]).unwrap_err().key(), key);
}

#[test]
fn large_message_sniff_references() {
    let key = "large.message.sniff.references";
    assert!(!reading(&[]).unwrap().sniff_references);
    assert!(reading(&[(key, "true")]).unwrap().sniff_references);
    assert_eq!(reading(&[(key, "1")]).unwrap_err().key(), key);
}

#[test]
fn keys_that_are_not_there() {
    for key in [
        "large.message.",
        "large.message.treshold.bytes",
        "large.message.threshold",
        "large.message.max.byte.size",
        "large.message.blob.store.optionx",
    ] {
        assert_eq!(writing(&[(key, "1")]).unwrap_err().key(), key);
        assert_eq!(reading(&[(key, "1")]).unwrap_err().key(), key);
    }
    // Those of the client are its own business.
    assert!(writing(&[("bootstrap.servers", "localhost:9092"), ("acks", "all")]).is_ok());
}

/// One attempt may take as long as a call, and not longer.
#[test]
fn timeout_against_the_limit_of_a_call() {
    let key = "large.message.blob.store.timeout.ms";
    assert!(writing(&[(key, "60000")]).is_ok());
    let error = writing(&[(key, "60001")]).unwrap_err();
    assert_eq!(error.key(), key);
    assert!(error.to_string().contains("max.block.ms: 60001 is more than 60000"), "{error}");
    assert!(writing(&[(key, "60001"), ("max.block.ms", "70000")]).is_ok());
    assert!(writing(&[("max.block.ms", "9999")]).is_err());

    assert!(reading(&[(key, "300000")]).is_ok());
    let error = reading(&[(key, "300001")]).unwrap_err();
    assert!(error.to_string().contains("max.poll.interval.ms"), "{error}");
    assert!(reading(&[("max.poll.interval.ms", "9999")]).is_err());
}

/// The KIP's defaults together take longer than `max.block.ms`: a warning that gives the sum
/// and the ways out, and a limit that is kept.
#[test]
fn all_attempts_against_the_limit_of_a_call() {
    let config = writing(&[]).unwrap();
    assert_eq!(config.store.deadline, Some(ms(60_000)));
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 1);
    for part in
        ["63720 ms", "6 attempts", "60000 ms", "3720 ms", TIMEOUT_MS, RETRY_COUNT, "max.block.ms"]
    {
        assert!(warnings[0].contains(part), "{part}: {warnings:?}");
    }
    assert_eq!(config.store.retry_policy().worst_case(), ms(60_000));

    for way_out in [
        ("max.block.ms", "63720"),
        ("large.message.blob.store.retry.count", "4"),
        ("large.message.blob.store.timeout.ms", "9000"),
    ] {
        assert_eq!(writing(&[way_out]).unwrap().warnings(), [""; 0], "{way_out:?}");
    }
    let config = reading(&[]).unwrap();
    assert_eq!(config.store.deadline, Some(ms(300_000)));
    assert_eq!(config.warnings(), [""; 0]);
    assert_eq!(config.store.retry_policy().worst_case(), ms(63_720));
    let config = reading(&[("large.message.blob.store.timeout.ms", "50000")]).unwrap();
    assert!(config.warnings()[0].contains("303720 ms"), "{:?}", config.warnings());
}

/// Every kind of URL opens its store, without a request.
#[cfg(all(feature = "s3", feature = "gcs", feature = "azure"))]
#[test]
fn urls() {
    for (url, option) in [
        ("s3://bucket/pre", None),
        ("s3a://bucket", Some(("region", "eu-west-1"))),
        ("https://s3.eu-west-1.amazonaws.com/bucket/pre", None),
        ("https://bucket.s3.eu-west-1.amazonaws.com/pre", None),
        ("gs://bucket/pre", Some(("google_skip_signature", "true"))),
        ("az://container/pre", Some(("account_name", "account"))),
        ("abfss://container@account.dfs.core.windows.net/pre", None),
        ("https://account.blob.core.windows.net/container/pre", None),
    ] {
        let mut config = BlobStoreConfig::at(url);
        config.options.extend(option.map(|(name, value)| (name.into(), value.into())));
        let store = ObjectBlobStore::open(&config).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(store.url(), url);
        config.options.insert("no_such_option".into(), String::new());
        let error = ObjectBlobStore::open(&config).unwrap_err();
        assert_eq!(error.key(), "large.message.blob.store.option.no_such_option");
    }
}

/// One map may have both formats, as while one is replaced by the other.
#[test]
fn keys_of_bakdata_are_known() {
    let map = [
        ("large.message.blob.store.class", "object-store"),
        ("large.message.blob.store.url", "memory:///"),
        ("large.message.base.path", "s3://bucket/prefix/"),
        ("large.message.max.byte.size", "1000"),
        ("large.message.s3.region", "eu"),
        ("large.message.gs.project", "p"),
    ];
    let config = SerializerConfig::from_map(map).unwrap();
    assert_eq!(config.threshold_bytes, 1_048_576, "its own key is not given");
    DeserializerConfig::from_map(map).unwrap();
    for key in ["large.message.base.paths", "large.message.s3.regions"] {
        let error = SerializerConfig::from_map(map.into_iter().chain([(key, "1")])).unwrap_err();
        assert_eq!(error.key(), key);
    }
}
