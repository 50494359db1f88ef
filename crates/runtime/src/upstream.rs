//! A source that can be reached: opens sessions to it, and says in the user's words why it could not.

mod container;
mod credentials;
mod host;
mod install;
mod opener;
mod processes;
mod program;
mod workplace;

use crate::{
    board::Board,
    call::Caller,
    config::{Builtin, EraChoice, Source},
    fault::Fault,
    redact::Redactor,
};
pub use credentials::Login;
pub use host::{Asked, Consent, Declines};
pub use install::Installs;
pub(crate) use install::npx_folder;
pub use processes::Processes;
use processes::Slot;
pub use program::find_program;
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use wharf_mcp::{
    Failure, Goodbye, Opener, Raw, Reach, Request, Session, SessionTask,
    http::Client,
    session::{ClientInfo, Connected, Era, EraHint, NewsFeed, OnLog, Options},
    stdio::Witness,
};
use workplace::Workplace;
pub use workplace::sweep;

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
    /// The servers that are part of the program, if it has any.
    pub builtins: Option<Arc<dyn Builtins>>,
    /// How many servers may run as processes.
    pub processes: Processes,
    /// The packages and images that are being downloaded, or known to be there.
    pub installs: Installs,
}

/// How long a connection to a remote server may take to stand, where its entry does not say.
const CONNECT: Duration = Duration::from_secs(30);

impl Ground {
    /// What a library user begins with: working directories are made in `scratch`, which need not exist; there are no
    /// credentials, no builtin servers and no supervisor, and nothing is struck out of what servers say.
    pub fn plain(scratch: impl Into<PathBuf>) -> Result<Ground, Failure> {
        Ok(Ground {
            scratch: scratch.into(),
            http: Client::within(Reach::wide(), CONNECT)?,
            credentials: None,
            redactor: Arc::new(Redactor::default()),
            supervisor: None,
            builtins: None,
            processes: Processes::default(),
            installs: Installs::default(),
        })
    }
}

/// Opens the servers that are part of the program, which this crate does not know.
pub trait Builtins: std::fmt::Debug + Send + Sync {
    /// What opens this one.
    fn opener(&self, builtin: Builtin) -> Box<dyn Opener>;
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
    workplace: Option<Workplace>,
    /// That it may run, if it is a process.
    slot: Option<Slot>,
}

/// What is known about a connection that is about to be made.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    /// Where it is written up what the server's process does, and what is downloaded for it.
    pub(crate) board: Option<Arc<Board>>,
    /// The era that the server spoke the last time.
    pub(crate) era: Option<Era>,
    /// Says when nobody wants the connection any more.
    pub(crate) quit: Option<watch::Receiver<bool>>,
}

impl Visit {
    fn witness(&self) -> Option<Arc<dyn Witness>> {
        self.board.clone().map(|it| it as Arc<dyn Witness>)
    }

    /// Whether nobody wants the connection any more.
    fn is_over(&self) -> bool {
        self.quit.as_ref().is_some_and(|it| *it.borrow())
    }

    /// Completes when nobody wants the connection any more.
    async fn over(&self) {
        match self.quit.clone() {
            Some(mut quit) => drop(quit.wait_for(|quit| *quit).await),
            None => std::future::pending().await,
        }
    }
}

/// What a session leaves to be waited for.
#[derive(Debug)]
pub(crate) struct Wake {
    task: SessionTask,
    workplace: Option<Workplace>,
    slot: Option<Slot>,
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

    pub(crate) fn shared_source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.ground.redactor
    }

    /// Starts or reaches the server and agrees with it on a protocol.
    pub async fn connect(&self, consent: Arc<dyn Consent>) -> Result<Live, Fault> {
        self.visit(consent, Visit::default()).await
    }

    /// The same, with some knowledge of how it went before and of who is interested.
    pub(crate) async fn visit(&self, consent: Arc<dyn Consent>, visit: Visit) -> Result<Live, Fault> {
        let opened = opener::open(&self.source, &self.ground, visit.witness());
        let (opener, workplace) = opened.map_err(|it| self.fault(&it))?;
        let slot = match opener.starts_process() {
            true => Some(self.ground.processes.take().ok_or_else(|| self.crowded())?),
            false => None,
        };
        // A download is not part of connecting: the time for that begins when the server is started.
        install::ensure(&self.source, &self.ground, &visit).await.map_err(|it| self.fault(&it))?;
        let started = Instant::now();
        let mut options = Options { quit: visit.quit.clone(), ..self.options(consent) };
        if let (EraHint::Auto, Some(era)) = (options.era, visit.era) {
            options.era = EraHint::Cached(era);
        }
        let connected = match Session::connect(&*opener, &options).await {
            Ok(connected) => connected,
            Err(failure) => {
                install::after_failure(&self.source, &self.ground, &visit, &failure).await;
                return Err(self.fault(&failure));
            }
        };
        let Connected { session, task, news } = connected;
        Ok(Live { session, news, took: started.elapsed(), task, workplace, slot })
    }

    /// There is no room for another process.
    fn crowded(&self) -> Fault {
        Fault::before(&self.source, Fault::crowded(self.ground.processes.most()))
    }

    /// A failure of this upstream, in the user's words.
    pub fn fault(&self, failure: &Failure) -> Fault {
        Fault::of(&self.source, failure, &self.ground.redactor)
    }

    /// A request that is made for somebody, as this source is to see it.
    pub(crate) fn on_behalf(&self, mut request: Request, caller: &Caller) -> Request {
        let Caller { meta, comes_back, input, consent, logs } = caller;
        // Where the entry names roots we answer for them, and so have to answer the rest too.
        let has_roots = !self.source.roots.is_empty();
        request = request.once(*comes_back && !has_roots);
        if let Some(meta) = meta {
            request = request.meta(if has_roots { host::with_roots(meta) } else { meta.clone() });
        }
        if let Some(consent) = consent {
            request = request.host(Arc::new(host::SourceHost::new(self.source.clone(), consent.clone())));
        }
        if let Some(logs) = logs {
            request = request.logs(logs.level, logs.explicit, self.telling(&logs.told));
        }
        match input {
            Some(input) => request.input(input.clone()),
            None => request,
        }
    }

    /// Tells log lines without secrets.
    fn telling(&self, told: &OnLog) -> OnLog {
        let (told, redactor) = (told.clone(), self.ground.redactor.clone());
        Arc::new(move |line: &Raw| {
            let shown = redactor.redact(line.as_str());
            if shown == line.as_str() {
                return told(line);
            }
            // Striking out happens inside strings; should it leave no JSON, nothing is told.
            if let Ok(line) = Raw::parse(shown) {
                told(&line);
            }
        })
    }

    fn options(&self, consent: Arc<dyn Consent>) -> Options {
        let Source { timeouts, era, .. } = &*self.source;
        let client = ClientInfo { name: "wharf".into(), version: env!("CARGO_PKG_VERSION").into() };
        Options {
            host: Arc::new(host::SourceHost::new(self.source.clone(), consent)),
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
    /// The handle to ask with, and what is left to its owner.
    pub(crate) fn split(self) -> (Session, NewsFeed, Wake) {
        let Live { session, news, task, workplace, slot, .. } = self;
        (session, news, Wake { task, workplace, slot })
    }

    /// Hangs up and waits until the server is gone.
    pub async fn close(self) -> Arc<Goodbye> {
        let (session, _, wake) = self.split();
        drop(session);
        wake.gone().await
    }
}

impl Wake {
    /// Waits until the session is over and nothing is left of its server.
    pub(crate) async fn gone(self) -> Arc<Goodbye> {
        let goodbye = self.task.join().await;
        drop((self.workplace, self.slot));
        goodbye
    }
}
