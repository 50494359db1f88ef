//! Signing in to servers that want it: OAuth 2.1 as MCP uses it, on rmcp's implementation.
//!
//! A link only knows an [`Authorizer`], which it asks for a token before each request and tells about each refusal.
//! [`OAuth`] is the one that signs in: it renews tokens, asks for more rights when the server wants them, and sends a
//! person to the authorization server through a [`Browser`], if it has one. Requests that are refused at the same time
//! share one attempt, and one whose request has given up is taken further by the next.

mod authorizer;
mod flow;
mod store;
mod transport;

use crate::Failure;
pub use authorizer::{Authorizer, Authorizing, Bearer, Refusal};
pub(crate) use authorizer::{authorized, challenge, send};
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

/// A token that ends this soon is renewed first.
const MARGIN: Duration = Duration::from_secs(30);

/// An attempt that nobody has finished for this long is not taken further.
const STALE: Duration = Duration::from_secs(300);

/// How to sign in to one server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub server: Url,
    /// As whom.
    pub access: Access,
    /// The rights to ask for where the server does not say.
    pub scopes: Vec<String>,
    /// Whether the authorization server may be in a private network although the server is not. It then has to be
    /// known by a name: an address that is written out is refused all the same.
    pub private_addresses: bool,
}

/// As whom we sign in.
#[derive(Clone)]
pub enum Access {
    /// As a person, who agrees to it at the authorization server.
    Person {
        /// The client that acts for the person.
        identity: Identity,
        /// The way to the person; without one, only what was granted before can be used and renewed.
        browser: Option<Arc<dyn Browser>>,
    },
    /// As ourselves, by a secret.
    Secret {
        /// The client.
        id: String,
        /// Its secret.
        secret: Secret,
    },
    /// As ourselves, by a key.
    Key {
        /// The client.
        id: String,
        /// Its private key, in PEM.
        pem: Secret,
        /// What the key signs with.
        algorithm: Algorithm,
    },
}

/// The client that acts for a person.
#[derive(Clone, Debug)]
pub enum Identity {
    /// Registered by hand.
    Registered {
        /// The client.
        id: String,
        /// Its secret, if it has one.
        secret: Option<Secret>,
    },
    /// Known by its metadata document where the authorization server takes those, else registered when needed.
    Automatic {
        /// What people are shown.
        name: String,
        /// Where our metadata document is.
        document: Option<Url>,
    },
}

/// What a key signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the names of RFC 7518")]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Es256,
    Es384,
}

/// Something nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// The way to a person's browser.
pub trait Browser: Send + Sync {
    /// Where the authorization server sends the browser back to.
    fn redirect_uri(&self) -> String;

    /// Shows a page of the authorization server, and returns the address the browser was sent back to, or why it
    /// never was.
    fn visit(&self, page: Url) -> Visit;
}

/// A visit under way.
pub type Visit = Pin<Box<dyn Future<Output = Result<Url, String>> + Send>>;

/// Signs in to one server; cheap to clone.
#[derive(Clone)]
pub struct OAuth {
    account: Arc<Account>,
    running: Arc<Mutex<Option<Running>>>,
}

struct Account {
    config: Config,
    store: Arc<dyn TokenStore>,
    held: Mutex<Held>,
}

/// What we know of the store's contents.
#[derive(Clone, Default)]
enum Held {
    #[default]
    Unread,
    Read(Option<Arc<Grant>>),
}

/// The last attempt that was begun.
struct Running {
    since: Instant,
    attempt: Shared<Attempt>,
}

/// An attempt to get a token. `None`: that takes a person.
type Attempt = Pin<Box<dyn Future<Output = Result<Option<Arc<Grant>>, Failure>> + Send>>;

impl OAuth {
    /// Signs in as `config` says and keeps what it gets in `store`.
    pub fn new(config: Config, store: Arc<dyn TokenStore>) -> OAuth {
        let account = Arc::new(Account { config, store, held: Mutex::default() });
        OAuth { account, running: Arc::default() }
    }

    /// Signs in now and anew, whatever is kept. `challenge` is what the server said when it refused a request.
    pub async fn login(&self, challenge: Option<String>) -> Result<(), Failure> {
        let start = Start { stored: None, challenge, renewable: false };
        let granted = flow::obtain(&self.account.config, start).await?;
        let granted = granted.ok_or_else(|| Failure::connect("could not sign in: a person has to"))?;
        self.account.keep(granted).await.map(drop)
    }

    /// Forgets what was granted.
    pub async fn logout(&self) -> Result<(), Failure> {
        let store = self.account.store.clone();
        blocking(move || store.clear()).await?;
        self.account.hold(None);
        Ok(())
    }

    /// Joins the attempt that is under way, or begins one.
    fn attempt(&self, begin: impl FnOnce(Arc<Account>) -> Attempt) -> Shared<Attempt> {
        let mut running = lock(&self.running);
        match &*running {
            Some(Running { since, attempt }) if attempt.peek().is_none() && since.elapsed() < STALE => {
                attempt.clone()
            }
            _ => {
                let attempt = begin(self.account.clone()).shared();
                *running = Some(Running { since: Instant::now(), attempt: attempt.clone() });
                attempt
            }
        }
    }

    async fn current(&self) -> Result<Option<Bearer>, Failure> {
        let Some(grant) = self.account.grant().await? else { return Ok(None) };
        if !grant.ends_within(MARGIN) {
            return Ok(bearer(&grant));
        }
        let old = grant.clone();
        let renewed = self.attempt(|account| Box::pin(account.renew(old))).await;
        // A token that could not be renewed may still be good: the server decides.
        Ok(bearer(&renewed.ok().flatten().unwrap_or(grant)))
    }

    async fn better(&self, refusal: Refusal) -> Result<bool, Failure> {
        let challenge = refusal.challenge.as_deref().unwrap_or("Bearer");
        let more =
            WWWAuthenticateParams::parse(challenge, &self.account.config.server).is_insufficient_scope();
        if !authorizer::is_bearer(challenge) || (refusal.status == 403 && !more) {
            return Ok(false);
        }
        let granted = self.attempt(|account| Box::pin(account.obtain(refusal, more))).await?;
        Ok(granted.is_some())
    }
}

impl Authorizer for OAuth {
    fn token(&self) -> Authorizing<'_, Option<Bearer>> {
        Box::pin(self.current())
    }

    fn refused(&self, refusal: Refusal) -> Authorizing<'_, bool> {
        Box::pin(self.better(refusal))
    }
}

impl Account {
    /// What is held, read from the store at its first use.
    async fn grant(&self) -> Result<Option<Arc<Grant>>, Failure> {
        let held = lock(&self.held).clone();
        match held {
            Held::Read(grant) => Ok(grant),
            Held::Unread => self.read().await,
        }
    }

    /// What the store has now; another process may have put it there.
    async fn read(&self) -> Result<Option<Arc<Grant>>, Failure> {
        let store = self.store.clone();
        let grant = blocking(move || store.load()).await?.map(Arc::new);
        self.hold(grant.clone());
        Ok(grant)
    }

    async fn renew(self: Arc<Account>, old: Arc<Grant>) -> Result<Option<Arc<Grant>>, Failure> {
        if let Some(other) = self.read().await?.filter(|other| **other != *old) {
            return Ok(Some(other));
        }
        match flow::renew(&self.config, &old).await? {
            Some(grant) => self.keep(grant).await.map(Some),
            None => Ok(None),
        }
    }

    async fn obtain(self: Arc<Account>, refusal: Refusal, more: bool) -> Result<Option<Arc<Grant>>, Failure> {
        let stored = self.read().await?;
        // Somebody else was quicker, and nobody has refused what they got.
        if let Some(other) = stored.as_ref().filter(|other| bearer(other) != refusal.sent) {
            return Ok(Some(other.clone()));
        }
        let stored = stored.map(|grant| (*grant).clone());
        let start = Start { stored, challenge: refusal.challenge, renewable: !more };
        match flow::obtain(&self.config, start).await? {
            Some(grant) => self.keep(grant).await.map(Some),
            None => Ok(None),
        }
    }

    async fn keep(&self, grant: Grant) -> Result<Arc<Grant>, Failure> {
        let grant = Arc::new(grant);
        let (store, saved) = (self.store.clone(), grant.clone());
        blocking(move || store.save(&saved)).await?;
        self.hold(Some(grant.clone()));
        Ok(grant)
    }

    fn hold(&self, grant: Option<Arc<Grant>>) {
        *lock(&self.held) = Held::Read(grant);
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
    // Whole values are swapped: a panic elsewhere cannot leave one half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Algorithm {
    /// The algorithm of this name, such as `ES256`.
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
    /// Hides a text.
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
            Access::Person { identity, browser } => {
                let (identity, person) = (identity, browser.is_some());
                f.debug_struct("Person").field("identity", identity).field("browser", &person).finish()
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
