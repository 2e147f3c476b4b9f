//! The one store: whatever `object_store` reaches, by URL.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path as FilePath, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use std::vec::IntoIter;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload,
};
use tokio::runtime::{Builder, Runtime};

use super::bakdata::KeyedBlobStore;
use super::config::{self, BlobStoreConfig, ConfigError};
use super::failure::classify;
use super::ids::{self, BlobIdGenerator};
use super::location::{self, Root};
use super::retry::{self, Exhausted, RetryPolicy};
use super::store::{BlobError, BlobErrorKind, BlobStore};

/// Blobs that a listing fetches at once: a page of S3.
const PAGE: usize = 1000;

/// What went wrong in one attempt.
pub(super) type Failure = retry::Failure<(BlobErrorKind, String)>;

/// What a store says of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blob {
    /// Where it is.
    pub location: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written.
    pub last_modified: SystemTime,
}

/// Blobs in files, in memory, in S3, Google Cloud Storage or Azure, by URL:
///
/// | URL | store | cargo feature |
/// | --- | --- | --- |
/// | `file:///directory` | files; the directory is made by the first `put` | |
/// | `memory:///prefix` | memory of this one instance | |
/// | `s3://bucket/prefix`, `s3a:`, `https://` of `amazonaws.com` or `r2.cloudflarestorage.com` | S3 and what speaks like it | `s3` |
/// | `gs://bucket/prefix` | Google Cloud Storage | `gcs` |
/// | `az://container/prefix`, `abfs:`, `abfss:`, `https://` of `blob.core.windows.net` and its kin | Azure Blob Storage | `azure` |
///
/// Credentials and the like come from the environment (as `AWS_ACCESS_KEY_ID`), then from the
/// configuration's options, by `object_store`'s names (as `endpoint` or `allow_http`).
///
/// A blob's location is `URL/topic/id`. A topic must have a name that Kafka allows. What is
/// read, looked at or deleted must be at a location below the URL, spelled as it is there;
/// anything else is [`BlobErrorKind::NotAllowed`] before a request is made.
///
/// In a file store a location that leads out of the directory by symbolic links is not
/// allowed either. That is checked before a file is opened, so it holds for links that are
/// there already; whoever may change the directory at that moment can still slip one in.
/// Files are written under another name, synced and then renamed: none is ever seen in part.
///
/// Attempts and their time are those of the configuration, and `object_store`'s own retries
/// are off. One attempt has its limit of time for everything, the whole blob transferred.
/// Retried are timeouts, refused and broken connections, streams that end early, status 408,
/// 429 and 5xx. Storing the same blob again puts it in the place of the first: a `put` that
/// succeeded unnoticed leaves no second one, and one of the same content with `sha256` ids
/// makes it whole and young again.
///
/// Calls block their thread until it is over. The requests run on a thread of their own, so
/// calls from inside another asynchronous runtime work too, but there a thread that others
/// need should not be blocked for as long as the retries may take.
pub struct ObjectBlobStore {
    core: Arc<Core>,
    ids: Box<dyn BlobIdGenerator>,
    runtime: Option<Runtime>,
}

impl fmt::Debug for ObjectBlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectBlobStore").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl ObjectBlobStore {
    /// What it is registered as.
    pub const NAME: &str = "object-store";

    /// The store at `config`'s URL. No request is made.
    ///
    /// Errors: a URL or an option that is not understood, a store that this program was built
    /// without, a generator of ids that is not registered.
    pub fn open(config: &BlobStoreConfig) -> Result<Self, ConfigError> {
        let url = config.url.as_deref().ok_or_else(|| {
            ConfigError::new(config::BLOB_STORE_URL, "is required by object-store")
        })?;
        let root = Root::parse(url)?;
        let (scheme, prefix) = ObjectStoreScheme::parse(root.url()).map_err(|_| {
            ConfigError::new(config::BLOB_STORE_URL, "there is no store of this kind")
        })?;
        let mut directory = None;
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::Local => {
                directory = Some(root.url().to_file_path().map_err(|()| {
                    ConfigError::new(config::BLOB_STORE_URL, "is not a path on this system")
                })?);
                no_options(config, "file")?;
                // A record must not be sooner on disk than what it refers to.
                Arc::new(LocalFileSystem::new().with_fsync(true))
            }
            ObjectStoreScheme::Memory => {
                no_options(config, "memory")?;
                Arc::new(InMemory::new())
            }
            scheme => remote(&scheme, &root, config)?,
        };
        let ordered = directory.is_none();
        let core = Core::new(store, root, prefix, config).with(directory, ordered);
        Self::new(core, config)
    }

    /// Any other store of `object_store`, as one that is wrapped. Its locations start with
    /// `url`, whose path is the prefix in it; the configuration's URL and options are not used.
    ///
    /// Errors: a URL that cannot start a location, a generator of ids that is not registered.
    pub fn over(
        store: Arc<dyn ObjectStore>,
        url: &str,
        config: &BlobStoreConfig,
    ) -> Result<Self, ConfigError> {
        Self::new(Core::over(store, url, config)?, config)
    }

    fn new(core: Core, config: &BlobStoreConfig) -> Result<Self, ConfigError> {
        let ids = ids::generator(&config.blob_id_generator)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("blob-store")
            .enable_all()
            .build()
            .map_err(|error| {
                ConfigError::new(config::BLOB_STORE_CLASS, format!("no thread for it: {error}"))
            })?;
        Ok(Self { core: Arc::new(core), ids, runtime: Some(runtime) })
    }

    /// With a generator of ids of one's own instead of the configuration's.
    #[must_use]
    pub fn with_id_generator(mut self, ids: Box<dyn BlobIdGenerator>) -> Self {
        self.ids = ids;
        self
    }

    /// Its URL, as it starts every location.
    #[must_use]
    pub fn url(&self) -> &str {
        self.core.root.text()
    }

    /// Whether a file at `path` would be in the directory of a file store.
    #[must_use]
    pub fn holds(&self, path: &FilePath) -> bool {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(FilePath::new(".")).canonicalize();
        let directory = self.core.directory.as_ref().map(|directory| directory.canonicalize());
        matches!((directory, parent), (Some(Ok(ours)), Ok(parent)) if parent.starts_with(&ours))
    }

    /// What the store says of the blob at `location`.
    ///
    /// Errors: as [`get`](BlobStore::get).
    pub fn head(&self, location: &str) -> Result<Blob, BlobError> {
        let (core, at) = (Arc::clone(&self.core), location.to_owned());
        self.wait(location, async move { core.head(&at).await })
    }

    /// Deletes the blob at `location`.
    ///
    /// Errors: as [`get`](BlobStore::get), but some stores do not say that there was none.
    pub fn delete(&self, location: &str) -> Result<(), BlobError> {
        let (core, at) = (Arc::clone(&self.core), location.to_owned());
        self.wait(location, async move { core.delete(&at).await })
    }

    /// Every blob below the store's URL, in no certain order, fetched as the iterator goes on.
    ///
    /// A blob that nothing of this program has written may have a name that is not allowed
    /// in a location; it is listed all the same, and cannot be read or deleted. What symbolic
    /// links in a file store lead to outside is not listed; what has two names by one inside is
    /// [`BlobErrorKind::NotAllowed`]. An error ends the list, which is not complete then.
    #[must_use]
    pub fn list(&self) -> BlobList<'_> {
        let state = Arc::new(Mutex::new(Listing::default()));
        BlobList { store: self, state, page: Vec::new().into_iter(), done: false }
    }

    /// Has `future` done on the store's own thread.
    fn wait<T: Send + 'static>(
        &self,
        location: &str,
        future: impl Future<Output = Result<T, BlobError>> + Send + 'static,
    ) -> Result<T, BlobError> {
        // A channel of std, since tokio's own ways to wait refuse to inside a runtime.
        let (sender, receiver) = sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                let _ = sender.send(future.await);
            });
        }
        receiver.recv().unwrap_or_else(|_| {
            Err(BlobError::new(BlobErrorKind::Other, location, "the request was given up"))
        })
    }
}

/// Waiting for its threads, as a runtime does, would be a panic inside another one.
impl Drop for ObjectBlobStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl BlobStore for ObjectBlobStore {
    fn put(&self, topic: &str, data: Bytes) -> Result<String, BlobError> {
        // Once for all attempts.
        let location = self.core.locate(topic, &self.ids.id(&data))?;
        let (core, at) = (Arc::clone(&self.core), location.clone());
        self.wait(&location, async move { core.put(&at, data).await })?;
        Ok(location)
    }

    fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError> {
        let (core, at) = (Arc::clone(&self.core), location.to_owned());
        self.wait(location, async move { core.get(&at, limit).await })
    }

    fn name(&self) -> &str {
        &self.core.name
    }

    fn blob_id_generator(&self) -> Option<&str> {
        Some(self.ids.name())
    }
}

/// Without asking its own generator of ids.
impl KeyedBlobStore for ObjectBlobStore {
    fn put_at(&self, key: &str, data: Bytes) -> Result<(), BlobError> {
        let location = self.location_of(key);
        let (core, at) = (Arc::clone(&self.core), location.clone());
        self.wait(&location, async move { core.put(&at, data).await })
    }

    fn location_of(&self, key: &str) -> String {
        format!("{}/{key}", self.url())
    }
}

/// The blobs of a store: [`ObjectBlobStore::list`].
#[derive(Debug)]
pub struct BlobList<'a> {
    store: &'a ObjectBlobStore,
    state: Arc<Mutex<Listing>>,
    page: IntoIter<Blob>,
    done: bool,
}

/// A listing between two pages.
#[derive(Default)]
struct Listing {
    /// `None` before it has begun, and after it has failed.
    stream: Option<BoxStream<'static, object_store::Result<ObjectMeta>>>,
    last: Option<Path>,
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Iterator for BlobList<'_> {
    type Item = Result<Blob, BlobError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(blob) = self.page.next() {
                return Some(Ok(blob));
            }
            if self.done {
                return None;
            }
            let (core, state) = (Arc::clone(&self.store.core), Arc::clone(&self.state));
            let page = self.store.wait(self.store.url(), async move { core.page(&state).await });
            match page {
                Ok((page, done)) => (self.page, self.done) = (page.into_iter(), done),
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// What there is without a thread: everything but the waiting.
pub(super) struct Core {
    store: Arc<dyn ObjectStore>,
    root: Root,
    /// What the store calls the root.
    prefix: Path,
    /// The root of a file store.
    directory: Option<PathBuf>,
    /// Whether listings are in the order of names, and can so be taken up again.
    ordered: bool,
    policy: RetryPolicy,
    pub(super) random: Box<dyn Fn() -> f64 + Send + Sync>,
    name: String,
}

impl Core {
    fn new(
        store: Arc<dyn ObjectStore>,
        root: Root,
        prefix: Path,
        config: &BlobStoreConfig,
    ) -> Self {
        Self {
            store,
            root,
            prefix,
            directory: None,
            ordered: false,
            policy: config.retry_policy(),
            random: Box::new(fastrand::f64),
            name: config.class.clone(),
        }
    }

    pub(super) fn over(
        store: Arc<dyn ObjectStore>,
        url: &str,
        config: &BlobStoreConfig,
    ) -> Result<Self, ConfigError> {
        let root = Root::parse(url)?;
        let prefix = Path::from_url_path(root.url().path())
            .map_err(|error| ConfigError::new(config::BLOB_STORE_URL, error.to_string()))?;
        Ok(Self::new(store, root, prefix, config))
    }

    fn with(self, directory: Option<PathBuf>, ordered: bool) -> Self {
        Self { directory, ordered, ..self }
    }

    /// Where the blob `id` of `topic` goes.
    pub(super) fn locate(&self, topic: &str, id: &str) -> Result<String, BlobError> {
        self.root
            .location(topic, id)
            .map_err(|detail| BlobError::new(BlobErrorKind::NotAllowed, self.root.text(), detail))
    }

    pub(super) async fn put(&self, location: &str, data: Bytes) -> Result<(), BlobError> {
        let object = self.object(location)?;
        self.run(location, || async {
            self.inside(&object, true).await?;
            let payload = PutPayload::from_bytes(data.clone());
            self.store.put(&object, payload).await.map(drop).map_err(classify)
        })
        .await
    }

    pub(super) async fn get(&self, location: &str, limit: u64) -> Result<Bytes, BlobError> {
        let object = self.object(location)?;
        self.run(location, || async {
            self.inside(&object, false).await?;
            let got = self.store.get(&object).await.map_err(classify)?;
            let size = got.range.end.saturating_sub(got.range.start);
            if size > limit {
                let detail = format!("the blob has {size} bytes, at most {limit} are wanted");
                return Err(fatal(BlobErrorKind::TooLarge, detail));
            }
            match got.payload {
                GetResultPayload::File(mut file, _) => {
                    blocking(move || read(&mut file, size)).await
                }
                GetResultPayload::Stream(stream) => collect(stream, size).await,
            }
        })
        .await
    }

    pub(super) async fn head(&self, location: &str) -> Result<Blob, BlobError> {
        let object = self.object(location)?;
        let meta = self.run(location, || async {
            self.inside(&object, false).await?;
            self.store.head(&object).await.map_err(classify)
        });
        meta.await.map(|meta| self.blob(&meta))
    }

    async fn delete(&self, location: &str) -> Result<(), BlobError> {
        let object = self.object(location)?;
        self.run(location, || async {
            if self.inside(&object, false).await? == Place::Linked {
                return Err(linked(&object));
            }
            self.store.delete(&object).await.map_err(classify)
        })
        .await
    }

    /// The next blobs of a listing, and whether they are the last.
    async fn page(&self, state: &Mutex<Listing>) -> Result<(Vec<Blob>, bool), BlobError> {
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        let page = self.run(self.root.text(), || async {
            self.inside(&self.prefix, false).await?;
            // An attempt that fails, or is dropped when its time is up, keeps the stream.
            let (stream, last) = {
                let mut state = lock();
                (state.stream.take(), state.last.clone())
            };
            // An attempt whose time was up has taken it, and only an order tells what is left.
            if stream.is_none() && last.is_some() && !self.ordered {
                let detail = "the listing was broken off, and cannot be taken up again".into();
                return Err(fatal(BlobErrorKind::Unavailable, detail));
            }
            let mut stream = stream.unwrap_or_else(|| self.listing(last.as_ref()));
            let mut page = Vec::new();
            let mut done = false;
            while page.len() < PAGE && !done {
                match stream.next().await {
                    Some(Ok(meta)) => page.push(meta),
                    Some(Err(error)) => {
                        let failure = classify(error);
                        let again = last.is_none() || self.ordered;
                        return Err(Failure { retryable: failure.retryable && again, ..failure });
                    }
                    None => done = true,
                }
            }
            let mut state = lock();
            state.stream = Some(stream);
            state.last = page.last().map(|meta| meta.location.clone()).or(last);
            Ok((page, done))
        });
        let (mut page, done) = page.await?;
        if let Some(directory) = self.directory.clone() {
            let filtered = blocking(move || {
                let mut kept = Vec::with_capacity(page.len());
                for meta in page {
                    match place(&directory, &file_path(&meta.location)) {
                        Ok(Place::Own) => kept.push(meta),
                        Ok(Place::Linked) => return Err(linked(&meta.location)),
                        // Of another store, or not to be looked at.
                        Ok(Place::Outside) | Err(_) => {}
                    }
                }
                Ok(kept)
            });
            page = filtered.await.map_err(|failure| self.error(self.root.text(), failure.error))?;
        }
        Ok((page.iter().map(|meta| self.blob(meta)).collect(), done))
    }

    fn listing(
        &self,
        after: Option<&Path>,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let prefix = (!self.prefix.is_root()).then_some(&self.prefix);
        match after {
            Some(after) => self.store.list_with_offset(prefix, after),
            None => self.store.list(prefix),
        }
    }

    fn blob(&self, meta: &ObjectMeta) -> Blob {
        let rest = meta.location.as_ref().strip_prefix(self.prefix.as_ref()).unwrap_or_default();
        Blob {
            location: format!("{}/{}", self.root.text(), rest.trim_start_matches('/')),
            size: meta.size,
            last_modified: meta.last_modified.into(),
        }
    }

    /// What the store calls `location`, if that is allowed.
    fn object(&self, location: &str) -> Result<Path, BlobError> {
        let object = self.root.rest(location).and_then(|rest| {
            let prefix = &self.prefix;
            location::object(prefix, rest).ok()
        });
        object.ok_or_else(|| {
            let detail = format!("not a location below the store {}", self.root.text());
            BlobError::new(BlobErrorKind::NotAllowed, location, detail)
        })
    }

    /// Where an object is in a file store; in any other, where its name says.
    ///
    /// Errors: outside of the store.
    async fn inside(&self, object: &Path, writing: bool) -> Result<Place, Failure> {
        let Some(directory) = self.directory.clone() else { return Ok(Place::Own) };
        let file = file_path(object);
        blocking(move || match place(&directory, &file) {
            Ok(Place::Outside) => {
                let detail = "leads out of the store by a symbolic link".into();
                Err(fatal(BlobErrorKind::NotAllowed, detail))
            }
            Ok(place) => Ok(place),
            // Without its directory a store can have nothing, and nothing of it is missing.
            Err(error) if error.kind() == io::ErrorKind::NotFound && writing => Ok(Place::Own),
            Err(error) => {
                let detail = format!("the store's directory {}: {error}", directory.display());
                Err(fatal(BlobErrorKind::Other, detail))
            }
        })
        .await
    }

    /// `attempt` by the store's policy.
    async fn run<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        location: &str,
        attempt: impl FnMut() -> F,
    ) -> Result<T, BlobError> {
        retry::run(&self.policy, &*self.random, attempt).await.map_err(|exhausted| {
            let Exhausted { error, attempts, elapsed, cut } = exhausted;
            let (kind, mut detail) =
                error.unwrap_or_else(|| (BlobErrorKind::Timeout, "no answer in time".into()));
            if attempts > 1 || cut || kind == BlobErrorKind::Timeout {
                detail += &format!(" ({attempts} attempts in {} ms", elapsed.as_millis());
                detail += if cut { ", no time for more)" } else { ")" };
            }
            self.error(location, (kind, detail))
        })
    }

    fn error(&self, location: &str, (kind, detail): (BlobErrorKind, String)) -> BlobError {
        BlobError::new(kind, location, detail)
    }
}

pub(super) const fn fatal(kind: BlobErrorKind, detail: String) -> Failure {
    Failure { error: (kind, detail), retryable: false }
}

/// Something that blocks, where that keeps no request from going on.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(fatal(BlobErrorKind::Other, error.to_string())))
}

/// Room for `size` bytes that a store has announced.
fn room(size: u64) -> Result<Vec<u8>, Failure> {
    let mut room = Vec::new();
    let reserved = usize::try_from(size).is_ok_and(|size| room.try_reserve_exact(size).is_ok());
    if reserved {
        return Ok(room);
    }
    Err(fatal(BlobErrorKind::TooLarge, format!("no memory for a blob of {size} bytes")))
}

/// Fewer bytes than announced are never a blob: the rest may come with another attempt.
fn cut_short(got: u64, size: u64) -> Failure {
    let detail = format!("{got} bytes have come, {size} were announced");
    Failure { error: (BlobErrorKind::Unavailable, detail), retryable: true }
}

fn read(file: &mut impl Read, size: u64) -> Result<Bytes, Failure> {
    let mut data = room(size)?;
    file.take(size).read_to_end(&mut data).map_err(|source| {
        classify(object_store::Error::Generic { store: "LocalFileSystem", source: source.into() })
    })?;
    match data.len() as u64 {
        got if got == size => Ok(data.into()),
        got => Err(cut_short(got, size)),
    }
}

async fn collect(
    mut stream: BoxStream<'static, object_store::Result<Bytes>>,
    size: u64,
) -> Result<Bytes, Failure> {
    let mut data: Option<Vec<u8>> = None;
    let mut whole = Bytes::new();
    let mut got = 0;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(classify)?;
        got += chunk.len() as u64;
        if got > size {
            return Err(cut_short(got, size));
        }
        match &mut data {
            // A store in memory has it in one piece, which needs no copy.
            None if chunk.len() as u64 == size => whole = chunk,
            None => data.insert(room(size)?).extend_from_slice(&chunk),
            Some(data) => data.extend_from_slice(&chunk),
        }
    }
    if got < size {
        return Err(cut_short(got, size));
    }
    Ok(data.map_or(whole, Bytes::from))
}

/// Somebody may know it by its other name: nothing can tell which one is referred to.
fn linked(object: &Path) -> Failure {
    let detail = format!("{object} has another name in the store, by a symbolic link");
    fatal(BlobErrorKind::NotAllowed, detail)
}

/// The file of an object of a file store.
fn file_path(object: &Path) -> PathBuf {
    PathBuf::from(format!("/{object}"))
}

/// Where a file of a file store is when all symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Where its name says.
    Own,
    /// Elsewhere in the store.
    Linked,
    Outside,
}

/// Where `file` is in `directory`, or the nearest of its directories that exists.
///
/// Errors: the directory itself cannot be found, or something on the way not be looked at.
fn place(directory: &FilePath, file: &FilePath) -> io::Result<Place> {
    let real = directory.canonicalize()?;
    if !real.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    for path in file.ancestors() {
        match path.canonicalize() {
            Ok(found) => {
                return Ok(match (found.strip_prefix(&real), path.strip_prefix(directory)) {
                    (Ok(found), Ok(named)) if found == named => Place::Own,
                    (Ok(_), _) => Place::Linked,
                    (Err(_), _) => Place::Outside,
                });
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::InvalidFilename
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Place::Outside)
}

fn no_options(config: &BlobStoreConfig, store: &str) -> Result<(), ConfigError> {
    match config.options.keys().next() {
        None => Ok(()),
        Some(name) => Err(unknown_option(name, store)),
    }
}

pub(super) fn unknown_option(name: &str, store: &str) -> ConfigError {
    let key = format!("{}{name}", config::BLOB_STORE_OPTION);
    ConfigError::new(key, format!("{store} has no such option"))
}

/// A store behind HTTP.
#[cfg_attr(not(any(feature = "s3", feature = "gcs", feature = "azure")), allow(unused_variables))]
fn remote(
    scheme: &ObjectStoreScheme,
    root: &Root,
    config: &BlobStoreConfig,
) -> Result<Arc<dyn ObjectStore>, ConfigError> {
    match scheme {
        #[cfg(feature = "s3")]
        ObjectStoreScheme::AmazonS3 => super::http::s3(root.url(), config),
        #[cfg(feature = "gcs")]
        ObjectStoreScheme::GoogleCloudStorage => super::http::gcs(root.url(), config),
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => super::http::azure(root.url(), config),
        scheme => {
            let detail = match scheme {
                ObjectStoreScheme::AmazonS3 => "is for a program built with the feature s3",
                ObjectStoreScheme::GoogleCloudStorage => {
                    "is for a program built with the feature gcs"
                }
                ObjectStoreScheme::MicrosoftAzure => {
                    "is for a program built with the feature azure"
                }
                _ => "there is no store of this kind",
            };
            let detail = format!("{}: {detail}", root.text());
            Err(ConfigError::new(config::BLOB_STORE_URL, detail))
        }
    }
}
