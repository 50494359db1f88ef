//! What may follow `npx`, `uvx` and `docker`.
//!
//! Naming one of three launchers is not yet safe: each of them runs anything when it is asked to (`npx -c`,
//! `uvx python -c`, `docker run -v /:/h`). So each has a grammar: the flags it may be given, then one package, tool or
//! image, then arguments that are the server's own business and free. What is not in a grammar needs a grant.
//!
//! A grammar is worth nothing where the launcher reads the line differently. Short flags in clusters are written out one
//! by one, and where a flag is present that a launcher might read further than we do, `--` ends the flags.

mod docker;
mod flags;
mod npx;
pub(crate) mod spec;
mod uvx;

use super::{
    diagnostic::Diagnostics,
    download::Download,
    env::Env,
    place::Placed,
    plan::{Arg, ArgOrigin, Launcher},
};
use crate::text::Text;
use std::path::{Component, Path, PathBuf};

/// What the grammars know of the world.
pub(crate) struct Launching<'a> {
    pub(crate) env: &'a Env,
    /// Names that docker is to pass into the container.
    pub(crate) container_env: Vec<Text>,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

/// The arguments of a server's process.
pub(crate) struct Arguments {
    pub(crate) args: Vec<Arg>,
    /// The package or image that the launcher downloads for them, if any.
    pub(crate) download: Option<Download>,
}

/// The arguments that a launcher is started with. `None` means a complaint was recorded.
pub(crate) fn arguments(
    launcher: Launcher,
    args: Vec<Placed<Text>>,
    launching: &mut Launching<'_>,
) -> Option<Arguments> {
    match launcher {
        Launcher::Npx => npx::arguments(args, launching),
        Launcher::Uvx => uvx::arguments(args, launching),
        Launcher::Docker => docker::arguments(args, launching),
    }
}

/// The arguments that follow from `server` when there is no `args`.
pub(crate) fn derived(launcher: Launcher, server: &Placed<Text>) -> Vec<Placed<Text>> {
    let before: &[&str] = match launcher {
        Launcher::Npx => &["-y"],
        Launcher::Uvx => &[],
        Launcher::Docker => &["run", "--rm", "-i"],
    };
    before.iter().map(|it| Placed::new(Text::plain(*it), server.at)).chain([server.clone()]).collect()
}

/// An argument of the server's own. Its working directory is private and empty, so a path is made absolute here.
pub(crate) fn free(text: Text, folder: &Path) -> Arg {
    let value = text.expose();
    let is_relative = matches!(value, "." | "..") || value.starts_with("./") || value.starts_with("../");
    if !is_relative {
        return Arg { value: text, origin: ArgOrigin::Written };
    }
    let value = text.map(|it| absolute(it, folder).to_string_lossy().into_owned());
    Arg { value, origin: ArgOrigin::Resolved(text) }
}

/// A path relative to the agent file, made absolute without asking the disk.
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

impl Launching<'_> {
    /// Not something that runs whatever it is given: an interpreter, or a program of this machine.
    fn not_an_interpreter(&mut self, launcher: Launcher, tool: &Placed<Text>) -> bool {
        let text = tool.value.expose();
        let fits = !spec::is_interpreter(text) || self.env.grants.allow_package(text);
        if !fits {
            self.diagnostics.refused_interpreter(tool.at, launcher, &tool.value, self.env);
        }
        fits
    }

    /// The name of a tool inside a package: a word, not a path, and not a program that is on PATH anyway, which the
    /// launcher would run although the package has nothing to do with it.
    fn tool(&mut self, launcher: Launcher, tool: &Placed<Text>) -> bool {
        let text = tool.value.expose();
        if self.env.grants.allow_package(text) {
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
        self.not_an_interpreter(launcher, tool)
    }

    /// A value that is one word.
    fn simple_value(&mut self, launcher: Launcher, flag: &str, value: &Placed<Text>) -> bool {
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

/// Something that was not written.
fn added(value: &str, why: &'static str) -> Arg {
    Arg { value: Text::plain(value), origin: ArgOrigin::Added(why) }
}

fn as_written(text: Placed<Text>) -> Arg {
    Arg { value: text.value, origin: ArgOrigin::Written }
}

/// `--`, unless the flags end with one already.
fn end_of_flags(flags: &[flags::Flag]) -> Option<Arg> {
    let ended = flags.last().is_some_and(|it| it.name == "--");
    (!ended).then(|| added("--", "what follows is not for the launcher to read"))
}
