//! OAuth 2.1 sign-in to servers, as MCP specifies it, built on rmcp's implementation.
//!
//! A link knows only an [`Authorizer`]: it asks for a token before each request and reports each 401 or 403.
//! [`OAuth`] implements it. It refreshes tokens, requests more scopes when the server asks for them, and sends the
//! user to the authorization server through a [`Browser`], if it has one. Requests that are rejected at the same time
//! share one attempt. If the request that drives an attempt is dropped, the next one continues it.

mod authorizer;
mod flow;
mod store;
mod transport;

use crate::Failure;
pub(crate) use authorizer::challenge;
pub use authorizer::{Authorizer, AuthorizerFuture, Bearer, RejectedRequest};
use flow::Start;
use futures_util::future::{FutureExt, Shared};
use rmcp::transport::auth::{JwtSigningAlgorithm, WWWAuthenticateParams};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
pub use store::{FileStore, Grant, MemoryStore, TokenStore};
use tokio::{task::spawn_blocking, time::Instant};
use url::Url;

/// A token that expires within this time is refreshed before use.
const REFRESH_MARGIN: Duration = Duration::from_secs(30);

/// Age after which an unfinished attempt is abandoned in favour of a new one.
const ATTEMPT_MAX_AGE: Duration = Duration::from_secs(300);

/// Sign-in settings for one server.
#[derive(Clone, Debug)]
pub struct Config {
    /// URL of the MCP server.
    pub server: Url,
    /// Credentials to sign in with.
    pub access: Access,
    /// Scopes to request if the server names none.
    pub scopes: Vec<String>,
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

/// Signs in to one server. Cheap to clone.
#[derive(Clone)]
pub struct OAuth {
    account: Arc<Account>,
    running: Arc<Mutex<Option<RunningAttempt>>>,
}

/// Settings, token store and cached grant of one server.
struct Account {
    config: Config,
    store: Arc<dyn TokenStore>,
    cached: Mutex<CachedGrant>,
}

/// Cached content of the token store.
#[derive(Clone, Default)]
enum CachedGrant {
    #[default]
    Unread,
    Read(Option<Arc<Grant>>),
}

/// The most recent attempt.
struct RunningAttempt {
    since: Instant,
    attempt: Shared<TokenAttempt>,
}

/// An attempt to get a token. `None` means that a user has to sign in.
type TokenAttempt = Pin<Box<dyn Future<Output = Result<Option<Arc<Grant>>, Failure>> + Send>>;

impl OAuth {
    /// Creates an authorizer that signs in as `config` says and saves grants in `store`.
    pub fn new(config: Config, store: Arc<dyn TokenStore>) -> OAuth {
        let account = Arc::new(Account { config, store, cached: Mutex::default() });
        OAuth { account, running: Arc::default() }
    }

    /// Signs in now, even if a grant is stored. `challenge` is the `WWW-Authenticate` header of a rejected request.
    pub async fn login(&self, challenge: Option<String>) -> Result<(), Failure> {
        let start = Start { stored: None, challenge, renewable: false };
        let granted = flow::obtain(&self.account.config, start).await?;
        let granted =
            granted.ok_or_else(|| Failure::connect("could not sign in: this needs a user and a browser"))?;
        self.account.save_grant(granted).await.map(drop)
    }

    /// Deletes the stored grant.
    pub async fn logout(&self) -> Result<(), Failure> {
        let store = self.account.store.clone();
        blocking(move || store.clear()).await?;
        self.account.cache(None);
        Ok(())
    }

    /// Joins the attempt in progress, or starts one.
    fn attempt(&self, begin: impl FnOnce(Arc<Account>) -> TokenAttempt) -> Shared<TokenAttempt> {
        let mut running = lock(&self.running);
        match &*running {
            Some(RunningAttempt { since, attempt })
                if attempt.peek().is_none() && since.elapsed() < ATTEMPT_MAX_AGE =>
            {
                attempt.clone()
            }
            _ => {
                let attempt = begin(self.account.clone()).shared();
                *running = Some(RunningAttempt { since: Instant::now(), attempt: attempt.clone() });
                attempt
            }
        }
    }

    async fn current_token(&self) -> Result<Option<Bearer>, Failure> {
        let Some(grant) = self.account.grant().await? else { return Ok(None) };
        if !grant.expires_within(REFRESH_MARGIN) {
            return Ok(bearer(&grant));
        }
        let old = grant.clone();
        let renewed = self.attempt(|account| Box::pin(account.renew(old))).await;
        // If the refresh failed, the old token may still be valid. Let the server decide.
        Ok(bearer(&renewed.ok().flatten().unwrap_or(grant)))
    }

    async fn replace_token(&self, rejected: RejectedRequest) -> Result<bool, Failure> {
        let challenge = rejected.challenge.as_deref().unwrap_or("Bearer");
        let more =
            WWWAuthenticateParams::parse(challenge, &self.account.config.server).is_insufficient_scope();
        if !authorizer::is_bearer(challenge) || (rejected.status == 403 && !more) {
            return Ok(false);
        }
        let granted = self.attempt(|account| Box::pin(account.obtain(rejected, more))).await?;
        Ok(granted.is_some())
    }
}

impl Authorizer for OAuth {
    fn token(&self) -> AuthorizerFuture<'_, Option<Bearer>> {
        Box::pin(self.current_token())
    }

    fn on_rejected(&self, rejected: RejectedRequest) -> AuthorizerFuture<'_, bool> {
        Box::pin(self.replace_token(rejected))
    }
}

impl Account {
    /// Returns the cached grant. Reads it from the store on first use.
    async fn grant(&self) -> Result<Option<Arc<Grant>>, Failure> {
        let cached = lock(&self.cached).clone();
        match cached {
            CachedGrant::Read(grant) => Ok(grant),
            CachedGrant::Unread => self.read().await,
        }
    }

    /// Reads the grant from the store again, because another process may have replaced it.
    async fn read(&self) -> Result<Option<Arc<Grant>>, Failure> {
        let store = self.store.clone();
        let grant = blocking(move || store.load()).await?.map(Arc::new);
        self.cache(grant.clone());
        Ok(grant)
    }

    async fn renew(self: Arc<Account>, old: Arc<Grant>) -> Result<Option<Arc<Grant>>, Failure> {
        if let Some(other) = self.read().await?.filter(|other| **other != *old) {
            return Ok(Some(other));
        }
        match flow::renew(&self.config, &old).await? {
            Some(grant) => self.save_grant(grant).await.map(Some),
            None => Ok(None),
        }
    }

    async fn obtain(
        self: Arc<Account>,
        rejected: RejectedRequest,
        more: bool,
    ) -> Result<Option<Arc<Grant>>, Failure> {
        let stored = self.read().await?;
        // Another request or process has saved a newer token, and the server has not rejected that one.
        if let Some(other) = stored.as_ref().filter(|other| bearer(other) != rejected.sent) {
            return Ok(Some(other.clone()));
        }
        let stored = stored.map(|grant| (*grant).clone());
        let start = Start { stored, challenge: rejected.challenge, renewable: !more };
        match flow::obtain(&self.config, start).await? {
            Some(grant) => self.save_grant(grant).await.map(Some),
            None => Ok(None),
        }
    }

    async fn save_grant(&self, grant: Grant) -> Result<Arc<Grant>, Failure> {
        let grant = Arc::new(grant);
        let (store, saved) = (self.store.clone(), grant.clone());
        blocking(move || store.save(&saved)).await?;
        self.cache(Some(grant.clone()));
        Ok(grant)
    }

    fn cache(&self, grant: Option<Arc<Grant>>) {
        *lock(&self.cached) = CachedGrant::Read(grant);
    }
}

fn bearer(grant: &Grant) -> Option<Bearer> {
    grant.access_token().and_then(Bearer::new)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let done = spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    done.map_err(|error| Failure::connect(format!("could not use the token store: {error}")))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values are replaced as a whole, so a panic cannot leave one half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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

    fn to_rmcp(self) -> JwtSigningAlgorithm {
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

    fn reveal(&self) -> &str {
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
        }
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("config", &self.account.config).finish_non_exhaustive()
    }
}
