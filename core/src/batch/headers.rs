//! Record headers (v2): an ordered list, in which keys may repeat.

use crate::varint::decode_varint;

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
        let key = take_sized(&mut self.bytes)??;
        let value = take_sized(&mut self.bytes)?;
        Some(Header { key, value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Headers<'_> {}

fn take_sized<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (len, at) = decode_varint(bytes).ok()?;
    let rest = bytes.get(at..)?;
    let Ok(len) = usize::try_from(len) else {
        *bytes = rest;
        return Some(None); // any negative length is null
    };
    let (field, rest) = rest.split_at_checked(len)?;
    *bytes = rest;
    Some(Some(field))
}
