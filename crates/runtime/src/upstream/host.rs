//! What a server may ask of us: its roots, a form to fill in, a word from a model.

use crate::config::{ServerConfig, Source};
use serde_json::json;
use std::{future::Future, path::Path, pin::Pin, sync::Arc};
use url::Url;
use wharf_mcp::{
    Raw, RpcError,
    session::{Answering, Host, MetaKey},
};

/// The `_meta` key under which an entry's `config` reaches its server.
const CONFIG_META: &str = "wharf/config";

/// A question of a server that only a person, or a policy, can answer.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Who asks.
    pub source: String,
    /// `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub method: String,
    /// What it wants to know.
    pub params: Raw,
}

/// Decides what a server's questions are answered with.
pub trait Consent: Send + Sync {
    /// Whether there is somebody to fill in forms.
    fn answers_forms(&self) -> bool;

    /// Whether there is somebody to be sent to an address, where what is asked is not for us to see.
    fn answers_links(&self) -> bool {
        false
    }

    /// Whether there is a model that servers may ask, with somebody's leave.
    fn answers_samples(&self) -> bool {
        false
    }

    /// Whether there is somebody who has roots of their own, for sources whose entry names none.
    fn answers_roots(&self) -> bool {
        false
    }

    /// Answers one question.
    fn answer(&self, asked: Asked) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;
}

/// Nobody is there: forms are not offered, and nothing is agreed to.
#[derive(Clone, Copy, Debug)]
pub struct Declines;

impl Consent for Declines {
    fn answers_forms(&self) -> bool {
        false
    }

    fn answer(&self, asked: Asked) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        Box::pin(async move { Err(RpcError::method_not_found(&asked.method)) })
    }
}

/// Answers for one source.
pub(super) struct SourceHost {
    source: Arc<Source>,
    consent: Arc<dyn Consent>,
}

impl SourceHost {
    pub(super) fn new(source: Arc<Source>, consent: Arc<dyn Consent>) -> SourceHost {
        SourceHost { source, consent }
    }

    /// The roots that the source's own entry names.
    fn roots(&self) -> Vec<Raw> {
        self.source.roots.iter().filter_map(|it| root(it.expose())).collect()
    }
}

impl Host for SourceHost {
    fn capabilities(&self) -> Raw {
        let mut capabilities = json!({});
        if !self.source.roots.is_empty() || self.consent.answers_roots() {
            capabilities["roots"] = json!({});
        }
        if self.consent.answers_forms() {
            capabilities["elicitation"]["form"] = json!({});
        }
        if self.consent.answers_links() {
            capabilities["elicitation"]["url"] = json!({});
        }
        if self.consent.answers_samples() {
            capabilities["sampling"] = json!({});
        }
        capabilities.into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> Answering {
        if method == "roots/list" && !self.source.roots.is_empty() {
            let roots = json!({ "roots": self.roots() });
            return Box::pin(async move { Ok(roots.into()) });
        }
        let params = params.unwrap_or_else(Raw::empty_object);
        let source = self.source.name.expose().to_owned();
        self.consent.answer(Asked { source, method: method.to_owned(), params })
    }
}

/// What somebody says about itself, with the roots that the source's entry adds to what it can do.
pub(super) fn with_roots(meta: &Raw) -> Raw {
    let capabilities = meta.member(MetaKey::CAPABILITIES).unwrap_or_else(Raw::empty_object);
    meta.with(MetaKey::CAPABILITIES, &capabilities.with("roots", &Raw::empty_object()))
}

/// A folder as MCP names it.
fn root(path: &str) -> Option<Raw> {
    let uri = Url::from_file_path(path).ok()?;
    let name = Path::new(path).file_name().map(|it| it.to_string_lossy().into_owned());
    Some(json!({ "uri": uri.as_str(), "name": name }).into())
}

/// An entry's settings as they travel in the handshake.
pub(super) fn config_meta(config: &ServerConfig) -> Raw {
    json!({ CONFIG_META: config.expose() }).into()
}
