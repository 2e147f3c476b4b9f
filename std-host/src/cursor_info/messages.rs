//! The messages of `MLDataFormats.proto` (proto2), under Pulsar's own names.
//!
//! A message is checked against its [`Schema`] first and made into values by `prost`
//! afterwards: prost takes a required field that is missing for one of value zero, and does
//! not say where a message is broken. Fields that no schema has are skipped, and counted;
//! nodes are rewritten from their bytes, so that such fields stay.
//!
//! Source: `managed-ledger/src/main/proto/MLDataFormats.proto` of Apache Pulsar.
#![allow(missing_docs, reason = "the names are those of the protocol, which documents them")]

use prost::Message;
use serde::Serialize;

use super::error::{Error, ErrorKind};

/// `CompressionType` and size of what follows; the same for cursors and ledgers.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedInfoMetadata {
    #[prost(int32, required, tag = "1")]
    pub compression_type: i32,
    #[prost(int32, required, tag = "2")]
    pub uncompressed_size: i32,
}

/// How far a subscription is.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedCursorInfo {
    /// The ledger with the cursor's positions; −1: the fields below are the position.
    #[prost(int64, required, tag = "1")]
    pub cursors_ledger_id: i64,
    #[prost(int64, optional, tag = "2")]
    pub mark_delete_ledger_id: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub mark_delete_entry_id: Option<i64>,
    #[prost(message, repeated, tag = "4")]
    pub individual_deleted_messages: Vec<MessageRange>,
    #[prost(message, repeated, tag = "5")]
    pub properties: Vec<LongProperty>,
    /// Milliseconds since 1970.
    #[prost(int64, optional, tag = "6")]
    pub last_active: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    pub batched_entry_deletion_index_info: Vec<BatchedEntryDeletionIndexInfo>,
    #[prost(message, repeated, tag = "8")]
    pub cursor_properties: Vec<StringProperty>,
}

/// Acknowledged entries behind the mark-delete position: `(lower, upper]`.
#[derive(Clone, Copy, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRange {
    #[prost(message, required, tag = "1")]
    pub lower_endpoint: NestedPositionInfo,
    #[prost(message, required, tag = "2")]
    pub upper_endpoint: NestedPositionInfo,
}

#[derive(Clone, Copy, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NestedPositionInfo {
    #[prost(int64, required, tag = "1")]
    pub ledger_id: i64,
    #[prost(int64, required, tag = "2")]
    pub entry_id: i64,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LongProperty {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(int64, required, tag = "2")]
    pub value: i64,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StringProperty {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// A batch of which some messages are acknowledged.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchedEntryDeletionIndexInfo {
    #[prost(message, required, tag = "1")]
    pub position: NestedPositionInfo,
    /// Words of a bit set: a message whose bit is set is not acknowledged yet.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub delete_set: Vec<i64>,
}

/// An entry of a cursor's ledger. Not in this envelope.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PositionInfo {
    #[prost(int64, required, tag = "1")]
    pub ledger_id: i64,
    #[prost(int64, required, tag = "2")]
    pub entry_id: i64,
    #[prost(message, repeated, tag = "3")]
    pub individual_deleted_messages: Vec<MessageRange>,
    #[prost(message, repeated, tag = "4")]
    pub properties: Vec<LongProperty>,
    #[prost(message, repeated, tag = "5")]
    pub batched_entry_deletion_index_info: Vec<BatchedEntryDeletionIndexInfo>,
    #[prost(message, repeated, tag = "6")]
    pub individual_deleted_message_ranges: Vec<LongListMap>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LongListMap {
    #[prost(int64, required, tag = "1")]
    pub key: i64,
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub values: Vec<i64>,
}

/// The ledgers of a topic.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedLedgerInfo {
    #[prost(message, repeated, tag = "1")]
    pub ledger_info: Vec<LedgerInfo>,
    #[prost(message, optional, tag = "2")]
    pub terminated_position: Option<NestedPositionInfo>,
    #[prost(message, repeated, tag = "3")]
    pub properties: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerInfo {
    #[prost(int64, required, tag = "1")]
    pub ledger_id: i64,
    #[prost(int64, optional, tag = "2")]
    pub entries: Option<i64>,
    /// Bytes.
    #[prost(int64, optional, tag = "3")]
    pub size: Option<i64>,
    /// Milliseconds since 1970.
    #[prost(int64, optional, tag = "4")]
    pub timestamp: Option<i64>,
    #[prost(message, optional, boxed, tag = "5")]
    pub offload_context: Option<Box<OffloadContext>>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffloadContext {
    #[prost(int64, optional, tag = "1")]
    pub uid_msb: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub uid_lsb: Option<i64>,
    #[prost(bool, optional, tag = "3")]
    pub complete: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    pub bookkeeper_deleted: Option<bool>,
    #[prost(int64, optional, tag = "5")]
    pub timestamp: Option<i64>,
    #[prost(message, optional, tag = "6")]
    pub driver_metadata: Option<OffloadDriverMetadata>,
    #[prost(message, repeated, tag = "7")]
    pub offload_segment: Vec<OffloadSegment>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffloadSegment {
    #[prost(int64, optional, tag = "1")]
    pub uid_msb: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub uid_lsb: Option<i64>,
    #[prost(bool, optional, tag = "3")]
    pub complete: Option<bool>,
    #[prost(int64, optional, tag = "4")]
    pub assigned_timestamp: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub offloaded_timestamp: Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub end_entry_id: Option<i64>,
    #[prost(message, optional, tag = "7")]
    pub driver_metadata: Option<OffloadDriverMetadata>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffloadDriverMetadata {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub properties: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyValue {
    #[prost(string, required, tag = "1")]
    pub key: String,
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// The fields of a message.
#[derive(Debug)]
pub struct Schema {
    pub name: &'static str,
    fields: &'static [Field],
}

#[derive(Debug)]
struct Field {
    number: u64,
    name: &'static str,
    kind: Kind,
    required: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Int32,
    Int64,
    Bool,
    Text,
    /// Repeated; packed as well.
    Int64s,
    Message(&'static Schema),
}

const fn required(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, required: true }
}

const fn field(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, required: false }
}

/// A message that can be checked before it is decoded.
pub trait Checked: Message + Default {
    const SCHEMA: &'static Schema;
}

macro_rules! schemas {
    ($($message:ident $name:literal: [$($field:expr),* $(,)?])*) => {$(
        impl Checked for $message {
            const SCHEMA: &'static Schema = &Schema { name: $name, fields: &[$($field),*] };
        }
    )*};
}

use Kind::{Bool, Int32, Int64, Int64s, Text};

const fn message<M: Checked>() -> Kind {
    Kind::Message(M::SCHEMA)
}

schemas! {
    ManagedInfoMetadata "metadata": [
        required(1, "compressionType", Int32),
        required(2, "uncompressedSize", Int32),
    ]
    ManagedCursorInfo "ManagedCursorInfo": [
        required(1, "cursorsLedgerId", Int64),
        field(2, "markDeleteLedgerId", Int64),
        field(3, "markDeleteEntryId", Int64),
        field(4, "individualDeletedMessages", message::<MessageRange>()),
        field(5, "properties", message::<LongProperty>()),
        field(6, "lastActive", Int64),
        field(7, "batchedEntryDeletionIndexInfo", message::<BatchedEntryDeletionIndexInfo>()),
        field(8, "cursorProperties", message::<StringProperty>()),
    ]
    MessageRange "MessageRange": [
        required(1, "lowerEndpoint", message::<NestedPositionInfo>()),
        required(2, "upperEndpoint", message::<NestedPositionInfo>()),
    ]
    NestedPositionInfo "NestedPositionInfo": [
        required(1, "ledgerId", Int64),
        required(2, "entryId", Int64),
    ]
    LongProperty "LongProperty": [required(1, "name", Text), required(2, "value", Int64)]
    StringProperty "StringProperty": [required(1, "name", Text), required(2, "value", Text)]
    BatchedEntryDeletionIndexInfo "BatchedEntryDeletionIndexInfo": [
        required(1, "position", message::<NestedPositionInfo>()),
        field(2, "deleteSet", Int64s),
    ]
    PositionInfo "PositionInfo": [
        required(1, "ledgerId", Int64),
        required(2, "entryId", Int64),
        field(3, "individualDeletedMessages", message::<MessageRange>()),
        field(4, "properties", message::<LongProperty>()),
        field(5, "batchedEntryDeletionIndexInfo", message::<BatchedEntryDeletionIndexInfo>()),
        field(6, "individualDeletedMessageRanges", message::<LongListMap>()),
    ]
    LongListMap "LongListMap": [required(1, "key", Int64), field(2, "values", Int64s)]
    ManagedLedgerInfo "ManagedLedgerInfo": [
        field(1, "ledgerInfo", message::<LedgerInfo>()),
        field(2, "terminatedPosition", message::<NestedPositionInfo>()),
        field(3, "properties", message::<KeyValue>()),
    ]
    LedgerInfo "LedgerInfo": [
        required(1, "ledgerId", Int64),
        field(2, "entries", Int64),
        field(3, "size", Int64),
        field(4, "timestamp", Int64),
        field(5, "offloadContext", message::<OffloadContext>()),
    ]
    OffloadContext "OffloadContext": [
        field(1, "uidMsb", Int64),
        field(2, "uidLsb", Int64),
        field(3, "complete", Bool),
        field(4, "bookkeeperDeleted", Bool),
        field(5, "timestamp", Int64),
        field(6, "driverMetadata", message::<OffloadDriverMetadata>()),
        field(7, "offloadSegment", message::<OffloadSegment>()),
    ]
    OffloadSegment "OffloadSegment": [
        field(1, "uidMsb", Int64),
        field(2, "uidLsb", Int64),
        field(3, "complete", Bool),
        field(4, "assignedTimestamp", Int64),
        field(5, "offloadedTimestamp", Int64),
        field(6, "endEntryId", Int64),
        field(7, "driverMetadata", message::<OffloadDriverMetadata>()),
    ]
    OffloadDriverMetadata "OffloadDriverMetadata": [
        required(1, "name", Text),
        field(2, "properties", message::<KeyValue>()),
    ]
    KeyValue "KeyValue": [required(1, "key", Text), required(2, "value", Text)]
}

/// Decodes a message that starts at byte `base` of what it is told of in errors, and counts
/// the fields that are not known.
///
/// A field of unknown number is skipped, whatever its wire type. [`ErrorKind::Message`]:
/// cut, a varint of more than ten bytes, a wire type that the field cannot have, text that
/// is not UTF-8, or a required field that is missing.
pub fn decode<M: Checked>(bytes: &[u8], base: u64) -> Result<(M, u64), Error> {
    let mut check = Check { bytes, base, unknown: 0 };
    check.message(M::SCHEMA, 0, bytes.len())?;
    let unknown = check.unknown;
    let message =
        M::decode(bytes).map_err(|error| fault(M::SCHEMA, "", base, &error.to_string()))?;
    Ok((message, unknown))
}

fn fault(schema: &Schema, field: &str, at: u64, detail: &str) -> Error {
    let dot = if field.is_empty() { "" } else { "." };
    Error::new(ErrorKind::Message, at, format!("{}{dot}{field}", schema.name), detail)
}

/// Deepest nesting of groups that is skipped; prost's own limit.
const GROUPS: usize = 90;

struct Check<'a> {
    bytes: &'a [u8],
    base: u64,
    unknown: u64,
}

/// A tag: where it stands, field number and wire type.
struct Tag {
    at: usize,
    number: u64,
    wire: u64,
}

impl Check<'_> {
    /// Schemas are no deeper than five, so that this ends whatever the bytes are.
    fn message(&mut self, schema: &'static Schema, from: usize, end: usize) -> Result<(), Error> {
        let (mut at, mut seen) = (from, 0u64);
        while at < end {
            let tag = self.tag(schema, &mut at, end)?;
            match schema.fields.iter().position(|field| field.number == tag.number) {
                Some(index) => {
                    seen |= 1 << index;
                    self.value(schema, &schema.fields[index], &tag, &mut at, end)?;
                }
                None => {
                    self.unknown += 1;
                    self.skip(schema, tag, &mut at, end)?;
                }
            }
        }
        for (index, field) in schema.fields.iter().enumerate() {
            if field.required && seen >> index & 1 == 0 {
                let detail = "is required and missing";
                return Err(self.fault(schema, field.name, from, detail));
            }
        }
        Ok(())
    }

    fn fault(&self, schema: &Schema, field: &str, at: usize, detail: &str) -> Error {
        fault(schema, field, self.base + at as u64, detail)
    }

    fn tag(&self, schema: &Schema, at: &mut usize, end: usize) -> Result<Tag, Error> {
        let start = *at;
        let tag = self.varint(schema, "tag", at, end)?;
        let (number, wire) = (tag >> 3, tag & 7);
        if number == 0 || number >= 1 << 29 || wire > 5 {
            let detail = format!("field {number} of wire type {wire} cannot be");
            return Err(self.fault(schema, "tag", start, &detail));
        }
        Ok(Tag { at: start, number, wire })
    }

    fn varint(
        &self,
        schema: &Schema,
        name: &str,
        at: &mut usize,
        end: usize,
    ) -> Result<u64, Error> {
        let start = *at;
        let mut value = 0;
        for (index, &byte) in self.bytes[start..end].iter().take(10).enumerate() {
            // The tenth byte has one bit left.
            if index == 9 && byte > 1 {
                return Err(self.fault(schema, name, start, "varint does not fit 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                *at = start + index + 1;
                return Ok(value);
            }
        }
        Err(self.fault(schema, name, start, "varint is cut"))
    }

    /// A length and the bytes that it is of; gives the first and moves behind the last.
    fn span(
        &self,
        schema: &Schema,
        name: &str,
        at: &mut usize,
        end: usize,
    ) -> Result<usize, Error> {
        let start = *at;
        let len = self.varint(schema, name, at, end)?;
        let from = *at;
        match usize::try_from(len).ok().filter(|&len| len <= end - from) {
            Some(len) => {
                *at = from + len;
                Ok(from)
            }
            None => {
                let detail = format!("length {len}, {} bytes are left", end - from);
                Err(self.fault(schema, name, start, &detail))
            }
        }
    }

    fn value(
        &mut self,
        schema: &'static Schema,
        field: &'static Field,
        tag: &Tag,
        at: &mut usize,
        end: usize,
    ) -> Result<(), Error> {
        let start = *at;
        match (field.kind, tag.wire) {
            (Int64 | Bool | Int64s, 0) => {
                self.varint(schema, field.name, at, end)?;
            }
            (Int32, 0) => {
                let value = self.varint(schema, field.name, at, end)?.cast_signed();
                if i32::try_from(value).is_err() {
                    let detail = format!("{value} does not fit 32 bits");
                    return Err(self.fault(schema, field.name, start, &detail));
                }
            }
            (Int64s, 2) => {
                let mut from = self.span(schema, field.name, at, end)?;
                while from < *at {
                    self.varint(schema, field.name, &mut from, *at)?;
                }
            }
            (Text, 2) => {
                let from = self.span(schema, field.name, at, end)?;
                if let Err(error) = str::from_utf8(&self.bytes[from..*at]) {
                    let bad = from + error.valid_up_to();
                    return Err(self.fault(schema, field.name, bad, "is not UTF-8"));
                }
            }
            (Kind::Message(inner), 2) => {
                let from = self.span(schema, field.name, at, end)?;
                self.message(inner, from, *at)?;
            }
            (_, wire) => {
                let detail = format!("cannot be of wire type {wire}");
                return Err(self.fault(schema, field.name, tag.at, &detail));
            }
        }
        Ok(())
    }

    fn skip(&self, schema: &Schema, mut tag: Tag, at: &mut usize, end: usize) -> Result<(), Error> {
        let mut open = Vec::new();
        loop {
            let fixed = match tag.wire {
                0 => self.varint(schema, "unknown field", at, end).map(|_| 0)?,
                1 => 8,
                2 => self.span(schema, "unknown field", at, end).map(|_| 0)?,
                3 => {
                    open.push(tag.number);
                    0
                }
                4 if open.pop() == Some(tag.number) => 0,
                4 => {
                    return Err(self.fault(schema, "tag", tag.at, "ends a group that is not open"));
                }
                _ => 4,
            };
            if fixed > end - *at || open.len() > GROUPS {
                return Err(self.fault(schema, "unknown field", tag.at, "is cut, or too deep"));
            }
            *at += fixed;
            if open.is_empty() {
                return Ok(());
            }
            tag = self.tag(schema, at, end)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(bytes: &[u8]) -> Result<(ManagedCursorInfo, u64), String> {
        decode(bytes, 100).map_err(|error| error.to_string())
    }

    #[test]
    fn required_fields_are_required() {
        for (bytes, want) in [
            (&b""[..], "byte 100: ManagedCursorInfo.cursorsLedgerId: is required and missing"),
            (b"\x10\x07", "byte 100: ManagedCursorInfo.cursorsLedgerId: is required and missing"),
            (b"\x08\x01\x22\x00", "byte 104: MessageRange.lowerEndpoint: is required and missing"),
            (
                b"\x08\x01\x22\x08\x0a\x02\x08\x05\x12\x02\x08\x05",
                "byte 106: NestedPositionInfo.entryId: is required and missing",
            ),
            (b"\x08\x01\x2a\x03\x0a\x01a", "byte 104: LongProperty.value: is required and missing"),
        ] {
            assert_eq!(cursor(bytes).unwrap_err(), want);
        }
        assert!(decode::<ManagedLedgerInfo>(b"", 0).is_ok(), "it has none");
        let error = decode::<ManagedLedgerInfo>(b"\x0a\0", 0).unwrap_err();
        assert_eq!(error.field(), "LedgerInfo.ledgerId");
    }

    #[test]
    fn broken_messages_say_where() {
        for (bytes, want) in [
            (&b"\x08"[..], "byte 101: ManagedCursorInfo.cursorsLedgerId: varint is cut"),
            (b"\x08\x80", "byte 101: ManagedCursorInfo.cursorsLedgerId: varint is cut"),
            (
                b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                "byte 101: ManagedCursorInfo.cursorsLedgerId: varint does not fit 64 bits",
            ),
            (b"\x47", "byte 100: ManagedCursorInfo.tag: field 8 of wire type 7 cannot be"),
            (b"\x00", "byte 100: ManagedCursorInfo.tag: field 0 of wire type 0 cannot be"),
            (b"\x0a\0", "byte 100: ManagedCursorInfo.cursorsLedgerId: cannot be of wire type 2"),
            (
                b"\x08\x01\x22\xff\xff\xff\xff\x0f",
                "byte 103: ManagedCursorInfo.individualDeletedMessages: length 4294967295, \
                 0 bytes are left",
            ),
            (
                b"\x08\x01\x42\x06\x0a\x01\xff\x12\x01b",
                "byte 106: StringProperty.name: is not UTF-8",
            ),
            (b"\x08\x01\x7d\0\0", "byte 102: ManagedCursorInfo.unknown field: is cut, or too deep"),
            (b"\x08\x01\x7c", "byte 102: ManagedCursorInfo.tag: ends a group that is not open"),
        ] {
            assert_eq!(cursor(bytes).unwrap_err(), want);
        }
        let deep = [&b"\x08\x01"[..], &[0x7b; 1000]].concat();
        assert!(cursor(&deep).unwrap_err().contains("too deep"));
    }

    #[test]
    fn unknown_fields_are_counted() {
        // Of every wire type, the last a group with a group in it.
        let unknown =
            b"\x08\x05\x78\x01\x79\0\0\0\0\0\0\0\0\x7a\x01a\x7d\0\0\0\0\x7b\x83\x01\x84\x01\x7c";
        let (info, count) = cursor(unknown).unwrap();
        assert_eq!((info.cursors_ledger_id, count), (5, 5));
    }

    #[test]
    fn packed_or_not() {
        let position = b"\x0a\x04\x08\x01\x10\x02";
        let one = [&position[..], b"\x10\x07\x10\x08"].concat();
        let packed = [&position[..], b"\x12\x02\x07\x08"].concat();
        let info: (BatchedEntryDeletionIndexInfo, u64) = decode(&one, 0).unwrap();
        assert_eq!(info.0.delete_set, [7, 8]);
        assert_eq!(decode::<BatchedEntryDeletionIndexInfo>(&packed, 0).unwrap(), info);
        assert_eq!(info.0.encode_to_vec(), one, "Pulsar writes them unpacked");
        let cut = [&position[..], b"\x12\x02\x07\x88"].concat();
        assert!(decode::<BatchedEntryDeletionIndexInfo>(&cut, 0).is_err());
    }
}
