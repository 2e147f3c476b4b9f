//! The command line; see [`std_host::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    std_host::cli::run(std::env::args_os())
}
