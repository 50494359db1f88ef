//! Builds and tests the console, the web page in `console/`. Its build output in `crates/wharf/console` is checked
//! in, so that `cargo build` needs no Node.
//!
//! npm packages are installed again only if the lock file has changed. Node comes from the provisioned tools,
//! because the tests are TypeScript, which Node runs since 22.18.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::checkout::{self, Checkout};
use crate::failure::Failure;
use crate::provision;
use crate::steps::Steps;

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };
/// The checked-in files that this module makes: the page, and the types of the API.
const BUILD_OUTPUT: [&str; 2] = ["crates/wharf/console", "console/src/lib/openapi.d.ts"];
const INSTALL: [&str; 6] =
    ["ci", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--loglevel=error"];

/// Checks the sources, builds the page, and fails if the build output differs from what is checked in.
pub(crate) fn build(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    install(checkout, steps)?;
    steps.run("console: types of the API", || write_types(checkout))?;
    for script in ["check", "lint", "build", "test"] {
        steps.run(format!("console: {script}"), || checkout::run(&mut npm(checkout, &["run", script])?))?;
    }
    steps.run("console: build output is checked in", || check_drift(checkout))
}

/// Drives the page in Chromium, in front of a gateway of this checkout.
pub(crate) fn browser(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    install(checkout, steps)?;
    if provision::chromium().is_none() {
        steps.run("provide Chromium", provision::install_chromium)?;
    }
    steps.run("console: gateway", || {
        checkout.cargo([
            "build",
            "--locked",
            "--package",
            "wharf",
            "--package",
            "hostile",
            "--bin",
            "wharf",
            "--bin",
            "hostile",
        ])
    })?;
    steps.run("console: browser", || {
        let mut command = npm(checkout, &["run", "browser"])?;
        if let Some(chromium) = provision::chromium() {
            command.env("CHROMIUM", chromium);
        }
        for (variable, name) in [("WHARF", "wharf"), ("HOSTILE", "hostile")] {
            let program = format!("debug/{name}{}", env::consts::EXE_SUFFIX);
            command.env(variable, checkout.target().join(program));
        }
        command.env("WHARF_TOOLS", checkout.tools());
        checkout::run(&mut command)
    })
}

/// Writes the types of the API from the document of the gateway of this checkout.
fn write_types(checkout: &Checkout) -> Result<(), Failure> {
    let wharf = ["run", "--quiet", "--locked", "--package", "wharf", "--", "schema", "--api"];
    let document = checkout.cargo_stdout(wharf)?;
    let path = checkout.target().join("openapi.json");
    fs::write(&path, document)
        .map_err(|error| Failure::new(format!("could not write `{}`: {error}", checkout.shown(&path))))?;
    checkout::run(npm(checkout, &["run", "types"])?.env("OPENAPI", &path))
}

fn install(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    let lock = fs::read(checkout.path("console/package-lock.json")).unwrap_or_default();
    let stamp = checkout.path("console/node_modules/.installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    steps.run("console: npm packages", || {
        checkout::run(&mut npm(checkout, &INSTALL)?)?;
        fs::write(&stamp, lock)
            .map_err(|error| Failure::new(format!("could not write `{}`: {error}", checkout.shown(&stamp))))
    })
}

fn npm(checkout: &Checkout, arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(NPM);
    command.current_dir(checkout.path("console")).env("PATH", path(checkout)?).args(arguments);
    Ok(command)
}

/// `PATH` with the provisioned Node first.
fn path(checkout: &Checkout) -> Result<OsString, Failure> {
    let node: PathBuf = checkout.tools().join("node/node_modules/node/bin");
    let old = env::var_os("PATH").unwrap_or_default();
    env::join_paths(std::iter::once(node).chain(env::split_paths(&old)))
        .map_err(|error| Failure::new(format!("could not extend PATH: {error}")))
}

fn check_drift(checkout: &Checkout) -> Result<(), Failure> {
    let mut git = Command::new("git");
    git.current_dir(checkout.path(".")).args(["status", "--porcelain", "--"]).args(BUILD_OUTPUT);
    let line = checkout::announce(&git);
    let output = git.output().map_err(|error| checkout::could_not_start(&line, &error))?;
    if output.status.success() && output.stdout.is_empty() {
        return Ok(());
    }
    let files = String::from_utf8_lossy(&output.stdout).into_owned();
    Err(Failure::new(format!("the build output of the console is not what is checked in:\n{files}"))
        .hint(format!("commit `{}` together with their sources", BUILD_OUTPUT.join("` and `"))))
}
