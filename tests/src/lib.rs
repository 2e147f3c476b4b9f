//! The kit that logseg's tests are built from.
//!
//! * [`build`] writes batches and messages, and lies in any of their fields;
//! * [`pack`] compresses with libraries that share no code with core's decoders, and
//!   decompresses with them;
//! * [`chunks`] cuts an input in pieces;
//! * [`mod@read`] collects what [`logseg_core::Unpacker`] tells, and drives bare decoders;
//! * [`digest`] is `records_digest` of the command-line contract;
//! * [`corpus`] finds the segments and cases in `tests/corpus`.

pub mod build;
pub mod chunks;
pub mod corpus;
pub mod digest;
pub mod pack;
pub mod read;

pub use build::{BatchBuilder, MessageBuilder, Rec};
pub use chunks::{Chunking, Random};
pub use pack::Packing;
pub use read::{Reading, read, read_with};

/// Bytes from hexadecimal digits; spaces do not count.
///
/// # Panics
///
/// If there is something else in it, or half a byte.
#[must_use]
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).expect("a hexadecimal digit")).expect("below 16"))
        .collect();
    assert_eq!(digits.len() % 2, 0, "half a byte");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Hexadecimal digits of bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
