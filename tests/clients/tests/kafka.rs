//! A real client, librdkafka, against its own mock cluster: large values end to end.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use logseg_clients::{Config, S3Server, deserializer, payload, serializer, store, with};
use logseg_core::builder::{BuilderOptions, LentBuffer, MemoryRecordsBuilder};
use logseg_core::codec::BuiltinCompressors;
use logseg_core::{Codec, Cpu, Magic};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers as _, Message};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std_host::large_message::VALUE_HEADER;
use std_host::serde::{Deserializer, Headers, RecordPart, Registry, Serializer};

#[path = "../examples/consume.rs"]
#[allow(dead_code)]
mod consume;
#[path = "../examples/produce.rs"]
#[allow(dead_code)]
mod produce;

const THRESHOLD: usize = 100_000;
const MIB: usize = 1 << 20;
const TOPIC: &str = "topic";
/// Of librdkafka, and nearly that of a broker.
const MESSAGE_MAX_BYTES: usize = 1_000_000;

/// A mock cluster with one topic of one partition.
struct Kafka(MockCluster<'static, DefaultProducerContext>);

impl Kafka {
    fn start() -> Self {
        let cluster = MockCluster::new(1).expect("a mock cluster");
        cluster.create_topic(TOPIC, 1, 1).expect("a topic");
        Self(cluster)
    }

    fn brokers(&self) -> String {
        self.0.bootstrap_servers()
    }

    fn producer(&self) -> produce::KafkaProducer {
        ClientConfig::new()
            .set("bootstrap.servers", self.brokers())
            .set("message.max.bytes", MESSAGE_MAX_BYTES.to_string())
            .create_with_context(produce::Failures::default())
            .expect("a producer")
    }

    /// The offset that a group goes on from.
    fn committed(&self, group: &str) -> Offset {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.brokers())
            .set("group.id", group)
            .create()
            .expect("a consumer");
        let mut partition = TopicPartitionList::new();
        partition.add_partition(TOPIC, 0);
        let offsets = consumer.committed_offsets(partition, Duration::from_secs(60));
        offsets.expect("offsets").find_partition(TOPIC, 0).expect("an offset").offset()
    }

    /// Everything in the topic, up to its end, through `each`.
    fn consume<T>(
        &self,
        mut each: impl FnMut(&rdkafka::message::BorrowedMessage<'_>) -> T,
    ) -> Vec<T> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.brokers())
            .set("group.id", "test")
            .set("enable.partition.eof", "true")
            .create()
            .expect("a consumer");
        let mut start = TopicPartitionList::new();
        start.add_partition_offset(TOPIC, 0, Offset::Beginning).expect("an offset");
        consumer.assign(&start).expect("an assignment");
        let mut all = Vec::new();
        loop {
            match consumer.poll(Duration::from_secs(60)).expect("an answer in a minute") {
                Ok(record) => all.push(each(&record)),
                Err(KafkaError::PartitionEOF(_)) => return all,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A record as it was sent: its key, headers and value.
type Sent<T> = (Vec<u8>, Headers, Option<T>);

/// Headers of the record's own: a key twice, null, empty, bytes that are not UTF-8.
fn own_headers() -> Headers {
    let mut headers = Headers::new();
    headers.add("trace", Some(Bytes::from_static(b"1")));
    headers.add("trace", Some(Bytes::from_static(b"\xff\x00")));
    headers.add("null", None);
    headers.add("empty", Some(Bytes::new()));
    headers
}

/// Sends each value once without headers and once with, then receives all.
fn there_and_back<T: PartialEq + Clone>(
    kafka: &Kafka,
    serializer: &impl Serializer<T>,
    deserializer: &impl Deserializer<T>,
    values: &[Option<T>],
) -> usize {
    let producer = kafka.producer();
    let mut sent: Vec<Sent<T>> = Vec::new();
    for value in values {
        for headers in [Headers::new(), own_headers()] {
            sent.push((format!("k{}", sent.len()).into_bytes(), headers, value.clone()));
        }
    }
    for (key, headers, value) in &sent {
        produce::send(&producer, serializer, TOPIC, key, headers.clone(), value.as_ref())
            .expect("to send");
    }
    produce::finish(&producer).expect("every record delivered");
    let received = kafka.consume(|record| {
        let (headers, value) = consume::receive(deserializer, record).expect("a value");
        (record.key().expect("a key").to_vec(), headers, value)
    });
    assert_eq!(received.len(), sent.len());
    for (received, sent) in received.iter().zip(&sent) {
        assert_eq!((&received.0, &received.1), (&sent.0, &sent.1));
        assert!(received.2 == sent.2, "{:?} has another value", sent.0);
    }
    sent.len()
}

fn s3_config(server: &S3Server) -> Config {
    with(&server.config(), &[("large.message.threshold.bytes", &THRESHOLD.to_string())])
}

#[test]
fn values_of_all_sizes() {
    let (kafka, server) = (Kafka::start(), S3Server::start());
    let config = s3_config(&server);
    let mut values = vec![None, Some(Bytes::new())];
    let sizes = [1, THRESHOLD - 1, THRESHOLD, MIB, 2 * MESSAGE_MAX_BYTES, 20 * MIB];
    values.extend(sizes.map(|size| Some(payload(size))));
    let count = there_and_back(&kafka, &serializer(&config), &deserializer(&config), &values);
    assert_eq!(count, 16);

    // What has gone over the wire: six references for three values, each marked, all small.
    let raw = kafka.consume(|record| {
        let marked =
            record.headers().is_some_and(|all| all.iter().any(|one| one.key == VALUE_HEADER));
        (marked, record.payload().map(<[u8]>::len))
    });
    let marked: Vec<_> = raw.iter().filter(|(marked, _)| *marked).collect();
    assert_eq!(marked.len(), 8);
    assert!(marked.iter().all(|(_, size)| size.is_some_and(|size| size < 500)));
    let inline: Vec<_> = raw.iter().filter(|(marked, _)| !*marked).map(|(_, size)| *size).collect();
    let want = [None, Some(0), Some(1), Some(THRESHOLD - 1)];
    assert_eq!(inline, want.iter().flat_map(|size| [*size, *size]).collect::<Vec<_>>());
    assert_eq!(store(&config).list().count(), 8);

    // And without a serializer, the client itself refuses.
    let value = payload(2 * MESSAGE_MAX_BYTES);
    let refused = kafka.producer().send(BaseRecord::to(TOPIC).key("k").payload(&value[..]));
    let (error, _) = refused.expect_err("too large a record");
    assert_eq!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageSizeTooLarge));
}

/// A value that was read and is produced again, its marker header forged or left over.
#[test]
fn a_left_over_header_marks_nothing() {
    let (kafka, server) = (Kafka::start(), S3Server::start());
    let config = s3_config(&server);
    let producer = kafka.producer();
    let mut headers = own_headers();
    headers.add(VALUE_HEADER, Some(Bytes::from_static(&[1])));
    let value = Bytes::from_static(b"{\"full-blob-path\":\"s3://bucket/large/topic/0001\"}");
    produce::send(&producer, &serializer(&config), TOPIC, b"k", headers, Some(&value)).unwrap();
    produce::finish(&producer).expect("every record delivered");
    let received =
        kafka.consume(|record| consume::receive(&deserializer(&config), record).unwrap());
    assert_eq!(received, [(own_headers(), Some(value))]);
}

/// `value.serializers` and `value.deserializers`: JSON, compressed, and large if it is still.
#[test]
fn composed() {
    let (kafka, server) = (Kafka::start(), S3Server::start());
    let config = with(
        &s3_config(&server),
        &[
            ("value.serializers", "json, zstd, large-message"),
            ("value.deserializers", "large-message, zstd, json"),
        ],
    );
    let registry = Registry::<Vec<String>>::json();
    let serializer = registry.serializer(RecordPart::Value, &config).unwrap();
    let deserializer = registry.deserializer(RecordPart::Value, &config).unwrap();
    // A megabyte that zstd makes little of, and one that stays large.
    let hex = payload(MIB).iter().map(|byte| format!("{byte:02x}")).collect();
    let values = [
        None,
        Some(vec![]),
        Some(vec!["a\u{0}\u{e4}".into()]),
        Some(vec!["x".repeat(MIB)]),
        Some(vec![hex]),
    ];
    there_and_back(&kafka, &serializer, &deserializer, &values);
    let sizes: Vec<u64> = store(&config).list().map(|blob| blob.unwrap().size).collect();
    // Twice, with headers and without. Half of the hexadecimal digits is what zstd saves.
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    assert!(sizes.iter().all(|size| (1_000_000..1_300_000).contains(size)), "{sizes:?}");
}

/// The documentation has them letter for letter.
#[test]
fn the_page_has_the_programs() {
    let page = include_str!("../../../std-host/docs/large-messages.md");
    for program in [include_str!("../examples/produce.rs"), include_str!("../examples/consume.rs")]
    {
        assert!(page.contains(&format!("```rust\n{program}```")), "{}", &program[..60]);
    }
}

/// The programs of the documentation, as they are.
#[test]
fn the_programs() {
    let (kafka, server) = (Kafka::start(), S3Server::start());
    let folder = tempfile::tempdir().expect("a temporary directory");
    let sizes = [0, 10, 899_999, 900_000, 5 * MIB];
    let files = sizes.map(|size| {
        let file = folder.path().join(size.to_string());
        std::fs::write(&file, payload(size)).expect("a file");
        file
    });
    let url = "s3://bucket/large";
    let produce = Command::new(env!("CARGO_BIN_EXE_produce"))
        .args([&kafka.brokers(), TOPIC, url])
        .args(&files)
        .envs(server.environment())
        .status();
    assert!(produce.expect("a producer").success());
    let to = folder.path().join("to");
    std::fs::create_dir(&to).expect("a directory");
    let consume = Command::new(env!("CARGO_BIN_EXE_consume"))
        .args([&kafka.brokers(), TOPIC, url, &sizes.len().to_string()])
        .arg(&to)
        .envs(server.environment())
        .status();
    assert!(consume.expect("a consumer").success());
    for (offset, size) in sizes.iter().enumerate() {
        let read = std::fs::read(to.join(format!("0-{offset}"))).expect("a file");
        assert!(read == payload(*size), "{size}");
    }
    assert_eq!(std::fs::read_dir(&to).expect("a directory").count(), sizes.len());
    assert_eq!(store(&server.config()).list().count(), 2);
    assert_eq!(kafka.committed("large-messages"), Offset::Offset(5));
}

/// A blob that is missing ends the program, and nothing is committed or written in part; when
/// it is there again, so is the value.
#[test]
fn the_consumer_stops_at_what_it_cannot_read() {
    let (kafka, server) = (Kafka::start(), S3Server::start());
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (file, to) = (folder.path().join("value"), folder.path().join("to"));
    std::fs::write(&file, payload(MIB)).expect("a file");
    std::fs::create_dir(&to).expect("a directory");
    let url = "s3://bucket/large";
    let produce = || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_produce"));
        program.args([&kafka.brokers(), TOPIC, url]).arg(&file).envs(server.environment());
        assert!(program.status().expect("a producer").success());
    };
    produce();
    let store = store(&server.config());
    let blob = store.list().next().expect("a blob").expect("a blob");
    store.delete(&blob.location).expect("to delete it");
    let consume = Command::new(env!("CARGO_BIN_EXE_consume"))
        .args([&kafka.brokers(), TOPIC, url, "1"])
        .arg(&to)
        .envs(server.environment())
        .output()
        .expect("a consumer");
    assert!(!consume.status.success());
    let message = String::from_utf8_lossy(&consume.stderr);
    assert!(message.contains(&blob.location), "{message}");
    assert_eq!(std::fs::read_dir(&to).expect("a directory").count(), 0);
    assert_eq!(kafka.committed("large-messages"), Offset::Invalid);

    // Under the same name, since its content is its name: the first record has it too.
    produce();
    let deserializer = deserializer(&server.config());
    let values = kafka.consume(|record| consume::receive(&deserializer, record).unwrap().1);
    assert!(values == [Some(payload(MIB)), Some(payload(MIB))]);
    assert_eq!(store.list().count(), 1);
}

/// Killed between upload and produce: the consumer sees nothing of it, the blob is an orphan
/// that `std-host blob` finds, and the record sent again is fine.
#[test]
fn killed_between_upload_and_produce() {
    let (kafka, server) = (Kafka::start(), S3Server::start());
    let config = server.config();
    let (serializer, deserializer) = (serializer(&config), deserializer(&config));
    let send = |key: &[u8], value: &Bytes| {
        let producer = kafka.producer();
        produce::send(&producer, &serializer, TOPIC, key, Headers::new(), Some(value)).unwrap();
        produce::finish(&producer).expect("every record delivered");
    };
    let receive = || {
        kafka.consume(|record| {
            let value = consume::receive(&deserializer, record).expect("a value").1;
            (record.key().unwrap_or_default().to_vec(), value)
        })
    };
    let locations = || -> Vec<String> {
        store(&config).list().map(|blob| blob.expect("a blob").location).collect()
    };
    let (before, lost, small) = (payload(2 * MIB), payload(3 * MIB), payload(10));
    send(b"before", &before);
    send(b"small", &small);
    let kept = locations();
    assert_eq!(kept.len(), 1);

    for stop in ["stored", "queued"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_interrupted"))
            .args([&kafka.brokers(), TOPIC, "s3://bucket/large", stop])
            .envs(server.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a producer");
        child.stdin.take().expect("a pipe").write_all(&lost).expect("to write");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), stop);
        // SIGKILL: nothing of it runs any more.
        child.kill().expect("to kill it");
        assert!(!child.wait().expect("its end").success());
    }
    let mut orphans = locations();
    assert_eq!(orphans.len(), 3);
    orphans.retain(|location| !kept.contains(location));
    assert_eq!(orphans.len(), 2);
    let before = [(b"before".to_vec(), Some(before)), (b"small".to_vec(), Some(small))];
    assert!(receive() == before, "the consumer has seen something of the crashed producer");

    send(b"again", &lost);
    let mut all = before.to_vec();
    all.push((b"again".to_vec(), Some(lost)));
    assert!(receive() == all);

    let folder = tempfile::tempdir().expect("a temporary directory");
    let log = folder.path().join("logs");
    write_segment(&kafka, &log.join(format!("{TOPIC}-0")));
    let scan = blob(&server, "scan", &["--format", "json", log.to_str().unwrap()]);
    let scan: serde_json::Value = serde_json::from_str(&scan).expect("JSON");
    assert_eq!(scan["total"]["references"], 2, "{scan}");

    // Too young, by default.
    let list = folder.path().join("young");
    let args = ["--output", list.to_str().unwrap(), log.to_str().unwrap()];
    blob(&server, "orphans", &args);
    assert_eq!(listed(&list), [""; 0]);
    let list = folder.path().join("list");
    let args = ["--min-age", "0s", "--output", list.to_str().unwrap(), log.to_str().unwrap()];
    blob(&server, "orphans", &args);
    let mut found = listed(&list);
    found.sort();
    orphans.sort();
    assert_eq!(found, orphans);

    let args = ["--min-age", "0s", "--delete", list.to_str().unwrap(), log.to_str().unwrap()];
    blob(&server, "orphans", &args);
    assert_eq!(locations().len(), 2);
    assert!(locations().iter().all(|location| !orphans.contains(location)));
    assert!(receive() == all);
}

/// Standard output of `std-host blob`, which must succeed.
fn blob(server: &S3Server, action: &str, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_std-host"))
        .args(["blob", action, "--store", "s3://bucket/large"])
        .args(args)
        .envs(server.environment())
        .output()
        .expect("std-host");
    assert!(output.status.success(), "{action}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The locations of a list of orphans.
fn listed(list: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(list).expect("a list");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let orphans = lines.filter(|line: &serde_json::Value| line["type"] == "orphan");
    orphans.map(|line| line["location"].as_str().expect("a location").to_owned()).collect()
}

/// What the topic has, fetched and not deserialized, as a broker has it on disk: a batch a
/// record.
fn write_segment(kafka: &Kafka, partition: &Path) {
    let batches = kafka.consume(|record| {
        let headers = consume::from_kafka(record);
        let headers: Vec<_> = headers
            .iter()
            .map(|header| logseg_core::Header {
                key: header.key.as_bytes(),
                value: header.value.as_deref(),
            })
            .collect();
        let mut memory = vec![0; 1 << 20];
        let mut compressors = BuiltinCompressors::new();
        let options = BuilderOptions::new(Magic::V2, Codec::None).with_base_offset(record.offset());
        let mut builder = MemoryRecordsBuilder::new(
            LentBuffer::new(&mut memory),
            options,
            &mut compressors,
            Cpu::detect(),
        )
        .expect("a builder");
        let timestamp = record.timestamp().to_millis().unwrap_or(-1);
        builder.append(timestamp, record.key(), record.payload(), &headers).expect("to append");
        builder.build().expect("a batch").to_vec()
    });
    std::fs::create_dir_all(partition).expect("a directory");
    let segment = partition.join("00000000000000000000.log");
    std::fs::write(segment, batches.concat()).expect("a segment");
}
