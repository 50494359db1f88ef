//! Runs one source: owns its session keeper, its circuit breaker and its status.
//!
//! Sends requests under the timeout, retry and breaker rules of the source. Does not know how tools are resolved or
//! how calls are recorded.

use crate::{
    Fault, FaultKind, Glob, Redactor,
    call::Deadline,
    catalog::ToolEntry,
    circuit_breaker::coordinator::{BreakerCoordinator, ProbeDecision},
    circuit_breaker::{BreakerSnapshot, BreakerState, CircuitBreaker, Permit, Verdict},
    era_translation::translate,
    events::{EventBus, EventKind},
    fault::Stage,
    handshake_sessions::{HandshakeSessions, needs_input_rounds},
    lists_to_refresh::ListsToRefresh,
    options::RuntimeOptions,
    session_keeper::incident::{ConnectFailure, Reached, SharedSession},
    session_keeper::{SessionKeeper, SessionKeeperContext},
    source_request::SourceRequest,
    source_status::{ConnectionState, SourceStatus},
    status_publisher::StatusPublisher,
    upstream::{Upstream, UpstreamContext},
};
use std::{collections::BTreeSet, future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use wharf_config::{EraChoice, Lifecycle, Source};
use wharf_mcp::{Failure, Raw, Request, RpcError, Sent, session::Era};

/// Coordinates breaker probes with other replicas, if configured.
struct Coordination(Option<Arc<dyn BreakerCoordinator>>);

/// One source at run time.
#[derive(Debug)]
pub(crate) struct ActiveSource {
    upstream: Upstream,
    keeper: SessionKeeper,
    /// Sessions for clients that take requests, unless the entry requires an era.
    handshake_sessions: Option<HandshakeSessions>,
    circuit_breaker: Arc<CircuitBreaker>,
    coordinator: Coordination,
    publisher: Arc<StatusPublisher>,
    lists_to_refresh: Arc<ListsToRefresh>,
    repeatable: Vec<Glob>,
    stop: watch::Sender<bool>,
}

/// Complete state of one source.
#[derive(Clone, Debug)]
pub struct SourceState {
    /// The configuration of the source.
    pub source: Arc<Source>,
    /// Session and health.
    pub status: SourceStatus,
    /// State of the connection.
    pub connection: ConnectionState,
    /// State of the circuit breaker.
    pub circuit_breaker: BreakerSnapshot,
    /// Number of requests the current session has not answered yet.
    pub unanswered: usize,
}

impl ActiveSource {
    /// Creates the active source and the task that maintains its session.
    pub(crate) fn new(
        source: Arc<Source>,
        context: &UpstreamContext,
        options: &RuntimeOptions,
        bus: EventBus,
        refresh_needed: Arc<Notify>,
    ) -> (Arc<ActiveSource>, impl Future<Output = ()> + Send + 'static) {
        let name: Arc<str> = source.name.expose().into();
        let publisher = Arc::new(StatusPublisher::new(name.clone(), bus, context.redactor.clone()));
        let (on_change, wakeup, coordinator) =
            (publisher.clone(), refresh_needed.clone(), options.coordinator.clone());
        let circuit_breaker = CircuitBreaker::new(options.breaker, move |breaker| {
            on_change.breaker_changed(breaker);
            if let Some(coordinator) = &coordinator {
                coordinator.breaker_changed(&name, breaker);
            }
            // Lists that were not read while the breaker was open may now be due.
            wakeup.notify_one();
        });
        let lists_to_refresh = Arc::new(ListsToRefresh::new(refresh_needed));
        let upstream = Upstream::new(source, context.clone());
        let (stop, stopped) = watch::channel(false);
        let keeper_context = SessionKeeperContext {
            upstream: upstream.clone(),
            publisher: publisher.clone(),
            lists_to_refresh: lists_to_refresh.clone(),
            consent: options.consent.clone(),
            era: None,
            idle_stop: options.idle_stop,
            stop: stopped,
        };
        let handshake_context = (upstream.source().era == EraChoice::Auto).then(|| SessionKeeperContext {
            publisher: Arc::new(publisher.of_additional_session()),
            era: Some(Era::Legacy),
            ..keeper_context.clone()
        });
        let (keeper, task) = SessionKeeper::new(keeper_context);
        let (handshake_sessions, handshake_task) = handshake_context.map(HandshakeSessions::new).unzip();
        let task = async {
            tokio::join!(task, async {
                if let Some(task) = handshake_task {
                    task.await;
                }
            });
        };
        let (repeatable, coordinator) =
            (options.repeatable.clone(), Coordination(options.coordinator.clone()));
        (
            Arc::new(ActiveSource {
                upstream,
                keeper,
                handshake_sessions,
                circuit_breaker,
                coordinator,
                publisher,
                lists_to_refresh,
                repeatable,
                stop,
            }),
            task,
        )
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        self.upstream.source()
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        self.publisher.name()
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        self.upstream.redactor()
    }

    /// Converts a failure of this source into a fault in the user's words.
    pub(crate) fn fault(&self, failure: &Failure) -> Arc<Fault> {
        Arc::new(self.upstream.fault(failure))
    }

    pub(crate) fn lists_to_refresh(&self) -> &ListsToRefresh {
        &self.lists_to_refresh
    }

    pub(crate) fn circuit_breaker(&self) -> &Arc<CircuitBreaker> {
        &self.circuit_breaker
    }

    pub(crate) fn publish(&self, what: EventKind) {
        self.publisher.publish(what);
    }

    pub(crate) fn state(&self) -> SourceState {
        let (status, connection) = self.publisher.status();
        let (source, circuit_breaker) = (self.source().clone(), self.circuit_breaker.snapshot());
        let additional = self.handshake_sessions.as_ref().map_or(0, HandshakeSessions::unanswered);
        let unanswered = self.keeper.unanswered() + additional;
        SourceState { source, status, connection, circuit_breaker, unanswered }
    }

    /// Stops the server permanently.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Retires the current session and resets the circuit breaker. The next call starts a new server.
    pub(crate) fn restart(&self) {
        self.keeper.retire(None);
        self.handshake_sessions.iter().for_each(HandshakeSessions::restart);
        self.circuit_breaker.reset();
    }

    /// Returns a permit for one request. Fails if the circuit breaker is open, or if another replica holds the probe.
    pub(crate) async fn admit(&self) -> Result<Permit, Arc<Fault>> {
        let permit = self.circuit_breaker.admit().map_err(|wait| Arc::new(self.breaker_open(wait)))?;
        match &self.coordinator.0 {
            Some(coordinator) if permit.is_probe() => {
                self.apply_decision(permit, coordinator.may_probe(self.name()).await)
            }
            _ => Ok(permit),
        }
    }

    /// Returns a permit, or a timeout fault at the deadline. Replicas have to agree on a probe.
    pub(crate) async fn admit_by(&self, by: Deadline) -> Result<Permit, Arc<Fault>> {
        by.wait(pin!(self.admit())).await.unwrap_or_else(|| Err(self.deadline_exceeded()))
    }

    fn deadline_exceeded(&self) -> Arc<Fault> {
        Arc::new(Fault::with_source(self.source(), Fault::deadline_exceeded()))
    }

    /// Applies the coordinator's decision about a probe.
    fn apply_decision(&self, permit: Permit, decision: ProbeDecision) -> Result<Permit, Arc<Fault>> {
        let breaker_open = |wait| Arc::new(self.breaker_open(wait));
        match decision {
            ProbeDecision::Go => Ok(permit),
            ProbeDecision::Closed => {
                self.adopt_breaker_state(BreakerState::Closed { failures: 0 });
                self.circuit_breaker.admit().map_err(breaker_open)
            }
            ProbeDecision::Wait(wait) => {
                self.adopt_breaker_state(BreakerState::Open { until: Instant::now() + wait });
                Err(breaker_open(wait))
            }
        }
    }

    /// Adopts the breaker state that another replica has determined for this source.
    pub(crate) fn adopt_breaker_state(&self, breaker: BreakerState) {
        if let Some(breaker) = self.circuit_breaker.adopt_state(breaker) {
            self.publisher.breaker_changed(breaker);
            // Lists that were not read while the breaker was open may now be due.
            self.lists_to_refresh.wake_catalog_writer();
        }
    }

    /// Returns an open session or the connect failure, and records which one in `reached`.
    pub(crate) async fn session(&self, reached: &mut Reached) -> Result<Arc<SharedSession>, Arc<Fault>> {
        *reached = Reached::Nothing;
        match self.keeper.session().await {
            Ok(session) => {
                *reached = Reached::Session(session.clone());
                Ok(session)
            }
            Err(ConnectFailure { fault, incident }) => {
                *reached = Reached::ConnectFailure(incident);
                Err(fault)
            }
        }
    }

    /// Returns a session for background work. Using an open session this way does not postpone the idle stop.
    pub(crate) async fn background_session(
        &self,
        reached: &mut Reached,
    ) -> Result<Arc<SharedSession>, Arc<Fault>> {
        match self.keeper.open_session() {
            Some(session) => {
                *reached = Reached::Session(session.clone());
                Ok(session)
            }
            None => self.session(reached).await,
        }
    }

    /// Returns the open sessions. Does not count as use.
    pub(crate) fn open_sessions(&self) -> impl Iterator<Item = Arc<SharedSession>> {
        let additional = self.handshake_sessions.as_ref().and_then(HandshakeSessions::open_session);
        self.keeper.open_session().into_iter().chain(additional)
    }

    /// Returns whether the server was stopped as idle and has not been started since.
    pub(crate) fn is_stopped_as_idle(&self) -> bool {
        self.keeper.is_stopped_as_idle()
    }

    /// Replaces the set of resources whose updates this source reports.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        // A second process has resources of its own. A remote server reports an update in its main session.
        let additional = self.handshake_sessions.as_ref().filter(|_| !self.source().endpoint.is_remote());
        additional.into_iter().for_each(|it| it.watch(uris.clone()));
        self.keeper.watch(uris);
    }

    /// Waits until the subscription to a resource is active. Starts the server if necessary.
    pub(crate) async fn is_watching(&self, uri: &str) -> Result<(), Arc<Fault>> {
        let rpc_fault = |error| self.fault(&Failure::rpc(error));
        if self.source().lifecycle == Lifecycle::Transient {
            let why = "this server is started for each call, so its resources cannot be watched";
            return Err(rpc_fault(RpcError::new(RpcError::METHOD_NOT_FOUND, why)));
        }
        self.session(&mut Reached::default()).await?.is_watching(uri).await.map_err(rpc_fault)
    }

    /// Sends a request under the timeouts of this source and settles the permit. Retries once if the connection was
    /// lost and nothing was sent, or if the tool may be repeated.
    pub(crate) async fn ask(&self, permit: Permit, ask: SourceRequest<'_>) -> Result<Raw, Arc<Fault>> {
        let mut reached = Reached::default();
        let mut answer = self.ask_once(&ask, &mut reached).await;
        if let Err(fault) = &answer
            && self.can_retry(fault, &ask)
        {
            answer = self.ask_once(&ask, &mut reached).await;
        }
        self.settle(permit, answer.as_ref().err(), reached);
        answer
    }

    /// Records what the outcome of a request shows about the health of the source. A failure that several requests
    /// share counts once.
    pub(crate) fn settle(&self, permit: Permit, fault: Option<&Arc<Fault>>, reached: Reached) {
        let verdict = verdict(fault);
        self.record_health(verdict, fault, &reached);
        let incident = fault.and_then(|it| reached.incident(it));
        // A probe always counts: no other call can close or open the breaker while the probe is in flight.
        let counts = permit.is_probe() || incident.is_none_or(|it| it.claim_for_breaker());
        permit.settle(if counts { verdict } else { Verdict::Unknown });
        // Once the breaker is open, the failing session is retired so that the probe starts a new server.
        let is_open = !matches!(self.circuit_breaker.snapshot().state, BreakerState::Closed { .. });
        if verdict == Verdict::Failed
            && is_open
            && let Some(session) = reached.session()
        {
            // Only the keeper of this session reacts.
            self.handshake_sessions.iter().for_each(|it| it.retire(Some(session.clone())));
            self.keeper.retire(Some(session));
        }
    }

    /// Records the outcome of a listing. Without a permit no caller waited for it, and the breaker does not change. A
    /// successful listing does not show that the tools work, so it does not reset the failure count.
    pub(crate) fn settle_listing(
        &self,
        permit: Option<Permit>,
        fault: Option<&Arc<Fault>>,
        reached: Reached,
    ) {
        match (fault, permit) {
            (Some(fault), Some(permit)) => self.settle(permit, Some(fault), reached),
            (Some(_), None) => self.record_health(verdict(fault), fault, &reached),
            (None, _) if self.circuit_breaker.snapshot().failures == 0 => {
                self.publisher.record_verdict(Verdict::Healthy)
            }
            (None, _) => self.publisher.record_response(),
        }
    }

    fn record_health(&self, verdict: Verdict, fault: Option<&Arc<Fault>>, reached: &Reached) {
        let incident = fault.and_then(|it| reached.incident(it));
        if verdict != Verdict::Failed || incident.is_none_or(|it| it.claim_for_health()) {
            self.publisher.record_verdict(verdict);
        }
    }

    /// Sends the request once and records in `reached` whether it got a session.
    async fn ask_once(&self, ask: &SourceRequest<'_>, reached: &mut Reached) -> Result<Raw, Arc<Fault>> {
        if ask.caller.is_some_and(|it| it.takes_requests)
            && let Some(handshake_sessions) = &self.handshake_sessions
        {
            // Boxed, so that the future of other requests stays small.
            return Box::pin(self.ask_with_requests(ask, handshake_sessions, reached)).await;
        }
        let since = std::time::Instant::now();
        let session = ask.by.wait(pin!(self.session(reached))).await;
        ask.running.inspect(|it| it.waited_for_session(since));
        let session = session.unwrap_or_else(|| Err(self.deadline_exceeded()))?;
        self.send(ask, &session).await
    }

    /// Sends the request of a client that takes requests: in the handshake era if the server offers both.
    async fn ask_with_requests(
        &self,
        ask: &SourceRequest<'_>,
        handshake_sessions: &HandshakeSessions,
        reached: &mut Reached,
    ) -> Result<Raw, Arc<Fault>> {
        let chosen = self.session_with_requests(handshake_sessions, reached);
        let session = ask.by.wait(pin!(chosen)).await;
        let session = session.unwrap_or_else(|| Err(self.deadline_exceeded()))?;
        let answer = self.send(ask, &session).await;
        let is_additional = self.keeper.open_session().is_none_or(|it| !Arc::ptr_eq(&it, &session));
        match answer {
            Err(fault) if is_additional && needs_input_rounds(&fault) => {
                let session = ask.by.wait(pin!(self.session(reached))).await;
                let session = session.unwrap_or_else(|| Err(self.deadline_exceeded()))?;
                self.send(ask, &session).await
            }
            answer => answer,
        }
    }

    /// Returns the main session, or one of the handshake era if the main session uses 2026-07-28.
    async fn session_with_requests(
        &self,
        handshake_sessions: &HandshakeSessions,
        reached: &mut Reached,
    ) -> Result<Arc<SharedSession>, Arc<Fault>> {
        let last_era = || self.publisher.status().0.era;
        let era = match self.keeper.open_session().map_or_else(last_era, |it| Some(it.terms().era)) {
            Some(era) => era,
            None => self.session(reached).await?.terms().era,
        };
        if era == Era::Modern
            && let Some(session) = handshake_sessions.session().await
        {
            *reached = Reached::Session(session.clone());
            return Ok(session);
        }
        self.session(reached).await
    }

    async fn send(&self, ask: &SourceRequest<'_>, session: &SharedSession) -> Result<Raw, Arc<Fault>> {
        let request = self.with_deadline(ask.request(), ask.by);
        let request = match ask.caller {
            Some(caller) => self.upstream.on_behalf(request, caller),
            None => request,
        };
        let request = match ask.trace {
            // Our request is a child span of the caller's request.
            Some(trace) => request.traced(&trace.traceparent(), trace.state.as_deref()),
            None => request,
        };
        let answer = session.request(request).await.and_then(require_object);
        let answer = match ask.caller {
            Some(caller) if caller.era() != session.terms().era => translate(answer, caller.era()),
            _ => answer,
        };
        answer.map_err(|failure| self.fault(&failure))
    }

    /// Sets the deadline of a request. A caller's timeout is a hard limit; the source's timeouts allow for progress.
    fn with_deadline(&self, request: Request, by: Deadline) -> Request {
        let timeouts = self.source().timeouts;
        match by.0 {
            Some(by) => request.deadline(by),
            None => request.deadline(Instant::now() + timeouts.total).idle_timeout(timeouts.request),
        }
    }

    fn can_retry(&self, fault: &Fault, ask: &SourceRequest<'_>) -> bool {
        let lost =
            fault.kind == FaultKind::Connection && fault.phase == Stage::Call && fault.status.is_none();
        lost && (fault.sent == Sent::No || ask.tool.is_some_and(|it| self.is_retryable(it)))
    }

    fn is_retryable(&self, tool: &ToolEntry) -> bool {
        let id = tool.id();
        self.repeatable.iter().any(|it| it.matches(&id))
    }

    fn breaker_open(&self, wait: Duration) -> Fault {
        let source = self.source();
        let name = source.name.shown();
        let cause = match wait.is_zero() {
            true => {
                format!(
                    "the circuit breaker for `{name}` is open after repeated failures; a probe is in progress"
                )
            }
            false => format!(
                "the circuit breaker for `{name}` is open after repeated failures; next try in {:.0} s",
                wait.as_secs_f64().ceil()
            ),
        };
        let last = self.publisher.status().0.fault;
        let last = last.map(|it| format!("; last failure: {}", it.cause)).unwrap_or_default();
        let hint = format!("`wharf doctor` shows what is wrong with `{name}`");
        let fault = Fault::local(FaultKind::BreakerOpen, Stage::Admit, cause + &last, Some(hint));
        let retry_after = Some(wait.max(Duration::from_secs(1)));
        Fault::with_source(source, Fault { retry_after, ..fault })
    }
}

impl std::fmt::Debug for Coordination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "shared" } else { "alone" })
    }
}

/// Checks that the result is an object, as MCP requires for every result.
fn require_object(result: Raw) -> Result<Raw, Failure> {
    if result.is_object() { Ok(result) } else { Err(Failure::protocol("the result is not an object")) }
}

/// Derives the breaker verdict from a fault. Only the source's own failures count. A server that answers with a
/// JSON-RPC error is reachable, so that counts as healthy, except for an internal error.
fn verdict(fault: Option<&Arc<Fault>>) -> Verdict {
    let Some(fault) = fault else { return Verdict::Healthy };
    let code = fault.rpc.as_ref().map(|it| it.code);
    match fault.kind {
        FaultKind::Connection if matches!(fault.status, Some(401 | 403)) => Verdict::Unknown,
        FaultKind::Protocol if code == Some(RpcError::INTERNAL) => Verdict::Unknown,
        FaultKind::Protocol if code.is_some() => Verdict::Healthy,
        // The caller's deadline expired before the request was sent, which shows nothing about the source.
        FaultKind::Timeout if fault.phase == Stage::Admit => Verdict::Unknown,
        // The server answered every poll; its task, or the client's input, took too long.
        FaultKind::Timeout if fault.sent == Sent::Yes => Verdict::Healthy,
        FaultKind::Connection | FaultKind::Timeout | FaultKind::Protocol => Verdict::Failed,
        FaultKind::ToolNotFound => Verdict::Healthy,
        FaultKind::Quarantined
        | FaultKind::Disabled
        | FaultKind::LockMismatch
        | FaultKind::ResultNotFound
        | FaultKind::NotRecorded
        | FaultKind::Arguments
        | FaultKind::BreakerOpen
        | FaultKind::ProcessLimitReached
        | FaultKind::NotReady
        | FaultKind::Closing
        | FaultKind::Abandoned => Verdict::Unknown,
    }
}
