//! Measures one batch: read, checked, decompressed, and compressed again with
//! every type in question.

use std::time::Instant;

use logseg_core::batch::Batch;
use logseg_core::{BatchHeader, Codec, Cpu, Error, Limits, Magic};

use crate::analysis::{BatchFigures, Compressed};
use crate::codec_spec::CodecSpec;
use crate::codecs::{HostCodecs, Plain};
use crate::cpu;
use crate::recompress::{RecompressError, Recompressor};

/// Everything that a thread keeps from one batch to the next.
pub struct Measurer {
    codecs: HostCodecs,
    compressors: Vec<Recompressor>,
    plain: Plain,
    out: Vec<u8>,
    figures: Vec<Compressed>,
    limits: Limits,
    only_uncompressed: bool,
    cpu: Cpu,
}

/// Why there are no figures of a batch.
#[derive(Debug)]
pub enum NotMeasured {
    /// The batch is damaged.
    Damaged(Error),
    /// A compressor failed, for lack of memory.
    Failed(RecompressError),
}

impl From<Error> for NotMeasured {
    fn from(error: Error) -> Self {
        Self::Damaged(error)
    }
}

/// What a batch holds, apart from its bytes.
struct Contents {
    records: u64,
    /// Size with the records uncompressed.
    uncompressed: u64,
    /// What a batch of this version adds to compressed records.
    overhead: u64,
}

impl Measurer {
    /// For these codecs. With `only_uncompressed`, batches that are stored compressed
    /// count as they are.
    #[must_use]
    pub fn new(specs: &[CodecSpec], limits: Limits, only_uncompressed: bool) -> Self {
        Self {
            codecs: HostCodecs::default(),
            compressors: specs.iter().map(|&spec| Recompressor::new(spec)).collect(),
            plain: Plain::default(),
            out: Vec::new(),
            figures: Vec::with_capacity(specs.len()),
            limits,
            only_uncompressed,
            cpu: cpu::detect(),
        }
    }

    /// Measures an entry.
    ///
    /// Control batches and empty ones are never compressed by a producer and count as
    /// they are. An uncompressed v0/v1 set has no wrapper, so its size is that of the
    /// messages; zstd, which they cannot carry, leaves them uncompressed.
    ///
    /// Errors: whatever is wrong with the batch, or with the compressor; it belongs to no
    /// figure then.
    pub fn measure(
        &mut self,
        header: BatchHeader,
        entry: &[u8],
    ) -> Result<BatchFigures<'_>, NotMeasured> {
        let batch = Batch::new(header, entry, self.cpu);
        batch.check_crc()?;
        let codec = header.codec()?;
        let contents = self.unpack(&batch, codec)?;
        let as_it_is = header.is_control() || contents.records == 0;
        let size = header.size;
        let uncompressed = if as_it_is { size } else { contents.uncompressed };
        self.figures.clear();
        for compressor in &mut self.compressors {
            let bytes = if as_it_is || (self.only_uncompressed && codec != Codec::None) {
                Compressed::stored(size)
            } else if !compressor.can_be_in(header.magic) {
                Compressed::stored(uncompressed)
            } else {
                let start = Instant::now();
                compressor
                    .compress(self.plain.bytes(), header.magic, &mut self.out)
                    .map_err(NotMeasured::Failed)?;
                let time = start.elapsed();
                Compressed { bytes: contents.overhead + self.out.len() as u64, time }
            };
            self.figures.push(bytes);
        }
        Ok(BatchFigures {
            size,
            uncompressed,
            records: contents.records,
            codec,
            is_control: header.is_control(),
            compressed: &self.figures,
        })
    }

    /// Brings the uncompressed records into `plain`, as a producer would have handed
    /// them to its compressor, and checks every one of them.
    fn unpack(&mut self, batch: &Batch<'_>, codec: Codec) -> Result<Contents, Error> {
        let header = *batch.header();
        let payload = if codec == Codec::None { None } else { Some(batch.payload()?) };
        match (payload, header.magic) {
            (Some([]), Magic::V2) if header.record_count == Some(0) => self.plain.set(&[]),
            (Some(payload), magic) => {
                let limit = self.limits.output(header.size);
                let position = batch.payload_position();
                self.codecs.unpack(codec, magic, payload, position, limit, &mut self.plain)?;
            }
            (None, Magic::V2) => {
                self.plain.set(batch.bytes().get(header.header_len()..).unwrap_or_default());
            }
            (None, Magic::V0 | Magic::V1) => self.plain.set(batch.bytes()),
        }
        let records = match codec {
            Codec::None => batch.records_unchecked()?,
            _ => batch.records_in(self.plain.bytes())?,
        };
        // An error is the last item.
        let (records, verdict) =
            records.fold((0, Ok(())), |(found, _), record| (found + 1, record.map(drop)));
        verdict?;
        let plain = self.plain.bytes().len() as u64;
        Ok(match header.magic {
            Magic::V2 => {
                let overhead = header.header_len() as u64;
                Contents { records, uncompressed: overhead + plain, overhead }
            }
            Magic::V0 => Contents { records, uncompressed: plain, overhead: 26 },
            Magic::V1 => {
                relative_offsets(self.plain.bytes_mut());
                Contents { records, uncompressed: plain, overhead: 34 }
            }
        })
    }
}

/// In a v1 wrapper the offsets of the messages count from 0; gaps stay. Their CRC
/// does not cover them.
fn relative_offsets(mut messages: &mut [u8]) {
    let mut first = None;
    while let Some((offset, rest)) = messages.split_first_chunk_mut::<8>() {
        let own = i64::from_be_bytes(*offset);
        *offset = own.wrapping_sub(*first.get_or_insert(own)).to_be_bytes();
        let Some(size) = rest.first_chunk::<4>() else { return };
        let len = 4 + usize::try_from(i32::from_be_bytes(*size)).unwrap_or(0);
        let Some(behind) = rest.get_mut(len..) else { return };
        messages = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_from_zero_and_keep_their_gaps() {
        let message = |offset: i64| {
            let mut message = offset.to_be_bytes().to_vec();
            message.extend(3i32.to_be_bytes());
            message.extend(b"abc");
            message
        };
        let mut messages = [message(70), message(71), message(75)].concat();
        relative_offsets(&mut messages);
        assert_eq!(messages, [message(0), message(1), message(5)].concat());
    }
}
