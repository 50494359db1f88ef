//! `wharf init`: creates an agent file, or imports the servers of another client. Never overwrites a file.

use super::{
    agent_file::AgentFile,
    env_files::{self, folder_of, not_written},
    files, flag_for, grant, import_report,
};
use crate::{
    cli::{Common, InitArgs},
    command_error::CommandError,
    exit::Exit,
    import::{self, Client, ClientFile, ImportError, Imported, Target, Whereabouts},
    output::Output,
    surroundings::Surroundings,
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};
use wharf_config::{Grants, LONGEST_FILE, read_regular};

/// The example agent file. It works without changes and shows more options in comments.
const EXAMPLE: &str = include_str!("init/agent.yaml");

/// Result of the command, for the report.
#[derive(Default)]
struct Done {
    made: Option<Imported>,
    files: Vec<PathBuf>,
}

pub(super) fn run(common: &Common, args: &InitArgs, around: &Surroundings, output: Output) -> Exit {
    let grants = match around.settings(common.settings.as_deref()) {
        Ok(settings) => settings.grants,
        Err(diagnostics) => return output.fail_loading(&diagnostics),
    };
    match init(common, args, grants, around, output) {
        Ok(done) => {
            report(&done, &common.file, output);
            Exit::Fine
        }
        Err(complaint) => output.fail(&CommandError::usage(&complaint)),
    }
}

fn init(
    common: &Common,
    args: &InitArgs,
    grants: Grants,
    around: &Surroundings,
    output: Output,
) -> Result<Done, String> {
    let file = &common.file;
    // Check before asking for grants: the user should not confirm grants for an import that fails.
    if !args.merge && fs::symlink_metadata(file).is_ok() {
        let hint = if args.from.is_some() { "; `--merge` adds the servers to it" } else { "" };
        let complaint = not_written(file, &io::ErrorKind::AlreadyExists.into());
        return Err(format!("{}{hint}\n", complaint.trim_end()));
    }
    match &args.from {
        None => {
            files::create(file, EXAMPLE, 0o644).map_err(|error| not_written(file, &error))?;
            Ok(Done { made: None, files: vec![file.clone()] })
        }
        Some(from) => import(&client_files(from, around)?, common, grants, around, output),
    }
}

/// Imports the files into the agent file, creating it if necessary. Writes the grants first: without them, `check`
/// would refuse the entries.
fn import(
    files: &[ClientFile],
    common: &Common,
    grants: Grants,
    around: &Surroundings,
    output: Output,
) -> Result<Done, String> {
    let settings_file = grants.file.clone();
    let env = around.env_for(&common.file, grants);
    let agent_file = AgentFile::read(&common.file, &env)?;
    let folder = folder_of(&common.file);
    let taken = if agent_file.is_new() { BTreeSet::new() } else { env_files::names(folder) };
    let target = Target { env, names: agent_file.names(), env_files: taken };
    let (mut made, granted) = grant::import_asking(target, output, |target| {
        import::import(files, target).map_err(|error| complaint(&error, files))
    })?;
    let text = match agent_file.is_new() {
        true => made.agent_yaml.clone(),
        false => {
            made.keep_new();
            agent_file.with(&made.entries, &made.env)?
        }
    };
    let mut done = Done::default();
    done.files.extend(grant::write(settings_file.as_deref(), &granted)?);
    done.files.extend(env_files::write(folder, &made.env_files, || agent_file.write(&text))?);
    done.files.push(common.file.clone());
    if !made.env_files.is_empty() {
        done.files.extend(env_files::ignore(folder)?);
    }
    done.made = Some(made);
    Ok(done)
}

fn complaint(error: &ImportError, files: &[ClientFile]) -> String {
    let shown = files.first().map_or_else(String::new, |it| it.path.display().to_string());
    let hint = error.hint().map_or_else(String::new, |hint| format!("help: {hint}\n"));
    format!("error: '{shown}' {error}\n{hint}")
}

/// Returns the files to import: the named file, or the files of the named client. Claude Code keeps servers in
/// several files; for other clients, the first file that exists has them all.
fn client_files(from: &str, around: &Surroundings) -> Result<Vec<ClientFile>, String> {
    let Some(client) = Client::named(from) else {
        return Ok(vec![read(around.folder.join(from), None)?]);
    };
    let whereabouts =
        Whereabouts { home: around.home.as_deref(), project: &around.folder, variables: &around.variables };
    let candidates = client.candidates(whereabouts);
    let most = if client == Client::ClaudeCode { candidates.len() } else { 1 };
    let found = candidates.iter().filter(|it| it.is_file()).take(most);
    let found: Vec<ClientFile> =
        found.map(|it| read(it.clone(), Some(client))).collect::<Result<_, String>>()?;
    if found.is_empty() {
        let looked: String = candidates.iter().map(|it| format!("\n  {}", it.display())).collect();
        return Err(format!(
            "error: no file of {} was found\nhelp: name it with `--from PATH`; these were looked for:{looked}\n",
            client.title()
        ));
    }
    Ok(found)
}

fn read(path: PathBuf, client: Option<Client>) -> Result<ClientFile, String> {
    let shown = path.display();
    let bytes = read_regular(&path, LONGEST_FILE).map_err(|trouble| {
        let clients: Vec<&str> = Client::ALL.iter().map(|it| it.word()).collect();
        format!(
            "error: '{shown}' {trouble}\nhelp: `--from` takes {}, or the path of a file\n",
            clients.join(", ")
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("error: '{shown}' is not UTF-8 text\n"))?;
    Ok(ClientFile { text, path, client })
}

fn report(done: &Done, agent_file: &Path, output: Output) {
    let files: Vec<String> = done.files.iter().map(|it| it.display().to_string()).collect();
    if output.json {
        let mut document = Map::from_iter([("files".to_owned(), Value::from(files))]);
        let made = import_report::json(done.made.as_ref()).into_iter();
        document.extend(made.map(|(key, value)| (key.to_owned(), value)));
        return output.json(&Value::Object(document));
    }
    if let Some(made) = &done.made {
        import_report::say(made, output);
    }
    for file in &files {
        output.say(&format!("{file} is written"));
    }
    if let Some(made) = &done.made {
        output.say(&import_report::count(made));
    }
    output.say(&format!("next: wharf check{}", flag_for(agent_file)));
}
