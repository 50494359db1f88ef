//! `wharf init`: a first agent file. Never overwrites anything.

use super::{files, flag_for, grant};
use crate::{
    cli::Common,
    command_error::CommandError,
    exit::Exit,
    import::{self, Client, Imported},
    output::Output,
    surroundings::Surroundings,
};
use serde_json::json;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use wharf_runtime::config::{Grants, LONGEST_FILE, MissingGrant, read_regular};

/// Works as it is, and shows the rest in comments.
const EXAMPLE: &str = include_str!("init/agent.yaml");

pub(super) fn run(common: &Common, from: Option<&str>, around: &Surroundings, output: Output) -> Exit {
    let grants = match around.settings(common.settings.as_deref()) {
        Ok(settings) => settings.grants,
        Err(diagnostics) => {
            return output.fail_loading(&diagnostics);
        }
    };
    match init(common, from, grants, around, output) {
        Ok((made, files)) => {
            report(&made, &files, &common.file, output);
            Exit::Fine
        }
        Err(complaint) => output.fail(&CommandError::usage(&complaint)),
    }
}

/// Makes the files and writes them. Grants are written first: without them, `check` would refuse the agent file.
fn init(
    common: &Common,
    from: Option<&str>,
    grants: Grants,
    around: &Surroundings,
    output: Output,
) -> Result<(Imported, Vec<PathBuf>), String> {
    // Nobody is asked for grants that then lead to nothing.
    if fs::symlink_metadata(&common.file).is_ok() {
        return Err(not_written(&common.file, &io::ErrorKind::AlreadyExists.into()));
    }
    let settings_file = grants.file.clone();
    let (made, granted) = match from {
        None => (Imported::text(EXAMPLE), Vec::new()),
        Some(from) => import(from, &common.file, grants, around, output)?,
    };
    let settings_file = grant::write(settings_file.as_deref(), &granted)?;
    let written = write(&common.file, &made)?;
    Ok((made, settings_file.into_iter().chain(written).collect()))
}

/// Reads another client's file: one that is named, or the first of those that the client is known to keep.
fn import(
    from: &str,
    file: &Path,
    grants: Grants,
    around: &Surroundings,
    output: Output,
) -> Result<(Imported, Vec<MissingGrant>), String> {
    let path = match Client::named(from) {
        None => around.folder.join(from),
        Some(client) => find(client, around)?,
    };
    let shown = path.display();
    let bytes = read_regular(&path, LONGEST_FILE).map_err(|trouble| {
        format!(
            "error: '{shown}' {trouble}\nhelp: `--from` takes claude, vscode, cursor, or the path of a file\n"
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("error: '{shown}' is not UTF-8 text\n"))?;
    grant::import_asking(around.env_for(file, grants), output, |env| {
        import::import(&text, &path, env).map_err(|error| {
            let hint = error.hint().map_or_else(String::new, |hint| format!("help: {hint}\n"));
            format!("error: '{shown}' {error}\n{hint}")
        })
    })
}

fn find(client: Client, around: &Surroundings) -> Result<PathBuf, String> {
    let candidates = import::candidates(client, around.home.as_deref(), &around.folder, &around.variables);
    candidates.iter().find(|it| it.is_file()).cloned().ok_or_else(|| {
        let looked: String = candidates.iter().map(|it| format!("\n  {}", it.display())).collect();
        format!(
            "error: no file of {} was found\nhelp: name it with `--from PATH`; these were looked for:{looked}\n",
            client.title()
        )
    })
}

/// Writes all files or none: what was written before one could not be is taken back.
fn write(agent_file: &Path, made: &Imported) -> Result<Vec<PathBuf>, String> {
    let folder = agent_file.parent().unwrap_or(Path::new(""));
    let mut written: Vec<PathBuf> = Vec::new();
    let secrets = made.env_files.iter().map(|it| (folder.join(&it.name), it.text.as_str(), 0o600));
    for (path, text, mode) in secrets.chain([(agent_file.to_owned(), made.agent_yaml.as_str(), 0o644)]) {
        if let Err(error) = files::create(&path, text, mode) {
            written.iter().for_each(|it| _ = fs::remove_file(it));
            return Err(not_written(&path, &error));
        }
        written.push(path);
    }
    Ok(written)
}

fn not_written(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("error: {path} is there already and is not overwritten\nhelp: `-f FILE` names another\n")
        }
        _ => format!("error: {path} cannot be written: {error}\n"),
    }
}

fn report(made: &Imported, files: &[PathBuf], agent_file: &Path, output: Output) {
    let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    if output.json {
        let notes: Vec<_> =
            made.notes.iter().map(|it| json!({ "server": it.server, "text": it.text })).collect();
        return output.json(&json!({ "files": files, "notes": notes }));
    }
    for note in &made.notes {
        output.say(&format!("note: {note}"));
    }
    for file in &files {
        output.say(&format!("{file} is written"));
    }
    output.say(&format!("next: wharf check{}", flag_for(agent_file)));
}
