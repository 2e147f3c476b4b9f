//! Where blobs are, in bakdata's words and in those of the store.

use bytes::Bytes;

use super::super::location::{is_segment, is_topic};
use super::super::{BlobError, BlobStore};
use crate::serde::RecordPart;

/// A [`BlobStore`] that can be told where to put a blob.
pub trait KeyedBlobStore: BlobStore {
    /// Stores `data` at `key`, and replaces what is there. All of it is stored, or there is an
    /// error, as with [`put`](BlobStore::put).
    ///
    /// A key is segments with `/` between them, below the store's own prefix.
    fn put_at(&self, key: &str, data: Bytes) -> Result<(), BlobError>;

    /// The location of `key`, by which [`get`](BlobStore::get) finds it.
    fn location_of(&self, key: &str) -> String;
}

/// `large.message.base.path`: `<scheme>://<bucket>`, or more of a path behind it.
///
/// ```text
/// s3://bucket/pre/fix/     keys are      topic/values/id   in the store at s3://bucket/pre/fix
/// s3://bucket/pre/fix      keys are   fixtopic/values/id   in the store at s3://bucket/pre
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasePath {
    /// Up to the last slash, with it.
    directory: String,
    /// What of the path is behind it, and glued to the topic.
    stem: String,
}

impl BasePath {
    /// The schemes that bakdata has, each for the store of one of the clouds.
    pub const SCHEMES: [&str; 3] = ["s3", "abs", "gs"];

    /// Errors: what bakdata could not read back from a URI, in words. That is a scheme of
    /// none of its stores; a bucket in which Java's `URI` sees no host (one with `_`, and one
    /// with dots whose last part does not start with a letter); in the path an empty segment,
    /// `.`, `..`, or a character that a URI has to escape, since it writes without escapes
    /// and reads with them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("is not a URI")?;
        if !Self::SCHEMES.contains(&scheme) {
            return Err(format!("{scheme:?} is none of the schemes s3, abs and gs"));
        }
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_java_host(bucket) {
            return Err(format!("{bucket:?} is not a bucket that a Java URI can have"));
        }
        let mut segments = path.split('/');
        let stem = segments.next_back().unwrap_or_default();
        // It is the start of a segment, so even dots are legal.
        let glued = format!("{stem}a");
        if !is_segment(&glued) || !segments.all(is_segment) {
            return Err(format!("{path:?} has an empty segment or a character that is escaped"));
        }
        let directory = &text[..text.len() - stem.len()];
        // Only a bare bucket has no slash there.
        let slash = if directory.len() == scheme.len() + 3 + bucket.len() { "/" } else { "" };
        Ok(Self { directory: format!("{directory}{slash}"), stem: stem.to_owned() })
    }

    /// What all keys are below of, with a slash at the end.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// The key of `id` for `topic`; `None` if the topic is none.
    pub(super) fn key(&self, topic: &str, part: RecordPart, id: &str) -> Option<String> {
        let kind = match part {
            RecordPart::Key => "keys",
            RecordPart::Value => "values",
        };
        is_topic(topic).then(|| format!("{}{topic}/{kind}/{id}", self.stem))
    }

    pub(super) fn uri(&self, key: &str) -> String {
        format!("{}{key}", self.directory)
    }

    /// The key in `uri`; `None` if that is not below the base path.
    pub(super) fn key_in<'a>(&self, uri: &'a str) -> Option<&'a str> {
        let key = uri.strip_prefix(&self.directory)?;
        (key.starts_with(&self.stem) && key.split('/').all(is_segment)).then_some(key)
    }
}

/// What `java.net.URI.getHost` gives back for an authority without user and port. Of IP
/// addresses those of the fourth version are hosts; their numbers are not looked at.
fn is_java_host(name: &str) -> bool {
    let label = |label: &str| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let mut labels = name.split('.');
    let all = labels.clone().all(label);
    let ip = labels.clone().count() == 4 && labels.clone().all(|part| part.parse::<u8>().is_ok());
    let last = labels.next_back().unwrap_or_default();
    let alone = labels.next().is_none();
    all && (alone || ip || last.starts_with(|first: char| first.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BasePath {
        BasePath::parse(text).unwrap()
    }

    #[test]
    fn keys_and_uris() {
        for (text, directory, key) in [
            ("s3://bucket", "s3://bucket/", "t/values/id"),
            ("s3://bucket/", "s3://bucket/", "t/values/id"),
            ("abs://bucket/pre/fix/", "abs://bucket/pre/fix/", "t/values/id"),
            ("gs://bucket/pre/fix", "gs://bucket/pre/", "fixt/values/id"),
            ("gs://bucket/..", "gs://bucket/", "..t/values/id"),
        ] {
            let base = base(text);
            assert_eq!(base.directory(), directory, "{text}");
            assert_eq!(base.key("t", RecordPart::Value, "id").as_deref(), Some(key), "{text}");
            let uri = base.uri(key);
            assert_eq!(base.key_in(&uri), Some(key), "{text}");
        }
        let key = base("s3://bucket").key("a.B_c-1", RecordPart::Key, "id");
        assert_eq!(key.as_deref(), Some("a.B_c-1/keys/id"));
        for topic in ["", ".", "..", "a/b", "a b", "ä"] {
            assert_eq!(base("s3://bucket").key(topic, RecordPart::Key, "id"), None, "{topic}");
        }
    }

    #[test]
    fn what_is_no_base_path() {
        for text in [
            "",
            "bucket",
            "s3:bucket",
            "S3://bucket",
            "https://bucket",
            "file:///bucket",
            "s3://",
            "s3:///path/",
            "s3://under_score/",
            "s3://user@bucket/",
            "s3://bucket:80/",
            "s3://my.bucket.1",
            "s3://bucket//",
            "s3://bucket/a//b/",
            "s3://bucket/./",
            "s3://bucket/../x",
            "s3://bucket/a b/",
            "s3://bucket/a%20b/",
            "s3://bucket/a?b",
            "s3://bucket/a#b",
            "s3://bucket/a\\b",
            "s3://bucket/ä/",
        ] {
            assert!(BasePath::parse(text).is_err(), "{text}");
        }
    }

    /// The record does not choose the store.
    #[test]
    fn what_is_not_below() {
        let (slash, glued) = (base("s3://bucket/pre/"), base("s3://bucket/pre"));
        assert_eq!(glued.key_in("s3://bucket/pretopic/values/id"), Some("pretopic/values/id"));
        for uri in [
            "",
            "s3://bucket/pre/",
            "s3://bucket/pre//id",
            "s3://bucket/pre/../other/id",
            "s3://bucket/pre/./id",
            "s3://bucket/pre/%2e%2e/id",
            "s3://bucket/pre/id?versionId=1",
            "s3://bucket/pre/id#1",
            "s3://bucket/pre/i d",
            "s3://bucket/pre/i\\d",
            "s3://bucket/pre/id\n",
            "s3://bucket/other/id",
            "s3://bucket.evil/pre/id",
            "s3://other/pre/id",
            "S3://bucket/pre/id",
            "abs://bucket/pre/id",
            "http://169.254.169.254/latest/meta-data",
            " s3://bucket/pre/id",
        ] {
            assert_eq!(slash.key_in(uri), None, "{uri}");
            assert_eq!(glued.key_in(uri), None, "{uri}");
        }
    }
}
