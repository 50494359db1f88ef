//! Grammar of `uvx [flags] tool [arguments]`, where `--from` names the package that contains the tool.

use super::{
    Arguments, LaunchContext, as_written, end_of_flags,
    flags::{Flag, KnownFlag},
    server_argument, spec,
};
use crate::{
    download::Download,
    masked_string::MaskedString,
    place::PlacedString,
    plan::{Arg, Launcher},
};

const FLAGS: &[KnownFlag] = &[
    KnownFlag { spellings: &["--from"], has_value: true },
    KnownFlag { spellings: &["--with", "-w"], has_value: true },
    KnownFlag { spellings: &["--python", "-p"], has_value: true },
    KnownFlag { spellings: &["--prerelease"], has_value: true },
    KnownFlag { spellings: &["--quiet", "-q"], has_value: false },
    KnownFlag { spellings: &["--offline"], has_value: false },
    KnownFlag { spellings: &["--isolated"], has_value: false },
    KnownFlag { spellings: &["--refresh"], has_value: false },
    KnownFlag { spellings: &["--no-progress"], has_value: false },
];

pub(super) fn arguments(args: Vec<PlacedString>, context: &mut LaunchContext<'_>) -> Option<Arguments> {
    let end = args.last()?.at;
    let split = context.split(Launcher::Uvx, FLAGS, args)?;
    let mut fine = true;
    for flag in split.flags.iter().filter(|it| !it.granted) {
        fine &= flag.value.as_ref().is_none_or(|value| context.check_uvx_value(&flag.name, value));
    }
    let from = split.flags.iter().any(|it| it.name == "--from");
    let mut rest = split.rest.into_iter();
    let Some(tool) = rest.next() else {
        context.diagnostics.missing_run_target(end, Launcher::Uvx, true);
        return None;
    };
    fine &= match from {
        true => context.check_tool(Launcher::Uvx, &tool),
        false => context.check_pypi_package(&tool) && context.check_not_interpreter(Launcher::Uvx, &tool),
    };
    let download = download(&split.flags, &tool.value);
    let dashes = end_of_flags(&split.flags).filter(|_| split.flags.iter().any(|it| it.granted));
    let flags = split.flags.iter().flat_map(Flag::args).chain(dashes);
    let folder = &context.env.folder;
    let args: Vec<Arg> =
        flags.chain([as_written(tool)]).chain(rest.map(|it| server_argument(it.value, folder))).collect();
    fine.then_some(Arguments { args, download })
}

/// Builds the download command, `uvx --from PACKAGE python -I -S -c pass`. uvx creates the same environment as for
/// the server but runs only Python, and these flags keep Python from running code of the package.
fn download(flags: &[Flag], tool: &MaskedString) -> Option<Download> {
    if flags.iter().any(|it| it.name == "--offline") {
        return None;
    }
    let from = flags.iter().find(|it| it.name == "--from").and_then(|it| it.value.as_ref());
    let package = from.map_or(tool, |it| &it.value).clone();
    // Drop `--isolated`, because its environment is discarded. The cached environment has the same packages and
    // proves that they are installed.
    let other = flags.iter().filter(|it| !matches!(it.name.as_str(), "--from" | "--isolated" | "--"));
    let args = other
        .flat_map(|it| it.written.clone())
        .chain([MaskedString::plain("--from"), package.clone()])
        .chain(["python", "-I", "-S", "-c", "pass"].map(MaskedString::plain))
        .collect();
    Some(Download::PyPi { package, args })
}

impl LaunchContext<'_> {
    fn check_uvx_value(&mut self, flag: &str, value: &PlacedString) -> bool {
        match flag {
            "--python" => self.check_python_version(value),
            "--prerelease" => self.check_simple_value(Launcher::Uvx, flag, value),
            "--with" if spec::are_pypi(value.value.expose()) => true,
            _ => self.check_pypi_package(value),
        }
    }

    fn check_pypi_package(&mut self, spec: &PlacedString) -> bool {
        let text = spec.value.expose();
        let fits = spec::is_pypi(text) || self.env.grants.allows_package(text);
        if !fits {
            self.diagnostics.refused_package(spec.at, Launcher::Uvx, &spec.value, self.env);
        }
        fits
    }

    fn check_python_version(&mut self, value: &PlacedString) -> bool {
        let fits = spec::is_python_version(value.value.expose());
        if !fits {
            self.diagnostics.refused_value(value.at, Launcher::Uvx, "--python", "a version such as `3.12`");
        }
        fits
    }
}
