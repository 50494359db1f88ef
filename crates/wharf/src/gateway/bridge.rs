//! Between a client of ours and the source that it means.

use super::{error::no_resource, invalid, text};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use wharf_mcp::{Raw, RpcError, serve::Client, session::Progress};
use wharf_runtime::Catalog;

/// Runs a call while its progress is passed on; what was reported before the answer is told before it.
pub(super) async fn with_progress<T>(
    call: impl Future<Output = T>,
    mut reports: mpsc::Receiver<Progress>,
    client: &Client,
) -> T {
    let mut call = std::pin::pin!(call);
    loop {
        tokio::select! {
            biased;
            Some(at) = reports.recv() => {
                client.progress(at.progress, at.total, at.message.as_deref()).await;
            }
            done = &mut call => {
                while let Ok(at) = reports.try_recv() {
                    client.progress(at.progress, at.total, at.message.as_deref()).await;
                }
                return done;
            }
        }
    }
}

/// What a server may ask of a client.
pub(super) fn method(name: &str) -> Option<&'static str> {
    ["elicitation/create", "sampling/createMessage", "roots/list"].into_iter().find(|it| *it == name)
}

/// The capability that a client declares if it answers this.
pub(super) fn capability(method: &str) -> &str {
    method.split('/').next().unwrap_or_default()
}

/// The source that has a resource: the one that lists it, else one whose template begins like it.
pub(super) fn owner(catalog: &Catalog, uri: &str) -> Option<String> {
    let listed = catalog.resources.iter().find(|it| it.item.uri == uri).map(|it| &it.source);
    let fits = |template: &str| {
        let start = template.split('{').next().unwrap_or_default();
        !start.is_empty() && uri.starts_with(start)
    };
    let templated = || catalog.templates.iter().find(|it| fits(&it.item.uri_template)).map(|it| &it.source);
    listed.or_else(templated).cloned()
}

/// The source that completes an argument, and the question in its own words.
pub(super) fn completion(catalog: &Catalog, params: &Raw) -> Result<(String, Raw), RpcError> {
    let reference = params.member("ref").ok_or_else(|| invalid("`ref` is missing"))?;
    if text(&reference, "type")? == "ref/resource" {
        let uri = text(&reference, "uri")?;
        let template = catalog.templates.iter().find(|it| it.item.uri_template == uri);
        let source = template.map(|it| it.source.clone()).or_else(|| owner(catalog, &uri));
        return Ok((source.ok_or_else(|| no_resource(&uri))?, params.clone()));
    }
    let name = text(&reference, "name")?;
    let prompt = catalog.prompt(&name).ok_or_else(|| invalid(&format!("there is no prompt '{name}'")))?;
    let mut question: Map<String, Value> = params.decode_or_default();
    let mut reference: Map<String, Value> = reference.decode_or_default();
    reference.insert("name".to_owned(), json!(prompt.prompt.name));
    question.insert("ref".to_owned(), Value::Object(reference));
    Ok((prompt.source.clone(), Value::Object(question).into()))
}
