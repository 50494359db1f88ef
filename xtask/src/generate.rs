//! Writes the generated files that are checked in.
//!
//! Each file is one line of `GENERATED`. The tidy test of the `wharf` crate checks that they match the program's
//! output.

use std::fs;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::steps::Steps;

struct Generated {
    path: &'static str,
    /// Arguments for `wharf`; its stdout becomes the file.
    arguments: &'static [&'static str],
}

const GENERATED: &[Generated] = &[Generated { path: "schema/agent.schema.json", arguments: &["schema"] }];

/// Updates the lock file of the fuzz workspace to the dependencies of the crates it tests, and nothing else.
const FOLLOW_DEPENDENCIES: [&str; 4] = ["update", "--workspace", "--manifest-path", "fuzz/Cargo.toml"];

pub(crate) fn all(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    for file in GENERATED {
        steps.run(file.path, || write(checkout, file))?;
    }
    steps.run("fuzz/Cargo.lock", || checkout.cargo(FOLLOW_DEPENDENCIES))
}

fn write(checkout: &Checkout, file: &Generated) -> Result<(), Failure> {
    let wharf = ["run", "--quiet", "--locked", "--package", "wharf", "--"];
    let text = checkout.cargo_stdout(wharf.iter().chain(file.arguments))?;
    let path = checkout.path(file.path);
    if fs::read(&path).is_ok_and(|old| old == text) {
        eprintln!("    unchanged");
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, &text));
    written.map_err(|error| {
        Failure::new(format!("could not write `{}`: {error}", file.path))
            .hint("make the folder writable and try again")
    })?;
    eprintln!("    written, {} bytes", text.len());
    Ok(())
}
