//! `std-host blob`, on a file store.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use logseg_core::builder::{BuilderOptions, MemoryRecordsBuilder};
use logseg_core::{BuiltinCompressors, Codec, Cpu, Header, Magic};
use serde_json::{Value, json};
use std_host::growing::GrowingBuffer;
use std_host::large_message::VALUE_HEADER;

use crate::{
    Run, case, ends_quietly_without_a_reader, program, run, run_with_input, run_without_a_reader,
};

/// A store and a broker's log directory, both empty.
struct Place {
    directory: tempfile::TempDir,
    url: String,
}

/// What a record has.
enum Is<'a> {
    Value(&'a [u8]),
    Null,
    /// With the marker.
    Marked(&'a str),
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}/blobs", directory.path().display());
        fs::create_dir(directory.path().join("blobs")).unwrap();
        Self { directory, url }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn blob(&self, args: &[&str]) -> Run {
        let (command, args) = args.split_first().unwrap();
        run(["blob", command, "--store", &self.url].iter().chain(args))
    }

    /// Stores a blob; gives its reference.
    fn put(&self, topic: &str, data: &[u8]) -> String {
        let args = ["blob", "put", "--store", &self.url, "--topic", topic];
        let reference = run_with_input(args, data).expect(0).out;
        reference.strip_suffix('\n').unwrap().to_owned()
    }

    /// Where the blob of a reference is.
    fn file(&self, reference: &str) -> PathBuf {
        let reference: Value = serde_json::from_str(reference).unwrap();
        PathBuf::from(
            reference["full-blob-path"].as_str().unwrap().strip_prefix("file://").unwrap(),
        )
    }

    /// Makes a blob older by so many hours.
    fn age(&self, reference: &str, hours: u64) {
        let file = File::options().write(true).open(self.file(reference)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
    }

    /// Writes a segment of one batch.
    fn segment(&self, path: &str, records: &[Is<'_>]) -> String {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, batch(records)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn batch(records: &[Is<'_>]) -> Vec<u8> {
    let mut compressors = BuiltinCompressors::new();
    let mut builder = MemoryRecordsBuilder::new(
        GrowingBuffer::with_capacity(1 << 10),
        BuilderOptions::new(Magic::V2, Codec::None),
        &mut compressors,
        Cpu::detect(),
    )
    .unwrap();
    let marker = [Header { key: VALUE_HEADER.as_bytes(), value: Some(&[1]) }];
    for (time, record) in (1_700_000_000_000..).zip(records) {
        let (value, headers) = match record {
            Is::Value(value) => (Some(*value), &[][..]),
            Is::Null => (None, &[][..]),
            Is::Marked(reference) => (Some(reference.as_bytes()), &marker[..]),
        };
        builder.append(time, Some(b"key"), value, headers).unwrap();
    }
    builder.close().unwrap();
    builder.into_buffer().into_vec()
}

fn damage(path: &str) {
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn put_and_get() {
    let place = Place::new();
    fs::write(place.path("value"), b"hello blob").unwrap();
    let reference = place.blob(&["put", "--topic", "orders", &place.text("value")]).expect(0).out;
    let json: Value = serde_json::from_str(&reference).unwrap();
    let location = json["full-blob-path"].as_str().unwrap();
    assert!(location.starts_with(&format!("{}/orders/", place.url)), "{location}");
    assert_eq!((&json["size"], &json["blob-id-generator-class"]), (&json!(10), &json!("uuid")));
    assert_eq!(fs::read(place.file(&reference)).unwrap(), b"hello blob");

    // By a reference in a file, piped in, or by location; to the output, or to a file.
    fs::write(place.path("reference"), &reference).unwrap();
    assert_eq!(place.blob(&["get", &place.text("reference")]).expect(0).out, "hello blob");
    for args in [&[][..], &["-"]] {
        let get = ["blob", "get", "--store", &place.url];
        let args = get.iter().chain(args);
        assert_eq!(run_with_input(args, reference.as_bytes()).expect(0).out, "hello blob");
    }
    assert_eq!(place.blob(&["get", "--location", location]).expect(0).out, "hello blob");
    let output = place.text("output");
    let quiet = place.blob(&["get", "--location", location, "--output", &output]).expect(0);
    assert_eq!(
        (quiet.out.as_str(), fs::read(&output).unwrap().as_slice()),
        ("", &b"hello blob"[..])
    );
    // Never over what is there.
    let refused = place.blob(&["get", "--location", location, "--output", &output]).expect(1);
    assert!(refused.err.contains(&format!("std-host: {output}: ")), "{}", refused.err);
    let dash = place.blob(&["get", "--location", location, "--output", "-"]).expect(0);
    assert_eq!(dash.out, "hello blob");

    // The same content has one name, if that is wanted.
    let by_content = || {
        let args = ["blob", "put", "--store", &place.url, "--topic", "t", "--id", "sha256", "-"];
        run_with_input(args, b"abc").expect(0).out
    };
    assert_eq!(by_content(), by_content());
    assert!(
        by_content()
            .contains("/t/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"")
    );
    // An empty value is one.
    let empty = place.put("orders", b"");
    fs::write(place.path("empty"), empty).unwrap();
    assert_eq!(place.blob(&["get", &place.text("empty")]).expect(0).out, "");
}

#[test]
fn what_get_refuses() {
    let place = Place::new();
    let reference = place.put("orders", b"hello blob");
    let output = place.text("output");
    let get = |reference: &str| {
        let args = ["blob", "get", "--store", &place.url, "--output", &output, "-"];
        let run = run_with_input(args, reference.as_bytes());
        assert!(!Path::new(&output).exists(), "nothing partial is left");
        assert!(run.out.is_empty(), "{}", run.out);
        run
    };
    let id = place.file(&reference).file_name().unwrap().to_str().unwrap().to_owned();
    // Gone.
    let gone = get(&reference.replace(&id, "0-0-0")).expect(1);
    assert!(gone.err.contains("/orders/0-0-0: "), "{}", gone.err);
    // Not what the reference says.
    for (from, to) in [("\"size\":10", "\"size\":11"), ("\"sha256\":\"", "\"sha256\":\"")] {
        let mut wrong = reference.replace(from, to);
        if from == to {
            let at = wrong.find(from).unwrap() + from.len();
            let digit = if &wrong[at..=at] == "0" { "1" } else { "0" };
            wrong.replace_range(at..=at, digit);
        }
        let run = get(&wrong).expect(3);
        assert!(run.err.starts_with("std-host: -: "), "{}", run.err);
    }
    // Elsewhere, whatever is there.
    fs::write(place.path("secret"), b"secret").unwrap();
    for location in [
        format!("{}/../secret", place.url),
        format!("{}/%2e%2e/secret", place.url),
        format!("file://{}", place.text("secret")),
        "s3://bucket/orders/1".to_owned(),
        "http://localhost/1".to_owned(),
    ] {
        get(&json!({"full-blob-path": location}).to_string()).expect(3);
        let run = place.blob(&["get", "--location", &location]).expect(2);
        assert!(run.err.contains("--location"), "{}", run.err);
    }
    for text in ["", "{}", "{\"full-blob-path\":1}", "[]"] {
        let run = get(text).expect(3);
        assert!(run.err.starts_with("std-host: -: byte 0: "), "{}", run.err);
    }
    // More than is wanted.
    let location = format!("{}/orders/{id}", place.url);
    place.blob(&["get", "--location", &location, "--max-bytes", "9"]).expect(1);
    place.blob(&["get", "--location", &location, "--max-bytes", "10"]).expect(0);
    let big = ["put", "--topic", "t", "--max-bytes", "2", "/dev/zero"];
    assert!(place.blob(&big).expect(1).err.contains("/dev/zero: more than 2 bytes"));
}

#[test]
fn wrong_usage_is_2() {
    let place = Place::new();
    let log = place.segment("orders-0/0.log", &[Is::Null]);
    let url = place.url.as_str();
    for args in [
        &["put"][..],
        &["put", "--store", url, &log],
        &["put", "--store", url, "--topic", "t", "--id", "serial", &log],
        &["put", "--store", "ftp://host/x", "--topic", "t", &log],
        &["put", "--store", url, "--topic", "t", "--option", "novalue", &log],
        &["get", "--store", url, "--location", "x", &log],
        &["get", &log],
        &["scan"],
        &["scan", "--format", "csv", &log],
        &["scan", "--option", "region=x", &log],
        &["scan", "--store", "nonsense", &log],
        &["scan", "0.index"],
        &["orphans", &log],
        &["orphans", "--store", url],
        &["orphans", "--store", url, "-"],
        &["orphans", "--store", url, "--min-age", "24", &log],
        &["orphans", "--store", url, "--delete", "-", &log],
        &["orphans", "--store", url, "--delete", "/nonexistent/list", &log],
        &["orphans", "--store", url, "--delete", &log, &log],
        &["orphans", "--store", url, "--delete", &log, "--despite-damage", &log],
        &["orphans", "--store", url, "--delete", &log, "--output", "/nonexistent/x", &log],
    ] {
        let run = run(["blob"].iter().chain(args)).expect(2);
        assert!(run.out.is_empty() && !run.err.is_empty(), "{args:?}");
    }
    // The list is not to lie beside what is read.
    let logs = place.path("orders-0");
    let list = logs.join("list");
    let args = ["orphans", logs.to_str().unwrap(), "--output", list.to_str().unwrap()];
    place.blob(&args).expect(2);
    assert!(!list.exists());
}

#[test]
fn help() {
    let help = run(["blob", "--help"]).expect(0).out;
    for command in ["put", "get", "scan", "orphans"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let help = run(["blob", command, "--help"]).expect(0).out;
        assert!(help.contains("--store <URL>") && help.contains("--option"), "{help}");
    }
    let orphans = run(["blob", "orphans", "--help"]).expect(0).out;
    for option in ["--min-age", "--delete", "--despite-damage", "--topic", "--output"] {
        assert!(orphans.contains(option), "{orphans}");
    }
}

#[test]
fn scan_counts() {
    let place = Place::new();
    let (one, other, lost) =
        (place.put("orders", b"12345"), place.put("orders", b"1234567"), place.put("orders", b"1"));
    fs::remove_file(place.file(&lost)).unwrap();
    let outside = r#"{"full-blob-path":"s3://bucket/orders/1"}"#;
    let first = place.segment(
        "logs/orders-0/00000000000000000000.log",
        &[
            Is::Value(b"inline"),
            Is::Marked(&one),
            Is::Null,
            Is::Marked(&one),
            Is::Value(other.as_bytes()),
        ],
    );
    let second = place.segment(
        "logs/orders-1/00000000000000000000.log",
        &[Is::Marked(&one), Is::Marked(&lost), Is::Marked("{}"), Is::Marked(outside)],
    );
    let logs = place.text("logs");

    let run = run(["blob", "scan", "--format", "json", &first]).expect(0);
    let document = run.json();
    assert_eq!(document["schema"], "std-host/blob-scan/1");
    let file = &document["files"][0];
    assert_eq!(file["path"], first);
    assert_eq!(file["batches"], json!({"total": 1, "corrupt": 0}));
    assert!(file.get("store").is_none(), "it was not asked");
    for (member, want) in [
        ("records", 5),
        ("null_values", 1),
        ("inline_values", 2),
        ("references", 2),
        ("referred_bytes", 10),
        ("references_without_size", 0),
        ("unreadable_references", 0),
        ("blobs", 1),
        ("blob_bytes", 5),
    ] {
        assert_eq!(file[member], want, "{member}");
        assert_eq!(document["total"][member], want, "{member}");
    }

    let run = place.blob(&["scan", "--format", "json", &logs]).expect(3);
    let document = run.json();
    let found = |at: &str, name: &str| document.pointer(at).unwrap()["store"][name].clone();
    assert_eq!(found("/files/0", "found"), 1);
    assert_eq!(found("/files/1", "found"), 0, "it was counted before");
    assert_eq!(found("/files/1", "missing"), 1);
    assert_eq!(found("/total", "outside"), 1);
    assert_eq!(document["total"]["references"], 5);
    assert_eq!(document["total"]["unreadable_references"], 1);
    assert_eq!(document["total"]["references_without_size"], 1);
    let kinds: Vec<_> = document["files"][1]["errors"].as_array().unwrap().iter().collect();
    let kinds: Vec<_> = kinds.iter().map(|error| error["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["blob_reference", "blob_missing"]);
    let lines = run.error_lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[2].contains("not a location below the store"), "{}", lines[2]);
    for line in lines {
        assert!(line.starts_with(&format!("std-host: {second}: byte 0: ")), "{line}");
    }

    // What looks like a reference counts if that is asked for.
    let sniffed = place.blob(&["scan", "--sniff", "--format", "json", &first]).expect(0).json();
    assert_eq!(sniffed["total"]["references"], 3);
    assert_eq!(sniffed["total"]["blob_bytes"], 12);
    // A blob that was cut.
    fs::write(place.file(&one), b"1234").unwrap();
    let cut = place.blob(&["scan", &first]).expect(3);
    assert!(cut.err.contains("the blob has 4 bytes, the reference says 5"), "{}", cut.err);
    assert_eq!(
        cut.out,
        format!(
            "{first}: 5 records, 2 references to 10 bytes, 1 blobs of 5 bytes\n  \
             2 inline values, 1 null\n  in the store: 0 found, 0 missing, 1 of another size\n"
        )
    );
    let text = place.blob(&["scan", &logs]).expect(3).out;
    assert!(text.contains("\nTotal: 9 records, 5 references"), "{text}");
}

/// Of many blobs, each is asked for once.
#[test]
fn scan_of_many() {
    let place = Place::new();
    let topic = place.path("blobs/orders");
    fs::create_dir_all(&topic).unwrap();
    let references: Vec<String> = (0..1500)
        .map(|n| {
            if n % 100 != 7 {
                fs::write(topic.join(n.to_string()), b"12").unwrap();
            }
            json!({"full-blob-path": format!("{}/orders/{n}", place.url), "size": 2}).to_string()
        })
        .collect();
    let records: Vec<_> = references.iter().map(|reference| Is::Marked(reference)).collect();
    let log = place.segment("orders-0/0.log", &records);
    let run = place.blob(&["scan", "--format", "json", &log]).expect(3);
    let store = run.json()["total"]["store"].clone();
    assert_eq!((&store["found"], &store["missing"]), (&json!(1485), &json!(15)));
    let missing: Vec<_> = run.error_lines().into_iter().map(str::to_owned).collect();
    assert_eq!(missing.len(), 15);
    assert!(missing[1].contains("offset 107: "), "in the order of the records: {}", missing[1]);
}

#[test]
fn scan_goes_on_behind_damage() {
    let place = Place::new();
    let reference = place.put("orders", b"12345");
    let good = batch(&[Is::Marked(&reference)]);
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    fs::write(place.path("0.log"), [&good[..], &bad, &good, &good[..50]].concat()).unwrap();
    let run = place.blob(&["scan", "--format", "json", &place.text("0.log")]).expect(3);
    let file = &run.json()["files"][0];
    assert_eq!(file["batches"], json!({"total": 2, "corrupt": 1}));
    assert_eq!((&file["references"], &file["trailing_kind"]), (&json!(2), &json!("partial_batch")));
    assert_eq!(file["errors"][0]["kind"], "crc_mismatch");
    // Every codec and version of the corpus, none of which has a reference.
    for name in ["126-crc-mismatch-in-the-middle", "141-transactions-aborted-compressed"] {
        let run = place.blob(&["scan", "--format", "json", case(name).to_str().unwrap()]);
        assert_eq!(run.json()["total"]["references"], 0, "{name}");
    }
    // One that is missing stops nothing, and outranks.
    let both = place.blob(&["scan", "/nonexistent/0.log", &place.text("0.log")]).expect(1);
    assert!(both.out.contains("2 references"), "{}", both.out);
    let piped = run_with_input(["blob", "scan", "-"], &good).expect(0);
    assert!(piped.out.starts_with("-: 1 records, 1 references"), "{}", piped.out);
    let log = place.segment("good.log", &[Is::Marked(&reference)]);
    for args in [&["scan", "--format", "json"][..], &["scan"]] {
        ends_quietly_without_a_reader(program().arg("blob").args(args).arg(&log));
    }
    let args = ["blob", "orphans", "--store", &place.url, "--topic", "orders", &log];
    ends_quietly_without_a_reader(program().args(args));
}

/// Finds, lists and deletes what nothing refers to, and nothing else.
#[test]
fn orphans_from_list_to_deletion() {
    let place = Place::new();
    let put = |n: u8| {
        let reference = place.put("orders", &[n; 10]);
        place.age(&reference, 48);
        reference
    };
    let (kept, orphan, later, touched, edited, young) =
        (put(1), put(2), put(3), put(4), put(5), place.put("orders", b"young"));
    let other_topic = place.put("payments", b"12345");
    place.age(&other_topic, 48);
    place.segment("logs/orders-0/00000000000000000000.log", &[Is::Marked(&kept)]);
    place.segment("logs/orders-1/00000000000000000000.log", &[Is::Value(b"x")]);
    let (logs, list) = (place.text("logs"), place.text("list"));

    // A dry run: the list on standard output, and nothing changes.
    let run = place.blob(&["orphans", &logs]).expect(0);
    let lines = run.lines();
    assert_eq!(lines[0]["schema"], "std-host/blob-orphans/1");
    assert_eq!(lines[0]["topics"], json!({"orders": [0, 1]}));
    assert_eq!((&lines[0]["references"], &lines[0]["doubts"]), (&json!(1), &json!(0)));
    assert_eq!(lines[0]["min_age_ms"], 86_400_000);
    let mut listed: Vec<_> =
        lines[1..].iter().map(|line| line["location"].as_str().unwrap().to_owned()).collect();
    listed.sort();
    let mut want: Vec<_> = [&orphan, &later, &touched, &edited]
        .map(|reference| format!("file://{}", place.file(reference).display()))
        .to_vec();
    want.sort();
    assert_eq!(listed, want);
    assert!(lines[1..].iter().all(|line| line["size"] == 10 && line["type"] == "orphan"));
    let summary =
        "4 orphans of 40 bytes; 1 blobs are referred to, 1 too young, 1 not of these topics";
    assert_eq!(run.err, format!("std-host: {summary}\n"));

    // To a file, which is never written over.
    let run = place.blob(&["orphans", &logs, "--output", &list]).expect(0);
    assert_eq!(run.out, format!("{list}: {summary}\n"));
    let text = fs::read_to_string(&list).unwrap();
    assert_eq!(text.lines().count(), 5);
    place.blob(&["orphans", &logs, "--output", &list]).expect(1);
    assert_eq!(fs::read_to_string(&list).unwrap(), text);

    // A line is taken out, lines are added, and the world goes on.
    let location = |reference: &str| format!("file://{}", place.file(reference).display());
    let mut text: String = text
        .lines()
        .filter(|line| !line.contains(&location(&edited)))
        .fold(String::new(), |text, line| text + line + "\n");
    fs::write(place.path("secret"), b"secret").unwrap();
    for location in [
        format!("{}/../secret", place.url),
        location(&kept),
        location(&young),
        location(&other_topic),
        format!("{}/orders/gone", place.url),
    ] {
        let line = json!({"type": "orphan", "location": location, "size": 6, "last_modified": 0});
        text.push_str(&format!("{line}\n"));
    }
    fs::write(&list, text).unwrap();
    place.segment("logs/orders-1/00000000000000000001.log", &[Is::Marked(&later)]);
    fs::write(place.file(&touched), b"something else").unwrap();
    place.age(&touched, 47);

    let run = place.blob(&["orphans", &logs, "--delete", &list]).expect(0);
    assert_eq!(
        run.out,
        format!("deleted {}\n1 blobs of 10 bytes deleted, 7 not\n", location(&orphan))
    );
    for (location, why) in [
        (location(&later), "a segment refers to it"),
        (location(&kept), "a segment refers to it"),
        (location(&touched), "it has changed"),
        (location(&young), "it is too young"),
        (location(&other_topic), "its topic was not searched"),
        (format!("{}/../secret", place.url), "it lies outside of the store"),
        (format!("{}/orders/gone", place.url), "it is gone"),
    ] {
        let line = format!(": {location}: not deleted: {why}\n");
        assert!(run.err.contains(&line), "{line}{}", run.err);
    }
    assert!(!place.file(&orphan).exists());
    for reference in [&kept, &later, &touched, &edited, &young, &other_topic] {
        assert!(place.file(reference).exists());
    }
    assert!(place.path("secret").exists());

    // A list is of one store, and of all the partitions that were searched for it.
    fs::create_dir(place.path("elsewhere")).unwrap();
    let elsewhere = format!("file://{}", place.text("elsewhere"));
    let args = ["blob", "orphans", "--store", &elsewhere, &logs, "--delete", &list];
    assert!(crate::run(args).expect(2).err.contains("a list of the store file:///"));
    let less = place.text("logs/orders-0");
    let run = place.blob(&["orphans", &less, "--delete", &list]).expect(1);
    assert!(run.err.contains("orders-1 was searched for this list"), "{}", run.err);
    assert!(place.file(&edited).exists());
}

/// Where a reference may have been missed, nothing is an orphan.
#[test]
fn orphans_refuses_where_there_is_doubt() {
    let place = Place::new();
    let (kept, orphan) = (place.put("orders", b"1"), place.put("orders", b"2"));
    place.age(&kept, 48);
    place.age(&orphan, 48);
    let log = place.segment("logs/orders-0/0.log", &[Is::Marked(&kept)]);
    let (logs, good) = (place.text("logs"), fs::read(&log).unwrap());
    let list = place.text("good-list");
    place.blob(&["orphans", &logs, "--output", &list]).expect(0);

    let check = |code: i32, told: &str| {
        let run = place.blob(&["orphans", &logs]).expect(code);
        assert_eq!(run.out, "");
        assert!(run.err.contains(told), "{told}: {}", run.err);
        assert!(run.err.contains("nothing is listed"), "{}", run.err);
        let run = place.blob(&["orphans", &logs, "--delete", &list]).expect(code);
        assert!(run.err.contains("nothing is deleted"), "{}", run.err);
        assert!(place.file(&orphan).exists());
    };
    damage(&log);
    check(3, "batch crc");
    // Listed all the same if that is asked for, but never deleted.
    let despite = place.text("despite");
    let args = ["orphans", &logs, "--despite-damage", "--output", &despite];
    place.blob(&args).expect(3);
    assert_eq!(fs::read_to_string(&despite).unwrap().lines().count(), 3, "what is kept is unknown");
    fs::write(&log, &good).unwrap();
    let refused = place.blob(&["orphans", &logs, "--delete", &despite]).expect(2);
    assert!(refused.err.contains("may have been missed"), "{}", refused.err);

    // Cut short, as a copy may be; or its last size is damaged.
    fs::write(&log, [&good[..], &good[..70]].concat()).unwrap();
    check(3, "incomplete batch of 70 bytes");
    // A marked value that nobody can read.
    fs::write(&log, [&good[..], &batch(&[Is::Marked("{}")])].concat()).unwrap();
    check(3, &format!("byte {}: reference of offset 0", good.len()));
    fs::write(&log, &good).unwrap();
    // A partition that is not there.
    place.segment("logs/orders-2/0.log", &[Is::Null]);
    check(1, "partition orders-1 is missing");
    place.segment("logs/orders-1/0.log", &[Is::Null]);
    place.blob(&["orphans", &logs]).expect(0);
    // What may be a reference, for whoever has written it.
    let location = place.file(&orphan).display().to_string();
    for value in [
        format!(r#"{{"full-blob-path":"file://{location}","size":"2"}}"#),
        format!(r#"[{{"full-blob-path":"file://{location}"}}]"#),
        format!("\0\0\0\0\x01{orphan}"),
    ] {
        fs::write(&log, [&good[..], &batch(&[Is::Value(value.as_bytes())])].concat()).unwrap();
        check(3, "reference of offset 0: full-blob-path in it");
    }
    // What only mentions a location keeps its blob, by whatever scheme and in whatever text.
    let named = format!("<a href='other://{location}'>");
    fs::write(&log, [&good[..], &batch(&[Is::Value(named.as_bytes())])].concat()).unwrap();
    let run = place.blob(&["orphans", &logs]).expect(0);
    assert_eq!(run.lines().len(), 1);
    assert!(run.err.contains("0 orphans of 0 bytes; 2 blobs are referred to"), "{}", run.err);
    // Unless there is no telling which one that is.
    let endless = format!("file://{}/{}", place.text("blobs"), "a.".repeat(100));
    fs::write(&log, [&good[..], &batch(&[Is::Value(endless.as_bytes())])].concat()).unwrap();
    check(3, "reference of offset 0: no end to a location");
    // All of its data lost, or so much of a tail that it is no preallocation.
    for lost in [vec![0; 500], [&good[..], &[0; 5]].concat()] {
        fs::write(&log, lost).unwrap();
        check(3, "incomplete batch of");
    }
    fs::write(&log, b"").unwrap();
    fs::write(Path::new(&log).with_extension("index"), [0, 0, 0, 1, 0, 0, 0, 9]).unwrap();
    check(3, "its index has entries");
    fs::write(&log, &good).unwrap();
    // A file that is not there.
    let run = place.blob(&["orphans", &logs, "/nonexistent/0.log"]).expect(1);
    assert!(run.err.contains("std-host: /nonexistent/0.log: "), "{}", run.err);
    assert_eq!(run.out, "");

    // Nothing to read, and nothing that says whose segments they are.
    let empty = tempfile::tempdir().unwrap();
    let run = place.blob(&["orphans", empty.path().to_str().unwrap()]).expect(1);
    assert!(run.err.contains("no *.log"), "{}", run.err);
    let run = place.blob(&["orphans", &log]).expect(1);
    assert!(run.err.contains("--topic"), "{}", run.err);
    // It is nothing to say of directories.
    let run = place.blob(&["orphans", "--topic", "others", &logs]).expect(2);
    assert!(run.err.contains("--topic others"), "{}", run.err);
    // Named, they are.
    let run = place.blob(&["orphans", "--topic", "orders", &log]).expect(0);
    assert_eq!(run.lines().len(), 2);
}

/// Of what was written to the log after it was copied, the copy knows nothing.
#[test]
fn orphans_of_an_old_copy() {
    let place = Place::new();
    let (old, newer) = (place.put("orders", b"1"), place.put("orders", b"2"));
    place.age(&old, 200);
    place.age(&newer, 48);
    let log = place.segment("logs/orders-0/0.log", &[Is::Null]);
    let copied = SystemTime::now() - Duration::from_secs(3600 * 60);
    File::options().write(true).open(&log).unwrap().set_modified(copied).unwrap();
    let lines = place.blob(&["orphans", &place.text("logs")]).expect(0).lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["location"], format!("file://{}", place.file(&old).display()));
}

/// One partition's copy is older than the other's: it counts.
#[test]
fn orphans_of_copies_of_unlike_age() {
    let place = Place::new();
    let blob = place.put("orders", b"1");
    place.age(&blob, 72);
    let stale = place.segment("logs/orders-0/0.log", &[Is::Null]);
    place.segment("logs/orders-1/0.log", &[Is::Null]);
    let logs = place.text("logs");
    assert_eq!(place.blob(&["orphans", &logs]).expect(0).lines().len(), 2);
    let copied = SystemTime::now() - Duration::from_secs(3600 * 240);
    File::options().write(true).open(&stale).unwrap().set_modified(copied).unwrap();
    let run = place.blob(&["orphans", &logs]).expect(0);
    assert_eq!(run.lines().len(), 1, "its record may be in what was written since");
    assert!(run.err.contains("1 too young"), "{}", run.err);
}

/// Below a topic are only its blobs; what else lies there is not ours to delete.
#[test]
fn orphans_are_blobs() {
    let place = Place::new();
    place.segment("logs/orders-0/0.log", &[Is::Null]);
    let blob = place.put("orders", b"1");
    let topic = place.file(&blob).parent().unwrap().to_path_buf();
    for rest in ["values/a", "keys/b", "other/c", "values/d/e"] {
        let file = topic.join(rest);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, b"x").unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600 * 48);
        File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    }
    let list = place.text("list");
    place.blob(&["orphans", &place.text("logs"), "--output", &list]).expect(0);
    let list = fs::read_to_string(list).unwrap();
    let listed: Vec<Value> =
        list.lines().skip(1).map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut names: Vec<_> = listed.iter().map(|l| l["location"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["keys/b", "values/a"].map(|rest| format!("{}/orders/{rest}", place.url)));
    // A list among the blobs would be one of them.
    let inside = place.text("blobs/list");
    let run = place.blob(&["orphans", &place.text("logs"), "--output", &inside]).expect(2);
    assert!(run.err.contains("would be a blob of the store"), "{}", run.err);
}

/// What was stored or deleted is told, whoever has gone.
#[test]
fn a_closed_pipe_hides_nothing() {
    let without_reader = |args: &[&str]| run_without_a_reader(program().args(args)).expect(1).err;
    let place = Place::new();
    let (one, two) = (place.put("orders", b"1"), place.put("orders", b"2"));
    place.age(&one, 48);
    place.age(&two, 48);
    place.segment("logs/orders-0/0.log", &[Is::Null]);
    let data = place.text("data");
    fs::write(&data, b"3").unwrap();
    let told = without_reader(&["blob", "put", "--store", &place.url, "--topic", "orders", &data]);
    let (_, reference) = told.split_once(": {").unwrap();
    assert_eq!(fs::read(place.file(&format!("{{{reference}"))).unwrap(), b"3");

    let (logs, list) = (place.text("logs"), place.text("list"));
    place.blob(&["orphans", &logs, "--output", &list]).expect(0);
    let told =
        without_reader(&["blob", "orphans", "--store", &place.url, &logs, "--delete", &list]);
    for blob in [&one, &two] {
        let file = place.file(blob);
        assert!(!file.exists());
        assert!(told.contains(&format!("deleted file://{}", file.display())), "{told}");
    }
    assert!(told.contains("2 blobs of 2 bytes deleted"), "{told}");
}

/// What a record has in it is data, and steers no terminal.
#[test]
fn control_characters_are_escaped() {
    let place = Place::new();
    let reference = r#"{"full-blob-path":"\u001b[2J\nstd-host: fake"}"#;
    let args = ["blob", "get", "--store", &place.url];
    let run = run_with_input(args, reference.as_bytes()).expect(3);
    assert_eq!(run.error_lines().len(), 1, "{}", run.err);
    assert!(run.err.contains(r"\u{1b}[2J\nstd-host: fake"), "{}", run.err);
}

/// Without the store nothing is missing: it is not known.
#[test]
fn scan_without_its_store() {
    let place = Place::new();
    let blob = place.put("orders", b"1");
    let log = place.segment("logs/orders-0/0.log", &[Is::Marked(&blob)]);
    fs::remove_dir_all(place.path("blobs")).unwrap();
    let run = place.blob(&["scan", "--format", "json", &log]).expect(1);
    let store = &run.json()["total"]["store"];
    assert_eq!((&store["missing"], &store["unchecked"]), (&json!(0), &json!(1)), "{}", run.err);
    assert!(run.err.contains("blobs"), "{}", run.err);
}

/// Two records may say two sizes of one blob; one of them is wrong.
#[test]
fn scan_looks_at_every_size() {
    let place = Place::new();
    let right = place.put("orders", b"12");
    let mut wrong: Value = serde_json::from_str(&right).unwrap();
    wrong["size"] = json!(99);
    let wrong = wrong.to_string();
    let log = place.segment("logs/orders-0/0.log", &[Is::Marked(&right), Is::Marked(&wrong)]);
    let run = place.blob(&["scan", "--format", "json", &log]).expect(3);
    let total = &run.json()["total"];
    assert_eq!((&total["blobs"], &total["store"]["size_mismatches"]), (&json!(1), &json!(1)));
    // A name that no file can have is only missing, and the others are still looked for.
    let long = json!({"full-blob-path": format!("{}/orders/{}", place.url, "x".repeat(300))});
    let below = json!({"full-blob-path": format!("file://{}/x", place.file(&right).display())});
    let hostile = [long.to_string(), below.to_string()];
    let [long, below] = hostile.each_ref().map(|reference| Is::Marked(reference));
    let log = place.segment("logs/orders-0/0.log", &[long, below, Is::Marked(&right)]);
    let run = place.blob(&["scan", "--format", "json", &log]).expect(3);
    let store = &run.json()["total"]["store"];
    assert_eq!((&store["missing"], &store["found"]), (&json!(2), &json!(1)), "{}", run.err);
}

/// What the cleaner is about to rename is read as well.
#[test]
fn orphans_while_the_log_is_cleaned() {
    let place = Place::new();
    let kept = place.put("orders", b"1");
    place.age(&kept, 48);
    place.segment("logs/orders-0/00000000000000000100.log", &[Is::Null]);
    place.segment("logs/orders-0/00000000000000000000.log.swap", &[Is::Marked(&kept)]);
    place.segment("logs/orders-0/00000000000000000000.index.swap", &[]);
    assert_eq!(place.blob(&["orphans", &place.text("logs")]).expect(0).lines().len(), 1);
}

/// Segments are read, and nothing else happens to them.
#[test]
fn inputs_stay_as_they_are() {
    let place = Place::new();
    let reference = place.put("orders", b"1");
    place.age(&reference, 48);
    place.segment("orders-0/0.log", &[Is::Null]);
    let (logs, list) = (place.text("orders-0"), place.text("list"));
    let before =
        (crate::snapshot(&place.path("orders-0")), crate::snapshot(&place.path("blobs/orders")));
    place.blob(&["scan", &logs]).expect(0);
    place.blob(&["orphans", &logs, "--output", &list]).expect(0);
    assert_eq!(
        (crate::snapshot(&place.path("orders-0")), crate::snapshot(&place.path("blobs/orders"))),
        before
    );
    place.blob(&["orphans", &logs, "--delete", &list]).expect(0);
    assert_eq!(crate::snapshot(&place.path("orders-0")), before.0);
}
