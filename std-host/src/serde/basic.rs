//! Steps that make bytes of a value: JSON, strings, and bytes that are bytes already.

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;
use bytes::Bytes;

use super::{Deserializer, Headers, SerdeError, Serializer};

/// Compact JSON of anything that serde can write, by the name `json`.
///
/// Errors: what JSON cannot say, as a map whose keys are not strings.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonSerializer;

impl<T: Serialize + ?Sized> Serializer<T> for JsonSerializer {
    fn serialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        value: Option<&T>,
    ) -> Result<Option<Bytes>, SerdeError> {
        let Some(value) = value else { return Ok(None) };
        match serde_json::to_vec(value) {
            Ok(json) => Ok(Some(json.into())),
            Err(error) => Err(SerdeError::new("json", error)),
        }
    }
}

/// Anything that serde can read, from one JSON text, by the name `json`.
///
/// The JSON text `null` is a value of `T`, if `T` has one for it; only a null record value is
/// null.
///
/// Errors: text that is not JSON or not a `T`, with line and column; anything but white space
/// behind it, which Connect's `JsonDeserializer` (Jackson) passes over; more than 128 levels.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonDeserializer;

impl<T: DeserializeOwned> Deserializer<T> for JsonDeserializer {
    fn deserialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<T>, SerdeError> {
        let Some(data) = data else { return Ok(None) };
        serde_json::from_slice(data).map(Some).map_err(|error| SerdeError::new("json", error))
    }
}

/// A string as its UTF-8 bytes, by the name `string`.
///
/// Kafka's `StringSerializer` writes `?` for half a surrogate pair, which no Rust string has.
/// Its other encodings (`serializer.encoding`) are not there.
#[derive(Debug, Clone, Copy, Default)]
pub struct StringSerializer;

impl<T: AsRef<str> + ?Sized> Serializer<T> for StringSerializer {
    fn serialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        value: Option<&T>,
    ) -> Result<Option<Bytes>, SerdeError> {
        Ok(value.map(|text| Bytes::copy_from_slice(text.as_ref().as_bytes())))
    }
}

/// A string of UTF-8 bytes, by the name `string`.
///
/// Errors: bytes that are not UTF-8, with the position of the first
/// ([`Utf8Error::valid_up_to`](std::str::Utf8Error::valid_up_to) of the cause). Kafka's
/// `StringDeserializer` makes U+FFFD of them and says nothing: what was sent is lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct StringDeserializer;

impl<T: From<String>> Deserializer<T> for StringDeserializer {
    fn deserialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<T>, SerdeError> {
        let Some(data) = data else { return Ok(None) };
        match std::str::from_utf8(data) {
            Ok(text) => Ok(Some(text.to_owned().into())),
            Err(error) => Err(SerdeError::new("string", error)),
        }
    }
}

/// Bytes as they are, without a copy, by the name `bytes`: `ByteArraySerializer`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BytesSerializer;

impl Serializer<Bytes> for BytesSerializer {
    fn serialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        value: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        Ok(value.cloned())
    }
}

/// Bytes as they are, without a copy, by the name `bytes`: `ByteArrayDeserializer`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BytesDeserializer;

impl Deserializer<Bytes> for BytesDeserializer {
    fn deserialize(
        &self,
        _topic: &str,
        _headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<Bytes>, SerdeError> {
        Ok(data.cloned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read<T>(step: &impl Deserializer<T>, data: &'static [u8]) -> Result<Option<T>, SerdeError> {
        step.deserialize("t", &mut Headers::new(), Some(&Bytes::from_static(data)))
    }

    fn write<T: ?Sized>(step: &impl Serializer<T>, value: &T) -> Result<Option<Bytes>, SerdeError> {
        step.serialize("t", &mut Headers::new(), Some(value))
    }

    #[test]
    fn json() {
        let bytes = write(&JsonSerializer, &("a", [1, 2])).unwrap().unwrap();
        assert_eq!(bytes, r#"["a",[1,2]]"#);
        assert_eq!(
            read::<(String, [u8; 2])>(&JsonDeserializer, br#" ["a",[1,2]] "#).unwrap(),
            Some(("a".to_owned(), [1, 2]))
        );
        assert_eq!(read::<Option<u8>>(&JsonDeserializer, b"null").unwrap(), Some(None));
        for (data, message) in [
            (&b"[1"[..], "json: EOF while parsing a list at line 1 column 2"),
            (b"", "json: EOF while parsing a value at line 1 column 0"),
            (b"[1] x", "json: trailing characters at line 1 column 5"),
            (b"[\n300]", "json: invalid value: integer `300`, expected u8 at line 2 column 3"),
        ] {
            let error = read::<Vec<u8>>(&JsonDeserializer, data).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let deep = [b'['; 100_000];
        let deep = Bytes::copy_from_slice(&deep);
        let read: Result<Option<serde_json::Value>, _> =
            JsonDeserializer.deserialize("t", &mut Headers::new(), Some(&deep));
        assert!(read.unwrap_err().to_string().contains("recursion limit exceeded"));
        let error = write(&JsonSerializer, &BTreeMap::from([((1, 2), 3)])).unwrap_err();
        assert_eq!(error.to_string(), "json: key must be a string");
    }

    #[test]
    fn strings() {
        assert_eq!(write(&StringSerializer, "é\0").unwrap().unwrap(), &b"\xc3\xa9\0"[..]);
        assert_eq!(write(&StringSerializer, &String::new()).unwrap().unwrap(), &b""[..]);
        let text = read::<String>(&StringDeserializer, b"\xc3\xa9\0").unwrap();
        assert_eq!(text.as_deref(), Some("é\0"));
        let error = read::<String>(&StringDeserializer, b"ab\xffcd").unwrap_err();
        assert_eq!(error.cause::<std::str::Utf8Error>().map(|e| e.valid_up_to()), Some(2));
        assert_eq!(error.to_string(), "string: invalid utf-8 sequence of 1 bytes from index 2");
    }

    #[test]
    fn bytes_are_not_copied() {
        let value = Bytes::from(vec![1, 2, 3]);
        let written = write(&BytesSerializer, &value).unwrap().unwrap();
        assert_eq!(written.as_ptr(), value.as_ptr());
        let read = BytesDeserializer.deserialize("t", &mut Headers::new(), Some(&written));
        assert_eq!(read.unwrap().unwrap().as_ptr(), value.as_ptr());
    }

    #[test]
    fn null_is_null() {
        let headers = &mut Headers::new();
        assert_eq!(Serializer::<u8>::serialize(&JsonSerializer, "t", headers, None).unwrap(), None);
        assert_eq!(
            Serializer::<str>::serialize(&StringSerializer, "t", headers, None).unwrap(),
            None
        );
        assert_eq!(BytesSerializer.serialize("t", headers, None).unwrap(), None);
        let json: Option<u8> = JsonDeserializer.deserialize("t", headers, None).unwrap();
        assert_eq!(json, None);
        let text: Option<String> = StringDeserializer.deserialize("t", headers, None).unwrap();
        assert_eq!(text, None);
        assert_eq!(BytesDeserializer.deserialize("t", headers, None).unwrap(), None);
    }
}
