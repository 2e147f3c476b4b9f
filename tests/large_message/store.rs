//! What stores do, and serializers with them.

use std::sync::Arc;

use bytes::Bytes;
use std_host::large_message::{
    BlobError, BlobErrorKind, BlobIdGenerator, BlobStore, BlobStoreConfig, DeserializerConfig,
    FormatError, JsonFormatter, KEY_HEADER, LargeMessageDeserializer, LargeMessageFormatter,
    LargeMessageSerializer, ObjectBlobStore, Reference, SerializerConfig, VALUE_HEADER,
};
use std_host::serde::{Deserializer, Headers, SerdeError, Serializer};

use crate::Counted;

fn open(url: &str) -> ObjectBlobStore {
    ObjectBlobStore::open(&BlobStoreConfig::at(url)).unwrap()
}

fn each_store(test: impl Fn(&ObjectBlobStore)) {
    let folder = tempfile::tempdir().unwrap();
    // Not there before the first blob, and with an escape in its URL.
    test(&open(&format!("file://{}/some%20folder/deep", folder.path().display())));
    test(&open("memory:///pre/fix"));
}

#[test]
fn put_head_list_delete() {
    each_store(|store| {
        let mut locations: Vec<String> = ["one", "two", "two"]
            .iter()
            .zip([0, 1, 100_000])
            .map(|(topic, size)| store.put(topic, Bytes::from(vec![7; size])).unwrap())
            .collect();
        let other = open("memory:///pre/fix");
        for (location, size) in locations.iter().zip([0, 1, 100_000]) {
            assert!(location.starts_with(&format!("{}/", store.url())), "{location}");
            let blob = store.head(location).unwrap();
            assert_eq!((&blob.location, blob.size), (location, size));
            assert!(blob.last_modified.elapsed().is_ok_and(|age| age.as_secs() < 600));
            assert_eq!(store.get(location, size).unwrap(), vec![7; size as usize]);
            if size > 0 {
                let error = store.get(location, size - 1).unwrap_err();
                assert_eq!(error.kind(), BlobErrorKind::TooLarge);
            }
            // Another store in memory has other blobs.
            assert!(other.get(location, size).is_err());
        }
        let mut listed: Vec<String> = store.list().map(|blob| blob.unwrap().location).collect();
        listed.sort();
        locations.sort();
        assert_eq!(listed, locations);
        store.delete(&locations[0]).unwrap();
        assert_eq!(store.get(&locations[0], 9).unwrap_err().kind(), BlobErrorKind::NotFound);
        assert_eq!(store.head(&locations[0]).unwrap_err().kind(), BlobErrorKind::NotFound);
        assert_eq!(store.list().count(), 2);
    });
}

/// More blobs than a page has.
#[test]
fn long_lists() {
    let store = open("memory:///");
    for topic in 0..2500 {
        store.put(&format!("topic-{topic}"), Bytes::new()).unwrap();
    }
    assert_eq!(store.list().filter(Result::is_ok).count(), 2500);
    assert_eq!(store.list().take(3).count(), 3);
}

/// A directory that is not there says nothing of any blob: it may not be mounted.
#[test]
fn missing_directory() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&format!("file://{}/none", folder.path().display()));
    let error = store.get(&format!("{}/topic/id", store.url()), 9).unwrap_err();
    assert_eq!(error.kind(), BlobErrorKind::Other, "{error}");
    assert!(error.to_string().contains("directory"), "{error}");
    assert!(store.list().next().unwrap().is_err());
    assert!(!folder.path().join("none").exists());
    // Once it is there, it does.
    store.put("topic", Bytes::new()).unwrap();
    let error = store.get(&format!("{}/topic/id", store.url()), 9).unwrap_err();
    assert_eq!(error.kind(), BlobErrorKind::NotFound);
}

/// The calls block, but work inside of somebody's runtime, and so does the end of a store.
#[test]
fn inside_another_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&format!("file://{}/store", folder.path().display()));
        let location = store.put("topic", Bytes::from_static(b"value")).unwrap();
        assert_eq!(store.get(&location, 5).unwrap(), "value");
        assert_eq!(store.list().count(), 1);
        drop(store);
    });
}

#[test]
fn same_content_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = BlobStoreConfig::at(format!("file://{}/store", folder.path().display()));
    config.blob_id_generator = "sha256".into();
    let store = ObjectBlobStore::open(&config).unwrap();
    let first = store.put("topic", Bytes::from_static(b"abc")).unwrap();
    assert_eq!(store.put("topic", Bytes::from_static(b"abc")).unwrap(), first);
    assert!(
        first.ends_with("/topic/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        "{first}"
    );
    assert_eq!(store.list().count(), 1);
    store.put("topic", Bytes::from_static(b"abd")).unwrap();
    assert_eq!(store.list().count(), 2);
}

/// Ids of one's own are fine as long as they stay one segment of a path.
#[test]
fn own_ids() {
    #[derive(Debug)]
    struct Fixed(&'static str);
    impl BlobIdGenerator for Fixed {
        fn id(&self, _: &[u8]) -> String {
            self.0.into()
        }
        fn name(&self) -> &str {
            "fixed"
        }
    }
    let with = |id| open("memory:///").with_id_generator(Box::new(Fixed(id)));
    assert_eq!(with("a=1").put("topic", Bytes::new()).unwrap(), "memory:///topic/a=1");
    assert_eq!(with("a").blob_id_generator(), Some("fixed"));
    for id in ["", "..", "../other/a", "a/b", "%2e%2e", "a b"] {
        let error = with(id).put("topic", Bytes::new()).unwrap_err();
        assert_eq!(error.kind(), BlobErrorKind::NotAllowed, "{id:?}");
    }
}

/// Producer and consumer with one store in memory, and values of 10 bytes or more in it.
fn pair(
    change: impl FnOnce(&mut DeserializerConfig),
) -> (Arc<Counted>, LargeMessageSerializer, LargeMessageDeserializer) {
    let store = Counted::new("memory:///");
    let config = BlobStoreConfig::new("object-store");
    let writing = SerializerConfig { threshold_bytes: 10, ..SerializerConfig::new(config.clone()) };
    let mut reading = DeserializerConfig::new(config);
    change(&mut reading);
    let serializer = LargeMessageSerializer::new(writing, store.clone()).unwrap();
    let deserializer = LargeMessageDeserializer::new(reading, store.clone()).unwrap();
    (store, serializer, deserializer)
}

fn kind(error: &SerdeError) -> BlobErrorKind {
    assert_eq!(error.step(), "large-message");
    error.cause::<BlobError>().unwrap_or_else(|| panic!("{error}")).kind()
}

fn trace() -> Headers {
    let mut headers = Headers::new();
    headers.add("trace", Some(Bytes::from_static(b"1")));
    headers.add("trace", None);
    headers
}

#[test]
fn headers_tell_and_go() {
    let (_, serializer, deserializer) = pair(|_| {});
    for (size, marked) in [(0, false), (9, false), (10, true), (11, true)] {
        let value = Bytes::from(vec![b'{'; size]);
        // What a consumer might have left on a record that is produced again.
        let mut headers = trace();
        for stale in [Some(Bytes::from_static(&[1])), None] {
            headers.add(VALUE_HEADER, stale);
        }
        let sent = serializer.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
        assert_eq!(headers.len(), 2 + usize::from(marked));
        assert_eq!(headers.last(VALUE_HEADER).is_some(), marked);
        assert_eq!(sent == value, !marked);
        let got = deserializer.deserialize("topic", &mut headers, Some(&sent)).unwrap();
        assert_eq!(got.unwrap(), value);
        assert_eq!(headers, trace());
    }
    // Null leaves even those alone.
    let mut headers = trace();
    headers.add(VALUE_HEADER, Some(Bytes::from_static(&[1])));
    let before = headers.clone();
    assert_eq!(serializer.serialize("topic", &mut headers, None).unwrap(), None);
    assert_eq!(headers, before);
}

#[test]
fn keys_have_a_header_of_their_own() {
    let (_, values, read_values) = pair(|_| {});
    let (_, serializer, deserializer) = pair(|_| {});
    let (keys, read_keys) = (serializer.for_keys(), deserializer.for_keys());
    let (key, value) = (Bytes::from(vec![1; 20]), Bytes::from_static(b"small"));
    let mut headers = Headers::new();
    let sent_key = keys.serialize("topic", &mut headers, Some(&key)).unwrap().unwrap();
    let sent_value = values.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
    assert!(headers.last(KEY_HEADER).is_some() && headers.last(VALUE_HEADER).is_none());
    let got = read_values.deserialize("topic", &mut headers, Some(&sent_value)).unwrap();
    assert_eq!(got.unwrap(), value);
    let got = read_keys.deserialize("topic", &mut headers, Some(&sent_key)).unwrap();
    assert_eq!(got.unwrap(), key);
    assert!(headers.is_empty());
}

/// Without the header a value is what it is, even if it looks like a reference.
#[test]
fn sniffing_only_when_asked_for() {
    let value = Bytes::from(vec![1; 20]);
    for sniff in [false, true] {
        let (store, serializer, deserializer) = pair(|config| config.sniff_references = sniff);
        let mut none = Headers::new();
        let sent = serializer.serialize("topic", &mut none, Some(&value)).unwrap().unwrap();
        store.calls();
        let mut none = Headers::new();
        let got = deserializer.deserialize("topic", &mut none, Some(&sent)).unwrap().unwrap();
        assert_eq!(got, if sniff { value.clone() } else { sent });
        assert_eq!(store.calls(), usize::from(sniff));
        for ordinary in [&b"{}"[..], b"", b"{\"full-blob-path\":\"memory:///topic/id\"}", b"{\xff}"]
        {
            let ordinary = Bytes::from_static(ordinary);
            let got = deserializer.deserialize("topic", &mut none, Some(&ordinary)).unwrap();
            assert_eq!((got.unwrap(), store.calls()), (ordinary, 0));
        }
    }
}

#[test]
fn bad_references() {
    let (store, _, deserializer) = pair(|config| {
        config.skip_not_found_error = true;
        config.max_blob_bytes = 1000;
    });
    let at = store.store.put("topic", Bytes::from(vec![0; 2000])).unwrap();
    let mut marked = Headers::new();
    marked.add(VALUE_HEADER, Some(Bytes::from_static(&[1])));
    let mut read = |reference: &Reference| {
        let reference = JsonFormatter.format(reference);
        deserializer.deserialize("topic", &mut marked, Some(&reference)).unwrap_err()
    };
    let to = |full_blob_path: &str, size| Reference {
        full_blob_path: full_blob_path.into(),
        size,
        ..Reference::default()
    };
    // Too large by its own words: nobody is asked. By the store's: without holding it.
    assert_eq!(kind(&read(&to(&at, Some(1001)))), BlobErrorKind::TooLarge);
    assert_eq!(store.calls(), 0);
    assert_eq!(kind(&read(&to(&at, None))), BlobErrorKind::TooLarge);
    let error = read(&to(&at, Some(999)));
    assert_eq!(kind(&error), BlobErrorKind::Mismatch);
    assert!(error.to_string().contains("999") && error.to_string().contains("2000"), "{error}");
    let small = store.store.put("topic", Bytes::from(vec![0; 20])).unwrap();
    let error = read(&to(&small, Some(21)));
    assert_eq!(kind(&error), BlobErrorKind::Mismatch);
    assert!(error.to_string().contains("21 bytes, the blob has 20"), "{error}");
    // Skipping is for what the store says is not there, not for what it may not be asked.
    assert_eq!(kind(&read(&to("file:///etc/passwd", None))), BlobErrorKind::NotAllowed);
    assert_eq!(kind(&read(&to("memory:///../x", None))), BlobErrorKind::NotAllowed);

    // Neither the class names nor other members choose anything.
    let reference = Reference {
        blob_store_class: Some("com.example.Evil".into()),
        blob_id_generator_class: Some("x".into()),
        large_message_formatter_class: Some("y".into()),
        ..to(&small, Some(20))
    };
    let reference = JsonFormatter.format(&reference);
    let mut headers = marked.clone();
    let got = deserializer.deserialize("other", &mut headers, Some(&reference)).unwrap();
    assert_eq!(got.unwrap(), vec![0; 20]);

    // A header of another version, and a marked value that is no reference.
    for (version, value) in [(Some(&[2][..]), &reference), (None, &reference)] {
        let mut headers = Headers::new();
        headers.add(VALUE_HEADER, version.map(Bytes::copy_from_slice));
        assert!(deserializer.deserialize("topic", &mut headers, Some(value)).is_err());
        assert_eq!(headers.len(), 1);
    }
    let text = Bytes::from_static(b"plain text");
    let error = deserializer.deserialize("topic", &mut marked, Some(&text)).unwrap_err();
    assert!(error.to_string().contains("not a reference"), "{error}");
}

#[test]
fn what_is_written() {
    let (_, serializer, _) = pair(|_| {});
    let value = Bytes::from_static(b"0123456789");
    let sent = serializer.serialize("topic", &mut Headers::new(), Some(&value)).unwrap().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&sent).unwrap();
    let members = json.as_object().unwrap();
    assert_eq!(members.len(), 6);
    for (name, want) in [
        ("blob-store-class", "object-store"),
        ("blob-id-generator-class", "uuid"),
        ("large-message-formatter-class", "json"),
        ("sha256", "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"),
    ] {
        assert_eq!(members[name], want);
    }
    assert_eq!(members["size"], 10);
    assert!(members["full-blob-path"].as_str().unwrap().starts_with("memory:///topic/"));
}

/// What no consumer with these limits could read is not produced.
#[test]
fn too_large_to_store() {
    let store = Counted::new("memory:///");
    let mut config = SerializerConfig::new(BlobStoreConfig::new("object-store"));
    (config.threshold_bytes, config.max_blob_bytes) = (10, 20);
    let serializer = LargeMessageSerializer::new(config, store.clone()).unwrap();
    let mut headers = Headers::new();
    let value = Bytes::from(vec![0; 21]);
    let error = serializer.serialize("topic", &mut headers, Some(&value)).unwrap_err();
    assert_eq!(kind(&error), BlobErrorKind::TooLarge);
    assert_eq!((store.calls(), headers.len()), (0, 0));
}

/// The location alone, behind an arrow.
#[derive(Debug)]
struct Arrow;

impl LargeMessageFormatter for Arrow {
    fn format(&self, reference: &Reference) -> Bytes {
        format!("-> {}", reference.full_blob_path).into()
    }

    fn parse(&self, data: &[u8]) -> Result<Reference, FormatError> {
        let text = std::str::from_utf8(data).ok().and_then(|text| text.strip_prefix("-> "));
        let full_blob_path = text.ok_or_else(|| FormatError::new("no arrow"))?.to_owned();
        Ok(Reference { full_blob_path, ..Reference::default() })
    }

    fn recognizes(&self, data: &[u8]) -> bool {
        self.parse(data).is_ok()
    }

    fn name(&self) -> &str {
        "arrow"
    }
}

#[test]
fn a_formatter_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = BlobStoreConfig::at(format!("file://{}", folder.path().display()));
    let serializer = LargeMessageSerializer::open(SerializerConfig {
        threshold_bytes: 10,
        ..SerializerConfig::new(config.clone())
    });
    let serializer = serializer.unwrap().with_formatter(Box::new(Arrow));
    let deserializer = LargeMessageDeserializer::open(DeserializerConfig::new(config));
    let deserializer = deserializer.unwrap().with_formatter(Box::new(Arrow));
    let (value, mut headers) = (Bytes::from(vec![7; 1000]), Headers::new());
    let sent = serializer.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
    assert!(sent.starts_with(b"-> file:///"), "{sent:?}");
    let back = deserializer.deserialize("topic", &mut headers.clone(), Some(&sent)).unwrap();
    assert_eq!(back, Some(value));
    let other = Bytes::from_static(b"{}");
    let error = deserializer.deserialize("topic", &mut headers, Some(&other)).unwrap_err();
    assert!(error.cause::<FormatError>().is_some(), "{error}");
}
