//! `wharf lock`: writes `wharf.lock`, compares the servers with it, and accepts changes.

mod current;
mod lock_path;
mod remote;
mod report;
mod trial;

use crate::{
    app::{self, App},
    cli::{GlobalOptions, LockArgs},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    load_agent::load_agent,
    output::Output,
    terminal,
};
use current::current_lock;
use lock_path::{LockPath, read_file};
use remote::RemoteRequest;
use report::{Changes, text};
use serde_json::{Value, json};
use std::path::Path;
use wharf_config::{LockFile, LockUse, Plan, Severity};
use wharf_runtime::lock::DifferenceSeverity;

/// Runs the command.
pub(super) fn run(common: &GlobalOptions, args: LockArgs, environment: &Environment, output: Output) -> Exit {
    let path = LockPath::of(common, environment);
    if let Some(before) = &args.against {
        return output.settle(compare_files(before, &path, args.diff.flatten().as_deref(), output));
    }
    if let Some(wanted) = args.try_version.clone() {
        return trial::run(common, args, &wanted, environment, output);
    }
    if args.check && args.offline {
        return check_offline(common, environment, output);
    }
    if let Some(server) = &args.from_server {
        return remote::run(server, &RemoteRequest::Download(&path), environment, output);
    }
    if let (Some(server), Some(ids)) = (&args.server, &args.accept) {
        if ids.is_empty() {
            let complaint = "`--accept` with `--server` needs the tools to accept\nhelp: `--accept SERVER:TOOL --server URL`";
            return output.settle(Err(CommandError::usage(complaint)));
        }
        return remote::run(server, &RemoteRequest::Accept(ids), environment, output);
    }
    let lock = if args.upgrade { LockUse::Ignore } else { LockUse::PinOnly };
    let mut environment = environment.clone();
    environment.lock = lock;
    app::run(common, &environment, output, move |app| Box::pin(compare_and_write(app, args, path)))
}

/// `--against FILE`: compares two files.
fn compare_files(
    before: &Path,
    path: &LockPath,
    filter: Option<&str>,
    output: Output,
) -> Result<Exit, CommandError> {
    let (before, after) = (read_file(before)?, path.read()?.ok_or_else(|| path.missing())?);
    let changes = Changes::between(&before, &after).only(filter);
    report(&changes, false, output);
    Ok(if changes.matter() { Exit::ToolError } else { Exit::Success })
}

/// `--check --offline`: loads the agent file with its lock, which checks every hash and every pin. It starts nothing, so it
/// needs no secrets.
fn check_offline(common: &GlobalOptions, environment: &Environment, output: Output) -> Exit {
    let environment = &environment.for_replay(true);
    let (loaded, diagnostics) = load_agent(common, environment);
    let has = |codes: &[&str]| diagnostics.items().iter().any(|it| codes.contains(&it.code));
    let path = LockPath::of(common, environment);
    if loaded.is_some() && !has(&["L-04"]) {
        return match path.read() {
            Ok(Some(_)) => Exit::Success,
            Ok(None) => output.fail(&path.missing()),
            Err(error) => output.fail(&error),
        };
    }
    output.diagnostics(&diagnostics);
    let is_other = |code: &str| !matches!(code, "L-04" | "L-05");
    let has_other_errors =
        diagnostics.items().iter().any(|it| it.severity == Severity::Error && is_other(it.code));
    if has_other_errors { Exit::Usage } else { Exit::ToolError }
}

async fn compare_and_write(mut app: App, args: LockArgs, path: LockPath) -> Exit {
    let output = app.output;
    let known: Vec<&str> = app.plan.sources.iter().map(|it| it.name.expose()).collect();
    if let Some(name) = args.names.iter().find(|name| !known.contains(&name.as_str())) {
        return output.fail(&CommandError::usage(&format!("there is no server '{name}'")));
    }
    let written_plan = app.plan.clone();
    // The lock has the server's own words.
    app.plan.sources.iter_mut().for_each(|it| it.overrides = Default::default());
    let before = match path.read() {
        Ok(before) => before,
        Err(error) => return output.fail(&error),
    };
    if before.is_none() && (args.check || args.diff.is_some()) {
        return output.fail(&path.missing());
    }
    let filter = args.diff.clone().flatten();
    let servers = args.names.iter().map(String::as_str).chain(filter.iter().map(|it| source_name(it)));
    let servers: Vec<String> = servers.map(str::to_owned).collect();
    let current = current_lock(&app, |name| servers.is_empty() || servers.iter().any(|it| it == name)).await;
    let after = current.merged(before.as_ref(), servers.is_empty());
    let changes = Changes::between(&before.clone().unwrap_or_default(), &after).only(filter.as_deref());
    let done = match args.check || args.diff.is_some() {
        true => Ok(checked(&changes, current.has_failures(), output)),
        false => written(&changes, &current, before.as_ref(), after, &args, &path, (&written_plan, output)),
    };
    output.settle(done)
}

/// Returns the part of `SOURCE[:TOOL]` before the colon.
fn source_name(id: &str) -> &str {
    id.split(':').next().unwrap_or(id)
}

fn checked(changes: &Changes, has_failures: bool, output: Output) -> Exit {
    report(changes, false, output);
    match (changes.matter(), has_failures) {
        (true, _) => Exit::ToolError,
        (false, true) => Exit::Unavailable,
        (false, false) => Exit::Success,
    }
}

fn written(
    changes: &Changes,
    current: &current::CurrentLock,
    before: Option<&LockFile>,
    after: LockFile,
    args: &LockArgs,
    path: &LockPath,
    (plan, output): (&Plan, Output),
) -> Result<Exit, CommandError> {
    if current.has_failures() {
        return Ok(Exit::Unavailable);
    }
    current.check_secrets(plan)?;
    let chosen = args.accept.as_deref().unwrap_or_default();
    let accepted = match (before, chosen) {
        (Some(before), [_, ..]) => changes.accept(before, &after, chosen)?,
        _ => after,
    };
    let worst = changes.worst();
    let needs_accept = before.is_some() && args.accept.is_none() && worst >= Some(DifferenceSeverity::Risky);
    if needs_accept && !is_confirmed(changes, output) {
        report(changes, false, output);
        let complaint = "the changes are not accepted, and wharf.lock is unchanged\nhelp: review them, then repeat with `--accept` \
                         or `--accept SERVER:TOOL`";
        output.print_error(&format!("error: {complaint}\n"));
        return Ok(Exit::ToolError);
    }
    path.write_valid(&accepted)?;
    report(changes, true, output);
    for warning in current.unknown_packages() {
        output.print_info(&format!("warning: {warning}"));
    }
    Ok(Exit::Success)
}

/// Shows the changes on a terminal and asks whether to accept them.
fn is_confirmed(changes: &Changes, output: Output) -> bool {
    if output.json || !terminal::is_available() {
        return false;
    }
    output.data(&text(changes));
    terminal::confirm("accept these changes?").unwrap_or(false)
}

fn report(changes: &Changes, is_written: bool, output: Output) {
    match output.json {
        true => output.json(&json!({ "changes": changes.to_json(), "written": is_written })),
        false => output.data(&text(changes)),
    }
}

impl Output {
    /// Returns the exit code of a command, and reports its error.
    fn settle(self, done: Result<Exit, CommandError>) -> Exit {
        let report = |error: CommandError| self.fail_with(&error, &[("changes", Value::Null)]);
        done.unwrap_or_else(report)
    }
}
