//! Splits a launcher's arguments into its own flags and the command it runs.

use super::LaunchContext;
use crate::{
    masked_string::MaskedString,
    place::{Placed, PlacedString},
    plan::{Arg, ArgOrigin, Launcher},
};

/// Maximum number of letters in a cluster of short flags.
const MAX_CLUSTER_FLAGS: usize = 8;

/// A flag that a launcher may be given: its spellings, and whether it takes a value.
pub(super) struct KnownFlag {
    pub(super) spellings: &'static [&'static str],
    pub(super) has_value: bool,
}

/// A flag as given in `args`.
pub(super) struct Flag {
    /// Canonical spelling of a known flag, or the spelling as written for a granted one.
    pub(super) name: String,
    pub(super) value: Option<PlacedString>,
    /// Arguments to pass to the launcher for this flag.
    pub(super) written: Vec<MaskedString>,
    pub(super) granted: bool,
}

/// Arguments, split into the launcher's flags and the rest. The rest begins with the package, tool or image.
pub(super) struct SplitArguments {
    pub(super) flags: Vec<Flag>,
    pub(super) rest: Vec<PlacedString>,
}

/// Flags read from one argument, and whether the next argument is the value of the last one.
struct ParsedFlags {
    flags: Vec<Flag>,
    takes_next: bool,
}

impl Flag {
    /// Returns the arguments to pass to the launcher.
    pub(super) fn args(&self) -> impl Iterator<Item = Arg> {
        self.written.clone().into_iter().map(|value| Arg { value, origin: ArgOrigin::Written })
    }
}

impl LaunchContext<'_> {
    /// Reads flags up to the first argument that is not a flag. Continues after an error while the meaning of the
    /// next argument is clear.
    pub(super) fn split(
        &mut self,
        launcher: Launcher,
        known: &[KnownFlag],
        args: Vec<PlacedString>,
    ) -> Option<SplitArguments> {
        let mut args = args.into_iter().peekable();
        let mut flags = Vec::new();
        let mut fine = true;
        while let Some(arg) = args.next_if(is_flag) {
            if arg.value.expose() == "--" {
                flags.push(Flag {
                    name: "--".to_owned(),
                    value: None,
                    written: vec![arg.value],
                    granted: false,
                });
                break;
            }
            let next = args.peek().filter(|it| !is_flag(it));
            match self.read(launcher, known, &arg, next) {
                Some(parsed) => {
                    flags.extend(parsed.flags);
                    args.next_if(|_| parsed.takes_next);
                }
                // The refused flag may or may not take a value, so the rest of the line is ambiguous.
                None if next.is_some() && !arg.value.expose().contains('=') => return None,
                None => fine = false,
            }
        }
        fine.then(|| SplitArguments { flags, rest: args.collect() })
    }

    /// Reads one argument: a long flag, a short flag, or a cluster of short flags if the launcher supports clusters.
    fn read(
        &mut self,
        launcher: Launcher,
        known: &[KnownFlag],
        arg: &PlacedString,
        next: Option<&PlacedString>,
    ) -> Option<ParsedFlags> {
        let is_long = arg.value.expose().starts_with("--");
        let parsed = match launcher {
            _ if is_long => parse_single(known, arg, next),
            // npx treats the word after a cluster, or after `-f=value`, as a value.
            Launcher::Npx if arg.value.expose().contains('=') => None,
            Launcher::Npx => parse_single(known, arg, next),
            Launcher::Uvx | Launcher::Docker => parse_cluster(known, arg, next),
        };
        parsed.or_else(|| self.parse_granted(launcher, arg, next)).or_else(|| {
            let lacks_value = next.is_none()
                && known.iter().any(|it| it.has_value && it.spellings.contains(&arg.value.expose()));
            match lacks_value {
                true => self.diagnostics.missing_argument_value(arg.at, launcher, &arg.value),
                false => self.diagnostics.refused_argument(arg.at, launcher, &arg.value, next.is_some()),
            }
            None
        })
    }

    fn parse_granted(
        &self,
        launcher: Launcher,
        arg: &PlacedString,
        next: Option<&PlacedString>,
    ) -> Option<ParsedFlags> {
        let text = arg.value.expose();
        let grants = &self.env.grants;
        let (name, inline) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let separate = next.filter(|_| inline.is_none() && grants.takes_value(launcher, name));
        let value = inline.or(separate.map(|it| it.value.expose()));
        grants.allows_argument(launcher, name, value).then(|| {
            let written = [&arg.value].into_iter().chain(separate.map(|it| &it.value)).cloned().collect();
            let flag = Flag { name: name.to_owned(), value: separate.cloned(), written, granted: true };
            ParsedFlags { flags: vec![flag], takes_next: separate.is_some() }
        })
    }
}

fn is_flag(arg: &PlacedString) -> bool {
    arg.value.expose().starts_with('-') && arg.value.expose() != "-"
}

/// Reads `--flag`, `--flag value`, `--flag=value`, `-f` or `-f value`.
fn parse_single(known: &[KnownFlag], arg: &PlacedString, next: Option<&PlacedString>) -> Option<ParsedFlags> {
    let text = arg.value.expose();
    let (name, inline) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let known = known.iter().find(|it| it.spellings.contains(&name))?;
    let (value, takes_next) = match (known.has_value, inline) {
        (false, None | Some("true")) => (None, false),
        (false, Some(_)) => return None,
        (true, Some(_)) => (Some(value_after(arg, '=')), false),
        (true, None) => (Some(next?.clone()), true),
    };
    let written =
        [&arg.value].into_iter().chain(next.filter(|_| takes_next).map(|it| &it.value)).cloned().collect();
    let flag = Flag { name: known.spellings[0].to_owned(), value, written, granted: false };
    Some(ParsedFlags { flags: vec![flag], takes_next })
}

/// Reads `-i`, `-eNAME`, `-e NAME` or `-ie NAME`. Each letter becomes a separate flag.
fn parse_cluster(
    known: &[KnownFlag],
    arg: &PlacedString,
    next: Option<&PlacedString>,
) -> Option<ParsedFlags> {
    let text = arg.value.expose();
    let mut flags = Vec::new();
    for (at, letter) in text.char_indices().skip(1) {
        let short = format!("-{letter}");
        let known = known.iter().find(|it| it.spellings.contains(&short.as_str()))?;
        let name = known.spellings[0].to_owned();
        if flags.len() >= MAX_CLUSTER_FLAGS {
            return None;
        }
        if !known.has_value {
            flags.push(Flag { name, value: None, written: vec![MaskedString::plain(short)], granted: false });
            continue;
        }
        let glued = text.len() > at + 1;
        let value = match glued {
            true => Placed::new(arg.value.map(|it| it.get(at + 1..).unwrap_or_default().to_owned()), arg.at),
            false => next?.clone(),
        };
        let written = vec![MaskedString::plain(short), value.value.clone()];
        flags.push(Flag { name, value: Some(value), written, granted: false });
        return Some(ParsedFlags { flags, takes_next: !glued });
    }
    (!flags.is_empty()).then_some(ParsedFlags { flags, takes_next: false })
}

/// Returns the text after the separator, for both the real and the shown form.
fn value_after(arg: &PlacedString, separator: char) -> PlacedString {
    let tail = |it: &str| it.split_once(separator).map_or_else(String::new, |(_, tail)| tail.to_owned());
    Placed::new(arg.value.map(tail), arg.at)
}
