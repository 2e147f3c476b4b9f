//! A store that fails as told.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::large_message::failure::StatusError;

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is never answered.
    Hangs,
    /// Done, but never answered.
    DoneThenHangs,
    /// This status.
    Status(u16),
    /// Done, but this status.
    DoneThenStatus(u16),
    /// Nobody listens.
    Refused,
    /// The connection is closed in the middle of the answer.
    Broken,
    /// The answer ends early, as if that were all.
    Truncated,
    /// The answer is longer than announced.
    TooLong,
    /// The right number of other bytes.
    OtherBytes,
    /// A blob of one byte more, whole.
    OtherSize,
    /// Not with these credentials.
    Denied,
    /// There is no such blob.
    Missing,
    /// There is not even such a bucket.
    NoBucket,
}

/// Whatever [`InMemory`] does, once the faults are used up.
#[derive(Debug, Default)]
pub(super) struct FaultStore {
    pub(super) inner: InMemory,
    faults: Mutex<VecDeque<Fault>>,
    requests: Mutex<Vec<String>>,
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultStore")
    }
}

impl FaultStore {
    /// `fault` on each of the next `times` requests, which are counted anew.
    pub(super) fn fail(&self, fault: Fault, times: usize) {
        *self.faults.lock().unwrap() = vec![fault; times].into();
        self.requests.lock().unwrap().clear();
    }

    /// The objects that were asked for, in order, since the last call of `fail`.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn next(&self, location: &Path) -> Option<Fault> {
        self.requests.lock().unwrap().push(location.to_string());
        self.faults.lock().unwrap().pop_front()
    }
}

fn error(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "FaultStore", source: Box::new(source) }
}

/// What a request fails with that is not done; `None` if it is something else.
async fn refuse(fault: Fault, location: &Path) -> Option<Error> {
    let path = location.to_string();
    match fault {
        Fault::Hangs | Fault::DoneThenHangs => std::future::pending().await,
        Fault::Status(status) | Fault::DoneThenStatus(status) => Some(error(StatusError(status))),
        Fault::Refused => Some(error(io::Error::from(io::ErrorKind::ConnectionRefused))),
        Fault::Denied => Some(Error::PermissionDenied { path, source: "403".into() }),
        Fault::Missing => Some(Error::NotFound { path, source: "404".into() }),
        Fault::NoBucket => Some(Error::NotFound { path, source: "404 NoSuchBucket".into() }),
        Fault::Broken
        | Fault::Truncated
        | Fault::TooLong
        | Fault::OtherBytes
        | Fault::OtherSize => None,
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let fault = self.next(location);
        if matches!(fault, None | Some(Fault::DoneThenHangs | Fault::DoneThenStatus(_))) {
            let done = self.inner.put_opts(location, payload, options).await;
            if fault.is_none() {
                return done;
            }
        }
        match refuse(fault.expect("one"), location).await {
            Some(error) => Err(error),
            // Broken while sending: nothing of it is stored.
            None => Err(error(io::Error::from(io::ErrorKind::BrokenPipe))),
        }
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("blobs are put at once")
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let fault = self.next(location);
        if let Some(fault) = fault
            && let Some(error) = refuse(fault, location).await
        {
            return Err(error);
        }
        let got = self.inner.get_opts(location, options).await?;
        let Some(fault) = fault else { return Ok(got) };
        let (mut meta, mut range) = (got.meta.clone(), got.range.clone());
        let data = got.bytes().await?;
        let half = data.slice(..data.len() / 2);
        let mut chunks = Vec::new();
        match fault {
            Fault::Broken => {
                chunks.push(Ok(half));
                chunks.push(Err(error(io::Error::from(io::ErrorKind::UnexpectedEof))));
            }
            Fault::Truncated => chunks.push(Ok(half)),
            Fault::TooLong => chunks.extend([Ok(data), Ok(half)]),
            Fault::OtherBytes => chunks.push(Ok(data.iter().map(|byte| !byte).collect())),
            Fault::OtherSize => {
                meta.size += 1;
                range.end += 1;
                chunks.extend([Ok(data), Ok(Bytes::from_static(b"!"))]);
            }
            _ => unreachable!("refused"),
        }
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::iter(chunks).boxed()),
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
