//! The supported MCP clients, and the location of each one's configuration file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A client that the user can name instead of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Claude,
    ClaudeCode,
    VsCode,
    Cursor,
    Windsurf,
    Codex,
    Zed,
    Gemini,
}

/// The folders and variables that determine the location of a client's file.
#[derive(Clone, Copy)]
pub(crate) struct ClientLocations<'a> {
    pub(crate) home: Option<&'a Path>,
    /// The current directory, which may be a project of the client.
    pub(crate) project: &'a Path,
    pub(crate) variables: &'a BTreeMap<String, String>,
}

impl Client {
    pub(crate) const ALL: [Client; 8] = [
        Client::Claude,
        Client::ClaudeCode,
        Client::VsCode,
        Client::Cursor,
        Client::Windsurf,
        Client::Codex,
        Client::Zed,
        Client::Gemini,
    ];

    /// Returns the name for the command line.
    pub(crate) fn cli_name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::ClaudeCode => "claude-code",
            Client::VsCode => "vscode",
            Client::Cursor => "cursor",
            Client::Windsurf => "windsurf",
            Client::Codex => "codex",
            Client::Zed => "zed",
            Client::Gemini => "gemini",
        }
    }

    /// Finds a client by its name on the command line.
    pub(crate) fn from_cli_name(cli_name: &str) -> Option<Client> {
        Client::ALL.into_iter().find(|it| it.cli_name() == cli_name)
    }

    /// Returns the display name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Client::Claude => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::VsCode => "VS Code",
            Client::Cursor => "Cursor",
            Client::Windsurf => "Windsurf",
            Client::Codex => "Codex",
            Client::Zed => "Zed",
            Client::Gemini => "Gemini CLI",
        }
    }

    /// Returns the key under which its file lists servers.
    pub(crate) fn section(self) -> &'static str {
        match self {
            Client::VsCode => "servers",
            Client::Codex => "mcp_servers",
            Client::Zed => "context_servers",
            Client::Claude | Client::ClaudeCode | Client::Cursor | Client::Windsurf | Client::Gemini => {
                "mcpServers"
            }
        }
    }

    /// Guesses the client from the path of its file.
    pub(super) fn of(path: &Path) -> Option<Client> {
        let mut parts = path.iter().rev().map(|it| it.to_string_lossy().to_ascii_lowercase());
        let file = parts.next().unwrap_or_default();
        let folder = parts.next().unwrap_or_default();
        match (folder.as_str(), file.as_str()) {
            (_, "claude_desktop_config.json") => Some(Client::Claude),
            (_, ".claude.json" | ".mcp.json") => Some(Client::ClaudeCode),
            (".cursor", _) => Some(Client::Cursor),
            (".vscode", _) => Some(Client::VsCode),
            (".codex", "config.toml") => Some(Client::Codex),
            (".zed" | "zed", "settings.json") => Some(Client::Zed),
            (".gemini", "settings.json") => Some(Client::Gemini),
            ("windsurf", "mcp_config.json") => Some(Client::Windsurf),
            _ => None,
        }
    }

    /// Returns its file in a project folder, if it supports one.
    pub(crate) fn project_file(self, project: &Path) -> Option<PathBuf> {
        let path = match self {
            Client::ClaudeCode => ".mcp.json",
            Client::VsCode => ".vscode/mcp.json",
            Client::Cursor => ".cursor/mcp.json",
            Client::Codex => ".codex/config.toml",
            Client::Zed => ".zed/settings.json",
            Client::Gemini => ".gemini/settings.json",
            Client::Claude | Client::Windsurf => return None,
        };
        Some(project.join(path))
    }

    /// Returns the possible paths of the user's file on every operating system.
    fn user_files(self, locations: ClientLocations<'_>) -> Vec<PathBuf> {
        let settings = locations.settings_folders();
        let below = |path: &str| settings.iter().map(|it| it.join(path)).collect::<Vec<_>>();
        let at_home = |folder: Option<PathBuf>, default: &str, file: &str| {
            let folder = folder.or_else(|| locations.home.map(|it| it.join(default)));
            folder.map(|it| it.join(file)).into_iter().collect()
        };
        match self {
            Client::Claude => below("Claude/claude_desktop_config.json"),
            Client::ClaudeCode => at_home(locations.folder("CLAUDE_CONFIG_DIR"), "", ".claude.json"),
            Client::VsCode => {
                let editions = ["Code", "Code - Insiders", "VSCodium"];
                editions.iter().flat_map(|it| below(&format!("{it}/User/mcp.json"))).collect()
            }
            Client::Cursor => at_home(None, ".cursor", "mcp.json"),
            Client::Windsurf => at_home(None, ".codeium/windsurf", "mcp_config.json"),
            Client::Codex => at_home(locations.folder("CODEX_HOME"), ".codex", "config.toml"),
            // Zed uses `.config` on macOS too. Only Windows has another folder.
            Client::Zed => {
                let folders = [
                    locations.folder("APPDATA").map(|it| it.join("Zed")),
                    locations.folder("XDG_CONFIG_HOME").map(|it| it.join("zed")),
                    locations.home.map(|it| it.join(".config/zed")),
                ];
                folders.into_iter().flatten().map(|it| it.join("settings.json")).collect()
            }
            Client::Gemini => at_home(None, ".gemini", "settings.json"),
        }
    }

    /// Returns all possible paths: the project's file first, then the user's.
    pub(crate) fn candidates(self, locations: ClientLocations<'_>) -> Vec<PathBuf> {
        self.project_file(locations.project).into_iter().chain(self.user_files(locations)).collect()
    }

    /// Returns the user's file to add servers to: an existing file, else one in an existing folder, else the default
    /// of this operating system.
    pub(crate) fn user_file(self, locations: ClientLocations<'_>) -> Option<PathBuf> {
        let files = self.user_files(locations);
        let in_folder = |it: &&PathBuf| it.parent().is_some_and(Path::is_dir);
        let found = files.iter().find(|it| it.is_file()).or_else(|| files.iter().find(in_folder));
        let default = locations.default_settings_folder();
        let default = files.iter().find(|it| default.as_ref().is_some_and(|default| it.starts_with(default)));
        found.or(default).or(files.first()).cloned()
    }
}

impl ClientLocations<'_> {
    /// Returns the absolute path in a variable.
    fn folder(self, variable: &str) -> Option<PathBuf> {
        let path = self.variables.get(variable).filter(|it| !it.is_empty()).map(PathBuf::from);
        path.filter(|it| it.has_root())
    }

    /// Returns the settings folders of Linux, macOS and Windows, as far as they can be determined.
    fn settings_folders(self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = [
            self.folder("APPDATA"),
            self.folder("XDG_CONFIG_HOME"),
            self.home.map(|it| it.join("Library/Application Support")),
            self.home.map(|it| it.join(".config")),
        ]
        .into_iter()
        .flatten()
        .collect();
        folders.dedup();
        folders
    }

    /// Returns the settings folder of this operating system.
    fn default_settings_folder(self) -> Option<PathBuf> {
        let at_home = |path: &str| self.home.map(|it| it.join(path));
        match () {
            () if cfg!(windows) => self.folder("APPDATA"),
            () if cfg!(target_os = "macos") => at_home("Library/Application Support"),
            () => self.folder("XDG_CONFIG_HOME").or_else(|| at_home(".config")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(client: Client, home: Option<&str>, variables: &[(&str, &str)], expected: &[&str]) {
        let variables = variables.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let locations =
            ClientLocations { home: home.map(Path::new), project: Path::new("/w"), variables: &variables };
        let found = client.candidates(locations);
        let found: Vec<&str> =
            found.iter().filter_map(|it| it.to_str()).take(expected.len().max(1)).collect();
        assert_eq!(found, expected, "{client:?}");
    }

    #[test]
    fn configuration_paths_of_every_client() {
        check(
            Client::Claude,
            Some("/h"),
            &[("XDG_CONFIG_HOME", "/x")],
            &[
                "/x/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/h/.config/Claude/claude_desktop_config.json",
            ],
        );
        check(
            Client::VsCode,
            Some("/h"),
            &[],
            &[
                "/w/.vscode/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/h/.config/Code/User/mcp.json",
            ],
        );
        check(Client::Cursor, Some("/h"), &[], &["/w/.cursor/mcp.json", "/h/.cursor/mcp.json"]);
        check(Client::Cursor, None, &[], &["/w/.cursor/mcp.json"]);
        check(Client::Claude, None, &[], &[]);
        check(Client::ClaudeCode, Some("/h"), &[], &["/w/.mcp.json", "/h/.claude.json"]);
        check(
            Client::ClaudeCode,
            Some("/h"),
            &[("CLAUDE_CONFIG_DIR", "/c")],
            &["/w/.mcp.json", "/c/.claude.json"],
        );
        check(Client::Windsurf, Some("/h"), &[], &["/h/.codeium/windsurf/mcp_config.json"]);
        check(Client::Codex, Some("/h"), &[], &["/w/.codex/config.toml", "/h/.codex/config.toml"]);
        check(
            Client::Codex,
            Some("/h"),
            &[("CODEX_HOME", "/c")],
            &["/w/.codex/config.toml", "/c/config.toml"],
        );
        check(Client::Zed, Some("/h"), &[], &["/w/.zed/settings.json", "/h/.config/zed/settings.json"]);
        check(Client::Gemini, Some("/h"), &[], &["/w/.gemini/settings.json", "/h/.gemini/settings.json"]);
    }

    #[test]
    fn clients_are_recognised_by_path() {
        for (path, client) in [
            ("/h/.config/Claude/claude_desktop_config.json", Some(Client::Claude)),
            ("claude_desktop_config.json", Some(Client::Claude)),
            (".cursor/mcp.json", Some(Client::Cursor)),
            ("x/.vscode/mcp.json", Some(Client::VsCode)),
            ("x/.mcp.json", Some(Client::ClaudeCode)),
            ("/h/.codex/config.toml", Some(Client::Codex)),
            ("/h/.config/zed/settings.json", Some(Client::Zed)),
            ("/h/.gemini/settings.json", Some(Client::Gemini)),
            ("/h/.codeium/windsurf/mcp_config.json", Some(Client::Windsurf)),
            ("mcp.json", None),
            ("", None),
        ] {
            assert_eq!(Client::of(Path::new(path)), client, "{path}");
        }
        for client in Client::ALL {
            assert_eq!(Client::from_cli_name(client.cli_name()), Some(client));
        }
    }
}
