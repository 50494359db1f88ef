//! Signs in with the assertion of a third party: the platform that runs a workload, or the identity provider of a
//! company.
//!
//! Both end with the JWT bearer grant (RFC 7523). A rejected assertion is reported and not sent again.

use super::{
    Access, Grant, IdentityProvider, Secret, TokenSource,
    flow::{AuthServer, sign_in_error},
    transport::Transport,
};
use crate::Failure;
use ::http::{HeaderValue, Request, header};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Map, Value};
use std::{fs::File, io, io::Read, path::Path};
use tokio::task::spawn_blocking;
use url::form_urlencoded::{self, byte_serialize};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Scope that asks for a refresh token. These grants need none, and some servers reject it.
const OFFLINE_ACCESS: &str = "offline_access";

/// Maximum size of a file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// Maximum number of characters of a server's explanation that an error message quotes.
const MAX_QUOTED: usize = 300;

/// A client at a token endpoint.
struct TokenClient<'a> {
    id: Option<&'a str>,
    secret: Option<&'a Secret>,
    /// Whether to send the secret in the body instead of a header.
    secret_in_body: bool,
}

/// One request to a token endpoint.
struct TokenRequest<'a> {
    endpoint: &'a str,
    client: TokenClient<'a>,
    parameters: Vec<(&'static str, &'a str)>,
    /// The server, as an error message names it.
    server: &'static str,
}

impl AuthServer<'_> {
    /// Exchanges an assertion for a token.
    pub(super) async fn sign_in_with_assertion(&self, scopes: Vec<String>) -> Result<Grant, Failure> {
        let is_requested = |scope: &String| scope != OFFLINE_ACCESS || self.config.scopes.contains(scope);
        let scopes: Vec<String> = scopes.into_iter().filter(is_requested).collect();
        let scope = scopes.join(" ");
        match &self.config.access {
            Access::WorkloadIdentity { id, token } => {
                let assertion = token.read().await?;
                self.check_audience(assertion.reveal())?;
                let resource = self.config.server.to_string();
                let mut parameters = vec![("resource", resource.as_str())];
                parameters.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
                let client = self.client_of(id.as_deref(), None);
                let response = self.redeem(client, assertion.reveal(), parameters).await?;
                self.grant_from_response(id.as_deref().unwrap_or_default(), scopes, response)
            }
            Access::Enterprise { id, secret, id_token, identity_provider } => {
                let id_token = id_token.read().await?;
                let assertion = self.exchange_id_token(identity_provider, id_token.reveal(), &scope).await?;
                let client = self.client_of(Some(id), secret.as_ref());
                // The assertion already contains the resource and the scopes that the identity provider allows.
                let response = self.redeem(client, assertion.reveal(), Vec::new()).await?;
                self.grant_from_response(id, scopes, response)
            }
            _ => Err(Failure::connect(sign_in_error("this needs no assertion"))),
        }
    }

    /// Exchanges a user's ID token for an assertion that is meant for this authorization server.
    async fn exchange_id_token(
        &self,
        identity_provider: &IdentityProvider,
        id_token: &str,
        scope: &str,
    ) -> Result<Secret, Failure> {
        let IdentityProvider { token_endpoint, id, secret } = identity_provider;
        let issuer = self.metadata.issuer.as_deref();
        let issuer = issuer.ok_or_else(|| rejected("the authorization server does not name its issuer"))?;
        let resource = self.config.server.to_string();
        let mut parameters = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token_type", ID_TOKEN),
            ("subject_token", id_token),
            ("audience", issuer),
            ("resource", &resource),
        ];
        parameters.extend((!scope.is_empty()).then_some(("scope", scope)));
        let request = TokenRequest {
            endpoint: token_endpoint.as_str(),
            client: TokenClient { id: id.as_deref(), secret: secret.as_ref(), secret_in_body: false },
            parameters,
            server: "the identity provider",
        };
        // The configuration names the identity provider, so it may be in a private network.
        let transport = Transport::new(token_endpoint, true)?;
        let response = request.send(&transport).await?;
        let text = |key: &str| response.get(key).and_then(Value::as_str);
        if text("issued_token_type") != Some(ID_JAG) {
            return Err(rejected("the identity provider did not issue an ID-JAG"));
        }
        let assertion = text("access_token");
        assertion.map(Secret::new).ok_or_else(|| rejected("the identity provider issued no assertion"))
    }

    /// Exchanges an assertion at the authorization server.
    async fn redeem(
        &self,
        client: TokenClient<'_>,
        assertion: &str,
        mut parameters: Vec<(&'static str, &str)>,
    ) -> Result<Map<String, Value>, Failure> {
        parameters.extend([("grant_type", JWT_BEARER), ("assertion", assertion)]);
        let endpoint = self.metadata.token_endpoint.as_str();
        let request = TokenRequest { endpoint, client, parameters, server: "the authorization server" };
        request.send(&self.transport).await
    }

    fn client_of<'a>(&self, id: Option<&'a str>, secret: Option<&'a Secret>) -> TokenClient<'a> {
        let methods = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        let supports = |method: &str| {
            methods.and_then(Value::as_array).is_some_and(|all| all.iter().any(|it| it == method))
        };
        // A server that names no methods supports `client_secret_basic`.
        let secret_in_body = supports("client_secret_post") && !supports("client_secret_basic");
        TokenClient { id, secret, secret_in_body }
    }

    /// Checks that a workload's token is meant for this authorization server. Otherwise an MCP server could collect
    /// tokens for other services. A configured issuer makes the check unnecessary.
    fn check_audience(&self, token: &str) -> Result<(), Failure> {
        if self.config.issuer.is_some() {
            return Ok(());
        }
        let expected = [self.metadata.issuer.as_deref(), Some(self.metadata.token_endpoint.as_str())];
        let audience = audience(token).ok_or_else(|| rejected("the workload's token is not a JWT"))?;
        let is_expected = |audience: &str| {
            expected.iter().flatten().any(|it| it.trim_end_matches('/') == audience.trim_end_matches('/'))
        };
        if audience.iter().any(|it| is_expected(it)) {
            return Ok(());
        }
        let issuer = self.metadata.issuer.as_deref().unwrap_or(&self.metadata.token_endpoint);
        Err(rejected(&format!(
            "the workload's token is for `{}`, but the authorization server is `{issuer}`; request a token for this \
             audience, or configure the issuer",
            quote(&audience.join("`, `"))
        )))
    }
}

impl TokenRequest<'_> {
    async fn send(self, transport: &Transport) -> Result<Map<String, Value>, Failure> {
        let server = self.server;
        let response = transport.send(self.build()?, false).await;
        let response = response.map_err(|error| rejected(&format!("could not reach {server}: {error}")))?;
        let status = response.status();
        match serde_json::from_slice(response.body()) {
            Ok(Value::Object(body)) if status.is_success() => Ok(body),
            Ok(Value::Object(body)) => Err(rejected(&self.describe(&body))),
            _ => Err(rejected(&format!("{server} answered {status} without a JSON object"))),
        }
    }

    fn build(&self) -> Result<Request<Vec<u8>>, Failure> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(&self.parameters);
        let mut request = Request::post(self.endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        match (self.client.id, self.client.secret) {
            (Some(id), Some(secret)) if !self.client.secret_in_body => {
                request = request.header(header::AUTHORIZATION, basic(id, secret)?);
            }
            (id, secret) => {
                form.extend_pairs(id.map(|it| ("client_id", it)));
                form.extend_pairs(secret.map(|it| ("client_secret", it.reveal())));
            }
        }
        let request = request.body(form.finish().into_bytes());
        request.map_err(|_| rejected(&format!("the token endpoint of {} is not a URL", self.server)))
    }

    /// Describes an error response. Leaves out an explanation that repeats a token.
    fn describe(&self, body: &Map<String, Value>) -> String {
        let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
        let error = text("error").unwrap_or("unknown error");
        let said = match text("error_description") {
            Some(explanation) => format!("{error}: {explanation}"),
            None => error.to_owned(),
        };
        let is_secret = |name: &str| matches!(name, "assertion" | "subject_token");
        let repeats = self.parameters.iter().any(|(name, value)| is_secret(name) && said.contains(value));
        let said = if repeats { "unknown error" } else { said.as_str() };
        format!("{} rejected the request: {}", self.server, quote(said))
    }
}

impl TokenSource {
    async fn read(&self) -> Result<Secret, Failure> {
        match self {
            TokenSource::Text(secret) => Ok(secret.clone()),
            TokenSource::File(path) => {
                let (shown, path) = (path.display().to_string(), path.clone());
                let read = spawn_blocking(move || read_token(&path)).await;
                let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
                read.map_err(|error| rejected(&format!("could not read the token in `{shown}`: {error}")))
            }
        }
    }
}

fn read_token(path: &Path) -> io::Result<Secret> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TOKEN_BYTES).read_to_string(&mut text)?;
    match text.trim() {
        "" => Err(io::Error::other("it is empty")),
        token => Ok(Secret::new(token)),
    }
}

/// Returns the audience of a JWT, without verifying the JWT.
fn audience(token: &str) -> Option<Vec<String>> {
    let claims = token.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(match &claims["aud"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        one => one.as_str().map(str::to_owned).into_iter().collect(),
    })
}

/// Builds the header for HTTP Basic authentication of a client (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, Failure> {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret.reveal()));
    let header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
    let mut header = header.map_err(|_| rejected("the client secret cannot be sent"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Shortens a server's text and removes control characters, so that it can be part of a message.
fn quote(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(MAX_QUOTED).collect()
}

fn rejected(why: &str) -> Failure {
    Failure::connect(sign_in_error(why))
}
