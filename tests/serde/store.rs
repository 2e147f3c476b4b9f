//! A store in memory that says what it was asked for, and gives back whatever it is told to.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use std_host::large_message::bakdata::KeyedBlobStore;
use std_host::large_message::{BlobError, BlobErrorKind, BlobStore};

const URL: &str = "test://store/";

#[derive(Default)]
pub(crate) struct TestStore {
    blobs: Mutex<BTreeMap<String, Bytes>>,
    asked: Mutex<Vec<String>>,
}

impl TestStore {
    pub(crate) fn with(key: &str, blob: impl Into<Bytes>) -> Self {
        let store = Self::default();
        store.blobs.lock().unwrap().insert(key.to_owned(), blob.into());
        store
    }

    /// Keys and contents.
    pub(crate) fn blobs(&self) -> Vec<(String, Bytes)> {
        self.blobs.lock().unwrap().clone().into_iter().collect()
    }

    /// The keys that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Puts `change` of the only blob in its place.
    pub(crate) fn change(&self, change: impl FnOnce(&[u8]) -> Vec<u8>) {
        let mut blobs = self.blobs.lock().unwrap();
        let blob = blobs.values_mut().next().unwrap();
        *blob = change(blob).into();
    }
}

impl BlobStore for TestStore {
    fn put(&self, _topic: &str, _data: Bytes) -> Result<String, BlobError> {
        unreachable!("it names the blob itself")
    }

    fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError> {
        let key = location.strip_prefix(URL).unwrap();
        self.asked.lock().unwrap().push(key.to_owned());
        match self.blobs.lock().unwrap().get(key) {
            None => Err(BlobError::new(BlobErrorKind::NotFound, location, "no such blob")),
            Some(blob) if blob.len() as u64 > limit => {
                Err(BlobError::new(BlobErrorKind::TooLarge, location, "too large"))
            }
            Some(blob) => Ok(blob.clone()),
        }
    }

    fn name(&self) -> &str {
        "test"
    }
}

impl KeyedBlobStore for TestStore {
    fn put_at(&self, key: &str, data: Bytes) -> Result<(), BlobError> {
        self.blobs.lock().unwrap().insert(key.to_owned(), data);
        Ok(())
    }

    fn location_of(&self, key: &str) -> String {
        format!("{URL}{key}")
    }
}
