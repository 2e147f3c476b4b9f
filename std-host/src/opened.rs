//! Opens batches: their records section as a producer would have handed it to its
//! compressor, every record of it checked.

use logseg_core::batch::{Batch, Records};
use logseg_core::{BatchHeader, Codec, Cpu, Error, Limits, Magic};

use crate::codecs::{HostCodecs, Plain};
use crate::cpu;

/// What a thread keeps for that from one batch to the next.
pub(crate) struct Opener {
    codecs: HostCodecs,
    plain: Plain,
    limits: Limits,
    cpu: Cpu,
}

/// What a batch turned out to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    /// How it is stored.
    pub(crate) codec: Codec,
    /// Records in it.
    pub(crate) records: u64,
}

impl Opener {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { codecs: HostCodecs::default(), plain: Plain::default(), limits, cpu: cpu::detect() }
    }

    /// Checks a batch, and brings its uncompressed records into [`Opener::plain`]: the
    /// records section of a v2 batch, the messages of a v0/v1 set, or the one message.
    ///
    /// Errors: whatever is wrong with it.
    pub(crate) fn open(&mut self, header: BatchHeader, entry: &[u8]) -> Result<Opened, Error> {
        let batch = Batch::new(header, entry, self.cpu);
        batch.check_crc()?;
        let codec = header.codec()?;
        let payload = if codec == Codec::None { None } else { Some(batch.payload()?) };
        match (payload, header.magic) {
            (Some([]), Magic::V2) if header.record_count == Some(0) => self.plain.set(&[]),
            (Some(payload), magic) => {
                let limit = self.limits.output(header.size);
                let position = batch.payload_position();
                self.codecs.unpack(codec, magic, payload, position, limit, &mut self.plain)?;
            }
            (None, Magic::V2) => {
                self.plain.set(entry.get(header.header_len()..).unwrap_or_default());
            }
            (None, Magic::V0 | Magic::V1) => self.plain.set(entry),
        }
        let records = match codec {
            Codec::None => batch.records_unchecked()?,
            _ => batch.records_in(self.plain.bytes())?,
        };
        // An error is the last item.
        let (records, verdict) =
            records.fold((0, Ok(())), |(found, _), record| (found + 1, record.map(drop)));
        verdict?;
        Ok(Opened { codec, records })
    }

    /// The records of the batch that was opened last, in the order of [`Opener::plain`].
    ///
    /// Errors: none, since all of it was checked.
    pub(crate) fn records<'a>(
        &'a self,
        header: BatchHeader,
        entry: &'a [u8],
    ) -> Result<Records<'a>, Error> {
        let batch = Batch::new(header, entry, self.cpu);
        match header.codec()? {
            Codec::None => batch.records_unchecked(),
            _ => batch.records_in(self.plain.bytes()),
        }
    }

    /// Of the batch that was opened last.
    pub(crate) fn plain(&self) -> &[u8] {
        self.plain.bytes()
    }

    /// Makes the offsets of the messages of a v1 set count from 0, as in a wrapper; gaps
    /// stay. Their CRC does not cover them.
    pub(crate) fn relative_offsets(&mut self) {
        let mut first = None;
        each_message(self.plain.bytes_mut(), |message| {
            if let Some(offset) = message.first_chunk_mut::<8>() {
                let own = i64::from_be_bytes(*offset);
                *offset = own.wrapping_sub(*first.get_or_insert(own)).to_be_bytes();
            }
        });
    }
}

/// Calls `change` for each message of a set that was checked.
pub(crate) fn each_message(mut messages: &mut [u8], mut change: impl FnMut(&mut [u8])) {
    while let Some((_, [a, b, c, d, ..])) = messages.split_first_chunk::<8>() {
        let size = i32::from_be_bytes([*a, *b, *c, *d]);
        let len = 12 + usize::try_from(size).unwrap_or(0);
        let Some((message, behind)) = messages.split_at_mut_checked(len) else { return };
        change(message);
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
        let mut opener = Opener::new(Limits::default());
        opener.plain.set(&[message(70), message(71), message(75)].concat());
        opener.relative_offsets();
        assert_eq!(opener.plain(), [message(0), message(1), message(5)].concat());
    }
}
