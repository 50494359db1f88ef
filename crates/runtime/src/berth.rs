//! Runs one source: owns its session keeper (`Keeper`), its circuit breaker (`Gate`) and its status (`Board`).
//!
//! Sends requests under the timeout, retry and breaker rules of the source. Does not know how tools are resolved or
//! how calls are recorded.

use crate::{
    Fault, FaultKind, Glob, Redactor, Trace,
    arbiter::{Arbiter, Ruling},
    board::Board,
    breaker::{Breaker, Gate, GateState, Permit, Verdict},
    call::{Call, Caller, Deadline, OnProgress},
    catalog::ToolEntry,
    events::{Bus, Happening},
    fault::Stage,
    incident::{ConnectFailure, Reached, SharedSession},
    keeper::{Keep, Keeper},
    stale::Stale,
    standing::{ConnectionState, Standing},
    tuning::Tuning,
    upstream::{Ground, Upstream},
};
use std::{
    collections::BTreeSet,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use wharf_config::{Lifecycle, Source};
use wharf_mcp::{Failure, Raw, Request, RpcError, Sent, session::Progress};

/// Coordinates breaker probes with other replicas, if configured.
struct Rulings(Option<Arc<dyn Arbiter>>);

/// One source at run time.
#[derive(Debug)]
pub(crate) struct Berth {
    upstream: Upstream,
    keeper: Keeper,
    gate: Arc<Gate>,
    arbiter: Rulings,
    board: Arc<Board>,
    stale: Arc<Stale>,
    repeatable: Vec<Glob>,
    stop: watch::Sender<bool>,
}

/// Complete state of one source.
#[derive(Clone, Debug)]
pub struct SourceState {
    /// The configuration of the source.
    pub source: Arc<Source>,
    /// Session and health.
    pub standing: Standing,
    /// State of the connection.
    pub connection: ConnectionState,
    /// State of the circuit breaker.
    pub gate: GateState,
    /// Number of requests the current session has not answered yet.
    pub unanswered: usize,
}

impl Berth {
    /// Creates the active source and the task that maintains its session.
    pub(crate) fn new(
        source: Arc<Source>,
        ground: &Ground,
        tuning: &Tuning,
        bus: Bus,
        curator: Arc<Notify>,
    ) -> (Arc<Berth>, impl Future<Output = ()> + Send + 'static) {
        let name: Arc<str> = source.name.expose().into();
        let board = Arc::new(Board::new(name.clone(), bus, ground.redactor.clone()));
        let (told, nudged, arbiter) = (board.clone(), curator.clone(), tuning.arbiter.clone());
        let gate = Gate::new(tuning.breaker, move |breaker| {
            told.broke(breaker);
            if let Some(arbiter) = &arbiter {
                arbiter.turned(&name, breaker);
            }
            // Lists that were not read while the breaker was open may now be due.
            nudged.notify_one();
        });
        let stale = Arc::new(Stale::new(curator));
        let upstream = Upstream::new(source, ground.clone());
        let (stop, stopped) = watch::channel(false);
        let keep = Keep {
            upstream: upstream.clone(),
            board: board.clone(),
            stale: stale.clone(),
            consent: tuning.consent.clone(),
            idle_stop: tuning.idle_stop,
            stop: stopped,
        };
        let (keeper, task) = Keeper::new(keep);
        let (repeatable, arbiter) = (tuning.repeatable.clone(), Rulings(tuning.arbiter.clone()));
        (Arc::new(Berth { upstream, keeper, gate, arbiter, board, stale, repeatable, stop }), task)
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        self.upstream.shared_source()
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        self.board.name()
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        self.upstream.redactor()
    }

    /// Converts a failure of this source into a fault in the user's words.
    pub(crate) fn fault(&self, failure: &Failure) -> Arc<Fault> {
        Arc::new(self.upstream.fault(failure))
    }

    pub(crate) fn stale(&self) -> &Stale {
        &self.stale
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    pub(crate) fn tell(&self, what: Happening) {
        self.board.tell(what);
    }

    pub(crate) fn state(&self) -> SourceState {
        let (standing, connection) = self.board.standing();
        let (source, gate) = (self.source().clone(), self.gate.state());
        SourceState { source, standing, connection, gate, unanswered: self.keeper.unanswered() }
    }

    /// Stops the server permanently.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Retires the current session and resets the circuit breaker. The next call starts a new server.
    pub(crate) fn restart(&self) {
        self.keeper.retire(None);
        self.gate.reset();
    }

    /// Returns a permit for one request. Fails if the circuit breaker is open, or if another replica holds the probe.
    pub(crate) async fn admit(&self) -> Result<Permit, Arc<Fault>> {
        let permit = self.gate.admit().map_err(|wait| Arc::new(self.resting(wait)))?;
        match &self.arbiter.0 {
            Some(arbiter) if permit.is_probe() => self.ruled(permit, arbiter.may_probe(self.name()).await),
            _ => Ok(permit),
        }
    }

    /// Returns a permit, or a timeout fault at the deadline. Agreeing on a probe with other replicas can take a
    /// while.
    pub(crate) async fn admit_by(&self, by: Deadline) -> Result<Permit, Arc<Fault>> {
        by.wait(pin!(self.admit())).await.unwrap_or_else(|| Err(self.too_late()))
    }

    fn too_late(&self) -> Arc<Fault> {
        Arc::new(Fault::before(self.source(), Fault::too_late()))
    }

    /// Applies the arbiter's decision about a probe.
    fn ruled(&self, permit: Permit, ruling: Ruling) -> Result<Permit, Arc<Fault>> {
        let resting = |wait| Arc::new(self.resting(wait));
        match ruling {
            Ruling::Go => Ok(permit),
            Ruling::Closed => {
                self.follow(Breaker::Closed { failures: 0 });
                self.gate.admit().map_err(resting)
            }
            Ruling::Wait(wait) => {
                self.follow(Breaker::Open { until: Instant::now() + wait });
                Err(resting(wait))
            }
        }
    }

    /// Adopts the breaker state that another replica has determined for this source.
    pub(crate) fn follow(&self, breaker: Breaker) {
        if let Some(breaker) = self.gate.follow(breaker) {
            self.board.broke(breaker);
            // Lists that were not read while the breaker was open may now be due.
            self.stale.stir();
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
    pub(crate) async fn session_of_ours(
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

    /// Returns whether the server was stopped as idle and has not been started since.
    pub(crate) fn is_stopped_as_idle(&self) -> bool {
        self.keeper.is_stopped_as_idle()
    }

    /// Replaces the set of resources whose updates this source reports.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        self.keeper.watch(uris);
    }

    /// Waits until the subscription to a resource is active. Starts the server if necessary.
    pub(crate) async fn is_watching(&self, uri: &str) -> Result<(), Arc<Fault>> {
        let refused = |error| self.fault(&Failure::rpc(error));
        if self.source().lifecycle == Lifecycle::Transient {
            let why = "this server is started for each call, so there is nobody to hear of changes from";
            return Err(refused(RpcError::new(RpcError::METHOD_NOT_FOUND, why)));
        }
        self.session(&mut Reached::default()).await?.is_watching(uri).await.map_err(refused)
    }

    /// Sends a request under the timeouts of this source and settles the permit. Retries once if the connection was
    /// lost and nothing was sent, or if the tool may be repeated.
    pub(crate) async fn ask(&self, permit: Permit, ask: Ask<'_>) -> Result<Raw, Arc<Fault>> {
        let mut reached = Reached::default();
        let mut answer = self.ask_once(&ask, &mut reached).await;
        if let Err(fault) = &answer
            && self.may_repeat(fault, &ask)
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
        self.note_health(verdict, fault, &reached);
        let incident = fault.and_then(|it| reached.incident(it));
        // A probe always counts: no other call can close or open the breaker while the probe is in flight.
        let counts = permit.is_probe() || incident.is_none_or(|it| it.claim_for_breaker());
        permit.settle(if counts { verdict } else { Verdict::Unknown });
        // Once the breaker is open, the failing session is retired so that the probe starts a new server.
        let is_open = !matches!(self.gate.state().breaker, Breaker::Closed { .. });
        if verdict == Verdict::Failed
            && is_open
            && let Some(session) = reached.session()
        {
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
            (Some(_), None) => self.note_health(verdict(fault), fault, &reached),
            (None, _) if self.gate.state().failures == 0 => self.board.called(Verdict::Healthy),
            (None, _) => self.board.seen(),
        }
    }

    fn note_health(&self, verdict: Verdict, fault: Option<&Arc<Fault>>, reached: &Reached) {
        let incident = fault.and_then(|it| reached.incident(it));
        if verdict != Verdict::Failed || incident.is_none_or(|it| it.claim_for_health()) {
            self.board.called(verdict);
        }
    }

    /// Sends the request once and records in `reached` whether it got a session.
    async fn ask_once(&self, ask: &Ask<'_>, reached: &mut Reached) -> Result<Raw, Arc<Fault>> {
        let session = ask.by.wait(pin!(self.session(reached))).await;
        let session = session.unwrap_or_else(|| Err(self.too_late()))?;
        let request = self.timed(ask.request(), ask.by);
        let request = match ask.caller {
            Some(caller) => self.upstream.on_behalf(request, caller),
            None => request,
        };
        let request = match ask.trace {
            // Our request is a child span of the caller's request.
            Some(trace) => request.traced(&trace.traceparent(), trace.state.as_deref()),
            None => request,
        };
        session.request(request).await.and_then(object).map_err(|failure| self.fault(&failure))
    }

    /// Sets the deadline of a request. A caller's timeout is a hard limit; the source's timeouts allow for progress.
    fn timed(&self, request: Request, by: Deadline) -> Request {
        let timeouts = self.source().timeouts;
        match by.instant() {
            Some(by) => request.by(by),
            None => request.by(Instant::now() + timeouts.total).quiet_for(timeouts.request),
        }
    }

    fn may_repeat(&self, fault: &Fault, ask: &Ask<'_>) -> bool {
        let lost =
            fault.kind == FaultKind::Connection && fault.phase == Stage::Call && fault.status.is_none();
        lost && (fault.sent == Sent::No || ask.tool.is_some_and(|it| self.is_repeatable(it)))
    }

    fn is_repeatable(&self, tool: &ToolEntry) -> bool {
        let id = tool.id();
        self.repeatable.iter().any(|it| it.matches(&id))
    }

    fn resting(&self, wait: Duration) -> Fault {
        let source = self.source();
        let name = source.name.shown();
        let cause = match wait.is_zero() {
            true => {
                format!("`{name}` is resting after repeated failures; one call is trying whether it is back")
            }
            false => format!(
                "`{name}` is resting after repeated failures; it is tried again in {:.0} s",
                wait.as_secs_f64().ceil()
            ),
        };
        let last = self.board.standing().0.fault;
        let last = last.map(|it| format!("; the last failure was: {}", it.cause)).unwrap_or_default();
        let hint = format!("`wharf doctor` says what is wrong with `{name}`");
        let fault = Fault::ours(FaultKind::Resting, Stage::Admit, cause + &last, Some(hint));
        let retry_after = Some(wait.max(Duration::from_secs(1)));
        Fault::before(source, Fault { retry_after, ..fault })
    }
}

impl std::fmt::Debug for Rulings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "shared" } else { "alone" })
    }
}

/// A request to a source, which may be sent more than once.
pub(crate) struct Ask<'a> {
    /// Method and parameters.
    pub(crate) method: Method<'a>,
    /// The caller's deadline, if any.
    pub(crate) by: Deadline,
    /// The tool, for a tool call.
    pub(crate) tool: Option<&'a ToolEntry>,
    /// Callback for progress.
    pub(crate) on_progress: Option<Arc<Mutex<OnProgress>>>,
    /// The client on whose behalf the request is made.
    pub(crate) caller: Option<&'a Caller>,
    /// The trace span of the request.
    pub(crate) trace: Option<&'a Trace>,
}

/// Method and parameters of a request.
pub(crate) enum Method<'a> {
    /// Tool, by its name on the wire, and arguments.
    Tool(&'a str, Option<&'a Raw>),
    /// Prompt, by its name on the wire, and arguments.
    Prompt(&'a str, Option<&'a Raw>),
    /// URI of a resource.
    Resource(&'a str),
    /// Any other method and parameters, forwarded unchanged.
    Other(&'a str, Option<&'a Raw>),
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method<'a>) -> Ask<'a> {
        Ask { method, by: Deadline::default(), tool: None, on_progress: None, caller: None, trace: None }
    }

    /// Creates a request that calls `tool`.
    pub(crate) fn tool(tool: &'a ToolEntry, call: &'a mut Call, by: Deadline) -> Ask<'a> {
        let on_progress = call.on_progress.take().map(|it| Arc::new(Mutex::new(it)));
        let method = Method::Tool(&tool.wire_name, call.arguments.as_ref());
        let (caller, trace) = (call.caller.as_ref(), call.trace.as_ref());
        Ask { method, by, tool: Some(tool), on_progress, caller, trace }
    }

    /// Sets the client on whose behalf the request is made.
    pub(crate) fn on_behalf(self, caller: Option<&'a Caller>) -> Ask<'a> {
        Ask { caller, ..self }
    }

    fn request(&self) -> Request {
        let request = match &self.method {
            Method::Tool(name, arguments) => {
                let headers = self.tool.map(|it| it.header_params(*arguments)).unwrap_or_default();
                Request::call_tool(name, *arguments).header_params(headers)
            }
            Method::Prompt(name, arguments) => Request::get_prompt(name, *arguments),
            Method::Resource(uri) => Request::read_resource(uri),
            Method::Other(method, params) => {
                let request = Request::new((*method).to_owned());
                params.map_or(Request::new((*method).to_owned()), |it| request.params(it.clone()))
            }
        };
        match &self.on_progress {
            Some(told) => request.on_progress(shared(told)),
            None => request,
        }
    }
}

/// Checks that the result is an object, as MCP requires for every result.
fn object(result: Raw) -> Result<Raw, Failure> {
    if result.is_object() { Ok(result) } else { Err(Failure::protocol("the result is not an object")) }
}

/// Shares one progress callback between the attempts of a request. Only one attempt runs at a time.
fn shared(told: &Arc<Mutex<OnProgress>>) -> impl FnMut(Progress) + Send + 'static {
    let told = told.clone();
    move |at| told.lock().unwrap_or_else(PoisonError::into_inner)(&at)
}

/// Derives the breaker verdict from a fault. Only the source's own failures count. A server that answers with a
/// JSON-RPC error is reachable, so that counts as healthy, except for an internal error.
fn verdict(fault: Option<&Arc<Fault>>) -> Verdict {
    let Some(fault) = fault else { return Verdict::Healthy };
    match fault.kind {
        FaultKind::Connection if matches!(fault.status, Some(401 | 403)) => Verdict::Unknown,
        FaultKind::Protocol if fault.rpc.as_ref().is_some_and(|it| it.code != RpcError::INTERNAL) => {
            Verdict::Healthy
        }
        FaultKind::Protocol if fault.rpc.is_some() => Verdict::Unknown,
        // The caller's deadline expired before the request was sent, which shows nothing about the source.
        FaultKind::Timeout if fault.phase == Stage::Admit => Verdict::Unknown,
        FaultKind::Connection | FaultKind::Timeout | FaultKind::Protocol => Verdict::Failed,
        FaultKind::ToolNotFound => Verdict::Healthy,
        FaultKind::Quarantined
        | FaultKind::Disabled
        | FaultKind::Arguments
        | FaultKind::Resting
        | FaultKind::Crowded
        | FaultKind::NotReady
        | FaultKind::Closing
        | FaultKind::Abandoned => Verdict::Unknown,
    }
}
