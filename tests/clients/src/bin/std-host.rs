//! The program `std-host`, so that the tests have it from the same build.

use std::process::ExitCode;

fn main() -> ExitCode {
    std_host::cli::run(std::env::args_os())
}
