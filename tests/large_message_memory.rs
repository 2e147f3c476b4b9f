//! Values of every size through stores of files and in memory, under an allocator that
//! counts: never is more held than twice the value.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use std_host::large_message::{
    BlobStoreConfig, DeserializerConfig, LargeMessageDeserializer, LargeMessageSerializer,
    ObjectBlobStore, SerializerConfig,
};
use std_host::serde::{Deserializer, Headers, Serializer};

/// Bytes that are allocated, and the most that ever were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn add(size: usize) {
        let now = NOW.fetch_add(size, Ordering::SeqCst) + size;
        PEAK.fetch_max(now, Ordering::SeqCst);
    }
}

// SAFETY: everything is handed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller's layout is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: it came from the system's allocator with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if it were always another piece of memory, which it may be.
        Self::add(size);
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: it came from the system's allocator with this layout.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const THRESHOLD: usize = 100_000;
/// For everything that does not grow with the value: threads, references, errors.
const SLACK: usize = 256 << 10;

/// Runs `step`, and gives the most that was held in it, beyond `before`.
fn peak<T>(before: usize, step: impl FnOnce() -> T) -> (T, usize) {
    PEAK.store(NOW.load(Ordering::SeqCst), Ordering::SeqCst);
    let done = step();
    (done, PEAK.load(Ordering::SeqCst).saturating_sub(before))
}

/// Bytes without a pattern that a copy in the wrong place would keep.
fn value(size: usize) -> Bytes {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut value = Vec::with_capacity(size);
    value.extend((0..size).map(|_| next()));
    value.into()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    for url in [format!("file://{}", folder.path().display()), "memory:///".into()] {
        let config = BlobStoreConfig {
            // Slow disks are not what this is about.
            timeout: std::time::Duration::from_secs(60),
            ..BlobStoreConfig::at(&*url)
        };
        let store = std::sync::Arc::new(ObjectBlobStore::open(&config).unwrap());
        let writing = SerializerConfig {
            threshold_bytes: THRESHOLD as u64,
            ..SerializerConfig::new(config.clone())
        };
        let reading = DeserializerConfig::new(config);
        let serializer = LargeMessageSerializer::new(writing, store.clone()).unwrap();
        let deserializer = LargeMessageDeserializer::new(reading, store.clone()).unwrap();
        for size in [0, THRESHOLD - 1, THRESHOLD, 1 << 20, 64 << 20] {
            let before = NOW.load(Ordering::SeqCst);
            let value = value(size);
            let digest: [u8; 32] = sha2::Digest::finalize(sha2::Digest::chain_update(
                <sha2::Sha256 as sha2::Digest>::new(),
                &value,
            ))
            .into();
            let mut headers = Headers::new();
            let (sent, storing) = peak(before, || {
                serializer.serialize("topic", &mut headers, Some(&value)).unwrap().unwrap()
            });
            assert_eq!(headers.len(), usize::from(size >= THRESHOLD));
            drop(value);
            let (got, reading) = peak(before, || {
                deserializer.deserialize("topic", &mut headers, Some(&sent)).unwrap().unwrap()
            });
            assert_eq!(got.len(), size);
            assert_eq!(<[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest(&got)), digest);
            println!("{url:.6} {size} bytes: {storing} held when storing, {reading} when reading");
            for held in [storing, reading] {
                assert!(held <= 2 * size + SLACK, "{held} bytes for a value of {size}");
            }
            drop((got, sent));
            for blob in store.list() {
                store.delete(&blob.unwrap().location).unwrap();
            }
        }
    }
}
