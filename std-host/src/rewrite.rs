//! Rewrites batches with another compression type.
//!
//! ```text
//!  v2     61 bytes of header │ records section, compressed       length, codec, CRC anew
//!  v0/v1  offset │ size │ CRC │ magic │ attributes │ timestamp │ −1 │ length │ messages
//! ```
//! Base offset, last offset delta, leader epoch, timestamps and their type, producer
//! state and flags of a v2 batch stay, and so do its records, byte for byte. Messages of
//! v0/v1 go into a wrapper of their own or out of it: its offset is that of the last one,
//! its timestamp that of what it replaces; in v1 offsets inside count from 0.

use logseg_core::crc32c::{crc32, crc32c};
use logseg_core::{BatchHeader, Codec, Cpu, Limits, Magic, TimestampType};

use crate::codec_spec::CodecSpec;
use crate::cpu;
use crate::opened::{Opened, Opener, each_message};
use crate::recompress::{NotDone, RecompressError, Recompressor};

/// Everything that is kept from one batch to the next.
pub struct Rewriter {
    opener: Opener,
    /// `None` to store records uncompressed.
    compressor: Option<Recompressor>,
    packed: Vec<u8>,
    cpu: Cpu,
}

impl Rewriter {
    /// For a compression type, or for none.
    #[must_use]
    pub fn new(spec: Option<CodecSpec>, limits: Limits) -> Self {
        Self {
            opener: Opener::new(limits),
            compressor: spec.map(Recompressor::new),
            packed: Vec::new(),
            cpu: cpu::detect(),
        }
    }

    /// Appends an entry to `out` as it is with the other compression type. Control batches
    /// and empty ones stay as they are. Nothing is appended where there is an error.
    ///
    /// Errors: whatever is wrong with the batch; that its version cannot carry the codec;
    /// or the compressor's.
    pub fn rewrite(
        &mut self,
        header: BatchHeader,
        entry: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotDone> {
        let Opened { codec, records } = self.opener.open(header, entry)?;
        let stored = codec == Codec::None && self.compressor.is_none();
        if header.is_control() || records == 0 || stored {
            out.extend_from_slice(entry);
            return Ok(());
        }
        match (header.magic, &mut self.compressor) {
            (Magic::V2, None) => put_v2(entry, Codec::None, self.opener.plain(), self.cpu, out),
            (Magic::V0 | Magic::V1, None) => put_messages(&header, self.opener.plain(), out),
            (magic, Some(compressor)) => {
                if magic == Magic::V1 {
                    self.opener.relative_offsets();
                }
                let plain = self.opener.plain();
                compressor.compress(plain, magic, &mut self.packed).map_err(NotDone::Failed)?;
                let codec = compressor.spec().codec();
                if magic == Magic::V2 {
                    put_v2(entry, codec, &self.packed, self.cpu, out)
                } else {
                    put_wrapper(entry, header.header_len(), codec, &self.packed, out)
                }
            }
        }
        .ok_or(NotDone::Failed(RecompressError::TooLarge))
    }
}

/// A v2 batch with the header of `entry`. `None` if it were too large.
fn put_v2(entry: &[u8], codec: Codec, payload: &[u8], cpu: Cpu, out: &mut Vec<u8>) -> Option<()> {
    let length = i32::try_from(49 + payload.len()).ok()?;
    let start = out.len();
    out.extend_from_slice(&entry[..61]);
    out.extend_from_slice(payload);
    let batch = &mut out[start..];
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    // Timestamp type, transactional, control, delete horizon; no one uses the others yet.
    batch[21] = 0;
    batch[22] = batch[22] & 0x78 | codec.id();
    let crc = crc32c(cpu, &batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    Some(())
}

/// A v0/v1 wrapper of a set, with offset, attributes and timestamp of `entry`, whose key
/// length is at `fields`. `None` if it were too large.
fn put_wrapper(
    entry: &[u8],
    fields: usize,
    codec: Codec,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let start = out.len();
    out.extend_from_slice(&entry[..fields]);
    out.extend_from_slice(&(-1i32).to_be_bytes());
    out.extend_from_slice(&i32::try_from(payload.len()).ok()?.to_be_bytes());
    out.extend_from_slice(payload);
    let size = i32::try_from(out.len() - start - 12).ok()?;
    let message = &mut out[start..];
    message[8..12].copy_from_slice(&size.to_be_bytes());
    // In v1 the timestamp type.
    message[17] = message[17] & (message[16] << 3) & 8 | codec.id();
    put_crc(message);
    Some(())
}

/// The messages of a wrapper, out of it: with absolute offsets, and with its timestamp
/// if the broker set that.
fn put_messages(wrapper: &BatchHeader, messages: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.extend_from_slice(messages);
    let messages = &mut out[start..];
    if wrapper.magic == Magic::V1 {
        let offset_of = |message: &[u8]| {
            message.first_chunk().map_or(0, |offset: &[u8; 8]| i64::from_be_bytes(*offset))
        };
        let mut last = 0;
        each_message(messages, |message| last = offset_of(message));
        let base = wrapper.base_offset.wrapping_sub(last);
        let append_time = wrapper.timestamp_type() == Some(TimestampType::LogAppendTime);
        each_message(messages, |message| {
            let offset = base.wrapping_add(offset_of(message));
            message[..8].copy_from_slice(&offset.to_be_bytes());
            if append_time && message[16] == 1 {
                message[17] |= 8;
                message[18..26].copy_from_slice(&wrapper.max_timestamp.to_be_bytes());
                put_crc(message);
            }
        });
    }
    Some(())
}

/// CRC-32 of a v0/v1 message, over what is behind it.
fn put_crc(message: &mut [u8]) {
    let crc = crc32(&message[16..]);
    message[12..16].copy_from_slice(&crc.to_be_bytes());
}
