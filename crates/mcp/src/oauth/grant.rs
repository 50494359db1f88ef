//! Builds a [`Grant`] from the response of a token endpoint, and converts it for rmcp.

use super::{
    Grant,
    dpop::DpopKey,
    flow::{AuthServer, sign_in_error, to_failure},
};
use crate::Failure;
use rmcp::transport::auth::{CredentialStore, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials};
use serde_json::{Map, Value, json};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Redirect URI for clients without one. rmcp requires a value, but refresh and client credentials do not use it.
const UNUSED_REDIRECT_URI: &str = "http://localhost/";

impl AuthServer<'_> {
    /// Builds a grant from the response of the token endpoint.
    pub(super) fn grant_from_response(
        &self,
        client_id: &str,
        scopes: Vec<String>,
        response: Map<String, Value>,
    ) -> Result<Grant, Failure> {
        let granted = response.get("scope").and_then(Value::as_str);
        let granted = granted.map(|it| it.split_whitespace().map(str::to_owned).collect());
        let grant = Grant {
            issuer: self.metadata.issuer.clone(),
            client_id: client_id.to_owned(),
            client_secret: None,
            redirect_uri: None,
            scopes: granted.unwrap_or(scopes),
            received_at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            dpop_key: None,
            response,
        };
        grant.access_token().ok_or_else(missing_token)?;
        bind_grant(grant, self.key.as_deref())
    }
}

/// Builds a grant from the token response and the client it was issued to.
pub(super) async fn read_grant(
    credentials: &InMemoryCredentialStore,
    issuer: Option<String>,
    key: Option<Arc<DpopKey>>,
    client: OAuthClientConfig,
) -> Result<Grant, Failure> {
    let stored = credentials.load().await.map_err(|error| to_failure(&error))?.ok_or_else(missing_token)?;
    let response = serde_json::to_value(&stored.token_response).map_err(|_| missing_token())?;
    let Value::Object(response) = response else { return Err(missing_token()) };
    let grant = Grant {
        issuer,
        client_id: client.client_id,
        client_secret: client.client_secret,
        redirect_uri: (client.redirect_uri != UNUSED_REDIRECT_URI).then_some(client.redirect_uri),
        scopes: stored.granted_scopes,
        received_at: stored.token_received_at.unwrap_or_default(),
        dpop_key: None,
        response,
    };
    bind_grant(grant, key.as_deref())
}

/// Adds the key to a grant whose token is bound to it. Rejects a token that is not bound to the key.
fn bind_grant(grant: Grant, key: Option<&DpopKey>) -> Result<Grant, Failure> {
    let is_bound = grant.token_type().eq_ignore_ascii_case("DPoP");
    match key {
        Some(key) if is_bound => Ok(Grant { dpop_key: Some(key.stored().to_owned()), ..grant }),
        Some(_) => {
            let why = "the authorization server issued a token that is not bound to our key (DPoP)";
            Err(Failure::connect(sign_in_error(why)))
        }
        None => Ok(grant),
    }
}

pub(super) fn client(id: &str, redirect_uri: Option<&str>, secret: Option<&str>) -> OAuthClientConfig {
    let client = OAuthClientConfig::new(id, redirect_uri.unwrap_or(UNUSED_REDIRECT_URI));
    match secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    }
}

pub(super) fn to_rmcp(grant: &Grant) -> Result<StoredCredentials, serde_json::Error> {
    serde_json::from_value(json!({
        "client_id": grant.client_id,
        "token_response": grant.response,
        "granted_scopes": grant.scopes,
        "token_received_at": grant.received_at,
        "issuer": grant.issuer,
    }))
}

pub(super) fn missing_token() -> Failure {
    Failure::connect(sign_in_error("the authorization server's response contains no token"))
}
