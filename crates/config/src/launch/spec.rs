//! Validates names of packages and images that a registry resolves, and recognizes tools that run arbitrary code.

/// Tools that run any code or command they are given. Allowing them would defeat the allow-list of launchers.
const INTERPRETERS: &str = "\
    node nodejs deno bun bunx tsx ts-node esbuild-runner zx npm npx pnpm pnpx yarn corepack python pythonw \
    pypy cpython graalpy pyodide ipython pip pipx uv uvx poetry hatch sh bash dash zsh ksh fish tcsh csh \
    busybox cmd powershell pwsh perl ruby php lua env xargs sudo nohup cross-env shx concurrently docker \
    podman git ssh curl wget awk make java setsid timeout nice stdbuf find tar script watch flock strace \
    gdb vi vim ed expect socat nc openssl parallel tclsh rscript go cargo gcc cc su doas chroot unshare \
    nsenter systemd-run nodemon time ionice taskset sed";

/// Returns whether `tool`, with or without a version, is an interpreter.
pub(super) fn is_interpreter(tool: &str) -> bool {
    let name = tool.rsplit(['/', '\\']).next().unwrap_or(tool).to_ascii_lowercase();
    let name = name.split(['@', '=', '<', '>', '~', '!', '[', ' ']).next().unwrap_or(&name);
    let name = name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name);
    // `python3.12`, `pypy3`, `python3.13t`
    let bare = name.strip_suffix('t').filter(|it| it.ends_with(|c: char| c.is_ascii_digit())).unwrap_or(name);
    let bare = bare.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.split(' ').any(|it| it == name || it == bare)
}

/// Returns whether `spec` is `name` or `@scope/name`, optionally with `@version`. npm looks these up only in its
/// registry.
pub(super) fn is_npm(spec: &str) -> bool {
    let (name, version) = match spec.char_indices().skip(1).find(|(_, c)| *c == '@') {
        Some((at, _)) => (&spec[..at], Some(&spec[at + 1..])),
        None => (spec, None),
    };
    let part = |it: &str| {
        !it.is_empty()
            && !it.starts_with(['.', '_', '-', '~'])
            && it.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'))
    };
    let name_fits = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| part(scope) && part(name)),
        None => part(name),
    };
    // npm treats these as local files.
    let is_archive = ends_with_any(spec, &[".tgz", ".tar", ".tar.gz"]);
    let version_fits = version.is_none_or(|it| {
        !it.is_empty()
            && it.bytes().all(|b| {
                b.is_ascii_alphanumeric()
                    || matches!(b, b'.' | b'-' | b'+' | b'^' | b'~' | b'<' | b'>' | b'=' | b'*' | b'|' | b' ')
            })
    });
    name_fits && version_fits && !is_archive
}

/// Returns whether `spec` is a PyPI name with optional extras and versions. URLs and paths do not match.
pub(super) fn is_pypi(spec: &str) -> bool {
    let end = spec
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(spec.len());
    let (name, rest) = spec.split_at(end);
    let is_archive = ends_with_any(spec, &[".whl", ".zip", ".gz", ".bz2", ".tgz", ".tar", ".py"]);
    let name_fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    let rest_fits = rest.bytes().all(|b| {
        b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'[' | b']'
                    | b','
                    | b'<'
                    | b'>'
                    | b'='
                    | b'~'
                    | b'!'
                    | b'.'
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'_'
                    | b' '
                    | b'@'
            )
    });
    // uv accepts `name@1.2` and `name@latest`. `name @ URL` bypasses the registry.
    let at_fits = rest.split_once('@').is_none_or(|(before, version)| {
        !before.ends_with(' ')
            && !version.is_empty()
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'))
    });
    // A comma may only continue a version or an extra. It must not start another package.
    let extras_end = rest.find(']').map_or(0, |at| at + 1);
    let commas_fit = rest[extras_end..].split(',').skip(1).all(|it| it.trim_start().starts_with(OPERATORS));
    name_fits && rest_fits && at_fits && commas_fit && !is_archive
}

/// First characters of a version condition.
const OPERATORS: [char; 5] = ['<', '>', '=', '~', '!'];

/// Returns whether `specs` is a comma-separated list of specs. Versions may contain commas too.
pub(super) fn are_pypi(specs: &str) -> bool {
    let mut all: Vec<String> = Vec::new();
    for part in specs.split(',') {
        let continues_spec = part.trim_start().starts_with(OPERATORS)
            || all.last().is_some_and(|it| it.contains('[') && !it.contains(']'));
        match all.last_mut().filter(|_| continues_spec) {
            Some(spec) => spec.push_str(&format!(",{part}")),
            None => all.push(part.to_owned()),
        }
    }
    all.iter().all(|it| is_pypi(it))
}

fn ends_with_any(text: &str, endings: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    endings.iter().any(|it| text.ends_with(it))
}

/// Returns whether `text` is a Python version such as `3.12`, `>=3.11` or `cpython@3.12`, and not a program.
pub(super) fn is_python_version(text: &str) -> bool {
    let text = ["cpython", "pypy", "graalpy"].iter().find_map(|it| text.strip_prefix(it)).unwrap_or(text);
    let version = text.trim_start_matches(['@', '-', '<', '>', '=', '~', '!']);
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.bytes().all(|b| {
            b.is_ascii_digit()
                || matches!(b, b'.' | b',' | b'<' | b'>' | b'=' | b'*' | b'a' | b'b' | b'r' | b'c' | b't')
        })
}

/// Returns whether `text` has the form `[registry[:port]/]name[:tag][@digest]`.
pub(super) fn is_image(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 512
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/' | b':' | b'@'))
        && !text.contains("//")
        && !text.ends_with(['/', ':', '@'])
}

/// Returns whether `server` is a scoped npm name. Such an entry needs no `command`.
pub(crate) fn is_scoped_npm(server: &str) -> bool {
    server.starts_with('@') && is_npm(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npm_specs_are_recognized() {
        for spec in [
            "server",
            "@scope/name",
            "@scope/name@1.2.3",
            "name@latest",
            "name@^1.0",
            "Name",
            "a@>=1 <2",
            "a.b_c",
        ] {
            assert!(is_npm(spec), "{spec}");
        }
        let specs = "./x ../x /x ~/x file:x git+https://x/y https://x/y.tgz user/repo x@npm:y x@file:y x.tgz \
            @scope @scope/ @/x x@ github:user/repo x@git+ssh://y -c";
        for spec in specs.split(' ').chain(["", "a b"]) {
            assert!(!is_npm(spec), "{spec}");
        }
    }

    #[test]
    fn pypi_specs_are_recognized() {
        for spec in [
            "mcp-server-fetch",
            "mcp<2",
            "a[b,c]>=1,<2",
            "ruff@latest",
            "a==1.0",
            "a~=1.1",
            "a@1.2.3",
            "zope.interface",
        ] {
            assert!(is_pypi(spec), "{spec}");
        }
        let specs = ". ./x /x git+https://x a@https://x x.whl https://x -c a;b a/b script.py";
        for spec in specs.split(' ').chain(["", "a @ https://x", "a@ b"]) {
            assert!(!is_pypi(spec), "{spec}");
        }
    }

    #[test]
    fn interpreters_are_recognized() {
        let tools = "python python3 python3.12 Python@3.12 bash node node@20 sh.exe /bin/sh pypy3 uv";
        for tool in tools.split(' ') {
            assert!(is_interpreter(tool), "{tool}");
        }
        for tool in ["mcp-server-git", "shell-mcp", "nodemon-mcp", "pythonic", "@scope/node-server"] {
            assert!(!is_interpreter(tool), "{tool}");
        }
    }

    #[test]
    fn python_versions_and_images_are_recognized() {
        for text in ["3.12", ">=3.11,<3.14", "cpython@3.12", "pypy3.10", "3.13t"] {
            assert!(is_python_version(text), "{text}");
        }
        for text in ["/usr/bin/python", "python", "./x", "", "3.12/../x"] {
            assert!(!is_python_version(text), "{text}");
        }
        for text in ["mcp/fetch", "mcp-server:latest", "ghcr.io/a/b:1@sha256:00ff", "localhost:5000/x"] {
            assert!(is_image(text), "{text}");
        }
        for text in ["", "-v", "../x", "a b", "a//b", "a:", "$(x)"] {
            assert!(!is_image(text), "{text}");
        }
    }
}
