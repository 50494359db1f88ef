//! Translates a plugin into an entry of `tools:`. A plugin is a folder with a manifest, under one of the operator's
//! plugin roots.

use super::entry::EntryBuilder;
use crate::PORT_PLACEHOLDER;
use crate::{
    diagnostic::Diagnostics,
    env::{Env, Origin},
    files::{FileError, Files},
    manifest::{self, EntryFields, Manifest, ManifestFiller, Selection, ValueSource},
    masked_string::MaskedString,
    node::{Node, Str, Value},
    place::{Place, Placed, PlacedString},
    plan::{Lifecycle, PortEndpoint},
    raw::{Field, RawRegistration},
    read::{Reader, StringPairs},
    variable_layers::{self, VariableLayers},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
    sync::Arc,
};

const CLASS: &str = "MCPConfigError";

/// File names of a manifest, in order of preference.
const MANIFESTS: [&str; 2] = ["plugin.json", "server.json"];

const RUNTIMES: &[&str] = &["uvx", "npx", "python", "node", "docker"];
const TRANSPORTS: &[&str] = &["stdio", "sse", "streamable_http"];

/// A plugin, ready for the loader.
pub(super) struct Plugin {
    pub(super) entry: Node,
    pub(super) env: Env,
    /// Its endpoint, if it listens on a port.
    pub(super) port: Option<PortEndpoint>,
    /// Names of the required values that are missing.
    pub(super) missing: Vec<String>,
    /// Names of the values for one call that it does not take.
    pub(super) rejected: Vec<String>,
}

/// Requirements and values that a registration gives for its manifest.
struct PluginRequest {
    runtime: Option<String>,
    transport: Option<String>,
    command: Vec<MaskedString>,
    args: Vec<MaskedString>,
    variables: BTreeMap<String, String>,
    /// Names of the variables whose value a call may give.
    call_variables: Vec<MaskedString>,
}

/// A manifest with all values filled in.
struct FilledManifest {
    entry_fields: EntryFields,
    missing: BTreeSet<String>,
    /// Names of the values that the manifest used.
    used: BTreeSet<String>,
}

pub(super) fn plugin_entry(raw: RawRegistration, env: &Env, diagnostics: &mut Diagnostics) -> Option<Plugin> {
    #[rustfmt::skip]
    let RawRegistration {
        name, description, url: _, source_type, plugin_dir, transport_type, runtime_hint, lifecycle_mode, env_vars,
        command, args, server_url, call_vars,
    } = raw;
    let mut reader = Reader { class: CLASS, diagnostics };
    super::check_source_type(source_type, &mut reader);
    if let Some(server_url) = server_url {
        reader.diagnostics.plugin_or_remote(server_url.key_at, true);
    }
    let folder = reader.text("mcp_plugin_dir", plugin_dir)?;
    let lifecycle =
        reader.keyword("mcp_lifecycle_mode", lifecycle_mode, Lifecycle::KEYWORDS, Lifecycle::parse);
    let variables = reader.text_map("mcp_env_vars", env_vars).unwrap_or_default();
    let requested = PluginRequest {
        runtime: one_of("mcp_runtime_hint", runtime_hint, RUNTIMES, &mut reader),
        transport: one_of("mcp_transport_type", transport_type, TRANSPORTS, &mut reader),
        command: words("mcp_command", command, &mut reader),
        args: words("mcp_args", args, &mut reader),
        variables: plain(&variables),
        call_variables: words("mcp_call_vars", call_vars, &mut reader),
    };
    if diagnostics.has_errors() {
        return None;
    }
    let (files, manifest) = open(&folder, env, diagnostics)?;
    let FilledManifest { entry_fields, missing, used } =
        requested.fill(&manifest, &folder, &variables, env, diagnostics)?;
    let is_taken =
        |name: &String| used.contains(name) && requested.call_variables.iter().any(|it| it.expose() == name);
    let rejected = env.call_values.keys().filter(|it| !is_taken(it)).cloned().collect();
    let mut entry = EntryBuilder::new(folder.at);
    if let Some(name) = name {
        entry.put_node("name", name.key_at, name.node);
    }
    let label = manifest.name.filter(|it| !it.trim().is_empty()).unwrap_or_else(|| "plugin".to_owned());
    entry.put("server", folder.at, Value::plain(label));
    match manifest.description.filter(|it| description.is_none() && !it.trim().is_empty()) {
        Some(text) => entry.put("description", folder.at, Value::plain(text)),
        None => entry.describe(description, folder.at),
    }
    let lifecycle = lifecycle.unwrap_or(Lifecycle::Transient);
    entry.put("lifecycle", folder.at, Value::plain(lifecycle.as_str()));
    let port = entry_fields.port.clone();
    entry.put_fields(entry_fields, variables, &used, folder.at);
    let folder = files.locate(".").ok()?;
    let env =
        Env { assumes_variables: false, origin: Origin::Plugin, folder, files, home: None, ..env.clone() };
    Some(Plugin { entry: entry.finish(), env, port, missing: missing.into_iter().collect(), rejected })
}

impl PluginRequest {
    /// Selects an offer of the manifest and fills in the given values. `None` means that a diagnostic was recorded.
    fn fill(
        &self,
        manifest: &Manifest,
        folder: &PlacedString,
        given: &StringPairs,
        env: &Env,
        diagnostics: &mut Diagnostics,
    ) -> Option<FilledManifest> {
        let file = variable_layers::secrets_file(env);
        let file = file.inspect_err(|why| diagnostics.secrets_file(folder.at, why)).ok()?;
        // Only the code that starts a listening server knows its port, so the request layer overrides any given
        // value.
        let listens = matches!(
            manifest.selection(self.runtime.as_deref(), self.transport.as_deref()),
            Ok(Selection::Package(_, Some(_)))
        );
        let ports = ["port", "PORT"].into_iter().filter(|_| listens);
        let mut request = env.call_values.clone();
        request.retain(|name, _| self.call_variables.iter().any(|it| it.expose() == name));
        request.extend(ports.map(|it| (it.to_owned(), PORT_PLACEHOLDER.to_owned())));
        let layers = VariableLayers { request: &request, file: &file, registered: &self.variables, env };
        let mut filler = ManifestFiller::new(ValueSource::Layered(layers));
        let entry_fields = self.entry_fields(manifest, &mut filler);
        let entry_fields =
            entry_fields.inspect_err(|why| diagnostics.unusable_manifest(folder.at, why)).ok()?;
        for (name, why) in &filler.wrong {
            let at = given.iter().find(|(it, _)| it.value == *name).map_or(folder.at, |(it, _)| it.at);
            diagnostics.invalid_variable_value(at, name, why);
        }
        let ManifestFiller { missing, used, .. } = filler;
        Some(FilledManifest { entry_fields, missing, used })
    }

    fn entry_fields(
        &self,
        manifest: &Manifest,
        filler: &mut ManifestFiller<'_>,
    ) -> Result<EntryFields, String> {
        let runtime = self.runtime.as_deref();
        if let [program, rest @ ..] = &*self.command {
            // The operator's grants decide which program may run. The manifest still declares the environment it
            // needs.
            let package = manifest.packages.first();
            let env = package.map_or_else(Vec::new, |it| it.environment(filler));
            let args = rest.iter().chain(&self.args).cloned().collect();
            return Ok(EntryFields {
                command: Some(program.expose().to_owned()),
                args,
                env,
                ..EntryFields::default()
            });
        }
        match manifest.selection(runtime, self.transport.as_deref())? {
            Selection::Remote(remote) => remote.entry_fields(filler),
            Selection::Package(package, Some(transport)) => {
                let entry_fields = package.entry_fields(runtime, filler, self.args.clone())?;
                Ok(EntryFields { port: Some(package.port(transport, &entry_fields)?), ..entry_fields })
            }
            Selection::Package(package, None) => package.entry_fields(runtime, filler, self.args.clone()),
        }
    }
}

impl EntryBuilder {
    /// Adds the command or URL of the server. Variables that the manifest does not declare are passed to the server
    /// too, unless an argument has used them.
    fn put_fields(
        &mut self,
        entry_fields: EntryFields,
        given: StringPairs,
        used: &BTreeSet<String>,
        at: Place,
    ) {
        let EntryFields { command, args, env, transport, url, headers, port: _ } = entry_fields;
        let text =
            |text: MaskedString, at: Place| Node { value: Value::Str(Str { text, is_variable: false }), at };
        if let Some(command) = command {
            self.put("command", at, Value::plain(command));
            self.put("args", at, Value::Seq(args.into_iter().map(|it| text(it, at)).collect()));
            let declared: BTreeSet<&String> = env.iter().map(|(name, _)| name).collect();
            let others = given.into_iter();
            let others = others
                .filter(|(name, _)| !declared.contains(&name.value) && !used.contains(&name.value))
                .map(|(name, value)| (name, text(value.value, value.at)))
                .collect::<Vec<_>>();
            let env = env.into_iter().map(|(name, it)| (Placed::new(name, at), text(it, at)));
            let env = env.chain(others).collect();
            return self.put_map("env", at, env);
        }
        self.put("transport", at, Value::plain(transport.unwrap_or("http")));
        if let Some(url) = url {
            self.put_node("url", at, text(url, at));
        }
        let headers = headers.into_iter().map(|(name, it)| (Placed::new(name, at), text(it, at)));
        self.put_map("headers", at, headers.collect());
    }
}

/// Opens the plugin's folder and reads its manifest. `None` means that a diagnostic was recorded.
fn open(
    folder: &PlacedString,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> Option<(Arc<dyn Files + Send + Sync>, Manifest)> {
    let path = folder.value.expose();
    // Check permission before accessing the disk, so that a client that may not start processes learns nothing about
    // its contents.
    let has_parent_dir = Path::new(path).components().any(|it| it == Component::ParentDir);
    if has_parent_dir || path.contains('\0') || !Path::new(path).is_absolute() {
        diagnostics.invalid_plugin_folder(folder.at, "is not an absolute path without `..`");
        return None;
    }
    if !env.grants.processes_over_rest {
        diagnostics.stdio_registration_disabled(folder.at);
        return None;
    }
    let files = match env.files.open_plugin(path, &env.grants.plugin_roots) {
        Ok(files) => files,
        Err(error) => {
            diagnostics.invalid_plugin_folder(folder.at, &error.plugin_message());
            return None;
        }
    };
    for name in MANIFESTS {
        let bytes =
            match files.locate_trusted(name).and_then(|_| files.read(name, manifest::MAX_MANIFEST_BYTES)) {
                Err(FileError::Missing) => continue,
                Err(error) => Err(error.plugin_message()),
                Ok(bytes) => Ok(bytes),
            };
        let read = bytes.map_err(|why| format!("'{name}' {why}")).and_then(|bytes| {
            Manifest::read(&bytes).map_err(|why| format!("'{name}' cannot be read: {why}"))
        });
        return match read {
            Ok(manifest) => Some((files, manifest)),
            Err(why) => {
                diagnostics.unusable_manifest(folder.at, &why);
                None
            }
        };
    }
    diagnostics.invalid_plugin_folder(folder.at, "has neither 'plugin.json' nor 'server.json'");
    None
}

fn one_of(
    key: &str,
    field: Option<Field>,
    words: &'static [&'static str],
    reader: &mut Reader<'_>,
) -> Option<String> {
    let text = reader.text(key, field)?;
    let keyword = text.value.expose();
    if !words.contains(&keyword) {
        reader.diagnostics.unknown_keyword(text.at, CLASS, key, &text.value, words);
    }
    Some(keyword.to_owned())
}

/// Reads one string or a list of strings.
fn words(key: &str, field: Option<Field>, reader: &mut Reader<'_>) -> Vec<MaskedString> {
    match field {
        Some(Field { node: Node { value: Value::Str(it), .. }, .. }) if key == "mcp_command" => vec![it.text],
        field => {
            let texts = reader.texts(key, field).map_or_else(Vec::new, |it| it.value);
            texts.into_iter().map(|it| it.value).collect()
        }
    }
}

fn plain(variables: &StringPairs) -> BTreeMap<String, String> {
    let pairs = variables.iter();
    pairs.map(|(name, value)| (name.value.clone(), value.value.expose().to_owned())).collect()
}
