//! The headers of a record that is being made or taken apart.

use bytes::Bytes;

/// One header. Keys may repeat; a null value is not an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its key.
    pub key: String,
    /// Its value, `None` if null.
    pub value: Option<Bytes>,
}

/// The headers of one record, in their order: `org.apache.kafka.common.header.Headers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<Header>);

impl Headers {
    /// No headers.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds one at the end; others with the same key stay.
    pub fn add(&mut self, key: impl Into<String>, value: Option<Bytes>) {
        self.0.push(Header { key: key.into(), value });
    }

    /// Takes away every header with this key.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|header| header.key != key);
    }

    /// The last header with this key, the one that counts.
    #[must_use]
    pub fn last(&self, key: &str) -> Option<&Header> {
        self.0.iter().rev().find(|header| header.key == key)
    }

    /// All of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Header> {
        self.0.iter()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = &'a Header;
    type IntoIter = std::slice::Iter<'a, Header>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Header> for Headers {
    fn from_iter<I: IntoIterator<Item = Header>>(headers: I) -> Self {
        Self(headers.into_iter().collect())
    }
}
