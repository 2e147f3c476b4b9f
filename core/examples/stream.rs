//! Reads a segment as it arrives, through buffers of fixed size: `stream [SEGMENT]`, or
//! standard input.
//!
//! 64 KiB for the input and 256 KiB for what is decompressed, whatever the size of the
//! batches; nothing else is allocated. Build it with `--features zstd` to read zstd too.

use std::error::Error;
use std::fs::File;
use std::io::{Read, stdin};

use logseg_core::{BatchReader, Builtin, Cpu, Event, Unpacker};

#[derive(Default)]
struct Stats {
    batches: u64,
    bad: u64,
    records: u64,
    /// Records that did not fit the window and came in pieces.
    large: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut file: Box<dyn Read> = match std::env::args_os().nth(1) {
        Some(path) => Box::new(File::open(path)?),
        None => Box::new(stdin()),
    };
    let (mut input, mut window) = (vec![0; 64 << 10], vec![0; 256 << 10]);
    let codecs = Builtin::new();
    // Frames of Kafka's default level want 2 MiB of history, in memory of their own.
    #[cfg(feature = "zstd")]
    let mut workspace = vec![0; logseg_core::codec::zstd::workspace_len(2 << 20)];
    #[cfg(feature = "zstd")]
    let codecs = codecs.with_zstd(&mut workspace);

    let mut reader = BatchReader::new(input.as_mut_slice(), Cpu::detect());
    let mut unpacker = Unpacker::new(codecs, &mut window);
    let mut stats = Stats::default();
    let tail = loop {
        match unpacker.poll(&mut reader)? {
            Event::NeedInput => match file.read(reader.spare())? {
                0 => reader.finish(),
                n => reader.commit(n),
            },
            Event::Batch(_header) => stats.batches += 1,
            Event::Record(_record) => {}
            Event::Piece(piece) => {
                stats.large += u64::from(matches!(piece, logseg_core::Piece::Start { .. }));
            }
            Event::BatchEnd(end) => match end.verdict {
                Ok(()) => stats.records += end.records,
                // It condemns this batch only.
                Err(error) => {
                    eprintln!("{error}");
                    stats.bad += 1;
                }
            },
            Event::End(tail) => break tail,
        }
    };
    let Stats { batches, bad, records, large } = stats;
    println!(
        "{batches} batches ({bad} of them bad), {records} records ({large} of them in pieces), \
         then {} bytes that are no batch ({:?})",
        tail.bytes, tail.kind
    );
    Ok(())
}
