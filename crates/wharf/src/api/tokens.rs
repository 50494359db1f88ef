//! Authentication and authorization by bearer token. Only hashes of the tokens are kept in memory.

mod token_file;

use super::problem::Problem;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use std::sync::Arc;
pub(crate) use token_file::{read, read_or_create_token};
use wharf_config::Role;

/// Minimum length of a token.
pub(crate) const MIN_TOKEN_LENGTH: usize = 16;

/// An authenticated principal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Name of its token in wharf.toml.
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
}

/// All valid tokens.
pub(crate) struct Tokens {
    tokens: Vec<KnownToken>,
    /// The principal of every request, if no token is required.
    anonymous: Option<Arc<Principal>>,
}

struct KnownToken {
    hash: [u8; 32],
    principal: Arc<Principal>,
}

impl Principal {
    fn new(name: &str, role: Role) -> Arc<Principal> {
        Arc::new(Principal { name: name.into(), role })
    }

    /// Checks that the principal has at least this role.
    pub(super) fn require_role(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let (name, has, needs) = (&self.name, self.role.as_str(), role.as_str());
        Err(Problem::new(StatusCode::FORBIDDEN, format!("this operation needs the role `{needs}`"))
            .hint(format!("the token `{name}` has the role `{has}`; wharf.toml assigns roles to tokens")))
    }
}

impl Tokens {
    /// Requires no token; every request has the admin role.
    pub(crate) fn open() -> Tokens {
        Tokens { tokens: Vec::new(), anonymous: Some(Principal::new("anybody", Role::Admin)) }
    }

    /// Accepts the operator's token, with the admin role.
    pub(crate) fn for_operator(token: &str) -> Tokens {
        let mut tokens = Tokens { tokens: Vec::new(), anonymous: None };
        tokens
            .tokens
            .push(KnownToken { hash: hash(token), principal: Principal::new("operator", Role::Admin) });
        tokens
    }

    /// Adds a token. Two principals must not share one.
    pub(crate) fn add(&mut self, name: &str, role: Role, token: &str) -> Result<(), String> {
        let hash = hash(token);
        if let Some(other) = self.tokens.iter().find(|it| it.hash == hash) {
            let other = &other.principal.name;
            return Err(format!(
                "the tokens of `{name}` and `{other}` are the same\nhelp: give each its own"
            ));
        }
        self.tokens.push(KnownToken { hash, principal: Principal::new(name, role) });
        Ok(())
    }

    /// Authenticates a request. Compares all hashes, each in constant time, so that timing reveals nothing about a
    /// token.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let first = shown.next();
        if shown.next().is_some() {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "a request may have at most one `Authorization` header",
            ));
        }
        if let Some(anonymous) = &self.anonymous {
            return Ok(anonymous.clone());
        }
        let shown = first.and_then(bearer).map(hash).ok_or_else(Problem::unauthorized)?;
        let found =
            self.tokens.iter().fold(None, |found, key| match equals_constant_time(&key.hash, &shown) {
                true => Some(&key.principal),
                false => found,
            });
        found.cloned().ok_or_else(Problem::unauthorized)
    }
}

fn equals_constant_time(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()?.strip_prefix("Bearer ")
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_identifies_its_principal() {
        let mut tokens = Tokens::for_operator("the-operators-own-token");
        tokens.add("ci", Role::Caller, "another-token-of-16").expect("a token of its own");
        assert!(tokens.add("cd", Role::Admin, "another-token-of-16").is_err());
        for (shown, expected) in [
            (&["Bearer the-operators-own-token"][..], "operator admin"),
            (&["Bearer another-token-of-16"], "ci caller"),
            (&["Bearer another-token-of-1"], "401"),
            (&["bearer another-token-of-16"], "401"),
            (&["Bearer "], "401"),
            (&[], "401"),
            (&["Bearer another-token-of-16", "Bearer another-token-of-16"], "400"),
        ] {
            let headers = shown.iter().map(|it| (header::AUTHORIZATION, HeaderValue::from_static(it)));
            let found = match tokens.admit(&headers.collect()) {
                Ok(it) => format!("{} {}", it.name, it.role.as_str()),
                Err(problem) => problem.status().as_str().to_owned(),
            };
            assert_eq!(found, expected, "{shown:?}");
        }
    }
}
