//! Reads a segment from standard input, and prints how many batches, records and bytes of
//! fields there were. It walks the slice, then unpacks from the slice, then from a stream
//! through 1 KiB; if they do not agree the exit code is 1.
//!
//! There is no std, no allocator, and what matters: with optimisation no panic is left in
//! the program. `.ci/run proof` looks for them in its symbols.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use logseg_core::{
    BatchReader, Batches, Builtin, Cpu, ErrorKind, Event, Piece, Record, Source, Unpacker,
};

// For memcpy and the like too.
#[link(name = "c")]
unsafe extern "C" {
    fn read(file: i32, to: *mut u8, len: usize) -> isize;
    fn write(file: i32, from: *const u8, len: usize) -> isize;
    fn _exit(code: i32) -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: it ends the process, whatever state that is in.
    unsafe { _exit(101) }
}

/// The precompiled `core` names it; nothing unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

static mut SEGMENT: [u8; 2 << 20] = [0; 2 << 20];
static mut WINDOW: [u8; 80 << 10] = [0; 80 << 10];
static mut INPUT: [u8; 1 << 10] = [0; 1 << 10];

/// Entries, and records of those that are good.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counts {
    batches: u64,
    records: u64,
    /// Bytes of keys, values and headers, so that all of them are looked at.
    bytes: u64,
}

impl Counts {
    const NONE: Self = Self { batches: 0, records: 0, bytes: 0 };

    fn part(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
    }

    fn record(&mut self, record: &Record<'_>) {
        self.records += 1;
        self.part(record.key.unwrap_or_default());
        self.part(record.value.unwrap_or_default());
        for header in record.headers {
            self.part(header.key);
            self.part(header.value.unwrap_or_default());
        }
    }
}

/// Only what is not compressed.
fn walk(segment: &[u8]) -> Counts {
    let mut all = Counts::NONE;
    for batch in Batches::new(segment, Cpu::detect()) {
        let Ok(batch) = batch else { break };
        all.batches += 1;
        let before = all;
        let Ok(records) = batch.records() else { continue };
        for record in records {
            match record {
                Ok(record) => all.record(&record),
                Err(_) => all = before,
            }
        }
    }
    all
}

fn unpack<S: Source>(source: &mut S, window: &mut [u8], mut feed: impl FnMut(&mut S)) -> Counts {
    let mut all = Counts::NONE;
    let mut before = all;
    let mut unpacker = Unpacker::new(Builtin::new(), window);
    loop {
        match unpacker.poll(source) {
            Ok(Event::NeedInput) => feed(source),
            Ok(Event::Batch(_)) => before = all,
            Ok(Event::Record(record)) => all.record(&record),
            Ok(Event::Piece(piece)) => match piece {
                Piece::Start { .. } => all.records += 1,
                Piece::Key(part)
                | Piece::Value(part)
                | Piece::HeaderKey(part)
                | Piece::HeaderValue(part) => all.part(part),
                _ => {}
            },
            Ok(Event::BatchEnd(end)) => {
                match end.verdict {
                    Ok(()) => {}
                    // No batch: it is told of in advance of the tail.
                    Err(error) if matches!(error.kind(), ErrorKind::PartialBatch { .. }) => {
                        all = before;
                        continue;
                    }
                    Err(_) => all = before,
                }
                all.batches += 1;
            }
            Ok(Event::End(_)) => return all,
            Err(_) => {}
        }
    }
}

fn stream(mut segment: &[u8], buffer: &mut [u8], window: &mut [u8]) -> Counts {
    let mut reader = BatchReader::new(buffer, Cpu::detect());
    unpack(&mut reader, window, |reader| match reader.push(segment) {
        0 => reader.finish(),
        n => segment = segment.get(n..).unwrap_or_default(),
    })
}

/// Everything on standard input, as far as it fits.
fn input(to: &mut [u8]) -> &[u8] {
    let mut len = 0usize;
    while let Some(room) = to.get_mut(len..)
        && !room.is_empty()
    {
        // SAFETY: `room` may be written to for all its length.
        let n = unsafe { read(0, room.as_mut_ptr(), room.len()) };
        match usize::try_from(n) {
            Ok(0) | Err(_) => break,
            Ok(n) => len = len.saturating_add(n),
        }
    }
    to.get(..len).unwrap_or_default()
}

/// `core::fmt` would bring panics along.
fn print(mut number: u64, end: u8) {
    let mut text = [end; 21];
    let mut at = text.len() - 1;
    loop {
        at -= 1;
        if let Some(digit) = text.get_mut(at) {
            *digit = b'0' + (number % 10).to_le_bytes()[0];
        }
        number /= 10;
        if number == 0 || at == 0 {
            break;
        }
    }
    let digits = text.get(at..).unwrap_or_default();
    // SAFETY: `digits` may be read for all its length.
    unsafe { write(1, digits.as_ptr(), digits.len()) };
}

#[cfg(feature = "control")]
fn control(segment: &[u8]) {
    print(segment[segment.len() / 2].into(), b'\n');
}

#[cfg(not(feature = "control"))]
fn control(_: &[u8]) {}

#[unsafe(no_mangle)]
extern "C" fn main(_: i32, _: *const *const u8) -> i32 {
    let (segment, window, buffer) = (&raw mut SEGMENT, &raw mut WINDOW, &raw mut INPUT);
    // SAFETY: `main` runs once, and nothing else names them.
    let (segment, window, buffer) = unsafe { (&mut *segment, &mut *window, &mut *buffer) };
    let segment = input(segment);
    control(segment);
    let plain = walk(segment);
    let whole = unpack(&mut Batches::new(segment, Cpu::detect()), window, |_| {});
    let streamed = stream(segment, buffer, window);
    print(whole.batches, b' ');
    print(whole.records, b' ');
    print(whole.bytes, b'\n');
    let compressed = cfg!(feature = "snappy");
    i32::from(whole != streamed || (whole != plain && !compressed))
}
