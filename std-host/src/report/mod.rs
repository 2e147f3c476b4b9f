//! Renderers of what `analyze` found, one a file.
//!
//! [`text`] writes the block of a file as soon as it is complete; [`json`] and [`csv`]
//! want all of them.

pub mod csv;
pub mod json;
pub mod text;

/// Errors that the text lists in the block of a file. JSON has them all.
pub const ERRORS_LISTED: usize = 5;

#[cfg(test)]
pub(crate) mod samples {
    use std::time::Duration;

    use logseg_core::Codec;

    use crate::analysis::{
        AnalysisReport, BatchFigures, Compressed, Fault, SegmentReport, Trailing,
    };
    use crate::codec_spec::CodecSpec;

    pub(crate) fn specs(list: &str) -> Vec<CodecSpec> {
        list.split(',').map(|item| item.parse().unwrap()).collect()
    }

    /// The gzip row of the KIP's second sample, in one batch.
    pub(crate) fn kip(path: &str) -> SegmentReport {
        let compressed = [(422_829, 168), (16_080_153, 0)]
            .map(|(bytes, millis)| Compressed { bytes, time: Duration::from_millis(millis) });
        let mut segment = SegmentReport::new(Some(path.to_owned()), compressed.len());
        segment.figures.add(&BatchFigures {
            size: 4_020_039,
            uncompressed: 16_080_153,
            records: 17,
            codec: Codec::Lz4,
            is_control: false,
            compressed: &compressed,
            by_reference: None,
        });
        segment.file_size = 4_020_039;
        segment.valid_bytes = 4_020_039;
        segment
    }

    /// A control batch, an empty one, two corrupt ones and an incomplete one.
    pub(crate) fn damaged(path: &str) -> SegmentReport {
        let mut segment = SegmentReport::new(Some(path.to_owned()), 2);
        for (size, records, is_control) in [(78, 1, true), (61, 0, false)] {
            segment.figures.add(&BatchFigures {
                size,
                uncompressed: size,
                records,
                codec: Codec::None,
                is_control,
                compressed: &[],
                by_reference: None,
            });
        }
        for position in [156, 517] {
            segment.figures.batches.corrupt += 1;
            segment.errors.push(Fault {
                position,
                kind: "crc_mismatch",
                detail: "stored 0x00000000, computed 0x12345678".to_owned(),
            });
        }
        segment.file_size = 2738;
        segment.valid_bytes = 890;
        segment.trailing = Some(Trailing { kind: "partial_batch", position: 890, bytes: 1848 });
        segment
    }

    pub(crate) fn report(segments: Vec<SegmentReport>) -> AnalysisReport {
        let mut report = AnalysisReport::new(specs("gzip,zstd:9"));
        segments.into_iter().for_each(|segment| report.push(segment));
        report
    }
}
