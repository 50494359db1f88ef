//! Grammar of `uvx [flags] tool [arguments]`, where `--from` names the package that contains the tool.

use super::{
    Arguments, Launching, as_written, end_of_flags,
    flags::{Flag, Known},
    free, spec,
};
use crate::{
    download::Download,
    place::Placed,
    plan::{Arg, Launcher},
    text::Text,
};

const FLAGS: &[Known] = &[
    Known { spellings: &["--from"], has_value: true },
    Known { spellings: &["--with", "-w"], has_value: true },
    Known { spellings: &["--python", "-p"], has_value: true },
    Known { spellings: &["--prerelease"], has_value: true },
    Known { spellings: &["--quiet", "-q"], has_value: false },
    Known { spellings: &["--offline"], has_value: false },
    Known { spellings: &["--isolated"], has_value: false },
    Known { spellings: &["--refresh"], has_value: false },
    Known { spellings: &["--no-progress"], has_value: false },
];

pub(super) fn arguments(args: Vec<Placed<Text>>, launching: &mut Launching<'_>) -> Option<Arguments> {
    let end = args.last()?.at;
    let cut = launching.cut(Launcher::Uvx, FLAGS, args)?;
    let mut fine = true;
    for flag in cut.flags.iter().filter(|it| !it.granted) {
        fine &= flag.value.as_ref().is_none_or(|value| launching.uvx_value(&flag.name, value));
    }
    let from = cut.flags.iter().any(|it| it.name == "--from");
    let mut rest = cut.rest.into_iter();
    let Some(tool) = rest.next() else {
        launching.diagnostics.nothing_to_run(end, Launcher::Uvx, true);
        return None;
    };
    fine &= match from {
        true => launching.tool(Launcher::Uvx, &tool),
        false => launching.pypi_package(&tool) && launching.not_an_interpreter(Launcher::Uvx, &tool),
    };
    let download = download(&cut.flags, &tool.value);
    let dashes = end_of_flags(&cut.flags).filter(|_| cut.flags.iter().any(|it| it.granted));
    let flags = cut.flags.iter().flat_map(Flag::args).chain(dashes);
    let folder = &launching.env.folder;
    let args: Vec<Arg> =
        flags.chain([as_written(tool)]).chain(rest.map(|it| free(it.value, folder))).collect();
    fine.then_some(Arguments { args, download })
}

/// Builds the download command, `uvx --from PACKAGE python -I -S -c pass`. uvx creates the same environment as for
/// the server but runs only Python, and these flags keep Python from running code of the package.
fn download(flags: &[Flag], tool: &Text) -> Option<Download> {
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
        .chain([Text::plain("--from"), package.clone()])
        .chain(["python", "-I", "-S", "-c", "pass"].map(Text::plain))
        .collect();
    Some(Download::PyPi { package, args })
}

impl Launching<'_> {
    fn uvx_value(&mut self, flag: &str, value: &Placed<Text>) -> bool {
        match flag {
            "--python" => self.python_version(value),
            "--prerelease" => self.simple_value(Launcher::Uvx, flag, value),
            "--with" if spec::are_pypi(value.value.expose()) => true,
            _ => self.pypi_package(value),
        }
    }

    fn pypi_package(&mut self, spec: &Placed<Text>) -> bool {
        let text = spec.value.expose();
        let fits = spec::is_pypi(text) || self.env.grants.allow_package(text);
        if !fits {
            self.diagnostics.refused_package(spec.at, Launcher::Uvx, &spec.value, self.env);
        }
        fits
    }

    fn python_version(&mut self, value: &Placed<Text>) -> bool {
        let fits = spec::is_python_version(value.value.expose());
        if !fits {
            self.diagnostics.refused_value(value.at, Launcher::Uvx, "--python", "a version such as `3.12`");
        }
        fits
    }
}
