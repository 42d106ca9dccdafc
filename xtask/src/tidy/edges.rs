//! Allowed dependencies between crates: the map of `ARCHITECTURE.md` as data.
//!
//! The check fails for an edge that is not in [`CRATES`], for a workspace member without an entry,
//! and for an entry without a member. Crates on the ground floor also have a list of allowed
//! *external* dependencies: it guarantees "no I/O, no clock".

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Report;

/// Allowed dependencies of one workspace member.
struct Crate {
    name: &'static str,
    /// Members that the crate may use, in addition to those of its tests.
    internal: &'static [&'static str],
    /// Members that its tests may use in addition.
    internal_in_tests: &'static [&'static str],
    /// The only external crates that it may use; `None` leaves the decision to `deny.toml`.
    external: Option<&'static [&'static str]>,
}

/// Test support crate, which the tests of every crate may use.
const TESTKIT: &str = "takt-testkit";

/// The allowed edges, from the ground floor up.
const CRATES: &[Crate] = &[
    Crate { name: TESTKIT, internal: &[], internal_in_tests: &[], external: Some(&["libc", "serde_json"]) },
    Crate { name: "takt-wire", internal: &[], internal_in_tests: &[], external: Some(&[]) },
    Crate { name: "takt-packet", internal: &[], internal_in_tests: &[], external: Some(&[]) },
    Crate { name: "takt-openflow", internal: &[], internal_in_tests: &[], external: Some(&[]) },
    Crate { name: "takt-ovsdb", internal: &[], internal_in_tests: &[], external: Some(&["serde_json"]) },
    Crate { name: "takt-calculus", internal: &[], internal_in_tests: &[], external: Some(&["serde"]) },
    Crate { name: "takt-netlink", internal: &[], internal_in_tests: &[], external: Some(&["libc"]) },
    Crate {
        name: "takt-sdn",
        internal: &["takt-wire", "takt-packet", "takt-openflow", "takt-ovsdb", "takt-netlink", "takt-calculus"],
        internal_in_tests: &["takt-core", "takt-lab"],
        external: None,
    },
    Crate { name: "takt-schedule", internal: &[], internal_in_tests: &[], external: Some(&[]) },
    Crate { name: "takt-exec", internal: &["takt-schedule"], internal_in_tests: &[], external: Some(&["libc"]) },
    Crate {
        name: "takt-host",
        internal: &["takt-netlink"],
        internal_in_tests: &[],
        external: Some(&["libc", "serde", "serde_json"]),
    },
    Crate {
        name: "takt-lab",
        internal: &["takt-netlink", "takt-openflow", "takt-ovsdb"],
        internal_in_tests: &[],
        external: Some(&["nix", "serde", "serde_json", "toml"]),
    },
    Crate {
        name: "takt-derive",
        internal: &[],
        internal_in_tests: &["takt-xtypes"],
        external: Some(&["md-5", "proc-macro2", "quote", "syn"]),
    },
    Crate { name: "takt-xtypes", internal: &["takt-derive"], internal_in_tests: &[], external: Some(&["md-5"]) },
    Crate {
        name: "takt-idl",
        internal: &["takt-xtypes"],
        internal_in_tests: &["takt-derive"],
        external: Some(&["sha2"]),
    },
    Crate { name: "takt-core", internal: &["takt-wire", "takt-schedule"], internal_in_tests: &[], external: Some(&[]) },
    Crate {
        name: "takt-security",
        internal: &["takt-wire", "takt-core"],
        internal_in_tests: &[],
        external: Some(&["cryptoki", "openssl", "ring", "roxmltree"]),
    },
    Crate {
        name: "takt-transport",
        internal: &["takt-wire", "takt-packet", "takt-netlink", "takt-schedule"],
        internal_in_tests: &[],
        external: None,
    },
    Crate {
        name: "takt-xdp",
        internal: &["takt-wire", "takt-packet", "takt-transport"],
        internal_in_tests: &["takt"],
        external: Some(&["libc"]),
    },
    Crate {
        name: "takt-dpdk",
        internal: &["takt-wire", "takt-packet", "takt-transport"],
        internal_in_tests: &["takt"],
        external: Some(&["cc", "pkg-config"]),
    },
    Crate {
        name: "takt",
        internal: &[
            "takt-wire",
            "takt-xtypes",
            "takt-derive",
            "takt-core",
            "takt-transport",
            "takt-schedule",
            "takt-exec",
            "takt-security",
        ],
        internal_in_tests: &["takt-calculus", "takt-sdn"],
        external: None,
    },
    Crate {
        name: "takt-config",
        internal: &["takt", "takt-calculus", "takt-exec", "takt-schedule", "takt-wire"],
        internal_in_tests: &[],
        external: Some(&["roxmltree", "serde", "serde_json", "toml"]),
    },
    Crate {
        name: "takt-durability",
        internal: &["takt", "takt-wire"],
        internal_in_tests: &[],
        external: Some(&["redb"]),
    },
    Crate {
        name: "takt-bench",
        internal: &[
            "takt",
            "takt-durability",
            "takt-calculus",
            "takt-host",
            "takt-core",
            "takt-lab",
            "takt-netlink",
            "takt-packet",
            "takt-sdn",
            "takt-security",
            "takt-transport",
            "takt-wire",
        ],
        internal_in_tests: &[],
        external: None,
    },
    Crate {
        name: "takt-cli",
        internal: &[
            "takt",
            "takt-calculus",
            "takt-config",
            "takt-dpdk",
            "takt-durability",
            "takt-bench",
            "takt-host",
            "takt-idl",
            "takt-lab",
            "takt-netlink",
            "takt-ovsdb",
            "takt-packet",
            "takt-sdn",
            "takt-security",
            "takt-transport",
            "takt-wire",
            "takt-xdp",
        ],
        internal_in_tests: &[],
        external: None,
    },
    Crate {
        name: "takt-sim",
        internal: &["takt-wire", "takt-core", "takt-security", "takt-transport", "takt-xtypes", "takt-derive"],
        internal_in_tests: &[],
        external: Some(&[]),
    },
    Crate {
        name: "takt-interop",
        internal: &["takt", "takt-bench", "takt-lab", "takt-xdp"],
        internal_in_tests: &["takt-openflow", "takt-sdn", "takt-sim", "takt-security"],
        external: None,
    },
    Crate { name: "takt-instructions", internal: &["takt"], internal_in_tests: &[], external: Some(&[]) },
    Crate {
        name: "takt-examples",
        internal: &["takt", "takt-config"],
        internal_in_tests: &[],
        external: Some(&["tracing"]),
    },
    Crate { name: "xtask", internal: &[], internal_in_tests: &[], external: Some(&["serde_json", "toml"]) },
];

/// Returns the cargo metadata of the workspace, without dependency resolution.
pub fn cargo_metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata fails: {}", text.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata is not JSON: {error}"))
}

/// Compares the members and their dependencies with [`CRATES`].
pub fn check(metadata: &Value, report: &mut Report) -> Result<(), String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let members: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().ok_or("a package has no name")?;
        let Some(allowed) = CRATES.iter().find(|c| c.name == name) else {
            let message = "not in the table of allowed edges (xtask/src/tidy/edges.rs)";
            report.fail("edges", name, message.to_owned());
            continue;
        };
        let dependencies = package["dependencies"].as_array().ok_or("a package has no dependencies")?;
        for dependency in dependencies {
            if let Some(message) = refusal(allowed, dependency, &members) {
                report.fail("edges", name, message);
            }
        }
    }
    for stale in CRATES.iter().filter(|c| !members.contains(&c.name)) {
        let message = "in the table of allowed edges, but not in the workspace";
        report.fail("edges", stale.name, message.to_owned());
    }
    Ok(())
}

/// Returns the reason for which `dependency` is not allowed for this crate.
fn refusal(allowed: &Crate, dependency: &Value, members: &[&str]) -> Option<String> {
    let name = dependency["name"].as_str()?;
    let in_tests = dependency["kind"].as_str() == Some("dev");
    if members.contains(&name) {
        // The tests of a crate may depend on the crate itself, to enable one of its features.
        let listed = allowed.internal.contains(&name)
            || (in_tests && (allowed.internal_in_tests.contains(&name) || [TESTKIT, allowed.name].contains(&name)));
        return (!listed).then(|| format!("must not depend on {name}: arrows point downwards only"));
    }
    let external = allowed.external?;
    (!in_tests && !external.contains(&name))
        .then(|| format!("must not depend on {name}: its external crates are {external:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CRATES, check};
    use crate::tidy::Report;

    /// Returns the metadata of the whole workspace without edges, except that `name` has
    /// `dependencies`.
    fn workspace(name: &str, dependencies: &Value) -> Value {
        let package = |c: &super::Crate| {
            let own = if c.name == name { dependencies.clone() } else { json!([]) };
            json!({ "name": c.name, "dependencies": own })
        };
        json!({ "packages": CRATES.iter().map(package).collect::<Vec<_>>() })
    }

    fn messages(metadata: &Value) -> Vec<String> {
        let mut report = Report::default();
        check(metadata, &mut report).expect("the metadata is well formed");
        report.findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn edges_of_the_map_are_allowed() {
        let down = json!([{ "name": "takt-wire", "kind": null }]);
        assert_eq!(messages(&workspace("takt-core", &down)), Vec::<String>::new());
        let external = json!([{ "name": "md-5", "kind": null }]);
        assert_eq!(messages(&workspace("takt-xtypes", &external)), Vec::<String>::new());
    }

    #[test]
    fn upward_edge_is_refused() {
        let up = json!([{ "name": "takt-core", "kind": null }]);
        let found = messages(&workspace("takt-wire", &up));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("takt-wire: must not depend on takt-core"), "{}", found[0]);
    }

    #[test]
    fn build_edge_and_unlisted_test_edge_are_refused() {
        for kind in ["build", "dev"] {
            let edge = json!([{ "name": "takt-transport", "kind": kind }]);
            assert_eq!(messages(&workspace("takt-core", &edge)).len(), 1, "{kind}");
        }
    }

    #[test]
    fn test_edge_is_refused_for_the_library() {
        let edge = |kind: Value| json!([{ "name": "takt-xtypes", "kind": kind }]);
        assert_eq!(messages(&workspace("takt-derive", &edge(json!("dev")))).len(), 0);
        assert_eq!(messages(&workspace("takt-derive", &edge(json!(null)))).len(), 1);
    }

    #[test]
    fn tests_of_every_crate_may_use_the_testkit_and_libraries_may_not() {
        let edge = |kind: Value| json!([{ "name": "takt-testkit", "kind": kind }]);
        assert_eq!(messages(&workspace("takt-wire", &edge(json!("dev")))).len(), 0);
        assert_eq!(messages(&workspace("takt-wire", &edge(json!(null)))).len(), 1);
    }

    #[test]
    fn tests_may_depend_on_their_own_crate() {
        let own = json!([{ "name": "takt-transport", "kind": "dev" }]);
        assert_eq!(messages(&workspace("takt-transport", &own)), Vec::<String>::new());
    }

    #[test]
    fn external_crate_on_the_ground_floor_is_refused_outside_tests() {
        let external = |kind: Value| json!([{ "name": "rand", "kind": kind }]);
        assert_eq!(messages(&workspace("takt-wire", &external(json!(null)))).len(), 1);
        assert_eq!(messages(&workspace("takt-wire", &external(json!("dev")))).len(), 0);
        assert_eq!(messages(&workspace("takt", &external(json!(null)))).len(), 0);
    }

    #[test]
    fn unknown_member_and_stale_entry_are_refused() {
        let mut metadata = workspace("takt", &json!([]));
        let packages = metadata["packages"].as_array_mut().expect("an array");
        packages[0]["name"] = json!("takt-stranger");
        let found = messages(&metadata);
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("takt-stranger: not in the table"));
        assert!(found[1].contains(CRATES[0].name) && found[1].contains("not in the workspace"));
    }

    #[test]
    fn every_internal_edge_points_to_an_earlier_entry() {
        for (index, entry) in CRATES.iter().enumerate() {
            for target in entry.internal {
                let position = CRATES.iter().position(|c| c.name == *target);
                let below = position.is_some_and(|p| p < index);
                assert!(below, "{} -> {target} is not downwards", entry.name);
            }
        }
    }
}
