//! What a dump says of a batch: header, verdict and digest of the records.

pub mod digest;
mod java;
pub(crate) mod json;
pub(crate) mod side;
pub(crate) mod text;

use std::convert::Infallible;
use std::io;

use logseg_core::batch::{Batch, ControlValue};
use logseg_core::{
    BatchEnd, BatchHeader, Batches, Codec, Control, Cpu, ErrorKind, Event, Limits, Offset, Piece,
    Unpacker,
};

use crate::codecs::HostCodecs;
use crate::cpu;
use digest::RecordsDigest;

/// Window that most batches get by with: history of any codec and records of a
/// quarter of a megabyte in one piece.
const WINDOW: usize = 512 << 10;

/// What is to be listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed {
    /// Records, not only batches.
    pub(crate) records: bool,
    /// Their offsets, timestamps and sizes (text).
    pub(crate) metadata: bool,
    /// Their keys and values.
    pub(crate) data: bool,
}

/// A batch and all that is known of it.
#[derive(Debug)]
pub(crate) struct BatchLine {
    pub(crate) header: BatchHeader,
    pub(crate) crc_valid: bool,
    pub(crate) end: BatchEnd,
    /// SHA-256 over the records, lower-case hex.
    pub(crate) digest: String,
    /// Types of the control records, and the coordinator epoch of the first.
    pub(crate) control: Option<ControlLine>,
    /// What is readable but odd.
    pub(crate) warnings: Vec<String>,
}

/// The control records of a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlLine {
    pub(crate) types: Vec<(&'static str, i16)>,
    pub(crate) coordinator_epoch: Option<i32>,
}

/// A record, whole.
#[derive(Debug)]
pub(crate) struct RecordLine<'a> {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
    pub(crate) crc: Option<u32>,
}

/// Reads one batch after the other, with buffers that are kept.
pub(crate) struct BatchReader {
    codecs: HostCodecs,
    window: Vec<u8>,
    limits: Limits,
    cpu: Cpu,
}

impl BatchReader {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { codecs: HostCodecs::default(), window: vec![0; WINDOW], limits, cpu: cpu::detect() }
    }

    /// Runs the events of a batch through `visit`, with a larger window if its codec
    /// wants one. `visit` may be called anew from the start of the batch then.
    fn events<E>(
        &mut self,
        header: &BatchHeader,
        entry: &[u8],
        mut visit: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<BatchEnd, E> {
        loop {
            let mut batches = Batches::at(entry, header.position, self.cpu);
            let mut unpacker =
                Unpacker::new(&mut self.codecs, &mut self.window).with_limits(self.limits);
            let end = loop {
                match unpacker.poll(&mut batches) {
                    Ok(Event::BatchEnd(end)) => break end,
                    Ok(event) => visit(event)?,
                    Err(error) => break BatchEnd::failed(error),
                }
            };
            let most = usize::try_from(self.limits.decompressed).unwrap_or(usize::MAX);
            match end.verdict.map_err(|error| error.kind()) {
                Err(ErrorKind::BufferTooSmall { .. }) if self.window.len() / 2 < most => {
                    // Copies reach back further than a window holds. They reach back to
                    // what is there, whatever the block declares: doubling finds it.
                    self.window.resize(2 * self.window.len(), 0);
                }
                _ => return Ok(end),
            }
        }
    }

    /// Everything about a batch but its records.
    pub(crate) fn read(&mut self, header: BatchHeader, entry: &[u8]) -> BatchLine {
        let crc_valid = Batch::new(header, entry, self.cpu).check_crc().is_ok();
        let mut digest = RecordsDigest::default();
        let mut control = ControlLine::default();
        let Ok(end) = self.events::<Infallible>(&header, entry, |event| {
            match event {
                Event::Batch(_) => {
                    digest = RecordsDigest::default();
                    control = ControlLine::default();
                }
                Event::Record(record) => {
                    digest.record(&record);
                    if header.is_control()
                        && let Ok(parsed) = Control::parse(record.key, record.value)
                    {
                        control.add(&parsed);
                    }
                }
                Event::Piece(piece) => digest.piece(&piece),
                _ => {}
            }
            Ok(())
        });
        let mut warnings = Vec::new();
        if let (Ok(()), Some((_, last))) = (&end.verdict, end.offsets)
            && header.record_count.is_some()
            && last > header.last_offset()
        {
            warnings.push(format!(
                "last offset {} of the header is below {last}, that of the last record",
                header.last_offset()
            ));
        }
        let control = (header.is_control() && end.verdict.is_ok() && !control.types.is_empty())
            .then_some(control);
        BatchLine { header, crc_valid, end, digest: digest.finish(), control, warnings }
    }

    /// The records of a good batch, one by one, each of them whole.
    pub(crate) fn for_each_record(
        &mut self,
        batch: &BatchLine,
        entry: &[u8],
        mut visit: impl FnMut(&RecordLine<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut assembled = Assembled::default();
        let _ = self.events(&batch.header, entry, |event| match event {
            Event::Record(record) => visit(&RecordLine {
                offset: record.offset.resolve(0),
                timestamp: record.timestamp,
                key: record.key,
                value: record.value,
                headers: record.headers.map(|header| (header.key, header.value)).collect(),
                crc: record.crc,
            }),
            Event::Piece(piece) if assembled.add(&piece) => visit(&assembled.line()),
            _ => Ok(()),
        })?;
        Ok(())
    }
}

impl ControlLine {
    fn add(&mut self, control: &Control<'_>) {
        let kind = control.control_type;
        if self.types.is_empty()
            && let ControlValue::EndTransaction { coordinator_epoch, .. } = control.value
        {
            self.coordinator_epoch = Some(coordinator_epoch);
        }
        self.types.push((kind.name(), kind.id()));
    }
}

/// A record put together from its pieces.
#[derive(Debug, Default)]
struct Assembled {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Assembled {
    /// Takes a piece; true if it was the last.
    fn add(&mut self, piece: &Piece<'_>) -> bool {
        let append = |to: &mut Option<Vec<u8>>, bytes: &[u8]| {
            to.get_or_insert_with(Vec::new).extend_from_slice(bytes);
        };
        match *piece {
            Piece::Start { offset, timestamp, key_len, .. } => {
                *self = Self { offset: Offset::resolve(offset, 0), timestamp, ..Self::default() };
                self.key = key_len.map(|_| Vec::new());
            }
            Piece::Key(bytes) => append(&mut self.key, bytes),
            Piece::ValueStart(len) => self.value = len.map(|_| Vec::new()),
            Piece::Value(bytes) => append(&mut self.value, bytes),
            Piece::Headers(_) => {}
            Piece::HeaderStart(_) => self.headers.push((Vec::new(), None)),
            Piece::HeaderKey(bytes) => {
                if let Some((key, _)) = self.headers.last_mut() {
                    key.extend_from_slice(bytes);
                }
            }
            Piece::HeaderValueStart(len) => {
                if let Some((_, value)) = self.headers.last_mut() {
                    *value = len.map(|_| Vec::new());
                }
            }
            Piece::HeaderValue(bytes) => {
                if let Some((_, value)) = self.headers.last_mut() {
                    append(value, bytes);
                }
            }
            Piece::End => return true,
        }
        false
    }

    fn line(&self) -> RecordLine<'_> {
        RecordLine {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self.headers.iter().map(|(k, v)| (k.as_slice(), v.as_deref())).collect(),
            crc: None,
        }
    }
}

/// `none` … `zstd`, or `unknown(N)`.
pub(crate) fn codec_name(header: &BatchHeader) -> String {
    match header.attributes.codec() {
        Ok(codec) => codec.name().to_owned(),
        Err(id) => format!("unknown({id})"),
    }
}

/// First and last offset: of the records where they are known. A bad v0/v1 set has
/// its wrapper's own.
pub(crate) fn offsets(batch: &BatchLine) -> (i64, i64) {
    match (batch.header.record_count, &batch.end.verdict, batch.end.offsets) {
        (None, Ok(()), Some(offsets)) => offsets,
        _ => (batch.header.base_offset, batch.header.last_offset()),
    }
}

/// How a snappy payload is framed; `None` for other codecs and for empty payloads.
pub(crate) fn snappy_framing(header: &BatchHeader, entry: &[u8]) -> Option<&'static str> {
    use logseg_core::codec::xerial::Framing;
    if header.attributes.codec() != Ok(Codec::Snappy) {
        return None;
    }
    let payload = Batch::new(*header, entry, Cpu::scalar()).payload().ok()?;
    match Framing::of(payload) {
        Framing::Xerial => Some("xerial"),
        Framing::Raw => Some("raw"),
        Framing::Unknown => None,
    }
}
