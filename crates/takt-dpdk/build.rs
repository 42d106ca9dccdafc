//! With the feature `dpdk`: finds the library and compiles the functions of its headers that the linker does not know. Without it
//! there is nothing to do.

#[cfg(not(feature = "dpdk"))]
fn main() {}

#[cfg(feature = "dpdk")]
fn main() {
    println!("cargo:rerun-if-changed=shim");
    // What is linked is named below: of the library's parts, those that are used.
    let found = pkg_config::Config::new().atleast_version("22.11").cargo_metadata(false).probe("libdpdk");
    let (Ok(found), Some(flags)) = (found, other_flags()) else {
        eprintln!(
            "takt-dpdk, feature `dpdk`: pkg-config does not find libdpdk 22.11 or later; \
             install it (Debian, Ubuntu: `apt-get install dpdk-dev pkg-config`) or build without the feature."
        );
        std::process::exit(1);
    };
    let mut shim = cc::Build::new();
    shim.files(["shim/shim.c", "shim/memif.c"]).includes(&found.include_paths).flag("-std=gnu11");
    // DPDK's headers bring their own warnings.
    shim.warnings(false);
    flags.split_whitespace().for_each(|flag| {
        shim.flag(flag);
    });
    shim.compile("takt_dpdk_shim");
    for path in &found.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for library in ["rte_ethdev", "rte_net_ring", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal"] {
        println!("cargo:rustc-link-lib={library}");
    }
}

/// Flags that DPDK's headers want: the instructions that it was built for, and its configuration before all else.
#[cfg(feature = "dpdk")]
fn other_flags() -> Option<String> {
    let pkg_config = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = std::process::Command::new(pkg_config).args(["--cflags-only-other", "libdpdk"]).output();
    String::from_utf8(output.ok()?.stdout).ok() // tidy-allow(dropped-cause): the caller says what to do about it.
}
