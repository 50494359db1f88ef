//! `POST /api/v1/import`: finds servers in the text of a manifest or of another client's configuration. Changes nothing.
//!
//! Values of variables and headers never leave this module: an entry names them (`${NAME}`), and `missing` lists them.

use super::HandlerResult;
use crate::http_server::RequestBody;
use crate::{
    api::{ApiState, body, json_response, query::Query},
    import::{
        Imported, ImportedServer, PastedText, Reason, Target, import, render_suggestion, suggestion_json,
    },
    registry::RegistryError,
};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use wharf_config::{Env, NoFiles, Severity, suggest_entry};

/// Maximum size of a text, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Origin of the text, for messages.
const SHOWN: &str = "the text";

pub(super) async fn run(shared: &ApiState, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let body = body::read_object(request).await?;
    body::reject_unknown_keys(&body, &["text"])?;
    let text: Option<String> = body.member("text").and_then(|it| it.decode().ok());
    let text = text.filter(|it| it.len() <= MAX_TEXT_BYTES);
    let text = text.ok_or_else(|| body::malformed("`text` has to be a string of at most 1 MiB"))?;
    let found = match PastedText::read(text, SHOWN, None) {
        PastedText::Manifest(bytes) => from_manifest(shared, &bytes),
        PastedText::Servers(file) => {
            let names: BTreeSet<String> =
                shared.handle.sources().iter().map(|it| it.source.name.expose().to_owned()).collect();
            let grants = shared.registry.registered().grants.clone();
            let env = Env { grants, files: Arc::new(NoFiles), ..Env::bare() };
            let target = Target { env, names, env_files: BTreeSet::new() };
            match import(&[file], target) {
                Ok(imported) => from_client(shared, &imported),
                Err(error) => report("client", Vec::new(), vec![json!({ "message": error.to_string() })]),
            }
        }
    };
    Ok(json_response(StatusCode::OK, found))
}

fn report(format: &str, entries: Vec<Value>, problems: Vec<Value>) -> Value {
    json!({ "format": format, "entries": entries, "problems": problems })
}

fn from_manifest(shared: &ApiState, bytes: &[u8]) -> Value {
    match suggest_entry(bytes) {
        Ok(suggestion) => {
            let entry = suggestion_json(&suggestion);
            let refused = registration_refusal(shared, &entry);
            let notes: Vec<String> =
                suggestion.optional.iter().map(|it| format!("`{it}` is optional and left out")).collect();
            let entry = json!({
                "name": suggestion.name,
                "yaml": render_suggestion(&suggestion),
                "entry": entry,
                "missing": suggestion.variables,
                "notes": notes,
                "refused": refused,
            });
            report("manifest", vec![entry], Vec::new())
        }
        Err(why) => {
            let message = format!("neither a client's configuration nor a manifest: {why}");
            report("manifest", Vec::new(), vec![json!({ "message": message })])
        }
    }
}

fn from_client(shared: &ApiState, imported: &Imported) -> Value {
    let general: Vec<Value> = imported
        .notes
        .iter()
        .filter(|it| it.server.is_none())
        .map(|it| json!({ "message": it.text }))
        .collect();
    let entry = |server: &ImportedServer| {
        let notes: Vec<&str> = imported
            .notes
            .iter()
            .filter(|it| it.server.as_deref() == Some(&server.name))
            .map(|it| it.text.as_str())
            .collect();
        let mut missing: Vec<&String> = server.variables.iter().chain(&server.needs).collect();
        missing.sort();
        missing.dedup();
        let refused = match server.refused.first() {
            Some(Reason { message, hint, .. }) => json!({ "why": message, "hint": hint }),
            None => registration_refusal(shared, &server.entry),
        };
        json!({
            "name": server.name,
            "entry": server.entry,
            "yaml": server.yaml,
            "missing": missing,
            "notes": notes,
            "refused": refused,
        })
    };
    report("client", imported.servers.iter().map(entry).collect(), general)
}

/// Returns the reason why the entry could not be registered over REST, or null.
fn registration_refusal(shared: &ApiState, entry: &Value) -> Value {
    match shared.registry.read(&entry.to_string()) {
        Err(RegistryError::Invalid(diagnostics)) => {
            let error = diagnostics.items().iter().find(|it| it.severity == Severity::Error);
            error.map_or(Value::Null, |it| json!({ "why": it.message, "hint": it.hint }))
        }
        _ => Value::Null,
    }
}
