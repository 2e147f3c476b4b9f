//! What a batch would be with its large values in a blob store, and references to them in
//! their place.
//!
//! ```text
//!  record      length │ attributes … key │ value length │ value     │ count     │ headers
//!  reference   length │ attributes … key │ length       │ reference │ count + 1 │ headers │ marker
//! ```
//! The references are real ones: location, size and SHA-256 of the value, so that they
//! compress as those of a producer would, which is badly. Only the id in the location is
//! made up, of the value and its place, to come out the same in every run.

use std::fmt::Write;

use bytes::Bytes;
use logseg_core::varint::{Prefix, decode_varint, encode_varlong};
use logseg_core::{BatchHeader, Magic, Record};
use sha2::{Digest, Sha256};

use crate::analysis::Moved;
use crate::large_message::{
    JsonFormatter, LargeMessageFormatter, ObjectBlobStore, Reference, UuidGenerator, VALUE_HEADER,
    VERSION,
};
use crate::opened::Opener;

/// Takes large values out of batches.
pub struct ByReference {
    threshold: usize,
    store: String,
    topic: String,
    section: Vec<u8>,
}

impl ByReference {
    /// For values of `threshold` bytes or more, which go to the store at a URL.
    #[must_use]
    pub fn new(threshold: u64, store: &str) -> Self {
        Self {
            threshold: usize::try_from(threshold).unwrap_or(usize::MAX),
            store: store.trim_end_matches('/').to_owned(),
            topic: "topic".to_owned(),
            section: Vec::new(),
        }
    }

    /// The topic of the batches to come, which is part of every location.
    pub fn set_topic(&mut self, topic: &str) {
        topic.clone_into(&mut self.topic);
    }

    /// Makes the records section of the batch that was opened last anew, for
    /// [`ByReference::section`]. There is none if nothing was moved.
    pub(crate) fn rewrite(&mut self, opener: &Opener, header: BatchHeader, entry: &[u8]) -> Moved {
        let mut moved = Moved::default();
        let mut rest = opener.plain();
        // No value is larger than all of them.
        if header.is_control() || rest.len() < self.threshold {
            return moved;
        }
        let Ok(records) = opener.records(header, entry) else { return moved };
        self.section.clear();
        for (nth, record) in (0u64..).zip(records.flatten()) {
            let Some((bytes, behind)) = rest.split_at_checked(record.size) else { break };
            rest = behind;
            match record.value {
                Some(value) if value.len() >= self.threshold && header.magic == Magic::V2 => {
                    let reference = self.reference(value, header.base_offset, nth);
                    // All of it was parsed before, so this is never none.
                    let _ = self.put_record(bytes, &record, &reference);
                    moved.values += 1;
                    moved.value_bytes += value.len() as u64;
                    moved.reference_bytes += reference.len() as u64;
                }
                Some(value) if value.len() >= self.threshold => moved.legacy_values += 1,
                _ => self.section.extend_from_slice(bytes),
            }
        }
        moved
    }

    /// The records section of the batch that was rewritten last.
    pub(crate) fn section(&self) -> &[u8] {
        &self.section
    }

    fn reference(&self, value: &[u8], base_offset: i64, nth: u64) -> Bytes {
        let digest: [u8; 32] = Sha256::digest(value).into();
        let place = Sha256::new().chain_update(digest).chain_update(base_offset.to_be_bytes());
        let place: [u8; 32] = place.chain_update(nth.to_be_bytes()).finalize().into();
        let mut id = String::with_capacity(36);
        for (at, byte) in place.iter().take(16).enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                id.push('-');
            }
            // Writing to a String cannot fail.
            let _ = write!(id, "{byte:02x}");
        }
        JsonFormatter.format(&Reference {
            full_blob_path: format!("{}/{}/{id}", self.store, self.topic),
            blob_store_class: Some(ObjectBlobStore::NAME.to_owned()),
            blob_id_generator_class: Some(UuidGenerator::NAME.to_owned()),
            large_message_formatter_class: Some(JsonFormatter::NAME.to_owned()),
            size: Some(value.len() as u64),
            sha256: Some(digest),
        })
    }

    /// Appends a record with another value, and the marker behind its headers.
    fn put_record(&mut self, bytes: &[u8], record: &Record<'_>, reference: &[u8]) -> Option<()> {
        let prefix = Prefix::careful(bytes).ok()?;
        let head = prefix.len + record.key.map_or(0, <[u8]>::len);
        let (_, n) = decode_varint(bytes.get(head..)?).ok()?;
        let behind = head + n + record.value.map_or(0, <[u8]>::len);
        let (count, n) = decode_varint(bytes.get(behind..)?).ok()?;
        let mut body = Vec::with_capacity(head + reference.len() + 64);
        body.extend_from_slice(bytes.get(prefix.length_len..head)?);
        put_sized(&mut body, reference);
        put_varint(&mut body, i64::from(count) + 1);
        body.extend_from_slice(bytes.get(behind + n..)?);
        put_sized(&mut body, VALUE_HEADER.as_bytes());
        put_sized(&mut body, VERSION);
        put_sized(&mut self.section, &body);
        Some(())
    }
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let (bytes, len) = encode_varlong(value);
    out.extend_from_slice(&bytes[..len]);
}

fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use logseg_core::builder::{BuilderOptions, MemoryRecordsBuilder};
    use logseg_core::{Batches, BuiltinCompressors, Codec, Cpu, Header, Limits};

    use super::*;
    use crate::growing::GrowingBuffer;

    /// Key, value, and whether there is a header.
    type Fields<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, bool);

    fn batch(magic: Magic, records: &[Fields<'_>]) -> Vec<u8> {
        let mut compressors = BuiltinCompressors::new();
        let options = BuilderOptions::new(magic, Codec::None);
        let buffer = GrowingBuffer::with_capacity(1 << 10);
        let mut builder =
            MemoryRecordsBuilder::new(buffer, options, &mut compressors, Cpu::detect()).unwrap();
        for (time, (key, value, has_header)) in (0..).zip(records) {
            let header = [Header { key: b"trace", value: Some(&[1, 2]) }];
            builder.append(time * 1000, *key, *value, &header[..usize::from(*has_header)]).unwrap();
        }
        builder.close().unwrap();
        builder.into_buffer().into_vec()
    }

    fn rewrite(threshold: u64, bytes: &[u8]) -> (Moved, Vec<u8>) {
        let header = *Batches::new(bytes, Cpu::detect()).next().unwrap().unwrap().header();
        let mut opener = Opener::new(Limits::default());
        opener.open(header, bytes).unwrap();
        let mut by = ByReference::new(threshold, "s3://bucket/pre/");
        by.set_topic("orders");
        let moved = by.rewrite(&opener, header, bytes);
        (moved, by.section().to_vec())
    }

    /// What is written is a records section of the same header, whose other fields stay.
    #[test]
    fn records_with_references() {
        let large = vec![b'x'; 5000];
        let key = vec![7; 300];
        let records = [
            (Some(&b"k"[..]), Some(&b"small"[..]), false),
            (Some(&key[..]), Some(&large[..]), true),
            (None, Some(&large[..4999]), false),
            (None, Some(&large[..]), false),
            (Some(b""), None, true),
        ];
        let bytes = batch(Magic::V2, &records);
        let (moved, section) = rewrite(5000, &bytes);
        assert_eq!((moved.values, moved.value_bytes, moved.legacy_values), (2, 10_000, 0));
        // The header's CRC is that of other records; nobody asks for it here.
        let rewritten = [&bytes[..61], &section[..]].concat();
        let header = *Batches::new(&bytes, Cpu::detect()).next().unwrap().unwrap().header();
        let found = logseg_core::Batch::new(header, &rewritten, Cpu::detect());
        let found: Vec<_> = found.records_unchecked().unwrap().map(Result::unwrap).collect();
        let mut sum = 0;
        for (nth, (record, (key, value, has_header))) in found.iter().zip(records).enumerate() {
            assert_eq!((record.key, record.timestamp), (key, nth as i64 * 1000));
            let headers: Vec<_> = record.headers.collect();
            assert_eq!(headers.first().is_some_and(|one| one.key == b"trace"), has_header);
            if value.is_none_or(|value| value.len() != 5000) {
                assert_eq!((record.value, headers.len()), (value, usize::from(has_header)));
                continue;
            }
            assert_eq!(headers.last().unwrap().key, VALUE_HEADER.as_bytes());
            let reference = JsonFormatter.parse(record.value.unwrap()).unwrap();
            sum += record.value.unwrap().len() as u64;
            let id = reference.full_blob_path.strip_prefix("s3://bucket/pre/orders/").unwrap();
            assert_eq!(id.len(), 36, "as long as a UUID");
            assert_eq!(reference.size, Some(5000));
            assert_eq!(reference.sha256, Some(Sha256::digest(&large).into()));
        }
        assert_eq!(found.len(), 5);
        assert_eq!(moved.reference_bytes, sum);
        // The same in every run, though not for the same value elsewhere.
        assert_eq!(rewrite(5000, &bytes).1, section);
        let reference = |nth: usize| found[nth].value.unwrap();
        assert_ne!(reference(1), reference(3));
    }

    #[test]
    fn what_stays() {
        let value = [1; 100];
        let records = [(None, Some(&value[..]), false)];
        for magic in [Magic::V0, Magic::V1] {
            let (moved, _) = rewrite(100, &batch(magic, &records));
            assert_eq!(moved, Moved { legacy_values: 1, ..Moved::default() });
        }
        let bytes = batch(Magic::V2, &records);
        assert_eq!(rewrite(101, &bytes).0, Moved::default());
        assert_eq!(rewrite(u64::MAX, &bytes).0, Moved::default());
        assert_eq!(rewrite(100, &bytes).0.values, 1);
    }
}
