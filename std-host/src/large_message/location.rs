//! Locations of blobs, and which of them are below a store's own URL.
//!
//! ```text
//! s3://bucket/prefix /topic /id
//! └── the store ───┘ └ rest ──┘
//! ```
//! A location is compared as text, and nothing of it is ever decoded or resolved: it starts
//! with the store's URL, character for character, goes on with `/`, and the rest is segments
//! of letters, digits and `-._~!$&'()*+,;=:@`, none of them empty, `.` or `..`. So another
//! scheme, host, port or user cannot be in it, nor a query, a fragment, a backslash or an
//! escape like `%2e`, whatever some parser further on would make of them.

use object_store::path::Path;
use url::{Position, Url};

use super::config::{BLOB_STORE_URL, ConfigError};

/// Where a store begins: its URL with the prefix, below which all of its blobs are.
#[derive(Debug, Clone)]
pub(super) struct Root {
    /// Without a slash at the end.
    text: String,
    url: Url,
}

impl Root {
    /// Errors: whatever could not be in front of a location, or would put a secret there.
    pub(super) fn parse(text: &str) -> Result<Self, ConfigError> {
        // The text is left out where it may have a password.
        let error = |detail: &str| ConfigError::new(BLOB_STORE_URL, detail);
        let url = Url::parse(text).map_err(|cause| error(&format!("not a URL: {cause}")))?;
        if url.cannot_be_a_base() {
            return Err(error("not a URL with a path"));
        }
        // `az://container@account/` and `abfss://…` have a user, and it is the container.
        let azure = matches!(url.scheme(), "az" | "adl" | "azure" | "abfs" | "abfss");
        if url.password().is_some() || !url.username().is_empty() && !azure {
            return Err(error("a user or a password would be written into every reference"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(error("has a query or a fragment"));
        }
        let path = url.path().trim_end_matches('/');
        let file = url.scheme() == "file";
        let plain = |segment: &str| is_segment(segment) || (file && !segment.is_empty());
        if !path.is_empty() && !path.split('/').skip(1).all(plain) {
            return Err(error("the prefix has an empty segment or unusual characters"));
        }
        if file && (url.host().is_some() || path.is_empty()) {
            return Err(error("a file store is file:///, then a directory that is not the root"));
        }
        let text = format!("{}{path}", &url[..Position::BeforePath]);
        Ok(Self { text, url })
    }

    /// As it starts every location.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) const fn url(&self) -> &Url {
        &self.url
    }

    /// The location of `id` for `topic`, and what follows the root in it.
    ///
    /// Errors: a topic that Kafka does not allow, an id that is not a segment.
    pub(super) fn location(&self, topic: &str, id: &str) -> Result<String, String> {
        if !is_topic(topic) {
            return Err(format!("{topic:?} is not a legal name of a topic"));
        }
        if !is_segment(id) {
            return Err(format!("{id:?} cannot be the id of a blob"));
        }
        Ok(format!("{}/{topic}/{id}", self.text))
    }

    /// What follows the root in `location`, from its `/` on; `None` if the location is not
    /// allowed.
    pub(super) fn rest<'a>(&self, location: &'a str) -> Option<&'a str> {
        let rest = location.strip_prefix(&self.text)?;
        rest.strip_prefix('/')?.split('/').all(is_segment).then_some(rest)
    }
}

/// The object at `rest` below `prefix`.
pub(super) fn object(prefix: &Path, rest: &str) -> Result<Path, object_store::path::Error> {
    Path::parse(format!("{prefix}{rest}"))
}

/// By `org.apache.kafka.common.internals.Topic`: 1 to 249 letters, digits, `.`, `_` and `-`,
/// and neither `.` nor `..`.
pub(crate) fn is_topic(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=249).contains(&name.len()) && name.bytes().all(legal) && name != "." && name != ".."
}

/// What stands for itself in a URL (`pchar` of RFC 3986 without escapes).
pub(super) fn is_segment(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        for (url, text) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("s3://under_score/pre/fix/", "s3://under_score/pre/fix"),
            ("gs://bucket/pre", "gs://bucket/pre"),
            ("az://container/pre", "az://container/pre"),
            (
                "abfss://box@account.dfs.core.windows.net/pre",
                "abfss://box@account.dfs.core.windows.net/pre",
            ),
            ("https://S3.eu-west-1.amazonaws.com:443/b/", "https://s3.eu-west-1.amazonaws.com/b"),
            ("memory:///", "memory://"),
            ("memory:///pre", "memory:///pre"),
            ("file:///var/lib/blobs/", "file:///var/lib/blobs"),
            ("file:///with%20space/x", "file:///with%20space/x"),
            // The URL parser itself resolves these.
            ("file:///a/../b", "file:///b"),
            ("s3://bucket/%2e%2e/x", "s3://bucket/x"),
        ] {
            assert_eq!(Root::parse(url).unwrap().text(), text, "{url}");
        }
        for url in [
            "",
            "bucket/pre",
            "s3:bucket",
            "s3://key:secret@bucket/pre",
            "s3://user@bucket/pre",
            "az://box:secret@account/pre",
            "s3://bucket/pre?x=1",
            "s3://bucket/pre#x",
            "s3://bucket//pre",
            "s3://bucket/a%2fb",
            "file:///",
            "file://host/share",
        ] {
            assert!(Root::parse(url).is_err(), "{url}");
        }
        let error = Root::parse("s3://key:secret@bucket").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn topics() {
        let root = Root::parse("s3://bucket/pre").unwrap();
        assert_eq!(root.location("a.B_c-1", "id").unwrap(), "s3://bucket/pre/a.B_c-1/id");
        assert!(root.location(&"t".repeat(249), "id").is_ok());
        for topic in ["", ".", "..", "a/b", "a b", "a%2fb", "ä", "a\0", &"t".repeat(250)] {
            assert!(root.location(topic, "id").is_err(), "{topic:?}");
        }
        for id in ["", ".", "..", "a/b", "%2e", "a b", "a\\b", "a#1", "a?b"] {
            assert!(root.location("topic", id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn allowed() {
        let root = Root::parse("s3://bucket/pre").unwrap();
        assert_eq!(root.rest("s3://bucket/pre/topic/id"), Some("/topic/id"));
        assert_eq!(root.rest("s3://bucket/pre/topic/values/id"), Some("/topic/values/id"));
        assert_eq!(root.rest("s3://bucket/pre/...a/~"), Some("/...a/~"));
        for location in [
            "",
            "s3://bucket/pre",
            "s3://bucket/pre/",
            "s3://bucket/prefix/topic/id",
            "s3://bucket/topic/id",
            "s3://bucket/pre//id",
            "s3://bucket/pre/topic/",
            "s3://bucket/pre/../other/id",
            "s3://bucket/pre/./id",
            "s3://bucket/pre/topic/..",
            "s3://bucket/pre/%2e%2e/id",
            "s3://bucket/pre/%2E%2E%2fid",
            "s3://bucket/pre/topic%2fid",
            "s3://bucket/pre/topic\\id",
            "s3://bucket/pre/topic/id?versionId=1",
            "s3://bucket/pre/topic/id#1",
            "s3://bucket/pre/topic/id\n",
            "s3://bucket/pre/topic/i d",
            "s3://bucket/pre/topic/\u{ff0e}\u{ff0e}",
            "s3://bucket:443/pre/topic/id",
            "s3://user@bucket/pre/topic/id",
            "s3://bucket@evil/pre/topic/id",
            "s3://bucket.evil/pre/topic/id",
            "S3://bucket/pre/topic/id",
            "s3a://bucket/pre/topic/id",
            "file:///etc/passwd",
            "http://169.254.169.254/latest/meta-data",
            " s3://bucket/pre/topic/id",
        ] {
            assert_eq!(root.rest(location), None, "{location:?}");
        }
    }
}
