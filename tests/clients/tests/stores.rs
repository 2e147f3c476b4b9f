//! Blob stores that are real servers.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use logseg_clients::{
    Azurite, Config, Moto, S3Server, deserializer, failure, payload, round_trips, serializer,
    store, with, without_network,
};
use std_host::large_message::BlobErrorKind::{Denied, NotFound, Other, Unavailable};
use std_host::large_message::{BlobStore, JsonFormatter, LargeMessageFormatter, Reference};
use std_host::serde::{Deserializer, Headers, Serializer};

const THRESHOLD: usize = 100_000;
const MIB: usize = 1 << 20;
const URL: &str = "large.message.blob.store.url";

#[test]
fn s3() {
    let server = S3Server::start();
    let sizes = [0, THRESHOLD - 1, THRESHOLD, MIB, 64 * MIB];
    round_trips("s3s-fs", &server.config(), THRESHOLD, &sizes);
}

#[test]
fn moto() {
    let Some(server) = Moto::start() else { return };
    let config = server.config();
    round_trips("moto", &config, THRESHOLD, &[0, THRESHOLD - 1, THRESHOLD, MIB]);
    // s3s-fs says that the blob is missing.
    no_bucket_is_not_a_missing_blob(&config, "s3://other/large");
}

#[test]
fn azure() {
    let Some(server) = Azurite::start() else { return };
    let config = server.config();
    round_trips("azurite", &config, THRESHOLD, &[0, THRESHOLD - 1, THRESHOLD, MIB, 8 * MIB]);
    let wrong = [("large.message.blob.store.option.account_key", "d3Jvbmc=")];
    refuses_wrong_credentials(&with(&config, &wrong));
    no_bucket_is_not_a_missing_blob(&config, "az://other/large");
}

/// No emulator that could be installed speaks the XML interface of Google Cloud Storage, which
/// is what `object_store` uses; but it is that of S3.
#[test]
fn gcs_requests() {
    let server = S3Server::open();
    let config = server.config_as_gcs();
    round_trips("s3s-fs as gcs", &config, THRESHOLD, &[0, THRESHOLD - 1, THRESHOLD, MIB]);
    let asked = server.requests();
    assert!(asked.iter().any(|request| request.starts_with("PUT /bucket/large%2Ftopic%2F")));
}

fn refuses_wrong_credentials(config: &Config) {
    let value = payload(2 * MIB);
    let mut headers = Headers::new();
    let put = serializer(config).serialize("topic", &mut headers, Some(&value));
    let (kind, text) = failure(put);
    assert_eq!(kind, Denied, "{text}");
    assert!(headers.is_empty());
    // With skipping too: nothing was said of the blob.
    let config = with(config, &[("large.message.skip.not.found.error", "true")]);
    let (kind, text) = failure(read_from(&config));
    assert_eq!(kind, Denied, "{text}");
}

/// Reads a reference to a blob that is not there.
fn read_from(config: &Config) -> Result<Option<bytes::Bytes>, std_host::serde::SerdeError> {
    let full_blob_path = format!("{}/topic/0001", config[URL]);
    let reference = JsonFormatter.format(&Reference { full_blob_path, ..Reference::default() });
    let mut headers = Headers::new();
    headers.add(std_host::large_message::VALUE_HEADER, Some(vec![1].into()));
    deserializer(config).deserialize("topic", &mut headers, Some(&reference))
}

fn no_bucket_is_not_a_missing_blob(config: &Config, url: &str) {
    let (kind, text) = failure(read_from(config));
    assert_eq!(kind, NotFound, "{text}");
    let other = with(config, &[(URL, url), ("large.message.skip.not.found.error", "true")]);
    let (kind, text) = failure(read_from(&other));
    assert_eq!(kind, Other, "{text}");
}

#[test]
fn s3_with_wrong_credentials() {
    let server = S3Server::start();
    let config = server.config();
    for (option, value) in [("secret_access_key", "wrong"), ("access_key_id", "wrong")] {
        server.requests();
        let option = format!("large.message.blob.store.option.{option}");
        refuses_wrong_credentials(&with(&config, &[(&option, value)]));
        // One each: another attempt could do no better.
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn s3_is_asked_as_often_as_is_needed() {
    let server = S3Server::start();
    let config = with(
        &server.config(),
        &[
            ("large.message.threshold.bytes", "1000"),
            ("large.message.blob.store.blob.id.generator", "sha256"),
        ],
    );
    let (serializer, deserializer) = (serializer(&config), deserializer(&config));
    assert_eq!(server.requests(), [""; 0]);
    let mut headers = Headers::new();
    let small = serializer.serialize("topic", &mut headers, Some(&payload(999))).unwrap();
    deserializer.deserialize("topic", &mut headers, small.as_ref()).unwrap();
    assert_eq!(server.requests(), [""; 0]);

    let sent = serializer.serialize("topic", &mut headers, Some(&payload(1000))).unwrap();
    let put = server.requests();
    assert_eq!(put.len(), 1, "{put:?}");
    let path = put[0].strip_prefix("PUT ").expect("a PUT");
    assert!(path.starts_with("/bucket/large/topic/"), "{path}");
    deserializer.deserialize("topic", &mut headers, sent.as_ref()).unwrap();
    assert_eq!(server.requests(), [format!("GET {path}")]);
    // A file of the server's own has what was sent.
    let object = server.files().join(&path[1..]);
    assert!(std::fs::read(object).expect("a file") == payload(1000));

    // What lies elsewhere is nothing that anyone is asked for.
    for location in ["s3://bucket/other/0001", "s3://bucket/large/../0001", "s3://other/large/0001"]
    {
        let full_blob_path = location.to_owned();
        let reference = JsonFormatter.format(&Reference { full_blob_path, ..Reference::default() });
        headers.add(std_host::large_message::VALUE_HEADER, Some(vec![1].into()));
        let (kind, _) = failure(deserializer.deserialize("topic", &mut headers, Some(&reference)));
        assert_eq!(kind, std_host::large_message::BlobErrorKind::NotAllowed);
    }
    assert_eq!(server.requests(), [""; 0]);
}

/// A server that goes and comes back: every attempt is made, and later everything is there.
#[test]
fn s3_that_was_stopped() {
    let mut server = S3Server::start();
    let config = without_network(&server.config());
    let (serializer, deserializer) = (serializer(&config), deserializer(&config));
    let (value, mut headers) = (payload(MIB), Headers::new());
    let sent = serializer.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap();
    let marked = headers.clone();
    server.stop();

    let start = Instant::now();
    let (kind, text) = failure(deserializer.deserialize("topic", &mut headers, Some(&sent)));
    assert_eq!(kind, Unavailable, "{text}");
    assert!(text.contains("(3 attempts in"), "{text}");
    assert_eq!(headers, marked);
    let mut none = Headers::new();
    let (kind, text) = failure(serializer.serialize("topic", &mut none, Some(&value)));
    assert_eq!(kind, Unavailable, "{text}");
    assert!(text.contains("(3 attempts in"), "{text}");
    assert!(none.is_empty());
    // Not there and not to be reached are two things.
    let skipping = with(&config, &[("large.message.skip.not.found.error", "true")]);
    assert_eq!(failure(read_from(&skipping)).0, Unavailable);
    let list = store(&config).list().next().expect("an end");
    assert_eq!(list.unwrap_err().kind(), Unavailable);
    // Four times delays of 10 and 20 ms, with jitter.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());

    server.resume();
    let received = deserializer.deserialize("topic", &mut headers, Some(&sent)).unwrap();
    assert!(received == Some(value));
}

/// One that comes back in time is not even noticed.
#[test]
fn s3_that_comes_back_between_attempts() {
    let mut server = S3Server::start();
    let config = with(
        &server.config(),
        &[
            ("large.message.blob.store.retry.count", "20"),
            ("large.message.blob.store.retry.delay.backoff.ms", "100"),
            ("large.message.blob.store.retry.max.backoff.ms", "500"),
        ],
    );
    server.stop();
    let value = payload(MIB);
    let (serializer, sent) = (serializer(&config), value.clone());
    let put = std::thread::spawn(move || {
        let mut headers = Headers::new();
        let sent = serializer.serialize("topic", &mut headers, Some(&sent)).unwrap();
        (headers, sent)
    });
    std::thread::sleep(Duration::from_millis(700));
    server.resume();
    let (mut headers, sent) = put.join().expect("no panic");
    assert_eq!(store(&config).list().count(), 1);
    let received = deserializer(&config).deserialize("topic", &mut headers, sent.as_ref());
    assert!(received.unwrap() == Some(value));
}

/// A listing of more than a page.
#[test]
fn s3_lists_all() {
    let server = S3Server::start();
    let config = server.config();
    let store = store(&config);
    for _ in 0..1005 {
        store.put("topic", payload(10)).expect("to store a blob");
    }
    let blobs: Vec<_> = store.list().map(|blob| blob.expect("a blob").location).collect();
    assert_eq!(blobs.len(), 1005);
    assert!(blobs.iter().all(|location| location.starts_with("s3://bucket/large/topic/")));
}

fn std_host(server: &S3Server, action: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_std-host"));
    command.args(["blob", action, "--store", "s3://bucket/large"]).args(args);
    command.envs(server.environment()).stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("std-host")
}

/// The command line against the same server.
#[test]
fn s3_from_the_command_line() {
    let mut server = S3Server::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let value = payload(3 * MIB);
    let (file, reference) = (folder.path().join("value"), folder.path().join("reference"));
    std::fs::write(&file, &value).expect("a file");
    let put = output(std_host(&server, "put", &["--topic", "topic", file.to_str().unwrap()]));
    assert!(put.status.success(), "{put:?}");
    std::fs::write(&reference, &put.stdout).expect("a file");

    let get = output(std_host(&server, "get", &[reference.to_str().unwrap()]));
    assert!(get.status.success() && get.stdout == value, "{:?}", get.stderr);
    // What it has written, a deserializer reads.
    let mut headers = Headers::new();
    headers.add(std_host::large_message::VALUE_HEADER, Some(vec![1].into()));
    let data = put.stdout.trim_ascii().to_vec().into();
    let read = deserializer(&server.config()).deserialize("topic", &mut headers, Some(&data));
    assert!(read.unwrap() == Some(value));

    let store = store(&server.config());
    let blob = store.list().next().expect("a blob").expect("a blob");
    store.delete(&blob.location).expect("to delete it");
    let gone = output(std_host(&server, "get", &[reference.to_str().unwrap()]));
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    assert!(gone.stdout.is_empty());
    let mut wrong = std_host(&server, "get", &[reference.to_str().unwrap()]);
    wrong.env("AWS_SECRET_ACCESS_KEY", "wrong");
    let wrong = output(wrong);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    server.stop();
    let away = output(std_host(&server, "get", &[reference.to_str().unwrap()]));
    assert_eq!(away.status.code(), Some(1), "{away:?}");
}
