//! Drafts a stdio server: its command, arguments and environment.

use super::ServerDrafter;
use crate::import::{
    checker,
    client_server::ClientServer,
    launcher::Invocation,
    note::printable,
    split_values::{self, Piece},
    template::is_literal,
};
use std::path::Path;
use wharf_config::Launcher;

impl ServerDrafter<'_> {
    /// Simplifies the command to a launcher on PATH, unless the operator granted the written command.
    pub(super) fn simplify(&mut self, written: Invocation) -> Invocation {
        if self.env.grants.commands.iter().any(|it| it == Path::new(&written.command)) {
            return written;
        }
        let Some(simple) = written.simplify() else { return written };
        // A full command line may contain a secret; its first word does not.
        let before = match written.args[..] {
            [] => written.command.split(' ').next().unwrap_or_default(),
            _ => &written.command,
        };
        let (before, after) = (printable(before), &simple.command);
        self.rewriter.note(format!("`{before}` became `{after}`, which is looked up on PATH"));
        simple
    }

    /// Returns the package that the launcher runs, unless it contains a secret or a variable.
    pub(super) fn package(&self, invocation: &Invocation) -> Option<String> {
        let package = &invocation.args[invocation.package_index()?];
        let is_open =
            split_values::split_argument(None, package).iter().all(|it| matches!(it, Piece::Plain(_)));
        let fits = is_open && !package.contains("${") && !package.starts_with("builtin:");
        fits.then(|| package.clone())
    }

    pub(super) fn stdio(&mut self, invocation: Option<Invocation>, client_server: &mut ClientServer) {
        // Variables that the server reads must keep their names, so they come before those with generated names.
        let mut env = self.environment(std::mem::take(&mut client_server.env));
        for name in std::mem::take(&mut client_server.inherited_env) {
            let value = self.rewriter.reference("env_vars", &name);
            env.extend(value.map(|it| (name, it)));
        }
        match invocation {
            // Without an explicit transport, the loader would derive a command from the name.
            None => self.entry.text("transport", "stdio"),
            Some(invocation) => {
                // Without arguments, the loader would derive them from the name.
                if Launcher::parse(&invocation.command).is_some() && invocation.args.is_empty() {
                    self.rewriter.refuse(format!("`{}` has nothing to run", invocation.command));
                }
                let command = self.rewriter.word("command", &invocation.command);
                let args = self.arguments(&invocation);
                self.entry.text("command", command);
                self.entry.texts("args", args);
            }
        }
        self.entry.map("env", env);
    }

    fn arguments(&mut self, invocation: &Invocation) -> Vec<String> {
        let image = invocation.package_index().filter(|_| invocation.command == "docker");
        let mut before: Option<&str> = None;
        let mut args = Vec::new();
        for (at, arg) in invocation.args.iter().enumerate() {
            let is_option = image.is_some_and(|image| at < image);
            let text = match arg.strip_prefix("--env=") {
                Some(variable) if is_option => format!("--env={}", self.move_container_variable(variable)),
                _ if is_option && matches!(before, Some("-e" | "--env")) => self.move_container_variable(arg),
                _ => self.rewriter.text("args", arg, |it| split_values::split_argument(before, it)),
            };
            args.push(text);
            before = Some(arg);
        }
        args
    }

    /// Converts `-e NAME=value` into `-e NAME`. Docker takes the value from the environment, which the env file sets.
    /// A name that the env file cannot set stays, with a reference to the value.
    fn move_container_variable(&mut self, arg: &str) -> String {
        let Some((name, value)) = arg.split_once('=') else { return self.rewriter.word("args", arg) };
        if self.can_keep_name(name, value)
            && !self.rewriter.env_file.has(name)
            && checker::refused_names(&[name], self.env).is_empty()
        {
            self.rewriter.env_file.set(name, value);
            return name.to_owned();
        }
        format!("{}={}", self.rewriter.word("args", name), self.rewriter.value("args", name, value))
    }

    fn environment(&mut self, mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        let refused = checker::refused_names(&names, self.env);
        for it in &refused {
            let hint = it.hint.as_deref().map_or_else(String::new, |hint| format!("; {hint}"));
            self.rewriter
                .note(format!("`{}` in `env` left out: an agent file may not set it{hint}", it.name));
        }
        pairs.retain(|(name, _)| !refused.iter().any(|it| it.name == *name));
        let (own, rest): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(name, value)| self.can_keep_name(name, value));
        for (name, value) in own {
            self.rewriter.env_file.set(&name, &value);
        }
        rest.into_iter()
            .map(|(name, value)| {
                let text = self.rewriter.value("env", &name, &value);
                (name, text)
            })
            .collect()
    }

    /// Checks whether a variable can go into the env file under its own name. An empty value cannot: an empty line
    /// there asks the user to fill it in.
    fn can_keep_name(&self, name: &str, value: &str) -> bool {
        let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        fits && !value.is_empty() && is_literal(self.document.syntax, value) && !value.contains('\0')
    }
}
