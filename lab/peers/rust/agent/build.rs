//! Compiles the kit of agents in C, which has the roles and their output.
use std::path::Path;

fn main() {
    let kit = Path::new("../../kit");
    let mut build = cc::Build::new();
    for name in ["agent", "idle", "options", "pingpong", "process", "stream"] {
        build.file(kit.join(name).with_extension("c"));
    }
    build.file("src/host.c").include(kit).define("_GNU_SOURCE", None).std("gnu17").opt_level(2);
    build.compile("kit");
    println!("cargo::rerun-if-changed=../../kit");
    println!("cargo::rerun-if-changed=src/host.c");
}
