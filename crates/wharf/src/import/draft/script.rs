//! Fixes the script paths of a server that is a local program. wharf starts it in an empty folder, so a relative path
//! would not be found.

use super::ServerDrafter;
use crate::import::launcher::Invocation;
use wharf_config::Launcher;

/// File extensions of scripts.
const SCRIPT_EXTENSIONS: [&str; 14] =
    ["js", "mjs", "cjs", "ts", "mts", "cts", "py", "pyz", "rb", "php", "pl", "lua", "jar", "sh"];

impl ServerDrafter<'_> {
    /// Adapts an invocation that relies on `cwd` to an empty folder. The three launchers run packages, which need no
    /// path.
    pub(super) fn locate_script(&mut self, mut invocation: Invocation, cwd: Option<String>) -> Invocation {
        if Launcher::parse(&invocation.command).is_some() {
            self.note_unused(cwd.as_deref());
            return invocation;
        }
        let is_uv = invocation.command.rsplit(['/', '\\']).next() == Some("uv");
        let is_explicit = is_uv && invocation.args.iter().any(|it| it.starts_with("--directory"));
        match (cwd, find_script(&invocation.args).filter(|_| !is_explicit)) {
            (Some(cwd), _) if is_uv && !is_explicit => {
                self.rewriter.note("`cwd` became `--directory`: a server starts in a private, empty folder");
                invocation.args.splice(0..0, ["--directory".to_owned(), make_explicit(cwd)]);
            }
            (cwd, Some(at)) => {
                let below = if cwd.is_some() { "below `cwd`" } else { "relative to the agent file" };
                let folder = cwd.map_or_else(String::new, |it| format!("{}/", it.trim_end_matches('/')));
                invocation.args[at] = make_explicit(format!("{folder}{}", invocation.args[at]));
                self.rewriter.note(format!(
                    "its script is now a path {below}: a server starts in a private, empty folder"
                ));
            }
            (cwd, None) => self.note_unused(cwd.as_deref()),
        }
        invocation
    }

    fn note_unused(&mut self, cwd: Option<&str>) {
        if cwd.is_some() {
            self.rewriter.note("`cwd` left out: a server starts in a private, empty folder; paths that begin with `./` are relative to the agent file");
        }
    }
}

/// Returns the index of the argument that is a relative path of a script.
fn find_script(args: &[String]) -> Option<usize> {
    let is_script = |it: &str| {
        let ending = it.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_relative =
            !it.starts_with(['-', '/', '.', '~', '$', '@']) && !it.contains(['\\', ':', '=', ' ']);
        is_relative && ending.is_some_and(|it| SCRIPT_EXTENSIONS.contains(&it.as_str()))
    };
    // The argument of `-m`, `-c` or `-e` is not a path.
    let at = args.iter().position(|it| is_script(it))?;
    let before = at.checked_sub(1).map(|it| args[it].as_str());
    (!matches!(before, Some("-m" | "-c" | "-e"))).then_some(at)
}

/// Makes a relative path explicit (`./path`), so that wharf resolves it against the folder of the agent file.
fn make_explicit(path: String) -> String {
    let is_explicit = path.starts_with(['/', '.', '~', '$', '\\']) || path.contains(':');
    if is_explicit { path } else { format!("./{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_among_arguments() {
        for (line, expected) in [
            ("build/index.js", Some(0)),
            ("--experimental-x server.mjs --port 1", Some(1)),
            ("run server.py", Some(1)),
            ("-m pkg.py", None),
            ("-m pkg", None),
            ("/srv/x.js", None),
            ("./x.js", None),
            ("--file=x.js", None),
            ("https://h.example/x.js", None),
            ("C:/x/y.js", None),
            ("", None),
        ] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(find_script(&args), expected, "{line}");
        }
    }

    #[test]
    fn relative_paths_become_explicit() {
        for (path, expected) in [
            ("x.js", "./x.js"),
            ("../x.js", "../x.js"),
            ("/srv/x.js", "/srv/x.js"),
            ("${workspaceFolder}/x.js", "${workspaceFolder}/x.js"),
        ] {
            assert_eq!(make_explicit(path.to_owned()), expected);
        }
    }
}
