//! Answers requests from servers: roots, elicitation and sampling.

use crate::consent::{Consent, ServerRequest};
use serde_json::json;
use std::{path::Path, sync::Arc};
use url::Url;
use wharf_config::{ServerConfig, Source};
use wharf_mcp::{
    Raw,
    session::{Host, HostFuture, MetaKey},
};

/// The `_meta` key that carries an entry's `config` to its server.
const CONFIG_META: &str = "wharf/config";

/// Answers requests from one source.
pub(super) struct SourceHost {
    source: Arc<Source>,
    consent: Arc<dyn Consent>,
}

impl SourceHost {
    pub(super) fn new(source: Arc<Source>, consent: Arc<dyn Consent>) -> SourceHost {
        SourceHost { source, consent }
    }

    /// Returns the roots configured in the source's entry.
    fn roots(&self) -> Vec<Raw> {
        self.source.roots.iter().filter_map(|it| root(it.expose())).collect()
    }
}

impl Host for SourceHost {
    fn capabilities(&self) -> Raw {
        let mut answers = self.consent.answers();
        answers.roots |= !self.source.roots.is_empty();
        answers.capabilities().into()
    }

    fn reports_roots(&self) -> bool {
        self.source.roots.is_empty() && self.consent.answers().roots
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        if method == "roots/list" && !self.source.roots.is_empty() {
            let roots = json!({ "roots": self.roots() });
            return Box::pin(async move { Ok(roots.into()) });
        }
        let params = params.unwrap_or_else(Raw::empty_object);
        let source = self.source.name.expose().to_owned();
        self.consent.answer(ServerRequest { source, method: method.to_owned(), params })
    }
}

/// Adds the roots capability, which the entry provides, to the client's `_meta`.
pub(super) fn with_roots(meta: &Raw) -> Raw {
    let capabilities = meta.member(MetaKey::CAPABILITIES).unwrap_or_else(Raw::empty_object);
    meta.with(MetaKey::CAPABILITIES, &capabilities.with("roots", &Raw::empty_object()))
}

/// Converts a path into an MCP root.
fn root(path: &str) -> Option<Raw> {
    let uri = Url::from_file_path(path).ok()?;
    let name = Path::new(path).file_name().map(|it| it.to_string_lossy().into_owned());
    Some(json!({ "uri": uri.as_str(), "name": name }).into())
}

/// Builds the `_meta` that carries an entry's `config` in the handshake.
pub(super) fn config_meta(config: &ServerConfig) -> Raw {
    json!({ CONFIG_META: config.expose() }).into()
}
