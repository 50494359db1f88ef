//! `wharf schema`: what an editor needs to complete and check an agent file.

use crate::{exit::Exit, output::Output};

pub(super) fn run(output: Output) -> Exit {
    output.json(&wharf_runtime::config::schema());
    Exit::Fine
}
