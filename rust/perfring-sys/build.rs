// build.rs - finds libperfring by pkg-config, or in the folder that PERFRING_LIB_DIR names.
use std::env;
use std::process::Command;

fn main() {
    for name in ["PERFRING_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let libraries: &[&str] = if cfg!(feature = "profile") { &["perfring", "perfring-profile"] } else { &["perfring"] };
    if let Ok(folder) = env::var("PERFRING_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        for library in libraries {
            println!("cargo:rustc-link-lib={library}");
        }
        return;
    }
    for library in libraries {
        link(library);
    }
}

fn link(library: &str) {
    let wanted = format!("{library} >= {}", env!("CARGO_PKG_VERSION"));
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let done = match Command::new(&program).args(["--libs", &wanted]).output() {
        Ok(done) => done,
        Err(error) => panic!("{program}: {error}: install it, or set PERFRING_LIB_DIR to the folder of libperfring.so"),
    };
    if !done.status.success() {
        panic!(
            "{program} finds no {wanted}: {}: install libperfring, or set PKG_CONFIG_PATH or PERFRING_LIB_DIR",
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    for word in String::from_utf8_lossy(&done.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
