//! Cases 180 and 182, step by step.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use serde_json::Value;
use std_host::large_message::{
    BlobError, BlobErrorKind, BlobStore, BlobStoreConfig, DeserializerConfig,
    LargeMessageDeserializer, LargeMessageSerializer, ObjectBlobStore, SerializerConfig,
    VALUE_HEADER,
};
use std_host::serde::{Deserializer, Headers, Serializer};

use crate::Counted;

fn case(name: &str) -> (Value, Value) {
    let read = |file: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/cases");
        serde_json::from_slice(&fs::read(folder.join(name).join(file)).unwrap()).unwrap()
    };
    (read("input.json"), read("expect.json"))
}

/// The keys and values of a case, and the store that it leaves out.
fn configs(of: &Value) -> HashMap<String, String> {
    let mut map: HashMap<String, String> =
        [("large.message.blob.store.class".into(), "object-store".into())].into();
    map.extend(of.as_object().unwrap().iter().map(|(key, value)| {
        (key.clone(), value.as_str().map_or_else(|| value.to_string(), Into::into))
    }));
    map
}

fn unhex(text: &str) -> Bytes {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[test]
fn case_180_threshold_null_empty() {
    let (input, expect) = case("180-claim-threshold-null-empty");
    let store = Counted::new("memory:///");
    let map = configs(&input["config"]);
    let serializer =
        LargeMessageSerializer::new(SerializerConfig::from_map(&map).unwrap(), store.clone())
            .unwrap();
    let deserializer =
        LargeMessageDeserializer::new(DeserializerConfig::from_map(&map).unwrap(), store.clone())
            .unwrap();
    let steps = input["steps"].as_array().unwrap();
    let expects = expect["steps_expect"].as_array().unwrap();
    assert_eq!(steps.len(), expects.len());
    for (step, expect) in steps.iter().zip(expects) {
        let topic = step["topic"].as_str().unwrap();
        let value = match (step["value_hex"].as_str(), step["value_len"].as_u64()) {
            (Some(hex), _) => Some(unhex(hex)),
            (None, Some(length)) => {
                let fill = step["fill"].as_str().unwrap().bytes().cycle();
                Some(fill.take(length as usize).collect())
            }
            (None, None) => None,
        };
        let mut headers = Headers::new();
        let sent = serializer.serialize(topic, &mut headers, value.as_ref()).unwrap();
        // Of as many bytes as the threshold: to the store, as documented.
        let ops = expect["store_ops"].as_u64().unwrap_or(1);
        assert_eq!(store.calls() as u64, ops, "{step}");
        assert_eq!(headers.is_empty(), ops == 0, "{step}");
        if let Some(length) = expect["stored_len"].as_u64() {
            let reference: Value = serde_json::from_slice(sent.as_ref().unwrap()).unwrap();
            let location = reference["full-blob-path"].as_str().unwrap();
            assert_eq!(store.store.head(location).unwrap().size, length);
        }
        let received = deserializer.deserialize(topic, &mut headers, sent.as_ref()).unwrap();
        assert_eq!(store.calls() as u64, ops, "{step}");
        assert_eq!(received, value, "{step}");
        assert!(headers.is_empty());
        assert_eq!(expect["roundtrip"] == "identical", value.is_some());
    }
    // Null, whatever the headers say.
    let mut headers = Headers::new();
    headers.add(VALUE_HEADER, Some(Bytes::from_static(&[1])));
    assert_eq!(deserializer.deserialize("topic-a", &mut headers, None).unwrap(), None);
    assert_eq!((headers.len(), store.calls()), (1, 0));
}

/// A store in memory with locations that time out.
struct Scripted {
    store: ObjectBlobStore,
    fails: Vec<String>,
}

impl BlobStore for Scripted {
    fn put(&self, topic: &str, data: Bytes) -> Result<String, BlobError> {
        self.store.put(topic, data)
    }

    fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError> {
        if self.fails.iter().any(|fails| fails == location) {
            return Err(BlobError::new(BlobErrorKind::Timeout, location, "no answer in time"));
        }
        self.store.get(location, limit)
    }

    fn name(&self) -> &str {
        self.store.name()
    }
}

#[test]
fn case_182_not_found_and_skip() {
    let (input, expect) = case("182-claim-not-found-and-skip");
    let steps = input["steps"].as_array().unwrap();
    let expects = expect["steps_expect"].as_array().unwrap();
    assert_eq!(steps.len(), expects.len());
    for (step, expect) in steps.iter().zip(expects) {
        let inner = InMemory::new();
        let mut fails = Vec::new();
        for (location, blob) in step["store"].as_object().unwrap() {
            match blob["hex"].as_str() {
                None => fails.push(location.clone()),
                Some(hex) => {
                    let object = location.strip_prefix("mem://bucket/").unwrap().into();
                    let put = inner.put(&object, unhex(hex).into());
                    futures_util::FutureExt::now_or_never(put).unwrap().unwrap();
                }
            }
        }
        let config = BlobStoreConfig::new("memory");
        let store = ObjectBlobStore::over(Arc::new(inner), "mem://bucket", &config).unwrap();
        let deserializer = LargeMessageDeserializer::new(
            DeserializerConfig::from_map(configs(&step["config"])).unwrap(),
            Arc::new(Scripted { store, fails }),
        )
        .unwrap();
        let mut headers = Headers::new();
        headers.add(VALUE_HEADER, Some(Bytes::from_static(&[1])));
        let reference = Bytes::from(step["reference"].to_string());
        match deserializer.deserialize("topic-a", &mut headers, Some(&reference)) {
            Ok(value) => {
                assert_eq!(value.unwrap(), unhex(expect["result_hex"].as_str().unwrap()), "{step}");
            }
            Err(error) => {
                let kind = error.cause::<BlobError>().unwrap().kind();
                assert_eq!(kind.name(), expect["error"].as_str().unwrap(), "{step}: {error}");
                let part = expect["message_contains"].as_str().unwrap_or_default();
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    }
}
