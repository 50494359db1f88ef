//! Checks the arguments of `npx`, `uvx` and `docker`.
//!
//! Restricting `command` to three launchers is not enough, because each of them can run anything (`npx -c`, `uvx
//! python -c`, `docker run -v /:/h`). So each launcher has a grammar: allowed flags, then one package, tool or image,
//! then arguments for the server, which are not restricted. Anything else needs a grant.
//!
//! A grammar is useless if the launcher parses the line differently. So clusters of short flags are split into single
//! flags, and `--` is added after the flags where a launcher might look for more flags than the grammar does.

mod docker;
mod flags;
mod npx;
pub(crate) mod pin;
pub(crate) mod spec;
mod uvx;

use super::{
    diagnostic::Diagnostics,
    download::Download,
    env::Env,
    place::{Placed, PlacedString},
    plan::{Arg, ArgOrigin, Launcher},
};
use crate::masked_string::MaskedString;
use std::path::{Component, Path, PathBuf};

/// Context that the grammars share.
pub(crate) struct LaunchContext<'a> {
    pub(crate) env: &'a Env,
    /// Names of the variables that docker must pass into the container.
    pub(crate) container_env: Vec<MaskedString>,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

/// Checked arguments of a server's process.
pub(crate) struct Arguments {
    pub(crate) args: Vec<Arg>,
    /// Package or image that the launcher downloads, if any.
    pub(crate) download: Option<Download>,
}

/// Checks the arguments of a launcher. `None` means that a diagnostic was recorded.
pub(crate) fn arguments(
    launcher: Launcher,
    args: Vec<PlacedString>,
    context: &mut LaunchContext<'_>,
) -> Option<Arguments> {
    match launcher {
        Launcher::Npx => npx::arguments(args, context),
        Launcher::Uvx => uvx::arguments(args, context),
        Launcher::Docker => docker::arguments(args, context),
    }
}

/// Derives the arguments from `server`, for an entry without `args`.
pub(crate) fn derived_arguments(launcher: Launcher, server: &PlacedString) -> Vec<PlacedString> {
    let before: &[&str] = match launcher {
        Launcher::Npx => &["-y"],
        Launcher::Uvx => &[],
        Launcher::Docker => &["run", "--rm", "-i"],
    };
    before.iter().map(|it| Placed::new(MaskedString::plain(*it), server.at)).chain([server.clone()]).collect()
}

/// Builds an argument for the server itself. A relative path is made absolute, because the server's working directory
/// is private and empty.
pub(crate) fn server_argument(text: MaskedString, folder: &Path) -> Arg {
    let value = text.expose();
    let is_relative = matches!(value, "." | "..") || value.starts_with("./") || value.starts_with("../");
    if !is_relative {
        return Arg { value: text, origin: ArgOrigin::Written };
    }
    let value = text.map(|it| absolute(it, folder).to_string_lossy().into_owned());
    Arg { value, origin: ArgOrigin::Resolved(text) }
}

/// Makes a path absolute, relative to the agent file's folder, without accessing the disk.
pub(crate) fn absolute(path: &str, folder: &Path) -> PathBuf {
    let mut absolute = folder.to_owned();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = absolute.pop(),
            Component::RootDir => absolute = PathBuf::from("/"),
            other => absolute.push(other),
        }
    }
    absolute
}

impl LaunchContext<'_> {
    /// Checks that `tool` is not an interpreter, unless the operator granted it. An interpreter would run any code it
    /// is given.
    fn check_not_interpreter(&mut self, launcher: Launcher, tool: &PlacedString) -> bool {
        let text = tool.value.expose();
        let fits = !spec::is_interpreter(text) || self.env.grants.allows_package(text);
        if !fits {
            self.diagnostics.refused_interpreter(tool.at, launcher, &tool.value, self.env);
        }
        fits
    }

    /// Checks the name of a tool inside a package. It must be a plain word, not a path. It must not be a program on
    /// PATH, because the launcher would run that program instead of the package's tool.
    fn check_tool(&mut self, launcher: Launcher, tool: &PlacedString) -> bool {
        let text = tool.value.expose();
        if self.env.grants.allows_package(text) {
            return true;
        }
        let is_word = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !is_word {
            self.diagnostics.refused_package(tool.at, launcher, &tool.value, self.env);
            return false;
        }
        let path = self.env.variables.get("PATH").map(String::as_str).unwrap_or_default();
        if !spec::is_interpreter(text) && self.env.files.is_on_path(text, path) {
            self.diagnostics.refused_program(tool.at, launcher, &tool.value, self.env);
            return false;
        }
        self.check_not_interpreter(launcher, tool)
    }

    /// Checks that a flag's value is one word.
    fn check_simple_value(&mut self, launcher: Launcher, flag: &str, value: &PlacedString) -> bool {
        let text = value.value.expose();
        let fits = !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b':'));
        if !fits {
            self.diagnostics.refused_value(value.at, launcher, flag, "one word");
        }
        fits
    }
}

impl From<Vec<Arg>> for Arguments {
    fn from(args: Vec<Arg>) -> Arguments {
        Arguments { args, download: None }
    }
}

/// Builds an argument that wharf adds.
fn added(value: &str, why: &'static str) -> Arg {
    Arg { value: MaskedString::plain(value), origin: ArgOrigin::Added(why) }
}

fn as_written(text: PlacedString) -> Arg {
    Arg { value: text.value, origin: ArgOrigin::Written }
}

/// Returns a `--` argument, unless the flags already end with one.
fn end_of_flags(flags: &[flags::Flag]) -> Option<Arg> {
    let ended = flags.last().is_some_and(|it| it.name == "--");
    (!ended).then(|| added("--", "ends the options of the launcher"))
}
