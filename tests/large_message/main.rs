//! Large messages by reference, as a producer and a consumer see them.

mod allow_list;
mod cases;
mod config;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use std_host::large_message::{BlobError, BlobStore, BlobStoreConfig, ObjectBlobStore};

/// A store that counts what is asked of it.
struct Counted {
    store: ObjectBlobStore,
    calls: AtomicUsize,
}

impl Counted {
    fn new(url: &str) -> Arc<Self> {
        let store = ObjectBlobStore::open(&BlobStoreConfig::at(url)).unwrap();
        Arc::new(Self { store, calls: AtomicUsize::new(0) })
    }

    /// Since the last call of this.
    fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::SeqCst)
    }
}

impl BlobStore for Counted {
    fn put(&self, topic: &str, data: Bytes) -> Result<String, BlobError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.store.put(topic, data)
    }

    fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.store.get(location, limit)
    }

    fn name(&self) -> &str {
        self.store.name()
    }

    fn blob_id_generator(&self) -> Option<&str> {
        self.store.blob_id_generator()
    }
}
