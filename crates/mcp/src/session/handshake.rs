//! Detects which era a server speaks and performs the handshake.
//!
//! The client sends `server/discover` first. [`Evidence`] classifies the reaction: a result, a version error,
//! any other error, the server's exit, or silence. The silence timeout starts only after the server's first output or
//! a startup delay, because a cold start is slow, not silent.

use super::{
    Options,
    evidence::{Evidence, judge, read_initialized, rejects_version, supports_modern},
    hooks::RequestHooks,
    meta,
    news::NewsFeed,
    sender::{self, RequestSender, SessionEnd},
    terms::{Era, EraHint, LATEST_LEGACY, MODERN, Terms},
};
use crate::{Class, Disconnect, Failure, Opener, Outbound, Phase, Raw, Sent, json::splice};
use serde_json::json;
use std::{pin::pin, sync::Arc, sync::atomic::Ordering, time::Duration};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

/// How long the probe may stay unanswered after the server's first output.
const PROBE_SILENCE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for any output before also sending `initialize`.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// [`FIRST_OUTPUT_TIMEOUT`] for transports with one response per request: the server may be slow, or a user may be signing in, but
/// it has not ignored the probe.
const FIRST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause that lets a server process the roots it requested.
const ROOTS_SETTLE_PAUSE: Duration = Duration::from_millis(50);

/// Timeout for the server to request roots and for the host to answer.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(1);

/// Session after a successful handshake.
pub(super) struct NegotiatedSession {
    pub(super) sender: RequestSender,
    pub(super) ended: SessionEnd,
    pub(super) tasks: JoinSet<()>,
    pub(super) news: NewsFeed,
    pub(super) terms: Terms,
}

/// One attempt at a handshake over one link.
struct HandshakeAttempt<'a> {
    options: &'a Options,
    deadline: Instant,
    /// How long to wait for any output before also sending `initialize`.
    first_output_timeout: Duration,
    sender: RequestSender,
    ended: SessionEnd,
    tasks: JoinSet<()>,
    news: NewsFeed,
}

/// Opens a link and performs the handshake within `connect_timeout`.
pub(super) async fn negotiate(opener: &dyn Opener, options: &Options) -> Result<NegotiatedSession, Failure> {
    let deadline = Instant::now() + options.connect_timeout;
    let mut attempt = HandshakeAttempt::open(opener, options, deadline).await?;
    let mut hint = options.era;
    loop {
        let outcome = tokio::select! {
            outcome = attempt.negotiate_era(hint) => outcome,
            () = options.wait_for_quit() => Err(Failure::closed(Sent::No, Arc::new(Disconnect::because("connecting was aborted")))),
        };
        match outcome {
            Ok(Evidence::Modern(terms) | Evidence::Initialized(terms)) => {
                return attempt.finish(terms).await;
            }
            Ok(Evidence::Disconnected(_)) if !matches!(hint, EraHint::Only(_)) => {
                attempt.close().await;
                attempt = HandshakeAttempt::open(opener, options, deadline).await?;
                hint = EraHint::Only(Era::Legacy);
            }
            Ok(Evidence::Legacy(_)) => {
                let why = format!("the server does not speak {MODERN}");
                return Err(attempt.fail(Failure::protocol(why)).await);
            }
            Ok(Evidence::Disconnected(failure) | Evidence::None(failure)) | Err(failure) => {
                return Err(attempt.fail(failure).await);
            }
        }
    }
}

impl<'a> HandshakeAttempt<'a> {
    async fn open(
        opener: &dyn Opener,
        options: &'a Options,
        deadline: Instant,
    ) -> Result<HandshakeAttempt<'a>, Failure> {
        let link = time::timeout_at(deadline, opener.open()).await.map_err(|_| {
            Failure::new(Class::Timeout, Phase::Open, Sent::No, "could not connect in time")
        })??;
        let first_output_timeout =
            if link.stream_per_request { FIRST_RESPONSE_TIMEOUT } else { FIRST_OUTPUT_TIMEOUT };
        let mut tasks = JoinSet::new();
        let (sender, ended, news) =
            sender::spawn(link, options.host.clone(), options.close_grace, &mut tasks);
        Ok(HandshakeAttempt { options, deadline, first_output_timeout, sender, ended, tasks, news })
    }

    /// Negotiates according to the hint.
    async fn negotiate_era(&self, hint: EraHint) -> Result<Evidence, Failure> {
        match hint {
            EraHint::Only(Era::Legacy) => self.initialize(LATEST_LEGACY).await.map(Evidence::Initialized),
            EraHint::Cached(Era::Legacy) => match self.initialize(LATEST_LEGACY).await {
                Err(failure) if rejects_version(&failure) => self.probe_then_initialize().await,
                outcome => outcome.map(Evidence::Initialized),
            },
            EraHint::Only(Era::Modern) => Ok(judge(self.discover().await)),
            EraHint::Auto | EraHint::Cached(Era::Modern) => self.probe_then_initialize().await,
        }
    }

    async fn probe_then_initialize(&self) -> Result<Evidence, Failure> {
        match self.probe().await {
            Evidence::Legacy(version) => match self.initialize(version).await {
                // Only a 2026-07-28 server sends this error: probe again.
                Err(failure) if rejects_version(&failure) => Ok(judge(self.discover().await)),
                outcome => outcome.map(Evidence::Initialized),
            },
            evidence => Ok(evidence),
        }
    }

    /// Probes the era. After too much silence it also sends `initialize`, and the first conclusive response decides.
    async fn probe(&self) -> Evidence {
        let mut discover = pin!(self.discover());
        tokio::select! {
            answer = &mut discover => return judge(answer),
            () = self.wait_for_silence() => {}
        }
        let mut initialize = pin!(self.initialize(LATEST_LEGACY));
        tokio::select! {
            answer = &mut discover => match judge(answer) {
                // The probe's answer was slow, and `initialize` is already pending.
                Evidence::Legacy(_) => judge_initialize(initialize.await),
                evidence => evidence,
            },
            answer = &mut initialize => match answer {
                Err(failure) if rejects_version(&failure) => judge(discover.await),
                // A proxy may have sent this status: the probe is still pending.
                Err(failure) if failure.status.is_some() => judge_late(discover.await, failure),
                // A server that answers out of order may reject this as a second handshake, so give the probe a
                // little longer. A server that ignores the probe has already explained its error.
                Err(failure) if failure.class == Class::Rpc => {
                    match time::timeout(self.first_output_timeout, discover).await {
                        Ok(answer) => judge_late(answer, failure),
                        Err(_) => Evidence::None(failure),
                    }
                }
                answer => judge_initialize(answer),
            },
        }
    }

    /// Waits until the probe counts as ignored.
    async fn wait_for_silence(&self) {
        let first_output = async {
            self.sender.shared().first_output.notified().await;
            time::sleep(PROBE_SILENCE_TIMEOUT).await;
        };
        tokio::select! {
            () = first_output => {}
            () = time::sleep(self.first_output_timeout) => {}
        }
    }

    async fn discover(&self) -> Result<Raw, Failure> {
        match self.discover_once().await {
            // The server rejects a version that it lists as supported: retry once.
            Err(failure) if rejects_version(&failure) && supports_modern(&failure) => {
                self.discover_once().await
            }
            answer => answer,
        }
    }

    async fn discover_once(&self) -> Result<Raw, Failure> {
        let id = self.sender.next_id();
        let params = meta::with_meta(None, None, Some(&meta::modern(self.options)), None);
        let routing = crate::Routing { version: Some(MODERN.into()), modern: true, ..Default::default() };
        let message = Outbound::Request { id, method: "server/discover".into(), params, routing };
        self.sender.exchange(message, self.deadline, RequestHooks::default()).await
    }

    async fn initialize(&self, version: &'static str) -> Result<Terms, Failure> {
        let id = self.sender.next_id();
        let client = self.options.client.to_raw();
        let mut capabilities = self.options.host.capabilities();
        if self.options.host.reports_roots() {
            capabilities = capabilities.with("roots", &json!({ "listChanged": true }).into());
        }
        let version = splice::string(version);
        let extra = self.options.extra_meta.as_ref().map(|extra| ("_meta", extra.as_bytes()));
        let members = [
            ("protocolVersion", version.as_slice()),
            ("capabilities", capabilities.as_bytes()),
            ("clientInfo", client.as_bytes()),
        ];
        let params = Some(splice::object(members.into_iter().chain(extra)));
        let message =
            Outbound::Request { id, method: "initialize".into(), params, routing: crate::Routing::default() };
        let result = self.sender.exchange(message, self.deadline, RequestHooks::default()).await?;
        read_initialized(&result)
    }

    /// Publishes the terms and, in the handshake era, sends `notifications/initialized`.
    async fn finish(self, terms: Terms) -> Result<NegotiatedSession, Failure> {
        let _ = self.sender.shared().terms.set(terms.clone());
        if terms.era == Era::Legacy {
            let routing = terms.routing(None, Vec::new());
            let method = "notifications/initialized".into();
            self.sender.notify(Outbound::Notification { method, params: None, routing }).await?;
            if self.options.host.capabilities().member("roots").is_some() {
                let _ = time::timeout(ROOTS_TIMEOUT, self.wait_for_roots(&terms)).await;
            }
        }
        let HandshakeAttempt { sender, ended, tasks, news, .. } = self;
        Ok(NegotiatedSession { sender, ended, tasks, news, terms })
    }

    /// Waits until the server has processed the roots. A server that wants roots asks right after `initialized`,
    /// hence before it answers the ping sent here; some servers reject calls until they have processed the answer.
    async fn wait_for_roots(&self, terms: &Terms) {
        let id = self.sender.next_id();
        let routing = terms.routing(None, Vec::new());
        let ping = Outbound::Request { id, method: "ping".into(), params: None, routing };
        let _ = self.sender.exchange(ping, Instant::now() + ROOTS_TIMEOUT, RequestHooks::default()).await;
        if self.sender.shared().asked_roots.load(Ordering::Acquire) {
            self.sender.shared().answered.notified().await;
            time::sleep(ROOTS_SETTLE_PAUSE).await;
        }
    }

    /// Closes the session and waits for its tasks.
    async fn close(self) -> Arc<Disconnect> {
        let HandshakeAttempt { sender, ended, mut tasks, .. } = self;
        drop(sender);
        while tasks.join_next().await.is_some() {}
        ended.disconnect()
    }

    /// Closes the session and adds the server's [`Disconnect`] to the failure. After a timeout the grace period is
    /// short, because the caller has already waited too long.
    async fn fail(self, failure: Failure) -> Failure {
        self.sender.shared().overdue.store(failure.class == Class::Timeout, Ordering::Release);
        let disconnect = self.close().await;
        failure.during(Phase::Handshake).with_disconnect(disconnect)
    }
}

/// Interprets a response to the probe that arrives after `initialize` was rejected.
fn judge_late(answer: Result<Raw, Failure>, rejection: Failure) -> Evidence {
    match judge(answer) {
        Evidence::Legacy(_) => Evidence::None(rejection),
        evidence => evidence,
    }
}

/// Interprets the outcome of `initialize`.
fn judge_initialize(answer: Result<Terms, Failure>) -> Evidence {
    match answer {
        Ok(terms) => Evidence::Initialized(terms),
        Err(failure) if failure.class == Class::Closed => Evidence::Disconnected(failure),
        Err(failure) => Evidence::None(failure),
    }
}
