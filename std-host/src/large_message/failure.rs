//! What the errors of `object_store` mean: their class, and whether another attempt may do
//! better.

use std::error::Error;
use std::fmt;
use std::io;

use super::object::{Failure, fatal};
use super::store::BlobErrorKind;

/// The status of an answer that another attempt may do better than.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub(super) struct StatusError(pub(super) u16);

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.0 {
            408 => "Request Timeout",
            429 => "Too Many Requests",
            500 => "Internal Server Error",
            503 => "Service Unavailable",
            _ => return write!(f, "status {}", self.0),
        };
        write!(f, "status {} {reason}", self.0)
    }
}

impl Error for StatusError {}

pub(super) fn classify(error: object_store::Error) -> Failure {
    use BlobErrorKind::{Denied, NotFound, Other, Unavailable};

    let detail = error.to_string();
    match &error {
        // A bucket that is missing is 404 as well, but nothing has been said of the blob:
        // NoSuchBucket of S3 and Google, ContainerNotFound of Azure.
        object_store::Error::NotFound { .. }
            if detail.contains("NoSuchBucket") || detail.contains("ContainerNotFound") =>
        {
            fatal(Other, detail)
        }
        object_store::Error::NotFound { .. } => fatal(NotFound, detail),
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => fatal(Denied, detail),
        // Status 409 and 412: somebody else is at the same blob at this moment.
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            Failure { error: (Unavailable, detail), retryable: true }
        }
        _ => match transient(&error) {
            Some((kind, retryable)) => Failure { error: (kind, detail), retryable },
            None => fatal(Other, detail),
        },
    }
}

/// What the first cause that says something of it makes of an error.
fn transient(error: &(dyn Error + 'static)) -> Option<(BlobErrorKind, bool)> {
    use BlobErrorKind::{Denied, NotFound, Timeout, Unavailable};

    let mut cause = Some(error);
    let mut found = None;
    while let Some(error) = cause {
        if error.is::<StatusError>() {
            return Some((Unavailable, true));
        }
        #[cfg(feature = "http")]
        if let Some(error) = error.downcast_ref::<object_store::client::HttpError>() {
            use object_store::client::HttpErrorKind;
            // The status is further down.
            found = match error.kind() {
                HttpErrorKind::Timeout => Some((Timeout, true)),
                HttpErrorKind::Connect
                | HttpErrorKind::Request
                | HttpErrorKind::Interrupted
                | HttpErrorKind::Decode => Some((Unavailable, true)),
                _ => None,
            };
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            found = found.or(match error.kind() {
                io::ErrorKind::TimedOut => Some((Timeout, true)),
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::NotConnected
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ResourceBusy
                | io::ErrorKind::StaleNetworkFileHandle => Some((Unavailable, true)),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some((Denied, false))
                }
                // No file has such a name, or a file is where its directory would be.
                io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                    Some((NotFound, false))
                }
                _ => None,
            });
        }
        cause = error.source();
    }
    found
}
