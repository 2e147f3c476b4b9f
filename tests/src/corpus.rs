//! Finds what is in `tests/corpus`; its README says where that comes from.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// `tests/corpus`.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// A file's name and bytes.
#[derive(Debug, Clone)]
pub struct File {
    /// `segments/levels.log`, or `cases/NNN-name/input.log`.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// A whole segment, and the line of `expect.ndjson` that goes with it.
#[derive(Debug, Clone)]
pub struct Segment {
    /// The segment.
    pub file: File,
    /// What Kafka's classes say of it.
    pub expect: Value,
}

/// An input of a case, and what is expected of it: an object with `outcome` and
/// `segment`.
#[derive(Debug, Clone)]
pub struct Case {
    /// The input.
    pub file: File,
    /// What is to come out.
    pub expect: Value,
}

fn load(path: &Path) -> File {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.strip_prefix(root()).expect("below the corpus");
    File { name: name.display().to_string(), bytes }
}

/// All segments.
///
/// # Panics
///
/// If they cannot be read.
#[must_use]
pub fn segments() -> Vec<Segment> {
    let folder = root().join("segments");
    let lines = fs::read_to_string(folder.join("expect.ndjson")).expect("expect.ndjson");
    lines
        .lines()
        .map(|line| {
            let expect: Value = serde_json::from_str(line).expect("JSON");
            let file = load(&folder.join(expect["file"].as_str().expect("a name")));
            Segment { file, expect }
        })
        .collect()
}

/// All inputs of all cases, by name.
///
/// # Panics
///
/// If they cannot be read.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root().join("cases")).expect("cases") {
        let folder = folder.expect("a folder").path();
        let text = fs::read_to_string(folder.join("expect.json")).expect("expect.json");
        let expect: Value = serde_json::from_str(&text).expect("JSON");
        let names = expect["inputs"].as_object().expect("inputs").keys();
        for name in names.filter(|name| name.ends_with(".log")) {
            let expect = match (&expect["inputs_expect"][name], &expect["extra_input"][name]) {
                (Value::Null, Value::Null) => expect.clone(),
                // The empty file beside case 202.
                (Value::Null, _) => serde_json::json!({
                    "outcome": "ok",
                    "segment": {"valid_bytes": 0, "trailing_bytes": 0, "batches": []},
                }),
                (of_this, _) => of_this.clone(),
            };
            found.push(Case { file: load(&folder.join(name)), expect });
        }
    }
    found.sort_by(|a, b| a.file.name.cmp(&b.file.name));
    found
}

/// Every file: segments and inputs of cases.
#[must_use]
pub fn files() -> Vec<File> {
    let cases = cases().into_iter().map(|case| case.file);
    segments().into_iter().map(|segment| segment.file).chain(cases).collect()
}
