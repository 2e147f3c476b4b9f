//! The real program from outside: exit codes, streams, and what it never does.

mod analyze;
mod blob;
mod cursor;
mod dump;
mod dump_side;
mod recompress;
mod snappy;
mod verify;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// `tests/corpus`.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus")
}

fn segment(name: &str) -> PathBuf {
    corpus().join("segments").join(name)
}

fn case(name: &str) -> PathBuf {
    corpus().join("cases").join(name).join("input.log")
}

/// A file beside a segment.
fn side(name: &str) -> PathBuf {
    corpus().join("side").join(name)
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_std-host"))
}

/// Runs the program to its end. Whatever happens, it never panics.
fn run<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Run {
    Run::of(program().args(args).stdin(Stdio::null()).output().unwrap())
}

fn run_with_input<A: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = A>,
    input: &[u8],
) -> Run {
    let mut child = program()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // A program that has seen enough may close its end.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Run::of(output)
}

struct Run {
    code: i32,
    out: String,
    /// The same where it is no text.
    bytes: Vec<u8>,
    err: String,
}

impl Run {
    fn of(output: Output) -> Self {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!err.contains("panicked"), "{err}");
        Self {
            code: output.status.code().expect("not killed by a signal"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            bytes: output.stdout,
            err,
        }
    }

    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.err);
        self
    }

    /// The lines of a JSON dump.
    fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }

    /// Error lines, which name file, byte and field.
    fn error_lines(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("std-host: ")).collect()
    }
}

/// The files below a directory with their bytes and times.
fn snapshot(directory: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let metadata = fs::metadata(&path).unwrap();
            let bytes = if metadata.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            (path, bytes, metadata.modified().unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn wrong_usage_is_2() {
    let log = segment("levels.log");
    let log = log.to_str().unwrap();
    for args in [
        &["frobnicate"][..],
        &[],
        &["analyze"],
        &["dump"],
        &["analyze", "--codecs", "brotli", log],
        &["analyze", "--codecs", "gzip:0", log],
        &["analyze", "--codecs", "gzip:10", log],
        &["analyze", "--codecs", "lz4:18", log],
        &["analyze", "--codecs", "zstd:-131073", log],
        &["analyze", "--codecs", "zstd:23", log],
        &["analyze", "--codecs", "snappy:1", log],
        &["analyze", "--codecs", "zstd:-131072..22", log],
        &["analyze", "--codecs", "", log],
        &["analyze", "--threads", "0", log],
        &["analyze", "--threads", "many", log],
        &["analyze", "--format", "xml", log],
        &["analyze", "--no-such-option", log],
        &["dump", "--format", "csv", log],
        &["dump", "recovery-point-offset-checkpoint"],
        &["dump", "00000000000000000004-0000000001.checkpoint"],
        &["verify", "00000000000000000000.index"],
        &["analyze", "00000000000000000000.timeindex"],
        &["verify", "00000000000000000000.snapshot"],
        &["cursor"],
        &["cursor", "analyze"],
        &["cursor", "compress", log],
        &["cursor", "compress", "--codec", "gzip", log],
        &["cursor", "recompress", "--codec", "zstd:3", log],
        &["cursor", "inspect", "--kind", "topic", log],
        &["cursor", "inspect", "--max-bytes", "0", log],
        &["blob", "inspect", log],
        &["snappy"],
        &["snappy", "encode", "--block-size", "1023", log],
        &["snappy", "decode", "--framing", "sz", log],
        &["recompress", log, "--codec", "zstd"],
        &["recompress", log, "--output", "/nonexistent/new.log"],
        &["recompress", log, "--codec", "zstd:1..3", "--output", "/nonexistent/new.log"],
        &["recompress", log, "--codec", "brotli", "--output", "/nonexistent/new.log"],
        &["recompress", "0.index", "--codec", "zstd", "--output", "/nonexistent/new.log"],
    ] {
        let run = run(args).expect(2);
        assert!(run.out.is_empty() && !run.err.is_empty(), "{args:?}");
    }
}

#[test]
fn help_lists_what_there_is_and_nothing_else() {
    let help = run(["--help"]).expect(0).out;
    assert!(
        ["analyze", "blob", "cursor", "dump", "recompress", "snappy", "verify"]
            .iter()
            .all(|name| help.contains(name))
    );
    assert!(run(["--version"]).expect(0).out.starts_with("std-host "));
    assert!(run(["analyze", "--help"]).expect(0).out.contains("--no-recompression"));
}

#[test]
fn what_cannot_be_read_is_1_and_stops_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let directory = empty.path().to_str().unwrap();
    let log = segment("levels.log");
    let log = log.to_str().unwrap();
    let index = run(["dump", "/nonexistent/0.index", log]).expect(1);
    assert!(index.err.contains("std-host: /nonexistent/0.index: "), "{}", index.err);
    assert!(index.out.contains("levels.log"), "the other file is still read");
    for command in ["analyze", "dump", "verify"] {
        let missing = run([command, "/nonexistent/0.log"]).expect(1);
        assert!(missing.err.contains("std-host: /nonexistent/0.log: "), "{}", missing.err);
        assert!(run([command, directory]).expect(1).err.contains("no *.log"));
        let both = run([command, "/nonexistent/0.log", log]).expect(1);
        assert!(both.out.contains("levels.log"), "the other file is still read");
        // 1 outranks 3.
        let damaged = case("126-crc-mismatch-in-the-middle");
        run([command, "/nonexistent/0.log", damaged.to_str().unwrap()]).expect(1);
        run([command, damaged.to_str().unwrap()]).expect(3);
    }
}

#[test]
fn inputs_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let partition = directory.path().join("orders-0");
    fs::create_dir(&partition).unwrap();
    for (name, from) in [
        ("00000000000000000000.log", segment("levels.log")),
        ("00000000000000100000.log", case("126-crc-mismatch-in-the-middle")),
        ("00000000000000200000.log", case("122-preallocated-zero-tail")),
    ] {
        fs::copy(from, partition.join(name)).unwrap();
    }
    fs::write(partition.join("00000000000000000000.index"), b"\0\0\0\0\0\0\0\0").unwrap();
    let before = (snapshot(directory.path()), snapshot(&partition));
    let path = directory.path().to_str().unwrap();
    run(["analyze", path]).expect(3);
    run(["analyze", "--format", "json", "--threads", "2", path]).expect(3);
    run(["dump", "--print-data-log", path]).expect(3);
    run(["dump", partition.join("00000000000000000000.index").to_str().unwrap()]).expect(0);
    run(["verify", path]).expect(3);
    assert_eq!((snapshot(directory.path()), snapshot(&partition)), before);
    // The report may not become a new file beside them either.
    for output in [partition.join("report.txt"), partition.join("00000000000000000000.log")] {
        let refused = run(["analyze", path, "--output", output.to_str().unwrap()]).expect(2);
        assert!(refused.err.contains("--output"), "{}", refused.err);
    }
    // Nor one over an input that is named, linked or piped.
    let input = partition.join("00000000000000000000.log");
    let elsewhere = tempfile::tempdir().unwrap();
    let (hard, links) = (elsewhere.path().join("hard.txt"), elsewhere.path().join("links"));
    fs::hard_link(&input, &hard).unwrap();
    fs::create_dir(&links).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&input, links.join("a.log")).unwrap();
    for (path, output) in [(&input, &hard), (&links, &input), (&links, &hard)] {
        run(["analyze", path.to_str().unwrap(), "--output", output.to_str().unwrap()]).expect(2);
    }
    #[cfg(unix)]
    Run::of(
        program()
            .args(["analyze", "-", "--output", hard.to_str().unwrap()])
            .stdin(fs::File::open(&input).unwrap())
            .output()
            .unwrap(),
    )
    .expect(2);
    assert_eq!((snapshot(directory.path()), snapshot(&partition)), before);
    // Only here is standard output meant.
    let out = run(["analyze", "--format", "json", hard.to_str().unwrap(), "--output", "-"]);
    assert!(out.expect(0).json()["total"].is_object());
}

/// A file that is full of damage: a thousand lines are enough.
#[test]
fn error_lines_have_an_end() {
    let file = tempfile::NamedTempFile::with_suffix(".log").unwrap();
    let mut header = [0u8; 61];
    header[11] = 49;
    header[16] = 2;
    fs::write(file.path(), header.repeat(3000)).unwrap();
    for command in ["analyze", "dump"] {
        let run = run([command, file.path().to_str().unwrap()]).expect(3);
        let lines = run.error_lines();
        assert_eq!(lines.len(), 1001);
        assert!(lines[1000].ends_with("2000 more of its faults are not listed"));
    }
    let report = run(["analyze", "--format", "json", file.path().to_str().unwrap()]).expect(3);
    assert_eq!(report.json()["segments"][0]["errors"].as_array().unwrap().len(), 3000);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for args in [
        &["dump", "--print-data-log", "--format", "json"][..],
        &["dump", "--deep-iteration"],
        &["analyze", "--verbose", "--codecs", "snappy"],
    ] {
        ends_quietly_without_a_reader(program().args(args).arg(segment("birdstrikes-mixed.log")));
    }
}

/// Closes the program's output at once: that is no error, and nothing is said.
fn ends_quietly_without_a_reader(program: &mut Command) {
    let run = run_without_a_reader(program).expect(0);
    assert_eq!(run.err, "", "{program:?}");
}

/// Nobody reads what it writes.
fn run_without_a_reader(program: &mut Command) -> Run {
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    Run::of(child.wait_with_output().unwrap())
}

/// Whoever read the errors may be gone as well.
#[test]
fn a_closed_error_pipe_ends_nothing() {
    for args in [
        &["dump", "--deep-iteration"][..],
        &["analyze", "--format", "json", "--verbose"],
        &["verify"],
    ] {
        let mut child = program()
            .args(args)
            .args([case("061-compacted-offset-gaps"), case("126-crc-mismatch-in-the-middle")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
}

/// Files of other kinds whose seventeenth byte says nothing, or happens to be 0 to 2.
#[test]
fn what_is_no_segment_gives_one_error() {
    let directory = tempfile::tempdir().unwrap();
    let jpeg =
        [&b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xdb\0C\0"[..], &[7; 5000]]
            .concat();
    let text = "2026-01-01 12:00:00,123 INFO [main] started\n".repeat(500);
    let elf = [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0"[..], &[1; 9000]].concat();
    let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0"[..], &[9; 9000]].concat();
    let noise: Vec<u8> =
        (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (name, bytes) in [
        ("picture.log", jpeg.as_slice()),
        ("server.log", text.as_bytes()),
        ("elf.log", elf.as_slice()),
        ("png.log", png.as_slice()),
        ("noise.log", noise.as_slice()),
        ("ff.log", &[0xff; 4096]),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        for command in ["analyze", "dump", "verify"] {
            let run = run([command, path.to_str().unwrap()]).expect(3);
            let lines = run.error_lines();
            assert_eq!(lines.len(), 1, "{name}: {lines:?}");
            assert!(lines[0].contains(name) && lines[0].contains(": byte "), "{lines:?}");
        }
    }
}
