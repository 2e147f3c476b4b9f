//! Serializers from a configuration: a list of names, and what each name stands for.
//!
//! | key | default | meaning |
//! | --- | --- | --- |
//! | `value.serializers`, `key.serializers` | required | names, left to right |
//! | `value.deserializers`, `key.deserializers` | required | names, in the order of reading |
//! | `serializers.gzip.level` | 6 | 1 to 9, or -1 for the default |
//! | `serializers.lz4.level` | 9 | 1 to 17 |
//! | `serializers.zstd.level` | 3 | -131072 to 22 |
//! | `deserializers.decompress.max.bytes` | 134217728 | most bytes that a codec may give |
//!
//! `key.` or `value.` before one of the last four makes it that part's own, and goes first.
//! The levels are not `compression.gzip.level` and so on, since those belong to the batches of
//! a producer that may have the same configuration.
//!
//! | name | as the first serializer, the last deserializer | elsewhere |
//! | --- | --- | --- |
//! | `json` | any `T` that serde reads and writes ([`Registry::json`]) | |
//! | `string` | any `T` that is a string ([`Registry::string`]) | |
//! | `bytes` | bytes ([`Registry::bytes`]) | yes |
//! | `gzip`, `snappy`, `lz4`, `zstd` | bytes | yes |
//! | `large-message` | bytes | yes: [`large_message`] |
//! | `bakdata-large-message` | bytes | yes: [`large_message::bakdata`] |
//!
//! The last two are given the whole configuration, and open the store that it names.
//!
//! Source: KIP-1159 for the lists; names instead of its classes, and the other keys, are ours.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;
use bytes::Bytes;
use logseg_core::Codec;

use super::{
    BytesDeserializer, BytesSerializer, CodecDeserializer, CodecSerializer, Composed,
    ComposedDeserializer, DEFAULT_MAX_DECOMPRESSED_BYTES, Deserializer, JsonDeserializer,
    JsonSerializer, RecordPart, Serializer, StringDeserializer, StringSerializer,
};
use crate::codec_spec::CodecSpec;
use crate::large_message::bakdata::{
    BakdataConfig, BakdataDeserializer, BakdataSerializer, KeyedBlobStore,
};
use crate::large_message::{
    self, DeserializerConfig, LargeMessageDeserializer, LargeMessageSerializer, ObjectBlobStore,
    SerializerConfig,
};

/// A client's configuration: Kafka's keys, and values as text.
pub type Config = BTreeMap<String, String>;

/// Why a factory cannot make a step, in words that name the key.
pub type FactoryError = Box<dyn std::error::Error + Send + Sync>;

type Made<S> = Result<Box<S>, FactoryError>;
type Factory<S> = Arc<dyn Fn(RecordPart, &Config) -> Made<S> + Send + Sync>;

/// Both directions of what a name stands for.
struct Pair<S: ?Sized, D: ?Sized> {
    serializer: Factory<S>,
    deserializer: Factory<D>,
}

impl<S: ?Sized, D: ?Sized> Clone for Pair<S, D> {
    fn clone(&self) -> Self {
        Self { serializer: self.serializer.clone(), deserializer: self.deserializer.clone() }
    }
}

type Step = Pair<dyn Serializer<Bytes>, dyn Deserializer<Bytes>>;
type End<T> = Pair<dyn Serializer<T>, dyn Deserializer<T>>;

/// What the names of a configuration stand for, for values of type `T`.
///
/// A name stands for a *step*, from bytes to bytes, for an *end*, from a `T` to bytes and
/// back, or for both. Either can be added, and one that is there replaced:
///
/// ```
/// use std_host::serde::{BytesDeserializer, BytesSerializer, Registry};
///
/// let registry = Registry::<String>::string().with_step(
///     "as-it-is",
///     |_part, _config| Ok(Box::new(BytesSerializer)),
///     |_part, _config| Ok(Box::new(BytesDeserializer)),
/// );
/// assert_eq!(
///     registry.names().collect::<Vec<_>>(),
///     [
///         "as-it-is",
///         "bakdata-large-message",
///         "bytes",
///         "gzip",
///         "large-message",
///         "lz4",
///         "snappy",
///         "string",
///         "zstd"
///     ]
/// );
/// ```
pub struct Registry<T: 'static> {
    steps: BTreeMap<String, Step>,
    ends: BTreeMap<String, End<T>>,
}

impl<T: 'static> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self { steps: self.steps.clone(), ends: self.ends.clone() }
    }
}

impl<T: 'static> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl<T: 'static> Registry<T> {
    /// All steps of this crate, and no end yet.
    #[must_use]
    pub fn steps_only() -> Self {
        let mut registry = Self { steps: BTreeMap::new(), ends: BTreeMap::new() }.with_step(
            "bytes",
            |_, _| Ok(Box::new(BytesSerializer)),
            |_, _| Ok(Box::new(BytesDeserializer)),
        );
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            registry = registry.with_step(
                codec.name(),
                move |part, config| {
                    Ok(Box::new(CodecSerializer::new(configured_spec(codec, part, config)?)))
                },
                move |part, config| {
                    let limit = configured_limit(part, config)?;
                    Ok(Box::new(CodecDeserializer::with_limit(codec, limit)))
                },
            );
        }
        registry.with_large_message().with_bakdata()
    }

    fn with_large_message(self) -> Self {
        self.with_step(
            "large-message",
            |part, config| {
                let step = LargeMessageSerializer::open(SerializerConfig::from_map(config)?)?;
                Ok(Box::new(if part == RecordPart::Key { step.for_keys() } else { step }))
            },
            |part, config| {
                let step = LargeMessageDeserializer::open(DeserializerConfig::from_map(config)?)?;
                Ok(Box::new(if part == RecordPart::Key { step.for_keys() } else { step }))
            },
        )
    }

    fn with_bakdata(self) -> Self {
        self.with_step(
            "bakdata-large-message",
            |part, config| {
                let config = BakdataConfig::from_map(config)?;
                let store = bakdata_store(&config)?;
                Ok(Box::new(BakdataSerializer::new(config, part, store)?))
            },
            |part, config| {
                let config = BakdataConfig::from_map(config)?;
                let store = bakdata_store(&config)?;
                Ok(Box::new(BakdataDeserializer::new(config, part, store)))
            },
        )
    }

    /// The same with `name` as a step.
    #[must_use]
    pub fn with_step(
        mut self,
        name: &str,
        serializer: impl Fn(RecordPart, &Config) -> Made<dyn Serializer<Bytes>> + Send + Sync + 'static,
        deserializer: impl Fn(RecordPart, &Config) -> Made<dyn Deserializer<Bytes>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let step = Pair { serializer: Arc::new(serializer), deserializer: Arc::new(deserializer) };
        self.steps.insert(name.to_owned(), step as Step);
        self
    }

    /// The same with `name` as an end: the first of serializers, the last of deserializers.
    #[must_use]
    pub fn with_end(
        mut self,
        name: &str,
        serializer: impl Fn(RecordPart, &Config) -> Made<dyn Serializer<T>> + Send + Sync + 'static,
        deserializer: impl Fn(RecordPart, &Config) -> Made<dyn Deserializer<T>> + Send + Sync + 'static,
    ) -> Self {
        let end = Pair { serializer: Arc::new(serializer), deserializer: Arc::new(deserializer) };
        self.ends.insert(name.to_owned(), end as End<T>);
        self
    }

    /// All names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ends = self.ends.keys().filter(|name| !self.steps.contains_key(*name));
        let mut names: Vec<_> = self.steps.keys().chain(ends).map(String::as_str).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// What `key.serializers` or `value.serializers` of `config` says.
    ///
    /// Errors: see [`ConfigError`].
    pub fn serializer(
        &self,
        part: RecordPart,
        config: &Config,
    ) -> Result<Composed<T>, ConfigError> {
        let key = format!("{}.serializers", part.name());
        self.serializers(&key, &names_in(&key, config)?, part, config)
    }

    /// Composes the serializers with these `names`, from left to right.
    ///
    /// Errors: see [`ConfigError`].
    pub fn serializer_of(
        &self,
        names: &[&str],
        part: RecordPart,
        config: &Config,
    ) -> Result<Composed<T>, ConfigError> {
        self.serializers(&format!("{}.serializers", part.name()), names, part, config)
    }

    /// What `key.deserializers` or `value.deserializers` of `config` says.
    ///
    /// Errors: see [`ConfigError`].
    pub fn deserializer(
        &self,
        part: RecordPart,
        config: &Config,
    ) -> Result<ComposedDeserializer<T>, ConfigError> {
        let key = format!("{}.deserializers", part.name());
        self.deserializers(&key, &names_in(&key, config)?, part, config)
    }

    /// Composes the deserializers with these `names`, in the order of reading.
    ///
    /// Errors: see [`ConfigError`].
    pub fn deserializer_of(
        &self,
        names: &[&str],
        part: RecordPart,
        config: &Config,
    ) -> Result<ComposedDeserializer<T>, ConfigError> {
        self.deserializers(&format!("{}.deserializers", part.name()), names, part, config)
    }

    fn serializers(
        &self,
        key: &str,
        names: &[&str],
        part: RecordPart,
        config: &Config,
    ) -> Result<Composed<T>, ConfigError> {
        let (first, rest) = names.split_first().ok_or_else(|| ConfigError::empty(key))?;
        let list = List { key, len: names.len(), part, config };
        let first = list.made(first, &self.end(list, first, 1, "first")?.serializer)?;
        let rest = rest.iter().zip(2..).map(|(name, place)| {
            list.made(name, &self.step(list, name, place, "first")?.serializer)
        });
        Ok(Composed::boxed(first, rest.collect::<Result<_, _>>()?))
    }

    fn deserializers(
        &self,
        key: &str,
        names: &[&str],
        part: RecordPart,
        config: &Config,
    ) -> Result<ComposedDeserializer<T>, ConfigError> {
        let (last, steps) = names.split_last().ok_or_else(|| ConfigError::empty(key))?;
        let list = List { key, len: names.len(), part, config };
        let steps = steps.iter().zip(1..).map(|(name, place)| {
            list.made(name, &self.step(list, name, place, "last")?.deserializer)
        });
        let steps = steps.collect::<Result<_, _>>()?;
        let end = self.end(list, last, list.len, "last")?;
        Ok(ComposedDeserializer::boxed(steps, list.made(last, &end.deserializer)?))
    }

    fn end(
        &self,
        list: List<'_>,
        name: &str,
        place: usize,
        which: &'static str,
    ) -> Result<&End<T>, ConfigError> {
        self.ends.get(name).ok_or_else(|| {
            let detail = if self.steps.contains_key(name) {
                let ends = self.ends.keys().map(String::as_str);
                let value = std::any::type_name::<T>();
                format!(
                    "has bytes on both sides, and the {which} one has {value}, as {} do",
                    listed(ends)
                )
            } else {
                self.unknown()
            };
            ConfigError::place(list, name, place, &detail)
        })
    }

    fn step(
        &self,
        list: List<'_>,
        name: &str,
        place: usize,
        which: &'static str,
    ) -> Result<&Step, ConfigError> {
        self.steps.get(name).ok_or_else(|| {
            let detail = if self.ends.contains_key(name) {
                format!("can only be the {which} one: the others have bytes on both sides")
            } else {
                self.unknown()
            };
            ConfigError::place(list, name, place, &detail)
        })
    }

    fn unknown(&self) -> String {
        format!("is not a known name: {} are", listed(self.names()))
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Registry<T> {
    /// All steps, and `json` as an end.
    #[must_use]
    pub fn json() -> Self {
        Self::steps_only().with_json()
    }

    /// The same with `json` as an end.
    #[must_use]
    pub fn with_json(self) -> Self {
        self.with_end(
            "json",
            |_, _| Ok(Box::new(JsonSerializer)),
            |_, _| Ok(Box::new(JsonDeserializer)),
        )
    }
}

impl<T: AsRef<str> + From<String> + 'static> Registry<T> {
    /// All steps, and `string` as an end.
    #[must_use]
    pub fn string() -> Self {
        Self::steps_only().with_string()
    }

    /// The same with `string` as an end.
    ///
    /// It refuses a configuration that asks for an encoding other than UTF-8
    /// (`serializer.encoding` and the like of Kafka's `StringSerializer`).
    #[must_use]
    pub fn with_string(self) -> Self {
        self.with_end(
            "string",
            |part, config| {
                is_utf8(part, "serializer.encoding", config)?;
                Ok(Box::new(StringSerializer))
            },
            |part, config| {
                is_utf8(part, "deserializer.encoding", config)?;
                Ok(Box::new(StringDeserializer))
            },
        )
    }
}

impl Registry<Bytes> {
    /// All steps, each of which is an end, too.
    #[must_use]
    pub fn bytes() -> Self {
        Self::steps_only().with_bytes()
    }

    /// The same with every step that is there so far as an end, too.
    #[must_use]
    pub fn with_bytes(mut self) -> Self {
        self.ends.extend(self.steps.clone());
        self
    }
}

/// The list that is being made.
#[derive(Clone, Copy)]
struct List<'a> {
    key: &'a str,
    len: usize,
    part: RecordPart,
    config: &'a Config,
}

impl List<'_> {
    fn made<S: ?Sized>(&self, name: &str, factory: &Factory<S>) -> Result<Box<S>, ConfigError> {
        factory(self.part, self.config).map_err(|cause| ConfigError {
            message: format!("`{name}` in {}: {cause}", self.key),
            cause: Some(cause),
        })
    }
}

/// The names in the list at `key`, as `ConfigDef` of Kafka splits one.
fn names_in<'a>(key: &str, config: &'a Config) -> Result<Vec<&'a str>, ConfigError> {
    let Some(list) = config.get(key) else {
        return Err(ConfigError::new(format!("{key} is required: names, separated by commas")));
    };
    if list.trim().is_empty() {
        return Err(ConfigError::empty(key));
    }
    let names: Vec<_> = list.split(',').map(str::trim).collect();
    match names.iter().position(|name| name.is_empty()) {
        Some(at) => Err(ConfigError::new(format!("{key} has no name at place {}", at + 1))),
        None => Ok(names),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The key that counts, and its value: `value.NAME` before `NAME`.
fn of_part<'a>(part: RecordPart, name: &str, config: &'a Config) -> Option<(String, &'a str)> {
    let own = format!("{}.{name}", part.name());
    let (key, value) = match config.get(&own) {
        Some(value) => (own, value),
        None => (name.to_owned(), config.get(name)?),
    };
    Some((key, value.trim()))
}

fn configured_spec(
    codec: Codec,
    part: RecordPart,
    config: &Config,
) -> Result<CodecSpec, FactoryError> {
    let name = format!("serializers.{}.level", codec.name());
    let Some((key, level)) = of_part(part, &name, config) else {
        return Ok(CodecSpec::new(codec)?);
    };
    // Kafka's own word for the default of zlib.
    if codec == Codec::Gzip && level == "-1" {
        return Ok(CodecSpec::new(codec)?);
    }
    let spec = format!("{}:{level}", codec.name()).parse::<CodecSpec>();
    spec.map_err(|error| format!("{key}: {error}").into())
}

fn configured_limit(part: RecordPart, config: &Config) -> Result<u64, FactoryError> {
    match of_part(part, "deserializers.decompress.max.bytes", config) {
        None => Ok(DEFAULT_MAX_DECOMPRESSED_BYTES),
        Some((key, limit)) => {
            limit.parse().map_err(|_| format!("{key}: `{limit}` is not a number of bytes").into())
        }
    }
}

/// The store at the base path, if there is one.
fn bakdata_store(
    config: &BakdataConfig,
) -> Result<Option<Arc<dyn KeyedBlobStore>>, large_message::ConfigError> {
    let Some(store) = config.store() else { return Ok(None) };
    Ok(Some(Arc::new(ObjectBlobStore::open(&store)?)))
}

fn is_utf8(part: RecordPart, name: &str, config: &Config) -> Result<(), FactoryError> {
    match of_part(part, name, config) {
        Some((key, encoding)) if !["UTF-8", "UTF8"].contains(&&*encoding.to_uppercase()) => {
            Err(format!("{key}: `{encoding}` is not there, only UTF-8 is").into())
        }
        _ => Ok(()),
    }
}

/// Why a configuration gives no serializer: a list that is missing or empty, a name that is
/// not known (the message says which are) or cannot stand at its place, or what the factory of
/// a name has to say, which is the [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct ConfigError {
    message: String,
    cause: Option<FactoryError>,
}

impl ConfigError {
    fn new(message: String) -> Self {
        Self { message, cause: None }
    }

    fn empty(key: &str) -> Self {
        Self::new(format!("{key} is empty: at least one name is needed"))
    }

    fn place(list: List<'_>, name: &str, place: usize, detail: &str) -> Self {
        let List { key, len, .. } = list;
        Self::new(format!("`{name}` at place {place} of {len} in {key} {detail}"))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Headers;
    use super::*;

    fn config(entries: &[(&str, &str)]) -> Config {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn serialize<T>(serializer: &Composed<T>, value: &T) -> Bytes {
        serializer.serialize("t", &mut Headers::new(), Some(value)).unwrap().unwrap()
    }

    #[test]
    fn every_name_there_and_back() {
        let registry = Registry::<String>::string().with_json();
        let value = "seven ".repeat(100);
        for end in ["string", "json"] {
            for step in ["bytes", "gzip", "snappy", "lz4", "zstd"] {
                let config = config(&[
                    ("key.serializers", &format!("{end},{step}")),
                    ("key.deserializers", &format!(" {step} , {end} ")),
                ]);
                let serializer = registry.serializer(RecordPart::Key, &config).unwrap();
                let deserializer = registry.deserializer(RecordPart::Key, &config).unwrap();
                let bytes = serialize(&serializer, &value);
                assert_eq!(bytes.len() < 300, step != "bytes", "{end} {step}");
                let read = deserializer.deserialize("t", &mut Headers::new(), Some(&bytes));
                assert_eq!(read.unwrap().as_ref(), Some(&value));
            }
        }
    }

    #[test]
    fn lists_may_be_given_as_lists() {
        let registry = Registry::<Bytes>::bytes();
        let config = Config::new();
        let names = ["gzip", "zstd"];
        let serializer = registry.serializer_of(&names, RecordPart::Value, &config).unwrap();
        let bytes = serialize(&serializer, &Bytes::from_static(b"seven"));
        let names = ["zstd", "gzip"];
        let back = registry.deserializer_of(&names, RecordPart::Value, &config).unwrap();
        let value = back.deserialize("t", &mut Headers::new(), Some(&bytes)).unwrap();
        assert_eq!(value.unwrap(), "seven");
        let error = registry.serializer_of(&[], RecordPart::Value, &config).unwrap_err();
        assert_eq!(error.to_string(), "value.serializers is empty: at least one name is needed");
    }

    #[test]
    fn levels() {
        let registry = Registry::<Bytes>::bytes();
        let value = Bytes::from(
            (0..200_000u32).flat_map(|n| (n / 7 * 13).to_le_bytes()).collect::<Vec<u8>>(),
        );
        let len = |name: &str, entries: &[(&str, &str)]| {
            let config = config(entries);
            let part = RecordPart::Value;
            serialize(&registry.serializer_of(&[name], part, &config).unwrap(), &value).len()
        };
        for (codec, low, high, default) in
            [("gzip", "1", "9", "6"), ("lz4", "9", "12", "9"), ("zstd", "-5", "9", "3")]
        {
            let key = format!("serializers.{codec}.level");
            let least = len(codec, &[(&key, low)]);
            let most = len(codec, &[(&key, high)]);
            assert!(most < least, "{codec}: {most} {least}");
            assert_eq!(len(codec, &[]), len(codec, &[(&key, default)]), "{codec}");
            // That of the part goes first, that of the other part is not for it.
            let (own, other) = (format!("value.{key}"), format!("key.{key}"));
            assert_eq!(len(codec, &[(&key, low), (&own, high), (&other, low)]), most, "{codec}");
        }
        let key = "serializers.gzip.level";
        assert_eq!(len("gzip", &[(key, "-1")]), len("gzip", &[]));
    }

    #[test]
    fn a_limit() {
        let registry = Registry::<Bytes>::bytes();
        let entries = [("deserializers.decompress.max.bytes", "4")];
        let part = RecordPart::Value;
        let deserializer = registry.deserializer_of(&["gzip"], part, &config(&entries)).unwrap();
        let serializer = registry.serializer_of(&["gzip"], part, &Config::new()).unwrap();
        let bytes = serialize(&serializer, &Bytes::from_static(b"seven"));
        let error = deserializer.deserialize("t", &mut Headers::new(), Some(&bytes)).unwrap_err();
        assert!(error.to_string().starts_with("gzip (step 1 of 1): "), "{error}");
        assert!(error.cause::<logseg_core::Error>().is_some());
    }

    #[test]
    fn what_is_refused() {
        let registry = Registry::<String>::string();
        let known = "bakdata-large-message, bytes, gzip, large-message, lz4, snappy, string, zstd";
        let serializer = |list: &str| {
            let config = config(&[("value.serializers", list)]);
            registry.serializer(RecordPart::Value, &config).unwrap_err().to_string()
        };
        assert_eq!(
            registry.serializer(RecordPart::Key, &Config::new()).unwrap_err().to_string(),
            "key.serializers is required: names, separated by commas"
        );
        let is = |list: &str, expected: String| assert_eq!(serializer(list), expected);
        is(" ", "value.serializers is empty: at least one name is needed".to_owned());
        is("string,,gzip", "value.serializers has no name at place 2".to_owned());
        is(
            "string,brotli",
            format!(
                "`brotli` at place 2 of 2 in value.serializers is not a known name: {known} are"
            ),
        );
        is(
            "avro",
            format!("`avro` at place 1 of 1 in value.serializers is not a known name: {known} are"),
        );
        is(
            "gzip,string",
            "`gzip` at place 1 of 2 in value.serializers has bytes on both sides, and the first \
             one has alloc::string::String, as string do"
                .to_owned(),
        );
        is(
            "string,string",
            "`string` at place 2 of 2 in value.serializers can only be the first one: the \
             others have bytes on both sides"
                .to_owned(),
        );
        let deserializer = |list: &str, entries: &[(&str, &str)]| {
            let mut config = config(entries);
            config.insert("value.deserializers".to_owned(), list.to_owned());
            registry.deserializer(RecordPart::Value, &config).unwrap_err().to_string()
        };
        assert_eq!(
            deserializer("string,gzip", &[]),
            "`string` at place 1 of 2 in value.deserializers can only be the last one: the \
             others have bytes on both sides"
        );
        assert_eq!(
            deserializer("gzip,string", &[("deserializers.decompress.max.bytes", "1 GiB")]),
            "`gzip` in value.deserializers: deserializers.decompress.max.bytes: `1 GiB` is not a \
             number of bytes"
        );
        assert_eq!(
            deserializer("string", &[("deserializer.encoding", "UTF-16")]),
            "`string` in value.deserializers: deserializer.encoding: `UTF-16` is not there, only \
             UTF-8 is"
        );
        for (entry, detail) in [
            (("serializers.gzip.level", "0"), "`0` is not a level of gzip: they are 1 to 9"),
            (("value.serializers.gzip.level", "x"), "`x` is not a level of gzip: they are 1 to 9"),
        ] {
            let config = config(&[("value.serializers", "string,gzip"), entry]);
            let error = registry.serializer(RecordPart::Value, &config).unwrap_err();
            let key = entry.0;
            assert_eq!(error.to_string(), format!("`gzip` in value.serializers: {key}: {detail}"));
            assert!(std::error::Error::source(&error).is_some());
        }
        let config =
            config(&[("value.serializers", "string,snappy"), ("serializers.snappy.level", "3")]);
        let error = registry.serializer(RecordPart::Value, &config).unwrap_err().to_string();
        assert!(error.ends_with("serializers.snappy.level: snappy has no levels"), "{error}");
    }

    #[test]
    fn large_messages() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().display());
        let config = config(&[
            ("value.serializers", "string,gzip,large-message"),
            ("value.deserializers", "large-message,gzip,string"),
            ("large.message.blob.store.class", "object-store"),
            ("large.message.blob.store.url", &url),
            ("large.message.threshold.bytes", "10"),
        ]);
        let registry = Registry::<String>::string();
        let value = "seven".to_owned();
        for part in [RecordPart::Key, RecordPart::Value] {
            let (there, back) =
                (["string", "gzip", "large-message"], ["large-message", "gzip", "string"]);
            let serializer = registry.serializer_of(&there, part, &config).unwrap();
            let deserializer = registry.deserializer_of(&back, part, &config).unwrap();
            let mut headers = Headers::new();
            let bytes = serializer.serialize("t", &mut headers, Some(&value)).unwrap().unwrap();
            assert!(bytes.starts_with(b"{\"full-blob-path\":"));
            let name = format!("__large.message.reference.{}", part.name());
            assert!(headers.last(&name).is_some(), "{headers:?}");
            let read = deserializer.deserialize("t", &mut headers, Some(&bytes)).unwrap();
            assert_eq!((read.as_ref(), headers.len()), (Some(&value), 0));
        }
        let error = registry
            .serializer_of(&["string", "large-message"], RecordPart::Key, &Config::new())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "`large-message` in key.serializers: large.message.blob.store.class: is required"
            ),
            "{error}"
        );
    }

    /// Opening its store makes no request.
    #[test]
    #[cfg(feature = "s3")]
    fn large_messages_of_bakdata() {
        let registry = Registry::<Bytes>::bytes();
        let name = ["bakdata-large-message"];
        let mut config =
            config(&[("large.message.use.headers", "true"), ("large.message.max.byte.size", "10")]);
        for path in ["", "s3://bucket/pre/"] {
            config.insert("large.message.base.path".to_owned(), path.to_owned());
            let serializer = registry.serializer_of(&name, RecordPart::Key, &config).unwrap();
            let deserializer = registry.deserializer_of(&name, RecordPart::Key, &config).unwrap();
            let (value, mut headers) = (Bytes::from_static(b"seven"), Headers::new());
            let bytes = serializer.serialize("t", &mut headers, Some(&value)).unwrap().unwrap();
            assert!(headers.last("__large.message.backed.key").is_some());
            let read = deserializer.deserialize("t", &mut headers, Some(&bytes)).unwrap();
            assert_eq!((read, headers.len()), (Some(value), 0));
        }
        config.insert("large.message.base.path".to_owned(), "bucket".to_owned());
        let error = registry.serializer_of(&name, RecordPart::Key, &config).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`bakdata-large-message` in key.serializers: large.message.base.path: is not a URI"
        );
    }

    #[test]
    fn a_name_of_a_user() {
        let registry = Registry::<u32>::json().with_end(
            "decimal",
            |part, _| match part {
                RecordPart::Value => Ok(Box::new(Decimal)),
                RecordPart::Key => Err("not for keys".into()),
            },
            |_, _| Ok(Box::new(Decimal)),
        );
        let none = Config::new();
        let names = ["decimal", "lz4"];
        let serializer = registry.serializer_of(&names, RecordPart::Value, &none).unwrap();
        let bytes = serialize(&serializer, &7);
        let back = registry.deserializer_of(&["lz4", "decimal"], RecordPart::Value, &none).unwrap();
        assert_eq!(back.deserialize("t", &mut Headers::new(), Some(&bytes)).unwrap(), Some(7));
        let error = registry.serializer_of(&names, RecordPart::Key, &none).unwrap_err();
        assert_eq!(error.to_string(), "`decimal` in key.serializers: not for keys");
    }

    struct Decimal;

    impl Serializer<u32> for Decimal {
        fn serialize(
            &self,
            _topic: &str,
            _headers: &mut Headers,
            value: Option<&u32>,
        ) -> Result<Option<Bytes>, super::super::SerdeError> {
            Ok(value.map(|value| value.to_string().into()))
        }
    }

    impl Deserializer<u32> for Decimal {
        fn deserialize(
            &self,
            _topic: &str,
            _headers: &mut Headers,
            data: Option<&Bytes>,
        ) -> Result<Option<u32>, super::super::SerdeError> {
            Ok(data.and_then(|data| std::str::from_utf8(data).ok()?.parse().ok()))
        }
    }
}
