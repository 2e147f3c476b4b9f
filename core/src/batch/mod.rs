//! The wire structures: one a file.
//!
//! Every entry of a segment, of any magic, starts with the same 17 bytes
//! (`Records.java`, `DefaultRecordBatch.java`, `LegacyRecord.java`):
//!
//! ```text
//!  off len
//!    0   8  offset       v2: of the first record; v0/v1: of the (last) message
//!    8   4  size         bytes behind this field
//!   12   4  crc (v0/v1)  or partition leader epoch (v2)
//!   16   1  magic
//! ```

mod attributes;
mod control;
mod header;
mod headers;
pub(crate) mod legacy;
pub(crate) mod record;

pub use attributes::{Attributes, TimestampType};
pub use control::{Control, ControlType, ControlValue, Endpoint, Endpoints, Voter, Voters};
pub use header::{BatchHeader, Framing, Magic};
pub use headers::{Header, Headers};
pub use record::{Offset, Record, Records};

use crate::cpu::Cpu;
use crate::crc32c::{crc32, crc32c};
use crate::error::{Error, ErrorKind};

/// One entry of a segment, whole and in memory: a v2 batch, or a v0/v1 message.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
    cpu: Cpu,
}

impl<'a> Batch<'a> {
    /// Takes an entry from its bytes, which must be exactly `header.size` long
    /// for anything to be found in it.
    #[must_use]
    pub const fn new(header: BatchHeader, bytes: &'a [u8], cpu: Cpu) -> Self {
        Self { header, bytes, cpu }
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole entry, its 12 bytes of offset and size included.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The CRC of the bytes that are there.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        let covered = self.bytes.get(self.header.crc_start()..).unwrap_or_default();
        match self.header.magic {
            Magic::V2 => crc32c(self.cpu, covered),
            Magic::V0 | Magic::V1 => crc32(covered),
        }
    }

    /// Checks the CRC.
    pub fn check_crc(&self) -> Result<(), Error> {
        self.header.compare_crc(self.computed_crc())
    }

    /// The records of an uncompressed entry, borrowed from it. The CRC is checked
    /// first, since that pass also brings the bytes into the cache.
    ///
    /// Errors: [`ErrorKind::CrcMismatch`]; [`ErrorKind::UnknownCodec`];
    /// [`ErrorKind::Compressed`], for which there is [`crate::Unpacker`].
    pub fn records(&self) -> Result<Records<'a>, Error> {
        self.check_crc()?;
        self.records_unchecked()
    }

    /// As [`Batch::records`], for a caller who has checked the CRC or does not care.
    pub fn records_unchecked(&self) -> Result<Records<'a>, Error> {
        match self.header.codec()? {
            crate::Codec::None => {}
            codec => return Err(ErrorKind::Compressed { codec }.at(self.payload_position())),
        }
        match self.header.magic {
            Magic::V2 => {
                let plain = self.bytes.get(self.header.header_len()..).unwrap_or_default();
                Records::of_batch(self.header, plain, self.payload_position(), false, self.cpu)
            }
            Magic::V0 | Magic::V1 => Ok(Records::of_message(self.header, self.bytes, self.cpu)),
        }
    }

    /// The records of a compressed entry, from its decompressed payload.
    ///
    /// For v0/v1 the offsets of the set are resolved first, so nothing is handed
    /// out if the wrapper's offset cannot be right.
    pub fn records_in<'p>(&self, plain: &'p [u8]) -> Result<Records<'p>, Error> {
        let position = self.payload_position();
        match self.header.magic {
            Magic::V2 => Records::of_batch(self.header, plain, position, true, self.cpu),
            Magic::V0 | Magic::V1 => Ok(Records::of_set(self.header, plain, position, self.cpu)),
        }
    }

    /// The compressed payload: the records section of a v2 batch, the value of a
    /// v0/v1 wrapper.
    ///
    /// Errors: [`ErrorKind::MalformedWrapper`] and [`ErrorKind::MalformedRecord`]
    /// where a wrapper has no value or its fields do not fit.
    pub fn payload(&self) -> Result<&'a [u8], Error> {
        match self.header.magic {
            Magic::V2 => Ok(self.bytes.get(self.header.header_len()..).unwrap_or_default()),
            Magic::V0 | Magic::V1 => {
                let message = legacy::Message::parse(self.bytes)
                    .map_err(|fault| ErrorKind::MalformedRecord(fault).at(self.header.position))?;
                message.value.and_then(|range| self.bytes.get(range.as_range())).ok_or(
                    ErrorKind::MalformedWrapper(crate::error::WrapperFault::NullValue)
                        .at(self.header.position),
                )
            }
        }
    }

    /// Absolute position of the first byte of [`Batch::payload`].
    #[must_use]
    pub fn payload_position(&self) -> u64 {
        let within = match self.header.magic {
            Magic::V2 => self.header.header_len(),
            Magic::V0 | Magic::V1 => legacy::Message::parse(self.bytes)
                .ok()
                .and_then(|message| message.value)
                .map_or(0, |range| range.at),
        };
        self.header.position + within as u64
    }
}
