//! bakdata's format, against records of its own classes and against what might be sent.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use logseg_core::{Codec, ErrorKind};
use proptest::prelude::*;
use std_host::codec_spec::CodecSpec;
use std_host::large_message::bakdata::{
    BakdataConfig, BakdataDeserializer, BakdataError, BakdataIdGenerator, BakdataSerializer,
    BasePath, KeyedBlobStore,
};
use std_host::large_message::{
    BlobError, BlobErrorKind, BlobStore, BlobStoreConfig, ObjectBlobStore,
};
use std_host::serde::{
    CodecSerializer, Composed, ComposedDeserializer, Deserializer, Headers, JsonDeserializer,
    JsonSerializer, RecordPart, SerdeError, Serializer,
};

use crate::store::TestStore;

const PARTS: [RecordPart; 2] = [RecordPart::Key, RecordPart::Value];
const MARKERS: [&str; 2] = ["__large.message.backed.key", "__large.message.backed.value"];
const COMPRESSION: &str = "__large.message.backed.compression";
const OLD_COMPRESSION: &str = "__large.message.backed..compression";

fn marker(part: RecordPart) -> &'static str {
    MARKERS[usize::from(part == RecordPart::Value)]
}

fn config() -> BakdataConfig {
    BakdataConfig {
        max_byte_size: 100,
        base_path: BasePath::parse("s3://bucket/pre/").ok(),
        use_headers: true,
        ..BakdataConfig::default()
    }
}

fn serializer(
    config: &BakdataConfig,
    part: RecordPart,
    store: &Arc<TestStore>,
) -> BakdataSerializer {
    let store: Arc<dyn KeyedBlobStore> = Arc::clone(store) as _;
    BakdataSerializer::new(config.clone(), part, Some(store)).unwrap()
}

fn deserializer(
    config: &BakdataConfig,
    part: RecordPart,
    store: &Arc<TestStore>,
) -> BakdataDeserializer {
    let store: Arc<dyn KeyedBlobStore> = Arc::clone(store) as _;
    BakdataDeserializer::new(config.clone(), part, Some(store))
}

fn headers(of: &[(&str, &[u8])]) -> Headers {
    let mut headers = Headers::new();
    for (key, value) in of {
        headers.add(*key, Some(Bytes::copy_from_slice(value)));
    }
    headers
}

/// A value of this length.
fn value(len: usize) -> Bytes {
    (0..len).map(|n| (n / 3) as u8).collect()
}

/// Reads `data` of a value, and gives what is left of the headers, too.
fn read(
    config: &BakdataConfig,
    store: &Arc<TestStore>,
    of: &[(&str, &[u8])],
    data: &[u8],
) -> (Result<Bytes, SerdeError>, Headers) {
    let mut headers = headers(of);
    let data = Bytes::copy_from_slice(data);
    let part = RecordPart::Value;
    let read = deserializer(config, part, store).deserialize("topic", &mut headers, Some(&data));
    (read.map(Option::unwrap), headers)
}

/// One line of the records, with the names that it has in `Vectors.java`.
struct Record<'a> {
    name: &'a str,
    base: BasePath,
    topic: &'a str,
    part: RecordPart,
    plain: Bytes,
    data: Bytes,
    headers: Headers,
    uri: &'a str,
    blob: Option<Bytes>,
}

fn bytes(text: &str) -> Bytes {
    BASE64.decode(text).unwrap().into()
}

impl<'a> Record<'a> {
    fn parse(fields: &[&'a str]) -> Option<Self> {
        let [name, base, topic, part, plain, data, headers, uri, blob] = fields else {
            return None;
        };
        let headers = headers.split(',').filter(|header| *header != "-").map(|header| {
            let (key, value) = header.split_once('=').unwrap();
            std_host::serde::Header { key: key.to_owned(), value: Some(bytes(value)) }
        });
        Some(Self {
            name,
            base: BasePath::parse(base).unwrap(),
            topic,
            part: if *part == "key" { RecordPart::Key } else { RecordPart::Value },
            plain: bytes(plain),
            data: bytes(data),
            headers: headers.collect(),
            uri,
            blob: (*uri != "-").then(|| bytes(blob)),
        })
    }

    fn has(&self, word: &str) -> bool {
        self.name.split('-').any(|part| part == word)
    }

    /// The configuration that it was written with.
    fn config(&self) -> BakdataConfig {
        let class = |one: &BakdataIdGenerator| {
            one.class().rsplit('.').next().is_some_and(|class| self.has(class))
        };
        BakdataConfig {
            base_path: Some(self.base.clone()),
            use_headers: self.has("header"),
            id_generator: BakdataIdGenerator::ALL.into_iter().find(class).unwrap(),
            compression_type: Codec::ALL.into_iter().find(|one| self.has(one.name())).unwrap(),
            legacy_compression_header: true,
            ..config()
        }
    }

    fn key(&self) -> &'a str {
        self.uri.strip_prefix(self.base.directory()).unwrap()
    }
}

fn records() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/bakdata/records.tsv");
    std::fs::read_to_string(path).unwrap()
}

/// Every record that bakdata's classes wrote is read, also those that they cannot read.
#[test]
fn records_of_bakdata_are_read() {
    let (mut read, mut unreadable) = (0, 0);
    for line in records().lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let Some(record) = Record::parse(&fields) else { continue };
        let store = Arc::new(match &record.blob {
            Some(blob) => TestStore::with(record.key(), blob.clone()),
            None => TestStore::default(),
        });
        // A reader's own defaults are enough.
        let config = BakdataConfig { base_path: Some(record.base.clone()), ..Default::default() };
        for config in [config, record.config()] {
            let mut headers = record.headers.clone();
            let found = deserializer(&config, record.part, &store)
                .deserialize(record.topic, &mut headers, Some(&record.data))
                .unwrap_or_else(|error| panic!("{}: {error}", record.name));
            assert_eq!(found.as_ref(), Some(&record.plain), "{}", record.name);
            match record.part {
                RecordPart::Value => assert!(headers.is_empty(), "{}", record.name),
                // What the value may need.
                RecordPart::Key => assert!(
                    headers.iter().all(|header| header.key == OLD_COMPRESSION),
                    "{}",
                    record.name
                ),
            }
        }
        read += 1;
        unreadable += usize::from(record.has("unreadable"));
    }
    assert_eq!((read, unreadable), (44, 12));
}

/// The same bytes and headers are written, apart from the padding, which the id is made of.
#[test]
fn records_are_written_as_bakdata_writes_them() {
    for line in records().lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let Some(record) = Record::parse(&fields) else { continue };
        let (config, store) = (record.config(), Arc::new(TestStore::default()));
        let mut headers = Headers::new();
        let data = serializer(&config, record.part, &store)
            .serialize(record.topic, &mut headers, Some(&record.plain))
            .unwrap()
            .unwrap();
        let name = record.name;
        assert_eq!(headers, record.headers, "{name}");
        let Some(theirs) = &record.blob else {
            assert_eq!((data, store.blobs()), (record.data, Vec::new()), "{name}");
            continue;
        };
        let (key, ours) = store.blobs().pop().unwrap();
        let path = |key: &str| key.rsplit_once('/').unwrap().0.to_owned();
        assert_eq!(path(&key), path(record.key()), "{name}");
        assert!(data.ends_with(format!("{}{key}", record.base.directory()).as_bytes()), "{name}");
        assert_eq!(data.len(), record.data.len(), "{name}");
        match config.compression_type {
            Codec::None => {
                assert_eq!(&ours, theirs, "{name}");
                if config.id_generator != BakdataIdGenerator::RandomUuid {
                    assert_eq!((data, &*key), (record.data.clone(), record.key()), "{name}");
                }
            }
            // snap's encoder takes other matches than Google's.
            Codec::Snappy => assert!(ours.len() <= theirs.len(), "{name}"),
            _ => assert!(theirs.starts_with(&ours), "{name}"),
        }
    }
}

#[test]
fn ids_and_buckets_of_bakdata() {
    let (mut ids, mut buckets) = (0, 0);
    for line in records().lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["murmur", data, id] => {
                assert_eq!(BakdataIdGenerator::Murmur.id(&bytes(data)), id);
                ids += 1;
            }
            // With a port there is a host, but the URI that is written has none.
            ["bucket", base, java] => {
                let expected = java == "read" && !base.contains(":80");
                assert_eq!(BasePath::parse(base).is_ok(), expected, "{base}");
                buckets += 1;
            }
            _ => {}
        }
    }
    assert_eq!((ids, buckets), (49, 13));
}

/// Each of them written with every codec comes back. A file that is named in the environment
/// gets what was written, for bakdata's classes to read (`tests/crosscheck/bakdata/run`).
#[test]
fn what_is_written_with_every_codec() {
    let mut lines = String::new();
    for line in records().lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let Some(record) = Record::parse(&fields) else { continue };
        for codec in Codec::ALL {
            let config = BakdataConfig {
                compression_type: codec,
                use_headers: record.has("header") || codec != Codec::None,
                ..record.config()
            };
            let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
            let data = serializer(&config, record.part, &store)
                .serialize(record.topic, &mut headers, Some(&record.plain))
                .unwrap()
                .unwrap();
            let read = deserializer(&config, record.part, &store).deserialize(
                record.topic,
                &mut headers.clone(),
                Some(&data),
            );
            assert_eq!(read.unwrap().as_ref(), Some(&record.plain), "{} as {codec}", record.name);
            let headers = headers.iter().map(|header| {
                format!("{}={}", header.key, BASE64.encode(header.value.as_deref().unwrap()))
            });
            let headers = headers.collect::<Vec<_>>().join(",");
            let headers = if headers.is_empty() { "-" } else { &headers };
            let (uri, blob) = match store.blobs().pop() {
                Some((key, blob)) => {
                    (format!("{}{key}", record.base.directory()), BASE64.encode(blob))
                }
                None => ("-".to_owned(), "-".to_owned()),
            };
            let (part, plain) = (record.part.name(), BASE64.encode(&record.plain));
            let (name, topic, data) = (record.name, record.topic, BASE64.encode(data));
            writeln!(
                lines,
                "{name} as {codec}\t\t{topic}\t{part}\t{plain}\t{data}\t{headers}\t{uri}\t{blob}"
            )
            .unwrap();
        }
    }
    assert_eq!(lines.lines().count(), 44 * Codec::ALL.len());
    if let Some(path) = std::env::var_os("LOGSEG_BAKDATA_RECORDS") {
        std::fs::write(path, lines).unwrap();
    }
}

#[test]
fn the_threshold() {
    let config = BakdataConfig { max_byte_size: 1_000_000, ..config() };
    for (len, backed) in [(0, false), (999_999, false), (1_000_000, true), (1_000_001, true)] {
        for part in PARTS {
            for use_headers in [false, true] {
                let config = BakdataConfig { use_headers, ..config.clone() };
                let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
                let value = value(len);
                let data = serializer(&config, part, &store)
                    .serialize("topic", &mut headers, Some(&value))
                    .unwrap()
                    .unwrap();
                assert_eq!(store.blobs().len(), usize::from(backed), "{len}");
                assert_eq!(headers.len(), usize::from(use_headers));
                assert_eq!(data.len() < 200, backed || len == 0);
                let read = deserializer(&config, part, &store)
                    .deserialize("topic", &mut headers, Some(&data))
                    .unwrap();
                assert_eq!(read, Some(value));
                assert!(headers.is_empty());
            }
        }
    }
}

#[test]
fn null_is_null() {
    let config = BakdataConfig { max_byte_size: 0, ..config() };
    let store = Arc::new(TestStore::default());
    let before = headers(&[(MARKERS[0], b"\x01"), (MARKERS[1], b"\x01"), (COMPRESSION, b"\x01")]);
    for part in PARTS {
        let mut headers = before.clone();
        let written = serializer(&config, part, &store).serialize("topic", &mut headers, None);
        assert_eq!(written.unwrap(), None);
        let read = deserializer(&config, part, &store).deserialize("topic", &mut headers, None);
        assert_eq!(read.unwrap(), None);
        assert_eq!(headers, before);
    }
    assert!(store.blobs().is_empty() && store.asked().is_empty());
}

/// Which protocol is taken: the table of bakdata's pull request 42.
#[test]
fn protocols() {
    let store = Arc::new(TestStore::with("t/values/id", "large"));
    let uri = b"s3://bucket/pre/t/values/id";
    let flagged = [b"\x01", &uri[..]].concat();
    let name = MARKERS[1];
    for use_headers in [false, true] {
        for accept_no_headers in [false, true] {
            let config = BakdataConfig { use_headers, accept_no_headers, ..config() };
            let read = |of: &[(&str, &[u8])], data: &[u8]| read(&config, &store, of, data).0.ok();
            assert_eq!(read(&[(name, b"\x01")], uri), Some("large".into()));
            assert_eq!(read(&[(name, b"\0")], uri), Some(Bytes::from_static(uri)));
            // The last header counts, and its first byte.
            assert_eq!(read(&[(name, b"\0"), (name, b"\x01\0")], uri), Some("large".into()));
            // That of the key is not that of the value.
            let key = (MARKERS[0], &b"\0"[..]);
            if accept_no_headers {
                assert_eq!(read(&[key], &flagged), Some(flagged.clone().into()));
                assert_eq!(read(&[], b""), Some("".into()));
            } else {
                assert_eq!(read(&[key], &flagged), Some("large".into()));
                assert_eq!(read(&[], b"\0"), Some("".into()));
                assert_eq!(read(&[], b"\0\x01"), Some(Bytes::from_static(b"\x01")));
                assert_eq!(read(&[], b""), None);
            }
        }
    }
}

/// A record that is sent on has headers that are not its own any more.
#[test]
fn stale_headers_go() {
    for use_headers in [false, true] {
        let config = BakdataConfig { use_headers, ..config() };
        let store = Arc::new(TestStore::default());
        let mut headers = headers(&[
            ("other", b"x"),
            (OLD_COMPRESSION, b"\x04"),
            (COMPRESSION, b"\x04"),
            (MARKERS[1], b"\x01"),
            (MARKERS[1], b"\x01"),
        ]);
        let value = value(7);
        let data = serializer(&config, RecordPart::Value, &store)
            .serialize("topic", &mut headers, Some(&value))
            .unwrap();
        assert_eq!(headers.len(), 1 + usize::from(use_headers));
        let read = deserializer(&config, RecordPart::Value, &store)
            .deserialize("topic", &mut headers, data.as_ref())
            .unwrap();
        assert_eq!(read, Some(value));
        assert_eq!(headers.iter().map(|header| &*header.key).collect::<Vec<_>>(), ["other"]);
    }
}

/// The header of the compression stands for key and value.
#[test]
fn key_and_value() {
    for legacy_compression_header in [false, true] {
        for codec in Codec::ALL {
            for (key_len, value_len) in [(300, 300), (300, 7), (7, 300), (7, 7)] {
                let config = BakdataConfig {
                    compression_type: codec,
                    legacy_compression_header,
                    ..config()
                };
                let store = Arc::new(TestStore::default());
                // As if it had been read before.
                let mut headers = headers(&[(COMPRESSION, b"\x07")]);
                let plain = [value(key_len), value(value_len)];
                let [key, val] = [0, 1].map(|n| {
                    serializer(&config, PARTS[n], &store)
                        .serialize("topic", &mut headers, Some(&plain[n]))
                        .unwrap()
                        .unwrap()
                });
                let compressed = codec != Codec::None && key_len + value_len > 14;
                let name = if legacy_compression_header { OLD_COMPRESSION } else { COMPRESSION };
                let found = headers.last(name).map(|header| header.value.clone().unwrap());
                assert_eq!(found, compressed.then(|| Bytes::copy_from_slice(&[codec.id()])));
                assert_eq!(headers.len(), 2 + usize::from(compressed), "{codec}");
                for (n, data) in [key, val].iter().enumerate() {
                    let read = deserializer(&config, PARTS[n], &store)
                        .deserialize("topic", &mut headers, Some(data))
                        .unwrap();
                    assert_eq!(read.as_ref(), Some(&plain[n]), "{codec} {key_len} {value_len}");
                }
                assert!(headers.is_empty());
            }
        }
    }
}

/// What the header could not say of both is an error before anything is stored.
#[test]
fn key_and_value_compressed_otherwise() {
    let zstd = BakdataConfig { compression_type: Codec::Zstd, ..config() };
    let gzip = BakdataConfig { compression_type: Codec::Gzip, ..config() };
    let none = config();
    for (of_key, of_value, key, value_id) in [
        (&zstd, &gzip, Some(4), Some(1)),
        (&zstd, &none, Some(4), None),
        (&none, &zstd, None, Some(4)),
    ] {
        let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
        let plain = value(300);
        let write = |config: &BakdataConfig, part, headers: &mut Headers| {
            serializer(config, part, &store).serialize("topic", headers, Some(&plain))
        };
        write(of_key, RecordPart::Key, &mut headers).unwrap();
        let before = headers.clone();
        let error = write(of_value, RecordPart::Value, &mut headers).unwrap_err();
        let conflict = BakdataError::CompressionConflict { key, value: value_id };
        assert_eq!(error.cause(), Some(&conflict), "{error}");
        assert_eq!(store.blobs().len(), 1);
        assert_eq!(headers, before);
    }
}

/// Nothing is delivered, and the headers are as before.
#[test]
fn what_is_wrong_with_a_record() {
    let store = Arc::new(TestStore::with("t/values/id", "large"));
    let config = config();
    let uri = &b"s3://bucket/pre/t/values/id"[..];
    let (backed, inline) = ((MARKERS[1], &b"\x01"[..]), (MARKERS[1], &b"\0"[..]));
    let empty = |name| BakdataError::EmptyHeader(name);
    type Case<'a> = (&'a [(&'a str, &'a [u8])], &'a [u8], BakdataError);
    let cases: [Case<'_>; 9] = [
        (&[], b"", BakdataError::Empty),
        (&[], b"\x02x", BakdataError::Flag(2)),
        (&[(MARKERS[1], b"")], b"x", empty(MARKERS[1])),
        (&[(MARKERS[1], b"\xff")], b"x", BakdataError::Flag(255)),
        (&[backed], b"s3://\xff", BakdataError::NotUtf8(5)),
        (&[backed, (COMPRESSION, b"")], uri, empty(COMPRESSION)),
        (&[backed, (OLD_COMPRESSION, b"")], uri, empty(OLD_COMPRESSION)),
        (&[backed, (COMPRESSION, b"\x05")], uri, BakdataError::CompressionType(5)),
        (&[backed, (OLD_COMPRESSION, b"\x80")], uri, BakdataError::CompressionType(128)),
    ];
    for (of, data, expected) in cases {
        let (result, after) = read(&config, &store, of, data);
        let error = result.unwrap_err();
        assert_eq!(error.cause(), Some(&expected));
        assert_eq!(error.step(), "bakdata-large-message");
        assert_eq!(after, headers(of), "{error}");
    }
    assert!(store.asked().is_empty());
    // The compression is only that of a blob; the new name goes before the old one.
    let of = [inline, (COMPRESSION, &b"\x05"[..])];
    assert_eq!(read(&config, &store, &of, b"x").0.unwrap(), "x");
    let of = [backed, (COMPRESSION, &b"\0"[..]), (OLD_COMPRESSION, &b"\x04"[..])];
    assert_eq!(read(&config, &store, &of, uri).0.unwrap(), "large");
    let (result, _) = read(&config, &store, &[backed, (COMPRESSION, b"\x04")], uri);
    let error = result.unwrap_err();
    let error = error.cause::<logseg_core::Error>().unwrap();
    assert!(matches!(error.kind(), ErrorKind::Codec { codec: Codec::Zstd, .. }), "{error}");
    let (result, _) = read(&config, &store, &[backed], b"s3://bucket/pre/t/values/other");
    let error = result.unwrap_err();
    assert_eq!(error.cause::<BlobError>().map(BlobError::kind), Some(BlobErrorKind::NotFound));
}

#[test]
fn the_record_does_not_choose_the_store() {
    let store = Arc::new(TestStore::with("t/values/id", "large"));
    for uri in [
        "",
        "s3://other/pre/t/values/id",
        "s3://bucket/t/values/id",
        "s3://bucket/pre/../t/values/id",
        "s3://bucket/pre/t/values/%69d",
        "abs://bucket/pre/t/values/id",
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
    ] {
        let data = [b"\x01", uri.as_bytes()].concat();
        let error = read(&config(), &store, &[], &data).0.unwrap_err();
        let error = error.cause::<BlobError>().unwrap();
        assert_eq!((error.kind(), error.location()), (BlobErrorKind::NotAllowed, uri));
    }
    assert!(store.asked().is_empty());
    // A topic that has another name by now is none of that.
    let data = b"\x01s3://bucket/pre/t/values/id";
    assert_eq!(read(&config(), &store, &[], data).0.unwrap(), "large");
}

#[test]
fn without_a_store() {
    let config = BakdataConfig { use_headers: false, base_path: None, ..config() };
    let part = RecordPart::Value;
    let serializer = BakdataSerializer::new(config.clone(), part, None).unwrap();
    let deserializer = BakdataDeserializer::new(config, part, None);
    let headers = &mut Headers::new();
    let data = serializer.serialize("topic", headers, Some(&value(99))).unwrap();
    let read = deserializer.deserialize("topic", headers, data.as_ref()).unwrap();
    assert_eq!(read, Some(value(99)));
    let error = serializer.serialize("topic", headers, Some(&value(100))).unwrap_err();
    assert_eq!(error.cause(), Some(&BakdataError::NoStore));
    let data = Bytes::from_static(b"\x01s3://bucket/pre/t/values/id");
    let error = deserializer.deserialize("topic", headers, Some(&data)).unwrap_err();
    assert_eq!(error.cause(), Some(&BakdataError::NoStore));
    // And it is no topic that goes into a URI.
    let store = Arc::new(TestStore::default());
    let serializer = self::serializer(&self::config(), part, &store);
    let error = serializer.serialize("../x", headers, Some(&value(100))).unwrap_err();
    assert_eq!(error.cause(), Some(&BakdataError::Topic("../x".to_owned())));
    assert!(store.blobs().is_empty());
}

#[test]
fn contents_are_checked_where_the_id_allows_it() {
    use BakdataIdGenerator::{Murmur, RandomUuid, Sha256};
    for written_by in BakdataIdGenerator::ALL {
        for read_by in BakdataIdGenerator::ALL {
            for verify_ids in [false, true] {
                let config = BakdataConfig { id_generator: written_by, ..config() };
                let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
                let data = serializer(&config, RecordPart::Value, &store)
                    .serialize("topic", &mut headers, Some(&value(100)))
                    .unwrap();
                store.change(|blob| [blob, b"!"].concat());
                let config = BakdataConfig { id_generator: read_by, verify_ids, ..config };
                let read = deserializer(&config, RecordPart::Value, &store).deserialize(
                    "topic",
                    &mut headers,
                    data.as_ref(),
                );
                let told = match written_by {
                    Sha256 => verify_ids,
                    Murmur => verify_ids && read_by == Murmur,
                    RandomUuid => false,
                };
                let kind =
                    read.err().and_then(|error| error.cause::<BlobError>().map(BlobError::kind));
                assert_eq!(kind, told.then_some(BlobErrorKind::Mismatch));
            }
        }
    }
}

/// Zeros up to the size of the value or further are passed over, and nothing else is.
#[test]
fn padded_blobs() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let of = [(MARKERS[1], &b"\x01"[..]), (COMPRESSION, &[codec.id()][..])];
        let uri = b"s3://bucket/pre/t/values/id";
        // The second of them has two blocks of snappy and of lz4, the last ends in zeros.
        for plain in [value(300), value(100_000), Bytes::from(vec![0; 1000]), Bytes::new()] {
            let packed = CodecSerializer::new(CodecSpec::new(codec).unwrap())
                .serialize("t", &mut Headers::new(), Some(&plain))
                .unwrap()
                .unwrap();
            for padding in (0..20).chain([1000, 70_000]) {
                let blob = [&packed[..], &vec![0; padding]].concat();
                let store = Arc::new(TestStore::with("t/values/id", blob.clone()));
                let found = read(&config(), &store, &of, uri).0;
                assert_eq!(found.unwrap(), plain, "{codec} {} {padding}", plain.len());
                if matches!(codec, Codec::Snappy | Codec::Zstd) {
                    let blob = [&blob[..], b"!"].concat();
                    let store = Arc::new(TestStore::with("t/values/id", blob));
                    // Fewer than four bytes are no word of a length, and Kafka's reader ends.
                    if codec == Codec::Zstd || padding >= 3 {
                        assert!(read(&config(), &store, &of, uri).0.is_err(), "{codec} {padding}");
                    }
                }
            }
        }
    }
}

#[test]
fn limits() {
    let config = BakdataConfig { compression_type: Codec::Zstd, ..config() };
    let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
    let plain = Bytes::from(vec![7; 100_000]);
    let data = serializer(&config, RecordPart::Value, &store)
        .serialize("topic", &mut headers, Some(&plain))
        .unwrap();
    let blob = store.blobs()[0].1.len() as u64;
    let before = headers.clone();
    for (limit, kind) in [
        (100_000, None),
        (99_999, Some(ErrorKind::TooMuchOutput { limit: 99_999 })),
        (blob, Some(ErrorKind::TooMuchOutput { limit: blob })),
    ] {
        let config = BakdataConfig { max_blob_bytes: limit, ..config.clone() };
        let mut headers = before.clone();
        let read = deserializer(&config, RecordPart::Value, &store).deserialize(
            "topic",
            &mut headers,
            data.as_ref(),
        );
        match kind {
            None => assert_eq!(read.unwrap().as_ref(), Some(&plain)),
            Some(kind) => {
                let error = read.unwrap_err();
                assert_eq!(error.cause::<logseg_core::Error>().map(|e| e.kind()), Some(kind));
                assert_eq!(headers, before);
            }
        }
    }
    let config = BakdataConfig { max_blob_bytes: blob - 1, ..config };
    let error = deserializer(&config, RecordPart::Value, &store)
        .deserialize("topic", &mut headers, data.as_ref())
        .unwrap_err();
    assert_eq!(error.cause::<BlobError>().map(BlobError::kind), Some(BlobErrorKind::TooLarge));
}

#[test]
fn as_a_step() {
    let store = Arc::new(TestStore::default());
    let part = RecordPart::Value;
    let to = Composed::new(JsonSerializer).then(serializer(&config(), part, &store));
    let from = ComposedDeserializer::steps()
        .then(deserializer(&config(), part, &store))
        .last(JsonDeserializer);
    let value: Vec<u32> = (0..100).collect();
    let headers = &mut Headers::new();
    let data = to.serialize("topic", headers, Some(&value)).unwrap();
    assert!(data.as_ref().unwrap().starts_with(b"s3://bucket/pre/topic/values/"));
    let read: Option<Vec<u32>> = from.deserialize("topic", headers, data.as_ref()).unwrap();
    assert_eq!(read, Some(value));
}

/// In a store of its own kind, below a prefix.
#[test]
fn in_an_object_store() {
    let store = ObjectBlobStore::open(&BlobStoreConfig::at("memory:///some/where/")).unwrap();
    let store = Arc::new(store);
    for key in ["../x", "a/../../x", "", "a//b", "/a", "a?b", "%2e%2e/x"] {
        let error = store.put_at(key, Bytes::new()).unwrap_err();
        assert_eq!(error.kind(), BlobErrorKind::NotAllowed, "{key}");
    }
    let config = BakdataConfig { id_generator: BakdataIdGenerator::Sha256, ..config() };
    let part = RecordPart::Value;
    let keyed: Arc<dyn KeyedBlobStore> = Arc::clone(&store) as _;
    let to = BakdataSerializer::new(config.clone(), part, Some(Arc::clone(&keyed))).unwrap();
    let from = BakdataDeserializer::new(config, part, Some(keyed));
    let (value, mut headers) = (value(100), Headers::new());
    let data = to.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
    let id = BakdataIdGenerator::Sha256.id(&value);
    assert_eq!(data, format!("s3://bucket/pre/topic/values/{id}"));
    let location = format!("memory:///some/where/topic/values/{id}");
    assert_eq!(store.get(&location, 100).unwrap(), value);
    let read = from.deserialize("topic", &mut headers, Some(&data)).unwrap();
    assert_eq!(read, Some(value));
}

fn hostile_headers() -> impl Strategy<Value = Vec<(&'static str, Option<Vec<u8>>)>> {
    let names = vec![MARKERS[0], MARKERS[1], COMPRESSION, OLD_COMPRESSION, "other"];
    let value = prop::option::of(prop_oneof![
        prop::collection::vec(0..6u8, 0..2),
        prop::collection::vec(any::<u8>(), 0..4),
    ]);
    prop::collection::vec((prop::sample::select(names), value), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// No panic, no store of the record's, no more than the limit, and after an error the
    /// headers as before.
    #[test]
    fn hostile_records(
        of in hostile_headers(),
        flag in prop::option::of(0..3u8),
        uri in prop_oneof![
            Just("s3://bucket/pre/t/values/id".to_owned()),
            "s3://bucket/pre/[a-z/.%\\\\]{0,8}",
            "[ -~]{0,30}",
        ],
        tail in prop::collection::vec(any::<u8>(), 0..3),
        blob in prop::collection::vec(any::<u8>(), 0..300),
        packed in prop::sample::select(vec![0..5u8, 1..2, 4..5]),
        accept_no_headers in any::<bool>(),
        part in prop::sample::select(PARTS.to_vec()),
    ) {
        let codec = Codec::from_id(packed.start).unwrap_or(Codec::None);
        let blob = Bytes::from(blob);
        let blob = match CodecSpec::new(codec) {
            Ok(spec) => CodecSerializer::new(spec)
                .serialize("t", &mut Headers::new(), Some(&blob)).unwrap().unwrap(),
            Err(_) => blob,
        };
        let store = Arc::new(TestStore::with("t/values/id", blob));
        let config = BakdataConfig { accept_no_headers, max_blob_bytes: 200, ..config() };
        let mut before = Headers::new();
        for (name, value) in of {
            before.add(name, value.map(Bytes::from));
        }
        let mut data: Vec<u8> = flag.into_iter().collect();
        data.extend_from_slice(uri.as_bytes());
        data.extend_from_slice(&tail);
        let mut headers = before.clone();
        let data = Bytes::from(data);
        match deserializer(&config, part, &store).deserialize("t", &mut headers, Some(&data)) {
            Ok(value) => {
                let largest = data.len().max(200);
                prop_assert!(value.unwrap().len() <= largest);
                prop_assert!(headers.last(marker(part)).is_none());
            }
            Err(_) => prop_assert_eq!(headers, before),
        }
        for key in store.asked() {
            let known: Vec<_> = key.split('/').collect();
            prop_assert!(!known.iter().any(|segment| ["", ".", ".."].contains(segment)), "{}", key);
        }
    }

    /// Any configuration of a writer, and a reader that knows the base path alone.
    #[test]
    fn there_and_back(
        len in prop_oneof![0..200usize, 0..100_000usize],
        base in prop::sample::select(vec!["s3://b", "abs://b/", "gs://b/x/y/", "s3://b/x"]),
        use_headers in any::<bool>(),
        codec in prop::sample::select(Codec::ALL.to_vec()),
        id_generator in prop::sample::select(BakdataIdGenerator::ALL.to_vec()),
        legacy_compression_header in any::<bool>(),
        part in prop::sample::select(PARTS.to_vec()),
    ) {
        let base_path = BasePath::parse(base).ok();
        let config = BakdataConfig {
            base_path: base_path.clone(),
            use_headers,
            compression_type: if use_headers { codec } else { Codec::None },
            id_generator,
            legacy_compression_header,
            ..config()
        };
        let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
        let value = value(len);
        let data = serializer(&config, part, &store)
            .serialize("topic", &mut headers, Some(&value)).unwrap();
        let reader = BakdataConfig { base_path, ..BakdataConfig::default() };
        let read = deserializer(&reader, part, &store)
            .deserialize("topic", &mut headers, data.as_ref()).unwrap();
        prop_assert_eq!(read, Some(value));
    }
}

/// Keys as they are in a client's configuration.
#[test]
fn from_a_map() {
    let map = BTreeMap::from([
        ("large.message.max.byte.size", "10"),
        ("large.message.base.path", "abs://box/"),
        ("large.message.use.headers", "true"),
        ("large.message.compression.type", "gzip"),
        ("large.message.id.generator", "com.bakdata.kafka.Sha256HashIdGenerator"),
    ]);
    let config = BakdataConfig::from_map(map).unwrap();
    let (store, mut headers) = (Arc::new(TestStore::default()), Headers::new());
    let data = serializer(&config, RecordPart::Key, &store)
        .serialize("topic", &mut headers, Some(&value(10)))
        .unwrap()
        .unwrap();
    let (key, blob) = store.blobs().pop().unwrap();
    assert_eq!(key, format!("topic/keys/{}", BakdataIdGenerator::Sha256.id(&blob)));
    assert_eq!(data, format!("abs://box/{key}"));
    assert_eq!(blob[..3], *b"\x1f\x8b\x08");
}
