//! Configuration by the keys of KIP-1159, with its defaults, and what must hold between them.
//!
//! | key | default | |
//! | --- | --- | --- |
//! | `large.message.blob.store.class` | none, required | a registered name: `object-store` |
//! | `large.message.blob.store.timeout.ms` | 10000 | of one attempt |
//! | `large.message.blob.store.retry.count` | 5 | attempts after the first |
//! | `large.message.blob.store.retry.delay.backoff.ms` | 100 | before the first retry |
//! | `large.message.blob.store.retry.max.backoff.ms` | 10000 | before any retry |
//! | `large.message.blob.store.blob.id.generator` | `uuid` | or `sha256`, or the KIP's Java name of the default |
//! | `large.message.threshold.bytes` | 1048576 | serializer: values of as many bytes or more go to the store |
//! | `large.message.skip.not.found.error` | false | deserializer: a missing blob is an empty value |
//!
//! and by keys that the KIP does not have:
//!
//! | key | default | |
//! | --- | --- | --- |
//! | `large.message.blob.store.url` | none, required by `object-store` | the store and the prefix below which every blob is |
//! | `large.message.blob.store.option.NAME` | | what a store wants to know besides, as `endpoint` |
//! | `large.message.formatter.class` | `json` | how references are written |
//! | `large.message.max.blob.bytes` | 1073741824 | both: larger blobs are neither written nor read |
//! | `large.message.sniff.references` | false | deserializer: without a header a reference is known by its JSON |
//!
//! Producer and consumer may have one map: each takes what it needs, and any other key that
//! starts with `large.message.`, but for those of [`bakdata`](super::bakdata::config) where
//! its base path is given too, is an error, which keeps a misspelt one from being a default.
//! Keys that do not start so are the client's; of them `max.block.ms` and
//! `max.poll.interval.ms` are read.
//!
//! Time: no call of a serializer takes longer than `max.block.ms`, none of a deserializer
//! longer than `max.poll.interval.ms`. A timeout of one attempt beyond that is an error. The
//! worst case of all attempts and delays together
//! ([`worst_case`](super::RetryPolicy::worst_case)) may be longer: with the KIP's defaults it is
//! 63.72 s, more than the 60 s of `max.block.ms`. That is a warning, for an error would leave
//! the defaults of no use, and no attempt goes on after the limit.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::bakdata;
use super::formatter;
use super::ids;
use super::retry::RetryPolicy;

/// Key of the store's registered name.
pub const BLOB_STORE_CLASS: &str = "large.message.blob.store.class";
/// Key of the longest time of one attempt, in ms.
pub const TIMEOUT_MS: &str = "large.message.blob.store.timeout.ms";
/// Key of the number of attempts after the first.
pub const RETRY_COUNT: &str = "large.message.blob.store.retry.count";
/// Key of the delay before the first retry, in ms.
pub const RETRY_DELAY_BACKOFF_MS: &str = "large.message.blob.store.retry.delay.backoff.ms";
/// Key of the longest delay before a retry, in ms.
pub const RETRY_MAX_BACKOFF_MS: &str = "large.message.blob.store.retry.max.backoff.ms";
/// Key of the registered name of the generator of ids.
pub const BLOB_ID_GENERATOR: &str = "large.message.blob.store.blob.id.generator";
/// Key of the size in bytes from which a value goes to the store.
pub const THRESHOLD_BYTES: &str = "large.message.threshold.bytes";
/// Key of whether a missing blob is an empty value.
pub const SKIP_NOT_FOUND_ERROR: &str = "large.message.skip.not.found.error";
/// Key of the store's URL; not of the KIP.
pub const BLOB_STORE_URL: &str = "large.message.blob.store.url";
/// Start of the keys of a store's options; not of the KIP.
pub const BLOB_STORE_OPTION: &str = "large.message.blob.store.option.";
/// Key of the registered name of the formatter of references; not of the KIP.
pub const FORMATTER_CLASS: &str = "large.message.formatter.class";
/// Key of the largest blob in bytes; not of the KIP.
pub const MAX_BLOB_BYTES: &str = "large.message.max.blob.bytes";
/// Key of whether references are known by their JSON; not of the KIP.
pub const SNIFF_REFERENCES: &str = "large.message.sniff.references";

/// Start of every key that is read here.
const PREFIX: &str = "large.message.";
const MAX_BLOCK_MS: &str = "max.block.ms";
const MAX_POLL_INTERVAL_MS: &str = "max.poll.interval.ms";

/// Default of [`TIMEOUT_MS`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(10_000);
/// Default of [`RETRY_COUNT`].
pub const DEFAULT_RETRY_COUNT: u32 = 5;
/// Default of [`RETRY_DELAY_BACKOFF_MS`].
pub const DEFAULT_RETRY_DELAY_BACKOFF: Duration = Duration::from_millis(100);
/// Default of [`RETRY_MAX_BACKOFF_MS`].
pub const DEFAULT_RETRY_MAX_BACKOFF: Duration = Duration::from_millis(10_000);
/// Default of [`BLOB_ID_GENERATOR`], which the KIP calls `BlobIdGenerator.DefaultBlobIDGenerator`.
pub const DEFAULT_BLOB_ID_GENERATOR: &str = ids::UuidGenerator::NAME;
/// Default of [`THRESHOLD_BYTES`]: 1 MiB.
///
/// The KIP says "1MB (default of max.message.bytes)", which are two numbers: that default is
/// 1,048,588. This is the lower one, and the default of the producer's `max.request.size`.
/// Both limit what a value is only a part of: with these defaults a value of a few bytes less
/// than the threshold is too large a record, so set it lower where such values occur.
pub const DEFAULT_THRESHOLD_BYTES: u64 = 1_048_576;
/// Default of [`FORMATTER_CLASS`].
pub const DEFAULT_FORMATTER_CLASS: &str = formatter::JsonFormatter::NAME;
/// Default of [`MAX_BLOB_BYTES`]: 1 GiB.
pub const DEFAULT_MAX_BLOB_BYTES: u64 = 1 << 30;
/// Default of the producer's `max.block.ms`.
pub const DEFAULT_MAX_BLOCK: Duration = Duration::from_millis(60_000);
/// Default of the consumer's `max.poll.interval.ms`.
pub const DEFAULT_MAX_POLL_INTERVAL: Duration = Duration::from_millis(300_000);

/// What is wrong with a configuration, and with which key of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    key: String,
    detail: String,
}

impl ConfigError {
    pub(super) fn new(key: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { key: key.into(), detail: detail.into() }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.detail)
    }
}

impl std::error::Error for ConfigError {}

/// A store and how it is used, common to serializer and deserializer.
#[derive(Clone, PartialEq, Eq)]
pub struct BlobStoreConfig {
    /// Registered name of the store, written into references for information.
    pub class: String,
    /// Where it is: `file:///…`, `memory:///…`, `s3://…`, `gs://…`, `az://…` and their kin.
    pub url: Option<String>,
    /// What it wants to know besides; `Debug` does not show the values.
    pub options: BTreeMap<String, String>,
    /// Longest time of one attempt.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retry_count: u32,
    /// Delay before the first retry, which doubles with every further one.
    pub retry_delay_backoff: Duration,
    /// Longest delay before a retry.
    pub retry_max_backoff: Duration,
    /// Registered name of the generator of ids.
    pub blob_id_generator: String,
    /// Longest time of one call, all attempts and delays together; none if `None`.
    pub deadline: Option<Duration>,
}

/// Options may be secrets.
impl fmt::Debug for BlobStoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobStoreConfig")
            .field("class", &self.class)
            .field("url", &self.url)
            .field("options", &self.options.keys())
            .field("timeout", &self.timeout)
            .field("retry_count", &self.retry_count)
            .field("retry_delay_backoff", &self.retry_delay_backoff)
            .field("retry_max_backoff", &self.retry_max_backoff)
            .field("blob_id_generator", &self.blob_id_generator)
            .field("deadline", &self.deadline)
            .finish()
    }
}

impl BlobStoreConfig {
    /// The store `class` with the defaults of everything else, and no limit of time over all
    /// attempts.
    pub fn new(class: impl Into<String>) -> Self {
        Self {
            class: class.into(),
            url: None,
            options: BTreeMap::new(),
            timeout: DEFAULT_TIMEOUT,
            retry_count: DEFAULT_RETRY_COUNT,
            retry_delay_backoff: DEFAULT_RETRY_DELAY_BACKOFF,
            retry_max_backoff: DEFAULT_RETRY_MAX_BACKOFF,
            blob_id_generator: DEFAULT_BLOB_ID_GENERATOR.into(),
            deadline: None,
        }
    }

    /// The store `object-store` at `url`, with the defaults of everything else.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::new(super::ObjectBlobStore::NAME) }
    }

    /// How often and how long it is tried.
    #[must_use]
    pub const fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            timeout: self.timeout,
            retries: self.retry_count,
            delay: self.retry_delay_backoff,
            max_backoff: self.retry_max_backoff,
            deadline: self.deadline,
        }
    }

    fn from_map(map: &Map<'_>) -> Result<Self, ConfigError> {
        let class = map.text(BLOB_STORE_CLASS).ok_or_else(|| {
            ConfigError::new(BLOB_STORE_CLASS, "is required, as the name of a registered store")
        })?;
        let option = |(key, value): (&&str, &&str)| {
            key.strip_prefix(BLOB_STORE_OPTION).map(|name| (name.into(), (*value).into()))
        };
        let config = Self {
            url: map.text(BLOB_STORE_URL).map(Into::into),
            options: map.0.iter().filter_map(option).collect(),
            timeout: map.millis(TIMEOUT_MS, DEFAULT_TIMEOUT)?,
            retry_count: map.number(RETRY_COUNT, DEFAULT_RETRY_COUNT)?,
            retry_delay_backoff: map.millis(RETRY_DELAY_BACKOFF_MS, DEFAULT_RETRY_DELAY_BACKOFF)?,
            retry_max_backoff: map.millis(RETRY_MAX_BACKOFF_MS, DEFAULT_RETRY_MAX_BACKOFF)?,
            blob_id_generator: map
                .text(BLOB_ID_GENERATOR)
                .unwrap_or(DEFAULT_BLOB_ID_GENERATOR)
                .into(),
            ..Self::new(class)
        };
        Ok(config)
    }

    /// Checks everything but the time of all attempts.
    fn validate(&self, limit: (&str, Duration)) -> Result<(), ConfigError> {
        let (limit_key, limit) = limit;
        if self.class.is_empty() {
            return Err(ConfigError::new(BLOB_STORE_CLASS, "is required"));
        }
        if self.timeout.is_zero() {
            return Err(ConfigError::new(TIMEOUT_MS, "must be more than 0"));
        }
        if self.timeout > limit {
            return Err(ConfigError::new(
                TIMEOUT_MS,
                format!(
                    "must not exceed {limit_key}: {} is more than {}",
                    self.timeout.as_millis(),
                    limit.as_millis()
                ),
            ));
        }
        if self.retry_delay_backoff > self.retry_max_backoff {
            return Err(ConfigError::new(
                RETRY_DELAY_BACKOFF_MS,
                format!(
                    "must not exceed {RETRY_MAX_BACKOFF_MS}: {} is more than {}",
                    self.retry_delay_backoff.as_millis(),
                    self.retry_max_backoff.as_millis()
                ),
            ));
        }
        ids::generator(&self.blob_id_generator).map(drop)
    }

    /// What should be known of the time of all attempts.
    fn warnings(&self, limit: (&str, Duration)) -> Vec<String> {
        let (limit_key, limit) = limit;
        let policy = RetryPolicy { deadline: None, ..self.retry_policy() };
        let worst = policy.worst_case();
        if worst <= limit {
            return Vec::new();
        }
        vec![format!(
            "the {} attempts allowed take up to {} ms ({} x {TIMEOUT_MS} = {} ms, delays between \
             them {} ms), more than {limit_key} = {} ms: attempts end at that limit. Lower \
             {TIMEOUT_MS} or {RETRY_COUNT}, or raise {limit_key}",
            u64::from(self.retry_count) + 1,
            worst.as_millis(),
            u64::from(self.retry_count) + 1,
            policy.all_timeouts().as_millis(),
            policy.all_backoffs().as_millis(),
            limit.as_millis(),
        )]
    }
}

/// Configuration of a [`LargeMessageSerializer`](super::LargeMessageSerializer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializerConfig {
    /// The store; its `deadline` is `max.block.ms`.
    pub store: BlobStoreConfig,
    /// Values of as many bytes or more go to the store.
    pub threshold_bytes: u64,
    /// Values of more bytes than this are refused.
    pub max_blob_bytes: u64,
    /// Registered name of the formatter of references.
    pub formatter: String,
}

impl SerializerConfig {
    /// `store`, with the defaults of everything else.
    #[must_use]
    pub fn new(store: BlobStoreConfig) -> Self {
        Self {
            store: BlobStoreConfig {
                deadline: Some(store.deadline.unwrap_or(DEFAULT_MAX_BLOCK)),
                ..store
            },
            threshold_bytes: DEFAULT_THRESHOLD_BYTES,
            max_blob_bytes: DEFAULT_MAX_BLOB_BYTES,
            formatter: DEFAULT_FORMATTER_CLASS.into(),
        }
    }

    /// From keys and values, those of a whole producer's configuration for instance.
    ///
    /// Errors: an unknown key that starts with `large.message.`, a value that cannot be
    /// read, and what [`validate`](Self::validate) finds.
    pub fn from_map<K: AsRef<str>, V: AsRef<str>>(
        map: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError> {
        with_map(map, |map| {
            let mut store = BlobStoreConfig::from_map(map)?;
            store.deadline = Some(map.millis(MAX_BLOCK_MS, DEFAULT_MAX_BLOCK)?);
            let config = Self {
                threshold_bytes: map.number(THRESHOLD_BYTES, DEFAULT_THRESHOLD_BYTES)?,
                max_blob_bytes: map.number(MAX_BLOB_BYTES, DEFAULT_MAX_BLOB_BYTES)?,
                formatter: map.text(FORMATTER_CLASS).unwrap_or(DEFAULT_FORMATTER_CLASS).into(),
                ..Self::new(store)
            };
            config.validate()?;
            Ok(config)
        })
    }

    fn limit(&self) -> (&'static str, Duration) {
        (MAX_BLOCK_MS, self.store.deadline.unwrap_or(DEFAULT_MAX_BLOCK))
    }

    /// What is wrong with it: a timeout of 0 or beyond `max.block.ms`, a first delay beyond
    /// the longest one, a name that is not registered.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.store.validate(self.limit())?;
        formatter::formatter(&self.formatter).map(drop)
    }

    /// What is not wrong, but should be known: attempts that together may take longer than
    /// `max.block.ms`, as those of the KIP's defaults do.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.store.warnings(self.limit())
    }
}

/// Configuration of a [`LargeMessageDeserializer`](super::LargeMessageDeserializer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeserializerConfig {
    /// The store; its `deadline` is `max.poll.interval.ms`.
    pub store: BlobStoreConfig,
    /// Whether a missing blob is an empty value instead of an error.
    pub skip_not_found_error: bool,
    /// Whether a value without a header is a reference if it looks like one.
    pub sniff_references: bool,
    /// Blobs of more bytes than this are refused, whatever the reference says.
    pub max_blob_bytes: u64,
    /// Registered name of the formatter of references.
    pub formatter: String,
}

impl DeserializerConfig {
    /// `store`, with the defaults of everything else.
    #[must_use]
    pub fn new(store: BlobStoreConfig) -> Self {
        Self {
            store: BlobStoreConfig {
                deadline: Some(store.deadline.unwrap_or(DEFAULT_MAX_POLL_INTERVAL)),
                ..store
            },
            skip_not_found_error: false,
            sniff_references: false,
            max_blob_bytes: DEFAULT_MAX_BLOB_BYTES,
            formatter: DEFAULT_FORMATTER_CLASS.into(),
        }
    }

    /// From keys and values, those of a whole consumer's configuration for instance.
    ///
    /// Errors: an unknown key that starts with `large.message.`, a value that cannot be
    /// read, and what [`validate`](Self::validate) finds.
    pub fn from_map<K: AsRef<str>, V: AsRef<str>>(
        map: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError> {
        with_map(map, |map| {
            let mut store = BlobStoreConfig::from_map(map)?;
            store.deadline = Some(map.millis(MAX_POLL_INTERVAL_MS, DEFAULT_MAX_POLL_INTERVAL)?);
            let config = Self {
                skip_not_found_error: map.boolean(SKIP_NOT_FOUND_ERROR)?,
                sniff_references: map.boolean(SNIFF_REFERENCES)?,
                max_blob_bytes: map.number(MAX_BLOB_BYTES, DEFAULT_MAX_BLOB_BYTES)?,
                formatter: map.text(FORMATTER_CLASS).unwrap_or(DEFAULT_FORMATTER_CLASS).into(),
                ..Self::new(store)
            };
            config.validate()?;
            Ok(config)
        })
    }

    fn limit(&self) -> (&'static str, Duration) {
        (MAX_POLL_INTERVAL_MS, self.store.deadline.unwrap_or(DEFAULT_MAX_POLL_INTERVAL))
    }

    /// What is wrong with it: a timeout of 0 or beyond `max.poll.interval.ms`, a first delay
    /// beyond the longest one, a name that is not registered.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.store.validate(self.limit())?;
        formatter::formatter(&self.formatter).map(drop)
    }

    /// What is not wrong, but should be known: attempts that together may take longer than
    /// `max.poll.interval.ms`.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.store.warnings(self.limit())
    }
}

/// Keys and values, all of whose `large.message.` keys are known.
struct Map<'a>(BTreeMap<&'a str, &'a str>);

fn with_map<K: AsRef<str>, V: AsRef<str>, T>(
    map: impl IntoIterator<Item = (K, V)>,
    read: impl FnOnce(&Map<'_>) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    const KNOWN: [&str; 12] = [
        BLOB_STORE_CLASS,
        TIMEOUT_MS,
        RETRY_COUNT,
        RETRY_DELAY_BACKOFF_MS,
        RETRY_MAX_BACKOFF_MS,
        BLOB_ID_GENERATOR,
        THRESHOLD_BYTES,
        SKIP_NOT_FOUND_ERROR,
        BLOB_STORE_URL,
        FORMATTER_CLASS,
        MAX_BLOB_BYTES,
        SNIFF_REFERENCES,
    ];
    let entries: Vec<(K, V)> = map.into_iter().collect();
    // As Kafka reads values: without the space around them.
    let entries = entries.iter().map(|(key, value)| (key.as_ref(), value.as_ref().trim()));
    let map = Map(entries.collect());
    // Alone, one of bakdata's is a mistake: its threshold would be taken for this one.
    let both = map.0.contains_key(bakdata::config::BASE_PATH);
    let known = |key: &str| {
        KNOWN.contains(&key)
            || both && bakdata::config::is_key(key)
            || key.strip_prefix(BLOB_STORE_OPTION).is_some_and(|name| !name.is_empty())
    };
    match map.0.keys().find(|key| key.starts_with(PREFIX) && !known(key)) {
        Some(key) => Err(ConfigError::new(*key, "there is no such key")),
        None => read(&map),
    }
}

impl Map<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).copied()
    }

    fn number<N: std::str::FromStr>(&self, key: &str, default: N) -> Result<N, ConfigError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let error = || ConfigError::new(key, format!("{text:?} is not a number in range"));
        text.parse().map_err(|_| error())
    }

    fn millis(&self, key: &str, default: Duration) -> Result<Duration, ConfigError> {
        // Java's `long` and `int` go no further either.
        let millis = self.number(key, i64::try_from(default.as_millis()).unwrap_or(i64::MAX))?;
        let millis = u64::try_from(millis)
            .map_err(|_| ConfigError::new(key, format!("{millis} ms are less than none")))?;
        Ok(Duration::from_millis(millis))
    }

    fn boolean(&self, key: &str) -> Result<bool, ConfigError> {
        self.text(key).map_or(Ok(false), |text| truth(key, text))
    }
}

/// As Kafka reads a boolean: in letters of any case.
pub(super) fn truth(key: &str, value: &str) -> Result<bool, ConfigError> {
    if value.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if value.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err(ConfigError::new(key, format!("{value:?} is neither true nor false")))
    }
}
