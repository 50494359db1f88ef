//! Signs in to remote servers with OAuth, and decides which servers support it and where their grants are stored.

use super::{Upstream, UpstreamContext, opener};
use crate::{consent::DeclineAll, fault::Fault};
use sha2::{Digest, Sha256};
use std::{path::Path, sync::Arc};
use wharf_config::{Endpoint, RemoteEndpoint, Source};
use wharf_mcp::{
    Failure, Session,
    oauth::{Access, Authorizer, Browser, Config, FileStore, Identity, OAuth},
};

/// Result of signing in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// The grant is stored. New connections use it.
    Granted,
    /// The server accepts connections without a grant.
    NotNeeded,
}

impl Upstream {
    /// Signs in to the server. The user approves in a browser.
    pub async fn login(&self, browser: Arc<dyn Browser>) -> Result<Login, Fault> {
        let source = &self.source;
        let oauth = remote(source).and_then(|it| oauth(source, it, &self.context, Some(browser)));
        let oauth = oauth.ok_or_else(|| self.fault(&cannot_sign_in()))?;
        let challenge = match self.challenge().await {
            Ok(()) => return Ok(Login::NotNeeded),
            Err(failure) if failure.status == Some(401) => failure.challenge.clone(),
            Err(failure) => return Err(self.fault(&failure)),
        };
        oauth.login(challenge).await.map_err(|it| self.fault(&it))?;
        Ok(Login::Granted)
    }

    /// Deletes the stored grant.
    pub async fn logout(&self) -> Result<(), Fault> {
        let source = &self.source;
        let oauth = remote(source).and_then(|it| oauth(source, it, &self.context, None));
        let oauth = oauth.ok_or_else(|| self.fault(&cannot_sign_in()))?;
        oauth.logout().await.map_err(|it| self.fault(&it))
    }

    /// Connects without credentials to get the server's authentication challenge.
    async fn challenge(&self) -> Result<(), Failure> {
        let context = UpstreamContext { credentials: None, ..self.context.clone() };
        let (opener, _working_directory) = opener::open(&self.source, &context, None)?;
        let connected = Session::connect(&*opener, &self.options(Arc::new(DeclineAll))).await?;
        drop(connected.session);
        connected.task.join().await;
        Ok(())
    }
}

/// Returns the authorizer for connections to this server: a stored grant, unless the entry has its own credentials.
pub(super) fn authorizer(
    source: &Source,
    remote: &RemoteEndpoint,
    context: &UpstreamContext,
) -> Option<Arc<dyn Authorizer>> {
    let oauth = oauth(source, remote, context, None)?;
    Some(Arc::new(oauth))
}

fn oauth(
    source: &Source,
    remote: &RemoteEndpoint,
    context: &UpstreamContext,
    browser: Option<Arc<dyn Browser>>,
) -> Option<OAuth> {
    let folder = context.credentials.as_deref()?;
    if remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return None;
    }
    let identity = Identity::Automatic { name: "wharf".to_owned(), document: None };
    let config = Config {
        server: remote.url.clone(),
        access: Access::AuthorizationCode { identity, browser },
        scopes: Vec::new(),
        dpop: false,
        issuer: None,
        private_addresses: source.egress.is_none_or(|it| it.private) && remote.url.scheme() == "http",
    };
    Some(OAuth::new(config, Arc::new(FileStore::new(folder.join(file_name(remote))))))
}

fn remote(source: &Source) -> Option<&RemoteEndpoint> {
    match &source.endpoint {
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => Some(remote),
        Endpoint::Builtin(_) | Endpoint::Stdio(_) | Endpoint::WebSocket(..) => None,
    }
}

/// Returns the name of the grant file of a URL: the host for readability, and a hash for uniqueness.
fn file_name(remote: &RemoteEndpoint) -> impl AsRef<Path> {
    let host = remote
        .url
        .host_str()
        .unwrap_or_default()
        .replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let hash: String =
        Sha256::digest(remote.url.as_str()).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{host}-{hash}.json")
}

fn cannot_sign_in() -> Failure {
    Failure::connect("sign-in needs a server over http or sse whose entry sets no `Authorization` header")
}
