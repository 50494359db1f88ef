//! One attempt to get a token: discovers the authorization server, identifies the client and requests the token.
//!
//! Every attempt starts with discovery and ends with a [`Grant`] that holds everything the next attempt needs. No
//! other state is kept, so a server may move to another authorization server. rmcp implements the protocol.

use super::{Access, Browser, Config, Grant, Identity, Secret, transport::Transport};
use crate::Failure;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig,
    CredentialStore, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{runtime::Handle, task::spawn_blocking};
use url::Url;

/// Redirect URI for clients without one. rmcp requires a value, but refresh and client credentials do not use it.
const UNUSED_REDIRECT_URI: &str = "http://localhost/";

/// Input of an attempt.
#[derive(Debug)]
pub(super) struct Start {
    /// Grant of the last attempt.
    pub(super) stored: Option<Grant>,
    /// `WWW-Authenticate` header of the rejected request.
    pub(super) challenge: Option<String>,
    /// Whether a refreshed token is enough. False if the server asks for more scopes.
    pub(super) renewable: bool,
}

/// The discovered authorization server.
struct AuthServer<'a> {
    config: &'a Config,
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    credentials: InMemoryCredentialStore,
}

/// Gets a grant. Returns `None` if a user has to sign in and there is no browser.
pub(super) async fn obtain(config: &Config, start: Start) -> Result<Option<Grant>, Failure> {
    let Start { stored, challenge, renewable } = start;
    let auth_server = AuthServer::discover(config, challenge.as_deref()).await?;
    // A grant from another authorization server is useless here.
    let stored = stored.filter(|grant| grant.issuer == auth_server.metadata.issuer);
    match &config.access {
        Access::Secret { .. } | Access::Key { .. } => {
            auth_server.sign_in_client(stored.as_ref()).await.map(Some)
        }
        Access::AuthorizationCode { identity, browser } => {
            let mut auth_server = auth_server;
            if renewable
                && let Some(grant) = stored.as_ref().filter(|grant| grant.refresh_token().is_some())
                && let Some(renewed) = auth_server.refresh(grant).await?
            {
                return Ok(Some(renewed));
            }
            match browser {
                Some(browser) => {
                    auth_server.sign_in_user(identity, &**browser, stored.as_ref()).await.map(Some)
                }
                None => Ok(None),
            }
        }
    }
}

/// Replaces a token that is about to expire. Returns `None` if a user has to sign in.
pub(super) async fn renew(config: &Config, grant: &Grant) -> Result<Option<Grant>, Failure> {
    let mut auth_server = AuthServer::discover(config, None).await?;
    match &config.access {
        Access::AuthorizationCode { .. } => auth_server.refresh(grant).await,
        _ => auth_server.sign_in_client(Some(grant)).await.map(Some),
    }
}

impl<'a> AuthServer<'a> {
    async fn discover(config: &'a Config, challenge: Option<&str>) -> Result<AuthServer<'a>, Failure> {
        let transport = Arc::new(Transport::new(&config.server, config.private_addresses)?);
        let server = config.server.clone();
        let mut manager = AuthorizationManager::new_with_oauth_http_client(server, transport)
            .await
            .map_err(|error| to_failure(&error))?;
        let credentials = InMemoryCredentialStore::new();
        manager.set_credential_store(credentials.clone());
        let resolved = manager.resolve_metadata_from_challenge(challenge).await;
        let metadata = resolved.map_err(|error| to_failure(&error))?.metadata;
        manager.set_metadata(metadata.clone());
        Ok(AuthServer { config, manager, metadata, credentials })
    }

    /// Refreshes a grant. Returns `None` if the refresh token is no longer valid.
    async fn refresh(&mut self, grant: &Grant) -> Result<Option<Grant>, Failure> {
        let client = client(&grant.client_id, grant.redirect_uri.as_deref(), grant.client_secret.as_deref());
        self.manager.configure_client(client.clone()).map_err(|error| to_failure(&error))?;
        let stored = to_rmcp(grant).map_err(|_| missing_token())?;
        self.credentials.save(stored).await.map_err(|error| to_failure(&error))?;
        match self.manager.refresh_token().await {
            Ok(_) => read_grant(&self.credentials, self.metadata.issuer.clone(), client).await.map(Some),
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
        let page = Url::parse(&page).map_err(|error| to_failure(&error.into()))?;
        let redirect = browser.visit(page).await.map_err(|why| Failure::connect(sign_in_error(&why)))?;
        let AuthorizationCallback { code, csrf_token, issuer, .. } = callback(&redirect)?;
        self.manager
            .exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref())
            .await
            .map_err(|error| to_failure(&error))?;
        read_grant(&self.credentials, self.metadata.issuer, client).await
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

    /// Signs in with client credentials, without a user.
    async fn sign_in_client(self, stored: Option<&Grant>) -> Result<Grant, Failure> {
        let scopes = self.scopes(stored).await;
        let resource = Some(self.config.server.to_string());
        let (id, request) = match &self.config.access {
            Access::AuthorizationCode { .. } => return Err(Failure::connect("a user has to sign in")),
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
        let AuthServer { mut manager, metadata, credentials, .. } = self;
        manager.validate_client_credentials_metadata(&request).map_err(|error| to_failure(&error))?;
        manager.configure_client_credentials(&request).map_err(|error| to_failure(&error))?;
        // This future of rmcp is not `Send`, so it runs on a blocking thread.
        let exchange =
            move || Handle::current().block_on(manager.exchange_client_credentials(&request)).map(drop);
        let exchanged = spawn_blocking(exchange).await.map_err(|_| missing_token())?;
        exchanged.map_err(|error| to_failure(&error))?;
        read_grant(&credentials, metadata.issuer, client).await
    }

    /// Returns the scopes to request: those already granted, plus those that the server or else the configuration
    /// asks for.
    async fn scopes(&self, stored: Option<&Grant>) -> Vec<String> {
        let configured: Vec<&str> = self.config.scopes.iter().map(String::as_str).collect();
        let had = stored.map(|grant| grant.scopes.clone()).unwrap_or_default();
        let wanted = self.manager.select_initial_scopes(&configured).await;
        let mut scopes = had;
        for scope in wanted {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }
}

/// Builds a grant from the token response and the client it was issued to.
async fn read_grant(
    credentials: &InMemoryCredentialStore,
    issuer: Option<String>,
    client: OAuthClientConfig,
) -> Result<Grant, Failure> {
    let stored = credentials.load().await.map_err(|error| to_failure(&error))?.ok_or_else(missing_token)?;
    let response = serde_json::to_value(&stored.token_response).map_err(|_| missing_token())?;
    let Value::Object(response) = response else { return Err(missing_token()) };
    Ok(Grant {
        issuer,
        client_id: client.client_id,
        client_secret: client.client_secret,
        redirect_uri: (client.redirect_uri != UNUSED_REDIRECT_URI).then_some(client.redirect_uri),
        scopes: stored.granted_scopes,
        received_at: stored.token_received_at.unwrap_or_default(),
        response,
    })
}

fn client(id: &str, redirect_uri: Option<&str>, secret: Option<&str>) -> OAuthClientConfig {
    let client = OAuthClientConfig::new(id, redirect_uri.unwrap_or(UNUSED_REDIRECT_URI));
    match secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    }
}

fn to_rmcp(grant: &Grant) -> Result<StoredCredentials, serde_json::Error> {
    serde_json::from_value(json!({
        "client_id": grant.client_id,
        "token_response": grant.response,
        "granted_scopes": grant.scopes,
        "token_received_at": grant.received_at,
        "issuer": grant.issuer,
    }))
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

fn to_failure(error: &AuthError) -> Failure {
    Failure::connect(sign_in_error(&error.to_string()))
}

fn sign_in_error(why: &str) -> String {
    format!("could not sign in: {why}")
}

fn missing_token() -> Failure {
    Failure::connect(sign_in_error("the authorization server's response contains no token"))
}
