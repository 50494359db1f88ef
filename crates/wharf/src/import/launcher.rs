//! Converts the many ways to write npx, uvx and docker into the form that agent.yaml supports.

use super::secret::is_path;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// Flags that take the next argument as their value and come before the package, tool or image.
const FLAGS_WITH_VALUE: [(&str, &str); 3] = [
    ("npx", "-p --package"),
    ("uvx", "--from --with -w --python -p --prerelease --index-url --index"),
    (
        "docker",
        "-e --env --env-file --network --net --pull --platform --user -u --volume -v --mount --name -p \
         --publish -w --workdir --entrypoint -l --label -m --memory --cpus --add-host -h --hostname",
    ),
];

impl Invocation {
    /// Returns an equivalent invocation that starts npx, uvx or docker directly, if there is one.
    pub(super) fn simplify(&self) -> Option<Invocation> {
        let mut simple = self.clone();
        // `cmd /c C:\…\npx.cmd` takes two steps to `npx`; no sensible command takes more than a few.
        for _ in 0..4 {
            match simple.unwrap_layer() {
                Some(next) => simple = next,
                None => break,
            }
        }
        let is_launcher = matches!(simple.command.as_str(), "npx" | "uvx" | "docker");
        (is_launcher && simple != *self).then_some(simple)
    }

    /// Returns the index of the argument that names the package, tool or image.
    pub(super) fn package_index(&self) -> Option<usize> {
        let (launcher, flags_with_value) = FLAGS_WITH_VALUE.iter().find(|(name, _)| *name == self.command)?;
        let names_package = |arg: &str| match *launcher {
            "npx" => matches!(arg, "-p" | "--package"),
            "uvx" => arg == "--from",
            _ => false,
        };
        let mut at = usize::from(*launcher == "docker");
        while let Some(arg) = self.args.get(at) {
            match arg.as_str() {
                "--" => return Some(at + 1).filter(|it| *it < self.args.len()),
                arg if names_package(arg) => return Some(at + 1).filter(|it| *it < self.args.len()),
                arg if !arg.starts_with('-') => return Some(at),
                arg => at += 1 + usize::from(flags_with_value.split(' ').any(|it| it == arg)),
            }
        }
        None
    }

    /// Removes one layer: a path, a shell or another package runner.
    fn unwrap_layer(&self) -> Option<Invocation> {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let tool_name = tool_name(&self.command);
        match (tool_name.as_deref(), &args[..]) {
            (None, []) => parse_command_line(&self.command),
            (Some("cmd"), ["/c" | "/C", rest @ ..] | ["/d" | "/s", "/c", rest @ ..]) => {
                parse_cmd_arguments(rest)
            }
            (Some("sh" | "bash" | "zsh"), ["-c" | "-lc" | "-ic", text] | ["-l" | "-i", "-c", text]) => {
                parse_command_line(text)
            }
            (Some("env"), [command, rest @ ..]) if is_launcher(command) => invocation(command, rest),
            (Some("uv"), ["tool", "run", rest @ ..]) => invocation("uvx", rest),
            (Some("pipx"), ["run", rest @ ..]) => invocation("uvx", without_flags(rest, &[])?),
            (Some("bunx" | "pnpx"), rest)
            | (Some("bun"), ["x", rest @ ..])
            | (Some("pnpm" | "yarn"), ["dlx", rest @ ..]) => npx(without_flags(rest, &["-y", "--yes"])?),
            (Some("npm"), ["exec" | "x", rest @ ..]) => {
                // Without `--`, npm would interpret the server's flags as its own.
                let rest = without_flags(rest, &["-y", "--yes", "--"])?;
                let flags = rest.iter().any(|it| it.starts_with('-'));
                if !flags || args.contains(&"--") { npx(rest) } else { None }
            }
            (Some(name @ ("npx" | "uvx" | "docker")), rest) if self.command != name => invocation(name, rest),
            _ => None,
        }
    }
}

fn invocation(command: &str, args: &[&str]) -> Option<Invocation> {
    let args = args.iter().map(|it| (*it).to_owned()).collect();
    Some(Invocation { command: command.to_owned(), args })
}

fn npx(rest: &[&str]) -> Option<Invocation> {
    let args: Vec<&str> = ["-y"].iter().chain(rest).copied().collect();
    invocation("npx", &args)
}

/// Skips these flags. `None` if another flag follows, or nothing.
fn without_flags<'a, 'b>(rest: &'a [&'b str], flags: &[&str]) -> Option<&'a [&'b str]> {
    let start = rest.iter().position(|it| !flags.contains(it))?;
    (!rest[start].starts_with('-')).then_some(&rest[start..])
}

/// Parses the arguments of `cmd /c`: separate words, or one command line.
fn parse_cmd_arguments(rest: &[&str]) -> Option<Invocation> {
    match rest {
        [text] => parse_command_line(text),
        [command, args @ ..] if args.iter().all(|it| !it.contains(['&', '|', '<', '>', '^', '%', '"'])) => {
            invocation(command, args)
        }
        _ => None,
    }
}

/// Parses a command line that a shell would only split at spaces, without quotes or expansions.
fn parse_command_line(text: &str) -> Option<Invocation> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " @/._:=,+-".contains(c);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match &words[..] {
        [command, args @ ..] if !args.is_empty() && text.chars().all(is_plain) => {
            invocation(command, args).filter(|it| tool_name(&it.command).is_some())
        }
        _ => None,
    }
}

fn is_launcher(command: &str) -> bool {
    matches!(tool_name(command).as_deref(), Some("npx" | "uvx" | "docker"))
}

/// Returns the tool behind `/usr/local/bin/npx`, `npx.cmd` or `C:\…\npx.cmd`. `None` for a relative path, which may
/// be another program.
fn tool_name(command: &str) -> Option<String> {
    const TOOLS: [&str; 15] = [
        "npx", "uvx", "docker", "cmd", "sh", "bash", "zsh", "env", "uv", "pipx", "bunx", "bun", "pnpm",
        "pnpx", "yarn",
    ];
    let homes = ["${userHome}/", "${env:HOME}/", "${HOME}/"];
    let at_home = homes.iter().any(|it| command.starts_with(it));
    let fixed = at_home || is_path(command) && !command.starts_with('.');
    let name = if fixed { command.rsplit(['/', '\\']).next().unwrap_or_default() } else { command };
    let lower = name.to_ascii_lowercase();
    let bare = [".exe", ".cmd", ".bat", ".ps1"].iter().find_map(|it| lower.strip_suffix(it));
    let bare = bare.unwrap_or(&lower);
    (TOOLS.contains(&bare) || bare == "npm").then(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, args: &[&str], expected: Option<&str>) {
        let written = invocation(command, args).expect("an invocation");
        let found = written.simplify().map(|it| format!("{} {}", it.command, it.args.join(" ")));
        assert_eq!(found.as_deref(), expected, "{command} {args:?}");
    }

    #[test]
    fn launchers_are_simplified() {
        check("npx", &["-y", "x"], None);
        check("/usr/local/bin/npx", &["-y", "x"], Some("npx -y x"));
        check("C:\\Program Files\\nodejs\\npx.cmd", &["x"], Some("npx x"));
        check("npx.cmd", &["x"], Some("npx x"));
        check("${userHome}/.local/bin/uvx", &["x"], Some("uvx x"));
        check("~/.local/bin/uvx", &["x"], Some("uvx x"));
        check("cmd", &["/c", "npx", "-y", "x"], Some("npx -y x"));
        check("cmd.exe", &["/c", "C:\\n\\npx.cmd", "x"], Some("npx x"));
        check("cmd", &["/c", "npx -y x"], Some("npx -y x"));
        check("bash", &["-c", "npx -y @a/b@1.2"], Some("npx -y @a/b@1.2"));
        check("/bin/bash", &["-lc", "uvx x --port=1"], Some("uvx x --port=1"));
        check("npx -y x", &[], Some("npx -y x"));
        check("/usr/bin/env", &["npx", "x"], Some("npx x"));
        check("uv", &["tool", "run", "x", "--a"], Some("uvx x --a"));
        check("/opt/homebrew/bin/uv", &["tool", "run", "--from", "p", "x"], Some("uvx --from p x"));
        check("bunx", &["x", "--a"], Some("npx -y x --a"));
        check("bun", &["x", "y"], Some("npx -y y"));
        check("pnpm", &["dlx", "x"], Some("npx -y x"));
        check("npm", &["exec", "-y", "--", "x", "--a"], Some("npx -y x --a"));
        check("pipx", &["run", "x"], Some("uvx x"));
    }

    #[test]
    fn other_commands_are_not_simplified() {
        check("node", &["x.js"], None);
        check("./npx", &["x"], None);
        check("tools/npx", &["x"], None);
        check("bash", &["-c", "source x && npx y"], None);
        check("bash", &["-c", "npx $(y)"], None);
        check("cmd", &["/c", "npx", "x", "&", "y"], None);
        check("cmd", &["/c", "echo x"], None);
        check("uv", &["run", "x.py"], None);
        check("bunx", &["--bun", "x"], None);
        check("bunx", &[], None);
        check("npm", &["exec", "x", "--a"], None);
        check("pnpm", &["run", "x"], None);
        check("env", &["A=b", "npx", "x"], None);
        check("", &[], None);
    }

    #[test]
    fn package_is_found_among_the_arguments() {
        for (text, expected) in [
            ("npx -y @a/b /srv", Some("@a/b")),
            ("npx -p pkg tool", Some("pkg")),
            ("npx -y -- x", Some("x")),
            ("npx -y", None),
            ("npx -p", None),
            ("uvx --with z mcp-server-fetch", Some("mcp-server-fetch")),
            ("uvx --from pkg tool", Some("pkg")),
            ("docker run -i --rm -e A -e B mcp/fetch --x", Some("mcp/fetch")),
            ("docker run", None),
            ("docker", None),
            ("node x", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let invocation = invocation(words[0], &words[1..]).expect("an invocation");
            let package_index = invocation.package_index().map(|at| invocation.args[at].as_str());
            assert_eq!(package_index, expected, "{text}");
        }
    }
}
