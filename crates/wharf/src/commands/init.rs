//! `wharf init`: creates an agent file, or imports the servers of another client. Never overwrites a file.

mod model_section;

use super::{
    add::request::open_bundle,
    agent_file::AgentFile,
    agent_file_flag,
    env_files::{self, folder_of, write_error},
    files, grant, import_report,
};
use crate::{
    bundle::is_bundle,
    cli::{GlobalOptions, InitArgs},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    import::{self, Client, ClientFile, ClientLocations, ImportError, Imported, Target},
    output::Output,
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};
use wharf_config::{Grants, MAX_FILE_BYTES, read_regular};

/// The example agent file. It works without changes and shows more options in comments.
const EXAMPLE_AGENT_FILE: &str = include_str!("init/agent.yaml");

/// Result of the command, for the report.
#[derive(Default)]
struct InitReport {
    imported: Option<Imported>,
    files: Vec<PathBuf>,
}

pub(super) fn run(
    common: &GlobalOptions,
    args: &InitArgs,
    environment: &Environment,
    output: Output,
) -> Exit {
    let grants = match environment.settings(common.settings.as_deref()) {
        Ok(settings) => settings.grants,
        Err(diagnostics) => return output.fail_loading(&diagnostics),
    };
    match init(common, args, grants, environment, output) {
        Ok(report) => {
            let next = if args.model.is_some() { "chat" } else { "check" };
            print_report(&report, &common.file, next, output);
            Exit::Success
        }
        Err(complaint) => output.fail(&CommandError::usage(&complaint)),
    }
}

fn init(
    common: &GlobalOptions,
    args: &InitArgs,
    grants: Grants,
    environment: &Environment,
    output: Output,
) -> Result<InitReport, String> {
    let file = &common.file;
    // Check before asking for grants: the user should not confirm grants for an import that fails.
    if !args.merge && fs::symlink_metadata(file).is_ok() {
        let hint = if args.from.is_some() { "; `--merge` adds the servers to it" } else { "" };
        let complaint = write_error(file, &io::ErrorKind::AlreadyExists.into());
        return Err(format!("{}{hint}\n", complaint.trim_end()));
    }
    match &args.from {
        None => {
            let text = model_section::example_with_model(EXAMPLE_AGENT_FILE, args.model.as_deref())?;
            files::create(file, &text, 0o644).map_err(|error| write_error(file, &error))?;
            Ok(InitReport { imported: None, files: vec![file.clone()] })
        }
        Some(from) => import(&client_files(from, environment)?, common, grants, environment, output),
    }
}

/// Imports the files into the agent file, creating it if necessary. Writes the grants first: without them, `check`
/// would refuse the entries.
fn import(
    files: &[ClientFile],
    common: &GlobalOptions,
    grants: Grants,
    environment: &Environment,
    output: Output,
) -> Result<InitReport, String> {
    let settings_file = grants.file.clone();
    let env = environment.env_for(&common.file, grants);
    let agent_file = AgentFile::read(&common.file, &env)?;
    let folder = folder_of(&common.file);
    let taken = if agent_file.is_new() { BTreeSet::new() } else { env_files::names(folder) };
    let target = Target { env, names: agent_file.names(), env_files: taken };
    let (mut imported, granted) = grant::import_with_grants(target, output, |target| {
        import::import(files, target).map_err(|error| complaint(&error, files))
    })?;
    let text = match agent_file.is_new() {
        true => imported.agent_yaml.clone(),
        false => {
            imported.keep_files_of(|it| !it.is_present);
            agent_file.with_entries(&imported.entries, &imported.env)?
        }
    };
    let mut report = InitReport::default();
    report.files.extend(grant::write(settings_file.as_deref(), &granted)?);
    report.files.extend(env_files::write(folder, &imported.env_files, || agent_file.write(&text))?);
    report.files.push(common.file.clone());
    if !imported.env_files.is_empty() {
        report.files.extend(env_files::add_to_gitignore(folder)?);
    }
    report.imported = Some(imported);
    Ok(report)
}

fn complaint(error: &ImportError, files: &[ClientFile]) -> String {
    let shown = files.first().map_or_else(String::new, |it| it.path.display().to_string());
    let hint = error.hint().map_or_else(String::new, |hint| format!("help: {hint}\n"));
    format!("error: '{shown}' {error}\n{hint}")
}

/// Returns the files to import: the named file, or the files of the named client. Claude Code keeps servers in
/// several files; for other clients, the first file that exists has them all.
fn client_files(from: &str, environment: &Environment) -> Result<Vec<ClientFile>, String> {
    let Some(client) = Client::from_cli_name(from) else {
        let path = environment.folder.join(from);
        if is_bundle(&path) {
            return Ok(vec![open_bundle(&path, None, environment)?.client_file(&path.display().to_string())]);
        }
        return Ok(vec![read(path, None)?]);
    };
    let locations = ClientLocations {
        home: environment.home.as_deref(),
        project: &environment.folder,
        variables: &environment.variables,
    };
    let candidates = client.candidates(locations);
    let most = if client == Client::ClaudeCode { candidates.len() } else { 1 };
    let found = candidates.iter().filter(|it| it.is_file()).take(most);
    let found: Vec<ClientFile> =
        found.map(|it| read(it.clone(), Some(client))).collect::<Result<_, String>>()?;
    if found.is_empty() {
        let looked: String = candidates.iter().map(|it| format!("\n  {}", it.display())).collect();
        return Err(format!(
            "error: no configuration file of {} was found\nhelp: use `--from PATH`; wharf looked for:{looked}\n",
            client.title()
        ));
    }
    Ok(found)
}

fn read(path: PathBuf, client: Option<Client>) -> Result<ClientFile, String> {
    let shown = path.display();
    let bytes = read_regular(&path, MAX_FILE_BYTES).map_err(|trouble| {
        let clients: Vec<&str> = Client::ALL.iter().map(|it| it.cli_name()).collect();
        format!(
            "error: '{shown}' {trouble}\nhelp: `--from` takes {}, or the path of a file\n",
            clients.join(", ")
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("error: '{shown}' is not UTF-8 text\n"))?;
    Ok(ClientFile { text, path, client })
}

fn print_report(report: &InitReport, agent_file: &Path, next: &str, output: Output) {
    let files: Vec<String> = report.files.iter().map(|it| it.display().to_string()).collect();
    if output.json {
        let mut document = Map::from_iter([("files".to_owned(), Value::from(files))]);
        let imported = import_report::json(report.imported.as_ref()).into_iter();
        document.extend(imported.map(|(key, value)| (key.to_owned(), value)));
        return output.json(&Value::Object(document));
    }
    if let Some(imported) = &report.imported {
        import_report::print(imported, output);
    }
    for file in &files {
        output.print_info(&format!("{file} is written"));
    }
    if let Some(imported) = &report.imported {
        output.print_info(&import_report::count(imported));
    }
    output.print_info(&format!("next: wharf {next}{}", agent_file_flag(agent_file)));
}
