//! Large messages by reference, as KIP-1159 proposes: a value of the threshold or more goes
//! to a blob store, and the record carries a reference to it.

mod store;

pub use store::{BlobError, BlobErrorKind, BlobStore};
