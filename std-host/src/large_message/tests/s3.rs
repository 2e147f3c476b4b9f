//! The real client of S3 against a server that answers as told: what only a status or a
//! connection says must be understood, and nobody but us retries.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use crate::large_message::{BlobErrorKind, BlobStore, BlobStoreConfig, ObjectBlobStore};

/// A server that gives each connection the next of `answers`, the last one again and again,
/// and closes it. Ends with the test.
fn server(answers: Vec<String>) -> (ObjectBlobStore, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while line.trim_end() != "" || length == 0 && line.is_empty() {
                line.clear();
                if stream.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let _ = stream.read_exact(&mut vec![0; length]);
            let number = count.fetch_add(1, Ordering::SeqCst);
            let answer = &answers[number.min(answers.len() - 1)];
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    let mut config = BlobStoreConfig::at("s3://bucket/pre");
    for (name, value) in [
        ("endpoint", &*format!("http://{address}")),
        ("allow_http", "true"),
        ("region", "us-east-1"),
        ("aws_access_key_id", "key"),
        ("aws_secret_access_key", "secret"),
    ] {
        config.options.insert(name.into(), value.into());
    }
    config.retry_delay_backoff = Duration::from_millis(1);
    config.retry_max_backoff = Duration::from_millis(2);
    (ObjectBlobStore::open(&config).unwrap(), requests)
}

fn answer(status: &str, announced: usize, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {announced}\r\nconnection: close\r\n\
         etag: \"1\"\r\nlast-modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n{body}"
    )
}

fn error(status: &str, code: &str) -> String {
    let body = format!("<Error><Code>{code}</Code></Error>");
    answer(status, body.len(), &body)
}

#[test]
fn storing() {
    let (store, requests) = server(vec![
        error("503 Service Unavailable", "SlowDown"),
        error("500 Internal Server Error", "InternalError"),
        error("429 Too Many Requests", "TooManyRequests"),
        // Nothing at all, before the connection is closed.
        String::new(),
        answer("200 OK", 0, ""),
    ]);
    let location = store.put("topic", Bytes::from_static(b"value")).unwrap();
    assert!(location.starts_with("s3://bucket/pre/topic/"), "{location}");
    assert_eq!(requests.load(Ordering::SeqCst), 5);
}

#[test]
fn reading() {
    let (store, requests) = server(vec![
        answer("200 OK", 10, "01234"),
        error("503 Service Unavailable", "SlowDown"),
        answer("200 OK", 10, "0123456789"),
    ]);
    assert_eq!(store.get("s3://bucket/pre/topic/id", 10).unwrap(), "0123456789");
    assert_eq!(requests.load(Ordering::SeqCst), 3);

    let error = store.get("s3://bucket/pre/topic/id", 9).unwrap_err();
    assert_eq!(error.kind(), BlobErrorKind::TooLarge, "{error}");
    let error = store.get("s3://bucket/other/topic/id", 9).unwrap_err();
    assert_eq!(error.kind(), BlobErrorKind::NotAllowed, "{error}");
    assert_eq!(requests.load(Ordering::SeqCst), 4);
}

#[test]
fn failing() {
    for (answer, kind, attempts) in [
        (error("503 Service Unavailable", "SlowDown"), BlobErrorKind::Unavailable, 6),
        (answer("200 OK", 10, "01234"), BlobErrorKind::Unavailable, 6),
        (error("403 Forbidden", "AccessDenied"), BlobErrorKind::Denied, 1),
        (error("404 Not Found", "NoSuchKey"), BlobErrorKind::NotFound, 1),
        (error("404 Not Found", "NoSuchBucket"), BlobErrorKind::Other, 1),
        (error("400 Bad Request", "InvalidArgument"), BlobErrorKind::Other, 1),
    ] {
        let (store, requests) = server(vec![answer.clone()]);
        let error = store.get("s3://bucket/pre/topic/id", 10).unwrap_err();
        assert_eq!(error.kind(), kind, "{answer}: {error}");
        assert_eq!(requests.load(Ordering::SeqCst), attempts, "{answer}: {error}");
        assert!(!error.to_string().contains("secret"));
    }
}

/// Nobody listens there.
#[test]
fn refused() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut config = BlobStoreConfig::at("s3://bucket");
    for (name, value) in [
        ("endpoint", &*format!("http://127.0.0.1:{port}")),
        ("allow_http", "true"),
        ("skip_signature", "true"),
    ] {
        config.options.insert(name.into(), value.into());
    }
    config.retry_delay_backoff = Duration::from_millis(1);
    config.retry_max_backoff = Duration::from_millis(2);
    let store = ObjectBlobStore::open(&config).unwrap();
    let error = store.get("s3://bucket/topic/id", 10).unwrap_err();
    assert_eq!(error.kind(), BlobErrorKind::Unavailable);
    assert!(error.to_string().contains("6 attempts"), "{error}");

    config.options.insert("endpiont".into(), "x".into());
    let error = ObjectBlobStore::open(&config).unwrap_err();
    assert_eq!(error.key(), "large.message.blob.store.option.endpiont");
}
