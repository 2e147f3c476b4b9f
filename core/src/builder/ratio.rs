//! What a producer expects of its compression, from what it saw before.

/// `CompressionRatioEstimator.java`: a ratio that worsens at once and improves slowly.
///
/// Kafka keeps one for each topic and codec in a static map; here it is a value that the
/// caller keeps. A ratio is compressed bytes over uncompressed ones.
///
/// ```
/// use logseg_core::builder::CompressionRatioEstimator;
/// let mut estimator = CompressionRatioEstimator::new();
/// assert_eq!(estimator.estimation(), 1.0);
/// assert_eq!(estimator.observe(0.5), 0.995);
/// assert_eq!(estimator.observe(1.2), 1.2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CompressionRatioEstimator {
    ratio: f32,
}

impl CompressionRatioEstimator {
    /// How far one batch that was better than expected lowers the ratio.
    pub const COMPRESSION_RATIO_IMPROVING_STEP: f32 = 0.005;
    /// How far at least one that was worse raises it.
    pub const COMPRESSION_RATIO_DETERIORATE_STEP: f32 = 0.05;
    /// Where it starts, for every codec.
    pub const INITIAL_RATIO: f32 = 1.0;

    /// Expects that nothing shrinks.
    #[must_use]
    pub const fn new() -> Self {
        Self { ratio: Self::INITIAL_RATIO }
    }

    /// What to expect of the next batch. It can exceed 1.
    #[must_use]
    pub const fn estimation(&self) -> f32 {
        self.ratio
    }

    /// Learns what a batch came to, and gives what to expect of the next
    /// (`updateEstimation`).
    pub fn observe(&mut self, observed: f32) -> f32 {
        if observed > self.ratio {
            self.ratio = (self.ratio + Self::COMPRESSION_RATIO_DETERIORATE_STEP).max(observed);
        } else if observed < self.ratio {
            self.ratio = (self.ratio - Self::COMPRESSION_RATIO_IMPROVING_STEP).max(observed);
        }
        self.ratio
    }

    /// Forgets what it learned, for a ratio of one's own (`setEstimation`).
    pub const fn set(&mut self, ratio: f32) {
        self.ratio = ratio;
    }

    /// What a producer does before it splits a batch that the broker found too large:
    /// the ratio of that batch, but no less than 1.
    pub const fn split(&mut self, batch_ratio: f32) {
        self.ratio = batch_ratio.max(1.0);
    }
}

impl Default for CompressionRatioEstimator {
    fn default() -> Self {
        Self::new()
    }
}

/// The rate of clients before 0.11 (`Compressor.java`): a moving average, one for each
/// codec in the whole process. Here too it is a value that the caller keeps.
///
/// What is observed is [`crate::builder::MemoryRecordsBuilder::compression_ratio`] under
/// [`crate::builder::Policy::Legacy`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LegacyCompressionRate {
    rate: f32,
}

impl LegacyCompressionRate {
    /// Weight of what was.
    pub const COMPRESSION_RATE_DAMPING_FACTOR: f32 = 0.9;

    /// Expects that nothing shrinks.
    #[must_use]
    pub const fn new() -> Self {
        Self { rate: 1.0 }
    }

    /// What to expect of the next batch.
    #[must_use]
    pub const fn estimation(&self) -> f32 {
        self.rate
    }

    /// Learns what a batch came to: `0.9 · rate + 0.1 · observed`.
    pub fn observe(&mut self, observed: f32) -> f32 {
        self.rate = self.rate * Self::COMPRESSION_RATE_DAMPING_FACTOR
            + observed * (1.0 - Self::COMPRESSION_RATE_DAMPING_FACTOR);
        self.rate
    }
}

impl Default for LegacyCompressionRate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of Kafka's own class.
    #[test]
    fn steps_of_the_estimator() {
        let mut estimator = CompressionRatioEstimator::default();
        assert_eq!(estimator.observe(0.5), 0.995);
        assert!((estimator.observe(0.5) - 0.99).abs() < 1e-6);
        assert!((estimator.observe(1.0) - 1.04).abs() < 1e-6, "it can exceed 1");
        let same = estimator.estimation();
        assert_eq!(estimator.observe(same), same);
        assert_eq!(estimator.observe(3.0), 3.0);
        estimator.set(0.502);
        assert_eq!(estimator.observe(0.5), 0.5, "not below what was seen");
        estimator.split(0.7);
        assert_eq!(estimator.estimation(), 1.0);
        estimator.split(1.7);
        assert_eq!(estimator.estimation(), 1.7);
    }

    #[test]
    fn the_rate_before_0_11_is_a_moving_average() {
        let mut rate = LegacyCompressionRate::default();
        assert!((rate.observe(0.5) - 0.95).abs() < 1e-6);
        assert!((rate.observe(0.5) - 0.905).abs() < 1e-6);
    }
}
