//! Runs the commands of the CLI: one submodule per command, and the helpers that several commands share.

mod add;
mod agent_file;
mod call;
mod check;
mod completions;
mod connect;
mod doctor;
mod env_files;
mod explain;
mod files;
mod grant;
mod import_report;
mod init;
mod list;
mod listening;
mod login;
mod prompt;
mod read;
mod remote;
mod schema;
mod serve;
mod sources;
mod stdio;
mod todo;
mod tools;

use crate::{
    agent_input,
    cli::{Cli, Colour, Command, Common, USUAL_FILE},
    command_error::CommandError,
    dock,
    exit::Exit,
    logs::{self, DefaultLogLevel},
    output::{Document, Output},
    surroundings::{Surroundings, is_json_wanted},
};
use remote::Remote;
pub(crate) use serve::Token;
use std::{
    io::{self, IsTerminal},
    path::Path,
};
use wharf_config::{Diagnostics, Plan, Settings, load};

/// Runs one command and returns its exit code.
pub(crate) fn run(cli: Cli) -> Exit {
    let document = Document::of(&cli);
    let Cli { common, command } = cli;
    let output = Output { json: common.json, quiet: common.quiet, colour: common.color, document };
    logs::install(
        &common,
        match command {
            Command::Todo(_) | Command::Serve(_) => DefaultLogLevel::Info,
            Command::Stdio => DefaultLogLevel::Warnings,
            _ => DefaultLogLevel::Errors,
        },
    );
    let mut around = match Surroundings::look() {
        Ok(around) => around,
        Err(error) => {
            let complaint = format!("the current directory cannot be used: {error}");
            return output.fail(&CommandError::usage(&complaint));
        }
    };
    if let Some(complaint) = agent_input::conflict(&common, &command) {
        return output.fail(&CommandError::usage(complaint));
    }
    around.protect_state();
    if command.keeps_state()
        && let Some(warning) = around.find_writable_state()
    {
        output.say(&warning);
    }
    dispatch(command, &common, &around, output)
}

fn dispatch(command: Command, common: &Common, around: &Surroundings, output: Output) -> Exit {
    match command {
        Command::Init(args) => init::run(common, &args, around, output),
        Command::Add(args) => add::run(common, &args, around, output),
        Command::Connect(args) => connect::run(common, &args, around, output),
        Command::Check { strict } => check::run(common, strict, around, output),
        Command::Explain { name } => explain::run(common, name.as_deref(), around, output),
        Command::Doctor { name } => {
            dock::run(common, around, output, |dock| Box::pin(doctor::run(dock, name)))
        }
        Command::Tools(args) if args.cached => tools::cached(&around.remembered(&common.file), &args, output),
        Command::Tools(args) => {
            let remembered = around.remembered(&common.file);
            dock::run(common, around, output, |dock| Box::pin(tools::run(dock, args, remembered)))
        }
        Command::Prompts { name } => {
            dock::run(common, around, output, |dock| Box::pin(list::prompts(dock, name)))
        }
        Command::Resources { name } => {
            dock::run(common, around, output, |dock| Box::pin(list::resources(dock, name)))
        }
        Command::Call(args) => {
            let gateway = if args.direct { None } else { running_gateway(common, around) };
            dock::run(common, around, output, |dock| Box::pin(call::run(dock, args, gateway)))
        }
        Command::Prompt { name, arguments } => {
            dock::run(common, around, output, |dock| Box::pin(prompt::run(dock, name, arguments)))
        }
        Command::Read { uri, save } => {
            dock::run(common, around, output, |dock| Box::pin(read::run(dock, uri, save)))
        }
        Command::Login { name, logout } => {
            dock::run(common, around, output, move |dock| Box::pin(login::run(dock, name, logout)))
        }
        Command::Todo(args) => todo::run(common, &args, around, output),
        Command::Serve(args) => {
            let database = args.database.clone();
            let (token, followed) = (around.token(), (common.clone(), around.clone()));
            dock::serve(common, around, database.as_deref(), output, |dock| {
                Box::pin(serve::run(dock, args, token, followed))
            })
        }
        Command::Sources(args) => sources::run(&args, around, output),
        Command::Stdio => {
            let followed = (common.clone(), around.clone());
            dock::serve(common, around, None, output, |dock| Box::pin(stdio::run(dock, followed)))
        }
        Command::Schema => schema::run(output),
        Command::Completions { shell } => completions::run(shell, output),
    }
}

/// Reports a usage error. Requested help and version go to standard output and succeed.
pub(crate) fn explain_usage(error: &clap::Error) -> Exit {
    use clap::error::ErrorKind;

    let (json, colour) = (is_json_wanted(), Colour::Auto);
    let output = Output { json, quiet: false, colour, document: Document::Plain };
    let rendered = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match colour.wanted(io::stdout().is_terminal()) {
                true => output.data(&rendered.ansi().to_string()),
                false => output.data(&rendered.to_string()),
            }
            Exit::Fine
        }
        _ if json => {
            let text = rendered.to_string();
            let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
            let tip = rest.lines().find_map(|it| it.trim().strip_prefix("tip: "));
            let help = tip.unwrap_or("`--help` shows what can be typed");
            output.fail(&CommandError::usage(&format!("{message}\nhelp: {help}")))
        }
        _ => {
            // If stderr cannot be written, there is no other way to report the error.
            let _ = error.print();
            Exit::Usage
        }
    }
}

/// Returns the gateway that runs in this state folder, if it serves the same agent file with the same settings.
fn running_gateway(common: &Common, around: &Surroundings) -> Option<Remote> {
    // Another process cannot read our standard input, and a gateway may have other settings than `--settings` names.
    let is_own = common.settings.is_some() || common.file == Path::new("-");
    let gateway = around.running_gateway().filter(|_| !is_own)?;
    let file = around.folder.join(&common.file);
    let file = file.canonicalize().unwrap_or(file);
    if gateway.agent_file != file {
        return None;
    }
    Remote::of_gateway(&gateway.url, around.token())
}

/// The agent file to use when there is none: the built-in Todo server.
const TODO: &str =
    "tools:\n  - name: todo\n    description: A list of todos\n    type: mcp\n    server: builtin:todo\n";

/// Checks whether an agent file exists. One named with `-f` counts as existing, so that loading reports its absence.
pub(crate) fn has_agent_file(common: &Common) -> bool {
    let is_there = |name: &str| Path::new(name).exists();
    common.file != Path::new(USUAL_FILE) || is_there(USUAL_FILE) || is_there("agent.yml")
}

/// Loads the agent file like [`load_agent`]. Without one, loads a plan with the built-in Todo server instead.
pub(crate) fn load_agent_or_todo(
    common: &Common,
    around: &Surroundings,
) -> (Option<(Plan, Settings)>, Diagnostics) {
    if has_agent_file(common) {
        return load_agent(common, around);
    }
    let settings = around.settings(common.settings.as_deref());
    let loaded = settings.map(|settings| {
        let (plan, diagnostics) = load(TODO, &around.env_for(&common.file, settings.grants.clone()));
        (plan.map(|it| (it, settings)), diagnostics)
    });
    loaded.unwrap_or_else(|diagnostics| (None, diagnostics))
}

/// Loads the agent file with the operator's settings. The diagnostics hold every error.
pub(crate) fn load_agent(common: &Common, around: &Surroundings) -> (Option<(Plan, Settings)>, Diagnostics) {
    let loaded = around.settings(common.settings.as_deref()).and_then(|settings| {
        let text = agent_input::read(&common.file)?;
        let (plan, diagnostics) = load(text, &around.env_for(&common.file, settings.grants.clone()));
        Ok((plan.map(|it| (it, settings)), diagnostics))
    });
    loaded.unwrap_or_else(|diagnostics| (None, diagnostics))
}

/// Returns the `-f` flag to print in suggested commands. Empty for the default file name.
fn flag_for(agent_file: &Path) -> String {
    if agent_file == Path::new(USUAL_FILE) { String::new() } else { format!(" -f {}", agent_file.display()) }
}
