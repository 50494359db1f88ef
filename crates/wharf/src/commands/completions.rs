//! `wharf completions SHELL`: prints a shell completion script.

use crate::{cli::Cli, exit::Exit, output::Output};
use clap::CommandFactory;

pub(super) fn run(shell: clap_complete::Shell, output: Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "wharf", &mut script);
    output.data(&String::from_utf8_lossy(&script));
    Exit::Success
}
