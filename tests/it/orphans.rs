//! Orphans among blobs: never one that a segment refers to, and every other old one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use logseg_core::{Codec, Limits};
use logseg_tests::build::{Rec, message_set};
use logseg_tests::{BatchBuilder, MessageBuilder, Packing};
use proptest::prelude::*;
use std_host::large_message::orphans::{Age, Search, Verdict};
use std_host::large_message::{
    BlobStoreConfig, JsonFormatter, KEY_HEADER, LargeMessageFormatter, ObjectBlobStore, Reference,
    VALUE_HEADER,
};

/// Names that start with one another, or look like partitions or like parts of URLs. The
/// last two have blobs and no partition.
const TOPICS: [&str; 8] = ["a", "a-1", "a-1-0", "a.b", "..a", "_", "orders-0.deleted", "values"];
const WITH_PARTITIONS: usize = 6;
const PARTITIONS: usize = 3;
const DAY: Duration = Duration::from_secs(86_400);

/// A blob to be made.
#[derive(Debug, Clone)]
struct Blob {
    topic: usize,
    id: String,
    is_old: bool,
}

/// How a record refers to a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Marked,
    MarkedWithLess,
    Unmarked,
    InKey,
    MarkedKey,
    BakdataHeader,
    BakdataFlag,
    /// By another URL of the same store.
    OtherUrl,
    /// With the first letter of the id escaped.
    Escaped,
    /// Not at all.
    Inline,
    Tombstone,
    /// Text that has the location in it.
    Mention,
}

const WAYS: [Way; 12] = [
    Way::Marked,
    Way::MarkedWithLess,
    Way::Unmarked,
    Way::InKey,
    Way::MarkedKey,
    Way::BakdataHeader,
    Way::BakdataFlag,
    Way::OtherUrl,
    Way::Escaped,
    Way::Inline,
    Way::Tombstone,
    Way::Mention,
];

/// A batch to be made, and where.
#[derive(Debug, Clone)]
struct Plan {
    topic: usize,
    partition: usize,
    /// Starts a segment.
    rolls: bool,
    codec: Codec,
    magic: u8,
    /// In a transaction that is aborted.
    aborted: bool,
    /// Which blob, and how.
    records: Vec<(prop::sample::Index, Way)>,
}

fn blob() -> impl Strategy<Value = Blob> {
    let id = prop_oneof![
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "[0-9a-f]{64}",
        // The same for several topics, as those of a content address are.
        Just("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned()),
        "[a-z0-9._~=+,@-]{1,3}x",
    ];
    (0..TOPICS.len(), id, any::<bool>()).prop_map(|(topic, id, is_old)| Blob { topic, id, is_old })
}

fn plan() -> impl Strategy<Value = Plan> {
    let records = (any::<prop::sample::Index>(), prop::sample::select(&WAYS[..]));
    (
        (0..WITH_PARTITIONS, 0..PARTITIONS),
        any::<bool>(),
        prop::sample::select(&Codec::ALL[..]),
        prop_oneof![8 => Just(2u8), 1 => Just(1), 1 => Just(0)],
        any::<bool>(),
        prop::collection::vec(records, 0..6),
    )
        .prop_map(|((topic, partition), rolls, codec, magic, aborted, records)| Plan {
            topic,
            partition,
            rolls,
            // zstd came with v2.
            codec: if magic < 2 && codec == Codec::Zstd { Codec::Lz4 } else { codec },
            magic,
            aborted,
            records,
        })
}

/// The record, and whether it refers to the blob in a batch of this version.
fn record(offset: i64, location: &str, id: &str, way: Way, magic: u8) -> (Rec, bool) {
    let reference = |location: &str, names: Option<&str>| {
        let name = || names.map(str::to_owned);
        JsonFormatter
            .format(&Reference {
                full_blob_path: location.to_owned(),
                blob_store_class: name(),
                blob_id_generator_class: name(),
                large_message_formatter_class: name(),
                size: names.map(|_| 5),
                sha256: None,
            })
            .to_vec()
    };
    let mut rec = Rec::new(offset, 1_700_000_000_000 + offset, b"key", b"");
    let header = |key: &str, value: &[u8]| (key.as_bytes().to_vec(), Some(value.to_vec()));
    let other = format!("s3a://elsewhere/{}", location.rsplit_once("/blobs/").unwrap().1);
    let escaped =
        format!("{}%{:02x}{}", location.strip_suffix(id).unwrap(), id.as_bytes()[0], &id[1..]);
    let mut has_header = true;
    let value = match way {
        Way::Marked => reference(location, Some("name")),
        Way::MarkedWithLess => reference(location, None),
        Way::OtherUrl => reference(&other, Some("name")),
        Way::Escaped => reference(&escaped, Some("name")),
        Way::BakdataHeader => location.as_bytes().to_vec(),
        Way::BakdataFlag => [b"\x01", location.as_bytes()].concat(),
        Way::Unmarked => reference(location, Some("name")),
        Way::Mention => format!("see {location}, there.").into_bytes(),
        Way::InKey | Way::MarkedKey | Way::Inline | Way::Tombstone => b"a value".to_vec(),
    };
    match way {
        Way::Marked | Way::MarkedWithLess | Way::OtherUrl | Way::Escaped => {
            rec.headers.push(header("trace", b"1"));
            rec.headers.push(header(VALUE_HEADER, &[1]));
        }
        Way::MarkedKey => rec.headers.push(header(KEY_HEADER, &[1])),
        Way::BakdataHeader => rec.headers.push(header("__large.message.backed.value", &[1])),
        _ => has_header = false,
    }
    rec.value = Some(value);
    match way {
        Way::InKey | Way::MarkedKey => rec.key = Some(reference(location, Some("name"))),
        Way::Tombstone => rec.value = None,
        _ => {}
    }
    let refers = !matches!(way, Way::Inline | Way::Tombstone);
    if has_header && magic < 2 {
        rec.headers.clear();
    }
    (rec, refers)
}

fn entries(plan: &Plan, base: i64, records: Vec<Rec>) -> Vec<u8> {
    let packing = Packing::java(plan.codec);
    let last = base + records.len() as i64;
    match plan.magic {
        2 if plan.aborted => {
            let batch = BatchBuilder::new(records).packing(packing).base_offset(base);
            let batch = batch.producer(7, 0, 0).flags(0x10).build();
            let marker = Rec::new(last, 1_700_000_000_000, &[0, 0, 0, 0], &[0, 0, 0, 0, 0, 0]);
            let marker = BatchBuilder::new(vec![marker]).base_offset(last).flags(0x30);
            [batch, marker.producer(7, 0, -1).build()].concat()
        }
        2 => BatchBuilder::new(records).packing(packing).base_offset(base).build(),
        _ if records.is_empty() => Vec::new(),
        magic if plan.codec == Codec::None => {
            records.iter().flat_map(|rec| MessageBuilder::new(magic, rec).build()).collect()
        }
        magic => {
            let set = message_set(magic, &records);
            let offset = records.last().unwrap().offset;
            MessageBuilder::wrapper(magic, offset, 1_700_000_000_000, &set, &packing).build()
        }
    }
}

/// A log and a store, made of plans.
struct Scene {
    _directory: tempfile::TempDir,
    logs: PathBuf,
    store: ObjectBlobStore,
    /// Locations that segments refer to, and ids that they refer to elsewhere.
    referred: BTreeSet<String>,
    elsewhere: BTreeSet<String>,
}

fn location(root: &str, blob: &Blob) -> String {
    format!("{root}/{}/{}", TOPICS[blob.topic], blob.id)
}

fn scene(blobs: &[Blob], plans: &[Plan]) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let (logs, store) = (directory.path().join("logs"), directory.path().join("blobs"));
    let root = format!("file://{}", store.display());
    for blob in blobs {
        let topic = store.join(TOPICS[blob.topic]);
        fs::create_dir_all(&topic).unwrap();
        let file = File::create(topic.join(&blob.id)).unwrap();
        let age = if blob.is_old { 3 * DAY } else { DAY / 2 };
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    fs::create_dir_all(&store).unwrap();
    let (mut referred, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    let mut segments: Vec<Vec<Vec<u8>>> = vec![vec![Vec::new()]; WITH_PARTITIONS * PARTITIONS];
    for (plan, base) in plans.iter().zip((0..).step_by(100)) {
        let records = plan.records.iter().zip(base..).map(|((blob, way), offset)| {
            let blob = blob.get(blobs);
            let at = location(&root, blob);
            let (rec, refers) = record(offset, &at, &blob.id, *way, plan.magic);
            match way {
                Way::OtherUrl | Way::Escaped => drop(elsewhere.insert(blob.id.clone())),
                _ if refers => drop(referred.insert(at)),
                _ => {}
            }
            rec
        });
        let records = records.collect();
        let partition = &mut segments[plan.topic * PARTITIONS + plan.partition];
        if plan.rolls {
            partition.push(Vec::new());
        }
        partition.last_mut().unwrap().extend(entries(plan, base, records));
    }
    for (nth, segments) in segments.iter().enumerate() {
        let partition = format!("{}-{}", TOPICS[nth / PARTITIONS], nth % PARTITIONS);
        let partition = logs.join(partition);
        fs::create_dir_all(&partition).unwrap();
        for (nth, bytes) in segments.iter().enumerate() {
            fs::write(partition.join(format!("{nth:020}.log")), bytes).unwrap();
        }
    }
    let store = ObjectBlobStore::open(&BlobStoreConfig::at(root)).unwrap();
    Scene { _directory: directory, logs, store, referred, elsewhere }
}

fn search(scene: &Scene, paths: &[PathBuf]) -> (Search, Vec<String>) {
    let mut doubts = Vec::new();
    let search = Search::run(scene.store.url(), paths, &[], Limits::default(), &mut |path, why| {
        doubts.push(format!("{}: {why}", path.display()));
    });
    assert_eq!(search.doubts(), doubts.len() as u64);
    (search, doubts)
}

fn id(location: &str) -> &str {
    location.rsplit('/').next().unwrap()
}

proptest! {
    #![proptest_config(super::law::config(200))]

    #[test]
    fn never_one_that_is_referred_to_and_every_other_old_one(
        blobs in prop::collection::vec(blob(), 1..24),
        plans in prop::collection::vec(plan(), 0..12),
    ) {
        let scene = scene(&blobs, &plans);
        let (search, doubts) = search(&scene, std::slice::from_ref(&scene.logs));
        prop_assert!(doubts.is_empty(), "{doubts:?}");
        prop_assert_eq!(search.topics().len(), WITH_PARTITIONS);
        let age = Age::from_now(DAY);
        let listed: Vec<_> = scene.store.list().map(Result::unwrap).collect();
        for blob in &listed {
            let topic = search.topic_of(&blob.location).unwrap();
            let searched = TOPICS[..WITH_PARTITIONS].contains(&topic);
            let referred = scene.referred.contains(&blob.location)
                || scene.elsewhere.contains(id(&blob.location));
            let old = blob.last_modified < SystemTime::now() - 2 * DAY;
            let verdict = search.verdict(blob, age);
            prop_assert_eq!(
                verdict == Verdict::Orphan, searched && old && !referred,
                "{:?}: {:?}", blob, verdict
            );
        }
        // What is made is what is listed: a blob twice is one file.
        let root = scene.store.url();
        let made: BTreeSet<_> = blobs.iter().map(|blob| location(root, blob)).collect();
        prop_assert_eq!(made, listed.into_iter().map(|blob| blob.location).collect());
    }

    /// Damage anywhere is a doubt, or it has lost nothing.
    #[test]
    fn damage_is_never_passed_over(
        blobs in prop::collection::vec(blob(), 1..4),
        plans in prop::collection::vec(plan(), 1..4),
        at in any::<prop::sample::Index>(),
        in_header in any::<bool>(),
        bit in 0..8u8,
    ) {
        // All of them are orphans but for the references.
        let blobs: Vec<_> = blobs
            .into_iter()
            .map(|blob| Blob { topic: blob.topic % WITH_PARTITIONS, is_old: true, ..blob })
            .collect();
        let scene = scene(&blobs, &plans);
        let mut files = Vec::new();
        for partition in fs::read_dir(&scene.logs).unwrap() {
            for file in fs::read_dir(partition.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                files.extend((!bytes.is_empty()).then_some((path, bytes)));
            }
        }
        prop_assume!(!files.is_empty());
        let (path, bytes) = at.get(&files);
        let mut bytes = bytes.clone();
        // Offset, size, and what tells the version: no checksum covers them.
        let byte = if in_header {
            let entries = logseg_tests::build::entries(&bytes);
            at.get(&entries).start + at.index(17)
        } else {
            at.index(bytes.len())
        };
        bytes[byte] ^= 1 << bit;
        fs::write(path, bytes).unwrap();
        let (search, doubts) = search(&scene, std::slice::from_ref(&scene.logs));
        let age = Age::from_now(DAY);
        let wrong = scene.store.list().map(Result::unwrap).any(|blob| {
            let referred = scene.referred.contains(&blob.location)
                || scene.elsewhere.contains(id(&blob.location));
            search.verdict(&blob, age) == Verdict::Orphan && referred
        });
        prop_assert!(!wrong || !doubts.is_empty());
    }
}
