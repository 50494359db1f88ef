//! Grammar of `docker run [flags] image [arguments]`. The container speaks MCP on its pipes, is removed when it
//! exits, and sees no files of this machine outside the agent file's folder.

use super::{
    Arguments, Launching, absolute, added, as_written, end_of_flags,
    flags::{Flag, Known},
    spec,
};
use crate::{
    download::Download,
    files::FileTrouble,
    place::Placed,
    plan::{Arg, ArgOrigin, Launcher},
    text::Text,
};
use std::collections::HashSet;

const FLAGS: &[Known] = &[
    Known { spellings: &["--interactive", "-i"], has_value: false },
    Known { spellings: &["--rm"], has_value: false },
    Known { spellings: &["--init"], has_value: false },
    Known { spellings: &["--read-only"], has_value: false },
    Known { spellings: &["--env", "-e"], has_value: true },
    Known { spellings: &["--env-file"], has_value: true },
    Known { spellings: &["--network", "--net"], has_value: true },
    Known { spellings: &["--pull"], has_value: true },
    Known { spellings: &["--platform"], has_value: true },
    Known { spellings: &["--user", "-u"], has_value: true },
    Known { spellings: &["--volume", "-v"], has_value: true },
    Known { spellings: &["--mount"], has_value: true },
];

const PASSED_ON: &str = "docker passes on only what it is told to";

pub(super) fn arguments(args: Vec<Placed<Text>>, launching: &mut Launching<'_>) -> Option<Arguments> {
    let end = args.last()?.at;
    let mut args = args.into_iter();
    let run = args.next()?;
    if run.value.expose() != "run" {
        launching.diagnostics.docker_runs_only(run.at, &run.value);
        return None;
    }
    let cut = launching.cut(Launcher::Docker, FLAGS, args.collect())?;
    let (ended, flags): (Vec<&Flag>, Vec<&Flag>) = cut.flags.iter().partition(|it| it.name == "--");
    let flags: Vec<Option<Vec<Arg>>> = flags.into_iter().map(|it| launching.docker_flag(it)).collect();
    let mut rest = cut.rest.into_iter();
    let Some(image) = rest.next() else {
        launching.diagnostics.nothing_to_run(end, Launcher::Docker, false);
        return None;
    };
    let name = image.value.expose();
    if !(spec::is_image(name) || launching.env.grants.allow_package(name)) {
        launching.diagnostics.refused_package(image.at, Launcher::Docker, &image.value, launching.env);
        return None;
    }
    let flags = flags.into_iter().collect::<Option<Vec<_>>>()?;
    let granted = cut.flags.iter().any(|it| it.granted);
    let dashes =
        ended.first().and_then(|it| it.args().next()).or_else(|| end_of_flags(&[]).filter(|_| granted));
    let before = [as_written(run)].into_iter().chain(flags.into_iter().flatten());
    let before = before.chain(launching.docker_added(&cut.flags)).chain(dashes);
    let download = download(&cut.flags, &image.value);
    // The container has its own working directory, so arguments after the image are passed unchanged.
    let args = before.chain([as_written(image)]).chain(rest.map(as_written)).collect();
    Some(Arguments { args, download })
}

/// Returns the image to download, unless `--pull never` is set.
fn download(flags: &[Flag], image: &Text) -> Option<Download> {
    let value = |name: &str| {
        flags.iter().rev().find(|it| it.name == name).and_then(|it| it.value.as_ref()).map(|it| &it.value)
    };
    let never = value("--pull").is_some_and(|it| it.expose() == "never");
    (!never).then(|| Download::Image { image: image.clone(), platform: value("--platform").cloned() })
}

impl Launching<'_> {
    /// Checks a flag and makes paths in its value absolute.
    fn docker_flag(&mut self, flag: &Flag) -> Option<Vec<Arg>> {
        let plain = || Some(flag.args().collect());
        let Some(value) = flag.value.as_ref().filter(|_| !flag.granted) else { return plain() };
        let allowed =
            self.env.grants.allow_argument(Launcher::Docker, &flag.name, Some(value.value.expose()));
        match flag.name.as_str() {
            _ if allowed => plain(),
            "--env-file" => {
                let path = self.inside(value, value.value.expose(), "--env-file")?;
                Some(rewritten(flag, value, path))
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
                    self.diagnostics.env_name(value.at, "");
                }
                fits.then(plain).flatten()
            }
            name => self.simple_value(Launcher::Docker, name, value).then(plain).flatten(),
        }
    }

    /// Checks `./source:/target[:ro]`.
    fn volume(&mut self, flag: &Flag, value: &Placed<Text>) -> Option<Vec<Arg>> {
        let (source, target) = value.value.expose().split_once(':').unwrap_or((value.value.expose(), ""));
        if !target.starts_with('/') {
            self.diagnostics.refused_mount(value.at, "a volume is written `./source:/target`");
            return None;
        }
        let mut options = target.split(':').skip(1).flat_map(|it| it.split(','));
        if !options.all(|it| matches!(it, "ro" | "rw" | "z" | "Z")) {
            self.diagnostics.refused_mount(value.at, "the options of a volume are `ro` and `rw`");
            return None;
        }
        let source = self.mounted(value, source, "-v", ':')?;
        Some(rewritten(flag, value, format!("{source}:{target}")))
    }

    /// Checks `type=bind,source=./data,target=/data,readonly`.
    fn mount(&mut self, flag: &Flag, value: &Placed<Text>) -> Option<Vec<Arg>> {
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
                    parts.push(format!("source={}", self.mounted(value, text, "--mount", ',')?));
                }
                _ => {
                    let why = "only bind mounts, with `source`, `target` and `readonly`";
                    self.diagnostics.refused_mount(value.at, why);
                    return None;
                }
            }
        }
        if (sources, targets) != (1, 1) {
            self.diagnostics.refused_mount(value.at, "a mount needs one `source` and one `target`");
            return None;
        }
        Some(rewritten(flag, value, parts.join(",")))
    }

    /// Resolves the source of a mount. Rejects a path that contains the separator, because docker would end the path
    /// there.
    fn mounted(&mut self, value: &Placed<Text>, path: &str, flag: &str, separator: char) -> Option<String> {
        if !path.contains('/') && !matches!(path, "." | "..") {
            // Docker treats a bare word as the name of a volume and stores it elsewhere.
            let why = "a named volume lies outside the folder of the agent file";
            self.diagnostics.refused_mount(value.at, why);
            return None;
        }
        let path = self.inside(value, path, flag)?;
        if path.contains([separator, '"', '\n']) {
            self.diagnostics.refused_mount(
                value.at,
                "the true path of its source contains a character that docker reads as its end",
            );
            return None;
        }
        Some(path)
    }

    /// Resolves a path inside the agent file's folder. A path that points outside is rejected without accessing the
    /// disk.
    fn inside(&mut self, value: &Placed<Text>, path: &str, flag: &str) -> Option<String> {
        let written_inside = absolute(path, &self.env.folder).starts_with(&self.env.folder);
        let found = if written_inside { self.env.files.locate(path) } else { Err(FileTrouble::Outside) };
        match found {
            Ok(path) => return Some(path.to_string_lossy().into_owned()),
            Err(FileTrouble::Outside) if flag != "--env-file" => {
                let why = "its source lies outside the folder of the agent file";
                self.diagnostics.refused_mount(value.at, why);
            }
            Err(trouble) => self.diagnostics.docker_file(value.at, flag, &trouble),
        }
        None
    }

    /// Returns the flags a container needs to act as a server: `-i`, `--rm`, and `-e` for the variables of the entry.
    fn docker_added(&self, flags: &[Flag]) -> Vec<Arg> {
        let has = |name: &str| flags.iter().any(|it| it.name == name);
        let mut more = Vec::new();
        if !has("--interactive") {
            more.push(added("-i", "the server talks on its standard input and output"));
        }
        if !has("--rm") {
            more.push(added("--rm", "nothing of the container stays behind"));
        }
        let named: HashSet<&str> = flags
            .iter()
            .filter(|it| it.name == "--env")
            .filter_map(|it| it.value.as_ref()?.value.expose().split('=').next())
            .collect();
        for name in self.container_env.iter().filter(|it| !named.contains(it.expose())) {
            more.push(added("-e", PASSED_ON));
            more.push(Arg { value: name.clone(), origin: ArgOrigin::Added(PASSED_ON) });
        }
        more
    }
}

/// Builds a flag with its rewritten value. A secret value keeps its shown form.
fn rewritten(flag: &Flag, before: &Placed<Text>, value: String) -> Vec<Arg> {
    let before = before.value.clone();
    let value = if before.is_secret() { Text::secret(value, before.shown()) } else { Text::plain(value) };
    let origin = if value == before { ArgOrigin::Written } else { ArgOrigin::Resolved(before) };
    vec![Arg { value: Text::plain(flag.name.clone()), origin: ArgOrigin::Written }, Arg { value, origin }]
}
