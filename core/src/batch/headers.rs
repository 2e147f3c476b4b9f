//! Record headers (v2): an ordered list, in which keys may repeat.

use crate::varint::take_zigzag;

/// One header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Header<'a> {
    /// UTF-8 by convention; not checked.
    pub key: &'a [u8],
    /// `None` is null, which differs from empty.
    pub value: Option<&'a [u8]>,
}

/// The headers of a record, in their order. They were checked when the record
/// was parsed, so walking them cannot fail.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Headers<'a> {
    pub(crate) const fn new(bytes: &'a [u8], count: usize) -> Self {
        Self { bytes, left: count }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (key, rest) = take_field(self.bytes)?;
        let (value, rest) = take_field(rest)?;
        self.bytes = rest;
        Some(Header { key: key?, value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// A field of this length, negative for null, and what is behind it.
#[inline(always)]
pub(super) fn split_field(zigzag: u32, bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    if zigzag & 1 != 0 {
        return Some((None, bytes));
    }
    let (field, rest) = bytes.split_at_checked((zigzag >> 1) as usize)?;
    Some((Some(field), rest))
}

/// A field with its length before it, negative for null, and what is behind it.
#[inline(always)]
pub(super) fn take_field(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (zigzag, rest) = take_zigzag(bytes)?;
    split_field(zigzag, rest)
}
