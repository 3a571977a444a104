//! Tells the code which Python it is built for, and by what; and the linker what `exit.rs` needs.

use std::env;
use std::process::Command;

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    let said = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output();
    let compiler = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo:rustc-env=BUILT_COMPILER={}", if compiler.is_empty() { "an unknown rustc" } else { &compiler });
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
    {
        // src/binding/exit.rs says why.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap=_Unwind_GetLanguageSpecificData");
    }
    println!("cargo:rustc-env=BUILT_OPT_LEVEL={}", env::var("OPT_LEVEL").unwrap_or_default());
}
