//! One server on its way into the agent file: its entry, its env file, and what there is to say about both.

use super::{
    EnvFile,
    conceal::{self, Cut},
    document::Document,
    foreign::Foreign,
    launcher::Invocation,
    note::{Note, listed, printable},
    secret,
    template::{escape, is_literal},
    trial::{self, Reason},
    writer::Writer,
    yaml::Entry,
};
use std::{collections::BTreeSet, path::Path};
use wharf_runtime::config::Env;

/// A server, rewritten. With reasons, it is a comment; without, an entry.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) entry: Entry,
    pub(super) env_file: Option<EnvFile>,
    pub(super) reasons: Vec<Reason>,
    notes: Vec<Note>,
}

/// Every server of a file, in its order.
pub(super) fn all(document: &Document, env: &Env) -> Vec<Draft> {
    let files = env_file_names(document.servers.keys());
    let servers = document.servers.iter().zip(&files);
    servers
        .map(|((name, value), file)| {
            let writer = Writer::new(name, file, document, env);
            Drafting { name, document, env, writer, entry: Entry::default() }.draft(Foreign::read(value))
        })
        .collect()
}

impl Draft {
    /// What there is to say, first of all whether it is in.
    pub(super) fn into_notes(self) -> impl Iterator<Item = Note> {
        let first = self.reasons.first().map(|it| {
            Note::about(&self.name, format!("left as a comment in the agent file: {}", it.message))
        });
        first.into_iter().chain(self.notes)
    }
}

struct Drafting<'a> {
    name: &'a str,
    document: &'a Document,
    env: &'a Env,
    writer: Writer<'a>,
    entry: Entry,
}

/// How a server is reached, as far as its description tells.
enum Reach {
    Stdio(Option<Invocation>),
    Remote { transport: String, url: Option<String> },
}

impl Drafting<'_> {
    fn draft(mut self, mut foreign: Foreign) -> Draft {
        if foreign.is_off {
            self.writer.reasons.push(Reason::new("the client has it turned off"));
        }
        self.writer.reasons.extend(foreign.troubles.drain(..).map(Reason::new));
        let reach = self.reach(&mut foreign);
        self.head(foreign.description.as_deref(), &reach);
        match reach {
            Reach::Stdio(invocation) => self.stdio(invocation, &mut foreign),
            Reach::Remote { transport, url } => self.remote(&transport, url, &mut foreign),
        }
        self.env_file(foreign.env_file.as_deref());
        self.timeout(foreign.timeout);
        self.unknown(&foreign.unknown);
        self.finish()
    }

    /// Decides how the server is reached, and says what is left over.
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
            self.unused("remote", [("command", command.is_some()), ("args", args), ("env", env)]);
            return Reach::Remote { transport, url };
        }
        let headers = !std::mem::take(&mut foreign.headers).is_empty();
        self.unused("local", [("url", url.is_some()), ("headers", headers)]);
        let args = std::mem::take(&mut foreign.args);
        Reach::Stdio(command.map(|command| self.simplified(Invocation { command, args })))
    }

    fn unused<const N: usize>(&mut self, kind: &str, keys: [(&str, bool); N]) {
        let keys: Vec<&str> =
            keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect();
        if !keys.is_empty() {
            self.writer.note(format!("{} left out: a {kind} server has no use for it", listed(keys)));
        }
    }

    fn simplified(&mut self, written: Invocation) -> Invocation {
        if self.env.grants.commands.iter().any(|it| it == Path::new(&written.command)) {
            return written;
        }
        let Some(simple) = written.simplified() else { return written };
        let (before, after) = (printable(&written.command), &simple.command);
        self.writer.note(format!("`{before}` became `{after}`, which is looked up on PATH"));
        simple
    }

    /// The keys that every entry has.
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
        let description = match description.filter(|it| !it.trim().is_empty()) {
            Some(text) => escape(text),
            None => escape(&format!("The {} server{at}", printable(self.name))),
        };
        self.entry.text("name", escape(self.name));
        self.entry.text("description", description);
        self.entry.text("type", "mcp");
        self.entry.text("server", package.unwrap_or_else(|| escape(self.name)));
    }

    /// What the launcher runs, if that can be shown.
    fn package(&self, invocation: &Invocation) -> Option<String> {
        let package = &invocation.args[invocation.subject()?];
        let before = invocation.args.iter().take_while(|it| *it != package).last();
        let is_open = matches!(conceal::argument(before.map(String::as_str), package)[..], [Cut::Open(_)]);
        let fits = is_open && !package.contains("${") && !package.starts_with("builtin:");
        fits.then(|| package.clone())
    }

    fn stdio(&mut self, invocation: Option<Invocation>, foreign: &mut Foreign) {
        // What the server itself looks for keeps its name, so it comes before names that can be chosen.
        let env = self.environment(std::mem::take(&mut foreign.env));
        match invocation {
            // Said explicitly, or the loader would guess a command from the name.
            None => self.entry.text("transport", "stdio"),
            Some(invocation) => {
                let command = self.writer.open("command", &invocation.command);
                let args = self.arguments(&invocation);
                self.entry.text("command", command);
                self.entry.texts("args", args);
            }
        }
        self.entry.map("env", env);
    }

    fn arguments(&mut self, invocation: &Invocation) -> Vec<String> {
        let image = invocation.subject().filter(|_| invocation.command == "docker");
        let mut before: Option<&str> = None;
        let mut args = Vec::new();
        for (at, arg) in invocation.args.iter().enumerate() {
            let is_variable = image.is_some_and(|image| at < image)
                && before.is_some_and(|it| matches!(it, "-e" | "--env"));
            let kept = if is_variable { self.container_variable(arg) } else { None };
            let text =
                kept.unwrap_or_else(|| self.writer.text("args", arg, |it| conceal::argument(before, it)));
            args.push(text);
            before = Some(arg);
        }
        args
    }

    /// `-e NAME=secret` becomes `-e NAME`: docker passes on what the env file says.
    fn container_variable(&mut self, arg: &str) -> Option<String> {
        let (name, value) = arg.split_once('=')?;
        if !self.keeps_its_name(name, value) || !trial::refused_names(&[name], self.env).is_empty() {
            return None;
        }
        self.writer.vault.keep(name, value);
        Some(name.to_owned())
    }

    fn environment(&mut self, mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        let refused = trial::refused_names(&names, self.env);
        for it in &refused {
            let hint = it.hint.as_deref().map_or_else(String::new, |hint| format!("; {hint}"));
            self.writer.note(format!("`{}` in `env` left out: an agent file may not set it{hint}", it.name));
        }
        pairs.retain(|(name, _)| !refused.iter().any(|it| it.name == *name));
        let (own, rest): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(name, value)| self.keeps_its_name(name, value));
        for (name, value) in own {
            self.writer.vault.keep(&name, &value);
        }
        rest.into_iter()
            .map(|(name, value)| {
                let text = self.writer.text("env", &value, |it| conceal::variable(&name, it));
                (name, text)
            })
            .collect()
    }

    /// Whether a variable is a secret that can go into the env file as it is.
    fn keeps_its_name(&self, name: &str, value: &str) -> bool {
        let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        fits && secret::is_secret(name, value)
            && is_literal(self.document.dialect, value)
            && !value.contains('\0')
    }

    fn remote(&mut self, transport: &str, url: Option<String>, foreign: &mut Foreign) {
        self.entry.text("transport", self.writer.open("type", transport));
        if let Some(url) = url {
            let url = self.writer.text("url", &url, conceal::url);
            self.entry.text("url", url);
        }
        let headers = std::mem::take(&mut foreign.headers).into_iter().map(|(name, value)| {
            let text = self.writer.text("headers", &value, |it| conceal::header(&name, it));
            (name, text)
        });
        let headers = headers.collect();
        self.entry.map("headers", headers);
    }

    /// An entry has one env file: ours when there is something to set aside, else the one it had.
    fn env_file(&mut self, named: Option<&str>) {
        let file = self.writer.vault.file.to_owned();
        let is_ours = !self.writer.vault.is_empty();
        match named {
            _ if is_ours => self.entry.text("envFile", &file),
            Some(named) => {
                let path = self.writer.open("envFile", named);
                self.entry.text("envFile", path);
            }
            None => {}
        }
        if let Some(named) = named.filter(|_| is_ours) {
            let named = printable(named);
            self.writer.note(format!("`envFile` {named} left out: an entry has one, and `{file}` holds its secrets; copy the lines over"));
        }
    }

    /// Most clients count seconds; what would be hours is somebody's milliseconds.
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
                "cwd" => self.writer.note("`cwd` left out: a server starts in a private, empty folder; paths that begin with `./` are relative to the agent file"),
                "disabledTools" | "excludeTools" => self.writer.note(format!("`{key}` left out: list the tools under `deny`")),
                "enabledTools" | "includeTools" => self.writer.note(format!("`{key}` left out: list the tools under `allow`")),
                key => others.push(printable(key)),
            }
        }
        if !others.is_empty() {
            self.writer
                .note(format!("{} left out: there is nothing like it in an agent file", listed(others)));
        }
    }

    fn finish(mut self) -> Draft {
        self.writer.close();
        let vault = &self.writer.vault;
        let (kept, blanks) = (listed(vault.names()), listed(vault.blanks()));
        let env_file = (!vault.is_empty()).then(|| vault.env_file());
        let file = vault.file.to_owned();
        if !kept.is_empty() {
            self.writer.note(format!("{kept} kept in `{file}`, out of the agent file"));
        }
        if !blanks.is_empty() {
            self.writer.note(format!("fill in {blanks} in `{file}`"));
        }
        let Writer { notes, reasons, .. } = self.writer;
        Draft { name: self.name.to_owned(), entry: self.entry, env_file, reasons, notes }
    }
}

/// The transport behind an address that says no more.
fn transport_of(url: &str) -> &'static str {
    let lower = url.to_ascii_lowercase();
    let path = lower.split(['?', '#']).next().unwrap_or_default();
    match () {
        () if lower.starts_with("ws://") || lower.starts_with("wss://") => "websocket",
        () if path.trim_end_matches('/').ends_with("/sse") => "sse",
        () => "http",
    }
}

/// The host of an address, if it can be shown.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let fits = !host.is_empty() && !host.contains("${");
    fits.then(|| printable(host))
}

/// `.env.NAME` for each server, safe as names of files and different even where case does not count.
fn env_file_names<'a>(servers: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    servers
        .map(|server| {
            let base = file_stem(server);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let free =
                [base.clone()].into_iter().chain(numbered).find(|it| taken.insert(it.to_ascii_lowercase()));
            format!(".env.{}", free.unwrap_or(base))
        })
        .collect()
}

fn file_stem(server: &str) -> String {
    // Files by these names are meant to be shared.
    const SHARED: [&str; 5] = ["default", "defaults", "example", "sample", "template"];
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = server.chars().map(safe).take(60).collect();
    match name.trim_matches(['-', '.']) {
        "" => "server".to_owned(),
        name if SHARED.contains(&name.to_ascii_lowercase().as_str()) => format!("{name}-server"),
        name => name.to_owned(),
    }
}
