//! Connects to the servers of an agent file, all at once, and hangs up on all of them in the end.

use crate::{
    cli::Common, commands::load_agent, exit::Exit, output::Output, progress::Progress,
    surroundings::Surroundings, terminal::Terminal,
};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{runtime, task::JoinSet};
use wharf_mcp::{http::Client, session::List};
use wharf_runtime::{
    Fault, Ground, Live, Redactor, Upstream,
    catalog::Offer,
    config::{Plan, Source},
    upstream::{Consent, Declines},
};

/// How long a connection may take to stand, where an entry does not say.
const CONNECT: Duration = Duration::from_secs(30);

/// How long what cannot be cancelled is waited for in the end.
const LEAVING: Duration = Duration::from_millis(200);

/// The servers of one agent file.
pub(crate) struct Dock {
    pub(crate) output: Output,
    plan: Plan,
    ground: Ground,
    consent: Arc<dyn Consent>,
}

/// One server, and what came of connecting to it.
pub(crate) struct Docked {
    pub(crate) upstream: Upstream,
    pub(crate) state: Result<(Live, Offer), Fault>,
}

type Work = Pin<Box<dyn Future<Output = Exit>>>;

/// Loads the agent file and runs some work on its servers. Ctrl-C ends the work, and the servers with it.
pub(crate) fn run(
    common: &Common,
    around: &Surroundings,
    output: Output,
    work: impl FnOnce(Dock) -> Work,
) -> Exit {
    let (plan, diagnostics) = load_agent(common, around);
    let Some(plan) = plan else {
        output.diagnostics(&diagnostics);
        return Exit::Usage;
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let started = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        let http = Client::new(CONNECT).map_err(|error| error.to_string())?;
        Ok((runtime, http))
    });
    let (runtime, http) = match started {
        Ok(started) => started,
        Err(error) => {
            output.complain(&format!("error: {error}\n"));
            return Exit::OurBug;
        }
    };
    let redactor = Arc::new(Redactor::of(&plan));
    let ground = Ground {
        scratch: around.scratch(),
        http,
        credentials: around.credentials(),
        redactor,
        supervisor: around.supervisor(),
    };
    let consent: Arc<dyn Consent> = match Terminal::open() {
        Some(terminal) => Arc::new(terminal),
        None => Arc::new(Declines),
    };
    let dock = Dock { output, plan, ground, consent };
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = work(dock) => exit,
            exit = interrupted() => exit,
        }
    });
    // A question to the person may still wait for a line that never comes.
    runtime.shutdown_timeout(LEAVING);
    exit
}

impl Dock {
    pub(crate) fn sources(&self) -> &[Source] {
        &self.plan.sources
    }

    /// One source that can be reached.
    pub(crate) fn upstream(&self, name: &str) -> Option<Upstream> {
        let source = self.plan.sources.iter().find(|it| it.name.expose() == name)?;
        Some(Upstream::new(Arc::new(source.clone()), self.ground.clone()))
    }

    /// Connects to those sources that are wanted and asks each for some lists. One that fails does not stop the others.
    pub(crate) async fn connect(
        &self,
        wanted: impl Fn(&Source) -> bool,
        lists: &'static [List],
    ) -> Vec<Docked> {
        let progress = Progress::new(self.output);
        let mut connecting = JoinSet::new();
        for (place, source) in self.plan.sources.iter().enumerate().filter(|(_, it)| wanted(it)) {
            let upstream = Upstream::new(Arc::new(source.clone()), self.ground.clone());
            let (consent, line) = (self.consent.clone(), progress.line(source.name.shown()));
            connecting.spawn(async move {
                let state = connect_one(&upstream, consent, lists).await;
                line.done(state.as_ref().map(|(live, offer)| (live.took, offer.tools.len())).ok());
                (place, Docked { upstream, state })
            });
        }
        let mut docked = connecting.join_all().await;
        docked.sort_by_key(|(place, _)| *place);
        docked.into_iter().map(|(_, it)| it).collect()
    }
}

async fn connect_one(
    upstream: &Upstream,
    consent: Arc<dyn Consent>,
    lists: &[List],
) -> Result<(Live, Offer), Fault> {
    let live = upstream.connect(consent).await?;
    match Offer::read(&live.session, lists).await {
        Ok(offer) => Ok((live, offer)),
        Err(failure) => {
            // What the server said before it went is known only once it is gone.
            let goodbye = live.close().await;
            Err(upstream.fault(&failure.with_goodbye(goodbye)))
        }
    }
}

/// Hangs up on every server, all at once, and waits until they are gone.
pub(crate) async fn hang_up(docked: Vec<Docked>) {
    let closing: JoinSet<()> = docked
        .into_iter()
        .filter_map(|it| it.state.ok())
        .map(|(live, _)| async { _ = live.close().await })
        .collect();
    closing.join_all().await;
}

async fn interrupted() -> Exit {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = tokio::signal::ctrl_c() => Exit::Interrupted,
                _ = terminated.recv() => Exit::Terminated,
            };
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    Exit::Interrupted
}
