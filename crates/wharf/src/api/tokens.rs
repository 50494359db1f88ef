//! Authentication and authorization by bearer token. Only hashes of the tokens are kept in memory. Tickets and sessions
//! of the console are in [`super::sign_in`].

mod token_file;

use super::problem::Problem;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
pub(crate) use token_file::{read, read_or_create_token};
use wharf_config::Role;

/// Minimum length of a token.
pub(crate) const MIN_TOKEN_LENGTH: usize = 16;

/// An authenticated principal.
#[derive(Debug)]
pub(crate) struct Principal {
    /// Name of its token in wharf.toml.
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    token_hash: TokenHash,
    /// When the token was last used, in microseconds since 1970; 0 if never.
    last_used: AtomicU64,
}

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenHash([u8; 32]);

/// All valid tokens.
pub(crate) struct Tokens {
    principals: Vec<Arc<Principal>>,
    /// The principal of every request, if no token is required.
    anonymous: Option<Arc<Principal>>,
}

/// The result of looking for a request's bearer credential among the tokens.
#[derive(Debug)]
pub(super) enum Admission {
    /// The gateway requires no token.
    Open(Arc<Principal>),
    Token(Arc<Principal>),
    /// The credential is no token. It may be a session or a ticket.
    Unknown(String),
}

impl Principal {
    fn new(name: &str, role: Role, token_hash: TokenHash) -> Arc<Principal> {
        Arc::new(Principal { name: name.into(), role, token_hash, last_used: AtomicU64::new(0) })
    }

    /// Notes that the token, or a session of it, is used now.
    pub(super) fn note_use(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        self.last_used.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns when the token was last used, if it ever was.
    pub(super) fn last_used(&self) -> Option<SystemTime> {
        let micros = self.last_used.load(Ordering::Relaxed);
        (micros > 0).then(|| UNIX_EPOCH + Duration::from_micros(micros))
    }

    /// The hash of the principal's token.
    pub(super) fn token_hash(&self) -> [u8; 32] {
        self.token_hash.0
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
        let anybody = Principal::new("anybody", Role::Admin, TokenHash([0; 32]));
        Tokens { principals: Vec::new(), anonymous: Some(anybody) }
    }

    /// Accepts the operator's token, with the admin role.
    pub(crate) fn for_operator(token: &str) -> Tokens {
        let operator = Principal::new("operator", Role::Admin, hash(token));
        Tokens { principals: vec![operator], anonymous: None }
    }

    /// Adds a token. Two principals must not share one.
    pub(crate) fn add(&mut self, name: &str, role: Role, token: &str) -> Result<(), String> {
        let hash = hash(token);
        if let Some(other) = self.principals.iter().find(|it| it.token_hash == hash) {
            let other = &other.name;
            return Err(format!(
                "the tokens of `{name}` and `{other}` are the same\nhelp: give each its own"
            ));
        }
        self.principals.push(Principal::new(name, role, hash));
        Ok(())
    }

    /// The principal of the operator's own token; `None` if no token is required.
    pub(super) fn operator(&self) -> Option<&Arc<Principal>> {
        self.principals.first()
    }

    /// All principals that have a token.
    pub(super) fn principals(&self) -> &[Arc<Principal>] {
        &self.principals
    }

    /// Finds a principal that has a token.
    pub(super) fn find(&self, is_meant: impl Fn(&Principal) -> bool) -> Option<Arc<Principal>> {
        self.principals.iter().find(|it| is_meant(it)).cloned()
    }

    /// Looks for the request's credential among the tokens. Compares all hashes, each in constant time, so that timing reveals nothing about a
    /// token.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<Admission, Problem> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let first = shown.next();
        if shown.next().is_some() {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "a request may have at most one `Authorization` header",
            ));
        }
        if let Some(anonymous) = &self.anonymous {
            return Ok(Admission::Open(anonymous.clone()));
        }
        let secret = first.and_then(bearer).ok_or_else(Problem::unauthorized)?;
        let shown = hash(secret);
        let found = self.principals.iter().fold(None, |found, principal| {
            match equals_constant_time(&principal.token_hash.0, &shown.0) {
                true => Some(principal),
                false => found,
            }
        });
        Ok(match found {
            Some(principal) => {
                principal.note_use();
                Admission::Token(principal.clone())
            }
            None => Admission::Unknown(secret.to_owned()),
        })
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

fn equals_constant_time(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()?.strip_prefix("Bearer ")
}

fn hash(token: &str) -> TokenHash {
    TokenHash(Sha256::digest(token).into())
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
            (&["Bearer another-token-of-1"], "unknown"),
            (&["bearer another-token-of-16"], "401"),
            (&["Bearer "], "unknown"),
            (&[], "401"),
            (&["Bearer another-token-of-16", "Bearer another-token-of-16"], "400"),
        ] {
            let headers = shown.iter().map(|it| (header::AUTHORIZATION, HeaderValue::from_static(it)));
            let found = match tokens.admit(&headers.collect()) {
                Ok(Admission::Token(it) | Admission::Open(it)) => format!("{} {}", it.name, it.role.as_str()),
                Ok(Admission::Unknown(_)) => "unknown".to_owned(),
                Err(problem) => problem.status().as_str().to_owned(),
            };
            assert_eq!(found, expected, "{shown:?}");
        }
    }
}
