//! Runs the commands of the CLI: one submodule per command, and the helpers that several commands share.

mod add;
mod agent_file;
mod attachment;
mod call;
mod chat;
mod check;
mod completions;
mod connect;
mod console;
mod conversations;
mod doctor;
mod env_files;
mod explain;
mod files;
mod gateway_client;
mod grant;
mod import_report;
mod init;
mod lint;
mod list;
mod listen_error;
mod lock;
mod login;
mod mock;
mod prompt;
mod read;
mod recording;
mod replay;
mod run;
mod schema;
mod serve;
mod sources;
mod stdio;
mod tasks;
mod test;
mod todo;
mod tools;
mod why;

use crate::{
    agent_input, app,
    cli::{CallArgs, CassetteArgs, Cli, Colour, Command, DEFAULT_AGENT_FILE, GlobalOptions},
    command_error::CommandError,
    environment::{Environment, is_json_wanted},
    exit::Exit,
    logs::{self, DefaultLogLevel},
    output::{JsonDocument, Output},
};
use gateway_client::GatewayClient;
use std::{
    io::{self, IsTerminal},
    path::Path,
};

/// Runs one command and returns its exit code.
pub(crate) fn run(cli: Cli) -> Exit {
    let document = JsonDocument::of(&cli);
    let Cli { common, command } = cli;
    let output = Output { json: common.json, quiet: common.quiet, colour: common.color, document };
    logs::install(
        &common,
        match command {
            Command::Todo(_) | Command::Serve(_) => DefaultLogLevel::Info,
            Command::Stdio(_) => DefaultLogLevel::Warnings,
            _ => DefaultLogLevel::Errors,
        },
    );
    let mut environment = match Environment::from_process() {
        Ok(environment) => environment,
        Err(error) => {
            let complaint = format!("the current directory cannot be used: {error}");
            return output.fail(&CommandError::usage(&complaint));
        }
    };
    if let Some(complaint) = standard_input_conflict(&common, &command) {
        return output.fail(&CommandError::usage(complaint));
    }
    environment.protect_state();
    if command.uses_state_folder()
        && let Some(warning) = environment.find_writable_state()
    {
        output.print_info(&warning);
    }
    if matches!(command, Command::Run(_) | Command::Chat(_) | Command::Serve(_))
        && let Err(complaint) = environment.add_state_variables()
    {
        return output.fail(&CommandError::new("ConfigError", &complaint, Exit::Usage));
    }
    dispatch(command, &common, &environment, output)
}

/// Returns an error message if the command cannot read the agent file from standard input.
fn standard_input_conflict(common: &GlobalOptions, command: &Command) -> Option<&'static str> {
    if !agent_input::is_standard_input(&common.file) {
        return None;
    }
    match command {
        Command::Init(_) | Command::Add(_) => {
            Some("`-f -` is standard input, and this command writes the agent file\nhelp: name a file")
        }
        Command::Connect(_) => {
            Some("`-f -` is standard input, which the client cannot pass to wharf\nhelp: name a file")
        }
        Command::Chat(_) => Some(
            "`-f -` is standard input, and `wharf chat` reads messages from there\nhelp: put the agent file into a file",
        ),
        Command::Stdio(_) => Some(
            "`-f -` is standard input, and `wharf stdio` reads its client from there\nhelp: put the agent file into a file",
        ),
        Command::Run(args) if args.message.as_deref().is_none_or(|it| it == agent_input::STANDARD_INPUT) => {
            Some("`-f -` and the message both read standard input\nhelp: put the agent file into a file")
        }
        Command::Call(args) if args.args.as_deref() == Some(agent_input::STANDARD_INPUT) => Some(
            "`-f -` and `--args -` both read standard input\nhelp: use `--args @FILE`, or put the agent file into a file",
        ),
        _ => None,
    }
}

fn dispatch(command: Command, common: &GlobalOptions, environment: &Environment, output: Output) -> Exit {
    match command {
        Command::Init(args) => init::run(common, &args, environment, output),
        Command::Add(args) => add::run(common, &args, environment, output),
        Command::Connect(args) => connect::run(common, &args, environment, output),
        Command::Check { strict } => check::run(common, strict, environment, output),
        Command::Explain { name } => explain::run(common, name.as_deref(), environment, output),
        Command::Doctor { name } => {
            app::run(common, environment, output, |app| Box::pin(doctor::run(app, name)))
        }
        Command::Tools(args) if args.cached => {
            tools::cached(&environment.tool_cache(&common.file), &args, output)
        }
        Command::Tools(args) => {
            let tool_cache = environment.tool_cache(&common.file);
            app::run(common, environment, output, |app| Box::pin(tools::run(app, args, tool_cache)))
        }
        Command::Prompts { name } => {
            app::run(common, environment, output, |app| Box::pin(list::prompts(app, name)))
        }
        Command::Resources { name } => {
            app::run(common, environment, output, |app| Box::pin(list::resources(app, name)))
        }
        Command::Call(args) => run_call(args, common, environment, output),
        Command::Tasks { command } => {
            app::run(common, environment, output, |app| Box::pin(tasks::run(app, command)))
        }
        Command::Conversations { command } => {
            app::run(common, environment, output, |app| Box::pin(conversations::run(app, command)))
        }
        Command::Lint(args) => app::run(common, environment, output, |app| Box::pin(lint::run(app, args))),
        Command::Lock(args) => lock::run(common, args, environment, output),
        Command::Why(args) => {
            let (tool_cache, token) = (environment.tool_cache(&common.file), environment.token());
            app::run(common, environment, output, |app| Box::pin(why::run(app, args, tool_cache, token)))
        }
        Command::Mock(args) => mock::run(&args, output),
        Command::Test(args) => test::run(common, &args, environment, output),
        Command::Prompt { name, arguments } => {
            app::run(common, environment, output, |app| Box::pin(prompt::run(app, name, arguments)))
        }
        Command::Read { uri, save } => {
            app::run(common, environment, output, |app| Box::pin(read::run(app, uri, save)))
        }
        Command::Login { name, logout } => {
            app::run(common, environment, output, move |app| Box::pin(login::run(app, name, logout)))
        }
        Command::Todo(args) => todo::run(common, &args, environment, output),
        Command::Sources(args) => sources::run(&args, environment, output),
        Command::Console(args) => console::run(&args, environment, output),
        Command::Run(_) | Command::Chat(_) | Command::Replay(_) | Command::Serve(_) | Command::Stdio(_) => {
            dispatch_agent(command, common, environment, output)
        }
        Command::Schema { api } => schema::run(api, output),
        Command::Completions { shell } => completions::run(shell, output),
    }
}

/// Runs the commands that can answer from a recording.
fn dispatch_agent(
    command: Command,
    common: &GlobalOptions,
    environment: &Environment,
    output: Output,
) -> Exit {
    let is_replay = match &command {
        Command::Run(args) => args.cassette.replay.is_some(),
        Command::Chat(args) => args.cassette.replay.is_some(),
        Command::Serve(args) => args.cassette.replay.is_some(),
        Command::Stdio(args) => args.replay.is_some(),
        _ => true,
    };
    let environment = environment.for_replay(is_replay);
    let followed = environment.clone();
    match command {
        Command::Run(args) => {
            app::serve(common, &environment, output, |app| Box::pin(run::run(app, args, followed)))
        }
        Command::Chat(args) => {
            app::serve(common, &environment, output, |app| Box::pin(chat::run(app, args, followed)))
        }
        Command::Replay(args) => {
            app::run(common, &environment, output, |app| Box::pin(replay::run(app, args, followed)))
        }
        Command::Serve(args) => {
            let database = args.database.clone();
            let (token, followed) = (environment.token(), (common.clone(), followed));
            app::serve_gateway(common, &environment, database.as_deref(), output, |app| {
                Box::pin(serve::run(app, args, token, followed))
            })
        }
        Command::Stdio(args) => {
            let followed = (common.clone(), followed);
            app::serve(common, &environment, output, |app| Box::pin(stdio::run(app, args, followed)))
        }
        other => dispatch(other, common, &environment, output),
    }
}

fn run_call(args: CallArgs, common: &GlobalOptions, environment: &Environment, output: Output) -> Exit {
    // The gateway waits for a task itself, and has no recording and no faults of ours.
    let CassetteArgs { record, timings: _, replay, live: _, faults } = &args.cassette;
    let has_recording = record.is_some() || replay.is_some() || faults.is_some();
    let direct = args.direct || args.no_wait || has_recording;
    let environment = &environment.for_replay(args.cassette.replay.is_some());
    let gateway = if direct { None } else { running_gateway(common, environment) };
    app::run(common, environment, output, |app| Box::pin(call::run(app, args, gateway)))
}

/// Reports a usage error. Requested help and version go to standard output and succeed.
pub(crate) fn report_usage_error(error: &clap::Error) -> Exit {
    use clap::error::ErrorKind;

    let (json, colour) = (is_json_wanted(), Colour::Auto);
    let output = Output { json, quiet: false, colour, document: JsonDocument::Plain };
    let rendered = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match colour.is_enabled(io::stdout().is_terminal()) {
                true => output.data(&rendered.ansi().to_string()),
                false => output.data(&rendered.to_string()),
            }
            Exit::Success
        }
        _ if json => {
            let text = rendered.to_string();
            let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
            let tip = rest.lines().find_map(|it| it.trim().strip_prefix("tip: "));
            let help = tip.unwrap_or("`--help` lists the commands and options");
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
fn running_gateway(common: &GlobalOptions, environment: &Environment) -> Option<GatewayClient> {
    // Another process cannot read our standard input, and a gateway may have other settings than `--settings` names.
    let is_own = common.settings.is_some() || common.file == Path::new("-");
    let gateway = environment.running_gateway().filter(|_| !is_own)?;
    let file = environment.folder.join(&common.file);
    let file = file.canonicalize().unwrap_or(file);
    if gateway.agent_file != file {
        return None;
    }
    GatewayClient::for_local_gateway(&gateway.url, environment.token())
}

/// Returns the `-f` flag to print in suggested commands. Empty for the default file name.
fn agent_file_flag(agent_file: &Path) -> String {
    if agent_file == Path::new(DEFAULT_AGENT_FILE) {
        String::new()
    } else {
        format!(" -f {}", agent_file.display())
    }
}
