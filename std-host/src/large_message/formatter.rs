//! References as they stand in records.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};

use super::config::{self, ConfigError};
use crate::dump::digest::{hex, unhex};

/// Most bytes of a reference: 64 KiB. Anything longer is not parsed.
pub const MAX_REFERENCE_BYTES: usize = 64 << 10;

/// What a record has in place of a large value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// Where the blob is.
    pub full_blob_path: String,
    /// Name of the store that it was put into. This and the other two names are information
    /// for whoever looks at a record: they choose nothing.
    pub blob_store_class: Option<String>,
    /// Name of the generator of its id.
    pub blob_id_generator_class: Option<String>,
    /// Name of the formatter of this reference.
    pub large_message_formatter_class: Option<String>,
    /// Size of the blob in bytes. A reference by the letter of the KIP has neither this nor
    /// the digest.
    pub size: Option<u64>,
    /// SHA-256 of the blob.
    pub sha256: Option<[u8; 32]>,
}

/// Writes and reads references: KIP-1159's `LargeMessageFormatter`.
pub trait LargeMessageFormatter: Send + Sync + fmt::Debug {
    /// The bytes of `reference`.
    fn format(&self, reference: &Reference) -> Bytes;

    /// The reference in `data`.
    ///
    /// Errors: whatever is no reference. Nothing of it is used then.
    fn parse(&self, data: &[u8]) -> Result<Reference, FormatError>;

    /// Whether `data`, of which nothing else is known, is a reference of this formatter.
    /// Ordinary values must not be taken for one.
    fn recognizes(&self, data: &[u8]) -> bool;

    /// Its name, written into references for information and never used to choose one.
    fn name(&self) -> &str;
}

/// Why some bytes are not a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError(String);

impl FormatError {
    /// `detail` of what is wrong.
    pub fn new(detail: impl Into<String>) -> Self {
        Self(detail.into())
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a reference to a blob: {}", self.0)
    }
}

impl std::error::Error for FormatError {}

/// The default, `json`: an object with the four members of KIP-1159 and two more,
///
/// ```json
/// {
///   "full-blob-path": "s3://bucket/prefix/topic/3f6b…",
///   "blob-store-class": "object-store",
///   "blob-id-generator-class": "uuid",
///   "large-message-formatter-class": "json",
///   "size": 5000000,
///   "sha256": "ba7816bf…"
/// }
/// ```
/// without the space. Only `full-blob-path` must be there. Other members are passed over;
/// one of these twice, or of another type, is an error.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonFormatter;

impl JsonFormatter {
    /// What it is registered as.
    pub const NAME: &str = "json";
}

/// The object, member by member.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Json<'a> {
    #[serde(borrow)]
    full_blob_path: Cow<'a, str>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    blob_store_class: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    blob_id_generator_class: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    large_message_formatter_class: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// A member that may be missing, but is not null.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl LargeMessageFormatter for JsonFormatter {
    fn format(&self, reference: &Reference) -> Bytes {
        let json = Json {
            full_blob_path: Cow::Borrowed(&reference.full_blob_path),
            blob_store_class: reference.blob_store_class.clone(),
            blob_id_generator_class: reference.blob_id_generator_class.clone(),
            large_message_formatter_class: reference.large_message_formatter_class.clone(),
            size: reference.size,
            sha256: reference.sha256.map(|digest| hex(&digest)),
        };
        serde_json::to_vec(&json).expect("strings and a number").into()
    }

    fn parse(&self, data: &[u8]) -> Result<Reference, FormatError> {
        if data.len() > MAX_REFERENCE_BYTES {
            return Err(FormatError::new(format!(
                "{} bytes, at most {MAX_REFERENCE_BYTES} are allowed",
                data.len()
            )));
        }
        // An array of the members in their order would do for a struct.
        if data.trim_ascii_start().first() != Some(&b'{') {
            return Err(FormatError::new("not an object"));
        }
        let json: Json<'_> =
            serde_json::from_slice(data).map_err(|error| FormatError::new(error.to_string()))?;
        let sha256 = json.sha256.as_deref().map(|text| {
            unhex(text).and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
                FormatError::new(format!("sha256 is not 64 hexadecimal digits: {text:?}"))
            })
        });
        Ok(Reference {
            full_blob_path: json.full_blob_path.into_owned(),
            blob_store_class: json.blob_store_class,
            blob_id_generator_class: json.blob_id_generator_class,
            large_message_formatter_class: json.large_message_formatter_class,
            size: json.size,
            sha256: sha256.transpose()?,
        })
    }

    /// With all four members of the KIP.
    fn recognizes(&self, data: &[u8]) -> bool {
        // Most values are told by their first byte or by their size.
        data.first() == Some(&b'{')
            && self.parse(data).is_ok_and(|reference| {
                reference.blob_store_class.is_some()
                    && reference.blob_id_generator_class.is_some()
                    && reference.large_message_formatter_class.is_some()
            })
    }

    fn name(&self) -> &str {
        Self::NAME
    }
}

/// The registered formatter of a name. Nothing is ever loaded by a name.
///
/// Errors: a name that is not registered.
pub(super) fn formatter(name: &str) -> Result<Box<dyn LargeMessageFormatter>, ConfigError> {
    match name {
        JsonFormatter::NAME => Ok(Box::new(JsonFormatter)),
        _ => Err(ConfigError::new(
            config::FORMATTER_CLASS,
            format!("there is no {name:?}: registered is json"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn full() -> serde_json::Value {
        json!({
            "full-blob-path": "s3://bucket/topic-a/0001",
            "blob-store-class": "STORE",
            "blob-id-generator-class": "IDGEN",
            "large-message-formatter-class": "FORMATTER",
            "size": 5000,
            "sha256": "BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        })
    }

    #[test]
    fn there_and_back() {
        let reference = JsonFormatter.parse(full().to_string().as_bytes()).unwrap();
        assert_eq!(reference.full_blob_path, "s3://bucket/topic-a/0001");
        assert_eq!(reference.blob_store_class.as_deref(), Some("STORE"));
        assert_eq!(reference.size, Some(5000));
        assert_eq!(reference.sha256.unwrap()[..2], [0xba, 0x78]);
        let bytes = JsonFormatter.format(&reference);
        assert_eq!(JsonFormatter.parse(&bytes).unwrap(), reference);
        let written: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let mut want = full();
        want["sha256"] = want["sha256"].as_str().unwrap().to_lowercase().into();
        assert_eq!(written, want);
    }

    /// A reference by the letter of the KIP has four members, and needs but one.
    #[test]
    fn few_members() {
        let mut value = full();
        for name in ["size", "sha256"] {
            value.as_object_mut().unwrap().remove(name);
        }
        let reference = JsonFormatter.parse(value.to_string().as_bytes()).unwrap();
        assert_eq!((reference.size, reference.sha256), (None, None));
        assert!(JsonFormatter.recognizes(value.to_string().as_bytes()));

        let least = br#"{"full-blob-path":"a\u0062","other":[1]}"#;
        assert_eq!(JsonFormatter.parse(least).unwrap().full_blob_path, "ab");
        assert!(!JsonFormatter.recognizes(least));
    }

    #[test]
    fn refused() {
        let with = |name: &str, value: serde_json::Value| {
            let mut object = full();
            object[name] = value;
            object.to_string()
        };
        let long = with("blob-store-class", "x".repeat(MAX_REFERENCE_BYTES).into());
        for (text, detail) in [
            (String::new(), "not an object"),
            (r#"["a","b","c","d",1,"e"]"#.into(), "not an object"),
            ("{".into(), "EOF"),
            ("{}".into(), "missing field `full-blob-path`"),
            (r#"{"full-blob-path":"a","full-blob-path":"b"}"#.into(), "duplicate field"),
            (r#"{"full-blob-path":"a"}x"#.into(), "trailing characters"),
            (with("full-blob-path", json!(5)), "invalid type"),
            (with("full-blob-path", json!(null)), "invalid type"),
            (with("blob-store-class", json!(["a"])), "invalid type"),
            (with("blob-store-class", json!(null)), "invalid type"),
            (with("size", json!("5000")), "invalid type"),
            (with("size", json!(-1)), "invalid value"),
            (with("size", json!(1.5)), "invalid type"),
            (with("sha256", json!("ba78")), "64 hexadecimal digits"),
            (with("sha256", json!("g".repeat(64))), "64 hexadecimal digits"),
            (long, "at most 65536"),
        ] {
            let error = JsonFormatter.parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(detail), "{text}: {error}");
            assert!(!JsonFormatter.recognizes(text.as_bytes()));
        }
        assert!(JsonFormatter.parse(b"{\"full-blob-path\":\"\xff\"}").is_err());
    }
}
