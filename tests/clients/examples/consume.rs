//! Writes the values of records into files, whether they were in the records or in a blob
//! store.
//!
//! ```sh
//! consume BROKERS TOPIC STORE-URL COUNT DIRECTORY
//! ```
//! The files are called `partition-offset`. What the store wants to know besides its URL comes
//! from the environment, as `AWS_ACCESS_KEY_ID`.

use std::error::Error;
use std::path::Path;

use bytes::Bytes;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std_host::large_message::{DeserializerConfig, LargeMessageDeserializer};
use std_host::serde::{Deserializer, Header, Headers, SerdeError};

/// The headers and the value of one record, as they were before they were serialized.
pub fn receive<T>(
    deserializer: &impl Deserializer<T>,
    record: &BorrowedMessage<'_>,
) -> Result<(Headers, Option<T>), SerdeError> {
    let mut headers = from_kafka(record);
    let data = record.payload().map(Bytes::copy_from_slice);
    let value = deserializer.deserialize(record.topic(), &mut headers, data.as_ref())?;
    Ok((headers, value))
}

/// All headers in their order, keys that repeat and null values included.
pub fn from_kafka(record: &BorrowedMessage<'_>) -> Headers {
    let headers = record.headers().into_iter().flat_map(|headers| headers.iter());
    let owned = headers.map(|header| Header {
        key: header.key.to_owned(),
        value: header.value.map(Bytes::copy_from_slice),
    });
    owned.collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, topic, url, count, directory] = &args[..] else {
        return Err("usage: consume BROKERS TOPIC STORE-URL COUNT DIRECTORY".into());
    };
    let deserializer = LargeMessageDeserializer::open(DeserializerConfig::from_map([
        ("large.message.blob.store.class", "object-store"),
        // Only blobs below it are ever read, whatever a record says.
        ("large.message.blob.store.url", &url[..]),
        // Beyond it a consumer would be put out of its group.
        ("max.poll.interval.ms", "300000"),
    ])?)?;
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "large-messages")
        .set("auto.offset.reset", "earliest")
        .set("max.poll.interval.ms", "300000")
        .set("enable.auto.commit", "false")
        .create()?;
    consumer.subscribe(&[topic])?;
    let mut left: u64 = count.parse()?;
    while left > 0 {
        let Some(record) = consumer.poll(None) else { continue };
        let record = record?;
        // An error ends the program with the record not committed: it comes again, and is
        // neither skipped nor delivered in part.
        let (_, value) = receive(&deserializer, &record)?;
        if let Some(value) = value {
            let name = format!("{}-{}", record.partition(), record.offset());
            std::fs::write(Path::new(directory).join(name), value)?;
        }
        let mut done = TopicPartitionList::new();
        let next = Offset::Offset(record.offset() + 1);
        done.add_partition_offset(record.topic(), record.partition(), next)?;
        consumer.commit(&done, rdkafka::consumer::CommitMode::Sync)?;
        left -= 1;
    }
    Ok(())
}
