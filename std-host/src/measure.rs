//! Measures one batch: read, checked, decompressed, and compressed again with
//! every type in question.

use std::time::Instant;

use logseg_core::builder::sizes::batch_header_size;
use logseg_core::{BatchHeader, Codec, Limits, Magic};

use crate::analysis::{BatchByReference, BatchFigures, Compressed};
use crate::by_reference::ByReference;
use crate::codec_spec::CodecSpec;
use crate::opened::{Opened, Opener};
use crate::recompress::{NotDone, RecompressError, Recompressor};

/// Everything that a thread keeps from one batch to the next.
pub struct Measurer {
    opener: Opener,
    compressors: Vec<Recompressor>,
    out: Vec<u8>,
    figures: Vec<Compressed>,
    only_uncompressed: bool,
    references: Option<References>,
}

/// What it takes to measure a batch a second time, with its large values elsewhere.
struct References {
    by: ByReference,
    /// Of the codecs that batches have, by [`Codec::id`], once they occur: at the default
    /// level, since a batch does not tell its own.
    own: [Option<Recompressor>; 5],
    compressed: Vec<u64>,
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
            references: None,
        }
    }

    /// Measures every batch also as it would be with its large values in a blob store.
    #[must_use]
    pub fn with_references(self, by: ByReference) -> Self {
        let references = References { by, own: Default::default(), compressed: Vec::new() };
        Self { references: Some(references), ..self }
    }

    /// The topic of the batches to come, which a reference names.
    pub fn set_topic(&mut self, topic: &str) {
        if let Some(references) = &mut self.references {
            references.by.set_topic(topic);
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
        let references = self.references.as_mut().map(|references| {
            let moved = references.by.rewrite(&self.opener, header, entry);
            (references, moved)
        });
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
        let by_reference = match references {
            None => None,
            Some((references, moved)) => {
                references.compressed.clear();
                let sizes = if moved.values == 0 {
                    let sizes = self.figures.iter().map(|compressed| compressed.bytes);
                    references.compressed.extend(sizes);
                    (size, uncompressed)
                } else {
                    let compress = Compress {
                        compressors: &mut self.compressors,
                        out: &mut self.out,
                        only_uncompressed: self.only_uncompressed,
                    };
                    references.measure(header, codec, compress).map_err(NotDone::Failed)?
                };
                let (size, uncompressed) = sizes;
                let compressed = &references.compressed;
                Some(BatchByReference { moved, size, uncompressed, compressed })
            }
        };
        Ok(BatchFigures {
            size,
            uncompressed,
            records,
            codec,
            is_control: header.is_control(),
            compressed: &self.figures,
            by_reference,
        })
    }
}

/// What a second measuring shares with the first.
struct Compress<'a> {
    compressors: &'a mut [Recompressor],
    out: &'a mut Vec<u8>,
    only_uncompressed: bool,
}

impl References {
    /// Measures the batch that was rewritten last, which is of v2: its size with the codec
    /// that it has, and uncompressed. Those with each compressor are kept.
    fn measure(
        &mut self,
        header: BatchHeader,
        codec: Codec,
        with: Compress<'_>,
    ) -> Result<(u64, u64), RecompressError> {
        let section = self.by.section();
        let overhead = batch_header_size(header.magic, codec);
        let uncompressed = overhead + section.len() as u64;
        let out = with.out;
        let mut size_with = |compressor: &mut Recompressor| {
            compressor.compress(section, header.magic, out)?;
            Ok(overhead + out.len() as u64)
        };
        let own = self.own.get_mut(usize::from(codec.id()));
        let size = match (CodecSpec::new(codec), own) {
            (Ok(spec), Some(own)) => size_with(own.get_or_insert_with(|| Recompressor::new(spec)))?,
            // Codec none.
            _ => uncompressed,
        };
        for compressor in with.compressors {
            let as_it_is = with.only_uncompressed && codec != Codec::None;
            self.compressed.push(if as_it_is { size } else { size_with(compressor)? });
        }
        Ok((size, uncompressed))
    }
}
