//! Signs in to remote servers with OAuth, and decides which servers support it and where their grants are stored.

use super::{Upstream, UpstreamContext, opener};
use crate::{consent::DeclineAll, fault::Fault};
use sha2::{Digest, Sha256};
use std::{path::Path, sync::Arc};
use wharf_config::{
    ClientCredential, Endpoint, MaskedString, OAuthGrant, RemoteEndpoint, SigningAlgorithm, Source,
    TokenOrigin,
};
use wharf_mcp::{
    Failure, Session,
    oauth::{
        Access, Algorithm, Authorizer, Browser, Config, FileStore, Identity, IdentityProvider, MemoryStore,
        OAuth, Secret, TokenSource, TokenStore,
    },
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
    /// Signs in to the server. The user approves in a browser, if a user is needed.
    pub async fn login(&self, browser: Arc<dyn Browser>) -> Result<Login, Fault> {
        let oauth = self.oauth(Some(browser)).ok_or_else(|| self.fault(&cannot_sign_in()))?;
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
        let oauth = self.oauth(None).ok_or_else(|| self.fault(&cannot_sign_in()))?;
        oauth.logout().await.map_err(|it| self.fault(&it))
    }

    fn oauth(&self, browser: Option<Arc<dyn Browser>>) -> Option<OAuth> {
        remote(&self.source).and_then(|it| oauth(&self.source, it, &self.context, &self.tokens, browser))
    }

    /// Connects without credentials to get the server's authentication challenge.
    async fn challenge(&self) -> Result<(), Failure> {
        let (opener, _working_directory) = opener::open(&self.source, &self.context, None, None)?;
        let connected = Session::connect(&*opener, &self.options(Arc::new(DeclineAll))).await?;
        drop(connected.session);
        connected.task.join().await;
        Ok(())
    }
}

/// Returns the authorizer for connections to this server, unless the entry has its own credentials. Without a store
/// for tokens there is none.
pub(super) fn authorizer(
    source: &Source,
    remote: &RemoteEndpoint,
    context: &UpstreamContext,
    tokens: Option<&Arc<MemoryStore>>,
) -> Option<Arc<dyn Authorizer>> {
    let oauth = oauth(source, remote, context, tokens?, None)?;
    Some(Arc::new(oauth))
}

fn oauth(
    source: &Source,
    remote: &RemoteEndpoint,
    context: &UpstreamContext,
    tokens: &Arc<MemoryStore>,
    browser: Option<Arc<dyn Browser>>,
) -> Option<OAuth> {
    if remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return None;
    }
    let auth = remote.auth.as_deref();
    let access = match auth {
        Some(settings) => access(&settings.grant, browser),
        None => Access::AuthorizationCode { identity: automatic(), browser },
    };
    let store: Arc<dyn TokenStore> = match &access {
        Access::AuthorizationCode { .. } => {
            Arc::new(FileStore::new(context.credentials.as_deref()?.join(file_name(remote))))
        }
        _ => tokens.clone(),
    };
    let config = Config {
        server: remote.url.clone(),
        access,
        scopes: auth.map(|it| it.scopes.clone()).unwrap_or_default(),
        dpop: auth.is_some_and(|it| it.dpop),
        issuer: auth.and_then(|it| it.issuer.clone()),
        private_addresses: source.egress.is_none_or(|it| it.private) && remote.url.scheme() == "http",
    };
    Some(OAuth::new(config, store))
}

/// Converts the grant of an entry.
fn access(grant: &OAuthGrant, browser: Option<Arc<dyn Browser>>) -> Access {
    let text = |it: &MaskedString| it.expose().to_owned();
    let secret = |it: &MaskedString| Secret::new(it.expose());
    match grant {
        OAuthGrant::AuthorizationCode { client_id, client_secret } => {
            let identity = match client_id {
                Some(id) => Identity::Registered { id: text(id), secret: client_secret.as_ref().map(secret) },
                None => automatic(),
            };
            Access::AuthorizationCode { identity, browser }
        }
        OAuthGrant::ClientCredentials { client_id, credential } => match credential {
            ClientCredential::Secret(it) => Access::Secret { id: text(client_id), secret: secret(it) },
            ClientCredential::PrivateKey(pem, algorithm) => {
                let algorithm = algorithm_of(*algorithm);
                Access::Key { id: text(client_id), pem: secret(pem), algorithm }
            }
        },
        OAuthGrant::WorkloadIdentity { client_id, token } => {
            Access::WorkloadIdentity { id: client_id.as_ref().map(text), token: token_source(token) }
        }
        OAuthGrant::Enterprise { client_id, client_secret, id_token, idp } => Access::Enterprise {
            id: text(client_id),
            secret: client_secret.as_ref().map(secret),
            id_token: token_source(id_token),
            identity_provider: IdentityProvider {
                token_endpoint: idp.token_endpoint.clone(),
                id: idp.client_id.as_ref().map(text),
                secret: idp.client_secret.as_ref().map(secret),
            },
        },
    }
}

fn automatic() -> Identity {
    Identity::Automatic { name: "wharf".to_owned(), document: None }
}

fn algorithm_of(algorithm: SigningAlgorithm) -> Algorithm {
    match algorithm {
        SigningAlgorithm::Es256 => Algorithm::Es256,
        SigningAlgorithm::Es384 => Algorithm::Es384,
        SigningAlgorithm::Rs256 => Algorithm::Rs256,
        SigningAlgorithm::Rs384 => Algorithm::Rs384,
        SigningAlgorithm::Rs512 => Algorithm::Rs512,
    }
}

fn token_source(origin: &TokenOrigin) -> TokenSource {
    match origin {
        TokenOrigin::Text(text) => TokenSource::Text(Secret::new(text.expose())),
        TokenOrigin::File(path) => TokenSource::File(path.clone()),
    }
}

fn remote(source: &Source) -> Option<&RemoteEndpoint> {
    match &source.endpoint {
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => Some(remote),
        Endpoint::Builtin(_) | Endpoint::Stdio(_) | Endpoint::WebSocket(..) => None,
    }
}

/// Returns the name of the grant file: the host for readability, and a hash of the URL and of a configured client for
/// uniqueness.
fn file_name(remote: &RemoteEndpoint) -> impl AsRef<Path> {
    let host = remote
        .url
        .host_str()
        .unwrap_or_default()
        .replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let client_id = remote.auth.as_deref().and_then(|it| it.grant.client_id());
    let mut hash = Sha256::new_with_prefix(remote.url.as_str());
    client_id.iter().for_each(|it| hash.update(format!("\n{}", it.expose())));
    let hash: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{host}-{hash}.json")
}

fn cannot_sign_in() -> Failure {
    Failure::connect("sign-in needs a server over http or sse whose entry sets no `Authorization` header")
}
