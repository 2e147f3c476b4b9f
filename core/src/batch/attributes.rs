//! The attributes field.
//!
//! ```text
//!  bit  0–2  codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd (v2 only)
//!  bit  3    timestamp type: 0 CreateTime, 1 LogAppendTime (v1, v2)
//!  bit  4    transactional (v2)
//!  bit  5    control batch (v2)
//!  bit  6    delete horizon in base_timestamp (v2, KIP-534)
//! ```
//! Kafka reads the low byte only; higher bits are ignored.

use crate::codec::Codec;

/// What a record's timestamp means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TimestampType {
    /// Set by the producer.
    CreateTime,
    /// Set by the broker; every record has that of its batch.
    LogAppendTime,
}

impl TimestampType {
    /// Kafka's own name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }
}

/// Attributes of a v2 batch, or of a v0/v1 message (whose field is one byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Attributes(pub i16);

impl Attributes {
    /// Codec id, 0 to 7, of which 5 to 7 are unknown.
    #[must_use]
    pub const fn codec_id(self) -> u8 {
        let [_, low] = self.0.to_be_bytes();
        low & 0x07
    }

    /// The codec, or the id that is none.
    pub const fn codec(self) -> Result<Codec, u8> {
        match Codec::from_id(self.codec_id()) {
            Some(codec) => Ok(codec),
            None => Err(self.codec_id()),
        }
    }

    /// What the timestamps mean.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & 0x08 == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    /// Part of a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Holds control records in place of data.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// `base_timestamp` is the time from which tombstones may go.
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & 0x40 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_low_byte_counts() {
        for high in [0x0000u16, 0x7f80, 0x8080] {
            let plain = Attributes(high.cast_signed());
            assert_eq!(plain.codec(), Ok(Codec::None));
            assert!(!plain.is_control() && !plain.has_delete_horizon());
            let all = Attributes((high | 0x7c).cast_signed());
            assert_eq!(all.codec(), Ok(Codec::Zstd));
            assert_eq!(all.timestamp_type(), TimestampType::LogAppendTime);
            assert!(all.is_control() && all.is_transactional() && all.has_delete_horizon());
        }
        assert_eq!(Attributes(6).codec(), Err(6));
    }
}
