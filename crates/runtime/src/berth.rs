//! Where a source lies while the runtime runs: its keeper, its gate, its board.

use crate::{
    Fault, FaultKind, Redactor, Trace,
    arbiter::{Arbiter, Ruling},
    board::Board,
    breaker::{Breaker, Gate, GateState, Permit, Verdict},
    call::{Call, Caller, Deadline, OnProgress},
    catalog::ToolEntry,
    config::{Lifecycle, Source},
    events::{Bus, Happening},
    fault::Stage,
    glob::Glob,
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
use wharf_mcp::{Failure, Raw, Request, RpcError, Sent, session::Progress};

/// Who rules over the gate besides the calls that pass it.
struct Rulings(Option<Arc<dyn Arbiter>>);

/// One source, alive.
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

/// How a source is doing, as a whole.
#[derive(Clone, Debug)]
pub struct SourceState {
    /// What it is.
    pub source: Arc<Source>,
    /// Its session and health.
    pub standing: Standing,
    /// Its connection.
    pub connection: ConnectionState,
    /// Its breaker.
    pub gate: GateState,
    /// How many requests its present session has not had an answer to.
    pub unanswered: usize,
}

impl Berth {
    /// A berth and the task that keeps it.
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
            // What was not read while it rested may be read again.
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

    /// A failure of this source, in the user's words.
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

    /// Ends its server, and refuses to start another.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Lets the present server go and forgets its failures; the next call starts another.
    pub(crate) fn restart(&self) {
        self.keeper.retire(None);
        self.gate.reset();
    }

    /// Leave to ask this source something.
    pub(crate) async fn admit(&self) -> Result<Permit, Arc<Fault>> {
        let permit = self.gate.admit().map_err(|wait| Arc::new(self.resting(wait)))?;
        match &self.arbiter.0 {
            Some(arbiter) if permit.is_probe() => self.ruled(permit, arbiter.may_probe(self.name()).await),
            _ => Ok(permit),
        }
    }

    /// The same for a caller who waits no longer than that. To agree with other gateways about a probe takes a while.
    pub(crate) async fn admit_by(&self, by: Deadline) -> Result<Permit, Arc<Fault>> {
        by.wait(pin!(self.admit())).await.unwrap_or_else(|| Err(self.too_late()))
    }

    fn too_late(&self) -> Arc<Fault> {
        Arc::new(Fault::before(self.source(), Fault::too_late()))
    }

    /// A probe, if others who call this source let us have it.
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

    /// Takes what others who call this source have found out about it.
    pub(crate) fn follow(&self, breaker: Breaker) {
        if let Some(breaker) = self.gate.follow(breaker) {
            self.board.broke(breaker);
            // What was not read while it rested may be read again.
            self.stale.stir();
        }
    }

    /// Returns an open session, or why there is none; `reached` notes which of the two.
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

    /// Returns a session for work that nobody asked for: to be used for it does not keep a server from being stopped as
    /// idle.
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

    /// Whether its server was stopped because nobody used it, and has not been started since.
    pub(crate) fn is_stopped_as_idle(&self) -> bool {
        self.keeper.is_stopped_as_idle()
    }

    /// From now on, hears of changes of these resources and of no others.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        self.keeper.watch(uris);
    }

    /// Waits until changes of a resource are heard of. Its server is started if need be.
    pub(crate) async fn is_watching(&self, uri: &str) -> Result<(), Arc<Fault>> {
        let refused = |error| self.fault(&Failure::rpc(error));
        if self.source().lifecycle == Lifecycle::Transient {
            let why = "this server is started for each call, so there is nobody to hear of changes from";
            return Err(refused(RpcError::new(RpcError::METHOD_NOT_FOUND, why)));
        }
        self.session(&mut Reached::default()).await?.is_watching(uri).await.map_err(refused)
    }

    /// Asks, under the rules of this source: its breaker, its timeouts, one more try where nothing was sent.
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

    /// Records what an answer, or its absence, has shown about the source. A failure that others see too counts once.
    pub(crate) fn settle(&self, permit: Permit, fault: Option<&Arc<Fault>>, reached: Reached) {
        let verdict = verdict(fault);
        self.note_health(verdict, fault, &reached);
        let incident = fault.and_then(|it| reached.incident(it));
        // A probe always decides: nobody else can while it is out.
        let counts = permit.is_probe() || incident.is_none_or(|it| it.claim_for_breaker());
        permit.settle(if counts { verdict } else { Verdict::Unknown });
        // A server that fails every call is not asked again: the probe starts another.
        let is_open = !matches!(self.gate.state().breaker, Breaker::Closed { .. });
        if verdict == Verdict::Failed
            && is_open
            && let Some(session) = reached.session()
        {
            self.keeper.retire(Some(session));
        }
    }

    /// Records the same of lists that were read. Without a permit nobody waited for them, and the breaker does not move.
    /// That a server lists its tools does not show that they work: it ends no run of failed calls.
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

    /// Asks, and notes in `reached` how far that got.
    async fn ask_once(&self, ask: &Ask<'_>, reached: &mut Reached) -> Result<Raw, Arc<Fault>> {
        let session = ask.by.wait(pin!(self.session(reached))).await;
        let session = session.unwrap_or_else(|| Err(self.too_late()))?;
        let request = self.timed(ask.request(), ask.by);
        let request = match ask.caller {
            Some(caller) => self.upstream.on_behalf(request, caller),
            None => request,
        };
        let request = match ask.trace {
            // The caller's own span is that of another request: ours is part of it.
            Some(trace) => request.traced(&trace.traceparent(), trace.state.as_deref()),
            None => request,
        };
        session.request(request).await.and_then(object).map_err(|failure| self.fault(&failure))
    }

    /// What the caller allows is a limit; what the source allows is moved by progress.
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

/// Something to be asked, more than once if need be.
pub(crate) struct Ask<'a> {
    /// What is asked.
    pub(crate) method: Method<'a>,
    /// When it is too late, where the caller says so.
    pub(crate) by: Deadline,
    /// The tool, if it is one.
    pub(crate) tool: Option<&'a ToolEntry>,
    /// Told how far it has got.
    pub(crate) on_progress: Option<Arc<Mutex<OnProgress>>>,
    /// Who it is asked for.
    pub(crate) caller: Option<&'a Caller>,
    /// The span that it is.
    pub(crate) trace: Option<&'a Trace>,
}

/// What can be asked.
pub(crate) enum Method<'a> {
    /// A tool by its name on the wire.
    Tool(&'a str, Option<&'a Raw>),
    /// A prompt by its name on the wire.
    Prompt(&'a str, Option<&'a Raw>),
    /// A resource.
    Resource(&'a str),
    /// Anything else, passed on as it is.
    Other(&'a str, Option<&'a Raw>),
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method<'a>) -> Ask<'a> {
        Ask { method, by: Deadline::default(), tool: None, on_progress: None, caller: None, trace: None }
    }

    /// A call of this tool.
    pub(crate) fn tool(tool: &'a ToolEntry, call: &'a mut Call, by: Deadline) -> Ask<'a> {
        let on_progress = call.on_progress.take().map(|it| Arc::new(Mutex::new(it)));
        let method = Method::Tool(&tool.wire_name, call.arguments.as_ref());
        let (caller, trace) = (call.caller.as_ref(), call.trace.as_ref());
        Ask { method, by, tool: Some(tool), on_progress, caller, trace }
    }

    /// The same, for somebody.
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

/// Every result of this protocol is an object, whatever else is in it.
fn object(result: Raw) -> Result<Raw, Failure> {
    if result.is_object() { Ok(result) } else { Err(Failure::protocol("the result is not an object")) }
}

/// The teller of one try among others, of which only one is under way at a time.
fn shared(told: &Arc<Mutex<OnProgress>>) -> impl FnMut(Progress) + Send + 'static {
    let told = told.clone();
    move |at| told.lock().unwrap_or_else(PoisonError::into_inner)(&at)
}

/// Only the source's own failures count against it. One that answers with an error is there, and speaks.
fn verdict(fault: Option<&Arc<Fault>>) -> Verdict {
    let Some(fault) = fault else { return Verdict::Healthy };
    match fault.kind {
        FaultKind::Connection if matches!(fault.status, Some(401 | 403)) => Verdict::Unknown,
        FaultKind::Protocol if fault.rpc.as_ref().is_some_and(|it| it.code != RpcError::INTERNAL) => {
            Verdict::Healthy
        }
        FaultKind::Protocol if fault.rpc.is_some() => Verdict::Unknown,
        // A caller who had no time for it has learnt nothing about it.
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
