//! The many ways to write npx, uvx and docker, brought to the one that agent.yaml knows.

use super::secret::is_path;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// Flags before the package, tool or image that take the next argument with them.
const WITH_VALUE: [(&str, &[&str]); 3] = [
    ("npx", &["-p", "--package"]),
    ("uvx", &["--from", "--with", "-w", "--python", "-p", "--prerelease", "--index-url", "--index"]),
    (
        "docker",
        &[
            "-e",
            "--env",
            "--env-file",
            "--network",
            "--net",
            "--pull",
            "--platform",
            "--user",
            "-u",
            "--volume",
            "-v",
            "--mount",
            "--name",
            "-p",
            "--publish",
            "-w",
            "--workdir",
            "--entrypoint",
            "-l",
            "--label",
            "-m",
            "--memory",
            "--cpus",
            "--add-host",
            "-h",
            "--hostname",
        ],
    ),
];

impl Invocation {
    /// The same, started by npx, uvx or docker directly, if there is an honest way to say that.
    pub(super) fn simplified(&self) -> Option<Invocation> {
        let mut simple = self.clone();
        // `cmd /c C:\…\npx.cmd` is two steps from `npx`; nothing sensible is more than a few.
        for _ in 0..4 {
            match simple.step() {
                Some(next) => simple = next,
                None => break,
            }
        }
        let is_launcher = matches!(simple.command.as_str(), "npx" | "uvx" | "docker");
        (is_launcher && simple != *self).then_some(simple)
    }

    /// Where among the arguments the package, tool or image stands.
    pub(super) fn subject(&self) -> Option<usize> {
        let (launcher, with_value) = WITH_VALUE.iter().find(|(name, _)| *name == self.command)?;
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
                arg => at += 1 + usize::from(with_value.contains(&arg)),
            }
        }
        None
    }

    /// Takes one layer off: a path, a shell, another package runner.
    fn step(&self) -> Option<Invocation> {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let tool = tool(&self.command);
        match (tool.as_deref(), &args[..]) {
            (None, []) => line(&self.command),
            (Some("cmd"), ["/c" | "/C", rest @ ..] | ["/d" | "/s", "/c", rest @ ..]) => shell(rest),
            (Some("sh" | "bash" | "zsh"), ["-c" | "-lc" | "-ic", text] | ["-l" | "-i", "-c", text]) => {
                line(text)
            }
            (Some("env"), [command, rest @ ..]) if is_launcher(command) => invocation(command, rest),
            (Some("uv"), ["tool", "run", rest @ ..]) => invocation("uvx", rest),
            (Some("pipx"), ["run", rest @ ..]) => invocation("uvx", without_flags(rest, &[])?),
            (Some("bunx" | "pnpx"), rest)
            | (Some("bun"), ["x", rest @ ..])
            | (Some("pnpm" | "yarn"), ["dlx", rest @ ..]) => npx(without_flags(rest, &["-y", "--yes"])?),
            (Some("npm"), ["exec" | "x", rest @ ..]) => {
                // Without the `--`, npm takes the server's flags for its own.
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

/// What follows these flags, unless others follow, or nothing.
fn without_flags<'a, 'b>(rest: &'a [&'b str], flags: &[&str]) -> Option<&'a [&'b str]> {
    let start = rest.iter().position(|it| !flags.contains(it))?;
    (!rest[start].starts_with('-')).then_some(&rest[start..])
}

/// What follows `cmd /c`: words, or one line of them.
fn shell(rest: &[&str]) -> Option<Invocation> {
    match rest {
        [text] => line(text),
        [command, args @ ..] if args.iter().all(|it| !it.contains(['&', '|', '<', '>', '^', '%', '"'])) => {
            invocation(command, args)
        }
        _ => None,
    }
}

/// A command line in which a shell would find nothing to do but to cut it at its spaces.
fn line(text: &str) -> Option<Invocation> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " @/._:=,+-".contains(c);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match &words[..] {
        [command, args @ ..] if !args.is_empty() && text.chars().all(is_plain) => {
            invocation(command, args).filter(|it| tool(&it.command).is_some())
        }
        _ => None,
    }
}

fn is_launcher(command: &str) -> bool {
    matches!(tool(command).as_deref(), Some("npx" | "uvx" | "docker"))
}

/// The program behind `/usr/local/bin/npx`, `npx.cmd`, `C:\…\npx.cmd`. A path from somewhere else is another program.
fn tool(command: &str) -> Option<String> {
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
        let found = written.simplified().map(|it| format!("{} {}", it.command, it.args.join(" ")));
        assert_eq!(found.as_deref(), expected, "{command} {args:?}");
    }

    #[test]
    fn simplified() {
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
    fn left_alone() {
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
    fn subjects() {
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
            let subject = invocation.subject().map(|at| invocation.args[at].as_str());
            assert_eq!(subject, expected, "{text}");
        }
    }
}
