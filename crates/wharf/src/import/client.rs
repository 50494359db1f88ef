//! The clients whose files are known by name, and where each keeps its file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A client that can be named instead of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Claude,
    VsCode,
    Cursor,
}

impl Client {
    /// The client by the name it is typed with.
    pub(crate) fn named(word: &str) -> Option<Client> {
        match word {
            "claude" => Some(Client::Claude),
            "vscode" => Some(Client::VsCode),
            "cursor" => Some(Client::Cursor),
            _ => None,
        }
    }

    /// Its name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Client::Claude => "Claude Desktop",
            Client::VsCode => "VS Code",
            Client::Cursor => "Cursor",
        }
    }

    /// The client that keeps its servers at such a path.
    pub(super) fn of(path: &Path) -> Option<Client> {
        let is = |part: &str, name: &str| part.eq_ignore_ascii_case(name);
        let mut parts = path.iter().rev().map(|it| it.to_string_lossy());
        let file = parts.next().unwrap_or_default();
        let folder = parts.next().unwrap_or_default();
        match () {
            () if is(&file, "claude_desktop_config.json") => Some(Client::Claude),
            () if is(&folder, ".cursor") => Some(Client::Cursor),
            () if is(&folder, ".vscode") => Some(Client::VsCode),
            () => None,
        }
    }
}

/// Where a client may keep its servers, on whatever system: the folder's own file first, then the user's.
pub(crate) fn candidates(
    client: Client,
    home: Option<&Path>,
    cwd: &Path,
    variables: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let settings = settings_folders(home, variables);
    let below = |path: &str| settings.iter().map(|it| it.join(path)).collect::<Vec<_>>();
    match client {
        Client::Claude => below("Claude/claude_desktop_config.json"),
        Client::VsCode => {
            let editions = ["Code", "Code - Insiders", "VSCodium"];
            let users = editions.iter().flat_map(|it| below(&format!("{it}/User/mcp.json")));
            [cwd.join(".vscode/mcp.json")].into_iter().chain(users).collect()
        }
        Client::Cursor => [cwd].into_iter().chain(home).map(|it| it.join(".cursor/mcp.json")).collect(),
    }
}

/// The folders in which programs keep settings on Linux, macOS and Windows, as far as there are any.
fn settings_folders(home: Option<&Path>, variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = |name: &str| {
        variables.get(name).filter(|it| !it.is_empty()).map(PathBuf::from).filter(|it| it.has_root())
    };
    let mut folders: Vec<PathBuf> = [
        named("APPDATA"),
        named("XDG_CONFIG_HOME"),
        home.map(|it| it.join("Library/Application Support")),
        home.map(|it| it.join(".config")),
    ]
    .into_iter()
    .flatten()
    .collect();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let none = BTreeMap::new();
        let xdg = BTreeMap::from([("XDG_CONFIG_HOME".to_owned(), "/x".to_owned())]);
        let at = |client, home: Option<&str>, variables| {
            let found = candidates(client, home.map(Path::new), Path::new("/w"), variables);
            found.iter().map(|it| it.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            at(Client::Claude, Some("/h"), &xdg),
            [
                "/x/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/h/.config/Claude/claude_desktop_config.json"
            ]
        );
        assert_eq!(
            at(Client::VsCode, Some("/h"), &none)[..3],
            [
                "/w/.vscode/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/h/.config/Code/User/mcp.json"
            ]
        );
        assert_eq!(at(Client::Cursor, Some("/h"), &none), ["/w/.cursor/mcp.json", "/h/.cursor/mcp.json"]);
        assert_eq!(at(Client::Cursor, None, &none), ["/w/.cursor/mcp.json"]);
        assert!(at(Client::Claude, None, &none).is_empty());
    }

    #[test]
    fn recognised_by_path() {
        for (path, client) in [
            ("/h/.config/Claude/claude_desktop_config.json", Some(Client::Claude)),
            ("claude_desktop_config.json", Some(Client::Claude)),
            (".cursor/mcp.json", Some(Client::Cursor)),
            ("x/.vscode/mcp.json", Some(Client::VsCode)),
            ("mcp.json", None),
            ("", None),
        ] {
            assert_eq!(Client::of(Path::new(path)), client, "{path}");
        }
    }
}
