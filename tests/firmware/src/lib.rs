//! Reads the segments in flash and tells of each what was in it: the same lines on
//! bare metal and on the host.
#![no_std]
#![forbid(unsafe_code)]

pub mod digest;
pub mod segments;

use core::fmt;

use digest::Digest;
use logseg_core::codec::zstd;
use logseg_core::{BatchReader, Builtin, Cpu, ErrorKind, Event, Source, Tail, TailKind, Unpacker};

/// What input comes through: most batches are larger.
pub const INPUT: usize = 1 << 10;
/// 64 KiB of history for snappy and lz4, and the largest record in one piece.
pub const WINDOW: usize = 80 << 10;
/// Largest window of a zstd frame.
pub const ZSTD_WINDOW: usize = 8 << 10;
/// What zstd takes for that: its tables, a block, and the window.
pub const WORKSPACE: usize = 134 << 10;

/// What was in a segment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    /// Entries with a verdict, and how many of these were faults.
    pub batches: u32,
    pub failed: u32,
    /// Of those, how many for want of memory.
    pub too_small: u32,
    /// Records of the good entries, and those of them that came in pieces.
    pub records: u64,
    pub pieced: u32,
    /// v1 wrappers whose base offset came last.
    pub rebased: u32,
    /// Name of the first fault.
    pub fault: Option<&'static str>,
    pub digest: Digest,
    pub tail: Option<Tail>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, failed, records, pieced, rebased, digest, .. } = self;
        write!(f, "batches={batches} records={records} digest={digest}")?;
        if *pieced > 0 {
            write!(f, " pieced={pieced}")?;
        }
        if *rebased > 0 {
            write!(f, " rebased={rebased}")?;
        }
        if let Some(fault) = self.fault {
            write!(f, " failed={failed} fault={fault}")?;
        }
        match self.tail {
            Some(Tail { kind: TailKind::Clean, .. }) => Ok(()),
            Some(tail) => write!(f, " tail={:?}@{}+{}", tail.kind, tail.position, tail.bytes),
            None => f.write_str(" no end"),
        }
    }
}

/// Reads a source to its end; `feed` gives it more.
pub fn read<S: Source>(
    source: &mut S,
    codecs: &mut Builtin<'_>,
    window: &mut [u8],
    mut feed: impl FnMut(&mut S),
) -> Summary {
    let mut summary = Summary::default();
    let mut unpacker = Unpacker::new(codecs, window);
    // Records count only once their batch is known to be good.
    let (mut records, mut pieced, mut relative, mut digest) = (0, 0, false, Digest::default());
    loop {
        match unpacker.poll(source) {
            Ok(Event::NeedInput) => feed(source),
            Ok(Event::Batch(_)) => {
                (records, pieced, relative, digest) = (0, 0, false, Digest::default());
            }
            Ok(Event::Record(record)) => {
                records += 1;
                relative |= record.offset.absolute().is_none();
                digest.record(&record);
            }
            Ok(Event::Piece(piece)) => {
                if let logseg_core::Piece::Start { offset, .. } = piece {
                    records += 1;
                    pieced += 1;
                    relative |= offset.absolute().is_none();
                }
                digest.piece(&piece);
            }
            Ok(Event::BatchEnd(end)) => {
                summary.batches += 1;
                match end.verdict {
                    Ok(()) => {
                        assert_eq!(end.records, records, "told of as many as handed out");
                        summary.records += records;
                        summary.pieced += pieced;
                        summary.rebased += u32::from(relative);
                        summary.digest.add(&digest, end.offset_base);
                    }
                    // Told in advance of the tail: no entry, and no fault.
                    Err(error) if matches!(error.kind(), ErrorKind::PartialBatch { .. }) => {
                        summary.batches -= 1;
                    }
                    Err(error) => {
                        summary.failed += 1;
                        summary.fault = summary.fault.or(Some(error.name()));
                        if matches!(error.kind(), ErrorKind::BufferTooSmall { .. }) {
                            summary.too_small += 1;
                        }
                    }
                }
            }
            Ok(Event::End(tail)) => {
                summary.tail = Some(tail);
                return summary;
            }
            Err(error) => summary.fault = summary.fault.or(Some(error.name())),
        }
    }
}

/// Reads a segment as it would come from flash or a wire: in pieces of all sizes up to
/// whatever there is room for.
pub fn stream(
    mut segment: &[u8],
    input: &mut [u8],
    codecs: &mut Builtin<'_>,
    window: &mut [u8],
) -> Summary {
    let mut reader = BatchReader::new(input, Cpu::detect());
    let mut piece = 0;
    read(&mut reader, codecs, window, |reader| {
        piece = (piece + 389) % 1021;
        let spare = reader.spare();
        let n = spare.len().min(segment.len()).min(piece + 1);
        let (now, later) = segment.split_at(n);
        spare[..n].copy_from_slice(now);
        segment = later;
        if n > 0 {
            reader.commit(n);
        } else {
            assert!(segment.is_empty(), "it asked for input and has no room");
            reader.finish();
        }
    })
}

/// Reads all segments, with buffers of the sizes above, and prints a line for each.
pub fn report(
    out: &mut impl fmt::Write,
    input: &mut [u8],
    window: &mut [u8],
    workspace: &mut [u8],
) -> fmt::Result {
    let need = zstd::workspace_len(ZSTD_WINDOW);
    assert!(need <= workspace.len(), "zstd takes {need} bytes");
    let mut codecs = Builtin::new();
    codecs.lend_zstd(workspace);
    let (mut bytes, mut batches, mut records, mut pieced, mut rebased) = (0, 0, 0, 0, 0);
    for (name, segment) in segments::all() {
        let summary = stream(segment, input, &mut codecs, window);
        writeln!(out, "{name} bytes={} {summary}", segment.len())?;
        bytes += segment.len();
        batches += summary.batches;
        records += summary.records;
        pieced += summary.pieced;
        rebased += summary.rebased;
    }
    writeln!(
        out,
        "all bytes={bytes} batches={batches} records={records} pieced={pieced} rebased={rebased}"
    )
}
