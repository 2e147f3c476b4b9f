//! `.snapshot`: what a partition knows of its idempotent producers.
//!
//! ```text
//!  0  version  i16  1
//!  2  crc      u32  CRC-32C of everything behind it
//!  6  count    i32
//! 10  count × 46 bytes:
//!      0  producer_id               i64
//!      8  producer_epoch            i16
//!     10  last_sequence             i32
//!     14  last_offset               i64  below 0: no batch is known
//!     22  offset_delta              i32  last offset − first offset of that batch
//!     26  timestamp                 i64
//!     34  coordinator_epoch         i32
//!     38  current_txn_first_offset  i64  below 0: no transaction is open
//! ```
//!
//! Kafka's `storage/internals/log/ProducerStateManager.java` and `ProducerSnapshot.json`.

use logseg_core::cursor::Cursor;
use serde::Serialize;

use super::{Entry, Fault, Wrong, cut, none_negative};

/// What a snapshot begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// As stored.
    pub crc: u32,
    /// Number of entries.
    pub count: u32,
}

impl SnapshotHeader {
    /// Its bytes.
    pub const LEN: usize = 10;
    /// The only version there is.
    pub const VERSION: i16 = 1;
    /// Where the bytes that the CRC covers start.
    pub const CRC_START: usize = 6;

    /// Reads the header of a file with this length from its first bytes.
    ///
    /// Errors: another version, a file that is shorter than a header, and one that is
    /// shorter or longer than its entries.
    pub fn parse(bytes: &[u8], length: u64) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(bytes);
        let mut fields = || Some((cursor.i16()?, cursor.u32()?, cursor.i32()?));
        let Some((version, crc, count)) = fields() else {
            let how = format!("{length} bytes are fewer than the {} of a header", Self::LEN);
            return Err(Wrong::new("size", how).at(0));
        };
        if version != Self::VERSION {
            return Err(Wrong::new("version", format!("{version} is not 1")).at(0));
        }
        let wrong = |how| Err(Wrong::new("count", how).at(6));
        let Ok(count) = u32::try_from(count) else {
            return wrong(format!("{count} is negative"));
        };
        let want = Self::LEN as u64 + u64::from(count) * ProducerStateEntry::SIZE as u64;
        if want != length {
            return wrong(format!("{count} entries make {want} bytes, the file has {length}"));
        }
        Ok(Self { crc, count })
    }

    /// Compares the checksum with that of the bytes.
    pub fn check_crc(&self, computed: u32) -> Result<(), Fault> {
        if self.crc == computed {
            return Ok(());
        }
        let how = format!("stored 0x{:08x}, computed 0x{computed:08x}", self.crc);
        Err(Wrong::new("crc", how).at(2))
    }
}

/// An entry of a snapshot: a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProducerStateEntry {
    /// Whose.
    pub producer_id: i64,
    /// Its last one.
    pub producer_epoch: i16,
    /// Of the last marker, −1 if there was none.
    pub coordinator_epoch: i32,
    /// Of the transaction that is open.
    pub current_txn_first_offset: Option<i64>,
    /// When the producer was last heard of, in milliseconds.
    pub last_timestamp: i64,
    /// Its last batch.
    pub batch: Option<BatchMetadata>,
}

/// The last batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BatchMetadata {
    /// Of its first record; not stored.
    pub first_sequence: i32,
    /// Of its last record.
    pub last_sequence: i32,
    /// Of its last record.
    pub last_offset: i64,
    /// From the first to the last offset.
    pub offset_delta: i32,
}

impl BatchMetadata {
    const fn new(last_sequence: i32, last_offset: i64, offset_delta: i32) -> Self {
        // Behind 2147483647 comes 0.
        let first_sequence = if last_sequence >= offset_delta {
            last_sequence.wrapping_sub(offset_delta)
        } else {
            let below_zero = offset_delta.wrapping_sub(last_sequence);
            i32::MAX.wrapping_sub(below_zero).wrapping_add(1)
        };
        Self { first_sequence, last_sequence, last_offset, offset_delta }
    }
}

impl ProducerStateEntry {
    fn fields(mut cursor: Cursor<'_>) -> Option<Self> {
        let (producer_id, producer_epoch) = (cursor.i64()?, cursor.i16()?);
        let (last_sequence, last_offset) = (cursor.i32()?, cursor.i64()?);
        let batch = BatchMetadata::new(last_sequence, last_offset, cursor.i32()?);
        Some(Self {
            producer_id,
            producer_epoch,
            batch: (last_offset >= 0).then_some(batch),
            last_timestamp: cursor.i64()?,
            coordinator_epoch: cursor.i32()?,
            current_txn_first_offset: cursor.i64().map(|offset| (offset >= 0).then_some(offset))?,
        })
    }
}

impl Entry for ProducerStateEntry {
    const SIZE: usize = 46;
    const PREALLOCATED: bool = false;

    fn parse(bytes: &[u8], _: i64) -> Result<Self, Wrong> {
        Self::fields(Cursor::new(bytes)).ok_or_else(|| cut::<Self>(bytes))
    }

    fn check(&self, _: Option<&Self>, _: i64) -> Result<(), Wrong> {
        // Producers come in no order.
        none_negative([
            ("producer_id", self.producer_id),
            ("producer_epoch", self.producer_epoch.into()),
        ])?;
        let Some(batch) = self.batch else { return Ok(()) };
        none_negative([
            ("last_sequence", batch.last_sequence.into()),
            ("offset_delta", batch.offset_delta.into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use logseg_core::{Cpu, crc32c::crc32c};

    use super::super::tests::hex;
    use super::*;

    /// One producer, of Kafka's own classes.
    const SNAPSHOT: &str = "0001 958f12aa 00000001 \
        0000000000000fa0 0002 00000018 00000000000000cc 00000004 0000018bcfe56be7 00000008 \
        ffffffffffffffff";

    #[test]
    fn a_snapshot_of_kafka() {
        let bytes = hex(SNAPSHOT);
        let header = SnapshotHeader::parse(&bytes, bytes.len() as u64).unwrap();
        assert_eq!(header, SnapshotHeader { crc: 0x958f_12aa, count: 1 });
        let crc = crc32c(Cpu::scalar(), &bytes[SnapshotHeader::CRC_START..]);
        assert_eq!(header.check_crc(crc), Ok(()));
        let entry = ProducerStateEntry::parse(&bytes[SnapshotHeader::LEN..], 0).unwrap();
        let batch = BatchMetadata::new(24, 204, 4);
        let want = ProducerStateEntry {
            producer_id: 4000,
            producer_epoch: 2,
            coordinator_epoch: 8,
            current_txn_first_offset: None,
            last_timestamp: 1_700_000_000_999,
            batch: Some(batch),
        };
        assert_eq!((entry, batch.first_sequence), (want, 20));
        assert_eq!(entry.check(None, 0), Ok(()));
    }

    #[test]
    fn sequences_wrap() {
        for (last_sequence, offset_delta, first) in [
            (4, 4, 0),
            (3, 4, i32::MAX),
            (0, 1, i32::MAX),
            (0, i32::MAX, 1),
            // No broker writes these; nothing overflows.
            (i32::MIN, i32::MAX, i32::MIN + 1),
            (i32::MAX, i32::MIN, -1),
        ] {
            let batch = BatchMetadata::new(last_sequence, 0, offset_delta);
            assert_eq!(batch.first_sequence, first, "{last_sequence} {offset_delta}");
        }
    }

    #[test]
    fn faults_of_the_header() {
        let bytes = hex(SNAPSHOT);
        let parse = |bytes: &[u8], length| {
            SnapshotHeader::parse(bytes, length).map_err(|fault| fault.to_string())
        };
        for (at, byte, fault) in [
            (1, 2, "byte 0: version: 2 is not 1"),
            (6, 0x80, "byte 6: count: -2147483647 is negative"),
            (6, 0x7f, "byte 6: count: 2130706433 entries make 98012495928 bytes, the file has 56"),
            (9, 0, "byte 6: count: 0 entries make 10 bytes, the file has 56"),
        ] {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            assert_eq!(parse(&bytes, 56), Err(fault.to_owned()));
        }
        let short = "byte 0: size: 9 bytes are fewer than the 10 of a header";
        assert_eq!(parse(&bytes[..9], 9), Err(short.to_owned()));
        let cut = "byte 6: count: 1 entries make 56 bytes, the file has 55";
        assert_eq!(parse(&bytes[..10], 55), Err(cut.to_owned()));
        let header = parse(&bytes, 56).unwrap();
        assert_eq!(
            header.check_crc(1).unwrap_err().to_string(),
            "byte 2: crc: stored 0x958f12aa, computed 0x00000001"
        );
    }

    #[test]
    fn faults_of_an_entry() {
        for (at, fault) in [
            (0, "producer_id: -9223372036854771808 is negative"),
            (8, "producer_epoch: -32766 is negative"),
            (10, "last_sequence: -2147483624 is negative"),
            (22, "offset_delta: -2147483644 is negative"),
        ] {
            let mut bytes = hex(SNAPSHOT)[SnapshotHeader::LEN..].to_vec();
            bytes[at] |= 0x80;
            let entry = ProducerStateEntry::parse(&bytes, 0).unwrap();
            assert_eq!(entry.check(None, 0).unwrap_err().to_string(), fault);
        }
        // No batch: what is said of it does not count.
        let mut bytes = hex(SNAPSHOT)[SnapshotHeader::LEN..].to_vec();
        bytes[10..26].fill(0xff);
        let entry = ProducerStateEntry::parse(&bytes, 0).unwrap();
        assert_eq!((entry.batch, entry.check(None, 0)), (None, Ok(())));
        assert!(ProducerStateEntry::parse(&bytes[..45], 0).is_err());
    }
}
