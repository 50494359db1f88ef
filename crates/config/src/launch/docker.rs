//! Grammar of `docker run [flags] image [arguments]`. The container speaks MCP on its pipes, is removed when it
//! exits, and sees no files of this machine outside the agent file's folder.

use super::{
    Arguments, LaunchContext, absolute, added, as_written, end_of_flags,
    flags::{Flag, KnownFlag},
    spec,
};
use crate::{
    download::Download,
    files::FileError,
    masked_string::MaskedString,
    place::PlacedString,
    plan::{Arg, ArgOrigin, Launcher},
};
use std::collections::HashSet;

const FLAGS: &[KnownFlag] = &[
    KnownFlag { spellings: &["--interactive", "-i"], has_value: false },
    KnownFlag { spellings: &["--rm"], has_value: false },
    KnownFlag { spellings: &["--init"], has_value: false },
    KnownFlag { spellings: &["--read-only"], has_value: false },
    KnownFlag { spellings: &["--env", "-e"], has_value: true },
    KnownFlag { spellings: &["--env-file"], has_value: true },
    KnownFlag { spellings: &["--network", "--net"], has_value: true },
    KnownFlag { spellings: &["--pull"], has_value: true },
    KnownFlag { spellings: &["--platform"], has_value: true },
    KnownFlag { spellings: &["--user", "-u"], has_value: true },
    KnownFlag { spellings: &["--volume", "-v"], has_value: true },
    KnownFlag { spellings: &["--mount"], has_value: true },
];

const PASSES_VARIABLES: &str = "docker passes on only the variables that it is given";

pub(super) fn arguments(args: Vec<PlacedString>, context: &mut LaunchContext<'_>) -> Option<Arguments> {
    let end = args.last()?.at;
    let mut args = args.into_iter();
    let run = args.next()?;
    if run.value.expose() != "run" {
        context.diagnostics.docker_requires_run(run.at, &run.value);
        return None;
    }
    let split = context.split(Launcher::Docker, FLAGS, args.collect())?;
    let (ended, flags): (Vec<&Flag>, Vec<&Flag>) = split.flags.iter().partition(|it| it.name == "--");
    let flags: Vec<Option<Vec<Arg>>> = flags.into_iter().map(|it| context.check_docker_flag(it)).collect();
    let mut rest = split.rest.into_iter();
    let Some(image) = rest.next() else {
        context.diagnostics.missing_run_target(end, Launcher::Docker, false);
        return None;
    };
    let name = image.value.expose();
    if !(spec::is_image(name) || context.env.grants.allows_package(name)) {
        context.diagnostics.refused_package(image.at, Launcher::Docker, &image.value, context.env);
        return None;
    }
    let flags = flags.into_iter().collect::<Option<Vec<_>>>()?;
    let granted = split.flags.iter().any(|it| it.granted);
    let dashes =
        ended.first().and_then(|it| it.args().next()).or_else(|| end_of_flags(&[]).filter(|_| granted));
    let before = [as_written(run)].into_iter().chain(flags.into_iter().flatten());
    let before = before.chain(context.required_docker_flags(&split.flags)).chain(dashes);
    let download = download(&split.flags, &image.value);
    // The container has its own working directory, so arguments after the image are passed unchanged.
    let args = before.chain([as_written(image)]).chain(rest.map(as_written)).collect();
    Some(Arguments { args, download })
}

/// Returns the image to download, unless `--pull never` is set.
fn download(flags: &[Flag], image: &MaskedString) -> Option<Download> {
    let value = |name: &str| {
        flags.iter().rev().find(|it| it.name == name).and_then(|it| it.value.as_ref()).map(|it| &it.value)
    };
    let never = value("--pull").is_some_and(|it| it.expose() == "never");
    (!never).then(|| Download::Image { image: image.clone(), platform: value("--platform").cloned() })
}

impl LaunchContext<'_> {
    /// Checks a flag and makes paths in its value absolute.
    fn check_docker_flag(&mut self, flag: &Flag) -> Option<Vec<Arg>> {
        let plain = || Some(flag.args().collect());
        let Some(value) = flag.value.as_ref().filter(|_| !flag.granted) else { return plain() };
        let allowed =
            self.env.grants.allows_argument(Launcher::Docker, &flag.name, Some(value.value.expose()));
        match flag.name.as_str() {
            _ if allowed => plain(),
            "--env-file" => {
                let path = self.resolve_inside_folder(value, value.value.expose(), "--env-file")?;
                Some(rewrite_value(flag, value, path))
            }
            "--volume" => self.volume(flag, value),
            "--mount" => self.mount(flag, value),
            "--network" if value.value.expose() != "none" => {
                self.diagnostics.refused_value(value.at, Launcher::Docker, "--network", "`none`");
                None
            }
            "--network" => plain(),
            "--env" => {
                let name = value.value.expose().split('=').next().unwrap_or_default();
                let fits = !name.is_empty() && !name.contains('\0');
                if !fits {
                    self.diagnostics.invalid_env_name(value.at, "");
                }
                fits.then(plain).flatten()
            }
            name => self.check_simple_value(Launcher::Docker, name, value).then(plain).flatten(),
        }
    }

    /// Checks `./source:/target[:ro]`.
    fn volume(&mut self, flag: &Flag, value: &PlacedString) -> Option<Vec<Arg>> {
        let (source, target) = value.value.expose().split_once(':').unwrap_or((value.value.expose(), ""));
        if !target.starts_with('/') {
            self.diagnostics.refused_mount(value.at, "write a volume as `./source:/target`");
            return None;
        }
        let mut options = target.split(':').skip(1).flat_map(|it| it.split(','));
        if !options.all(|it| matches!(it, "ro" | "rw" | "z" | "Z")) {
            self.diagnostics.refused_mount(value.at, "a volume has only the options `ro` and `rw`");
            return None;
        }
        let source = self.resolve_mount_source(value, source, "-v", ':')?;
        Some(rewrite_value(flag, value, format!("{source}:{target}")))
    }

    /// Checks `type=bind,source=./data,target=/data,readonly`.
    fn mount(&mut self, flag: &Flag, value: &PlacedString) -> Option<Vec<Arg>> {
        let mut parts = Vec::new();
        let (mut sources, mut targets) = (0, 0);
        for part in value.value.expose().split(',') {
            let (key, text) = part.split_once('=').unwrap_or((part, ""));
            match (key, text) {
                ("type", "bind") | ("readonly" | "ro", "" | "true") => parts.push(part.to_owned()),
                ("target" | "dst" | "destination", text) if text.starts_with('/') => {
                    targets += 1;
                    parts.push(part.to_owned());
                }
                ("source" | "src", text) => {
                    sources += 1;
                    parts.push(format!("source={}", self.resolve_mount_source(value, text, "--mount", ',')?));
                }
                _ => {
                    let why = "only bind mounts with `source`, `target` and `readonly` are supported";
                    self.diagnostics.refused_mount(value.at, why);
                    return None;
                }
            }
        }
        if (sources, targets) != (1, 1) {
            self.diagnostics.refused_mount(value.at, "a mount needs one `source` and one `target`");
            return None;
        }
        Some(rewrite_value(flag, value, parts.join(",")))
    }

    /// Resolves the source of a mount. Rejects a path that contains the separator, because docker would end the path
    /// there.
    fn resolve_mount_source(
        &mut self,
        value: &PlacedString,
        path: &str,
        flag: &str,
        separator: char,
    ) -> Option<String> {
        if !path.contains('/') && !matches!(path, "." | "..") {
            // Docker treats a bare word as the name of a volume and stores it elsewhere.
            let why = "a named volume is outside the folder of the agent file";
            self.diagnostics.refused_mount(value.at, why);
            return None;
        }
        let path = self.resolve_inside_folder(value, path, flag)?;
        if path.contains([separator, '"', '\n']) {
            self.diagnostics.refused_mount(
                value.at,
                "the real path of its source contains a character that docker would read as a separator",
            );
            return None;
        }
        Some(path)
    }

    /// Resolves a path inside the agent file's folder. A path that points outside is rejected without accessing the
    /// disk.
    fn resolve_inside_folder(&mut self, value: &PlacedString, path: &str, flag: &str) -> Option<String> {
        let written_inside = absolute(path, &self.env.folder).starts_with(&self.env.folder);
        let found = if written_inside { self.env.files.locate(path) } else { Err(FileError::Outside) };
        match found {
            Ok(path) => return Some(path.to_string_lossy().into_owned()),
            Err(FileError::Outside) if flag != "--env-file" => {
                let why = "its source is outside the folder of the agent file";
                self.diagnostics.refused_mount(value.at, why);
            }
            Err(error) => self.diagnostics.docker_path_error(value.at, flag, &error),
        }
        None
    }

    /// Returns the flags a container needs to act as a server: `-i`, `--rm`, and `-e` for the variables of the entry.
    fn required_docker_flags(&self, flags: &[Flag]) -> Vec<Arg> {
        let has = |name: &str| flags.iter().any(|it| it.name == name);
        let mut more = Vec::new();
        if !has("--interactive") {
            more.push(added("-i", "the server uses standard input and output"));
        }
        if !has("--rm") {
            more.push(added("--rm", "the container is removed when it exits"));
        }
        let named: HashSet<&str> = flags
            .iter()
            .filter(|it| it.name == "--env")
            .filter_map(|it| it.value.as_ref()?.value.expose().split('=').next())
            .collect();
        for name in self.container_env.iter().filter(|it| !named.contains(it.expose())) {
            more.push(added("-e", PASSES_VARIABLES));
            more.push(Arg { value: name.clone(), origin: ArgOrigin::Added(PASSES_VARIABLES) });
        }
        more
    }
}

/// Builds a flag with its rewritten value. A secret value keeps its shown form.
fn rewrite_value(flag: &Flag, before: &PlacedString, value: String) -> Vec<Arg> {
    let before = before.value.clone();
    let value = if before.is_secret() {
        MaskedString::secret(value, before.shown()).with_variables(before.variables().to_vec())
    } else {
        MaskedString::plain(value)
    };
    let origin = if value == before { ArgOrigin::Written } else { ArgOrigin::Resolved(before) };
    vec![
        Arg { value: MaskedString::plain(flag.name.clone()), origin: ArgOrigin::Written },
        Arg { value, origin },
    ]
}
