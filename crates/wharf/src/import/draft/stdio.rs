//! Drafts a stdio server: its command, arguments and environment.

use super::Drafting;
use crate::import::{
    conceal::{self, Cut},
    foreign::Foreign,
    launcher::Invocation,
    note::printable,
    template::is_literal,
    trial,
};
use std::path::Path;
use wharf_config::Launcher;

impl Drafting<'_> {
    /// Simplifies the command to a launcher on PATH, unless the operator granted the written command.
    pub(super) fn simplified(&mut self, written: Invocation) -> Invocation {
        if self.env.grants.commands.iter().any(|it| it == Path::new(&written.command)) {
            return written;
        }
        let Some(simple) = written.simplified() else { return written };
        // A full command line may contain a secret; its first word does not.
        let before = match written.args[..] {
            [] => written.command.split(' ').next().unwrap_or_default(),
            _ => &written.command,
        };
        let (before, after) = (printable(before), &simple.command);
        self.writer.note(format!("`{before}` became `{after}`, which is looked up on PATH"));
        simple
    }

    /// Returns the package that the launcher runs, unless it contains a secret or a variable.
    pub(super) fn package(&self, invocation: &Invocation) -> Option<String> {
        let package = &invocation.args[invocation.subject()?];
        let is_open = conceal::argument(None, package).iter().all(|it| matches!(it, Cut::Open(_)));
        let fits = is_open && !package.contains("${") && !package.starts_with("builtin:");
        fits.then(|| package.clone())
    }

    pub(super) fn stdio(&mut self, invocation: Option<Invocation>, foreign: &mut Foreign) {
        // Variables that the server reads must keep their names, so they come before those with generated names.
        let mut env = self.environment(std::mem::take(&mut foreign.env));
        for name in std::mem::take(&mut foreign.passed_on) {
            let value = self.writer.reference("env_vars", &name);
            env.extend(value.map(|it| (name, it)));
        }
        match invocation {
            // Without an explicit transport, the loader would derive a command from the name.
            None => self.entry.text("transport", "stdio"),
            Some(invocation) => {
                // Without arguments, the loader would derive them from the name.
                if Launcher::parse(&invocation.command).is_some() && invocation.args.is_empty() {
                    self.writer.refuse(format!("`{}` is given nothing to run", invocation.command));
                }
                let command = self.writer.word("command", &invocation.command);
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
            let is_option = image.is_some_and(|image| at < image);
            let text = match arg.strip_prefix("--env=") {
                Some(variable) if is_option => format!("--env={}", self.container_variable(variable)),
                _ if is_option && matches!(before, Some("-e" | "--env")) => self.container_variable(arg),
                _ => self.writer.text("args", arg, |it| conceal::argument(before, it)),
            };
            args.push(text);
            before = Some(arg);
        }
        args
    }

    /// Converts `-e NAME=value` into `-e NAME`. Docker takes the value from the environment, which the env file sets.
    /// A name that the env file cannot set stays, with a reference to the value.
    fn container_variable(&mut self, arg: &str) -> String {
        let Some((name, value)) = arg.split_once('=') else { return self.writer.word("args", arg) };
        if self.keeps_its_name(name, value)
            && !self.writer.env_file.has(name)
            && trial::refused_names(&[name], self.env).is_empty()
        {
            self.writer.env_file.set(name, value);
            return name.to_owned();
        }
        format!("{}={}", self.writer.word("args", name), self.writer.value("args", name, value))
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
            self.writer.env_file.set(&name, &value);
        }
        rest.into_iter()
            .map(|(name, value)| {
                let text = self.writer.value("env", &name, &value);
                (name, text)
            })
            .collect()
    }

    /// Checks whether a variable can go into the env file under its own name. An empty value cannot: an empty line
    /// there asks the user to fill it in.
    fn keeps_its_name(&self, name: &str, value: &str) -> bool {
        let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        fits && !value.is_empty() && is_literal(self.document.dialect, value) && !value.contains('\0')
    }
}
