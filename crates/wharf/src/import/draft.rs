//! Drafts one server: its entry in the agent file, its env file, and notes about both.

mod file_name;
mod script;
mod stdio;

use super::{
    EnvFile, ImportedServer,
    checker::{EntryChecker, Reason},
    client_server::ClientServer,
    document::ClientDocument,
    launcher::Invocation,
    note::{Note, list_names, printable},
    rewriter::TextRewriter,
    secret::contains_secret,
    split_values,
    template::escape,
    yaml::YamlEntry,
};
use std::collections::BTreeSet;
use wharf_config::{Env, MissingGrant};

/// Maximum size of an env file, as the loader has it.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;

/// A converted server. Becomes a comment if there are reasons to refuse it, else an entry.
pub(super) struct ServerDraft {
    pub(super) name: String,
    pub(super) entry: YamlEntry,
    pub(super) env_file: Option<EnvFile>,
    /// Variables that have no value yet.
    pub(super) needs: Vec<String>,
    /// Variables of its env file.
    variables: Vec<String>,
    /// Whether the client has disabled the server.
    is_disabled: bool,
    /// Reasons why it cannot be an entry.
    pub(super) reasons: Vec<Reason>,
    /// Notes about what was changed.
    pub(super) notes: Vec<Note>,
}

/// Drafts every server of a file, in order. `taken` holds the names of the existing env files.
pub(super) fn draft_all(document: &ClientDocument, env: &Env, taken: &BTreeSet<String>) -> Vec<ServerDraft> {
    let files = file_name::choose(document.servers.keys(), taken);
    let servers = document.servers.iter().zip(&files);
    servers
        .map(|((name, value), file)| {
            let rewriter = TextRewriter::new(name, file, document, env);
            ServerDrafter { name, document, env, rewriter, entry: YamlEntry::default() }
                .draft(ClientServer::read(value))
        })
        .collect()
}

impl ServerDraft {
    /// Checks the entry with the loader, unless it has been refused already: then that reason is enough.
    pub(super) fn check(&mut self, checker: &EntryChecker) {
        if self.reasons.is_empty() {
            self.reasons = checker.reasons(&self.entry);
        }
        if self.is_disabled {
            self.reasons.insert(0, Reason::new("it is disabled in the client"));
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
        let (missing_grants, is_present) = (self.missing_grants(), taken.contains(&self.name));
        let ServerDraft { name, needs, variables, reasons, mut entry, .. } = self;
        entry.remove("envFile");
        let (yaml, entry) = (entry.render(), entry.to_json());
        let refused = reasons;
        ImportedServer { name, env_file, needs, variables, yaml, entry, refused, is_present, missing_grants }
    }
}

struct ServerDrafter<'a> {
    name: &'a str,
    document: &'a ClientDocument,
    env: &'a Env,
    rewriter: TextRewriter<'a>,
    entry: YamlEntry,
}

/// How to reach a server, according to its description.
enum ServerConnection {
    Stdio(Option<Invocation>),
    Remote { transport: String, url: Option<String> },
}

impl ServerDrafter<'_> {
    fn draft(mut self, mut client_server: ClientServer) -> ServerDraft {
        for error in client_server.errors.drain(..) {
            self.rewriter.refuse(error);
        }
        let connection = self.connection(&mut client_server);
        self.write_head(client_server.description.as_deref(), &connection);
        match connection {
            ServerConnection::Stdio(invocation) => self.stdio(invocation, &mut client_server),
            ServerConnection::Remote { transport, url } => self.remote(&transport, url, &mut client_server),
        }
        self.env_file(client_server.env_file.as_deref());
        self.start_timeout(client_server.start_timeout);
        self.timeout(client_server.timeout);
        self.unknown(&client_server.unknown);
        self.finish(client_server.is_disabled)
    }

    /// Determines how to reach the server, and notes the keys that do not apply.
    fn connection(&mut self, client_server: &mut ClientServer) -> ServerConnection {
        let (command, url) = (client_server.command.take(), client_server.url.take());
        let transport = match (client_server.transport.take(), &url) {
            (Some(transport), _) => transport,
            (None, Some(url)) if command.is_none() => transport_of(url).to_owned(),
            (None, _) => "stdio".to_owned(),
        };
        if transport != "stdio" {
            let args = !std::mem::take(&mut client_server.args).is_empty();
            let env = !std::mem::take(&mut client_server.env).is_empty();
            let cwd = client_server.cwd.take().is_some();
            self.note_unused_keys(
                "remote",
                [("command", command.is_some()), ("args", args), ("cwd", cwd), ("env", env)],
            );
            return ServerConnection::Remote { transport, url };
        }
        let headers = !std::mem::take(&mut client_server.headers).is_empty();
        self.note_unused_keys("local", [("url", url.is_some()), ("headers", headers)]);
        let args = std::mem::take(&mut client_server.args);
        let invocation = command.map(|command| self.simplify(Invocation { command, args }));
        ServerConnection::Stdio(invocation.map(|it| self.locate_script(it, client_server.cwd.take())))
    }

    fn note_unused_keys<const N: usize>(&mut self, kind: &str, keys: [(&str, bool); N]) {
        let keys: Vec<&str> =
            keys.into_iter().filter(|(_, is_present)| *is_present).map(|(key, _)| key).collect();
        if !keys.is_empty() {
            self.rewriter.note(format!("{} left out: a {kind} server does not use it", list_names(keys)));
        }
    }

    /// Writes the keys that every entry has.
    fn write_head(&mut self, description: Option<&str>, connection: &ServerConnection) {
        let package = match connection {
            ServerConnection::Stdio(Some(invocation)) => self.package(invocation),
            _ => None,
        };
        let at = match (&package, connection) {
            (Some(package), _) => format!(" ({package})"),
            (None, ServerConnection::Remote { url: Some(url), .. }) => {
                host_of(url).map_or_else(String::new, |it| format!(" at {it}"))
            }
            _ => String::new(),
        };
        let description = match description.filter(|it| !it.trim().is_empty() && !contains_secret(it)) {
            Some(text) => escape(text),
            None => escape(&format!("The {} server{at}", printable(self.name))),
        };
        self.entry.text("name", escape(self.name));
        // Another gateway, usually. The prefix `wharf` is reserved.
        if self.name == "wharf" {
            self.entry.text("prefix", "gateway");
        }
        self.entry.text("description", description);
        self.entry.text("type", "mcp");
        self.entry.text("server", package.unwrap_or_else(|| escape(self.name)));
    }

    fn remote(&mut self, transport: &str, url: Option<String>, client_server: &mut ClientServer) {
        self.entry.text("transport", self.rewriter.word("type", transport));
        if let Some(url) = url {
            let url = self.rewriter.text("url", &url, split_values::split_url);
            self.entry.text("url", url);
        }
        let headers = std::mem::take(&mut client_server.headers).into_iter().map(|(name, value)| {
            let text = self.rewriter.value("headers", &name, &value);
            (name, text)
        });
        let mut headers: Vec<(String, String)> = headers.collect();
        for (name, before, variable) in std::mem::take(&mut client_server.header_variables) {
            let value = self.rewriter.reference("headers", &variable);
            headers.extend(value.map(|it| (name, format!("{before}{it}"))));
        }
        self.entry.map("headers", headers);
    }

    /// Sets the env file. An entry can have only one: the new one if it has values, else the client's.
    fn env_file(&mut self, named: Option<&str>) {
        let file = self.rewriter.env_file.file.to_owned();
        let is_ours = !self.rewriter.env_file.is_empty();
        match named {
            _ if is_ours => self.entry.text("envFile", &file),
            Some(named) => {
                let path = self.rewriter.word("envFile", named);
                self.entry.text("envFile", path);
            }
            None => {}
        }
        if let Some(named) = named.filter(|_| is_ours) {
            let outcome = match self.read_env_file(named) {
                Some(text) => {
                    self.rewriter.env_file.copy(text);
                    "its lines are copied"
                }
                None => "it cannot be read; copy the lines over",
            };
            self.rewriter.note(format!(
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
        self.rewriter
            .note(format!("`timeout` became `request_timeout: {seconds}`, in seconds for each call"));
    }

    fn unknown(&mut self, keys: &[String]) {
        let mut others = Vec::new();
        for key in keys {
            match key.as_str() {
                "disabledTools" | "excludeTools" | "disabled_tools" => {
                    self.rewriter.note(format!("`{key}` left out: list the tools under `deny`"))
                }
                "enabledTools" | "includeTools" | "enabled_tools" => {
                    self.rewriter.note(format!("`{key}` left out: list the tools under `allow`"))
                }
                key => others.push(printable(key)),
            }
        }
        if !others.is_empty() {
            self.rewriter.note(format!("{} left out: an agent file has no such key", list_names(others)));
        }
    }

    fn finish(mut self, is_disabled: bool) -> ServerDraft {
        let needs = self.rewriter.missing_variables();
        self.rewriter.add_final_notes();
        let env_file_writer = &self.rewriter.env_file;
        let all = env_file_writer.names().chain(env_file_writer.empty_names());
        let variables: Vec<String> = all.map(str::to_owned).collect();
        let is_set = |name: &&str| self.env.variables.contains_key(*name);
        let (set, empty_names): (Vec<&str>, Vec<&str>) = env_file_writer.empty_names().partition(is_set);
        let (kept, set, empty_names) =
            (list_names(env_file_writer.names()), list_names(set), list_names(empty_names));
        let env_file = (!env_file_writer.is_empty()).then(|| env_file_writer.env_file());
        let file = env_file_writer.file.to_owned();
        if !kept.is_empty() {
            self.rewriter.note(format!("{kept} kept in `{file}`, out of the agent file"));
        }
        if !set.is_empty() {
            self.rewriter.note(format!("{set} taken from the environment, where it is set"));
        }
        if !empty_names.is_empty() {
            self.rewriter.note(format!("fill in {empty_names} in `{file}`"));
        }
        let TextRewriter { notes, reasons, .. } = self.rewriter;
        ServerDraft {
            name: self.name.to_owned(),
            entry: self.entry,
            env_file,
            needs,
            variables,
            is_disabled,
            reasons,
            notes,
        }
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
