//! What `analyze` computes from the sizes of batches. No I/O, no printing.
//!
//! For a batch: o is its size as stored, u that of the same batch with its records
//! uncompressed, c when compressed with the codec in question, all in bytes and with
//! the batch header (v0/v1: u is the messages alone). O, U, C are their sums.
//! After KIP-640, with `AVG` as arithmetic mean; the geometric means go under their
//! own names.
//!
//! With nothing to measure ratios are 1, and savings, means and speeds 0: there is
//! never a NaN or an infinity.

use std::time::Duration;

use logseg_core::Codec;

use crate::codec_spec::CodecSpec;

/// A good batch, measured: a v2 batch, a v0/v1 set, or a v0/v1 message on its own.
#[derive(Debug, Clone, Copy)]
pub struct BatchFigures<'a> {
    /// o: bytes as stored.
    pub size: u64,
    /// u: bytes with its records uncompressed.
    pub uncompressed: u64,
    /// Records in it, control records too.
    pub records: u64,
    /// How it is stored.
    pub codec: Codec,
    /// Holds control records.
    pub is_control: bool,
    /// One for each codec, in the order of the specs. A codec that is missing here, as
    /// all are if the slice is empty, leaves the batch uncompressed: c = u, no time.
    pub compressed: &'a [Compressed],
    /// The same batch with its large values in a blob store, if that was asked for.
    pub by_reference: Option<BatchByReference<'a>>,
}

/// A batch whose values of a threshold or more are in a blob store, and that has
/// references in their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchByReference<'a> {
    /// What was moved.
    pub moved: Moved,
    /// Bytes with the codec that the batch has.
    pub size: u64,
    /// Bytes with its records uncompressed.
    pub uncompressed: u64,
    /// Bytes with each codec, in the order of the specs. One that is missing here leaves
    /// the batch uncompressed.
    pub compressed: &'a [u64],
}

/// Values that go to a blob store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many there are.
    pub values: u64,
    /// Their bytes, which are then those of the blobs.
    pub value_bytes: u64,
    /// Bytes of the references that take their place, without the marker header.
    pub reference_bytes: u64,
    /// Values of that size that stay, since v0/v1 messages have no headers to mark a
    /// reference with.
    pub legacy_values: u64,
}

impl Moved {
    fn merge(&mut self, others: &Self) {
        add(&mut self.values, others.values);
        add(&mut self.value_bytes, others.value_bytes);
        add(&mut self.reference_bytes, others.reference_bytes);
        add(&mut self.legacy_values, others.legacy_values);
    }
}

/// Sums over batches with their large values in a blob store. Those of
/// [`Figures`] without are what to compare them with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReferenceFigures {
    /// What was moved.
    pub moved: Moved,
    /// Bytes with the codecs that the batches have.
    pub original_bytes: u64,
    /// Bytes uncompressed.
    pub uncompressed_bytes: u64,
    /// Bytes with each codec.
    pub compressed_bytes: Vec<u64>,
}

impl ReferenceFigures {
    fn add(
        &mut self,
        moved: &Moved,
        original: u64,
        uncompressed: u64,
        compressed: impl Iterator<Item = u64>,
    ) {
        self.moved.merge(moved);
        add(&mut self.original_bytes, original);
        add(&mut self.uncompressed_bytes, uncompressed);
        self.compressed_bytes.iter_mut().zip(compressed).for_each(|(sum, more)| add(sum, more));
    }
}

/// A batch compressed with one codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// c: bytes, with the batch header.
    pub bytes: u64,
    /// Time it took to compress.
    pub time: Duration,
}

impl Compressed {
    /// A batch that is not compressed again.
    #[must_use]
    pub const fn stored(bytes: u64) -> Self {
        Self { bytes, time: Duration::ZERO }
    }
}

/// How many batches of each kind there are. The kinds overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Good ones: all that the other figures are about.
    pub total: u64,
    /// With more than one record.
    pub multi_record: u64,
    /// Control batches.
    pub control: u64,
    /// Without records, and no control batches.
    pub empty: u64,
    /// Damaged ones, which are in no other figure.
    pub corrupt: u64,
}

/// Sums over batches. Adding and merging in the same order gives the same floats.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// O, in bytes.
    pub original_bytes: u64,
    /// U, in bytes.
    pub uncompressed_bytes: u64,
    /// Numbers of batches.
    pub batches: BatchCounts,
    /// Records in good batches, control records too.
    pub records: u64,
    /// Good batches by codec, by [`Codec::id`].
    pub input_batches_by_codec: [u64; 5],
    /// One for each spec.
    pub codecs: Vec<CodecFigures>,
    /// The same with large values in a blob store; zero unless that was asked for.
    pub by_reference: ReferenceFigures,
    ln_original: f64,
    ln_uncompressed: f64,
}

/// Sums for one codec.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CodecFigures {
    /// C, in bytes.
    pub compressed_bytes: u64,
    /// Time spent compressing, summed over batches and threads.
    pub time: Duration,
    ratios: f64,
    ln_ratios: f64,
}

/// What is derived for one codec.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodecSummary {
    /// C, in bytes.
    pub compressed_bytes: u64,
    /// 100·(1 − C/U).
    pub savings_percent: f64,
    /// U/C.
    pub ratio: f64,
    /// Arithmetic mean of u/c.
    pub mean_batch_ratio: f64,
    /// Geometric mean of u/c.
    pub geomean_batch_ratio: f64,
    /// Time spent compressing.
    pub time: Duration,
    /// U in MiB by the time in seconds.
    pub compress_mib_per_s: f64,
}

impl Figures {
    /// Nothing yet, for `n_codecs` codecs.
    #[must_use]
    pub fn new(n_codecs: usize) -> Self {
        let by_reference =
            ReferenceFigures { compressed_bytes: vec![0; n_codecs], ..ReferenceFigures::default() };
        Self { codecs: vec![CodecFigures::default(); n_codecs], by_reference, ..Self::default() }
    }

    /// Adds a good batch.
    pub fn add(&mut self, batch: &BatchFigures<'_>) {
        let (original, uncompressed) = (batch.size, batch.uncompressed);
        add(&mut self.original_bytes, original);
        add(&mut self.uncompressed_bytes, uncompressed);
        self.ln_original += ln(original);
        self.ln_uncompressed += ln(uncompressed);
        self.batches.total += 1;
        self.batches.multi_record += u64::from(batch.records > 1);
        self.batches.control += u64::from(batch.is_control);
        self.batches.empty += u64::from(batch.records == 0 && !batch.is_control);
        add(&mut self.records, batch.records);
        if let Some(count) = self.input_batches_by_codec.get_mut(usize::from(batch.codec.id())) {
            *count += 1;
        }
        let stored = Compressed::stored(uncompressed);
        let given = batch.compressed.iter().copied().chain(std::iter::repeat(stored));
        for (sums, Compressed { bytes, time }) in self.codecs.iter_mut().zip(given) {
            add(&mut sums.compressed_bytes, bytes);
            sums.time = sums.time.saturating_add(time);
            sums.ratios += ratio(uncompressed, bytes);
            sums.ln_ratios += ratio(uncompressed, bytes).ln();
        }
        if let Some(batch) = &batch.by_reference {
            let given = batch.compressed.iter().copied();
            let given = given.chain(std::iter::repeat(batch.uncompressed));
            self.by_reference.add(&batch.moved, batch.size, batch.uncompressed, given);
        }
    }

    /// Adds the sums of others, for the same codecs.
    pub fn merge(&mut self, others: &Self) {
        add(&mut self.original_bytes, others.original_bytes);
        add(&mut self.uncompressed_bytes, others.uncompressed_bytes);
        self.ln_original += others.ln_original;
        self.ln_uncompressed += others.ln_uncompressed;
        self.batches.total += others.batches.total;
        self.batches.multi_record += others.batches.multi_record;
        self.batches.control += others.batches.control;
        self.batches.empty += others.batches.empty;
        self.batches.corrupt += others.batches.corrupt;
        add(&mut self.records, others.records);
        for (sum, other) in
            self.input_batches_by_codec.iter_mut().zip(others.input_batches_by_codec)
        {
            *sum += other;
        }
        debug_assert_eq!(self.codecs.len(), others.codecs.len());
        for (sums, other) in self.codecs.iter_mut().zip(&others.codecs) {
            add(&mut sums.compressed_bytes, other.compressed_bytes);
            sums.time = sums.time.saturating_add(other.time);
            sums.ratios += other.ratios;
            sums.ln_ratios += other.ln_ratios;
        }
        let ReferenceFigures { moved, original_bytes, uncompressed_bytes, compressed_bytes } =
            &others.by_reference;
        let compressed = compressed_bytes.iter().copied();
        self.by_reference.add(moved, *original_bytes, *uncompressed_bytes, compressed);
    }

    /// U/O.
    #[must_use]
    pub fn original_ratio(&self) -> f64 {
        ratio(self.uncompressed_bytes, self.original_bytes)
    }

    /// 100·(1 − O/U).
    #[must_use]
    pub fn original_savings_percent(&self) -> f64 {
        savings_percent(self.uncompressed_bytes, self.original_bytes)
    }

    /// Records in a batch, arithmetic mean.
    #[must_use]
    pub fn mean_records_per_batch(&self) -> f64 {
        self.mean(self.records as f64)
    }

    /// Arithmetic mean of o, in bytes.
    #[must_use]
    pub fn mean_batch_bytes_original(&self) -> f64 {
        self.mean(self.original_bytes as f64)
    }

    /// Arithmetic mean of u, in bytes.
    #[must_use]
    pub fn mean_batch_bytes_uncompressed(&self) -> f64 {
        self.mean(self.uncompressed_bytes as f64)
    }

    /// Geometric mean of o, in bytes.
    #[must_use]
    pub fn geomean_batch_bytes_original(&self) -> f64 {
        self.geomean(self.ln_original, 0.0)
    }

    /// Geometric mean of u, in bytes.
    #[must_use]
    pub fn geomean_batch_bytes_uncompressed(&self) -> f64 {
        self.geomean(self.ln_uncompressed, 0.0)
    }

    /// Good batches by codec: those codecs that occur, in id order.
    pub fn input_codecs(&self) -> impl Iterator<Item = (Codec, u64)> {
        Codec::ALL.into_iter().zip(self.input_batches_by_codec).filter(|(_, count)| *count > 0)
    }

    /// What is derived for each codec, in the order of the specs.
    pub fn summaries(&self) -> impl Iterator<Item = CodecSummary> {
        self.codecs.iter().map(|sums| {
            let (whole, part) = (self.uncompressed_bytes, sums.compressed_bytes);
            let batches = self.batches.total;
            CodecSummary {
                compressed_bytes: part,
                savings_percent: savings_percent(whole, part),
                ratio: ratio(whole, part),
                mean_batch_ratio: if batches == 0 { 1.0 } else { self.mean(sums.ratios) },
                geomean_batch_ratio: self.geomean(sums.ln_ratios, 1.0),
                time: sums.time,
                compress_mib_per_s: speed(whole, sums.time),
            }
        })
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.batches.total == 0 { 0.0 } else { sum / self.batches.total as f64 }
    }

    fn geomean(&self, ln_sum: f64, of_none: f64) -> f64 {
        if self.batches.total == 0 { of_none } else { (ln_sum / self.batches.total as f64).exp() }
    }
}

/// What lies behind the last whole entry of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailing {
    /// `partial_batch`, `zero_padding` or `garbage`.
    pub kind: &'static str,
    /// Where it starts, in bytes from the start of the segment.
    pub position: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Something that is wrong with a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, in bytes from the start of the segment.
    pub position: u64,
    /// One of the error kinds, such as `crc_mismatch`.
    pub kind: &'static str,
    /// For people.
    pub detail: String,
}

/// A segment, or all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentReport {
    /// The path it was found under; the total has none.
    pub path: Option<String>,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes of whole entries.
    pub valid_bytes: u64,
    /// What is behind them. The total has none.
    pub trailing: Option<Trailing>,
    /// The sums.
    pub figures: Figures,
    /// What is wrong, in order. In the total, `detail` starts with the path.
    pub errors: Vec<Fault>,
    /// How many there are beyond those.
    pub more_errors: u64,
}

impl SegmentReport {
    /// Of a segment of which nothing is known yet.
    #[must_use]
    pub fn new(path: Option<String>, n_codecs: usize) -> Self {
        Self {
            path,
            file_size: 0,
            valid_bytes: 0,
            trailing: None,
            figures: Figures::new(n_codecs),
            errors: Vec::new(),
            more_errors: 0,
        }
    }

    /// Adds `segment` to this total.
    pub fn merge(&mut self, segment: &Self) {
        add(&mut self.file_size, segment.file_size);
        add(&mut self.valid_bytes, segment.valid_bytes);
        self.figures.merge(&segment.figures);
        self.more_errors += segment.more_errors;
        self.errors.extend(segment.errors.iter().map(|fault| {
            let detail = match &segment.path {
                Some(path) => format!("{path}: {}", fault.detail),
                None => fault.detail.clone(),
            };
            Fault { detail, ..*fault }
        }));
    }
}

/// Which values are to go to a blob store, and to which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeMessages {
    /// Values of so many bytes or more.
    pub threshold: u64,
    /// URL of the store, which is part of every reference.
    pub store: String,
}

/// Everything that `analyze` found.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalysisReport {
    /// What was measured.
    pub specs: Vec<CodecSpec>,
    /// Whether and how large values were taken out.
    pub large_messages: Option<LargeMessages>,
    /// In the order in which they were added.
    pub segments: Vec<SegmentReport>,
    /// All of them together.
    pub total: SegmentReport,
}

impl AnalysisReport {
    /// Without segments.
    #[must_use]
    pub fn new(specs: Vec<CodecSpec>) -> Self {
        let total = SegmentReport::new(None, specs.len());
        Self { specs, large_messages: None, segments: Vec::new(), total }
    }

    /// Adds a segment, to the total too.
    pub fn push(&mut self, segment: SegmentReport) {
        self.total.merge(&segment);
        self.segments.push(segment);
    }
}

/// Sizes come from all over the place; a sum must not panic for one of them.
const fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

fn ln(bytes: u64) -> f64 {
    (bytes.max(1) as f64).ln()
}

/// whole/part, of nothing 1.
fn ratio(whole: u64, part: u64) -> f64 {
    if whole == 0 || part == 0 { 1.0 } else { whole as f64 / part as f64 }
}

/// 100·(1 − part/whole), of nothing 0.
pub(crate) fn savings_percent(whole: u64, part: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * (1.0 - part as f64 / whole as f64) }
}

fn speed(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 / f64::from(1 << 20) / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn batch(size: u64, uncompressed: u64, compressed: &[Compressed]) -> BatchFigures<'_> {
        BatchFigures {
            size,
            uncompressed,
            records: 2,
            codec: Codec::Gzip,
            is_control: false,
            compressed,
            by_reference: None,
        }
    }

    fn compressed(bytes: u64, millis: u64) -> Compressed {
        Compressed { bytes, time: Duration::from_millis(millis) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    #[test]
    fn sums_and_means() {
        let mut figures = Figures::new(2);
        figures.add(&batch(100, 400, &[compressed(100, 1), compressed(200, 0)]));
        figures.add(&batch(400, 900, &[compressed(900, 3), compressed(450, 0)]));
        figures.batches.corrupt += 1;
        assert_eq!((figures.original_bytes, figures.uncompressed_bytes), (500, 1300));
        assert_eq!(figures.original_ratio(), 2.6);
        assert!(close(figures.original_savings_percent(), 800.0 / 13.0));
        assert_eq!(figures.mean_records_per_batch(), 2.0);
        assert_eq!(figures.mean_batch_bytes_original(), 250.0);
        assert_eq!(figures.mean_batch_bytes_uncompressed(), 650.0);
        assert!(close(figures.geomean_batch_bytes_original(), 200.0));
        assert!(close(figures.geomean_batch_bytes_uncompressed(), 600.0));
        assert_eq!(
            figures.batches,
            BatchCounts { total: 2, multi_record: 2, control: 0, empty: 0, corrupt: 1 }
        );
        assert_eq!(figures.input_codecs().collect::<Vec<_>>(), [(Codec::Gzip, 2)]);
        let [first, second] = figures.summaries().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(first.compressed_bytes, 1000);
        assert!(close(first.savings_percent, 300.0 / 13.0));
        assert_eq!(first.ratio, 1.3);
        assert_eq!(first.mean_batch_ratio, 2.5);
        assert!(close(first.geomean_batch_ratio, 2.0));
        assert!(close(first.compress_mib_per_s, 1300.0 / 1_048_576.0 / 0.004));
        assert_eq!((second.ratio, second.mean_batch_ratio), (2.0, 2.0));
        assert_eq!(second.compress_mib_per_s, 0.0, "no time was measured");
    }

    #[test]
    fn control_and_empty_batches() {
        let mut figures = Figures::new(1);
        let control = BatchFigures { records: 1, is_control: true, ..batch(78, 78, &[]) };
        figures.add(&BatchFigures { codec: Codec::None, ..control });
        figures.add(&BatchFigures { records: 0, ..control });
        figures.add(&BatchFigures { records: 0, ..batch(61, 61, &[]) });
        assert_eq!(
            figures.batches,
            BatchCounts { total: 3, multi_record: 0, control: 2, empty: 1, corrupt: 0 }
        );
        assert_eq!(figures.records, 1);
        assert_eq!(figures.input_batches_by_codec, [1, 2, 0, 0, 0]);
        let summary = figures.summaries().next().unwrap();
        assert_eq!(summary.compressed_bytes, 217);
        assert_eq!((summary.ratio, summary.savings_percent), (1.0, 0.0));
        assert_eq!((summary.mean_batch_ratio, summary.geomean_batch_ratio), (1.0, 1.0));
        assert_eq!(summary.compress_mib_per_s, 0.0);
    }

    #[test]
    fn nothing_to_measure() {
        let mut zeros = Figures::new(1);
        zeros.add(&batch(0, 0, &[compressed(0, 0)]));
        for figures in [Figures::new(1), zeros] {
            assert_eq!((figures.original_ratio(), figures.original_savings_percent()), (1.0, 0.0));
            assert_eq!(figures.mean_batch_bytes_original(), 0.0);
            let summary = figures.summaries().next().unwrap();
            assert_eq!((summary.ratio, summary.savings_percent), (1.0, 0.0));
            assert_eq!((summary.mean_batch_ratio, summary.geomean_batch_ratio), (1.0, 1.0));
            assert_eq!(summary.compress_mib_per_s, 0.0);
        }
        let none = Figures::new(1);
        assert_eq!(none.geomean_batch_bytes_original(), 0.0);
        assert_eq!(
            (none.mean_records_per_batch(), none.geomean_batch_bytes_uncompressed()),
            (0.0, 0.0)
        );
    }

    /// The rows of the KIP whose sums it prints.
    #[test]
    fn samples_of_the_kip() {
        let mut figures = Figures::new(1);
        figures.add(&batch(1, 536_793_767, &[compressed(118_159_324, 0)]));
        let summary = figures.summaries().next().unwrap();
        assert_eq!(format!("{:.2}", 100.0 - summary.savings_percent), "22.01");
        assert_eq!(format!("{:.2}", summary.savings_percent), "77.99");

        let mut figures = Figures::new(1);
        figures.add(&batch(1, 16_080_153, &[compressed(422_829, 168)]));
        let summary = figures.summaries().next().unwrap();
        assert_eq!(format!("{:.2}", summary.savings_percent), "97.37");
        assert_eq!(format!("{:.2}", summary.ratio), "38.03");
        assert_eq!(format!("{:.2}", summary.compress_mib_per_s), "91.28");
    }

    #[test]
    fn merging() {
        let parts: Vec<Figures> = (1..20u64)
            .map(|i| {
                let mut figures = Figures::new(1);
                figures.add(&batch(i * 7, i * 31, &[compressed(i * 5, i)]));
                figures
            })
            .collect();
        let merged = |parts: &mut dyn Iterator<Item = &Figures>| {
            parts.fold(Figures::new(1), |mut sum, part| {
                sum.merge(part);
                sum
            })
        };
        let forward = merged(&mut parts.iter());
        assert_eq!(forward, merged(&mut parts.iter()), "the same order, the same floats");
        let backward = merged(&mut parts.iter().rev());
        let integers = |figures: &Figures| {
            let codec = figures.codecs[0];
            (
                (figures.original_bytes, figures.uncompressed_bytes, figures.records),
                (figures.batches, figures.input_batches_by_codec),
                (codec.compressed_bytes, codec.time),
            )
        };
        assert_eq!(integers(&forward), integers(&backward));
        assert_eq!(forward.original_bytes, 7 * 190);
        assert!(close(
            forward.geomean_batch_bytes_original(),
            backward.geomean_batch_bytes_original()
        ));
    }

    #[test]
    fn totals() {
        let spec = "zstd".parse().unwrap();
        let mut report = AnalysisReport::new(vec![spec]);
        for path in ["a.log", "b.log"] {
            let mut segment = SegmentReport::new(Some(path.to_owned()), 1);
            (segment.file_size, segment.valid_bytes) = (110, 100);
            segment.figures.add(&batch(100, 200, &[compressed(50, 1)]));
            segment.figures.batches.corrupt += 1;
            let trailing = Trailing { kind: "partial_batch", position: 100, bytes: 10 };
            segment.trailing = Some(trailing);
            segment.errors.push(Fault { position: 17, kind: "crc_mismatch", detail: "x".into() });
            report.push(segment);
        }
        let total = &report.total;
        assert_eq!((total.file_size, total.valid_bytes, total.trailing), (220, 200, None));
        assert_eq!((total.figures.batches.total, total.figures.batches.corrupt), (2, 2));
        assert_eq!(total.errors[1].detail, "b.log: x");
    }
}
