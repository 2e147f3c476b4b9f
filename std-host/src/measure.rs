//! Measures one batch: read, checked, decompressed, and compressed again with
//! every type in question.

use std::time::Instant;

use logseg_core::builder::sizes::batch_header_size;
use logseg_core::{BatchHeader, Codec, Limits, Magic};

use crate::analysis::{BatchFigures, Compressed};
use crate::codec_spec::CodecSpec;
use crate::opened::{Opened, Opener};
use crate::recompress::{NotDone, Recompressor};

/// Everything that a thread keeps from one batch to the next.
pub struct Measurer {
    opener: Opener,
    compressors: Vec<Recompressor>,
    out: Vec<u8>,
    figures: Vec<Compressed>,
    only_uncompressed: bool,
}

impl Measurer {
    /// For these codecs. With `only_uncompressed`, batches that are stored compressed
    /// count as they are.
    #[must_use]
    pub fn new(specs: &[CodecSpec], limits: Limits, only_uncompressed: bool) -> Self {
        Self {
            opener: Opener::new(limits),
            compressors: specs.iter().map(|&spec| Recompressor::new(spec)).collect(),
            out: Vec::new(),
            figures: Vec::with_capacity(specs.len()),
            only_uncompressed,
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
    ) -> Result<BatchFigures<'_>, NotDone> {
        let Opened { codec, records } = self.opener.open(header, entry)?;
        let as_it_is = header.is_control() || records == 0;
        let size = header.size;
        let plain = self.opener.plain().len() as u64;
        if header.magic == Magic::V1 {
            self.opener.relative_offsets();
        }
        let uncompressed =
            if as_it_is { size } else { batch_header_size(header.magic, Codec::None) + plain };
        self.figures.clear();
        for compressor in &mut self.compressors {
            let bytes = if as_it_is || (self.only_uncompressed && codec != Codec::None) {
                Compressed::stored(size)
            } else if !compressor.can_be_in(header.magic) {
                Compressed::stored(uncompressed)
            } else {
                let start = Instant::now();
                compressor
                    .compress(self.opener.plain(), header.magic, &mut self.out)
                    .map_err(NotDone::Failed)?;
                let time = start.elapsed();
                let header = batch_header_size(header.magic, compressor.spec().codec());
                Compressed { bytes: header + self.out.len() as u64, time }
            };
            self.figures.push(bytes);
        }
        Ok(BatchFigures {
            size,
            uncompressed,
            records,
            codec,
            is_control: header.is_control(),
            compressed: &self.figures,
        })
    }
}
