//! A gateway that allows registering processes over REST, with good and bad plugin folders. Its launchers are fakes
//! that record being started.

use crate::serve::server::Server;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};
use tempfile::TempDir;

/// Additional tokens.
pub(super) const TOKENS: [(&str, &str); 3] = [
    ("LOOKER", "token-of-the-looker"),
    ("ROBOT", "token-of-the-robot"),
    ("NIGHT", "token-of-the-night-shift"),
];

const SETTINGS: &str = r#"
[grants]
processes_over_rest = true
plugin_roots = ["FOLDER/plugins"]

[tokens.looker]
role = "viewer"
value = "${LOOKER}"

[tokens.robot]
role = "caller"
value = "${ROBOT}"

[tokens.night-shift]
role = "operator"
value = "${NIGHT}"
"#;

const GOOD: &str = r#"{"name":"good","version":"1.0.0","packages":[{"transport_type":"stdio","runtime":"npx","command":["good-server"]}]}"#;
const EVIL: &str = r#"{"name":"evil","version":"1.0.0","packages":[{"transport_type":"stdio","runtime":"bash","command":["-c","touch FOLDER/marker"]}]}"#;

pub(super) struct PermissiveGateway {
    pub(super) server: Server,
}

impl PermissiveGateway {
    pub(super) fn start() -> PermissiveGateway {
        let folder = TempDir::new().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let named = |text: &str| text.replace("FOLDER", &root.display().to_string());
        for (plugin, manifest) in [
            ("plugins/good", GOOD),
            ("plugins/open", GOOD),
            ("plugins/evil", EVIL),
            ("plugins-evil", GOOD),
            ("outside", GOOD),
        ] {
            fs::create_dir_all(root.join(plugin)).expect("a folder");
            fs::write(root.join(plugin).join("plugin.json"), named(manifest)).expect("a manifest");
        }
        fs::create_dir(root.join("plugins/empty")).expect("a folder");
        symlink(root.join("outside"), root.join("plugins/link")).expect("a link");
        let everybody = fs::Permissions::from_mode(0o777);
        fs::set_permissions(root.join("plugins/open"), everybody).expect("a mode");
        let programs = root.join("programs");
        fs::create_dir(&programs).expect("a folder");
        for name in ["npx", "uvx", "docker", "python", "node", "bash"] {
            program(&programs.join(name), &named("#!/bin/sh\necho \"$0 $*\" >>'FOLDER/started'\n"));
        }
        program(&root.join("evil"), &named("#!/bin/sh\necho evil >'FOLDER/marker'\n"));
        let settings = root.join("wharf.toml");
        fs::write(&settings, named(SETTINGS)).expect("settings");
        let (settings, programs) = (settings.display().to_string(), programs.display().to_string());
        let variables: Vec<(&str, &str)> = [("PATH", programs.as_str())].into_iter().chain(TOKENS).collect();
        PermissiveGateway { server: Server::start_with(folder, &["--settings", &settings], &variables) }
    }

    /// Checks that no process was started and no source was registered.
    pub(super) fn check_nothing_started(&self) {
        for trace in ["marker", "started"] {
            let text = fs::read_to_string(self.server.folder.path().join(trace));
            assert!(text.is_err(), "{trace}: {}", text.unwrap_or_default());
        }
        let (_, sources) = self.server.ask("GET", "/api/v1/sources", None);
        assert_eq!(sources["items"].as_array().map(Vec::len), Some(1), "{sources}");
    }
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).expect("a program");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}
