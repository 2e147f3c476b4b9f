//! Files, a command line and fast codecs on top of [`logseg_core`].
#![warn(missing_docs)]

pub mod analysis;
pub mod by_reference;
pub mod cli;
pub mod codec_spec;
pub mod codecs;
pub mod cpu;
pub mod cursor_info;
pub mod dump;
pub mod growing;
pub mod large_message;
pub mod measure;
mod opened;
pub mod recompress;
pub mod report;
pub mod rewrite;
pub mod serde;
pub mod side;
pub mod source;
