//! Build script of the feature `dpdk`: finds the library, and compiles the inline functions of its
//! headers, which have no symbols. Does nothing without the feature.

#[cfg(not(feature = "dpdk"))]
fn main() {}

#[cfg(feature = "dpdk")]
fn main() {
    println!("cargo:rerun-if-changed=shim");
    // Libraries are linked explicitly below, only those that are used.
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
    // DPDK's headers cause warnings.
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

/// Returns the flags that DPDK's headers require: the instruction set that it was built for, and
/// its configuration header.
#[cfg(feature = "dpdk")]
fn other_flags() -> Option<String> {
    let pkg_config = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = std::process::Command::new(pkg_config).args(["--cflags-only-other", "libdpdk"]).output();
    String::from_utf8(output.ok()?.stdout).ok() // tidy-allow(dropped-cause): the caller reports the remedy.
}
