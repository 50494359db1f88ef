//! Drafts one server: its entry in the agent file, its env file, and notes about both.

mod file_name;
mod script;
mod stdio;

use super::{
    EnvFile, ImportedServer, conceal,
    document::Document,
    foreign::Foreign,
    launcher::Invocation,
    note::{Note, listed, printable},
    secret::looks_secret,
    template::escape,
    trial::{Reason, Trial},
    writer::Writer,
    yaml::Entry,
};
use std::collections::BTreeSet;
use wharf_config::{Env, MissingGrant};

/// Maximum size of an env file, as the loader has it.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;

/// A converted server. Becomes a comment if there are reasons to refuse it, else an entry.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) entry: Entry,
    pub(super) env_file: Option<EnvFile>,
    /// Variables that have no value yet.
    pub(super) needs: Vec<String>,
    /// Whether the client has disabled the server.
    is_off: bool,
    /// Reasons why it cannot be an entry.
    pub(super) reasons: Vec<Reason>,
    notes: Vec<Note>,
}

/// Drafts every server of a file, in order. `taken` holds the names of the existing env files.
pub(super) fn all(document: &Document, env: &Env, taken: &BTreeSet<String>) -> Vec<Draft> {
    let files = file_name::all(document.servers.keys(), taken);
    let servers = document.servers.iter().zip(&files);
    servers
        .map(|((name, value), file)| {
            let writer = Writer::new(name, file, document, env);
            Drafting { name, document, env, writer, entry: Entry::default() }.draft(Foreign::read(value))
        })
        .collect()
}

impl Draft {
    /// Checks the entry with the loader, unless it has been refused already: then that reason is enough.
    pub(super) fn judge(&mut self, trial: &Trial) {
        if self.reasons.is_empty() {
            self.reasons = trial.reasons(&self.entry);
        }
        if self.is_off {
            self.reasons.insert(0, Reason::new("the client has it turned off"));
        }
    }

    /// Returns the missing grants, if they are the only reasons for refusal.
    fn missing_grants(&self) -> Vec<MissingGrant> {
        let missing = self.reasons.iter().map(|it| it.missing_grant.clone());
        missing.collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// Converts the draft into its result. `env_file` is the name of its env file; `taken` holds the names of
    /// existing servers.
    pub(super) fn into_server(self, env_file: Option<String>, taken: &BTreeSet<String>) -> ImportedServer {
        let (missing_grants, is_there) = (self.missing_grants(), taken.contains(&self.name));
        let Draft { name, needs, reasons, .. } = self;
        ImportedServer { name, env_file, needs, refused: reasons, is_there, missing_grants }
    }

    /// Takes the notes about what was changed.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

struct Drafting<'a> {
    name: &'a str,
    document: &'a Document,
    env: &'a Env,
    writer: Writer<'a>,
    entry: Entry,
}

/// How to reach a server, according to its description.
enum Reach {
    Stdio(Option<Invocation>),
    Remote { transport: String, url: Option<String> },
}

impl Drafting<'_> {
    fn draft(mut self, mut foreign: Foreign) -> Draft {
        for trouble in foreign.troubles.drain(..) {
            self.writer.refuse(trouble);
        }
        let reach = self.reach(&mut foreign);
        self.head(foreign.description.as_deref(), &reach);
        match reach {
            Reach::Stdio(invocation) => self.stdio(invocation, &mut foreign),
            Reach::Remote { transport, url } => self.remote(&transport, url, &mut foreign),
        }
        self.env_file(foreign.env_file.as_deref());
        self.start_timeout(foreign.start_timeout);
        self.timeout(foreign.timeout);
        self.unknown(&foreign.unknown);
        self.finish(foreign.is_off)
    }

    /// Determines how to reach the server, and notes the keys that do not apply.
    fn reach(&mut self, foreign: &mut Foreign) -> Reach {
        let (command, url) = (foreign.command.take(), foreign.url.take());
        let transport = match (foreign.transport.take(), &url) {
            (Some(transport), _) => transport,
            (None, Some(url)) if command.is_none() => transport_of(url).to_owned(),
            (None, _) => "stdio".to_owned(),
        };
        if transport != "stdio" {
            let args = !std::mem::take(&mut foreign.args).is_empty();
            let env = !std::mem::take(&mut foreign.env).is_empty();
            let cwd = foreign.cwd.take().is_some();
            self.unused(
                "remote",
                [("command", command.is_some()), ("args", args), ("cwd", cwd), ("env", env)],
            );
            return Reach::Remote { transport, url };
        }
        let headers = !std::mem::take(&mut foreign.headers).is_empty();
        self.unused("local", [("url", url.is_some()), ("headers", headers)]);
        let args = std::mem::take(&mut foreign.args);
        let invocation = command.map(|command| self.simplified(Invocation { command, args }));
        Reach::Stdio(invocation.map(|it| self.located(it, foreign.cwd.take())))
    }

    fn unused<const N: usize>(&mut self, kind: &str, keys: [(&str, bool); N]) {
        let keys: Vec<&str> =
            keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect();
        if !keys.is_empty() {
            self.writer.note(format!("{} left out: a {kind} server has no use for it", listed(keys)));
        }
    }

    /// Writes the keys that every entry has.
    fn head(&mut self, description: Option<&str>, reach: &Reach) {
        let package = match reach {
            Reach::Stdio(Some(invocation)) => self.package(invocation),
            _ => None,
        };
        let at = match (&package, reach) {
            (Some(package), _) => format!(" ({package})"),
            (None, Reach::Remote { url: Some(url), .. }) => {
                host_of(url).map_or_else(String::new, |it| format!(" at {it}"))
            }
            _ => String::new(),
        };
        let description = match description.filter(|it| !it.trim().is_empty() && !looks_secret(it)) {
            Some(text) => escape(text),
            None => escape(&format!("The {} server{at}", printable(self.name))),
        };
        self.entry.text("name", escape(self.name));
        self.entry.text("description", description);
        self.entry.text("type", "mcp");
        self.entry.text("server", package.unwrap_or_else(|| escape(self.name)));
    }

    fn remote(&mut self, transport: &str, url: Option<String>, foreign: &mut Foreign) {
        self.entry.text("transport", self.writer.word("type", transport));
        if let Some(url) = url {
            let url = self.writer.text("url", &url, conceal::url);
            self.entry.text("url", url);
        }
        let headers = std::mem::take(&mut foreign.headers).into_iter().map(|(name, value)| {
            let text = self.writer.value("headers", &name, &value);
            (name, text)
        });
        let mut headers: Vec<(String, String)> = headers.collect();
        for (name, before, variable) in std::mem::take(&mut foreign.header_variables) {
            let value = self.writer.reference("headers", &variable);
            headers.extend(value.map(|it| (name, format!("{before}{it}"))));
        }
        self.entry.map("headers", headers);
    }

    /// Sets the env file. An entry can have only one: the new one if it has values, else the client's.
    fn env_file(&mut self, named: Option<&str>) {
        let file = self.writer.env_file.file.to_owned();
        let is_ours = !self.writer.env_file.is_empty();
        match named {
            _ if is_ours => self.entry.text("envFile", &file),
            Some(named) => {
                let path = self.writer.word("envFile", named);
                self.entry.text("envFile", path);
            }
            None => {}
        }
        if let Some(named) = named.filter(|_| is_ours) {
            let outcome = match self.read_env_file(named) {
                Some(text) => {
                    self.writer.env_file.copy(text);
                    "its lines are copied"
                }
                None => "it cannot be read; copy the lines over",
            };
            self.writer.note(format!(
                "`envFile` left out: an entry has one, and `{file}` holds its values; {outcome}"
            ));
        }
    }

    /// Reads the client's env file. Returns `None` if it is not a text file beside or below the agent file.
    fn read_env_file(&self, path: &str) -> Option<String> {
        let path = path.replace("${workspaceFolder}", &self.env.folder.to_string_lossy());
        String::from_utf8(self.env.files.read(&path, MAX_ENV_FILE_BYTES).ok()?).ok()
    }

    fn start_timeout(&mut self, timeout: Option<f64>) {
        if let Some(timeout) = timeout {
            self.entry.number("connect_timeout", timeout.ceil().clamp(1.0, 86_400.0) as u64);
        }
    }

    /// Converts the timeout. Most clients use seconds; a value that would be over an hour is taken as milliseconds.
    fn timeout(&mut self, timeout: Option<f64>) {
        const LONGEST_IN_SECONDS: f64 = 3600.0;
        let Some(timeout) = timeout else { return };
        let seconds = if timeout > LONGEST_IN_SECONDS { timeout / 1000.0 } else { timeout };
        let seconds = seconds.ceil().clamp(1.0, 86_400.0) as u64;
        self.entry.number("request_timeout", seconds);
        self.writer.note(format!("`timeout` became `request_timeout: {seconds}`, in seconds for each call"));
    }

    fn unknown(&mut self, keys: &[String]) {
        let mut others = Vec::new();
        for key in keys {
            match key.as_str() {
                "disabledTools" | "excludeTools" | "disabled_tools" => {
                    self.writer.note(format!("`{key}` left out: list the tools under `deny`"))
                }
                "enabledTools" | "includeTools" | "enabled_tools" => {
                    self.writer.note(format!("`{key}` left out: list the tools under `allow`"))
                }
                key => others.push(printable(key)),
            }
        }
        if !others.is_empty() {
            self.writer
                .note(format!("{} left out: there is nothing like it in an agent file", listed(others)));
        }
    }

    fn finish(mut self, is_off: bool) -> Draft {
        let needs = self.writer.lacking();
        self.writer.close();
        let writer = &self.writer.env_file;
        let is_set = |name: &&str| self.env.variables.contains_key(*name);
        let (set, blanks): (Vec<&str>, Vec<&str>) = writer.blanks().partition(is_set);
        let (kept, set, blanks) = (listed(writer.names()), listed(set), listed(blanks));
        let env_file = (!writer.is_empty()).then(|| writer.env_file());
        let file = writer.file.to_owned();
        if !kept.is_empty() {
            self.writer.note(format!("{kept} kept in `{file}`, out of the agent file"));
        }
        if !set.is_empty() {
            self.writer.note(format!("{set} taken from the environment, where it is set"));
        }
        if !blanks.is_empty() {
            self.writer.note(format!("fill in {blanks} in `{file}`"));
        }
        let Writer { notes, reasons, .. } = self.writer;
        Draft { name: self.name.to_owned(), entry: self.entry, env_file, needs, is_off, reasons, notes }
    }
}

/// Guesses the transport from a URL.
fn transport_of(url: &str) -> &'static str {
    let lower = url.to_ascii_lowercase();
    let path = lower.split(['?', '#']).next().unwrap_or_default();
    match () {
        () if lower.starts_with("ws://") || lower.starts_with("wss://") => "websocket",
        () if path.trim_end_matches('/').ends_with("/sse") => "sse",
        () => "http",
    }
}

/// Returns the host of a URL, unless it contains a variable.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let fits = !host.is_empty() && !host.contains("${");
    fits.then(|| printable(host))
}
