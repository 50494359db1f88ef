//! Owns everything that runs: one berth per source, the curator, the observers.
//!
//! [`Runtime::start`] starts it, [`Runtime::shutdown`] ends it and waits until nothing is left. Everybody else holds a
//! [`Handle`], which outlives the runtime harmlessly: its calls are then refused.

use crate::{
    Fault, FaultKind,
    berth::{Ask, Berth, Method, SourceState},
    breaker::Breaker,
    call::{Call, CallRecord, Caller, Deadline},
    catalog::{Absent, Catalog, Discovery, SwitchedOff, ToolEntry},
    config::{Plan, Source},
    curator::{Curator, Fleet},
    events::{AbandonedCalls, Bus, Events},
    executor::{Closing, Executor, InFlight},
    fault::Stage,
    tuning::Tuning,
    upstream::Ground,
};
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time,
};
use wharf_mcp::{Raw, session::List};

/// How long calls may take to notice that they are given up.
const CUT_OFF: Duration = Duration::from_secs(1);

/// How long a prompt waits for servers that are starting, one of which may have it.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Everything that runs.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    tuning: Tuning,
    closing: watch::Sender<Closing>,
    stirred: Arc<Notify>,
    /// The curator takes the sources from here; dropping it ends the curator.
    fleet: watch::Sender<Fleet>,
    tasks: Mutex<JoinSet<()>>,
    observers: JoinSet<()>,
}

/// What others get: a way to call tools and to see what there is.
#[derive(Clone, Debug)]
pub struct Handle {
    executor: Arc<Executor>,
}

/// What became of the sources when a plan was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// New, or changed.
    pub started: Vec<String>,
    /// Gone, or changed.
    pub stopped: Vec<String>,
    /// As before; their calls have not noticed.
    pub kept: Vec<String>,
}

impl Runtime {
    /// Starts the sources of a plan. Comes back at once: they connect by themselves, all at the same time.
    pub fn start(plan: &Plan, ground: &Ground, tuning: Tuning) -> Runtime {
        let (catalog_writer, catalog) = watch::channel(Arc::new(Catalog::default()));
        let (closing, closed) = watch::channel(Closing::Open);
        let (fleet, berths) = watch::channel(Fleet::default());
        let stirred = Arc::<Notify>::default();
        let (switched, switches) = watch::channel(Arc::<SwitchedOff>::default());
        let (lists, retries) = (tuning.lists.clone(), tuning.background_retries);
        let task = Curator::new(catalog_writer, berths.clone(), stirred.clone(), switches, lists, retries);
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        let bus = Bus::default();
        let observers = observe(&tuning, &bus, &closed);
        let in_flight = InFlight::default();
        let (absent, _) = watch::channel(Arc::<Absent>::default());
        let executor = Executor { catalog, fleet: berths, switched, absent, closing: closed, bus, in_flight };
        let handle = Handle { executor: Arc::new(executor) };
        let tasks = Mutex::new(tasks);
        let runtime = Runtime { handle, tuning, closing, stirred, fleet, tasks, observers };
        runtime.apply(plan, ground);
        runtime
    }

    /// What others get.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Goes over to another plan: what has not changed goes on undisturbed.
    pub fn apply(&self, plan: &Plan, ground: &Ground) -> Applied {
        let mut applied = Applied::default();
        self.fleet.send_modify(|fleet| self.change(fleet, plan, ground, &mut applied));
        applied
    }

    fn change(&self, fleet: &mut Fleet, plan: &Plan, ground: &Ground, applied: &mut Applied) {
        let mut before = std::mem::take(&mut fleet.berths);
        fleet.edition += 1;
        for source in &plan.sources {
            let name = source.name.shown().to_owned();
            let same = before.iter().position(|it| **it.source() == *source);
            fleet.berths.push(match same {
                Some(at) => {
                    applied.kept.push(name);
                    before.remove(at)
                }
                None => {
                    applied.started.push(name);
                    self.moor(source, ground)
                }
            });
        }
        for berth in before {
            applied.stopped.push(berth.source().name.shown().to_owned());
            berth.stop();
        }
    }

    fn moor(&self, source: &Source, ground: &Ground) -> Arc<Berth> {
        let bus = self.handle.executor.bus.clone();
        let (berth, task) =
            Berth::new(Arc::new(source.clone()), ground, &self.tuning, bus, self.stirred.clone());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
        drop(tasks);
        berth
    }

    /// Takes no new calls from now on, and waits until none is out, but no longer than `grace`.
    pub async fn drain(&self, grace: Duration) {
        self.closing.send_replace(Closing::Draining);
        let _ = time::timeout(grace, self.handle.executor.in_flight.none()).await;
    }

    /// Ends everything: no new calls, those that are out have `grace` to be answered, then every server is stopped.
    pub async fn shutdown(self, grace: Duration) {
        let Runtime { handle, closing, fleet, tasks, mut observers, .. } = self;
        closing.send_replace(Closing::Draining);
        let in_flight = &handle.executor.in_flight;
        if time::timeout(grace, in_flight.none()).await.is_err() {
            closing.send_replace(Closing::Over);
            // A call that somebody has begun and waits for no longer does not hear of it.
            let _ = time::timeout(CUT_OFF, in_flight.none()).await;
        }
        fleet.borrow().berths.iter().for_each(|it| it.stop());
        drop(fleet);
        let mut tasks = tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        while tasks.join_next().await.is_some() {}
        closing.send_replace(Closing::Gone);
        while observers.join_next().await.is_some() {}
    }
}

impl Handle {
    /// Calls a tool. There is a record of every call, and it holds what came of it.
    pub async fn call(&self, call: Call) -> Arc<CallRecord> {
        self.executor.execute(call).await
    }

    /// What all sources offer at this moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.executor.catalog.borrow().clone()
    }

    /// The tools of all sources.
    pub fn tools(&self) -> Vec<Arc<ToolEntry>> {
        self.catalog().tools.clone()
    }

    /// The catalog, and every later one.
    pub fn catalogs(&self) -> watch::Receiver<Arc<Catalog>> {
        self.executor.catalog.clone()
    }

    /// Waits until every source that is listed at the start has been heard or has failed.
    pub async fn settled(&self) -> Arc<Catalog> {
        self.executor.catalog_when(Catalog::is_settled).await
    }

    /// Fills in a prompt: the `GetPromptResult`, as the server gave it.
    pub async fn prompt(&self, name: &str, arguments: Option<&Raw>) -> Result<Raw, Arc<Fault>> {
        self.executor.until_over(pin!(self.fill_in(name, arguments, None))).await
    }

    /// The same, for somebody who has a say in it.
    pub async fn prompt_for(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Option<&Raw>,
    ) -> Result<Raw, Arc<Fault>> {
        self.executor.until_over(pin!(self.fill_in(name, arguments, Some(caller)))).await
    }

    async fn fill_in(
        &self,
        name: &str,
        arguments: Option<&Raw>,
        caller: Option<&Caller>,
    ) -> Result<Raw, Arc<Fault>> {
        let by = Deadline::after(Some(PROMPT_TIMEOUT));
        let known = |it: &Catalog| it.prompt(name).is_some() || it.is_settled();
        let catalog = by.wait(pin!(self.executor.catalog_when(known))).await;
        let catalog = catalog.ok_or_else(|| Arc::new(Fault::too_late()))?;
        let prompt = catalog.prompt(name).ok_or_else(|| {
            let cause = format!("there is no prompt '{name}'");
            not_found(cause, "`wharf prompts` lists what there is")
        })?;
        let permit = prompt.berth.admit_by(by).await?;
        let ask = Ask::new(Method::Prompt(&prompt.prompt.name, arguments)).on_behalf(caller);
        prompt.berth.ask(permit, ask).await
    }

    /// Asks one source something that is neither a tool nor a prompt: `resources/read`, `completion/complete`.
    pub async fn ask(&self, source: &str, method: &str, params: Option<&Raw>) -> Result<Raw, Arc<Fault>> {
        self.put(source, Ask::new(Method::Other(method, params))).await
    }

    /// Reads a resource of one source: the `ReadResourceResult`, as the server gave it.
    pub async fn read(&self, source: &str, uri: &str) -> Result<Raw, Arc<Fault>> {
        self.put(source, Ask::new(Method::Resource(uri))).await
    }

    /// [`Handle::ask`], for somebody who has a say in it.
    pub async fn ask_for(
        &self,
        caller: &Caller,
        source: &str,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<Raw, Arc<Fault>> {
        self.put(source, Ask::new(Method::Other(method, params)).on_behalf(Some(caller))).await
    }

    /// The same, for somebody who has a say in it.
    pub async fn read_for(&self, caller: &Caller, source: &str, uri: &str) -> Result<Raw, Arc<Fault>> {
        self.put(source, Ask::new(Method::Resource(uri)).on_behalf(Some(caller))).await
    }

    /// From now on, hears of changes of these resources of a source and of no others, also from servers that are started
    /// later. What is heard is told as [`Happening::ResourceUpdated`](crate::Happening::ResourceUpdated).
    pub fn watch(&self, source: &str, uris: BTreeSet<String>) -> Result<(), Arc<Fault>> {
        self.berth(source).map(|it| it.watch(uris))
    }

    /// Waits until changes of a resource that is wanted are heard of; its server is started if need be.
    pub async fn is_watching(&self, source: &str, uri: &str) -> Result<(), Arc<Fault>> {
        let berth = self.berth(source)?;
        self.executor.until_over(pin!(berth.is_watching(uri))).await
    }

    async fn put(&self, source: &str, ask: Ask<'_>) -> Result<Raw, Arc<Fault>> {
        let asking = async {
            let berth = self.berth(source)?;
            let permit = berth.admit().await?;
            berth.ask(permit, ask).await
        };
        self.executor.until_over(pin!(asking)).await
    }

    /// How every source is doing, in their order.
    pub fn sources(&self) -> Vec<SourceState> {
        self.executor.fleet.borrow().berths.iter().map(|it| it.state()).collect()
    }

    /// Has a source's lists read again, and waits until they are.
    pub async fn refresh(&self, source: &str) -> Result<Arc<Catalog>, Arc<Fault>> {
        self.executor.refresh(&self.berth(source)?).await;
        Ok(self.catalog())
    }

    /// Has a list read again, some time soon, of those sources that have said that theirs is good for so long and no
    /// longer.
    pub fn renew(&self, list: List) {
        let catalog = self.catalog();
        let over = catalog.pages.iter().filter(|it| it.fresh.get(list).is_some_and(|it| it.is_over()));
        over.for_each(|it| it.berth.stale().mark(list));
    }

    /// Lets a source's server go and forgets its failures; the next call starts another.
    pub fn restart(&self, source: &str) -> Result<(), Arc<Fault>> {
        self.berth(source).map(|it| it.restart())
    }

    /// Closes a source's breaker.
    pub fn reset(&self, source: &str) -> Result<(), Arc<Fault>> {
        self.berth(source).map(|it| it.gate().reset())
    }

    /// Waits until this source has been heard or has failed, if there is one.
    pub async fn heard(&self, source: &str) -> Arc<Catalog> {
        let heard = |it: &Catalog| !matches!(it.discovery(source), Some(Discovery::Pending));
        self.executor.catalog_when(heard).await
    }

    /// From now on, callers of exactly these sources are told why they cannot be used. None of them is in the plan.
    pub fn leave_out(&self, absent: Absent) {
        self.executor.absent.send_replace(Arc::new(absent));
    }

    /// Takes what others who call the same source have found out: whether it rests. The arbiter does not hear of it.
    pub fn follow(&self, source: &str, breaker: Breaker) -> Result<(), Arc<Fault>> {
        self.berth(source).map(|it| it.follow(breaker))
    }

    /// Switches exactly these tools off, also those that nobody has listed yet.
    pub fn switch_off(&self, tools: SwitchedOff) {
        self.executor.switched.send_replace(Arc::new(tools));
    }

    /// Switches one tool, `source:tool`, off for a reason, or on again; comes back when the catalog says so.
    pub async fn switch(&self, tool_id: &str, off: Option<String>) {
        self.executor.switched.send_modify(|it| {
            let tools = Arc::make_mut(it);
            match off.clone() {
                Some(reason) => _ = tools.insert(tool_id.to_owned(), reason),
                None => _ = tools.remove(tool_id),
            }
        });
        let says_so = |it: &Catalog| it.tool(tool_id).is_none_or(|it| it.disabled == off);
        self.executor.catalog_when(says_so).await;
    }

    /// What happens from now on.
    pub fn events(&self) -> Events {
        self.executor.bus.listen(self.executor.closing.clone())
    }

    /// The same without the daily business: no progress, and no calls but those whose callers left before the answer.
    /// Who needs no more should listen to this, because it costs nothing while calls go well.
    pub fn changes(&self) -> Events {
        self.executor.bus.listen_to_changes(self.executor.closing.clone())
    }

    /// The calls whose callers leave before there is an answer, from now on: every one of them, unlike [`Handle::changes`],
    /// where a slow listener misses some. Only the first who asks gets them.
    pub fn abandoned_calls(&self) -> AbandonedCalls {
        self.executor.bus.take_abandoned(self.executor.closing.clone())
    }

    /// How many calls are out.
    pub fn in_flight(&self) -> usize {
        self.executor.in_flight.count()
    }

    fn berth(&self, source: &str) -> Result<Arc<Berth>, Arc<Fault>> {
        let found = self.executor.fleet.borrow().berths.iter().find(|it| &**it.name() == source).cloned();
        found.ok_or_else(|| {
            not_found(format!("there is no source '{source}'"), "`wharf tools` lists what there is")
        })
    }
}

/// One task per observer, each at its own pace, until everything that happened has been told.
fn observe(tuning: &Tuning, bus: &Bus, closed: &watch::Receiver<Closing>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for observer in tuning.observers.clone() {
        let mut events = bus.listen(closed.clone());
        tasks.spawn(async move {
            while let Some(event) = events.next().await {
                observer.heard(&event);
            }
        });
    }
    tasks
}

fn not_found(cause: String, hint: &str) -> Arc<Fault> {
    Arc::new(Fault::ours(FaultKind::ToolNotFound, Stage::Resolve, cause, Some(hint.to_owned())))
}
