//! Grammar of `npx [flags] package [arguments]` and `npx -p package … tool [arguments]`.

use super::{
    Arguments, Launching, added, as_written, end_of_flags,
    flags::{Flag, Known},
    free, spec,
};
use crate::{
    download::Download,
    place::Placed,
    plan::{Arg, ArgOrigin, Launcher},
    text::Text,
};

const FLAGS: &[Known] = &[
    Known { spellings: &["--yes", "-y"], has_value: false },
    Known { spellings: &["--quiet", "-q"], has_value: false },
    Known { spellings: &["--package", "-p"], has_value: true },
    Known { spellings: &["--prefer-offline"], has_value: false },
    Known { spellings: &["--offline"], has_value: false },
];

pub(super) fn arguments(args: Vec<Placed<Text>>, launching: &mut Launching<'_>) -> Option<Arguments> {
    let end = args.last()?.at;
    let cut = launching.cut(Launcher::Npx, FLAGS, args)?;
    let packages: Vec<&Placed<Text>> =
        cut.flags.iter().filter(|it| it.name == "--package").filter_map(|it| it.value.as_ref()).collect();
    let packages_fit = packages.iter().all(|it| launching.npm_package(it));
    let mut rest = cut.rest.into_iter();
    let Some(first) = rest.next() else {
        launching.diagnostics.nothing_to_run(end, Launcher::Npx, !packages.is_empty());
        return None;
    };
    // With `-p`, the first word is a tool of those packages. Without it, the word is the package itself.
    let first_fits = match packages.is_empty() {
        true => launching.npm_package(&first) && launching.not_an_interpreter(Launcher::Npx, &first),
        false => launching.tool(Launcher::Npx, &first),
    };
    let target = if packages.is_empty() { launching.the_package(first) } else { as_written(first) };
    let download = download(&cut.flags, &packages, &target);
    let is_yes = |it: &Flag| it.name == "--yes";
    let yes = (!cut.flags.iter().any(is_yes)).then(|| added("-y", "so that npx does not stop to ask"));
    let dashes = end_of_flags(&cut.flags).filter(|_| !cut.flags.iter().all(is_yes));
    let flags = yes.into_iter().chain(cut.flags.iter().flat_map(Flag::args)).chain(dashes);
    let folder = &launching.env.folder;
    let args: Vec<Arg> = flags.chain([target]).chain(rest.map(|it| free(it.value, folder))).collect();
    (packages_fit && first_fits).then_some(Arguments { args, download })
}

/// Builds the download command, `npx -y --package=PACKAGE -c true`. The packages determine the folder in npx's cache,
/// so the download fills the folder that the server later runs from. `true` is a shell builtin, so no program of the
/// package can replace it.
fn download(flags: &[Flag], packages: &[&Placed<Text>], target: &Arg) -> Option<Download> {
    // `--offline` forbids downloads, and with a granted `-c` npx runs no package.
    let has = |names: &[&str]| flags.iter().any(|it| names.contains(&it.name.as_str()));
    if has(&["--offline", "--call", "-c"]) {
        return None;
    }
    let or_global = packages.is_empty();
    let packages: Vec<Text> = match or_global {
        true => vec![target.value.clone()],
        false => packages.iter().map(|it| it.value.clone()).collect(),
    };
    let other = flags.iter().filter(|it| !matches!(it.name.as_str(), "--package" | "--yes" | "--"));
    let args = [Text::plain("-y")]
        .into_iter()
        .chain(other.flat_map(|it| it.written.clone()))
        .chain(packages.iter().map(|it| it.map(|it| format!("--package={it}"))))
        .chain(["-c", "true"].map(Text::plain))
        .collect();
    Some(Download::Npm { packages, args, or_global })
}

impl Launching<'_> {
    /// Appends a version to a bare package name if PATH has a program of that name. Otherwise npx would run that
    /// program.
    fn the_package(&self, package: Placed<Text>) -> Arg {
        let text = package.value.expose();
        let path = self.env.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let is_bare = !text.contains('@') && spec::is_npm(text);
        match is_bare && self.env.files.is_on_path(text, path) {
            false => as_written(package),
            true => Arg {
                value: package.value.map(|it| format!("{it}@*")),
                origin: ArgOrigin::Versioned(package.value),
            },
        }
    }

    fn npm_package(&mut self, spec: &Placed<Text>) -> bool {
        let text = spec.value.expose();
        let fits = spec::is_npm(text) || self.env.grants.allow_package(text);
        if !fits {
            self.diagnostics.refused_package(spec.at, Launcher::Npx, &spec.value, self.env);
        }
        fits
    }
}
