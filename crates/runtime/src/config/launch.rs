//! What may follow `npx`, `uvx` and `docker`.
//!
//! Naming one of three launchers is not yet safe: each of them runs anything when it is asked to (`npx -c`,
//! `uvx python -c`, `docker run -v /:/h`). So each has a grammar: the flags it may be given, then one package, tool or
//! image, then arguments that are the server's own business and free. What is not in a grammar needs a grant.

mod docker;
mod npx;
pub(crate) mod spec;
mod uvx;

use super::{
    diagnostic::Diagnostics,
    env::Env,
    place::Placed,
    plan::{Arg, ArgOrigin, Launcher},
};
use crate::text::Text;
use std::path::{Component, Path, PathBuf};

/// One flag that a launcher may be given: its spellings, and whether a value follows.
struct Known {
    spellings: &'static [&'static str],
    has_value: bool,
}

/// A flag as it was given.
struct Flag {
    /// The first of its spellings; a granted one keeps its own.
    name: String,
    value: Option<Placed<Text>>,
    /// The arguments it was written as.
    written: Vec<Placed<Text>>,
    granted: bool,
}

/// Arguments cut into the launcher's own flags and the rest, which begins with the package, tool or image.
struct Cut {
    flags: Vec<Flag>,
    rest: Vec<Placed<Text>>,
}

/// What the grammars know of the world.
pub(crate) struct Launching<'a> {
    pub(crate) env: &'a Env,
    /// Names that docker is to pass into the container.
    pub(crate) container_env: Vec<String>,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

/// The arguments that a launcher is started with. `None` means a complaint was recorded.
pub(crate) fn arguments(
    launcher: Launcher,
    args: Vec<Placed<Text>>,
    launching: &mut Launching<'_>,
) -> Option<Vec<Arg>> {
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
    Arg {
        value: text.map(|it| absolute(it, folder).to_string_lossy().into_owned()),
        origin: ArgOrigin::Resolved(text),
    }
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

impl Flag {
    fn value(&self) -> Option<&Placed<Text>> {
        self.value.as_ref()
    }
}

impl Launching<'_> {
    fn not_an_interpreter(&mut self, launcher: Launcher, tool: &Placed<Text>) -> bool {
        let text = tool.value.expose();
        let fits = !spec::is_interpreter(text) || self.env.grants.allow_package(text);
        if !fits {
            self.diagnostics.refused_interpreter(tool.at, launcher, &tool.value);
        }
        fits
    }

    /// The name of a tool inside a package: a word, not a path.
    fn tool(&mut self, launcher: Launcher, tool: &Placed<Text>) -> bool {
        let text = tool.value.expose();
        let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            && !text.starts_with('.');
        let fits = fits || self.env.grants.allow_package(text);
        if !fits {
            self.diagnostics.refused_package(tool.at, launcher, &tool.value);
        }
        fits
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

    /// Reads flags up to the first argument that is none. Goes on after a mistake as long as it is clear how.
    fn cut(&mut self, launcher: Launcher, known: &[Known], args: Vec<Placed<Text>>) -> Option<Cut> {
        let mut args = args.into_iter().peekable();
        let mut flags = Vec::new();
        let mut fine = true;
        while let Some(arg) =
            args.next_if(|it| it.value.expose().starts_with('-') && it.value.expose() != "-")
        {
            if arg.value.expose() == "--" {
                flags.push(Flag { name: "--".to_owned(), value: None, written: vec![arg], granted: false });
                break;
            }
            let next = args.peek().filter(|it| !it.value.expose().starts_with('-')).cloned();
            let Some(flag) = self.flag(launcher, known, &arg, next) else {
                fine = false;
                if args.peek().is_some_and(|it| !it.value.expose().starts_with('-'))
                    && !arg.value.expose().contains('=')
                {
                    // It may or may not have a value: whatever follows cannot be read.
                    return None;
                }
                continue;
            };
            for flag in &flag {
                args.by_ref().take(flag.written.len().saturating_sub(1)).for_each(drop);
            }
            flags.extend(flag);
        }
        fine.then(|| Cut { flags, rest: args.collect() })
    }

    /// Reads one argument: a long flag, a short one, or a cluster of short ones. The last may take the next argument.
    fn flag(
        &mut self,
        launcher: Launcher,
        known: &[Known],
        arg: &Placed<Text>,
        next: Option<Placed<Text>>,
    ) -> Option<Vec<Flag>> {
        let text = arg.value.expose();
        let flags = match text.strip_prefix("--") {
            Some(_) => long(known, arg, next.as_ref()).map(|flag| vec![flag]),
            None => cluster(known, arg, next.as_ref()),
        };
        flags.or_else(|| self.granted(launcher, arg, next)).or_else(|| {
            self.diagnostics.refused_argument(arg.at, launcher, &arg.value);
            None
        })
    }

    fn granted(
        &self,
        launcher: Launcher,
        arg: &Placed<Text>,
        next: Option<Placed<Text>>,
    ) -> Option<Vec<Flag>> {
        let text = arg.value.expose();
        let grants = &self.env.grants;
        let (name, inline) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let separate = next.filter(|_| inline.is_none() && grants.takes_value(launcher, name));
        let value = inline.or(separate.as_ref().map(|it| it.value.expose()));
        grants.allow_argument(launcher, name, value).then(|| {
            let written = [arg.clone()].into_iter().chain(separate.clone()).collect();
            vec![Flag { name: name.to_owned(), value: separate, written, granted: true }]
        })
    }
}

fn long(known: &[Known], arg: &Placed<Text>, next: Option<&Placed<Text>>) -> Option<Flag> {
    let text = arg.value.expose();
    let (name, inline) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let known = known.iter().find(|it| it.spellings.contains(&name))?;
    let name = known.spellings[0].to_owned();
    let flag = |value: Option<Placed<Text>>, written| Some(Flag { name, value, written, granted: false });
    match (known.has_value, inline) {
        (false, None | Some("true")) => flag(None, vec![arg.clone()]),
        (false, Some(_)) => None,
        (true, Some(_)) => flag(Some(after(arg, '=')), vec![arg.clone()]),
        (true, None) => flag(Some(next?.clone()), vec![arg.clone(), next?.clone()]),
    }
}

/// `-i`, `-eNAME`, `-e NAME`, `-ie NAME`.
fn cluster(known: &[Known], arg: &Placed<Text>, next: Option<&Placed<Text>>) -> Option<Vec<Flag>> {
    let text = arg.value.expose();
    let mut flags = Vec::new();
    for (at, letter) in text.char_indices().skip(1) {
        let short = format!("-{letter}");
        let known = known.iter().find(|it| it.spellings.contains(&short.as_str()))?;
        let name = known.spellings[0].to_owned();
        if !known.has_value {
            flags.push(Flag { name, value: None, written: vec![arg.clone()], granted: false });
            continue;
        }
        let inline = &text[at + letter.len_utf8()..];
        let (value, written) = match inline {
            "" => (next?.clone(), vec![arg.clone(), next?.clone()]),
            _ => (
                Placed::new(arg.value.map(|it| it.get(at + 1..).unwrap_or_default().to_owned()), arg.at),
                vec![arg.clone()],
            ),
        };
        flags.push(Flag { name, value: Some(value), written, granted: false });
        break;
    }
    (!flags.is_empty()).then_some(flags)
}

/// What follows a separator, in both forms of a text.
fn after(arg: &Placed<Text>, separator: char) -> Placed<Text> {
    let tail = |it: &str| it.split_once(separator).map_or_else(String::new, |(_, tail)| tail.to_owned());
    Placed::new(arg.value.map(tail), arg.at)
}

/// The flags as they were written.
fn written(flags: &[Flag]) -> impl Iterator<Item = Arg> {
    let mut args: Vec<Placed<Text>> = Vec::new();
    for flag in flags {
        // The flags of a cluster share one argument.
        for it in &flag.written {
            if args.last() != Some(it) {
                args.push(it.clone());
            }
        }
    }
    args.into_iter().map(|it| Arg { value: it.value, origin: ArgOrigin::Written })
}
