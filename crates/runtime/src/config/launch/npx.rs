//! `npx [flags] package [arguments]`, or `npx -p package … tool [arguments]`.

use super::{Arg, ArgOrigin, Flag, Known, Launching, free, spec, written};
use crate::{
    config::{place::Placed, plan::Launcher},
    text::Text,
};

const FLAGS: &[Known] = &[
    Known { spellings: &["--yes", "-y"], has_value: false },
    Known { spellings: &["--quiet", "-q"], has_value: false },
    Known { spellings: &["--package", "-p"], has_value: true },
    Known { spellings: &["--prefer-offline"], has_value: false },
    Known { spellings: &["--offline"], has_value: false },
];

pub(super) fn arguments(args: Vec<Placed<Text>>, launching: &mut Launching<'_>) -> Option<Vec<Arg>> {
    let end = args.last()?.at;
    let cut = launching.cut(Launcher::Npx, FLAGS, args)?;
    let packages: Vec<_> =
        cut.flags.iter().filter(|it| it.name == "--package").filter_map(Flag::value).collect();
    let mut fine = packages.iter().all(|it| launching.npm_package(it));
    let mut rest = cut.rest.into_iter();
    let Some(first) = rest.next() else {
        launching.diagnostics.nothing_to_run(end, Launcher::Npx);
        return None;
    };
    // With -p the first word is a tool of those packages; without, it is the package itself.
    fine &= if packages.is_empty() {
        launching.npm_package(&first)
    } else {
        launching.tool(Launcher::Npx, &first)
    } && launching.not_an_interpreter(Launcher::Npx, &first);
    let asks_nothing = cut.flags.iter().any(|it| it.name == "--yes");
    let added = (!asks_nothing).then(|| Arg {
        value: Text::plain("-y"),
        origin: ArgOrigin::Added("so that npx does not stop to ask"),
    });
    let folder = &launching.env.folder;
    let package = Arg { value: first.value, origin: ArgOrigin::Written };
    let args = added
        .into_iter()
        .chain(written(&cut.flags))
        .chain([package])
        .chain(rest.map(|it| free(it.value, folder)));
    fine.then(|| args.collect())
}

impl Launching<'_> {
    fn npm_package(&mut self, spec: &Placed<Text>) -> bool {
        let text = spec.value.expose();
        let fits = spec::is_npm(text) || self.env.grants.allow_package(text);
        if !fits {
            self.diagnostics.refused_package(spec.at, Launcher::Npx, &spec.value);
        }
        fits
    }
}
