//! Servers in programs of their own, where `emulators` has installed them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tempfile::TempDir;

use crate::stores::{Config, with};

/// Where they are installed; see `README.md`.
fn tool(name: &str) -> Option<PathBuf> {
    let Some(home) = std::env::var_os("LOGSEG_EMULATORS") else {
        crate::not_run(&format!("{name}: LOGSEG_EMULATORS does not say where it is installed"));
        return None;
    };
    let tool = Path::new(&home).join(name);
    if tool.exists() {
        return Some(tool);
    }
    crate::not_run(&format!("{name} is not installed in {}", Path::new(&home).display()));
    None
}

/// A server in a process, which is ended with this.
struct Server {
    process: Child,
    port: u16,
    files: TempDir,
}

impl Server {
    /// Starts the `command` that is made of a port and of a directory, and waits until it
    /// listens.
    fn start(command: impl FnOnce(u16, &Path) -> Command) -> Self {
        let files = tempfile::tempdir().expect("a temporary directory");
        let port = crate::free_port();
        let mut command = command(port, files.path());
        let log = std::fs::File::create(files.path().join("log")).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        let process = command.spawn().expect("a process");
        let mut server = Self { process, port, files };
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = server.process.try_wait().expect("a state").is_some();
            if ended || start.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(server.files.path().join("log"));
                panic!("{command:?} does not listen on {port}: {}", log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A request without a body. Gives the status.
    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the server");
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", self.port);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "Content-Length: 0\r\nConnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).expect("to write");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no answer of HTTP: {answer}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Azurite, Microsoft's emulator of Azure Blob Storage.
pub struct Azurite(Server);

impl Azurite {
    /// The one account that it has from the start, and its key, which everybody knows.
    const ACCOUNT: &str = "devstoreaccount1";
    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// Starts one that has an empty container `container`; `None` if it is not installed.
    pub fn start() -> Option<Self> {
        let program = tool("node_modules/.bin/azurite-blob")?;
        let server = Server::start(|port, files| {
            let mut command = Command::new(program);
            command.args([
                "--blobHost",
                "127.0.0.1",
                "--blobPort",
                &port.to_string(),
                "--location",
            ]);
            command.arg(files);
            command.args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"]);
            command
        });
        let azurite = Self(server);
        azurite.create_container();
        Some(azurite)
    }

    /// Signed with the account's key.
    fn create_container(&self) {
        let path = format!("/{}/container", Self::ACCOUNT);
        let (date, version) = ("Mon, 01 Jan 2024 00:00:00 GMT", "2023-11-03");
        let signed = format!(
            "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n/{}{path}\nrestype:container",
            Self::ACCOUNT
        );
        let key = STANDARD.decode(Self::KEY).expect("base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
        mac.update(signed.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let status = self.0.request(
            "PUT",
            &format!("{path}?restype=container"),
            &[
                ("x-ms-date", date),
                ("x-ms-version", version),
                ("Authorization", &format!("SharedKey {}:{signature}", Self::ACCOUNT)),
            ],
        );
        assert_eq!(status, 201, "Azurite makes no container");
    }

    /// Configuration of a store in the container.
    pub fn config(&self) -> Config {
        let endpoint = format!("{}/{}", self.0.endpoint(), Self::ACCOUNT);
        with(
            &Config::new(),
            &[
                ("large.message.blob.store.class", "object-store"),
                ("large.message.blob.store.url", "az://container/large"),
                ("large.message.blob.store.option.endpoint", &endpoint),
                ("large.message.blob.store.option.allow_http", "true"),
                ("large.message.blob.store.option.account_name", Self::ACCOUNT),
                ("large.message.blob.store.option.account_key", Self::KEY),
            ],
        )
    }
}

/// `moto`, another server that speaks S3.
pub struct Moto(Server);

impl Moto {
    /// Starts one that has an empty bucket `bucket`; `None` if it is not installed.
    pub fn start() -> Option<Self> {
        let program = tool("venv/bin/moto_server")?;
        let server = Server::start(|port, _| {
            let mut command = Command::new(program);
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
            command
        });
        assert_eq!(server.request("PUT", "/bucket", &[]), 200, "moto makes no bucket");
        Some(Self(server))
    }

    /// Configuration of a store in the bucket.
    pub fn config(&self) -> Config {
        with(
            &Config::new(),
            &[
                ("large.message.blob.store.class", "object-store"),
                ("large.message.blob.store.url", "s3://bucket/large"),
                ("large.message.blob.store.option.endpoint", &self.0.endpoint()),
                ("large.message.blob.store.option.allow_http", "true"),
                ("large.message.blob.store.option.region", "us-east-1"),
                ("large.message.blob.store.option.access_key_id", "any"),
                ("large.message.blob.store.option.secret_access_key", "any"),
            ],
        )
    }
}
