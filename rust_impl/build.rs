//! Tells the code which Python it is built for, and by what.

use std::env;
use std::process::Command;

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    let said = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output();
    let compiler = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo:rustc-env=BUILT_COMPILER={}", if compiler.is_empty() { "an unknown rustc" } else { &compiler });
    println!("cargo:rustc-env=BUILT_OPT_LEVEL={}", env::var("OPT_LEVEL").unwrap_or_default());
}
