//! Hands the linker script to the linker, on bare metal only.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=memory.x");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        fs::copy("memory.x", out.join("memory.x")).expect("OUT_DIR can be written");
        println!("cargo::rustc-link-search={}", out.display());
        println!("cargo::rustc-link-arg-bins=-Tlink.x");
    }
}
