//! Between a client of ours and the source that it means.

use super::{error::no_resource, invalid, text};
use serde_json::json;
use wharf_mcp::{
    Raw, RpcError,
    serve::Client,
    session::{Era, MetaKey},
};
use wharf_runtime::{Caller, Catalog};

/// Who a request is made for, as its server is to know it.
pub(super) fn caller(client: &Client) -> Caller {
    let terms = client.terms();
    let meta = match terms.era {
        Era::Modern => client.meta().cloned(),
        // In this era it was said once, in the handshake.
        Era::Legacy => Some(match client.meta() {
            None => terms.as_meta().clone(),
            Some(said) => {
                let said = said.with(MetaKey::CAPABILITIES, &terms.capabilities);
                terms.info.as_ref().map_or(said.clone(), |info| said.with(MetaKey::CLIENT, info))
            }
        }),
    };
    Caller { meta, comes_back: terms.era == Era::Modern, ..Caller::default() }
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
        return Ok((source.ok_or_else(|| no_resource(&uri, true))?, params.without("_meta")));
    }
    let name = text(&reference, "name")?;
    let prompt = catalog.prompt(&name).ok_or_else(|| invalid(&format!("there is no prompt '{name}'")))?;
    let reference = reference.with("name", &json!(prompt.prompt.name).into());
    Ok((prompt.source.clone(), params.without("_meta").with("ref", &reference)))
}
