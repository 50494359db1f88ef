//! One attempt to get a token: discovers the authorization server, identifies the client and requests the token.
//!
//! Every attempt starts with discovery and ends with a [`Grant`] that holds everything the next attempt needs. No
//! other state is kept, so a server may move to another authorization server. rmcp implements the protocol.

use super::{
    Access, Browser, Config, Grant, Identity, Secret,
    authorizer::{AuthorizerFuture, asks_for_bearer, asks_for_dpop},
    dpop::{self, DpopKey, NonceCache},
    grant::{client, missing_token, read_grant, to_rmcp},
    transport::{TokenProofs, Transport},
};
use crate::Failure;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig,
    CredentialStore, InMemoryCredentialStore, OAuthClientConfig, WWWAuthenticateParams,
};
use serde_json::Value;
use std::sync::Arc;
use tokio::{runtime::Handle, task::spawn_blocking};
use url::Url;

/// Input of an attempt.
#[derive(Debug)]
pub(super) struct Start {
    /// Grant of the last attempt.
    pub(super) stored: Option<Grant>,
    /// `WWW-Authenticate` header of the rejected request.
    pub(super) challenge: Option<String>,
    /// Whether a refreshed token is enough. False if the server asks for more scopes.
    pub(super) renewable: bool,
    /// Nonces of the authorization server.
    pub(super) nonces: Arc<NonceCache>,
}

/// The discovered authorization server.
pub(super) struct AuthServer<'a> {
    pub(super) config: &'a Config,
    pub(super) metadata: AuthorizationMetadata,
    pub(super) transport: Arc<Transport>,
    manager: AuthorizationManager,
    credentials: InMemoryCredentialStore,
    /// Scopes of the server's challenge.
    challenge_scopes: Vec<String>,
    /// Key to bind tokens to, if they have to be.
    pub(super) key: Option<Arc<DpopKey>>,
}

/// Gets a grant. Returns `None` if a user has to sign in and there is no browser.
///
/// The future is boxed, so rmcp's part of it is compiled in this crate and not again in each crate that signs in.
pub(super) fn obtain(config: &Config, start: Start) -> AuthorizerFuture<'_, Option<Grant>> {
    Box::pin(obtain_grant(config, start))
}

async fn obtain_grant(config: &Config, start: Start) -> Result<Option<Grant>, Failure> {
    let Start { stored, challenge, renewable, nonces } = start;
    let mut auth_server = AuthServer::discover(config, challenge.as_deref()).await?;
    // A grant from another authorization server is useless here.
    let stored = stored.filter(|grant| grant.issuer == auth_server.metadata.issuer);
    auth_server.bind_tokens(stored.as_ref(), challenge.as_deref(), nonces)?;
    let Access::AuthorizationCode { identity, browser } = &config.access else {
        return auth_server.sign_in_client(stored.as_ref()).await.map(Some);
    };
    if renewable
        && let Some(grant) = stored.as_ref().filter(|grant| grant.refresh_token().is_some())
        && let Some(renewed) = auth_server.refresh(grant).await?
    {
        return Ok(Some(renewed));
    }
    match browser {
        Some(browser) => auth_server.sign_in_user(identity, &**browser, stored.as_ref()).await.map(Some),
        None => Ok(None),
    }
}

/// Replaces a token that is about to expire. Returns `None` if a user has to sign in.
pub(super) async fn renew(
    config: &Config,
    grant: &Grant,
    nonces: Arc<NonceCache>,
) -> Result<Option<Grant>, Failure> {
    let mut auth_server = AuthServer::discover(config, None).await?;
    auth_server.bind_tokens(Some(grant), None, nonces)?;
    match &config.access {
        // Another authorization server must not see this refresh token.
        Access::AuthorizationCode { .. } if grant.issuer != auth_server.metadata.issuer => Ok(None),
        Access::AuthorizationCode { .. } => auth_server.refresh(grant).await,
        _ => auth_server.sign_in_client(Some(grant)).await.map(Some),
    }
}

impl<'a> AuthServer<'a> {
    async fn discover(config: &'a Config, challenge: Option<&str>) -> Result<AuthServer<'a>, Failure> {
        let transport = Arc::new(Transport::new(&config.server, config.private_addresses)?);
        let server = config.server.clone();
        let mut manager = AuthorizationManager::new_with_oauth_http_client(server, transport.clone())
            .await
            .map_err(|error| to_failure(&error))?;
        let credentials = InMemoryCredentialStore::new();
        manager.set_credential_store(credentials.clone());
        let resolved = manager.resolve_metadata_from_challenge(challenge).await;
        let metadata = resolved.map_err(|error| to_failure(&error))?.metadata;
        check_issuer(config.issuer.as_deref(), metadata.issuer.as_deref())?;
        manager.set_metadata(metadata.clone());
        let challenge = challenge.map(|it| WWWAuthenticateParams::parse(it, &config.server));
        let challenge_scopes = challenge.and_then(|it| it.scope).unwrap_or_default();
        let challenge_scopes = challenge_scopes.split_whitespace().map(str::to_owned).collect();
        Ok(AuthServer { config, manager, metadata, credentials, transport, challenge_scopes, key: None })
    }

    /// Binds tokens to a key, if the configuration, the stored grant or the server requires it. A renewed token keeps
    /// the key of the stored grant, because a refresh token may be bound to it too.
    fn bind_tokens(
        &mut self,
        stored: Option<&Grant>,
        challenge: Option<&str>,
        nonces: Arc<NonceCache>,
    ) -> Result<(), Failure> {
        let stored = stored.and_then(|grant| grant.dpop_key.as_deref());
        let server_requires = challenge.is_some_and(|it| asks_for_dpop(it) && !asks_for_bearer(it));
        if !self.config.dpop && !server_requires && stored.is_none() {
            return Ok(());
        }
        let algorithms = self.metadata.additional_fields.get("dpop_signing_alg_values_supported");
        let algorithms = algorithms.and_then(Value::as_array);
        if algorithms.is_some_and(|all| !all.iter().any(|it| it == dpop::ALGORITHM)) {
            let why = "the authorization server does not accept DPoP proofs that are signed with ES256";
            return Err(Failure::connect(sign_in_error(why)));
        }
        let endpoint =
            Url::parse(&self.metadata.token_endpoint).map_err(|error| to_failure(&error.into()))?;
        let key = stored.and_then(DpopKey::from_stored).map_or_else(DpopKey::generate, Ok)?;
        let key = self.key.insert(Arc::new(key)).clone();
        self.transport.sign_token_requests(TokenProofs { endpoint, key, nonces });
        Ok(())
    }

    /// Refreshes a grant. Returns `None` if the refresh token is no longer valid.
    async fn refresh(&mut self, grant: &Grant) -> Result<Option<Grant>, Failure> {
        let client = client(&grant.client_id, grant.redirect_uri.as_deref(), grant.client_secret.as_deref());
        self.manager.configure_client(client.clone()).map_err(|error| to_failure(&error))?;
        let stored = to_rmcp(grant).map_err(|_| missing_token())?;
        self.credentials.save(stored).await.map_err(|error| to_failure(&error))?;
        match self.manager.refresh_token().await {
            Ok(_) => self.read_grant(client).await.map(Some),
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => Ok(None),
            Err(error) => Err(to_failure(&error)),
        }
    }

    /// Sends the user to the authorization server and exchanges the code for a token.
    async fn sign_in_user(
        mut self,
        identity: &Identity,
        browser: &dyn Browser,
        stored: Option<&Grant>,
    ) -> Result<Grant, Failure> {
        let scopes = self.scopes(stored).await;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = self.client(identity, &browser.redirect_uri(), stored, &scopes).await?;
        self.manager.configure_client(client.clone()).map_err(|error| to_failure(&error))?;
        let page = self.manager.get_authorization_url(&scopes).await.map_err(|error| to_failure(&error))?;
        let mut page = Url::parse(&page).map_err(|error| to_failure(&error.into()))?;
        if let Some(key) = &self.key {
            // Binds the authorization code to the key too.
            page.query_pairs_mut().append_pair("dpop_jkt", key.thumbprint());
        }
        let redirect = browser.visit(page).await.map_err(|why| Failure::connect(sign_in_error(&why)))?;
        let AuthorizationCallback { code, csrf_token, issuer, .. } = callback(&redirect)?;
        self.manager
            .exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref())
            .await
            .map_err(|error| to_failure(&error))?;
        self.read_grant(client).await
    }

    /// Returns the client to act as: the configured one, the one of the stored grant, our metadata document, or a
    /// newly registered one.
    async fn client(
        &mut self,
        identity: &Identity,
        redirect_uri: &str,
        stored: Option<&Grant>,
        scopes: &[&str],
    ) -> Result<OAuthClientConfig, Failure> {
        let (name, document) = match identity {
            Identity::Registered { id, secret } => {
                return Ok(client(id, Some(redirect_uri), secret.as_ref().map(Secret::reveal)));
            }
            Identity::Automatic { name, document } => (name, document),
        };
        if let Some(before) = stored.filter(|before| before.redirect_uri.as_deref() == Some(redirect_uri)) {
            return Ok(client(&before.client_id, Some(redirect_uri), before.client_secret.as_deref()));
        }
        let documents = self.metadata.additional_fields.get("client_id_metadata_document_supported");
        if let (Some(document), Some(Value::Bool(true))) = (document, documents) {
            return Ok(client(document.as_str(), Some(redirect_uri), None));
        }
        let registered = self.manager.register_client(name, redirect_uri, scopes).await;
        registered.map_err(|error| to_failure(&error))
    }

    /// Signs in without a user.
    async fn sign_in_client(self, stored: Option<&Grant>) -> Result<Grant, Failure> {
        let scopes = self.scopes(stored).await;
        let resource = Some(self.config.server.to_string());
        let (id, request) = match &self.config.access {
            Access::AuthorizationCode { .. } => return Err(Failure::connect("a user has to sign in")),
            Access::WorkloadIdentity { .. } | Access::Enterprise { .. } => {
                return self.sign_in_with_assertion(scopes).await;
            }
            Access::Secret { id, secret } => {
                let client_secret = secret.reveal().to_owned();
                (
                    id,
                    ClientCredentialsConfig::ClientSecret {
                        client_id: id.clone(),
                        client_secret,
                        scopes,
                        resource,
                    },
                )
            }
            Access::Key { id, pem, algorithm } => {
                let request = ClientCredentialsConfig::PrivateKeyJwt {
                    client_id: id.clone(),
                    signing_key: pem.reveal().as_bytes().to_vec(),
                    signing_algorithm: algorithm.to_rmcp(),
                    token_endpoint_audience: None,
                    scopes,
                    resource,
                };
                (id, request)
            }
        };
        let client = client(id, None, None);
        let mut manager = self.manager;
        manager.validate_client_credentials_metadata(&request).map_err(|error| to_failure(&error))?;
        manager.configure_client_credentials(&request).map_err(|error| to_failure(&error))?;
        // This future of rmcp is not `Send`, so it runs on a blocking thread.
        let exchange =
            move || Handle::current().block_on(manager.exchange_client_credentials(&request)).map(drop);
        let exchanged = spawn_blocking(exchange).await.map_err(|_| missing_token())?;
        exchanged.map_err(|error| to_failure(&error))?;
        read_grant(&self.credentials, self.metadata.issuer, self.key, client).await
    }

    async fn read_grant(&self, client: OAuthClientConfig) -> Result<Grant, Failure> {
        read_grant(&self.credentials, self.metadata.issuer.clone(), self.key.clone(), client).await
    }

    /// Returns the scopes to request: those already granted, plus the configured ones with those of the challenge, or
    /// else those that the server names.
    async fn scopes(&self, stored: Option<&Grant>) -> Vec<String> {
        let mut scopes = stored.map(|grant| grant.scopes.clone()).unwrap_or_default();
        let wanted = if self.config.scopes.is_empty() {
            self.manager.select_initial_scopes(&[]).await
        } else {
            [&self.config.scopes[..], &self.challenge_scopes].concat()
        };
        for scope in wanted {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }
}

/// Checks that the discovered authorization server is the configured one, if one is configured.
fn check_issuer(configured: Option<&str>, discovered: Option<&str>) -> Result<(), Failure> {
    let Some(configured) = configured else { return Ok(()) };
    let discovered = discovered.unwrap_or("without an issuer");
    if configured.trim_end_matches('/') == discovered.trim_end_matches('/') {
        return Ok(());
    }
    let why = format!(
        "the server uses the authorization server `{discovered}`, but the configured issuer is `{configured}`"
    );
    Err(Failure::connect(sign_in_error(&why)))
}

/// Reads the authorization response from the URL that the browser was redirected to.
fn callback(redirect: &Url) -> Result<AuthorizationCallback, Failure> {
    let parameter = |key: &str| redirect.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value);
    if let Some(error) = parameter("error") {
        let why = parameter("error_description").map_or(error.to_string(), |why| format!("{error}: {why}"));
        return Err(Failure::connect(sign_in_error(&why)));
    }
    AuthorizationCallback::from_redirect_url(redirect.as_str()).map_err(|error| to_failure(&error))
}

pub(super) fn to_failure(error: &AuthError) -> Failure {
    Failure::connect(sign_in_error(&error.to_string()))
}

pub(super) fn sign_in_error(why: &str) -> String {
    format!("could not sign in: {why}")
}
