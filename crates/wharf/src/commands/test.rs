//! `wharf test`: runs scenarios against recordings, without servers, model or network.

mod run_scenario;

use crate::{
    cli::{GlobalOptions, TestArgs},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    output::Output,
    scenario::{ScenarioFile, ScenarioResult, ScenarioVerdict, find_scenarios, to_junit},
};
use run_scenario::run_scenario;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use wharf_config::Glob;

/// Runs the scenarios that the arguments select.
pub(super) fn run(
    common: &GlobalOptions,
    args: &TestArgs,
    environment: &Environment,
    output: Output,
) -> Exit {
    let folder = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &folder[..] } else { &args.paths };
    let found = match find_scenarios(paths) {
        Ok(found) => found,
        Err(complaint) => return output.fail(&CommandError::usage(&complaint)),
    };
    let only = args.only.as_ref().map(Glob::new);
    let mut scenarios: Vec<ScenarioFile> = found.iter().map(|it| ScenarioFile::load(it)).collect();
    scenarios.retain(|it| {
        let path = it.path.display().to_string();
        only.as_ref().is_none_or(|only| only.matches(&it.name()) || only.matches(&path))
    });
    if scenarios.is_empty() {
        let complaint = "there are no scenarios\nhelp: their files are called NAME.test.yaml";
        return output.fail(&CommandError::usage(complaint));
    }
    // A scenario that is recorded again asks the real model and the real servers, one after the other.
    let jobs = if args.update { 1 } else { args.jobs.unwrap_or_else(|| environment.cores()) };
    let results = run_all(&scenarios, jobs, |it| run_scenario(common, it, args.update, environment));
    report(&results, args, output)
}

/// Runs all scenarios, some of them at the same time. Returns the results in the order of the scenarios.
fn run_all(
    scenarios: &[ScenarioFile],
    jobs: usize,
    run: impl Fn(&ScenarioFile) -> ScenarioResult + Sync,
) -> Vec<ScenarioResult> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((at, scenario)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            scenarios.get(at).map(|it| (at, it))
        } {
            let result = run(scenario);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, scenarios.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn report(results: &[ScenarioResult], args: &TestArgs, output: Output) -> Exit {
    let is_failed = |it: &&ScenarioResult| matches!(it.verdict, ScenarioVerdict::Failed(_));
    let is_unusable = |it: &&ScenarioResult| matches!(it.verdict, ScenarioVerdict::Unusable(_));
    let (failed, unusable) =
        (results.iter().filter(is_failed).count(), results.iter().filter(is_unusable).count());
    let passed = results.len() - failed - unusable;
    if output.json {
        let scenarios: Vec<Value> = results.iter().map(result_json).collect();
        output.json(&json!({
            "scenarios": scenarios, "passed": passed, "failed": failed, "unusable": unusable,
        }));
    } else {
        results.iter().for_each(|it| output.data(&result_text(it)));
        let unusable = if unusable == 0 { String::new() } else { format!(", {unusable} unusable") };
        output.data(&format!("{passed} passed, {failed} failed{unusable}\n"));
    }
    if let Some(file) = &args.junit
        && let Err(error) = std::fs::write(file, to_junit(results))
    {
        output.print_error(&format!("error: {} cannot be written: {error}\n", file.display()));
        return Exit::OutputError;
    }
    match (unusable, failed) {
        (0, 0) => Exit::Success,
        (0, _) => Exit::ToolError,
        _ => Exit::Usage,
    }
}

fn result_text(result: &ScenarioResult) -> String {
    let (word, lines) = match &result.verdict {
        ScenarioVerdict::Passed => ("ok  ", Vec::new()),
        ScenarioVerdict::Failed(failures) => ("FAIL", failures.clone()),
        ScenarioVerdict::Unusable(why) => ("FAIL", vec![why.clone()]),
    };
    let (name, path) = (&result.name, result.path.display());
    let mut text = match *name == path.to_string() {
        true => format!("{word}  {name}\n"),
        false => format!("{word}  {name} ({path})\n"),
    };
    let notes = result.notes.iter().map(|it| format!("note: {it}"));
    for line in lines.iter().flat_map(|it| it.lines()).map(str::to_owned).chain(notes) {
        text.push_str(&format!("      {line}\n"));
    }
    text
}

fn result_json(result: &ScenarioResult) -> Value {
    let (verdict, failures) = match &result.verdict {
        ScenarioVerdict::Passed => ("passed", Vec::new()),
        ScenarioVerdict::Failed(failures) => ("failed", failures.clone()),
        ScenarioVerdict::Unusable(why) => ("unusable", vec![why.clone()]),
    };
    json!({
        "name": result.name, "file": result.path.display().to_string(), "verdict": verdict,
        "failures": failures, "notes": result.notes,
    })
}
