//! Whatever a record says, nothing outside of the store's URL is read.

use std::fs;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use proptest::prelude::*;
use proptest::sample::select;
use std_host::large_message::{BlobErrorKind, BlobStore, BlobStoreConfig, ObjectBlobStore};

const INSIDE: &[u8] = b"inside";

/// `topic/id` inside, and things outside that are called alike.
struct Stores {
    folder: tempfile::TempDir,
    file: ObjectBlobStore,
    memory: ObjectBlobStore,
}

impl Stores {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("pre/topic/id", INSIDE);
        for outside in ["secret", "topic/id", "prefix/topic/id", "pre.old/topic/id"] {
            write(outside, b"outside");
        }
        let memory = InMemory::new();
        for (object, text) in [
            ("pre/topic/id", INSIDE),
            ("secret", b"outside"),
            ("topic/id", b"outside"),
            ("prefix/topic/id", b"outside"),
        ] {
            let object = object.into();
            let put = memory.put(&object, Bytes::from_static(text).into());
            futures_util::FutureExt::now_or_never(put).unwrap().unwrap();
        }
        let config = BlobStoreConfig::new("object-store");
        let memory = ObjectBlobStore::over(Arc::new(memory), "s3://bucket/pre", &config).unwrap();
        let url = format!("file://{}/pre", folder.path().display());
        let file = ObjectBlobStore::open(&BlobStoreConfig::at(url)).unwrap();
        Self { folder, file, memory }
    }
}

/// Pieces that locations, hostile or not, are made of.
fn piece() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "/",
        "/",
        "/",
        "..",
        ".",
        "topic",
        "id",
        "secret",
        "pre",
        "prefix",
        "\\",
        "%2e%2e",
        "%2E",
        "%2f",
        "%252e",
        "%5c",
        "%00",
        "\0",
        "?",
        "#",
        "@",
        ":",
        ":443",
        "//",
        "s3://",
        "file://",
        "file:///",
        "bucket",
        "evil",
        "user:pass@",
        ";",
        "\u{2025}",
        "\u{ff0f}",
        "\n",
        " ",
        "~",
        "etc/passwd",
        "...",
    ]);
    prop_oneof![8 => pieces.prop_map(String::from), 1 => any::<char>().prop_map(String::from)]
}

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn never_outside(tails in proptest::collection::vec((0..3, pieces(), pieces()), 32)) {
        let stores = Stores::new();
        for store in [&stores.file, &stores.memory] {
            for (kind, one, two) in &tails {
                let url = store.url();
                let location = match kind {
                    0 => format!("{one}{two}"),
                    1 => format!("{url}{one}"),
                    // In the middle of the right one.
                    _ => format!("{url}/{one}/topic/{two}/id"),
                };
                match store.get(&location, 1000) {
                    Ok(blob) => {
                        prop_assert_eq!(&blob[..], INSIDE, "{}", &location);
                        prop_assert_eq!(&location, &format!("{url}/topic/id"));
                    }
                    Err(error) => prop_assert!(
                        matches!(error.kind(), BlobErrorKind::NotAllowed | BlobErrorKind::NotFound),
                        "{}", error
                    ),
                }
                let kind = |error: std_host::large_message::BlobError| error.kind();
                prop_assert_eq!(
                    store.head(&location).map(|blob| blob.size).map_err(kind),
                    store.get(&location, 1000).map(|blob| blob.len() as u64).map_err(kind)
                );
            }
        }
        // And nothing has gone.
        prop_assert_eq!(fs::read(stores.folder.path().join("secret")).unwrap(), b"outside");
    }
}

/// The right location is allowed, so that the property above is about something.
#[test]
fn inside() {
    let stores = Stores::new();
    for store in [&stores.file, &stores.memory] {
        let location = format!("{}/topic/id", store.url());
        assert_eq!(store.get(&location, 1000).unwrap(), INSIDE);
    }
}

#[cfg(unix)]
#[test]
fn symbolic_links() {
    use std::os::unix::fs::symlink;

    let stores = Stores::new();
    let pre = stores.folder.path().join("pre");
    symlink(stores.folder.path().join("topic"), pre.join("link")).unwrap();
    symlink(stores.folder.path().join("secret"), pre.join("topic/secret")).unwrap();
    symlink("topic", pre.join("alias")).unwrap();
    symlink("nowhere", pre.join("topic/dangling")).unwrap();
    let store = &stores.file;
    let at = |rest: &str| format!("{}/{rest}", store.url());
    let kind = |location: &str| store.get(location, 1000).map_err(|error| error.kind());

    for rest in ["link/id", "link/none", "topic/secret"] {
        assert_eq!(kind(&at(rest)), Err(BlobErrorKind::NotAllowed), "{rest}");
        assert_eq!(store.head(&at(rest)).unwrap_err().kind(), BlobErrorKind::NotAllowed);
        assert_eq!(store.delete(&at(rest)).unwrap_err().kind(), BlobErrorKind::NotAllowed);
    }
    assert_eq!(
        store.put("link", Bytes::from_static(b"x")).unwrap_err().kind(),
        BlobErrorKind::NotAllowed
    );
    assert_eq!(kind(&at("alias/id")).unwrap(), INSIDE);
    assert_eq!(kind(&at("topic/dangling")), Err(BlobErrorKind::NotFound));
    // One blob of two names: a list is refused, and so is to delete either by the other's.
    assert_eq!(store.delete(&at("alias/id")).unwrap_err().kind(), BlobErrorKind::NotAllowed);
    let error = store.list().find_map(Result::err).expect("a link in the store");
    assert_eq!(error.kind(), BlobErrorKind::NotAllowed);
    assert!(error.to_string().contains("alias/id"), "{error}");
    fs::remove_file(pre.join("alias")).unwrap();
    let listed: Vec<String> = store.list().map(|blob| blob.unwrap().location).collect();
    assert_eq!(listed, [at("topic/id")]);
    assert_eq!(fs::read_dir(stores.folder.path().join("topic")).unwrap().count(), 1);
}

#[test]
fn topics_are_names() {
    let stores = Stores::new();
    for topic in ["", ".", "..", "../topic", "a/b", "a%2fb", "\u{e4}", &"t".repeat(250)] {
        let error = stores.file.put(topic, Bytes::from_static(b"x")).unwrap_err();
        assert_eq!(error.kind(), BlobErrorKind::NotAllowed, "{topic:?}: {error}");
    }
}
