//! `wharf add`: adds a server to the agent file. Preserves the existing text byte for byte.

pub(super) mod request;

use super::{
    agent_file::AgentFile,
    agent_file_flag,
    env_files::{self, folder_of},
    grant, import_report,
};
use crate::{
    bundle::Bundle,
    cli::{AddArgs, GlobalOptions},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    import::{self, ClientFile, Imported, Target, printable},
    output::Output,
};
use request::AddRequest;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use wharf_config::{Env, suggest_entry};

/// Result of the command, for the report.
#[derive(Default)]
struct Added {
    names: Vec<String>,
    /// Variables that the user must set. `optional` holds those that the user may set.
    variables: Vec<String>,
    optional: Vec<String>,
    /// Other files that the command wrote.
    files: Vec<PathBuf>,
    note: Option<String>,
    import: Option<Imported>,
}

pub(super) fn run(common: &GlobalOptions, args: &AddArgs, environment: &Environment, output: Output) -> Exit {
    let grants = match environment.settings(common.settings.as_deref()) {
        Ok(settings) => settings.grants,
        Err(diagnostics) => return output.fail_loading(&diagnostics),
    };
    let env = environment.env_for(&common.file, grants);
    let added = AddRequest::read(&args.server, &args.arguments, args.name.as_deref(), environment).and_then(
        |request| match request {
            AddRequest::Manifest { bytes, shown } => {
                add_manifest(&bytes, &shown, args.name.as_deref(), &common.file, &env)
            }
            AddRequest::Servers { file, shown, note } => {
                let added = add_servers(file, &shown, &common.file, env, output)?;
                Ok(Added { note, ..added })
            }
            AddRequest::Bundle { bundle, shown } => add_bundle(bundle, &shown, &common.file, env, output),
        },
    );
    match added {
        Ok(added) => {
            report(&added, &common.file, output);
            Exit::Success
        }
        Err(complaint) => output.fail(&CommandError::usage(&complaint)),
    }
}

fn add_manifest(
    bytes: &[u8],
    shown: &str,
    name: Option<&str>,
    file: &Path,
    env: &Env,
) -> Result<Added, String> {
    let mut suggestion = suggest_entry(bytes).map_err(|why| {
        format!("error: the manifest cannot be used: {why}\nhelp: it was read from {shown}\n")
    })?;
    suggestion.name = name.map_or(suggestion.name, str::to_owned);
    let agent_file = AgentFile::read(file, env)?;
    let text = agent_file.with_entries(&import::render_suggestion(&suggestion), env)?;
    agent_file.write(&text)?;
    Ok(Added {
        names: vec![suggestion.name],
        variables: suggestion.variables,
        optional: suggestion.optional,
        ..Added::default()
    })
}

/// Adds the server of a bundle. Its files are removed again if that fails.
fn add_bundle(bundle: Bundle, shown: &str, file: &Path, env: Env, output: Output) -> Result<Added, String> {
    match add_servers(bundle.client_file(shown), shown, file, env, output) {
        Ok(added) => {
            let note = format!("the bundle is unpacked in {}", bundle.folder.display());
            Ok(Added { note: Some(note), optional: bundle.optional, ..added })
        }
        Err(complaint) => {
            bundle.discard();
            Err(complaint)
        }
    }
}

/// Adds the servers that the loader accepts. Writes nothing if it accepts none.
fn add_servers(
    servers: ClientFile,
    shown: &str,
    file: &Path,
    env: Env,
    output: Output,
) -> Result<Added, String> {
    let agent_file = AgentFile::read(file, &env)?;
    let (settings_file, folder) = (env.grants.file.clone(), folder_of(file));
    let target = Target { env, names: agent_file.names(), env_files: env_files::names(folder) };
    let (mut imported, granted) = grant::import_with_grants(target, output, |target| {
        import::import(std::slice::from_ref(&servers), target).map_err(|error| {
            let hint = error.hint().map_or_else(String::new, |hint| format!("help: {hint}\n"));
            format!("error: {shown} {error}\n{hint}")
        })
    })?;
    imported.keep_files_of(|it| it.refused.is_empty());
    let accepted = imported.servers.iter().filter(|it| it.refused.is_empty());
    let names: Vec<String> = accepted.map(|it| it.name.clone()).collect();
    if names.is_empty() {
        return Err(refusal_message(&imported));
    }
    let text = agent_file.with_entries(&imported.accepted_entries, &imported.env)?;
    let mut files: Vec<PathBuf> = Vec::new();
    files.extend(grant::write(settings_file.as_deref(), &granted)?);
    files.extend(env_files::write(folder, &imported.env_files, || agent_file.write(&text))?);
    if !imported.env_files.is_empty() {
        files.extend(env_files::add_to_gitignore(folder)?);
    }
    let variables =
        imported.servers.iter().filter(|it| it.refused.is_empty()).flat_map(|it| it.needs.clone());
    Ok(Added { names, variables: variables.collect(), files, import: Some(imported), ..Added::default() })
}

/// Formats the reasons why no server was added.
fn refusal_message(imported: &Imported) -> String {
    let reasons = imported.servers.iter().flat_map(|server| {
        let name = printable(&server.name);
        server.refused.iter().map(move |it| format!("error: `{name}`: {}", printable(&it.message)))
    });
    let refused = imported.servers.iter().flat_map(|it| &it.refused);
    let hints = refused.filter_map(|it| it.hint.as_deref()).map(printable);
    let is_present = imported.servers.iter().any(|it| it.is_present);
    let rename = is_present.then(|| "`--name NAME` gives it another name".to_owned());
    let hints: Vec<String> = hints.chain(rename).collect();
    let help = if hints.is_empty() { String::new() } else { format!("help: {}\n", hints.join("; ")) };
    format!("{}\n{help}", reasons.collect::<Vec<_>>().join("\n"))
}

fn report(added: &Added, file: &Path, output: Output) {
    let Added { names, variables, optional, files, note, import } = added;
    let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    if output.json {
        let head = json!({
            "file": file.display().to_string(), "name": names.first(), "names": names,
            "variables": variables, "optional": optional, "files": files,
        });
        let mut document: Map<String, Value> = head.as_object().cloned().unwrap_or_default();
        let imported = import_report::json(import.as_ref()).into_iter();
        document.extend(imported.map(|(key, value)| (key.to_owned(), value)));
        return output.json(&Value::Object(document));
    }
    if let Some(imported) = import {
        import_report::print(imported, output);
    }
    for name in names {
        output.print_info(&format!("{} is added to {}", printable(name), file.display()));
    }
    for file in &files {
        output.print_info(&format!("{file} is written"));
    }
    if let Some(note) = note {
        output.print_info(&format!("note: {note}"));
    }
    if !variables.is_empty() {
        output.print_info(&format!("set these variables: {}", variables.join(", ")));
    }
    if !optional.is_empty() {
        output.print_info(&format!("left out, because they are optional: {}", optional.join(", ")));
    }
    output.print_info(&format!(
        "next: wharf{} check, then wharf{} tools",
        agent_file_flag(file),
        agent_file_flag(file)
    ));
}
