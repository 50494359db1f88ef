//! Downloads the package or image of a server before the server is started, with a timeout of its own.
//!
//! A launcher that is stopped while unpacking can leave a cache in which the package never works again, for any
//! program. A download therefore precedes connecting. It runs once per package, shared by all sources that need it,
//! and the remains of a stopped download are removed. A package that is already present costs a look at the
//! launcher's cache and no process.

mod docker;
mod uvx;

use super::{ConnectAttempt, UpstreamContext, opener, working_directory::WorkingDirectory};
use crate::{MaskedString, npx_cache};
use std::{
    collections::HashMap,
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OnceCell, Semaphore, SemaphorePermit},
    time::{self, Instant},
};
use wharf_config::{Download, Endpoint, Launch, Program, Source};
use wharf_mcp::{
    Class, Disconnect, Exit, Failure, Phase, Sent,
    stdio::{RunOutcome, StopTimeouts},
};

/// Time for a launcher to roll back after the signal to stop.
const LAUNCHER_STOP_TIMES: StopTimeouts =
    StopTimeouts { after_eof: Duration::ZERO, after_term: Duration::from_secs(3) };

/// Maximum number of concurrent downloads. More would not finish sooner, and would delay servers that are ready to
/// start.
const MAX_DOWNLOADS: usize = 4;

/// Time for a server to exit after a failed connect. Its exit is not awaited.
const SERVER_STOP_TIME: Duration = Duration::from_secs(3);

/// Downloads of this process, running and completed. Clones share them.
#[derive(Clone, Debug)]
pub struct Installs {
    cells: Arc<Mutex<HashMap<String, Arc<OnceCell<()>>>>>,
    permits: Arc<Semaphore>,
}

/// One package or image with the context of its download.
struct Install<'a> {
    source: &'a Source,
    launch: &'a Launch,
    download: &'a Download,
    context: &'a UpstreamContext,
    connect_attempt: &'a ConnectAttempt,
}

/// Reason why a download was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopReason {
    TimedOut,
    Cancelled,
}

/// Downloads the package or image of the source unless it is already present.
pub(super) async fn ensure_installed(
    source: &Source,
    context: &UpstreamContext,
    connect_attempt: &ConnectAttempt,
) -> Result<(), Failure> {
    let Some(install) = Install::of(source, context, connect_attempt) else { return Ok(()) };
    let cell = context.installs.cell(&install.key());
    cell.get_or_try_init(|| install.run()).await.map(|_| ())
}

/// Cleans up after a failed connect: the next start checks for the package again, and an interrupted update is
/// removed.
pub(super) async fn clean_up_after_failure(
    source: &Source,
    context: &UpstreamContext,
    connect_attempt: &ConnectAttempt,
    failure: &Failure,
) {
    let Some(install) = Install::of(source, context, connect_attempt) else { return };
    context.installs.forget(&install.key());
    if failure.class != Class::Timeout && !connect_attempt.is_cancelled() {
        return;
    }
    match install.download {
        Download::Npm { .. } => {
            let interrupted = npx_cache::folder(install.launch).filter(|it| npx_cache::is_interrupted(it));
            let Some(folder) = interrupted else { return };
            // npm may still be shutting down, and it writes until then.
            time::sleep(SERVER_STOP_TIME).await;
            if npx_cache::remove_if_interrupted(&folder) {
                let folder = folder.display();
                tracing::warn!(
                    source = source.name.shown(),
                    "npm was interrupted; removed the incomplete install in `{folder}`"
                );
            }
        }
        Download::PyPi { .. } | Download::Image { .. } => install.unmark(),
    }
}

impl Default for Installs {
    fn default() -> Installs {
        Installs { cells: Arc::default(), permits: Arc::new(Semaphore::new(MAX_DOWNLOADS)) }
    }
}

impl Installs {
    fn cell(&self, key: &str) -> Arc<OnceCell<()>> {
        self.lock().entry(key.to_owned()).or_default().clone()
    }

    fn forget(&self, key: &str) {
        let mut cells = self.lock();
        // A running download stays, because others wait for it.
        if cells.get(key).is_some_and(|it| it.initialized()) {
            cells.remove(key);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<OnceCell<()>>>> {
        // A map of handles is consistent after every statement.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Install<'a> {
    fn of(
        source: &'a Source,
        context: &'a UpstreamContext,
        connect_attempt: &'a ConnectAttempt,
    ) -> Option<Install<'a>> {
        let Endpoint::Stdio(launch) = &source.endpoint else { return None };
        let download = launch.download.as_ref()?;
        Some(Install { source, launch, download, context, connect_attempt })
    }

    /// Returns the identity of the download: the launcher, its settings and the packages.
    fn key(&self) -> String {
        let settings = self.launch.env.0.iter().filter(|(name, _)| is_setting(name));
        let settings = settings.map(|(name, it)| format!("{name}={}\n", it.value.expose()));
        let words = match self.download {
            Download::Npm { args, .. } | Download::PyPi { args, .. } => args.clone(),
            Download::Image { image, platform } => [image].into_iter().chain(platform).cloned().collect(),
        };
        let words = words.iter().map(|it| format!("{}\n", it.expose()));
        [self.launcher().to_owned()].into_iter().chain(words).chain(settings).collect()
    }

    async fn run(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + self.launch.install_timeout;
        if self.is_present(deadline).await? {
            return Ok(());
        }
        let (source, shown) = (self.source.name.shown(), self.download.shown());
        let _download_guard = self.connect_attempt.publisher.as_ref().map(|it| it.downloading(&shown));
        let _permit = self.permit().await?;
        let started = Instant::now();
        // Waiting for a permit does not count towards the download timeout.
        let deadline = started + self.launch.install_timeout;
        tracing::info!(source, "downloading `{shown}` with {}", self.launcher());
        let installed = match self.download {
            Download::Npm { args, .. } => self.run_npx(args, deadline).await,
            Download::PyPi { args, .. } => self.run_launcher(&os_args(args), deadline).await,
            Download::Image { image, platform } => {
                self.run_launcher(&docker::pull(image, platform.as_ref()), deadline).await
            }
        };
        match &installed {
            Ok(()) => {
                let took = started.elapsed().as_secs_f64();
                tracing::info!(source, "downloaded `{shown}` in {took:.1} s");
                self.mark();
            }
            Err(failure) => tracing::warn!(source, "{failure}"),
        }
        installed
    }

    /// Waits for a download permit.
    async fn permit(&self) -> Result<Option<SemaphorePermit<'_>>, Failure> {
        tokio::select! {
            // They are never closed.
            permit = self.context.installs.permits.acquire() => Ok(permit.ok()),
            () = self.connect_attempt.cancelled() => Err(self.stopped_failure(StopReason::Cancelled, String::new())),
        }
    }

    /// Returns whether the download is present, if possible without running the launcher. For a container image
    /// `docker` has to be asked once; a marker file remembers the answer.
    async fn is_present(&self, deadline: Instant) -> Result<bool, Failure> {
        let env = &self.launch.env;
        Ok(match self.download {
            Download::Npm { packages, or_global, .. } => {
                npx_cache::folder(self.launch).is_some_and(|it| npx_cache::is_complete(&it))
                    || *or_global && packages.first().is_some_and(|it| npx_cache::is_global(it.expose(), env))
            }
            Download::PyPi { package, .. } => match uvx::is_cached(package.expose(), env) {
                Some(cached) => cached,
                None => self.is_marked(),
            },
            Download::Image { .. } if self.is_marked() => true,
            Download::Image { image, .. } => {
                let present =
                    self.run_to_exit(&docker::inspect(image), deadline).await?.exit == Some(Exit::Code(0));
                if present {
                    self.mark();
                }
                present
            }
        })
    }

    async fn run_npx(&self, args: &[MaskedString], deadline: Instant) -> Result<(), Failure> {
        let args = os_args(args);
        let Some(folder) = npx_cache::folder(self.launch) else {
            return self.run_launcher(&args, deadline).await;
        };
        let claim = loop {
            match npx_cache::claim(&folder) {
                npx_cache::Claim::Held(claim) => break Some(claim),
                // npm reports best why it cannot write there.
                npx_cache::Claim::Impossible => break None,
                npx_cache::Claim::Complete => return Ok(()),
                npx_cache::Claim::Taken => tokio::select! {
                    () = time::sleep(npx_cache::CLAIM_POLL_INTERVAL) => {}
                    stopped = self.stopped(deadline) => return Err(self.stopped_failure(stopped, String::new())),
                },
            }
        };
        let installed = self.run_launcher(&args, deadline).await;
        if installed.is_err() {
            npx_cache::remove_if_incomplete(&folder);
        }
        if let Some(claim) = claim {
            claim.release();
        }
        installed
    }

    /// Runs the launcher and fails unless it succeeds.
    async fn run_launcher(&self, args: &[OsString], deadline: Instant) -> Result<(), Failure> {
        let RunOutcome { exit, stderr, stopped } = self.run_to_exit(args, deadline).await?;
        match (stopped, exit) {
            (Some(stopped), _) => Err(self.stopped_failure(stopped, stderr)),
            (None, Some(Exit::Code(0))) => Ok(()),
            (None, exit) => {
                let disconnect =
                    Disconnect { exit, stderr, ..Disconnect::because(format!("{} ended", self.launcher())) };
                let what = format!("could not download `{}`: {disconnect}", self.download.shown());
                let failure = Failure::new(Class::Closed, Phase::Open, Sent::No, what);
                Err(failure.with_disconnect(Arc::new(disconnect)))
            }
        }
    }

    /// Runs the launcher until it exits, with the supervision and environment of the server, in an empty directory of
    /// its own.
    async fn run_to_exit(
        &self,
        args: &[OsString],
        deadline: Instant,
    ) -> Result<RunOutcome<StopReason>, Failure> {
        let working_directory = WorkingDirectory::new(self.context)?;
        let mut command = opener::command(self.launch, &working_directory)?;
        command.args = args.to_vec();
        command.supervisor.clone_from(&self.context.supervisor);
        command.observer = self.connect_attempt.observer();
        command.stop_timeouts = LAUNCHER_STOP_TIMES;
        if let Some(folder) = npx_cache::folder(self.launch) {
            // The supervisor removes the folder even if this process is killed or cannot wait.
            command.remove_unfinished(folder, npx_cache::COMPLETION_FILE);
        }
        command.run(self.stopped(deadline)).await
    }

    /// Completes when the download has to stop.
    async fn stopped(&self, deadline: Instant) -> StopReason {
        tokio::select! {
            () = time::sleep_until(deadline) => StopReason::TimedOut,
            () = self.connect_attempt.cancelled() => StopReason::Cancelled,
        }
    }

    fn stopped_failure(&self, stopped: StopReason, stderr: String) -> Failure {
        let shown = self.download.shown();
        let (class, what) = match stopped {
            StopReason::TimedOut => {
                let limit = self.launch.install_timeout.as_secs_f64();
                (Class::Timeout, format!("`{shown}` was not downloaded within {limit} s"))
            }
            StopReason::Cancelled => (Class::Closed, format!("the download of `{shown}` was stopped")),
        };
        let disconnect = Disconnect { stderr, ..Disconnect::because(what.clone()) };
        Failure::new(class, Phase::Open, Sent::No, what).with_disconnect(Arc::new(disconnect))
    }

    fn launcher(&self) -> &'static str {
        match self.launch.program {
            Program::Launcher(launcher) => launcher.as_str(),
            Program::Granted(_) | Program::Interpreter(_) => "its launcher",
        }
    }
}

/// Returns whether a variable affects where a launcher stores its downloads.
fn is_setting(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    matches!(name.as_str(), "HOME" | "PATH")
        || ["NPM_CONFIG_", "UV_", "DOCKER_"].iter().any(|it| name.starts_with(it))
}

fn os_args(args: &[MaskedString]) -> Vec<OsString> {
    args.iter().map(|it| OsString::from(it.expose())).collect()
}
