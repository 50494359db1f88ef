//! A source that can be reached: opens sessions to it, and says in the user's words why it could not.

mod container;
mod credentials;
mod host;
mod opener;
mod program;

use crate::{
    config::{EraChoice, Source},
    fault::Fault,
    redact::Redactor,
};
pub use credentials::Login;
pub use host::{Asked, Consent, Declines};
pub use program::find_program;
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use wharf_mcp::{
    Failure, Goodbye, Session, SessionTask,
    http::Client,
    session::{ClientInfo, Connected, Era, EraHint, NewsFeed, Options},
};

/// What every upstream of a process shares.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Where private working directories are made.
    pub scratch: PathBuf,
    /// The pool of HTTP connections.
    pub http: Client,
    /// Where grants of remote servers are kept, if anywhere.
    pub credentials: Option<PathBuf>,
    /// Strikes secrets out of what servers say.
    pub redactor: Arc<Redactor>,
    /// The program that holds servers' processes together, if there is one: see [`stdio::Command::supervisor`].
    ///
    /// [`stdio::Command::supervisor`]: wharf_mcp::stdio::Command::supervisor
    pub supervisor: Option<PathBuf>,
}

/// A source, and what it takes to reach it.
#[derive(Clone, Debug)]
pub struct Upstream {
    source: Arc<Source>,
    ground: Ground,
}

/// A session with an upstream. It ends when it is closed, or with the last clone of `session`.
#[derive(Debug)]
pub struct Live {
    /// Asks the server.
    pub session: Session,
    /// What the server says unasked.
    pub news: NewsFeed,
    /// How long it took to be ready.
    pub took: Duration,
    task: SessionTask,
    /// The server's working directory, which goes with it.
    workplace: Option<tempfile::TempDir>,
}

impl Upstream {
    /// A source on this ground.
    pub fn new(source: Arc<Source>, ground: Ground) -> Upstream {
        Upstream { source, ground }
    }

    /// What it is.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Starts or reaches the server and agrees with it on a protocol.
    pub async fn connect(&self, consent: Arc<dyn Consent>) -> Result<Live, Fault> {
        let started = Instant::now();
        let (opener, workplace) = opener::open(&self.source, &self.ground).map_err(|it| self.fault(&it))?;
        let options = self.options(consent);
        let connected = Session::connect(&*opener, &options).await.map_err(|it| self.fault(&it))?;
        let Connected { session, task, news } = connected;
        Ok(Live { session, news, took: started.elapsed(), task, workplace })
    }

    /// A failure of this upstream, in the user's words.
    pub fn fault(&self, failure: &Failure) -> Fault {
        Fault::of(&self.source, failure, &self.ground.redactor)
    }

    fn options(&self, consent: Arc<dyn Consent>) -> Options {
        let Source { timeouts, era, .. } = &*self.source;
        let client = ClientInfo { name: "wharf".into(), version: env!("CARGO_PKG_VERSION").into() };
        Options {
            host: Arc::new(host::SourceHost::new(&self.source, consent)),
            era: match era {
                EraChoice::Auto => EraHint::Auto,
                EraChoice::Legacy => EraHint::Only(Era::Legacy),
                EraChoice::Modern => EraHint::Only(Era::Modern),
            },
            connect_timeout: timeouts.connect,
            request_timeout: timeouts.request,
            extra_meta: self.source.config.as_ref().map(host::config_meta),
            ..Options::new(client)
        }
    }
}

impl Live {
    /// Hangs up and waits until the server is gone.
    pub async fn close(self) -> Arc<Goodbye> {
        let Live { session, task, workplace, .. } = self;
        drop(session);
        let goodbye = task.join().await;
        drop(workplace);
        goodbye
    }
}
