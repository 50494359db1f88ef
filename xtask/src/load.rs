//! Measures the cost of the gateway: builds it, the load generator and another gateway in release mode, and writes
//! `docs/performance.md`. Does the same for the agent, in `docs/agent-performance.md`.

use crate::{checkout, checkout::Checkout, failure::Failure, provision, steps::Steps};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The other gateway to compare with, a published crate: name and version.
const OTHER_GATEWAY: (&str, &str) = ("mcp-proxy", "0.6.0");

const PROGRAMS: [&str; 7] = ["build", "--locked", "--release", "--package", "wharf", "--package", "load"];

/// Measures both gateways in one run and writes the page, or prints it beside an earlier build of ours.
pub(crate) fn measure(checkout: &Checkout, steps: &mut Steps, before: Option<&Path>) -> Result<(), Failure> {
    steps.run("programs", || checkout.cargo(PROGRAMS))?;
    let other_gateway = steps.run("the other gateway", || other_gateway(checkout))?;
    steps.run("load", || {
        let built = checkout.target().join("release");
        let mut load = Command::new(built.join("load"));
        load.arg("table")
            .arg("--one-thread")
            .arg("--wharf")
            .arg(built.join("wharf"))
            .arg("--rival")
            .arg(other_gateway);
        match before {
            Some(before) => checkout::run(load.arg("--before").arg(before)),
            None => checkout::run(load.arg("--page").arg(checkout.path("docs/performance.md"))),
        }
    })
}

/// Measures the agent beside the bare stream of a model and another agent, and writes its page.
pub(crate) fn measure_agent(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    let python = provision::other_agent(checkout.tools(), steps)?;
    steps.run("programs", || checkout.cargo(PROGRAMS))?;
    steps.run("agent", || {
        let built = checkout.target().join("release");
        let mut load = Command::new(built.join("load"));
        load.arg("agent").arg("--wharf").arg(built.join("wharf")).arg("--python").arg(python);
        checkout::run(load.arg("--page").arg(checkout.path("docs/agent-performance.md")))
    })
}

/// Installs the other gateway in the tools folder, unless it is installed.
fn other_gateway(checkout: &Checkout) -> Result<PathBuf, Failure> {
    let (name, version) = OTHER_GATEWAY;
    let folder = checkout.tools().join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.exists() {
        let mut cargo = checkout.cargo_command();
        cargo.args(["install", name, "--version", version, "--locked", "--root"]).arg(&folder);
        checkout::run(&mut cargo)?;
    }
    Ok(program)
}
