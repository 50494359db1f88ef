//! `wharf lock --try SERVER=VERSION`: runs the locked and another version of a server side by side, and compares what they
//! offer and what they answer to recorded calls.

mod answers;
mod trial_calls;
mod trial_report;

use super::{
    current::{check_secrets, locked_server, read_all},
    lock_path::LockPath,
    report::Changes,
};
use crate::{
    app::{self, App, ConnectedSource, Connections},
    cli::{GlobalOptions, LockArgs},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    load_agent::load_agent,
    output::Output,
};
use answers::{AnswerVerdict, compare_answers};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use trial_calls::{TrialCall, choose_calls, read_calls};
use trial_report::{TrialReport, print_report};
use wharf_config::{LockFile, LockUse, LockedServer, MaskedString, Overrides, Source, with_version};
use wharf_runtime::{Call, CallRecord, lock::DifferenceSeverity};

/// Name of the other version in the plan of a trial. The name of a source has no space.
const CANDIDATE: &str = "the new version";

/// A call that both versions answered.
struct TriedCall {
    tool: String,
    arguments: Value,
    verdict: AnswerVerdict,
    took: [Duration; 2],
}

/// Runs the trial.
pub(super) fn run(
    common: &GlobalOptions,
    args: LockArgs,
    wanted: &str,
    environment: &Environment,
    output: Output,
) -> Exit {
    let candidate = match candidate(common, wanted, environment) {
        Ok(candidate) => candidate,
        Err(error) => return output.settle(Err(error)),
    };
    let path = LockPath::of(common, environment);
    let mut environment = environment.clone();
    environment.lock = LockUse::PinOnly;
    app::run(common, &environment, output, move |app| {
        Box::pin(async move { output.settle(compare(app, args, candidate, path).await) })
    })
}

/// Returns the entry of the agent file with the version to try.
fn candidate(
    common: &GlobalOptions,
    wanted: &str,
    environment: &Environment,
) -> Result<Source, CommandError> {
    let form = || CommandError::usage("--try needs SERVER=VERSION, for example `--try time=2026.10.19`");
    let (name, version) = wanted.split_once('=').ok_or_else(form)?;
    let mut environment = environment.clone();
    environment.lock = LockUse::Ignore;
    let (loaded, diagnostics) = load_agent(common, &environment);
    let (plan, _) = loaded.ok_or_else(|| CommandError::usage(diagnostics.render(false).trim_end()))?;
    let source = plan.sources.into_iter().find(|it| it.name.expose() == name);
    let source = source.ok_or_else(|| CommandError::usage(&format!("there is no server '{name}'")))?;
    with_version(&source, version).map_err(|why| CommandError::usage(&why))
}

async fn compare(
    mut app: App,
    args: LockArgs,
    candidate: Source,
    path: LockPath,
) -> Result<Exit, CommandError> {
    let before = path.read()?.ok_or_else(|| path.missing())?;
    let name = candidate.name.expose().to_owned();
    let locked = before.servers.get(&name).ok_or_else(|| {
        CommandError::usage(&format!("`{name}` is not locked\nhelp: run `wharf lock {name}` first"))
    })?;
    let calls = read_calls(&app, &name, args.cassette.as_deref(), args.calls).await?;
    let (calls, skipped) = choose_calls(calls, &name, locked, &app.options.repeatable, &args.also);
    let current = app.plan.sources.iter().find(|it| it.name.expose() == name).cloned();
    let written_plan = app.plan.clone();
    let candidate = Source { name: MaskedString::plain(CANDIDATE), ..candidate };
    app.plan.sources = current.into_iter().chain([candidate]).collect();
    for source in &mut app.plan.sources {
        // The lock and the recorded calls have the server's own words.
        source.overrides = Overrides::default();
    }
    let connections = read_all(&app, |_| true).await;
    let [old, new] = [&name, CANDIDATE].map(|name| connections.sources.iter().find(|it| it.is_named(name)));
    let (Some(_), Some(new), false) = (old, new, has_failures(&connections)) else {
        connections.close().await;
        return Ok(Exit::Unavailable);
    };
    let found = locked_server(new, &connections).await;
    let tried = try_calls(&connections, &app, &name, calls).await;
    connections.close().await;
    let one = |server: &LockedServer| LockFile { servers: [(name.clone(), server.clone())].into() };
    let report = TrialReport { changes: Changes::between(&one(locked), &one(&found)), tried, skipped };
    let is_same = report.tried.iter().all(|it| it.verdict == AnswerVerdict::Same)
        && report.changes.worst() < Some(DifferenceSeverity::Risky);
    let promotes = args.promote && (is_same || args.accept.is_some());
    if promotes {
        check_secrets(&written_plan, &name, &found)?;
        let mut after = before.clone();
        after.servers.insert(name, found);
        path.write_valid(&after)?;
    }
    print_report(&report, promotes, app.output);
    if args.promote && !promotes {
        let complaint = "the versions differ, and wharf.lock is unchanged\nhelp: review it, then repeat with `--promote --accept`";
        app.output.print_error(&format!("error: {complaint}\n"));
    }
    Ok(if is_same || promotes { Exit::Success } else { Exit::ToolError })
}

fn has_failures(connections: &Connections) -> bool {
    let is_whole = |it: &ConnectedSource| it.is_connected() && it.unread.is_empty();
    !connections.sources.iter().all(is_whole)
}

/// Sends each call to both versions. They alternate in being first, so that neither profits from a warm cache.
async fn try_calls(
    connections: &Connections,
    app: &App,
    name: &str,
    calls: Vec<TrialCall>,
) -> Vec<TriedCall> {
    let mut tried = Vec::new();
    for (at, TrialCall { tool, arguments }) in calls.into_iter().enumerate() {
        let mut order = [name, CANDIDATE];
        if at % 2 == 1 {
            order.reverse();
        }
        let mut records: Vec<Arc<CallRecord>> = Vec::new();
        for source in order {
            let call = Call::new(format!("{source}:{tool}")).arguments(arguments.clone());
            records.push(connections.handle.call(call).await);
        }
        if at % 2 == 1 {
            records.reverse();
        }
        let [old, new] = [&records[0], &records[1]];
        let ignored = app.plan.record.ignored(&format!("{name}:{tool}"));
        let verdict = compare_answers(old, new, &ignored);
        tried.push(TriedCall { tool, arguments, verdict, took: [old.took, new.took] });
    }
    tried
}
