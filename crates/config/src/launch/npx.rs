//! Grammar of `npx [flags] package [arguments]` and `npx -p package … tool [arguments]`.

use super::{
    Arguments, LaunchContext, added, as_written, end_of_flags,
    flags::{Flag, KnownFlag},
    server_argument, spec,
};
use crate::{
    download::Download,
    masked_string::MaskedString,
    place::PlacedString,
    plan::{Arg, ArgOrigin, Launcher},
};

const FLAGS: &[KnownFlag] = &[
    KnownFlag { spellings: &["--yes", "-y"], has_value: false },
    KnownFlag { spellings: &["--quiet", "-q"], has_value: false },
    KnownFlag { spellings: &["--package", "-p"], has_value: true },
    KnownFlag { spellings: &["--prefer-offline"], has_value: false },
    KnownFlag { spellings: &["--offline"], has_value: false },
];

pub(super) fn arguments(args: Vec<PlacedString>, context: &mut LaunchContext<'_>) -> Option<Arguments> {
    let end = args.last()?.at;
    let split = context.split(Launcher::Npx, FLAGS, args)?;
    let packages: Vec<&PlacedString> =
        split.flags.iter().filter(|it| it.name == "--package").filter_map(|it| it.value.as_ref()).collect();
    let packages_fit = packages.iter().all(|it| context.check_npm_package(it));
    let mut rest = split.rest.into_iter();
    let Some(first) = rest.next() else {
        context.diagnostics.missing_run_target(end, Launcher::Npx, !packages.is_empty());
        return None;
    };
    // With `-p`, the first word is a tool of those packages. Without it, the word is the package itself.
    let first_fits = match packages.is_empty() {
        true => context.check_npm_package(&first) && context.check_not_interpreter(Launcher::Npx, &first),
        false => context.check_tool(Launcher::Npx, &first),
    };
    let target = if packages.is_empty() { context.package_argument(first) } else { as_written(first) };
    let download = download(&split.flags, &packages, &target);
    let is_yes = |it: &Flag| it.name == "--yes";
    let yes = (!split.flags.iter().any(is_yes)).then(|| added("-y", "npx does not ask for confirmation"));
    let dashes = end_of_flags(&split.flags).filter(|_| !split.flags.iter().all(is_yes));
    let flags = yes.into_iter().chain(split.flags.iter().flat_map(Flag::args)).chain(dashes);
    let folder = &context.env.folder;
    let args: Vec<Arg> =
        flags.chain([target]).chain(rest.map(|it| server_argument(it.value, folder))).collect();
    (packages_fit && first_fits).then_some(Arguments { args, download })
}

/// Builds the download command, `npx -y --package=PACKAGE -c true`. The packages determine the folder in npx's cache,
/// so the download fills the folder that the server later runs from. `true` is a shell builtin, so no program of the
/// package can replace it.
fn download(flags: &[Flag], packages: &[&PlacedString], target: &Arg) -> Option<Download> {
    // `--offline` forbids downloads, and with a granted `-c` npx runs no package.
    let has = |names: &[&str]| flags.iter().any(|it| names.contains(&it.name.as_str()));
    if has(&["--offline", "--call", "-c"]) {
        return None;
    }
    let or_global = packages.is_empty();
    let packages: Vec<MaskedString> = match or_global {
        true => vec![target.value.clone()],
        false => packages.iter().map(|it| it.value.clone()).collect(),
    };
    let other = flags.iter().filter(|it| !matches!(it.name.as_str(), "--package" | "--yes" | "--"));
    let args = [MaskedString::plain("-y")]
        .into_iter()
        .chain(other.flat_map(|it| it.written.clone()))
        .chain(packages.iter().map(|it| it.map(|it| format!("--package={it}"))))
        .chain(["-c", "true"].map(MaskedString::plain))
        .collect();
    Some(Download::Npm { packages, args, or_global })
}

impl LaunchContext<'_> {
    /// Appends a version to a bare package name if PATH has a program of that name. Otherwise npx would run that
    /// program.
    fn package_argument(&self, package: PlacedString) -> Arg {
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

    fn check_npm_package(&mut self, spec: &PlacedString) -> bool {
        let text = spec.value.expose();
        let fits = spec::is_npm(text) || self.env.grants.allows_package(text);
        if !fits {
            self.diagnostics.refused_package(spec.at, Launcher::Npx, &spec.value, self.env);
        }
        fits
    }
}
