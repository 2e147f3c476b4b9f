//! What blobs are called.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::config::{self, ConfigError};
use crate::dump::digest::hex;

/// Names a blob: KIP-1159's `BlobIdGenerator`.
///
/// It is asked once for each value, before the first attempt to store it, so that every
/// attempt writes the same blob.
pub trait BlobIdGenerator: Send + Sync + fmt::Debug {
    /// The last segment of the location of `data`: letters, digits and `-._~!$&'()*+,;=:@`,
    /// neither `.` nor `..`.
    fn id(&self, data: &[u8]) -> String;

    /// Its name, written into references for information and never used to choose one.
    fn name(&self) -> &str;
}

/// A random UUID (version 4) for each value, `uuid`: the KIP's `DefaultBlobIDGenerator`.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidGenerator;

impl UuidGenerator {
    /// What it is registered as.
    pub const NAME: &str = "uuid";
    /// What the KIP's configuration calls it, and what it is registered as besides.
    pub const JAVA_NAME: &str = "org.apache.kafka.common.serialization.largemessage.blobstore.\
                                 BlobIdGenerator.DefaultBlobIDGenerator";

    /// The KIP's name as it is, with the package as it is spelled in one place of the text,
    /// without the package, or with Java's own mark of a nested class.
    fn is_java_name(name: &str) -> bool {
        let name = name.replace('$', ".").replace("serialziation", "serialization");
        name == Self::JAVA_NAME || name == "BlobIdGenerator.DefaultBlobIDGenerator"
    }
}

impl BlobIdGenerator for UuidGenerator {
    fn id(&self, _data: &[u8]) -> String {
        Uuid::new_v4().to_string()
    }

    fn name(&self) -> &str {
        Self::NAME
    }
}

/// SHA-256 of the value in hexadecimal, `sha256`: the same content is stored once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sha256Generator;

impl Sha256Generator {
    /// What it is registered as.
    pub const NAME: &str = "sha256";
}

impl BlobIdGenerator for Sha256Generator {
    fn id(&self, data: &[u8]) -> String {
        hex(&Sha256::digest(data))
    }

    fn name(&self) -> &str {
        Self::NAME
    }
}

/// The registered generator of a name. Nothing is ever loaded by a name.
///
/// Errors: a name that is not registered.
pub(super) fn generator(name: &str) -> Result<Box<dyn BlobIdGenerator>, ConfigError> {
    match name {
        UuidGenerator::NAME => Ok(Box::new(UuidGenerator)),
        Sha256Generator::NAME => Ok(Box::new(Sha256Generator)),
        _ if UuidGenerator::is_java_name(name) => Ok(Box::new(UuidGenerator)),
        _ => Err(ConfigError::new(
            config::BLOB_ID_GENERATOR,
            format!("there is no {name:?}: registered are uuid and sha256"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let (one, other) = (UuidGenerator.id(b"a"), UuidGenerator.id(b"a"));
        assert_ne!(one, other);
        assert_eq!(Uuid::parse_str(&one).unwrap().get_version_num(), 4);
        assert_eq!(
            Sha256Generator.id(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn names() {
        for name in [
            "uuid",
            UuidGenerator::JAVA_NAME,
            "BlobIdGenerator.DefaultBlobIDGenerator",
            "org.apache.kafka.common.serialziation.largemessage.blobstore.\
             BlobIdGenerator.DefaultBlobIDGenerator",
            "org.apache.kafka.common.serialization.largemessage.blobstore.\
             BlobIdGenerator$DefaultBlobIDGenerator",
        ] {
            assert_eq!(generator(name).unwrap().name(), "uuid", "{name}");
        }
        assert_eq!(generator("sha256").unwrap().name(), "sha256");
        let error = generator("com.example.Ids").unwrap_err();
        assert_eq!(error.key(), "large.message.blob.store.blob.id.generator");
        assert!(error.to_string().contains("com.example.Ids"), "{error}");
    }
}
