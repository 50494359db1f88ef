//! Authentication and authorization by bearer token. Only hashes of the tokens are kept in memory.

mod token_file;

use super::problem::Problem;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use std::sync::Arc;
pub(crate) use token_file::{make_or_read, read};
use wharf_config::Role;

/// Minimum length of a token.
pub(crate) const SHORTEST: usize = 16;

/// An authenticated principal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Name of its token in wharf.toml.
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
}

/// All valid tokens.
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// The principal of every request, if no token is required.
    anybody: Option<Arc<Principal>>,
}

struct Key {
    hash: [u8; 32],
    principal: Arc<Principal>,
}

impl Principal {
    fn new(name: &str, role: Role) -> Arc<Principal> {
        Arc::new(Principal { name: name.into(), role })
    }

    /// Checks that the principal has at least this role.
    pub(super) fn may(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let (name, has, needs) = (&self.name, self.role.as_str(), role.as_str());
        Err(Problem::new(StatusCode::FORBIDDEN, format!("this needs the role `{needs}`"))
            .hint(format!("the token `{name}` has the role `{has}`; wharf.toml says who may do what")))
    }
}

impl Keys {
    /// Requires no token; every request has the admin role.
    pub(crate) fn open() -> Keys {
        Keys { keys: Vec::new(), anybody: Some(Principal::new("anybody", Role::Admin)) }
    }

    /// Accepts the operator's token, with the admin role.
    pub(crate) fn of_operator(token: &str) -> Keys {
        let mut keys = Keys { keys: Vec::new(), anybody: None };
        keys.keys.push(Key { hash: hash(token), principal: Principal::new("operator", Role::Admin) });
        keys
    }

    /// Adds a token. Two principals must not share one.
    pub(crate) fn add(&mut self, name: &str, role: Role, token: &str) -> Result<(), String> {
        let hash = hash(token);
        if let Some(other) = self.keys.iter().find(|it| it.hash == hash) {
            let other = &other.principal.name;
            return Err(format!(
                "the tokens of `{name}` and `{other}` are the same\nhelp: give each its own"
            ));
        }
        self.keys.push(Key { hash, principal: Principal::new(name, role) });
        Ok(())
    }

    /// Authenticates a request. Compares all hashes, each in constant time, so that timing reveals nothing about a
    /// token.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let first = shown.next();
        if shown.next().is_some() {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "a request has at most one `Authorization`"));
        }
        if let Some(anybody) = &self.anybody {
            return Ok(anybody.clone());
        }
        let shown = first.and_then(bearer).map(hash).ok_or_else(Problem::unauthorized)?;
        let found = self.keys.iter().fold(None, |found, key| match same(&key.hash, &shown) {
            true => Some(&key.principal),
            false => found,
        });
        found.cloned().ok_or_else(Problem::unauthorized)
    }
}

fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
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
    fn a_token_is_somebody() {
        let mut keys = Keys::of_operator("the-operators-own-token");
        keys.add("ci", Role::Caller, "another-token-of-16").expect("a token of its own");
        assert!(keys.add("cd", Role::Admin, "another-token-of-16").is_err());
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
            let found = match keys.admit(&headers.collect()) {
                Ok(it) => format!("{} {}", it.name, it.role.as_str()),
                Err(problem) => problem.status().as_str().to_owned(),
            };
            assert_eq!(found, expected, "{shown:?}");
        }
    }
}
