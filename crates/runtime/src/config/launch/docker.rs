//! `docker run [flags] image [arguments]`: a container that talks on its pipes, is gone when it ends, and sees nothing of
//! this machine but what lies in the folder of the agent file.

use super::{Arg, ArgOrigin, Flag, Known, Launching, free, spec};
use crate::{
    config::{files::FileTrouble, place::Placed, plan::Launcher},
    text::Text,
};

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

pub(super) fn arguments(args: Vec<Placed<Text>>, launching: &mut Launching<'_>) -> Option<Vec<Arg>> {
    let end = args.last()?.at;
    let mut args = args.into_iter();
    let run = args.next()?;
    if run.value.expose() != "run" {
        launching.diagnostics.docker_runs_only(run.at, &run.value);
        return None;
    }
    let cut = launching.cut(Launcher::Docker, FLAGS, args.collect())?;
    let flags: Vec<Option<Vec<Arg>>> = cut.flags.iter().map(|it| launching.docker_flag(it)).collect();
    let mut rest = cut.rest.into_iter();
    let Some(image) = rest.next() else {
        launching.diagnostics.nothing_to_run(end, Launcher::Docker);
        return None;
    };
    let image_fits =
        spec::is_image(image.value.expose()) || launching.env.grants.allow_package(image.value.expose());
    if !image_fits {
        launching.diagnostics.refused_package(image.at, Launcher::Docker, &image.value);
    }
    let flags: Vec<Arg> = flags.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    let added = launching.docker_added(&cut.flags);
    // A `--` ends the flags, so what is added goes before it.
    let (flags, dashes) = match flags.split_last() {
        Some((last, flags)) if last.value.expose() == "--" => (flags.to_vec(), Some(last.clone())),
        _ => (flags, None),
    };
    let folder = &launching.env.folder;
    let head = [Arg { value: run.value, origin: ArgOrigin::Written }];
    let image = Arg { value: image.value, origin: ArgOrigin::Written };
    let tail = rest.map(|it| free(it.value, folder));
    image_fits.then(|| {
        head.into_iter().chain(flags).chain(added).chain(dashes).chain([image]).chain(tail).collect()
    })
}

impl Launching<'_> {
    /// The flag as docker is given it: paths made absolute, everything else as written.
    fn docker_flag(&mut self, flag: &Flag) -> Option<Vec<Arg>> {
        let plain = || Some(super::written(std::slice::from_ref(flag)).collect());
        let Some(value) = flag.value().filter(|_| !flag.granted) else { return plain() };
        let allowed =
            self.env.grants.allow_argument(Launcher::Docker, &flag.name, Some(value.value.expose()));
        match flag.name.as_str() {
            _ if allowed => plain(),
            "--env-file" => {
                let path = self.inside(value, value.value.expose(), "--env-file")?;
                Some(rewritten(flag, Text::plain(path)))
            }
            "--volume" => {
                let (source, target) =
                    value.value.expose().split_once(':').unwrap_or((value.value.expose(), ""));
                self.mount_options(value, target.split(':').skip(1).flat_map(|it| it.split(',')))?;
                if !target.starts_with('/') {
                    self.diagnostics.refused_mount(value.at, "a volume is written `./source:/target`");
                    return None;
                }
                let source = self.inside(value, source, "-v")?;
                Some(rewritten(flag, Text::plain(format!("{source}:{target}"))))
            }
            "--mount" => self.mount(flag, value),
            "--network" if value.value.expose() != "none" => {
                self.diagnostics.refused_value(value.at, Launcher::Docker, "--network", "`none`");
                None
            }
            "--env" => {
                let name = value.value.expose().split('=').next().unwrap_or_default();
                if name.is_empty() || name.contains('\0') {
                    self.diagnostics.env_name(value.at, name);
                    return None;
                }
                plain()
            }
            name => self.simple_value(Launcher::Docker, name, value).then(plain).flatten(),
        }
    }

    /// `type=bind,source=./data,target=/data,readonly`
    fn mount(&mut self, flag: &Flag, value: &Placed<Text>) -> Option<Vec<Arg>> {
        let mut parts = Vec::new();
        let mut has_source = false;
        for part in value.value.expose().split(',') {
            let (key, text) = part.split_once('=').unwrap_or((part, ""));
            match (key, text) {
                ("type", "bind")
                | ("target" | "dst" | "destination", _)
                | ("readonly" | "ro", "" | "true") => {
                    parts.push(part.to_owned());
                }
                ("source" | "src", text) => {
                    has_source = true;
                    parts.push(format!("source={}", self.inside(value, text, "--mount")?));
                }
                _ => {
                    self.diagnostics
                        .refused_mount(value.at, "only bind mounts, with `source`, `target` and `readonly`");
                    return None;
                }
            }
        }
        if !has_source {
            self.diagnostics.refused_mount(value.at, "a mount needs a `source`");
            return None;
        }
        Some(rewritten(flag, Text::plain(parts.join(","))))
    }

    fn mount_options<'t>(
        &mut self,
        value: &Placed<Text>,
        mut options: impl Iterator<Item = &'t str>,
    ) -> Option<()> {
        let fits = options.all(|it| matches!(it, "ro" | "rw" | "z" | "Z"));
        if !fits {
            self.diagnostics.refused_mount(value.at, "the options of a volume are `ro` and `rw`");
        }
        fits.then_some(())
    }

    /// The true path of what is mounted, which must lie in the folder of the agent file.
    fn inside(&mut self, value: &Placed<Text>, path: &str, flag: &str) -> Option<String> {
        if !path.contains('/') && path != "." {
            // A bare word is the name of a volume, which docker keeps elsewhere.
            self.diagnostics
                .refused_mount(value.at, "a named volume lies outside the folder of the agent file");
            return None;
        }
        match self.env.files.locate(path) {
            Ok(path) => Some(path.to_string_lossy().into_owned()),
            Err(FileTrouble::Outside) => {
                self.diagnostics
                    .refused_mount(value.at, "its source lies outside the folder of the agent file");
                None
            }
            Err(trouble) => {
                self.diagnostics.mount_source(value.at, flag, &trouble);
                None
            }
        }
    }

    /// What a container needs to be a server: open pipes, no remains, and the environment of the entry.
    fn docker_added(&self, flags: &[Flag]) -> Vec<Arg> {
        let has = |name: &str| flags.iter().any(|it| it.name == name);
        let add = |value: String, why| Arg { value: Text::plain(value), origin: ArgOrigin::Added(why) };
        let mut added = Vec::new();
        if !has("--interactive") {
            added.push(add("-i".to_owned(), "the server talks on its standard input and output"));
        }
        if !has("--rm") {
            added.push(add("--rm".to_owned(), "nothing of the container stays behind"));
        }
        let named = |name: &str| {
            flags
                .iter()
                .filter(|it| it.name == "--env")
                .filter_map(Flag::value)
                .any(|it| it.value.expose().split('=').next() == Some(name))
        };
        for name in self.container_env.iter().filter(|name| !named(name)) {
            added.push(add("-e".to_owned(), "docker passes on only what it is told to"));
            added.push(add(name.clone(), "docker passes on only what it is told to"));
        }
        added
    }
}

fn rewritten(flag: &Flag, value: Text) -> Vec<Arg> {
    let before = flag.value().map_or_else(|| Text::plain(""), |it| it.value.clone());
    let value = if before.is_secret() { Text::secret(value.expose(), before.shown()) } else { value };
    let origin = if value == before { ArgOrigin::Written } else { ArgOrigin::Resolved(before) };
    vec![Arg { value: Text::plain(flag.name.clone()), origin: ArgOrigin::Written }, Arg { value, origin }]
}
