//! Several serializers as one, and several deserializers as one.

use bytes::Bytes;

use super::{Deserializer, Headers, SerdeError, Serializer};

/// Serializers from left to right: the first takes a `T`, each of the others the bytes of the
/// one before. KIP-1159's `ComposableSerializer`.
///
/// Null is null without any step being called, and so is what a step has made null. If a step
/// fails, the error names it with its place, and the headers are as before all of them.
pub struct Composed<T: ?Sized> {
    first: Box<dyn Serializer<T>>,
    rest: Vec<Box<dyn Serializer<Bytes>>>,
}

impl<T: ?Sized> Composed<T> {
    /// Only `first`.
    pub fn new(first: impl Serializer<T> + 'static) -> Self {
        Self::boxed(Box::new(first), Vec::new())
    }

    pub(super) fn boxed(
        first: Box<dyn Serializer<T>>,
        rest: Vec<Box<dyn Serializer<Bytes>>>,
    ) -> Self {
        Self { first, rest }
    }

    /// The same, followed by `step`.
    #[must_use]
    pub fn then(mut self, step: impl Serializer<Bytes> + 'static) -> Self {
        self.rest.push(Box::new(step));
        self
    }
}

impl<T: ?Sized> std::fmt::Debug for Composed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Composed of {} serializers", 1 + self.rest.len())
    }
}

impl<T: ?Sized> Serializer<T> for Composed<T> {
    fn serialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        value: Option<&T>,
    ) -> Result<Option<Bytes>, SerdeError> {
        if value.is_none() {
            return Ok(None);
        }
        let len = 1 + self.rest.len();
        // A later step may fail when an earlier one has added its header.
        let mut changed = headers.clone();
        let first = self.first.serialize(topic, &mut changed, value);
        let mut bytes = first.map_err(|error| error.at(1, len))?;
        for (step, place) in self.rest.iter().zip(2..) {
            if bytes.is_none() {
                break;
            }
            let made = step.serialize(topic, &mut changed, bytes.as_ref());
            bytes = made.map_err(|error| error.at(place, len))?;
        }
        *headers = changed;
        Ok(bytes)
    }
}

/// Deserializers in the order in which they read: each but the last gives bytes, the last a
/// `T`. KIP-1159's `ComposableDeserializer`: the list of the serializers backwards.
///
/// Null is null without any step being called, and so is what a step has made null. If a step
/// fails, the error names it with its place, and the headers are as before all of them.
pub struct ComposedDeserializer<T> {
    steps: Vec<Box<dyn Deserializer<Bytes>>>,
    last: Box<dyn Deserializer<T>>,
}

impl<T> ComposedDeserializer<T> {
    /// Only `last`.
    pub fn new(last: impl Deserializer<T> + 'static) -> Self {
        Self::boxed(Vec::new(), Box::new(last))
    }

    pub(super) fn boxed(
        steps: Vec<Box<dyn Deserializer<Bytes>>>,
        last: Box<dyn Deserializer<T>>,
    ) -> Self {
        Self { steps, last }
    }
}

impl ComposedDeserializer<Bytes> {
    /// The steps before the last one.
    #[must_use]
    pub fn steps() -> DeserializerSteps {
        DeserializerSteps(Vec::new())
    }
}

/// The first steps of a [`ComposedDeserializer`], from bytes to bytes.
pub struct DeserializerSteps(Vec<Box<dyn Deserializer<Bytes>>>);

impl DeserializerSteps {
    /// The same, followed by `step`.
    #[must_use]
    pub fn then(mut self, step: impl Deserializer<Bytes> + 'static) -> Self {
        self.0.push(Box::new(step));
        self
    }

    /// All of them and the last, which gives the value.
    pub fn last<T>(self, last: impl Deserializer<T> + 'static) -> ComposedDeserializer<T> {
        ComposedDeserializer::boxed(self.0, Box::new(last))
    }
}

impl std::fmt::Debug for DeserializerSteps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} deserializers", self.0.len())
    }
}

impl<T> std::fmt::Debug for ComposedDeserializer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Composed of {} deserializers", self.steps.len() + 1)
    }
}

impl<T> Deserializer<T> for ComposedDeserializer<T> {
    fn deserialize(
        &self,
        topic: &str,
        headers: &mut Headers,
        data: Option<&Bytes>,
    ) -> Result<Option<T>, SerdeError> {
        let len = self.steps.len() + 1;
        let mut changed = headers.clone();
        let mut bytes = data.cloned();
        for (step, place) in self.steps.iter().zip(1..) {
            if bytes.is_none() {
                break;
            }
            let made = step.deserialize(topic, &mut changed, bytes.as_ref());
            bytes = made.map_err(|error| error.at(place, len))?;
        }
        let value = match bytes {
            None => None,
            Some(bytes) => {
                let made = self.last.deserialize(topic, &mut changed, Some(&bytes));
                made.map_err(|error| error.at(len, len))?
            }
        };
        *headers = changed;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StringDeserializer, StringSerializer};
    use super::*;

    /// Appends its letter, and a header; refuses values that have a `!`, and panics at null.
    struct Letter(u8);

    impl Serializer<Bytes> for Letter {
        fn serialize(
            &self,
            topic: &str,
            headers: &mut Headers,
            value: Option<&Bytes>,
        ) -> Result<Option<Bytes>, SerdeError> {
            let value = value.expect("null is not for a step");
            if value.starts_with(b"null") {
                return Ok(None);
            }
            headers.add(topic, Some(Bytes::copy_from_slice(&[self.0])));
            if value.contains(&b'!') && self.0 == b'c' {
                return Err(SerdeError::new("letter", "not that loud"));
            }
            let letter = [self.0];
            Ok(Some([&value[..], &letter].concat().into()))
        }
    }

    impl Deserializer<Bytes> for Letter {
        fn deserialize(
            &self,
            topic: &str,
            headers: &mut Headers,
            data: Option<&Bytes>,
        ) -> Result<Option<Bytes>, SerdeError> {
            let data = data.expect("null is not for a step");
            headers.remove(topic);
            match data.strip_suffix(&[self.0]) {
                Some(b"null") => Ok(None),
                Some(rest) => Ok(Some(Bytes::copy_from_slice(rest))),
                None => Err(SerdeError::new("letter", "another letter")),
            }
        }
    }

    fn letters() -> (Composed<str>, ComposedDeserializer<String>) {
        (
            Composed::new(StringSerializer)
                .then(Letter(b'a'))
                .then(Letter(b'b'))
                .then(Letter(b'c')),
            ComposedDeserializer::steps()
                .then(Letter(b'c'))
                .then(Letter(b'b'))
                .then(Letter(b'a'))
                .last(StringDeserializer),
        )
    }

    #[test]
    fn left_to_right_and_back() {
        let (serializer, deserializer) = letters();
        let mut headers = Headers::new();
        let bytes = serializer.serialize("t", &mut headers, Some("x")).unwrap().unwrap();
        assert_eq!(bytes, "xabc");
        assert_eq!(headers.len(), 3);
        let value = deserializer.deserialize("t", &mut headers, Some(&bytes)).unwrap();
        assert_eq!(value.as_deref(), Some("x"));
        assert!(headers.is_empty());
    }

    #[test]
    fn null_calls_no_step() {
        let (serializer, deserializer) = letters();
        let mut headers = Headers::new();
        headers.add("t", None);
        let before = headers.clone();
        assert_eq!(serializer.serialize("t", &mut headers, None).unwrap(), None);
        assert_eq!(deserializer.deserialize("t", &mut headers, None).unwrap(), None);
        assert_eq!(headers, before);
        // A step may make null of a value, and it stays null.
        assert_eq!(serializer.serialize("t", &mut headers, Some("null")).unwrap(), None);
        let null = Bytes::from_static(b"nullc");
        assert_eq!(deserializer.deserialize("t", &mut headers, Some(&null)).unwrap(), None);
    }

    #[test]
    fn an_error_says_where_and_leaves_the_headers() {
        let (serializer, deserializer) = letters();
        let mut headers = Headers::new();
        headers.add("t", None);
        let before = headers.clone();
        let error = serializer.serialize("t", &mut headers, Some("x!")).unwrap_err();
        assert_eq!(error.to_string(), "letter (step 4 of 4): not that loud");
        assert_eq!((error.step(), error.place()), ("letter", Some((4, 4))));
        assert_eq!(headers, before);
        for (data, message) in [
            (&b"xabd"[..], "letter (step 1 of 4): another letter"),
            (b"xxbc", "letter (step 3 of 4): another letter"),
            (b"\xffabc", "string (step 4 of 4): invalid utf-8 sequence of 1 bytes from index 0"),
        ] {
            let data = Bytes::from_static(data);
            let error = deserializer.deserialize("t", &mut headers, Some(&data)).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_eq!(headers, before);
        }
    }

    #[test]
    fn a_list_within_a_list_keeps_both_places() {
        let inner = Composed::new(Letter(b'a')).then(Letter(b'c'));
        let outer = Composed::new(StringSerializer).then(inner);
        let error = outer.serialize("t", &mut Headers::new(), Some("!")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "composed (step 2 of 2): letter (step 2 of 2): not that loud"
        );
    }
}
