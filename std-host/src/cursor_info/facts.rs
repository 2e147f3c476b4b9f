//! What an operator asks of a cursor.

use prost::Message;
use prost::encoding::encoded_len_varint;

use super::messages::{ManagedCursorInfo, MessageRange, NestedPositionInfo};

/// Ledger and entry.
#[must_use]
pub const fn position(at: &NestedPositionInfo) -> [i64; 2] {
    [at.ledger_id, at.entry_id]
}

/// How far the subscription is, and what its holes cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Backlog {
    /// Everything up to it, included, is acknowledged.
    pub mark_delete: Option<[i64; 2]>,
    /// Ranges of individually acknowledged entries.
    pub ranges: u64,
    /// Of them, those within one ledger, whose length is known.
    pub ranges_in_one_ledger: u64,
    /// Entries that these have: a range is `(lower, upper]`.
    pub entries_in_them: u64,
    /// Ranges whose end is not behind their start.
    pub backward_ranges: u64,
    /// Bytes of the message that the ranges take.
    pub range_bytes: u64,
}

impl Backlog {
    /// Counts.
    #[must_use]
    pub fn of(cursor: &ManagedCursorInfo) -> Self {
        let mark_delete = cursor.mark_delete_ledger_id.zip(cursor.mark_delete_entry_id);
        let mut facts = Self { mark_delete: mark_delete.map(|(l, e)| [l, e]), ..Self::default() };
        for range in &cursor.individual_deleted_messages {
            facts.add(range);
        }
        facts
    }

    fn add(&mut self, range: &MessageRange) {
        self.ranges += 1;
        let len = range.encoded_len();
        // The tag takes one byte.
        self.range_bytes += (1 + encoded_len_varint(len as u64) + len) as u64;
        let (lower, upper) = (&range.lower_endpoint, &range.upper_endpoint);
        if position(upper) <= position(lower) {
            self.backward_ranges += 1;
        } else if lower.ledger_id == upper.ledger_id {
            self.ranges_in_one_ledger += 1;
            let entries = upper.entry_id.abs_diff(lower.entry_id);
            self.entries_in_them = self.entries_in_them.saturating_add(entries);
        }
    }

    /// Mean bytes of a range, 0 without any.
    #[must_use]
    pub fn bytes_per_range(&self) -> f64 {
        if self.ranges == 0 { 0.0 } else { self.range_bytes as f64 / self.ranges as f64 }
    }
}
