//! `wharf connect`: adds wharf to the configuration file of an MCP client. Leaves everything else in the file
//! unchanged.

mod entry;
mod json;
mod toml;

use super::files;
use crate::{
    cli::{ConnectArgs, DEFAULT_AGENT_FILE, GlobalOptions},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    import::{Client, ClientLocations},
    output::Output,
};
use entry::ClientEntry;
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use wharf_config::{Env, MAX_FILE_BYTES, ServerSettings, load, read_regular};

/// A client's configuration file and its text, if the file exists.
struct ClientConfig {
    client: Client,
    path: PathBuf,
    text: Option<String>,
}

/// Result of the command, for the report.
struct ConnectReport {
    config: ClientConfig,
    entry: Option<ClientEntry>,
    changed: bool,
    backup: Option<PathBuf>,
    notes: Vec<String>,
}

pub(super) fn run(
    common: &GlobalOptions,
    args: &ConnectArgs,
    environment: &Environment,
    output: Output,
) -> Exit {
    let settings = match environment.settings(common.settings.as_deref()) {
        Ok(settings) => settings,
        Err(diagnostics) => return output.fail_loading(&diagnostics),
    };
    let env = environment.env_for(&common.file, settings.grants.clone());
    match connect(common, args, environment, &settings.server, &env) {
        Ok(report) => {
            print_report(&report, args, output);
            Exit::Success
        }
        Err(complaint) => output.fail(&CommandError::usage(&complaint)),
    }
}

fn connect(
    common: &GlobalOptions,
    args: &ConnectArgs,
    environment: &Environment,
    server: &ServerSettings,
    env: &Env,
) -> Result<ConnectReport, String> {
    let config = ClientConfig::read(args, environment)?;
    if args.remove {
        let after = config.without_entry(&args.name)?;
        let (changed, backup) = config.replace(after)?;
        return Ok(ConnectReport { config, entry: None, changed, backup, notes: Vec::new() });
    }
    let (entry, notes) = match &args.http {
        Some(url) => {
            let url = if url.is_empty() { gateway_url(environment, server) } else { url.clone() };
            let note = "set WHARF_TOKEN in the client's environment to the token of the gateway".to_owned();
            (ClientEntry::http(args.client, &url)?, vec![note])
        }
        None => stdio(common, args.client, environment, env)?,
    };
    let after = config.with_entry(&args.name, &entry)?;
    let (changed, backup) = if args.print { (false, None) } else { config.replace(after)? };
    Ok(ConnectReport { config, entry: Some(entry), changed, backup, notes })
}

/// Builds the entry that starts `wharf stdio`, and notes for the user.
fn stdio(
    common: &GlobalOptions,
    client: Client,
    environment: &Environment,
    env: &Env,
) -> Result<(ClientEntry, Vec<String>), String> {
    let program = environment.program().ok_or("error: cannot determine the path of this program\n")?;
    let absolute = |path: &Path| {
        let path = environment.folder.join(path);
        path.canonicalize().unwrap_or(path).to_string_lossy().into_owned()
    };
    let mut arguments: Vec<String> = Vec::new();
    let mut notes = Vec::new();
    match common.file.exists() {
        true => {
            arguments.extend(["-f".to_owned(), absolute(&common.file)]);
            notes.extend(note_shell_variables(&common.file, client, env));
        }
        false if common.file == Path::new(DEFAULT_AGENT_FILE) => {
            notes.push("there is no agent.yaml here: the client gets the built-in Todo server".to_owned());
        }
        false => {
            let file = common.file.display();
            return Err(format!("error: '{file}' does not exist\nhelp: `wharf init` writes an agent file\n"));
        }
    }
    if let Some(settings) = &common.settings {
        arguments.extend(["--settings".to_owned(), absolute(settings)]);
    }
    arguments.push("stdio".to_owned());
    // A client that is started from a desktop menu does not have the shell's variables.
    let home = environment.variables.get("WHARF_HOME").filter(|it| !it.is_empty());
    let home = home.map(|it| ("WHARF_HOME".to_owned(), absolute(Path::new(it))));
    Ok((ClientEntry::stdio(client, &program.to_string_lossy(), &arguments, home), notes))
}

/// Returns a note that names the shell variables the agent file uses, because the client may not have them.
fn note_shell_variables(file: &Path, client: Client, env: &Env) -> Option<String> {
    let text = read_regular(file, MAX_FILE_BYTES).ok()?;
    let bare = ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR"];
    let mut env = env.clone();
    env.variables.retain(|name, _| bare.contains(&name.as_str()));
    let (_, diagnostics) = load(text, &env);
    let missing = diagnostics.items().iter().filter(|it| it.code == "V-09");
    let mut names: Vec<&str> = missing.filter_map(|it| it.message.split('\'').nth(1)).collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "{names} must be set where {} starts wharf: put them into an `envFile`, or under `env` of this entry",
            client.title()
        )
    })
}

/// Returns the MCP URL of the gateway on this machine.
fn gateway_url(environment: &Environment, server: &ServerSettings) -> String {
    let (listen, _) = environment.listen(None, server);
    let port = listen.rsplit_once(':').map_or("7373", |(_, port)| port);
    let host = listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    let host = if matches!(host, "0.0.0.0" | "[::]" | "") { "127.0.0.1" } else { host };
    format!("http://{host}:{port}/mcp")
}

impl ClientConfig {
    /// Finds and reads the file. A missing file has no text.
    fn read(args: &ConnectArgs, environment: &Environment) -> Result<ClientConfig, String> {
        let client = args.client;
        let title = client.title();
        let locations = ClientLocations {
            home: environment.home.as_deref(),
            project: &environment.folder,
            variables: &environment.variables,
        };
        let path = match args.project {
            true => client.project_file(&environment.folder).ok_or_else(|| {
                format!("error: {title} has no project configuration\nhelp: leave `--project` out\n")
            })?,
            false => client
                .user_file(locations)
                .ok_or_else(|| format!("error: the folder of {title} is not known: HOME is not set\n"))?,
        };
        let text = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            _ => {
                let shown = path.display();
                let bytes = read_regular(&path, MAX_FILE_BYTES)
                    .map_err(|trouble| format!("error: '{shown}' {trouble}\n"))?;
                Some(String::from_utf8(bytes).map_err(|_| format!("error: '{shown}' is not UTF-8 text\n"))?)
            }
        };
        Ok(ClientConfig { client, path, text })
    }

    /// Returns the file's text with the entry added.
    fn with_entry(&self, name: &str, entry: &ClientEntry) -> Result<String, String> {
        let before = self.text.as_deref().unwrap_or_default();
        if self.entry(name).as_ref() == Some(&entry.value) {
            return Ok(before.to_owned());
        }
        let after = match self.client {
            Client::Codex => toml::set_table(before, self.client.section(), name, &entry.value),
            _ => json::set_member(before, self.client.section(), name, &entry.value),
        };
        after.ok_or_else(|| {
            let snippet = entry.snippet(self.client, name);
            format!(
                "error: {} cannot be edited automatically\nhelp: add this by hand:\n{snippet}",
                self.path.display()
            )
        })
    }

    /// Returns the file's text with the entry removed.
    fn without_entry(&self, name: &str) -> Result<String, String> {
        let before = self.text.as_deref().unwrap_or_default();
        if self.entry(name).is_none() {
            return Ok(before.to_owned());
        }
        let after = match self.client {
            Client::Codex => toml::remove_table(before, self.client.section(), name),
            _ => json::remove_member(before, self.client.section(), name),
        };
        after.ok_or_else(|| {
            format!(
                "error: {} cannot be edited automatically to remove `{name}`\nhelp: remove it by hand\n",
                self.path.display()
            )
        })
    }

    /// Returns the existing entry with this name.
    fn entry(&self, name: &str) -> Option<Value> {
        let text = self.text.as_deref()?;
        match self.client {
            Client::Codex => toml::table(text, self.client.section(), name),
            _ => json::member(text, self.client.section(), name),
        }
    }

    /// Backs up the file and replaces it. Returns whether it changed, and the path of the backup.
    fn replace(&self, after: String) -> Result<(bool, Option<PathBuf>), String> {
        if self.text.as_deref().unwrap_or_default() == after {
            return Ok((false, None));
        }
        let failed =
            |path: &Path, error: io::Error| format!("error: {} cannot be written: {error}\n", path.display());
        let backup = match &self.text {
            Some(_) => Some(back_up(&self.path).map_err(|error| failed(&self.path, error))?),
            None => {
                let folder = self.path.parent().unwrap_or(Path::new("."));
                fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
                None
            }
        };
        files::replace(&self.path, &after, self.text.is_none(), 0o600)
            .map_err(|error| failed(&self.path, error))?;
        Ok((true, backup))
    }
}

/// Copies a file to `NAME.bak`, or to the first of `NAME.bak-2`, `NAME.bak-3`, … that does not exist.
fn back_up(file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().map_or_else(String::new, |it| it.to_string_lossy().into_owned());
    let text = fs::read_to_string(file)?;
    let names = [format!("{name}.bak")].into_iter().chain((2..).map(|it| format!("{name}.bak-{it}")));
    for name in names {
        let backup = file.with_file_name(name);
        match files::create(&backup, &text, 0o600) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(backup),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn print_report(report: &ConnectReport, args: &ConnectArgs, output: Output) {
    let ConnectReport { config, entry, changed, backup, notes } = report;
    let (title, file) = (config.client.title(), config.path.display());
    if output.json {
        return output.json(&json!({
            "client": config.client.cli_name(), "file": file.to_string(), "name": args.name,
            "entry": entry.as_ref().map(|it| &it.value), "changed": changed,
            "backup": backup.as_ref().map(|it| it.display().to_string()), "notes": notes,
        }));
    }
    if let Some(entry) = entry.as_ref().filter(|_| args.print) {
        output.print_info(&format!(
            "{title} reads {file}. `wharf connect {}` adds this:",
            config.client.cli_name()
        ));
        output.data(&entry.snippet(config.client, &args.name));
    } else {
        let what = match (changed, args.remove) {
            (true, false) => format!("{title} is connected: `{}` is in {file}", args.name),
            (false, false) => format!("{title} is connected already: `{}` is in {file}", args.name),
            (true, true) => format!("`{}` is removed from {file}", args.name),
            (false, true) => format!("`{}` is not in {file}; nothing changed", args.name),
        };
        output.print_info(&what);
    }
    if let Some(backup) = backup {
        output.print_info(&format!("the previous version is in {}", backup.display()));
    }
    for note in notes {
        output.print_info(&format!("note: {note}"));
    }
    if *changed {
        output.print_info(&format!("next: restart {title}"));
    }
}
