//! Settings of a sign-in: which server, with which credentials.

use rmcp::transport::auth::JwtSigningAlgorithm;
use std::{fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc};
use url::Url;

/// Sign-in settings for one server.
#[derive(Clone, Debug)]
pub struct Config {
    /// URL of the MCP server.
    pub server: Url,
    /// Credentials to sign in with.
    pub access: Access,
    /// Scopes to request. If empty, those that the server names.
    pub scopes: Vec<String>,
    /// Whether to accept only tokens that are bound to a key of ours (DPoP, RFC 9449). A server that accepts nothing
    /// else gets such tokens in any case.
    pub dpop: bool,
    /// Issuer identifier of the only authorization server to use. If empty, the server may name any.
    pub issuer: Option<String>,
    /// Whether the authorization server may be in a private network although the MCP server is not. It must then be
    /// named by host name: a private IP literal is rejected all the same.
    pub private_addresses: bool,
}

/// Credentials to sign in with.
#[derive(Clone)]
pub enum Access {
    /// Authorization code flow: a user consents at the authorization server.
    AuthorizationCode {
        /// Client that acts for the user.
        identity: Identity,
        /// Opens pages for the user. Without it, only an existing grant can be used and refreshed.
        browser: Option<Arc<dyn Browser>>,
    },
    /// Client credentials flow with a client secret.
    Secret {
        /// Client id.
        id: String,
        /// Client secret.
        secret: Secret,
    },
    /// Client credentials flow with a signed JWT.
    Key {
        /// Client id.
        id: String,
        /// Private key, in PEM.
        pem: Secret,
        /// Signing algorithm of the key.
        algorithm: Algorithm,
    },
    /// Workload identity federation: exchanges a JWT that the platform issued to this workload (RFC 7523).
    WorkloadIdentity {
        /// Client id, if the authorization server requires one.
        id: Option<String>,
        /// The JWT of the workload, such as a Kubernetes service account token.
        token: TokenSource,
    },
    /// Enterprise-managed authorization: exchanges a user's ID token at the company's identity provider for an
    /// assertion (RFC 8693), and the assertion at the authorization server for a token (RFC 7523).
    Enterprise {
        /// Client id at the authorization server of the MCP server.
        id: String,
        /// Client secret at the authorization server of the MCP server, if the client has one.
        secret: Option<Secret>,
        /// The user's ID token.
        id_token: TokenSource,
        /// The company's identity provider.
        identity_provider: IdentityProvider,
    },
}

/// Token endpoint of an identity provider, and our client there.
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    /// URL of its token endpoint.
    pub token_endpoint: Url,
    /// Client id, if the identity provider requires one.
    pub id: Option<String>,
    /// Client secret, if the client has one.
    pub secret: Option<Secret>,
}

/// Origin of a token that the platform or the identity provider issued.
#[derive(Clone, Debug)]
pub enum TokenSource {
    /// The token itself.
    Text(Secret),
    /// A file that contains the token. It is read for each sign-in, because platforms replace such files.
    File(PathBuf),
}

/// Client that acts for a user.
#[derive(Clone, Debug)]
pub enum Identity {
    /// A client registered in advance.
    Registered {
        /// Client id.
        id: String,
        /// Client secret, if it has one.
        secret: Option<Secret>,
    },
    /// Identified by a metadata document if the authorization server supports it, otherwise registered dynamically.
    Automatic {
        /// Client name shown to users.
        name: String,
        /// URL of our client metadata document.
        document: Option<Url>,
    },
}

/// JWT signing algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the names of RFC 7518")]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Es256,
    Es384,
}

/// A string that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Opens pages in the user's browser.
pub trait Browser: Send + Sync {
    /// Returns the redirect URI of the authorization request.
    fn redirect_uri(&self) -> String;

    /// Opens a page of the authorization server. Returns the URL that the browser was redirected to, or why that did
    /// not happen.
    fn visit(&self, page: Url) -> Visit;
}

/// A pending visit of the browser.
pub type Visit = Pin<Box<dyn Future<Output = Result<Url, String>> + Send>>;

impl Algorithm {
    /// Returns the algorithm with this RFC 7518 name, such as `ES256`.
    pub fn named(name: &str) -> Option<Algorithm> {
        Some(match name {
            "RS256" => Algorithm::Rs256,
            "RS384" => Algorithm::Rs384,
            "RS512" => Algorithm::Rs512,
            "ES256" => Algorithm::Es256,
            "ES384" => Algorithm::Es384,
            _ => return None,
        })
    }

    pub(super) fn to_rmcp(self) -> JwtSigningAlgorithm {
        match self {
            Algorithm::Rs256 => JwtSigningAlgorithm::RS256,
            Algorithm::Rs384 => JwtSigningAlgorithm::RS384,
            Algorithm::Rs512 => JwtSigningAlgorithm::RS512,
            Algorithm::Es256 => JwtSigningAlgorithm::ES256,
            Algorithm::Es384 => JwtSigningAlgorithm::ES384,
        }
    }
}

impl Secret {
    /// Wraps a secret string.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::AuthorizationCode { identity, browser } => {
                let (identity, has_browser) = (identity, browser.is_some());
                f.debug_struct("AuthorizationCode")
                    .field("identity", identity)
                    .field("browser", &has_browser)
                    .finish()
            }
            Access::Secret { id, .. } => f.debug_struct("Secret").field("id", id).finish_non_exhaustive(),
            Access::Key { id, .. } => f.debug_struct("Key").field("id", id).finish_non_exhaustive(),
            Access::WorkloadIdentity { id, token } => {
                f.debug_struct("WorkloadIdentity").field("id", id).field("token", token).finish()
            }
            Access::Enterprise { id, secret, id_token, identity_provider } => f
                .debug_struct("Enterprise")
                .field("id", id)
                .field("secret", secret)
                .field("id_token", id_token)
                .field("identity_provider", identity_provider)
                .finish(),
        }
    }
}
