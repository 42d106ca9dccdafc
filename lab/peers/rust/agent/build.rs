//! Build script: compiles the agents' kit in C, which contains the roles and their output.
use std::path::Path;

fn main() {
    let kit = Path::new("../../kit");
    let mut build = cc::Build::new();
    for file in std::fs::read_dir(kit).expect("the kit is there").flatten() {
        if file.path().extension().is_some_and(|extension| extension == "c") {
            build.file(file.path());
        }
    }
    build.file("src/host.c").include(kit).define("_GNU_SOURCE", None).std("gnu17").opt_level(2);
    build.compile("kit");
    println!("cargo::rerun-if-changed=../../kit");
    println!("cargo::rerun-if-changed=src/host.c");
}
