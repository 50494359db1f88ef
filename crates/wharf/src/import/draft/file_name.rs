//! Chooses the name of each server's env file.

use std::collections::BTreeSet;

/// Returns a `.env.NAME` for each server. The names are valid file names, unique regardless of case, and not in
/// `taken`.
pub(super) fn choose<'a>(servers: impl Iterator<Item = &'a String>, taken: &BTreeSet<String>) -> Vec<String> {
    let there = taken.iter().filter_map(|it| it.strip_prefix(".env."));
    let mut taken: BTreeSet<String> = there.map(str::to_ascii_lowercase).collect();
    servers
        .map(|server| {
            let base = stem(server);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let free =
                [base.clone()].into_iter().chain(numbered).find(|it| taken.insert(it.to_ascii_lowercase()));
            format!(".env.{}", free.unwrap_or(base))
        })
        .collect()
}

fn stem(server: &str) -> String {
    // Files with these suffixes are usually committed to version control.
    const USUALLY_COMMITTED: [&str; 5] = ["default", "defaults", "example", "sample", "template"];
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = server.chars().map(safe).take(60).collect();
    match name.trim_matches(['-', '.']) {
        "" => "server".to_owned(),
        name if USUALLY_COMMITTED.contains(&name.to_ascii_lowercase().as_str()) => format!("{name}-server"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_file_names_are_valid_and_unique() {
        let servers = ["github", "GitHub", "a b/c", "../x", "", "日本", "example", "github-2"];
        let servers: Vec<String> = servers.map(str::to_owned).into();
        assert_eq!(
            choose(servers.iter(), &BTreeSet::from([".env.x".to_owned()])),
            [
                ".env.github",
                ".env.GitHub-2",
                ".env.a-b-c",
                ".env.x-2",
                ".env.server",
                ".env.server-2",
                ".env.example-server",
                ".env.github-2-2"
            ]
        );
    }
}
