//! Real servers on loopback, started and stopped by the tests, and what is asked of every
//! store.

mod emulators;
mod s3;
mod stores;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};

pub use emulators::{Azurite, Moto};
pub use s3::S3Server;
pub use stores::{
    Config, deserializer, failure, payload, round_trips, serializer, store, with, without_network,
};

/// A port that nothing listens on at this moment.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
    listener.local_addr().expect("an address").port()
}

/// Tells something on the terminal although the test succeeds.
pub fn tell(line: &str) {
    // What `eprintln!` writes is kept back by the test's harness.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says that something was not tested, which is a failure with `LOGSEG_CLIENTS=require`.
pub fn not_run(why: &str) {
    tell(&format!("not run: {why}"));
    let required = std::env::var_os("LOGSEG_CLIENTS").is_some_and(|value| value == "require");
    assert!(!required, "LOGSEG_CLIENTS=require, and not run: {why}");
}
