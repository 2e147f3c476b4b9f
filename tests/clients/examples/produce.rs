//! Sends files as values of records; large ones go to a blob store, and the record has a
//! reference.
//!
//! ```sh
//! produce BROKERS TOPIC STORE-URL FILE…
//! ```
//! What the store wants to know besides its URL comes from the environment, as
//! `AWS_ACCESS_KEY_ID`.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext};
use std_host::large_message::{LargeMessageSerializer, SerializerConfig};
use std_host::serde::{Headers, Serializer};

/// Counts the records that the brokers have not taken.
#[derive(Default)]
pub struct Failures(AtomicU64);

impl ClientContext for Failures {}

impl ProducerContext for Failures {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            eprintln!("{error}");
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A client that sends on a thread of its own.
pub type KafkaProducer = ThreadedProducer<Failures>;

/// Sends one record. It is on its way then, and [`finish`] waits for it.
///
/// Once this has failed, nothing was sent, and it can be called again with the same record.
pub fn send<T: ?Sized>(
    producer: &KafkaProducer,
    serializer: &impl Serializer<T>,
    topic: &str,
    key: &[u8],
    mut headers: Headers,
    value: Option<&T>,
) -> Result<(), Box<dyn Error>> {
    // The blob is stored first, and only then there is a record that refers to it.
    let value = serializer.serialize(topic, &mut headers, value)?;
    let mut record = BaseRecord::to(topic).key(key).headers(to_kafka(&headers));
    if let Some(value) = &value {
        record = record.payload(&value[..]);
    }
    producer.send(record).map_err(|(error, _)| error)?;
    Ok(())
}

/// Waits until every record is with the brokers.
pub fn finish(producer: &KafkaProducer) -> Result<(), Box<dyn Error>> {
    producer.flush(Duration::from_secs(60))?;
    match producer.context().0.load(Ordering::Relaxed) {
        0 => Ok(()),
        failed => Err(format!("{failed} records were not delivered").into()),
    }
}

/// All headers in their order, keys that repeat and null values included.
fn to_kafka(headers: &Headers) -> OwnedHeaders {
    headers.iter().fold(OwnedHeaders::new(), |made, header| {
        made.insert(Header { key: &header.key, value: header.value.as_deref() })
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(brokers), Some(topic), Some(url)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: produce BROKERS TOPIC STORE-URL FILE…".into());
    };
    let config = SerializerConfig::from_map([
        ("large.message.blob.store.class", "object-store"),
        ("large.message.blob.store.url", &url),
        // What is smaller must fit into a record with its key and headers.
        ("large.message.threshold.bytes", "900000"),
        // Three attempts, which with the delays take 6.4 s at most.
        ("large.message.blob.store.timeout.ms", "2000"),
        ("large.message.blob.store.retry.count", "2"),
        // The same value sent again is stored once.
        ("large.message.blob.store.blob.id.generator", "sha256"),
    ])?;
    for warning in config.warnings() {
        eprintln!("{warning}");
    }
    let serializer = LargeMessageSerializer::open(config)?;
    let producer: KafkaProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("enable.idempotence", "true")
        .create_with_context(Failures::default())?;
    for file in args {
        let value = Bytes::from(std::fs::read(&file)?);
        send(&producer, &serializer, &topic, file.as_bytes(), Headers::new(), Some(&value))?;
    }
    finish(&producer)
}
