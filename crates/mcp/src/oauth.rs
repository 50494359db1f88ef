//! OAuth 2.1 sign-in to servers, as MCP specifies it, built on rmcp's implementation.
//!
//! A link knows only an [`Authorizer`]: it asks for a token before each request and reports each 401 or 403.
//! [`OAuth`] implements it. It refreshes tokens, requests more scopes when the server asks for them, and sends the
//! user to the authorization server through a [`Browser`], if it has one. Requests that are rejected at the same time
//! share one attempt. If the request that drives an attempt is dropped, the next one continues it.

mod assertion;
mod authorizer;
mod config;
mod dpop;
mod flow;
mod grant;
mod store;
mod transport;

use crate::Failure;
pub(crate) use authorizer::challenge;
pub use authorizer::{AccessToken, Authorizer, AuthorizerFuture, RejectedRequest};
pub use config::{
    Access, Algorithm, Browser, Config, Identity, IdentityProvider, Secret, TokenSource, Visit,
};
use dpop::{DpopKey, NonceCache, USE_DPOP_NONCE};
use flow::Start;
use futures_util::future::{FutureExt, Shared};
use rmcp::transport::auth::WWWAuthenticateParams;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
pub use store::{FileStore, Grant, MemoryStore, TokenStore};
use tokio::{task::spawn_blocking, time::Instant};

/// A token that expires within this time is refreshed before use.
const REFRESH_MARGIN: Duration = Duration::from_secs(30);

/// Time after a failed refresh in which the token is not refreshed before use again.
const REFRESH_PAUSE: Duration = Duration::from_secs(10);

/// Age after which an unfinished attempt is abandoned in favour of a new one.
const ATTEMPT_MAX_AGE: Duration = Duration::from_secs(300);

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
    /// Time of the last failed refresh.
    refresh_failed: Mutex<Option<Instant>>,
    /// Nonces of the MCP server.
    server_nonces: Arc<NonceCache>,
    /// Nonces of the authorization server.
    issuer_nonces: Arc<NonceCache>,
}

/// Cached content of the token store.
#[derive(Clone, Default)]
enum CachedGrant {
    #[default]
    Unread,
    Read(Option<Arc<IssuedToken>>),
}

/// A grant and its token, ready to be sent.
struct IssuedToken {
    grant: Grant,
    token: Option<AccessToken>,
}

/// The most recent attempt.
struct RunningAttempt {
    since: Instant,
    attempt: Shared<TokenAttempt>,
}

/// An attempt to get a token. `None` means that a user has to sign in.
type TokenAttempt = Pin<Box<dyn Future<Output = Result<Option<Arc<IssuedToken>>, Failure>> + Send>>;

impl OAuth {
    /// Creates an authorizer that signs in as `config` says and saves grants in `store`.
    pub fn new(config: Config, store: Arc<dyn TokenStore>) -> OAuth {
        let account = Account {
            config,
            store,
            cached: Mutex::default(),
            refresh_failed: Mutex::default(),
            server_nonces: Arc::default(),
            issuer_nonces: Arc::default(),
        };
        OAuth { account: Arc::new(account), running: Arc::default() }
    }

    /// Signs in now, even if a grant is stored. `challenge` is the `WWW-Authenticate` header of a rejected request.
    pub async fn login(&self, challenge: Option<String>) -> Result<(), Failure> {
        let nonces = self.account.issuer_nonces.clone();
        let start = Start { stored: None, challenge, renewable: false, nonces };
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

    async fn current_token(&self) -> Result<Option<AccessToken>, Failure> {
        let account = &self.account;
        let Some(issued) = account.issued_token().await? else { return Ok(None) };
        // A bearer token that was issued before the configuration required a bound one must not be sent.
        let is_acceptable = !account.config.dpop || issued.grant.dpop_key.is_some();
        if is_acceptable && (!issued.grant.expires_within(REFRESH_MARGIN) || account.is_refresh_paused()) {
            return Ok(issued.to_send());
        }
        let old = issued.clone();
        let renewed = self.attempt(|account| Box::pin(account.renew(old))).await;
        *lock(&account.refresh_failed) = renewed.is_err().then(Instant::now);
        // If the refresh failed, the old token may still be valid. Let the server decide.
        let current = renewed.ok().flatten().or_else(|| is_acceptable.then_some(issued));
        Ok(current.and_then(|current| current.to_send()))
    }

    async fn replace_token(&self, rejected: RejectedRequest) -> Result<bool, Failure> {
        let challenge = rejected.challenge.as_deref().unwrap_or("Bearer");
        let parameters = WWWAuthenticateParams::parse(challenge, &self.account.config.server);
        let more = parameters.is_insufficient_scope();
        let asks_for_token = authorizer::asks_for_bearer(challenge) || authorizer::asks_for_dpop(challenge);
        if !asks_for_token || (rejected.status == 403 && !more) {
            return Ok(false);
        }
        // Another token would not help: its proofs would be the same.
        if let Some(error @ (USE_DPOP_NONCE | "invalid_dpop_proof")) = parameters.error.as_deref() {
            let what =
                format!("the server rejected our DPoP proof: {error}; check the clock of this machine");
            return Err(Failure::connect(what));
        }
        let granted = self.attempt(|account| Box::pin(account.obtain(rejected, more))).await?;
        Ok(granted.is_some())
    }
}

impl Authorizer for OAuth {
    fn token(&self) -> AuthorizerFuture<'_, Option<AccessToken>> {
        Box::pin(self.current_token())
    }

    fn on_rejected(&self, rejected: RejectedRequest) -> AuthorizerFuture<'_, bool> {
        Box::pin(self.replace_token(rejected))
    }
}

impl Account {
    /// Returns the cached token. Reads it from the store on first use.
    async fn issued_token(&self) -> Result<Option<Arc<IssuedToken>>, Failure> {
        let cached = lock(&self.cached).clone();
        match cached {
            CachedGrant::Read(issued) => Ok(issued),
            CachedGrant::Unread => self.read().await,
        }
    }

    /// Reads the grant from the store again, because another process may have replaced it.
    async fn read(&self) -> Result<Option<Arc<IssuedToken>>, Failure> {
        let store = self.store.clone();
        let grant = blocking(move || store.load()).await?;
        let issued = grant.map(|grant| Arc::new(IssuedToken::new(grant, &self.server_nonces)));
        self.cache(issued.clone());
        Ok(issued)
    }

    async fn renew(self: Arc<Account>, old: Arc<IssuedToken>) -> Result<Option<Arc<IssuedToken>>, Failure> {
        if let Some(other) = self.read().await?.filter(|other| other.grant != old.grant) {
            return Ok(Some(other));
        }
        match flow::renew(&self.config, &old.grant, self.issuer_nonces.clone()).await? {
            Some(grant) => self.save_grant(grant).await.map(Some),
            None => Ok(None),
        }
    }

    async fn obtain(
        self: Arc<Account>,
        rejected: RejectedRequest,
        more: bool,
    ) -> Result<Option<Arc<IssuedToken>>, Failure> {
        let stored = self.read().await?;
        let is_acceptable = |other: &&Arc<IssuedToken>| !self.config.dpop || other.grant.dpop_key.is_some();
        // Another request or process has saved a newer token, and the server has not rejected that one.
        let other = stored.as_ref().filter(is_acceptable).filter(|other| other.token != rejected.sent);
        if let Some(other) = other {
            return Ok(Some(other.clone()));
        }
        let stored = stored.map(|issued| issued.grant.clone());
        let nonces = self.issuer_nonces.clone();
        let start = Start { stored, challenge: rejected.challenge, renewable: !more, nonces };
        match flow::obtain(&self.config, start).await? {
            Some(grant) => self.save_grant(grant).await.map(Some),
            None => Ok(None),
        }
    }

    async fn save_grant(&self, grant: Grant) -> Result<Arc<IssuedToken>, Failure> {
        let (store, saved) = (self.store.clone(), grant.clone());
        blocking(move || store.save(&saved)).await?;
        let issued = Arc::new(IssuedToken::new(grant, &self.server_nonces));
        self.cache(Some(issued.clone()));
        Ok(issued)
    }

    fn cache(&self, issued: Option<Arc<IssuedToken>>) {
        *lock(&self.cached) = CachedGrant::Read(issued);
    }

    fn is_refresh_paused(&self) -> bool {
        lock(&self.refresh_failed).is_some_and(|failed| failed.elapsed() < REFRESH_PAUSE)
    }
}

impl IssuedToken {
    fn new(grant: Grant, nonces: &Arc<NonceCache>) -> IssuedToken {
        let key = grant.dpop_key.as_deref().map(DpopKey::from_stored);
        let token = grant.access_token().and_then(|token| match key {
            Some(key) => AccessToken::bound(token, Arc::new(key?), nonces.clone()),
            None => AccessToken::bearer(token),
        });
        IssuedToken { grant, token }
    }

    /// Returns the token to send with the next request.
    fn to_send(&self) -> Option<AccessToken> {
        self.token.clone().map(AccessToken::with_current_nonce)
    }
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

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("config", &self.account.config).finish_non_exhaustive()
    }
}
