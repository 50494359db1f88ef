//! `wharf add`: a server from its manifest into the agent file. What is there already stays as it is, byte for byte.

mod page;

use super::{files, flag_for};
use crate::{
    cli::Common,
    command_error::CommandError,
    exit::Exit,
    import,
    output::Output,
    surroundings::{Surroundings, read_agent_file},
};
use serde_json::json;
use std::{fs, path::Path};
use wharf_runtime::config::{
    Diagnostics, Env, FileTrouble, Plan, Severity, Suggestion, load, read_regular, suggest_entry,
};

/// A manifest that is longer is refused unread.
const LONGEST: u64 = 1024 * 1024;

/// Where a manifest is looked for in a folder.
const MANIFESTS: [&str; 2] = ["plugin.json", "server.json"];

pub(super) fn run(
    common: &Common,
    manifest: &str,
    name: Option<String>,
    around: &Surroundings,
    output: Output,
) -> Exit {
    let grants = match around.settings(common.settings.as_deref()) {
        Ok(settings) => settings.grants,
        Err(diagnostics) => {
            return output.fail_loading(&diagnostics);
        }
    };
    let added = read(manifest, around).and_then(|(shown, bytes)| {
        let mut suggestion = suggest_entry(&bytes).map_err(|why| {
            format!("error: the manifest cannot be used: {why}\nhelp: it was read from {shown}\n")
        })?;
        suggestion.name = name.unwrap_or(suggestion.name);
        add(&common.file, &suggestion, around.env_for(&common.file, grants))?;
        Ok(suggestion)
    });
    match added {
        Ok(suggestion) => {
            report(&suggestion, &common.file, output);
            Exit::Fine
        }
        Err(complaint) => output.fail(&CommandError::usage(&complaint)),
    }
}

/// The manifest and what to call the place it is from: itself, a file, or a folder that holds one.
fn read(manifest: &str, around: &Surroundings) -> Result<(String, Vec<u8>), String> {
    if manifest.trim_start().starts_with('{') {
        return Ok(("the command line".to_owned(), manifest.as_bytes().to_vec()));
    }
    let path = around.folder.join(manifest);
    let inside = MANIFESTS.map(|it| path.join(it)).into_iter().find(|it| it.is_file());
    let path = inside.filter(|_| path.is_dir()).unwrap_or(path);
    let shown = path.display().to_string();
    let bytes = read_regular(&path, LONGEST).map_err(|trouble| {
        let help = match trouble {
            FileTrouble::Missing | FileTrouble::NotRegular(_) => {
                "help: name a server.json or plugin.json, a folder with one, or give the JSON itself\n"
            }
            _ => "",
        };
        format!("error: '{shown}' {trouble}\n{help}")
    })?;
    Ok((shown, bytes))
}

/// Writes the agent file anew with one entry more, if it is then as good as it was.
fn add(file: &Path, suggestion: &Suggestion, mut env: Env) -> Result<(), String> {
    let shown = file.display();
    let entry = import::entry(suggestion);
    let by_hand = |why: &str| format!("error: {why}\nhelp: this is the entry, to be added by hand:\n{entry}");
    let before = match fs::exists(file) {
        Ok(false) => None,
        _ => {
            let bytes = read_agent_file(file).map_err(|it| it.render(false))?;
            let text = String::from_utf8(bytes);
            Some(text.map_err(|_| format!("error: {shown} is not UTF-8 text\n"))?)
        }
    };
    let text = before.as_deref().unwrap_or_default();
    let after = page::with_entry(text, &entry);
    let after = after.ok_or_else(|| by_hand(&format!("the list of tools in {shown} is not one of lines")))?;
    // What has to be set may not be set yet.
    for name in &suggestion.variables {
        env.variables.entry(name.clone()).or_insert_with(|| "1".to_owned());
    }
    let is_empty = text.lines().all(|it| it.trim().is_empty() || it.trim_start().starts_with('#'));
    let (old, complaints) = if is_empty { (None, None) } else { some(load(text, &env)) };
    if let Some(first) = complaints.as_ref().and_then(first_error) {
        return Err(format!("error: {shown} is wrong already: {first}\nhelp: `wharf check` says more\n"));
    }
    let (new, diagnostics) = load(&after, &env);
    if let Some(first) = first_error(&diagnostics) {
        return Err(match first.starts_with("Duplicate tool names") {
            true => format!(
                "error: {shown} has a tool called '{}' already\nhelp: `--name NAME` gives it another name\n",
                suggestion.name
            ),
            false => by_hand(&first),
        });
    }
    if let (Some(old), Some(new)) = (&old, &new)
        && new.sources.get(..old.sources.len()) != Some(&old.sources[..])
    {
        return Err(by_hand(&format!("the entry cannot be added to {shown} without changing others")));
    }
    files::replace(file, &after, before.is_none(), 0o644)
        .map_err(|error| format!("error: {shown} cannot be written: {error}\n"))
}

fn some((plan, diagnostics): (Option<Plan>, Diagnostics)) -> (Option<Plan>, Option<Diagnostics>) {
    (plan, Some(diagnostics))
}

/// The first mistake that is not merely a variable that is not set here.
fn first_error(diagnostics: &Diagnostics) -> Option<String> {
    let errors = diagnostics.items().iter().filter(|it| it.severity == Severity::Error);
    errors.filter(|it| it.code != "V-09").map(|it| it.message.clone()).next()
}

fn report(suggestion: &Suggestion, file: &Path, output: Output) {
    let Suggestion { name, variables, optional, .. } = suggestion;
    if output.json {
        let file = file.display().to_string();
        return output
            .json(&json!({ "file": file, "name": name, "variables": variables, "optional": optional }));
    }
    output.say(&format!("{name} is added to {}", file.display()));
    if !variables.is_empty() {
        output.say(&format!("set these variables: {}", variables.join(", ")));
    }
    if !optional.is_empty() {
        output.say(&format!("left out, because nobody has to give them: {}", optional.join(", ")));
    }
    output.say(&format!("next: wharf check{}", flag_for(file)));
}
