//! A producer that is killed: it stores a blob, and says so, before its record is sent.
//!
//! ```sh
//! interrupted BROKERS TOPIC STORE-URL stored|queued < VALUE
//! ```
//! With `queued` the record is with the client already, which keeps it for a minute.

use std::error::Error;
use std::io::Read;

use bytes::Bytes;
use rdkafka::ClientConfig;
use std_host::large_message::{LargeMessageSerializer, SerializerConfig};
use std_host::serde::{Headers, Serializer};

#[path = "../../examples/produce.rs"]
#[allow(dead_code)]
mod produce;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, topic, url, stop] = &args[..] else { return Err("four arguments".into()) };
    let serializer = LargeMessageSerializer::open(SerializerConfig::from_map([
        ("large.message.blob.store.class", "object-store"),
        ("large.message.blob.store.url", &url[..]),
    ])?)?;
    let producer: produce::KafkaProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("linger.ms", "60000")
        .create_with_context(produce::Failures::default())?;
    let mut value = Vec::new();
    std::io::stdin().read_to_end(&mut value)?;
    let value = Bytes::from(value);
    match &stop[..] {
        "stored" => {
            serializer.serialize(topic, &mut Headers::new(), Some(&value))?;
        }
        "queued" => {
            produce::send(&producer, &serializer, topic, b"k", Headers::new(), Some(&value))?;
        }
        _ => return Err("stored or queued".into()),
    }
    println!("{stop}");
    loop {
        std::thread::park();
    }
}
