//! An S3 server in this process: `s3s-fs`, objects in files of a temporary directory.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Collected};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::stores::Config;

const ACCESS_KEY: &str = "AKIDEXAMPLE";
const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// The server. It stops when it is dropped.
pub struct S3Server {
    files: TempDir,
    service: S3Service,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    open: bool,
    runtime: Option<Runtime>,
}

impl S3Server {
    /// Starts one that has an empty bucket `bucket`, and takes signed requests only.
    pub fn start() -> Self {
        Self::with(
            |builder| builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY)),
            false,
        )
    }

    /// Starts one that asks nobody for an authorization, and looks at none.
    pub fn open() -> Self {
        Self::with(|_| (), true)
    }

    fn with(change: impl FnOnce(&mut S3ServiceBuilder), open: bool) -> Self {
        let files = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(files.path().join("bucket")).expect("a bucket");
        let system = FileSystem::new(files.path()).expect("a file system");
        let mut builder = S3ServiceBuilder::new(system);
        change(&mut builder);
        let service = builder.build();
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let mut server =
            Self { files, service, address, requests: Arc::default(), open, runtime: None };
        server.resume();
        server
    }

    /// Starts again where it was stopped, with all it had.
    pub fn resume(&mut self) {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads of the server");
        let listener = runtime.block_on(TcpListener::bind(self.address)).expect("its port");
        self.address = listener.local_addr().expect("its address");
        let (service, requests) = (self.service.clone(), Arc::clone(&self.requests));
        let open = self.open;
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, requests) = (service.clone(), Arc::clone(&requests));
                let service = service_fn(move |mut request: Request<Incoming>| {
                    let line = format!("{} {}", request.method(), request.uri().path());
                    requests.lock().expect("a list").push(line);
                    if open {
                        // Not one of S3's.
                        request.headers_mut().remove("authorization");
                    }
                    let service = service.clone();
                    async move {
                        // All of it before the answer: a connection that is closed with bytes
                        // unread may break before the client has seen why.
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.map(Collected::to_bytes);
                        let body = s3s::Body::from(body.unwrap_or_default());
                        service.call(Request::from_parts(head, body)).await
                    }
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(socket), service);
                tokio::spawn(connection);
            }
        });
        self.runtime = Some(runtime);
    }

    /// Ends it at once, connections and all.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests since this was last asked, as `PUT /bucket/name`.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().expect("a list"))
    }

    /// The directory with its buckets.
    pub fn files(&self) -> &std::path::Path {
        self.files.path()
    }

    /// Configuration of a store in `bucket`.
    pub fn config(&self) -> Config {
        crate::with(
            &Config::new(),
            &[
                ("large.message.blob.store.class", "object-store"),
                ("large.message.blob.store.url", "s3://bucket/large"),
                ("large.message.blob.store.option.endpoint", &self.endpoint()),
                ("large.message.blob.store.option.allow_http", "true"),
                ("large.message.blob.store.option.region", "us-east-1"),
                ("large.message.blob.store.option.access_key_id", ACCESS_KEY),
                ("large.message.blob.store.option.secret_access_key", SECRET_KEY),
                ("large.message.blob.store.option.virtual_hosted_style_request", "false"),
            ],
        )
    }

    /// Configuration of a store of Google Cloud Storage in the bucket: its XML interface has
    /// the requests and answers of S3, and here no signatures.
    pub fn config_as_gcs(&self) -> Config {
        // Without a key it would ask Google's metadata service for a token.
        let key = serde_json::json!({
            "gcs_base_url": self.endpoint(),
            "disable_oauth": true,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        });
        crate::with(
            &Config::new(),
            &[
                ("large.message.blob.store.class", "object-store"),
                ("large.message.blob.store.url", "gs://bucket/large"),
                ("large.message.blob.store.option.allow_http", "true"),
                ("large.message.blob.store.option.service_account_key", &key.to_string()),
            ],
        )
    }

    /// The same for a program's environment.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", self.endpoint()),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.into()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.into()),
        ]
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.stop();
    }
}
