//! Configuration, by bakdata's keys.
//!
//! | key | default | meaning |
//! | --- | --- | --- |
//! | `large.message.max.byte.size` | 1000000 | values of so many bytes or more are backed |
//! | `large.message.base.path` | empty | where blobs are; without it none can be |
//! | `large.message.use.headers` | false | header protocol instead of flags, in writing |
//! | `large.message.accept.no.headers` | false | no header means inline, in reading |
//! | `large.message.id.generator` | `com.bakdata.kafka.RandomUUIDGenerator` | names blobs |
//! | `large.message.compression.type` | none | of blobs: gzip, snappy, lz4 or zstd |
//! | `large.message.s3.endpoint`, `.region`, `.access.key`, `.secret.key` | empty | the store |
//! | `large.message.s3.path.style.access` | false | the store |
//! | `large.message.gs.key.path` | empty | the store |
//! | `large.message.max.blob.bytes` | 1073741824 | most bytes of a blob, and of its value |
//! | `large.message.verify.ids` | true | whether a content is checked where its id allows it |
//! | `large.message.legacy.compression.header` | false | the old name in writing: see below |
//!
//! The last three are ours. Readers up to bakdata's version 3.1.1 know only the old name of
//! the compression header, and deliver compressed bytes as the value if they find the new one:
//! with such readers the old one has to be written. Both are read in any case.

use std::collections::BTreeMap;
use std::str::FromStr;

use logseg_core::Codec;

use super::super::config::{
    BlobStoreConfig, ConfigError, DEFAULT_MAX_BLOB_BYTES, MAX_BLOB_BYTES, truth,
};
use super::base::BasePath;
use super::ids::BakdataIdGenerator;

/// Values of as many bytes or more are backed.
pub const MAX_BYTE_SIZE: &str = "large.message.max.byte.size";
/// Where blobs are: [`BasePath`].
pub const BASE_PATH: &str = "large.message.base.path";
/// Whether a header tells what is backed, and not a flag before the value.
pub const USE_HEADERS: &str = "large.message.use.headers";
/// Whether what has no header is inline.
pub const ACCEPT_NO_HEADERS: &str = "large.message.accept.no.headers";
/// What names blobs: the class of a [`BakdataIdGenerator`].
pub const ID_GENERATOR: &str = "large.message.id.generator";
/// What blobs are compressed with.
pub const COMPRESSION_TYPE: &str = "large.message.compression.type";
/// Whether contents are checked where their id allows it. Not a key of bakdata's.
pub const VERIFY_IDS: &str = "large.message.verify.ids";
/// Whether the compression header is written by its name before bakdata's issue 181. Not a
/// key of bakdata's.
pub const LEGACY_COMPRESSION_HEADER: &str = "large.message.legacy.compression.header";

/// [`MAX_BYTE_SIZE`] unless it is given: 1 000 000 bytes.
pub const DEFAULT_MAX_BYTE_SIZE: u32 = 1_000_000;

/// bakdata's keys for the store, and what `object_store` calls them.
const STORE_OPTIONS: [(&str, &str); 6] = [
    ("large.message.s3.endpoint", "aws_endpoint"),
    ("large.message.s3.region", "aws_region"),
    ("large.message.s3.access.key", "aws_access_key_id"),
    ("large.message.s3.secret.key", "aws_secret_access_key"),
    (PATH_STYLE_ACCESS, "aws_virtual_hosted_style_request"),
    ("large.message.gs.key.path", "google_service_account"),
];

const PATH_STYLE_ACCESS: &str = "large.message.s3.path.style.access";

/// Keys of bakdata's for the store which have nothing that they could be given to.
const NOT_THERE: [&str; 8] = [
    "large.message.s3.sts.role.arn",
    "large.message.s3.sts.role.external.id",
    "large.message.s3.sts.role.session.name",
    "large.message.s3.jwt.path",
    "large.message.s3.sdk.http.client.builder",
    "large.message.abs.connection.string",
    "large.message.gs.host",
    "large.message.gs.project",
];

/// Whether `key` is one of bakdata's, or of those that are beside them: a configuration may
/// have both formats in it, one for keys and one for values, or the old one for reading.
pub(in super::super) fn is_key(key: &str) -> bool {
    const OWN: [&str; 8] = [
        MAX_BYTE_SIZE,
        BASE_PATH,
        USE_HEADERS,
        ACCEPT_NO_HEADERS,
        ID_GENERATOR,
        COMPRESSION_TYPE,
        VERIFY_IDS,
        LEGACY_COMPRESSION_HEADER,
    ];
    OWN.contains(&key)
        || NOT_THERE.contains(&key)
        || STORE_OPTIONS.iter().any(|(option, _)| *option == key)
}

/// Configuration of a [`BakdataSerializer`](super::BakdataSerializer) and of a
/// [`BakdataDeserializer`](super::BakdataDeserializer).
#[derive(Clone, PartialEq, Eq)]
pub struct BakdataConfig {
    /// Values of as many bytes or more are backed.
    pub max_byte_size: u32,
    /// Where blobs are; `None` if nothing can be backed.
    pub base_path: Option<BasePath>,
    /// Whether a header tells what is backed, in writing.
    pub use_headers: bool,
    /// Whether what has no header is inline, in reading.
    pub accept_no_headers: bool,
    /// What names blobs.
    pub id_generator: BakdataIdGenerator,
    /// What blobs are compressed with, [`Codec::None`] for not at all. Needs `use_headers`.
    pub compression_type: Codec,
    /// Most bytes of a blob, and of the value in it.
    pub max_blob_bytes: u64,
    /// Whether contents are checked where their id allows it.
    pub verify_ids: bool,
    /// Whether the compression header is written by its old name.
    pub legacy_compression_header: bool,
    /// Options of the store, by `object_store`'s names. They may be secret, and are not shown.
    pub store_options: BTreeMap<String, String>,
}

impl Default for BakdataConfig {
    fn default() -> Self {
        Self {
            max_byte_size: DEFAULT_MAX_BYTE_SIZE,
            base_path: None,
            use_headers: false,
            accept_no_headers: false,
            id_generator: BakdataIdGenerator::RandomUuid,
            compression_type: Codec::None,
            max_blob_bytes: DEFAULT_MAX_BLOB_BYTES,
            verify_ids: true,
            legacy_compression_header: false,
            store_options: BTreeMap::new(),
        }
    }
}

impl std::fmt::Debug for BakdataConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BakdataConfig")
            .field("max_byte_size", &self.max_byte_size)
            .field("base_path", &self.base_path)
            .field("use_headers", &self.use_headers)
            .field("accept_no_headers", &self.accept_no_headers)
            .field("id_generator", &self.id_generator)
            .field("compression_type", &self.compression_type)
            .field("max_blob_bytes", &self.max_blob_bytes)
            .field("verify_ids", &self.verify_ids)
            .field("legacy_compression_header", &self.legacy_compression_header)
            .finish_non_exhaustive()
    }
}

impl BakdataConfig {
    /// From keys and values, those of a whole client's configuration for instance. Other keys
    /// are not looked at.
    ///
    /// Errors: a value that cannot be read; a base path that bakdata could not use
    /// ([`BasePath::parse`]); a compression type without headers; a key for the store that is
    /// given and has no effect here.
    pub fn from_map<K: AsRef<str>, V: AsRef<str>>(
        map: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (key, value) in map {
            config.set(key.as_ref(), value.as_ref().trim())?;
        }
        config.validate()?;
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let error = |detail: String| ConfigError::new(key, detail);
        match key {
            MAX_BYTE_SIZE => self.max_byte_size = size(key, value)?,
            BASE_PATH if value.is_empty() => self.base_path = None,
            BASE_PATH => self.base_path = Some(BasePath::parse(value).map_err(error)?),
            USE_HEADERS => self.use_headers = truth(key, value)?,
            ACCEPT_NO_HEADERS => self.accept_no_headers = truth(key, value)?,
            ID_GENERATOR => self.id_generator = value.parse().map_err(error)?,
            COMPRESSION_TYPE => {
                let codec = Codec::ALL.into_iter().find(|codec| codec.name() == value);
                self.compression_type = codec.ok_or_else(|| {
                    error(format!("{value:?} is none of none, gzip, snappy, lz4 and zstd"))
                })?;
            }
            MAX_BLOB_BYTES => self.max_blob_bytes = number(key, value)?,
            VERIFY_IDS => self.verify_ids = truth(key, value)?,
            LEGACY_COMPRESSION_HEADER => self.legacy_compression_header = truth(key, value)?,
            _ if NOT_THERE.contains(&key) && !value.is_empty() => {
                return Err(error("is not there: open the store in code".to_owned()));
            }
            _ => {
                if let Some((_, name)) = STORE_OPTIONS.iter().find(|(ours, _)| *ours == key)
                    && !value.is_empty()
                {
                    let value = match key {
                        PATH_STYLE_ACCESS => (!truth(key, value)?).to_string(),
                        _ => value.to_owned(),
                    };
                    self.store_options.insert((*name).to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// Errors: a compression type without headers.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.compression_type != Codec::None && !self.use_headers {
            let detail = format!("{} needs {USE_HEADERS}=true", self.compression_type);
            return Err(ConfigError::new(COMPRESSION_TYPE, detail));
        }
        Ok(())
    }

    /// The store that the base path and bakdata's keys for S3 and Google Cloud Storage stand
    /// for; `None` without a base path. Everything else of it is as by default.
    ///
    /// `abs` has its account in the environment (`AZURE_STORAGE_ACCOUNT_NAME` and so on), as
    /// `object_store` takes it from there.
    #[must_use]
    pub fn store(&self) -> Option<BlobStoreConfig> {
        let directory = self.base_path.as_ref()?.directory().trim_end_matches('/');
        let url = match directory.strip_prefix("abs://") {
            Some(container) => format!("az://{container}"),
            None => directory.to_owned(),
        };
        let options = self.store_options.clone();
        Some(BlobStoreConfig { options, ..BlobStoreConfig::at(url) })
    }
}

fn number<N: FromStr>(key: &str, value: &str) -> Result<N, ConfigError> {
    value.parse().map_err(|_| ConfigError::new(key, format!("{value:?} is not a number of bytes")))
}

/// A Java `int` that is not negative.
fn size(key: &str, value: &str) -> Result<u32, ConfigError> {
    let size: i32 = number(key, value)?;
    u32::try_from(size).map_err(|_| ConfigError::new(key, format!("{size} is less than 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[(&str, &str)]) -> Result<BakdataConfig, String> {
        BakdataConfig::from_map(entries.iter().copied()).map_err(|error| error.to_string())
    }

    /// Every key: its default, a value, and one that it does not take.
    #[test]
    fn keys() {
        let none = read(&[("bootstrap.servers", "x"), ("large.message.value.serde", "x")]).unwrap();
        assert_eq!(none, BakdataConfig::default());

        assert_eq!(none.max_byte_size, 1_000_000);
        assert_eq!(read(&[(MAX_BYTE_SIZE, " 0 ")]).unwrap().max_byte_size, 0);
        for value in ["-1", "1e6", "", "2147483648"] {
            assert!(read(&[(MAX_BYTE_SIZE, value)]).is_err(), "{value}");
        }

        assert_eq!(none.base_path, None);
        assert_eq!(read(&[(BASE_PATH, "")]).unwrap().base_path, None);
        let path = read(&[(BASE_PATH, "s3://bucket/pre/")]).unwrap().base_path;
        assert_eq!(path, BasePath::parse("s3://bucket/pre/").ok());
        assert_eq!(
            read(&[(BASE_PATH, "ftp://bucket/")]).unwrap_err(),
            r#"large.message.base.path: "ftp" is none of the schemes s3, abs and gs"#
        );

        assert!(!none.use_headers);
        assert!(read(&[(USE_HEADERS, "TRUE")]).unwrap().use_headers);
        assert_eq!(
            read(&[(USE_HEADERS, "yes")]).unwrap_err(),
            r#"large.message.use.headers: "yes" is neither true nor false"#
        );

        assert!(!none.accept_no_headers);
        assert!(read(&[(ACCEPT_NO_HEADERS, "true")]).unwrap().accept_no_headers);
        assert!(read(&[(ACCEPT_NO_HEADERS, "1")]).is_err());

        assert_eq!(none.id_generator, BakdataIdGenerator::RandomUuid);
        for generator in BakdataIdGenerator::ALL {
            let config = read(&[(ID_GENERATOR, generator.class())]).unwrap();
            assert_eq!(config.id_generator, generator);
        }
        assert_eq!(
            read(&[(ID_GENERATOR, "com.example.Ids")]).unwrap_err(),
            "large.message.id.generator: there is no \"com.example.Ids\", only \
             com.bakdata.kafka.RandomUUIDGenerator, com.bakdata.kafka.Sha256HashIdGenerator, \
             com.bakdata.kafka.MurmurHashIdGenerator"
        );

        assert_eq!(none.compression_type, Codec::None);
        for codec in Codec::ALL {
            let entries = [(COMPRESSION_TYPE, codec.name()), (USE_HEADERS, "true")];
            assert_eq!(read(&entries).unwrap().compression_type, codec);
        }
        assert_eq!(
            read(&[(COMPRESSION_TYPE, "zstd")]).unwrap_err(),
            "large.message.compression.type: zstd needs large.message.use.headers=true"
        );
        assert_eq!(
            read(&[(COMPRESSION_TYPE, "GZIP")]).unwrap_err(),
            "large.message.compression.type: \"GZIP\" is none of none, gzip, snappy, lz4 and zstd"
        );

        assert_eq!(none.max_blob_bytes, 1 << 30);
        assert_eq!(read(&[(MAX_BLOB_BYTES, "7")]).unwrap().max_blob_bytes, 7);
        assert!(read(&[(MAX_BLOB_BYTES, "-7")]).is_err());

        assert!(none.verify_ids);
        assert!(!read(&[(VERIFY_IDS, "false")]).unwrap().verify_ids);
        assert!(read(&[(VERIFY_IDS, "no")]).is_err());

        assert!(!none.legacy_compression_header);
        let legacy = read(&[(LEGACY_COMPRESSION_HEADER, "true")]).unwrap();
        assert!(legacy.legacy_compression_header);
        assert!(read(&[(LEGACY_COMPRESSION_HEADER, "")]).is_err());
    }

    #[test]
    fn stores() {
        assert_eq!(read(&[("large.message.s3.region", "eu")]).unwrap().store(), None);
        for (path, url) in [
            ("s3://bucket", "s3://bucket"),
            ("abs://box/pre/fix", "az://box/pre"),
            ("gs://bucket/pre/", "gs://bucket/pre"),
        ] {
            let store = read(&[(BASE_PATH, path)]).unwrap().store().unwrap();
            assert_eq!(store, BlobStoreConfig::at(url));
        }
        let config = read(&[
            (BASE_PATH, "s3://bucket/"),
            ("large.message.s3.endpoint", "http://localhost:9000"),
            ("large.message.s3.region", "eu"),
            ("large.message.s3.access.key", "me"),
            ("large.message.s3.secret.key", "hidden"),
            ("large.message.s3.path.style.access", "true"),
            ("large.message.s3.jwt.path", ""),
            ("large.message.gs.key.path", "/key.json"),
        ])
        .unwrap();
        let store = config.store().unwrap();
        let options: Vec<_> = store.options.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(
            options,
            [
                ("aws_access_key_id", "me"),
                ("aws_endpoint", "http://localhost:9000"),
                ("aws_region", "eu"),
                ("aws_secret_access_key", "hidden"),
                ("aws_virtual_hosted_style_request", "false"),
                ("google_service_account", "/key.json"),
            ]
        );
        assert!(!format!("{config:?}").contains("hidden"));
        for key in NOT_THERE {
            let error = read(&[(key, "x")]).unwrap_err();
            assert_eq!(error, format!("{key}: is not there: open the store in code"));
        }
    }
}
