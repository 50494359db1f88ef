//! `wharf schema`: prints the JSON Schema of the agent file, for editors.

use crate::{exit::Exit, output::Output};

pub(super) fn run(output: Output) -> Exit {
    output.json(&wharf_config::schema());
    Exit::Success
}
