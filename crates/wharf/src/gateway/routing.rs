//! Maps a client's request to the source that it concerns: its metadata, the owner of a resource, the target of a
//! completion.

use super::{invalid, required_text};
use serde_json::json;
use wharf_mcp::{
    Raw, RpcError,
    serve::Client,
    session::{Era, MetaKey, TaskMode},
    tasks,
};
use wharf_runtime::{Caller, Catalog};

/// Builds the caller that a source sees: the client's metadata, and whether the client can resume a suspended call.
pub(super) fn caller(client: &Client) -> Caller {
    let terms = client.terms();
    let meta = match terms.era {
        Era::Modern => client.meta().cloned(),
        // Legacy-era clients send their capabilities and info once, in the handshake, so they are added here.
        Era::Legacy => Some(match client.meta() {
            None => terms.as_meta().clone(),
            Some(client_meta) => {
                let client_meta = client_meta.with(MetaKey::CAPABILITIES, &terms.capabilities);
                terms
                    .info
                    .as_ref()
                    .map_or(client_meta.clone(), |info| client_meta.with(MetaKey::CLIENT, info))
            }
        }),
    };
    let tasks = match terms.era {
        Era::Modern if tasks::is_declared(&terms.capabilities) => TaskMode::Return,
        // A client that does not declare tasks learns from the server's error that its call needs them.
        Era::Modern => TaskMode::WaitUndeclared,
        Era::Legacy => TaskMode::Wait,
    };
    Caller { meta, retries_with_input: terms.era == Era::Modern, tasks, ..Caller::default() }
}

/// Finds the source of a resource: the one that lists it, otherwise the first with a template whose literal prefix
/// matches.
pub(super) fn owner(catalog: &Catalog, uri: &str) -> Option<String> {
    let listed = catalog.resources.iter().find(|it| it.item.uri == uri).map(|it| &it.source);
    let fits = |template: &str| {
        let start = template.split('{').next().unwrap_or_default();
        !start.is_empty() && uri.starts_with(start)
    };
    let templated = || catalog.templates.iter().find(|it| fits(&it.item.uri_template)).map(|it| &it.source);
    listed.or_else(templated).cloned()
}

/// The source that completes an argument, or the resource whose source is unknown.
pub(super) enum CompletionTarget {
    Source(String),
    UnlistedResource(String),
}

/// Finds the source that completes an argument, and rewrites the parameters to the names that the source uses.
pub(super) fn completion(catalog: &Catalog, params: &Raw) -> Result<(CompletionTarget, Raw), RpcError> {
    let reference = params.member("ref").ok_or_else(|| invalid("`ref` is missing"))?;
    let forwarded = params.without(&["_meta"]);
    if required_text(&reference, "type")? == "ref/resource" {
        let uri = required_text(&reference, "uri")?;
        let template = catalog.templates.iter().find(|it| it.item.uri_template == uri);
        let source = template.map(|it| it.source.clone()).or_else(|| owner(catalog, &uri));
        let target = source.map_or(CompletionTarget::UnlistedResource(uri), CompletionTarget::Source);
        return Ok((target, forwarded));
    }
    let name = required_text(&reference, "name")?;
    let prompt = catalog.prompt(&name).ok_or_else(|| invalid(&format!("there is no prompt '{name}'")))?;
    let reference = reference.with("name", &json!(prompt.prompt.name).into());
    Ok((CompletionTarget::Source(prompt.source.clone()), forwarded.with("ref", &reference)))
}
