//! Every fault of a store × what is promised for it, with the KIP's defaults and in time that
//! passes by itself: an hour of waiting takes no longer than its work.

mod fault;
#[cfg(feature = "s3")]
mod s3;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt};

use self::fault::{Fault, FaultStore};
use super::object::Core;
use super::*;
use crate::serde::{Deserializer, Serializer};

/// A store over another one, whose waiting takes no time but is added up.
struct InNoTime {
    core: Core,
    ids: Box<dyn BlobIdGenerator>,
    passed: Mutex<Duration>,
}

impl InNoTime {
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let start = tokio::time::Instant::now();
            let end = future.await;
            *self.passed.lock().unwrap() = start.elapsed();
            end
        })
    }
}

impl BlobStore for InNoTime {
    fn put(&self, topic: &str, data: Bytes) -> Result<String, BlobError> {
        let location = self.core.locate(topic, &self.ids.id(&data))?;
        self.run(self.core.put(&location, data))?;
        Ok(location)
    }

    fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError> {
        self.run(self.core.get(location, limit))
    }

    fn name(&self) -> &str {
        "in-no-time"
    }
}

/// Producer and consumer with one faulty store.
struct Bench {
    faults: Arc<FaultStore>,
    store: Arc<InNoTime>,
    serializer: LargeMessageSerializer,
    deserializer: LargeMessageDeserializer,
    worst_case: Duration,
}

impl Bench {
    fn new(change: impl FnOnce(&mut BlobStoreConfig, &mut DeserializerConfig)) -> Self {
        let faults = Arc::new(FaultStore::default());
        let mut config = BlobStoreConfig::new("in-no-time");
        let mut reading = DeserializerConfig::new(config.clone());
        change(&mut config, &mut reading);
        let mut core = Core::over(faults.clone(), "mem://bucket/pre", &config).unwrap();
        let ids = ids::generator(&config.blob_id_generator).unwrap();
        // The most that jitter can add.
        core.random = Box::new(|| 1.0);
        let store = Arc::new(InNoTime { core, ids, passed: Mutex::default() });
        let writing = SerializerConfig {
            threshold_bytes: 1,
            ..SerializerConfig::new(BlobStoreConfig { deadline: None, ..config.clone() })
        };
        Self {
            serializer: LargeMessageSerializer::new(writing, store.clone()).unwrap(),
            deserializer: LargeMessageDeserializer::new(reading, store.clone()).unwrap(),
            worst_case: config.retry_policy().worst_case(),
            faults,
            store,
        }
    }

    /// Value and headers of a record.
    fn produce(&self, value: &Bytes) -> Result<(Bytes, Headers), crate::serde::SerdeError> {
        let mut headers = Headers::new();
        let sent = self.serializer.serialize("topic", &mut headers, Some(value))?;
        Ok((sent.unwrap(), headers))
    }

    fn consume(&self, record: &(Bytes, Headers)) -> Result<Bytes, BlobError> {
        let (value, mut headers) = record.clone();
        match self.deserializer.deserialize("topic", &mut headers, Some(&value)) {
            Ok(value) => {
                assert!(headers.is_empty());
                Ok(value.unwrap())
            }
            Err(error) => {
                // Whoever handles the error still has the whole record.
                assert_eq!(headers, record.1);
                Err(blob_error(&error))
            }
        }
    }

    /// Everything that is stored.
    fn blobs(&self) -> Vec<Bytes> {
        let inner = &self.faults.inner;
        futures_util::FutureExt::now_or_never(async {
            let mut blobs = Vec::new();
            let mut list = inner.list(None);
            while let Some(meta) = list.next().await {
                blobs
                    .push(inner.get(&meta.unwrap().location).await.unwrap().bytes().await.unwrap());
            }
            blobs
        })
        .unwrap()
    }

    /// Requests, which all were for one object, and the time they took, within the bound.
    fn requests(&self) -> (usize, Duration) {
        let requests = self.faults.requests();
        assert!(requests.windows(2).all(|pair| pair[0] == pair[1]), "{requests:?}");
        let passed = *self.store.passed.lock().unwrap();
        // Timers are exact to the millisecond and round up, once for each attempt and delay.
        let slack = Duration::from_millis(2 * requests.len() as u64);
        assert!(passed <= self.worst_case + slack, "{passed:?} > {:?}", self.worst_case);
        (requests.len(), passed)
    }
}

fn blob_error(error: &crate::serde::SerdeError) -> BlobError {
    let error = error.cause::<BlobError>().expect("of a store");
    BlobError::new(error.kind(), error.location(), error.detail())
}

fn value() -> Bytes {
    (0..100_000u32).map(|i| (i % 251) as u8).collect()
}

/// Faults that another attempt may do better than, and what is said if none does.
const PASSING: [(Fault, BlobErrorKind); 10] = [
    (Fault::Hangs, BlobErrorKind::Timeout),
    (Fault::DoneThenHangs, BlobErrorKind::Timeout),
    (Fault::Status(503), BlobErrorKind::Unavailable),
    (Fault::Status(500), BlobErrorKind::Unavailable),
    (Fault::Status(429), BlobErrorKind::Unavailable),
    (Fault::DoneThenStatus(503), BlobErrorKind::Unavailable),
    (Fault::Refused, BlobErrorKind::Unavailable),
    (Fault::Broken, BlobErrorKind::Unavailable),
    (Fault::Truncated, BlobErrorKind::Unavailable),
    (Fault::TooLong, BlobErrorKind::Unavailable),
];

#[test]
fn passing_faults_when_storing() {
    for (fault, kind) in PASSING {
        for times in [1, 5, 6, 7] {
            let bench = Bench::new(|_, _| {});
            bench.faults.fail(fault, times);
            let produced = bench.produce(&value());
            let (requests, _) = bench.requests();
            if times <= 5 {
                assert_eq!(requests, times + 1, "{fault:?}");
                // One blob, however often it was stored, and the record refers to it.
                assert_eq!(bench.blobs(), [value()], "{fault:?}");
                assert_eq!(bench.consume(&produced.unwrap()).unwrap(), value());
            } else {
                assert_eq!(requests, 6, "{fault:?}");
                let error = blob_error(&produced.unwrap_err());
                assert_eq!(error.kind(), kind, "{fault:?}: {error}");
                assert!(error.to_string().contains("6 attempts"), "{error}");
                // Whole or not at all.
                assert!(bench.blobs().iter().all(|blob| *blob == value()), "{fault:?}");
                assert!(bench.blobs().len() <= 1, "{fault:?}");
            }
        }
    }
}

#[test]
fn passing_faults_when_reading() {
    for (fault, kind) in PASSING {
        for skip in [false, true] {
            let bench = Bench::new(|_, reading| reading.skip_not_found_error = skip);
            let record = bench.produce(&value()).unwrap();
            for times in [1, 5, 6] {
                bench.faults.fail(fault, times);
                let consumed = bench.consume(&record);
                let (requests, _) = bench.requests();
                assert_eq!(requests, 6.min(times + 1), "{fault:?}");
                match consumed {
                    Ok(got) => assert!(times <= 5 && got == value(), "{fault:?}"),
                    Err(error) => assert!(times > 5 && error.kind() == kind, "{fault:?}: {error}"),
                }
            }
            // Nothing is lost: the same record, once the store is well again.
            assert_eq!(bench.consume(&record).unwrap(), value());
        }
    }
}

/// Faults that no other attempt does better than.
#[test]
fn lasting_faults() {
    for (fault, kind, detail) in [
        (Fault::Denied, BlobErrorKind::Denied, "403"),
        (Fault::Missing, BlobErrorKind::NotFound, "404"),
        (Fault::NoBucket, BlobErrorKind::Other, "NoSuchBucket"),
        (Fault::OtherBytes, BlobErrorKind::Mismatch, "sha256"),
        (Fault::OtherSize, BlobErrorKind::Mismatch, "says 100000 bytes, but the blob has 100001"),
    ] {
        for skip in [false, true] {
            let bench = Bench::new(|_, reading| reading.skip_not_found_error = skip);
            let record = bench.produce(&value()).unwrap();
            bench.faults.fail(fault, 1);
            let consumed = bench.consume(&record);
            assert_eq!(bench.requests().0, 1, "{fault:?}");
            if fault == Fault::Missing && skip {
                assert_eq!(consumed.unwrap(), "");
            } else {
                let error = consumed.unwrap_err();
                assert_eq!(error.kind(), kind, "{fault:?}: {error}");
                assert!(error.to_string().contains(detail), "{error}");
                assert!(error.location().starts_with("mem://bucket/pre/topic/"));
            }
            assert_eq!(bench.consume(&record).unwrap(), value());
        }
        if matches!(fault, Fault::Denied | Fault::NoBucket) {
            let bench = Bench::new(|_, _| {});
            bench.faults.fail(fault, 1);
            let error = blob_error(&bench.produce(&value()).unwrap_err());
            assert_eq!((error.kind(), bench.requests().0), (kind, 1), "{fault:?}");
            assert!(bench.blobs().is_empty());
        }
    }
}

/// Both values of a mismatch are named.
#[test]
fn a_mismatch_names_both() {
    let bench = Bench::new(|_, _| {});
    let record = bench.produce(&Bytes::from_static(b"abc")).unwrap();
    bench.faults.fail(Fault::OtherBytes, 1);
    let error = bench.consume(&record).unwrap_err().to_string();
    for digest in [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        &crate::dump::digest::hex(&<sha2::Sha256 as sha2::Digest>::digest([!b'a', !b'b', !b'c'])),
    ] {
        assert!(error.contains(digest), "{error}");
    }
}

/// With the KIP's defaults a store that never answers takes 63.72 s at most, and with the
/// producer's `max.block.ms` 60.
#[test]
fn time_of_the_defaults() {
    for (deadline, millis) in [(None, 63_720), (Some(Duration::from_secs(60)), 60_000)] {
        let bench = Bench::new(|config, _| config.deadline = deadline);
        bench.faults.fail(Fault::Hangs, 6);
        let error = blob_error(&bench.produce(&value()).unwrap_err());
        let (requests, passed) = bench.requests();
        assert_eq!((error.kind(), requests), (BlobErrorKind::Timeout, 6));
        assert!((millis..=millis + 12).contains(&passed.as_millis()), "{passed:?}");
    }
}

#[test]
fn retries_as_configured() {
    for count in [0, 1, 3] {
        let bench = Bench::new(|config, _| {
            config.retry_count = count;
            config.retry_delay_backoff = Duration::from_millis(1000);
            config.retry_max_backoff = Duration::from_millis(1500);
        });
        bench.faults.fail(Fault::Status(503), 10);
        assert!(bench.produce(&value()).is_err());
        let (requests, passed) = bench.requests();
        assert_eq!(requests, count as usize + 1);
        let millis = [0, 1200, 2700, 4200][count as usize];
        assert!((millis..=millis + 8).contains(&passed.as_millis()), "{passed:?}");
    }
}

/// The same content has one name, and one that was damaged is made whole by storing it again.
#[test]
fn content_addresses() {
    let bench = Bench::new(|config, _| config.blob_id_generator = "sha256".into());
    let first = bench.produce(&value()).unwrap();
    assert_eq!(bench.produce(&value()).unwrap(), first);
    assert_eq!(bench.blobs(), [value()]);
    assert_ne!(bench.produce(&Bytes::from_static(b"other")).unwrap(), first);
    assert_eq!(bench.blobs().len(), 2);

    let reference = JsonFormatter.parse(&first.0).unwrap();
    let object = reference.full_blob_path.strip_prefix("mem://bucket/").unwrap().into();
    let damaged = bench.faults.inner.put(&object, "damaged".into());
    futures_util::FutureExt::now_or_never(damaged).unwrap().unwrap();
    assert_eq!(bench.consume(&first).unwrap_err().kind(), BlobErrorKind::Mismatch);
    assert_eq!(bench.produce(&value()).unwrap(), first);
    assert_eq!(bench.consume(&first).unwrap(), value());
}
