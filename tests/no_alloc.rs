//! Reads the whole corpus under an allocator that ends the process when it is called.
//!
//! Then it builds batches of what it read, of every version, with none, snappy and lz4.
//!
//! Lent are a window, a workspace for zstd, and the files themselves or a buffer that
//! they pass through; for building an output and what the encoders work in. The C code of
//! zstd calls malloc and not this allocator; that it gets by with the workspace is
//! what `ZSTD_initStaticDCtx` is for: it has no allocator to call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use logseg_core::builder::{BuilderOptions, LentBuffer, MemoryRecordsBuilder};
use logseg_core::codec::{lz4_encode, xerial_encode, zstd};
use logseg_core::error::ErrorKind;
use logseg_core::{
    BatchReader, Batches, Builtin, BuiltinCompressors, Codec, Cpu, Event, Limits, Magic, Piece,
    Unpacker,
};
use logseg_tests::corpus;

/// Armed, it is an error to allocate or to free.
struct Guard;

static ARMED: AtomicBool = AtomicBool::new(false);

impl Guard {
    fn check() {
        if ARMED.swap(false, Ordering::SeqCst) {
            // A panic would allocate: say it and be gone.
            let _ = std::io::stderr().write_all(b"no_alloc: something was allocated or freed\n");
            std::process::abort();
        }
    }
}

// SAFETY: everything is handed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Guard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::check();
        // SAFETY: the caller's layout is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::check();
        // SAFETY: the caller's layout is the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        Self::check();
        // SAFETY: it came from the system's allocator with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::check();
        // SAFETY: it came from the system's allocator with this layout.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static GUARD: Guard = Guard;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    files: usize,
    batches: u64,
    records: u64,
    pieces: u64,
    bytes: u64,
    errors: u64,
}

impl Counts {
    /// True at the end.
    fn event(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Record(record) => {
                let headers = record.headers.map(|h| h.key.len() + h.value.map_or(0, <[u8]>::len));
                let len = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len);
                let total = len(record.key) + len(record.value) + headers.sum::<usize>();
                self.bytes += total as u64;
            }
            Event::Piece(
                Piece::Key(part)
                | Piece::Value(part)
                | Piece::HeaderKey(part)
                | Piece::HeaderValue(part),
            ) => {
                self.pieces += 1;
                self.bytes += part.len() as u64;
            }
            Event::BatchEnd(end) => match end.verdict {
                // The tail, which the slice source has no batch for.
                Err(error) if matches!(error.kind(), ErrorKind::PartialBatch { .. }) => {}
                verdict => {
                    self.batches += 1;
                    self.records += verdict.map_or(0, |()| end.records);
                    self.errors += u64::from(verdict.is_err());
                }
            },
            Event::End(_) => return true,
            Event::NeedInput | Event::Batch(_) | Event::Piece(_) => {}
        }
        false
    }
}

fn unpacker<'w>(window: &'w mut [u8], workspace: &'w mut [u8]) -> Unpacker<'w, Builtin<'w>> {
    let limits = Limits::default().with_decompressed(64 << 20);
    Unpacker::new(Builtin::new().with_zstd(workspace), window).with_limits(limits)
}

fn read(file: &[u8], window: &mut [u8], workspace: &mut [u8], counts: &mut Counts) {
    let mut unpacker = unpacker(window, workspace);
    let mut source = Batches::new(file, Cpu::detect());
    counts.files += 1;
    loop {
        match unpacker.poll(&mut source) {
            Ok(event) if counts.event(&event) => return,
            Ok(_) => {}
            Err(_) => counts.errors += 1,
        }
    }
}

/// The same through an input buffer that most batches do not fit.
fn stream(
    file: &[u8],
    input: &mut [u8],
    window: &mut [u8],
    workspace: &mut [u8],
    counts: &mut Counts,
) {
    let mut unpacker = unpacker(window, workspace);
    let mut reader = BatchReader::new(input, Cpu::detect());
    let mut rest = file;
    counts.files += 1;
    loop {
        match unpacker.poll(&mut reader) {
            Ok(Event::NeedInput) if rest.is_empty() => reader.finish(),
            Ok(Event::NeedInput) => {
                let (piece, _) = rest.split_at(rest.len().min(1000));
                rest = &rest[reader.push(piece)..];
            }
            Ok(event) if counts.event(&event) => return,
            Ok(_) => {}
            Err(_) => counts.errors += 1,
        }
    }
}

/// Builds the records of a file once more, in batches of every version and of the codecs
/// that core writes; gives their number, and that of the batches.
fn rebuild(
    file: &[u8],
    window: &mut [u8],
    workspace: &mut [u8],
    output: &mut [u8],
    compressors: &mut BuiltinCompressors<'_>,
) -> (u64, u64) {
    let (mut records, mut batches) = (0, 0);
    for magic in [Magic::V0, Magic::V1, Magic::V2] {
        for codec in [Codec::None, Codec::Snappy, Codec::Lz4] {
            let options = BuilderOptions::new(magic, codec).with_write_limit(200 << 10);
            let mut unpacker = unpacker(window, workspace);
            let mut source = Batches::new(file, Cpu::detect());
            let buffer = LentBuffer::new(output);
            let Ok(mut builder) =
                MemoryRecordsBuilder::new(buffer, options, compressors, Cpu::detect())
            else {
                continue;
            };
            loop {
                match unpacker.poll(&mut source) {
                    Ok(Event::End(_)) => break,
                    Ok(Event::Record(record)) => {
                        let (key, value) = (record.key, record.value);
                        if builder.has_room_for(record.timestamp, key, value, &[])
                            && builder.append(record.timestamp, key, value, &[]).is_ok()
                        {
                            records += 1;
                        }
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            if builder.build().is_ok_and(|batch| !batch.is_empty()) {
                batches += 1;
            }
        }
    }
    (records, batches)
}

fn main() {
    let files = corpus::files();
    let mut workspace = vec![0; zstd::workspace_len(1 << zstd::WINDOW_LOG_MAX)];
    let mut input = vec![0; 2048];
    let mut small = vec![0; (64 << 10) + 2000];
    let mut large = vec![0; 4 << 20];
    let mut counts = [Counts::default(); 2];
    let mut streamed = Counts::default();
    let mut output = vec![0; 1 << 20];
    let mut lz4 = Box::<lz4_encode::Memory>::default();
    let mut snappy = Box::<xerial_encode::Memory>::default();
    let mut compressors = BuiltinCompressors::new().with_lz4(&mut lz4).with_snappy(&mut snappy);
    let mut built = (0, 0);
    ARMED.store(true, Ordering::SeqCst);
    for (window, counts) in [&mut small, &mut large].into_iter().zip(&mut counts) {
        for file in &files {
            read(&file.bytes, window, &mut workspace, counts);
        }
    }
    for file in &files {
        stream(&file.bytes, &mut input, &mut small, &mut workspace, &mut streamed);
    }
    for file in &files {
        let (records, batches) =
            rebuild(&file.bytes, &mut large, &mut workspace, &mut output, &mut compressors);
        built = (built.0 + records, built.1 + batches);
    }
    let armed = ARMED.swap(false, Ordering::SeqCst);
    assert!(armed, "the guard was on to the end");
    let [small, large] = counts;
    println!("no_alloc: small window: {small:?}");
    println!("no_alloc: large window: {large:?}");
    println!("no_alloc: streamed: {streamed:?}");
    println!("no_alloc: built: {built:?} records and batches");
    assert!(built.0 > 20_000 && built.1 > 400);
    // All that the ten segments hold was read, and the same in all three ways.
    let records = corpus::segments()
        .iter()
        .map(|segment| segment.expect["records"].as_u64().expect("records"))
        .sum::<u64>();
    assert!(small.records >= records, "{} of {records} records", small.records);
    assert!(small.pieces > 0 && small.errors > 20);
    let same = |counts: Counts| (counts.files, counts.batches, counts.records, counts.errors);
    assert_eq!(same(small), same(large));
    assert_eq!(same(small), same(streamed));
    assert!(streamed.pieces > small.pieces, "batches that are not compressed pass through");
}
