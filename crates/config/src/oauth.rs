//! Settings for the sign-in to a remote server: `auth:` of an entry.

use crate::{keywords::keywords, masked_string::MaskedString};
use std::path::PathBuf;
use url::Url;

/// Sign-in settings of a remote server.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuthSettings {
    /// How to get a token.
    pub grant: OAuthGrant,
    /// Scopes to request. If empty, those that the server names.
    pub scopes: Vec<String>,
    /// Issuer identifier of the only authorization server to use.
    pub issuer: Option<String>,
    /// Whether to accept only tokens that are bound to a key (DPoP).
    pub dpop: bool,
}

/// A way to get a token, with its credentials.
#[derive(Clone, Debug, PartialEq)]
pub enum OAuthGrant {
    /// A user signs in with `wharf login`.
    AuthorizationCode {
        /// Client id. Without it, wharf registers itself.
        client_id: Option<MaskedString>,
        /// Client secret, if the client has one.
        client_secret: Option<MaskedString>,
    },
    /// wharf signs in as itself.
    ClientCredentials {
        /// Client id.
        client_id: MaskedString,
        /// Secret or private key of the client.
        credential: ClientCredential,
    },
    /// wharf presents a token that its platform issued to it.
    WorkloadIdentity {
        /// Client id, if the authorization server requires one.
        client_id: Option<MaskedString>,
        /// The platform's token.
        token: TokenOrigin,
    },
    /// wharf presents a user's ID token to the company's identity provider.
    Enterprise {
        /// Client id at the authorization server.
        client_id: MaskedString,
        /// Client secret at the authorization server, if the client has one.
        client_secret: Option<MaskedString>,
        /// The user's ID token.
        id_token: TokenOrigin,
        /// The company's identity provider.
        idp: Box<IdpSettings>,
    },
}

/// Credential of a client that signs in as itself.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientCredential {
    /// A client secret.
    Secret(MaskedString),
    /// A private key in PEM, and its algorithm.
    PrivateKey(MaskedString, SigningAlgorithm),
}

/// Origin of a token.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenOrigin {
    /// The entry contains the token, usually as a variable.
    Text(MaskedString),
    /// A file that is read for each sign-in.
    File(PathBuf),
}

/// Token endpoint of an identity provider, and the client there.
#[derive(Clone, Debug, PartialEq)]
pub struct IdpSettings {
    /// URL of the token endpoint.
    pub token_endpoint: Url,
    /// Client id, if the identity provider requires one.
    pub client_id: Option<MaskedString>,
    /// Client secret, if the client has one.
    pub client_secret: Option<MaskedString>,
}

/// Values of `auth.grant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "OAuthGrant describes the variants")]
pub enum GrantType {
    AuthorizationCode,
    ClientCredentials,
    WorkloadIdentity,
    Enterprise,
}

/// Signing algorithm of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the names of RFC 7518")]
pub enum SigningAlgorithm {
    Es256,
    Es384,
    Rs256,
    Rs384,
    Rs512,
}

keywords!(GrantType {
    AuthorizationCode = "authorization_code",
    ClientCredentials = "client_credentials",
    WorkloadIdentity = "workload_identity",
    Enterprise = "enterprise",
});
keywords!(SigningAlgorithm {
    Es256 = "ES256",
    Es384 = "ES384",
    Rs256 = "RS256",
    Rs384 = "RS384",
    Rs512 = "RS512",
});

impl GrantType {
    /// Returns the keys of `auth` that only some grants use, and that this one uses.
    pub(crate) fn used_keys(self) -> &'static [&'static str] {
        match self {
            GrantType::AuthorizationCode => &["client_id", "client_secret"],
            GrantType::ClientCredentials => {
                &["client_id", "client_secret", "private_key", "signing_algorithm"]
            }
            GrantType::WorkloadIdentity => &["client_id", "token", "token_file"],
            GrantType::Enterprise => &["client_id", "client_secret", "id_token", "id_token_file", "idp"],
        }
    }
}

impl OAuthGrant {
    /// Returns the type of the grant.
    pub fn grant_type(&self) -> GrantType {
        match self {
            OAuthGrant::AuthorizationCode { .. } => GrantType::AuthorizationCode,
            OAuthGrant::ClientCredentials { .. } => GrantType::ClientCredentials,
            OAuthGrant::WorkloadIdentity { .. } => GrantType::WorkloadIdentity,
            OAuthGrant::Enterprise { .. } => GrantType::Enterprise,
        }
    }

    /// Returns the client id at the authorization server.
    pub fn client_id(&self) -> Option<&MaskedString> {
        match self {
            OAuthGrant::AuthorizationCode { client_id, .. }
            | OAuthGrant::WorkloadIdentity { client_id, .. } => client_id.as_ref(),
            OAuthGrant::ClientCredentials { client_id, .. } | OAuthGrant::Enterprise { client_id, .. } => {
                Some(client_id)
            }
        }
    }

    /// Returns the file that a token is read from.
    pub fn token_file(&self) -> Option<&PathBuf> {
        match self {
            OAuthGrant::WorkloadIdentity { token: TokenOrigin::File(path), .. }
            | OAuthGrant::Enterprise { id_token: TokenOrigin::File(path), .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the secrets, for redaction.
    pub fn secrets(&self) -> Vec<&MaskedString> {
        match self {
            OAuthGrant::AuthorizationCode { client_secret, .. } => client_secret.iter().collect(),
            OAuthGrant::ClientCredentials { credential, .. } => match credential {
                ClientCredential::Secret(it) | ClientCredential::PrivateKey(it, _) => vec![it],
            },
            OAuthGrant::WorkloadIdentity { token, .. } => origin_text(token).into_iter().collect(),
            OAuthGrant::Enterprise { client_secret, id_token, idp, .. } => {
                let secrets = client_secret.iter().chain(idp.client_secret.iter());
                secrets.chain(origin_text(id_token)).collect()
            }
        }
    }
}

fn origin_text(token: &TokenOrigin) -> Option<&MaskedString> {
    match token {
        TokenOrigin::Text(text) => Some(text),
        TokenOrigin::File(_) => None,
    }
}
