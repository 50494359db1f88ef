//! Checks the dependencies between crates. A crate is split off only where a dependency must be forbidden, so two
//! things are checked: our crates depend only on those below them, and no crate has a forbidden dependency.
//!
//! ```text
//! config <-- runtime <-- agent <--+
//! mcp    <--+                     +-- wharf
//! store  <------------------------+
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::assert_none;
use super::tree::Tree;

/// A crate, and all of our crates that it may depend on.
const EDGES: &[(&str, &[&str])] = &[
    ("wharf-config", &[]),
    ("wharf-mcp", &[]),
    ("wharf-runtime", &["wharf-config", "wharf-mcp"]),
    ("wharf-agent", &["wharf-config", "wharf-runtime"]),
    ("wharf-store", &[]),
    ("wharf", &["wharf-agent", "wharf-config", "wharf-mcp", "wharf-runtime", "wharf-store"]),
    ("conformance", &["wharf-mcp"]),
    ("hostile", &["wharf-config", "wharf-mcp", "wharf-runtime"]),
    ("load", &["scripted-model"]),
    ("scripted-model", &[]),
    ("xtask", &[]),
];

/// A crate, its forbidden dependencies, and the reason.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "wharf-config",
        &["tokio", "hyper", "reqwest", "tracing"],
        "the configuration is pure: nothing runs in it",
    ),
    ("wharf-config", &["clap", "sqlx"], "the configuration knows neither a command line nor tables"),
    ("wharf-mcp", &["granit-parser", "serde-saphyr", "toml"], "the wire knows no configuration"),
    ("wharf-mcp", &["genai", "sqlx"], "the wire knows neither models nor tables"),
    ("wharf-runtime", &["axum", "clap", "anstream"], "the runtime has no HTTP server and no CLI"),
    ("wharf-runtime", &["genai", "sqlx"], "the runtime knows neither models nor tables"),
    ("wharf-agent", &["axum", "clap", "anstream"], "the agent has no HTTP server and no CLI"),
    ("wharf-agent", &["hyper", "rmcp", "tokio-tungstenite"], "the agent knows no MCP transport"),
    ("wharf-store", &["rmcp"], "rows are plain"),
    ("xtask", &["clap"], "xtask builds in a second"),
];

/// Crates that none of ours may depend on directly, and the replacement.
const SUPERSEDED: &[(&str, &str)] = &[
    ("chrono", "jiff"),
    ("lazy_static", "std::sync::LazyLock"),
    ("once_cell", "std::sync::OnceLock"),
    ("time", "jiff"),
];

#[test]
fn crate_edges_are_those_of_the_design() {
    let ours = dependencies();
    let names: BTreeSet<&str> = ours.keys().map(String::as_str).collect();
    let expected: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "a crate came or went: change EDGES and ARCHITECTURE.md with it");
    let wrong = EDGES.iter().flat_map(|(name, edges)| {
        let found = ours[*name].iter().map(String::as_str).filter(|to| names.contains(to));
        found.filter(|to| !edges.contains(to)).map(move |to| format!("{name} depends on {to}"))
    });
    assert_none(
        wrong,
        "move the code to the crate that may know both, or hand over a value instead of a type",
    );
}

#[test]
fn no_crate_has_a_forbidden_dependency() {
    let ours = dependencies();
    let knows = |name: &str, other: &str| ours.get(name).is_some_and(|all| all.contains(other));
    let mut places = Vec::new();
    for (name, others, why) in FORBIDDEN {
        let found = others.iter().filter(|other| knows(name, other));
        places.extend(found.map(|other| format!("{name} depends on {other}: {why}")));
    }
    assert_none(places, "do it in a crate that may know it; ARCHITECTURE.md has the map");
}

#[test]
fn no_crate_depends_on_a_superseded_crate() {
    let mut places = Vec::new();
    for (name, all) in dependencies() {
        let found = SUPERSEDED.iter().filter(|(old, _)| all.contains(*old));
        places.extend(found.map(|(old, new)| format!("{name} depends on {old}: use {new}")));
    }
    assert_none(places, "use what is named instead");
}

/// Returns the dependencies of each workspace member, without those for tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(Tree::read().root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let members = metadata["packages"].as_array().into_iter().flatten();
    members
        .map(|member| {
            let all = member["dependencies"].as_array().into_iter().flatten();
            (name(member), all.filter(|one| one["kind"] != "dev").map(name).collect())
        })
        .collect()
}
