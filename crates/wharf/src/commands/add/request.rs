//! Parses the argument of `wharf add`: a package, a URL, a manifest, or a client's configuration file or JSON block.

use crate::{
    bundle::{Bundle, is_bundle},
    environment::Environment,
    import::{ClientFile, Package, PastedText, name_of_address},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};
use wharf_config::{FileError, read_regular};

/// Maximum size of the input, in bytes.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// Manifest file names to look for in a folder.
const MANIFEST_FILES: [&str; 2] = ["plugin.json", "server.json"];

/// The servers to add.
pub(super) enum AddRequest {
    /// A server.json or plugin.json, and its origin for messages.
    Manifest { bytes: Vec<u8>, shown: String },
    /// Servers in a client's format, their origin for messages, and a note for the user.
    Servers { file: ClientFile, shown: String, note: Option<String> },
    /// The server of a bundle, and the path of the bundle for messages.
    Bundle { bundle: Bundle, shown: String },
}

impl AddRequest {
    pub(super) fn read(
        typed: &str,
        own: &[String],
        name: Option<&str>,
        environment: &Environment,
    ) -> Result<AddRequest, String> {
        let start = typed.trim_start();
        if typed == "-" {
            return AddRequest::text(stdin()?, "standard input", name);
        }
        if start.starts_with(['{', '"']) {
            return AddRequest::text(typed.as_bytes().to_vec(), "the command line", name);
        }
        if let Some(request) = AddRequest::remote(typed, name) {
            return Ok(request);
        }
        let path = environment.folder.join(typed);
        if is_bundle(&path) {
            return AddRequest::bundle(&path, name, environment);
        }
        // A package name can contain `/` like a path. If the path exists, it is a path.
        let is_file_name = typed.ends_with(".json") || typed.ends_with(".toml");
        if is_file_name || fs::exists(&path).unwrap_or(false) {
            return AddRequest::file(&path, name);
        }
        match Package::read(typed) {
            Ok(Some(package)) => Ok(AddRequest::package(&package, own, name)),
            Err(word) => Err(format!(
                "error: `{word}` may be an npm or a PyPI package\nhelp: choose one: `wharf add npm:{word}` or `wharf add pypi:{word}`\n"
            )),
            Ok(None) => AddRequest::file(&path, name),
        }
    }

    fn bundle(path: &Path, name: Option<&str>, environment: &Environment) -> Result<AddRequest, String> {
        let shown = path.display().to_string();
        let bundle = open_bundle(path, name, environment)?;
        Ok(AddRequest::Bundle { bundle, shown })
    }

    fn remote(typed: &str, name: Option<&str>) -> Option<AddRequest> {
        let scheme = typed.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase())?;
        let is_remote = matches!(scheme.as_str(), "http" | "https" | "ws" | "wss");
        let name = name.map_or_else(|| name_of_address(typed), str::to_owned);
        is_remote.then(|| AddRequest::servers(&name, json!({ "url": typed }), None))
    }

    fn package(package: &Package<'_>, own: &[String], name: Option<&str>) -> AddRequest {
        let (command, args) = package.command(own);
        let name = name.map_or_else(|| package.server_name(), str::to_owned);
        let note = package.takes_folders().then(|| {
            let folders =
                if own.is_empty() { "the folder of the agent file".to_owned() } else { own.join(", ") };
            format!("it may read and write {folders}; other folders go after `--`")
        });
        AddRequest::servers(&name, json!({ "command": command, "args": args }), note)
    }

    fn servers(name: &str, server: Value, note: Option<String>) -> AddRequest {
        let text = json!({ "mcpServers": { name: server } }).to_string();
        let file = ClientFile { text, path: PathBuf::new(), client: None };
        AddRequest::Servers { file, shown: "the command line".to_owned(), note }
    }

    /// Reads a file, or the manifest in a folder.
    fn file(path: &Path, name: Option<&str>) -> Result<AddRequest, String> {
        let inside = MANIFEST_FILES.map(|it| path.join(it)).into_iter().find(|it| it.is_file());
        let path = inside.filter(|_| path.is_dir()).unwrap_or_else(|| path.to_owned());
        let shown = path.display().to_string();
        let bytes = read_regular(&path, MAX_INPUT_BYTES).map_err(|trouble| {
            let help = match trouble {
                FileError::Missing | FileError::NotRegular(_) => {
                    "help: give a package (`npm:NAME`, `pypi:NAME`), a URL (https://…), a server.json or plugin.json, a bundle (.mcpb), or a client's JSON block\n"
                }
                _ => "",
            };
            format!("error: '{shown}' {trouble}\n{help}")
        })?;
        if path.extension().is_some_and(|it| it == "toml") {
            let text =
                String::from_utf8(bytes).map_err(|_| format!("error: '{shown}' is not UTF-8 text\n"))?;
            return Ok(AddRequest::Servers {
                file: ClientFile { text, path, client: None },
                shown,
                note: None,
            });
        }
        AddRequest::text(bytes, &shown, name)
    }

    /// Parses JSON: a manifest, a client's file, its list of servers, or one server from it.
    fn text(bytes: Vec<u8>, shown: &str, name: Option<&str>) -> Result<AddRequest, String> {
        let text = String::from_utf8(bytes).map_err(|_| format!("error: {shown} is not UTF-8 text\n"))?;
        Ok(match PastedText::read(text, shown, name) {
            PastedText::Manifest(bytes) => AddRequest::Manifest { bytes, shown: shown.to_owned() },
            PastedText::Servers(file) => AddRequest::Servers { file, shown: shown.to_owned(), note: None },
        })
    }
}

/// Unpacks a bundle into the state folder.
pub(in crate::commands) fn open_bundle(
    path: &Path,
    name: Option<&str>,
    environment: &Environment,
) -> Result<Bundle, String> {
    let bundles = environment.bundles();
    let bundles =
        bundles.ok_or("error: there is no folder for the bundle\nhelp: set WHARF_HOME\n".to_owned())?;
    Bundle::open(path, &bundles, name).map_err(|why| format!("error: '{}' {why}\n", path.display()))
}

fn stdin() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
    match read {
        Err(error) => Err(format!("error: standard input cannot be read: {error}\n")),
        Ok(_) if bytes.len() as u64 > MAX_INPUT_BYTES => {
            Err(format!("error: standard input is larger than {} MiB\n", MAX_INPUT_BYTES / 1024 / 1024))
        }
        Ok(_) => Ok(bytes),
    }
}
