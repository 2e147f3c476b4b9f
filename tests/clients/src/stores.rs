//! What is asked of every store, by a configuration.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Instant;

use bytes::Bytes;
use std_host::large_message::config::BLOB_ID_GENERATOR;
use std_host::large_message::{
    BlobError, BlobErrorKind, BlobStore, DeserializerConfig, JsonFormatter,
    LargeMessageDeserializer, LargeMessageFormatter, LargeMessageSerializer, ObjectBlobStore,
    SerializerConfig, VALUE_HEADER,
};
use std_host::serde::{Deserializer, Headers, SerdeError, Serializer};

/// Keys and values, as of a client.
pub type Config = BTreeMap<String, String>;

/// `config` with `more`.
#[must_use]
pub fn with(config: &Config, more: &[(&str, &str)]) -> Config {
    let mut config = config.clone();
    config.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    config
}

/// `config` with three attempts that follow soon.
#[must_use]
pub fn without_network(config: &Config) -> Config {
    with(
        config,
        &[
            ("large.message.blob.store.retry.count", "2"),
            ("large.message.blob.store.retry.delay.backoff.ms", "10"),
        ],
    )
}

/// A serializer of it.
pub fn serializer(config: &Config) -> LargeMessageSerializer {
    let config = SerializerConfig::from_map(config).expect("a configuration");
    LargeMessageSerializer::open(config).expect("a store")
}

/// A deserializer of it.
pub fn deserializer(config: &Config) -> LargeMessageDeserializer {
    let config = DeserializerConfig::from_map(config).expect("a configuration");
    LargeMessageDeserializer::open(config).expect("a store")
}

/// The store of it.
pub fn store(config: &Config) -> ObjectBlobStore {
    let config = SerializerConfig::from_map(config).expect("a configuration");
    ObjectBlobStore::open(&config.store).expect("a store")
}

/// `size` bytes that no codec makes much less of.
#[must_use]
pub fn payload(size: usize) -> Bytes {
    let mut state = size as u64 | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> =
        std::iter::repeat_with(step).take(size.div_ceil(8)).flatten().collect();
    bytes.truncate(size);
    bytes.into()
}

/// What a step failed with.
pub fn failure<T: Debug>(result: Result<T, SerdeError>) -> (BlobErrorKind, String) {
    let error = result.expect_err("an error");
    let cause = error.cause::<BlobError>().expect("an error of the store");
    (cause.kind(), error.to_string())
}

/// Values of `sizes` through serializer and deserializer, then everything else that a store
/// must do. The store has to be empty, and is in the end.
pub fn round_trips(name: &str, config: &Config, threshold: usize, sizes: &[usize]) {
    let config = with(config, &[("large.message.threshold.bytes", &threshold.to_string())]);
    let (serializer, deserializer, store) =
        (serializer(&config), deserializer(&config), store(&config));
    let list = || {
        let blobs = store.list().collect::<Result<Vec<_>, _>>().expect("a list");
        let mut sizes: Vec<u64> = blobs.iter().map(|blob| blob.size).collect();
        sizes.sort_unstable();
        (blobs, sizes)
    };
    assert_eq!(list().1, [0; 0], "{name} must be empty");

    for &size in sizes {
        let (value, mut headers, start) = (payload(size), Headers::new(), Instant::now());
        let sent = serializer.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
        let stored = start.elapsed();
        assert_eq!(headers.last(VALUE_HEADER).is_some(), size >= threshold, "{size}");
        if size < threshold {
            assert_eq!(sent, value);
        } else {
            let reference = JsonFormatter.parse(&sent).expect("a reference");
            let blob = store.head(&reference.full_blob_path).expect("a blob");
            assert_eq!((blob.size, reference.size), (size as u64, Some(size as u64)));
            assert_eq!(blob.location, reference.full_blob_path);
        }
        let received = deserializer.deserialize("topic", &mut headers, Some(&sent)).unwrap();
        assert!(received == Some(value), "{name}: {size} bytes do not come back as they were");
        assert!(headers.is_empty());
        crate::tell(&format!(
            "{name}: {size} bytes stored and read, {stored:.1?} + {:.1?}",
            start.elapsed() - stored
        ));
    }
    let (blobs, stored) = list();
    let mut large: Vec<u64> =
        sizes.iter().filter(|size| **size >= threshold).map(|size| *size as u64).collect();
    large.sort_unstable();
    assert_eq!(stored, large);
    for blob in &blobs {
        store.delete(&blob.location).expect("to delete a blob");
    }
    assert_eq!(list().1, [0; 0]);

    // The same content is stored once.
    let once = self::serializer(&with(&config, &[(BLOB_ID_GENERATOR, "sha256")]));
    let (value, mut headers) = (payload(threshold), Headers::new());
    let mut put = || once.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
    let (first, second) = (put(), put());
    assert_eq!(first, second);
    assert_eq!(list().1, [threshold as u64]);

    // Not there is an error, or empty if asked for; null never asks.
    let location = JsonFormatter.parse(&first).expect("a reference").full_blob_path;
    store.delete(&location).expect("to delete a blob");
    let marked = headers.clone();
    let (kind, text) = failure(deserializer.deserialize("topic", &mut headers, Some(&first)));
    assert_eq!(kind, BlobErrorKind::NotFound, "{name}: {text}");
    assert_eq!(headers, marked);
    assert_eq!(store.head(&location).unwrap_err().kind(), BlobErrorKind::NotFound);
    let skipping =
        self::deserializer(&with(&config, &[("large.message.skip.not.found.error", "true")]));
    let skipped = skipping.deserialize("topic", &mut headers, Some(&first)).unwrap();
    assert_eq!(skipped, Some(Bytes::new()));
    assert_eq!(serializer.serialize("topic", &mut headers, None).unwrap(), None);
    assert_eq!(deserializer.deserialize("topic", &mut headers, None).unwrap(), None);

    // Another blob in its place is told by size, and by digest if the size is the same.
    for (other, word) in [(payload(threshold + 1), "bytes"), (vec![0; threshold].into(), "sha256")]
    {
        let put = store_as(&config, &other);
        let mut reference = JsonFormatter.parse(&first).expect("a reference");
        reference.full_blob_path = put.clone();
        let mut headers = marked.clone();
        let data = JsonFormatter.format(&reference);
        let (kind, text) = failure(deserializer.deserialize("topic", &mut headers, Some(&data)));
        assert_eq!(kind, BlobErrorKind::Mismatch, "{name}: {text}");
        assert!(text.contains(word), "{text}");
        store.delete(&put).expect("to delete a blob");
    }
}

fn store_as(config: &Config, data: &Bytes) -> String {
    store(config).put("topic", data.clone()).expect("to store a blob")
}
