//! Asks a model over HTTP: circuit breaker, retries, time limits and a bounded stream.
//!
//! A question returns a whole answer or an error. Dropping its future closes the connection.

mod address;
mod deltas;
mod model_breaker;
mod model_changes;
mod retry;

use crate::{
    answer::{Answer, AnswerEvent, AnswerReader, CallIds},
    dialect::Dialect,
    model::{
        AnswerLimits, ModelChanges, ModelOptions,
        trouble::{ProviderError, ProviderErrorKind, Trouble},
    },
    model_tape::ModelTape,
    provider::key_hint,
    toolbox::ToolboxCache,
    view::View,
};
use address::{request_headers, request_url};
use bytes::Bytes;
use deltas::DeltaRedactor;
pub use model_breaker::ModelBreaker;
use model_changes::apply_changes;
use reqwest::{Client, ClientBuilder, Response, header::HeaderMap, redirect::Policy};
use retry::{FIRST_DELAY, read_retry_after, retry_delay};
use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use url::Url;
use wharf_config::{BreakerPolicy, FaultEffect, Model};
use wharf_runtime::{CircuitBreaker, EgressPolicy, Redactor, Verdict};

/// Maximum time for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an error response that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Maximum wait for the usage that may follow a complete answer.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);
/// HTTP status of an injected error whose code is none.
const INJECTED_STATUS: u16 = 500;
/// Longest hold-off of an earlier 429 that a question waits for.
const MAX_HOLD_OFF: Duration = Duration::from_secs(60);

/// Part of an answer under way, for clients.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Text or reasoning.
    Delta(AnswerEvent),
    /// The text and reasoning since the last answer are void, because the question is asked again.
    Reset,
    /// The question is asked again after this time.
    Retry {
        /// Error of the last try.
        trouble: Trouble,
        /// Time until the next try.
        delay: Duration,
    },
}

/// Client for one model. Shared by all runs that use the model.
pub struct ModelClient {
    http: Client,
    url: Url,
    headers: HeaderMap,
    dialect: Dialect,
    options: ModelOptions,
    limits: AnswerLimits,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    first_delay: Duration,
    breaker: ModelBreaker,
    redactor: Arc<Redactor>,
    /// Advice if the provider refuses the key.
    key_hint: String,
    /// Time before which the provider does not want another request. Shared by all clients of the model.
    hold_off: Arc<Mutex<Option<Instant>>>,
    /// Tools in the form that the model gets. Shared like the above.
    toolboxes: Arc<ToolboxCache>,
    /// Whether a question that fails after a delta is not asked again.
    keeps_deltas: bool,
    tape: ModelTape,
}

impl ModelClient {
    /// Creates a client. The error says which setting cannot be used.
    pub fn new(
        model: &Model,
        key: Option<&str>,
        egress: Option<EgressPolicy>,
        redactor: Arc<Redactor>,
    ) -> Result<ModelClient, String> {
        let dialect = Dialect::of(model);
        let url = request_url(model, dialect).ok_or("'endpoint' is required for azure_openai")?;
        if egress.is_some_and(|it| !it.allows(&url)) {
            return Err("'endpoint' is an address that may not be contacted".to_owned());
        }
        let http = build_http(&url, egress).build().map_err(|error| root_cause(&error))?;
        let host = url.host_str().unwrap_or_default();
        let breaker_key = format!("model:{}:{host}", model.provider.as_str());
        Ok(ModelClient {
            http,
            url,
            headers: request_headers(model, key)?,
            dialect,
            options: ModelOptions::of(model),
            limits: AnswerLimits::default(),
            first_byte_timeout: model.timeout,
            idle_timeout: model.idle_timeout,
            first_delay: FIRST_DELAY,
            breaker: ModelBreaker::new(breaker_key.into(), BreakerPolicy::MODEL, None),
            redactor,
            key_hint: key_hint(model),
            hold_off: Arc::default(),
            toolboxes: Arc::default(),
            keeps_deltas: false,
            tape: ModelTape::default(),
        })
    }

    /// Returns the dialect of the model.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the options of the model.
    pub fn options(&self) -> &ModelOptions {
        &self.options
    }

    /// Returns the tools in the form that the model gets.
    pub(crate) fn toolboxes(&self) -> &ToolboxCache {
        &self.toolboxes
    }

    /// Returns the circuit breaker of the model.
    pub fn breaker(&self) -> &Arc<CircuitBreaker> {
        self.breaker.circuit_breaker()
    }

    /// Returns the key under which replicas share the breaker: the provider and its host.
    pub fn breaker_key(&self) -> &str {
        self.breaker.key()
    }

    /// Uses a breaker that other clients of the same host use too.
    #[must_use]
    pub fn with_breaker(mut self, breaker: ModelBreaker) -> ModelClient {
        self.breaker = breaker;
        self
    }

    /// Creates a client with other options, which shares the connections and the circuit breaker. The error names the
    /// option that the model's API does not have.
    pub fn with_changes(&self, changes: &ModelChanges) -> Result<ModelClient, &'static str> {
        let mut options = self.options.clone();
        apply_changes(changes, self.dialect, &mut options)?;
        Ok(ModelClient {
            http: self.http.clone(),
            url: self.url.clone(),
            headers: self.headers.clone(),
            dialect: self.dialect,
            options,
            limits: self.limits.clone(),
            first_byte_timeout: self.first_byte_timeout,
            idle_timeout: self.idle_timeout,
            first_delay: self.first_delay,
            breaker: self.breaker.clone(),
            redactor: self.redactor.clone(),
            key_hint: self.key_hint.clone(),
            hold_off: self.hold_off.clone(),
            toolboxes: self.toolboxes.clone(),
            keeps_deltas: changes.keeps_deltas,
            tape: self.tape.clone(),
        })
    }

    /// Records the questions and answers, or answers from a recording.
    #[must_use]
    pub fn with_tape(mut self, tape: ModelTape) -> ModelClient {
        self.tape = tape;
        self
    }

    /// Returns the tape of the model.
    pub fn tape(&self) -> &ModelTape {
        &self.tape
    }

    /// Replaces the limits of an answer.
    #[must_use]
    pub fn with_limits(mut self, limits: AnswerLimits) -> ModelClient {
        self.limits = limits;
        self
    }

    /// Replaces the delay before the first retry.
    #[must_use]
    pub fn with_first_delay(mut self, delay: Duration) -> ModelClient {
        self.first_delay = delay;
        self
    }

    /// Asks the model, or its recording, and returns the whole answer.
    pub async fn ask(
        &self,
        view: &View<'_>,
        ids: &mut CallIds,
        on_event: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, Trouble> {
        let turn = self.tape.begin(view, &self.options);
        let answer = match turn.as_ref().and_then(|it| self.tape.replay(it, ids)) {
            Some(answer) => {
                let answer = self.retry_after_faults(on_event).await.and(answer);
                let events = answer.iter().flat_map(|it| DeltaRedactor::whole(&self.redactor, it));
                events.for_each(|it| on_event(ModelEvent::Delta(it)));
                answer
            }
            None => self.ask_provider(view, ids, on_event).await,
        };
        if let Some(turn) = turn {
            self.tape.finish(turn, &answer);
        }
        answer
    }

    /// Fails like a provider, if a fault is to be injected into this attempt.
    async fn inject_fault(&self) -> Result<(), Trouble> {
        match self.tape.next_fault() {
            Some(FaultEffect::Delay(delay)) => sleep(*delay).await,
            Some(FaultEffect::RpcError { code, text }) => {
                let status = u16::try_from(*code).unwrap_or(INJECTED_STATUS);
                return Err(ProviderError::from_response(status, text.as_bytes()).into());
            }
            Some(_) => {
                sleep(self.first_byte_timeout).await;
                return Err(Trouble::NoFirstByte(self.first_byte_timeout));
            }
            None => {}
        }
        Ok(())
    }

    /// Injects faults before an answer from a recording, and tries again like with a provider.
    async fn retry_after_faults(&self, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<(), Trouble> {
        let mut retries = 0;
        while let Err(trouble) = self.inject_fault().await {
            let Some(delay) = retry_delay(&trouble, retries, self.first_delay, fastrand::f64()) else {
                return Err(trouble);
            };
            retries += 1;
            on_event(ModelEvent::Retry { trouble, delay });
            sleep(delay).await;
        }
        Ok(())
    }

    /// Asks the provider. Tries again where that may help.
    async fn ask_provider(
        &self,
        view: &View<'_>,
        ids: &mut CallIds,
        on_event: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, Trouble> {
        let permit =
            self.breaker.admit().await.map_err(|retry_after| Trouble::Unavailable { retry_after })?;
        self.wait_for_hold_off().await?;
        let answer = self.ask_with_retries(view, ids, on_event).await;
        permit.settle(match &answer {
            Ok(_) => Verdict::Healthy,
            Err(trouble) if trouble.is_breaker_failure() => Verdict::Failed,
            Err(trouble) if trouble.is_rate_limit() => Verdict::Unknown,
            Err(_) => Verdict::Healthy,
        });
        answer
    }

    async fn ask_with_retries(
        &self,
        view: &View<'_>,
        ids: &mut CallIds,
        on_event: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, Trouble> {
        let body = self.dialect.write(view, &self.options);
        for retries in 0.. {
            let mut has_deltas = false;
            let mut redactor = DeltaRedactor::new(&self.redactor);
            let mut tell = |event: AnswerEvent| {
                if let Some(event) = redactor.push(event) {
                    has_deltas = true;
                    on_event(ModelEvent::Delta(event));
                }
            };
            let trouble = match self.try_once(body.clone(), ids, &mut tell).await {
                Ok(answer) => {
                    redactor.finish().for_each(|event| on_event(ModelEvent::Delta(event)));
                    return Ok(answer);
                }
                Err(trouble) => self.describe(trouble),
            };
            self.note_hold_off(&trouble);
            if has_deltas {
                on_event(ModelEvent::Reset);
            }
            if has_deltas && self.keeps_deltas {
                return Err(trouble);
            }
            let Some(delay) = retry_delay(&trouble, retries, self.first_delay, fastrand::f64()) else {
                return Err(trouble);
            };
            on_event(ModelEvent::Retry { trouble, delay });
            sleep(delay).await;
        }
        Err(Trouble::Cut)
    }

    async fn try_once(
        &self,
        body: Bytes,
        ids: &mut CallIds,
        tell: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<Answer, Trouble> {
        self.inject_fault().await?;
        let first_byte_by = Instant::now() + self.first_byte_timeout;
        let no_first_byte = || Trouble::NoFirstByte(self.first_byte_timeout);
        let request = self.http.post(self.url.clone()).headers(self.headers.clone()).body(body).send();
        let response = timeout_at(first_byte_by, request).await.map_err(|_| no_first_byte())?;
        let mut response = response.map_err(|error| connect_trouble(&error))?;
        if !response.status().is_success() {
            return Err(self.read_error(response).await.into());
        }
        let first = timeout_at(first_byte_by, response.chunk()).await.map_err(|_| no_first_byte())?;
        self.read_answer(first, response, ids, tell).await
    }

    async fn read_answer(
        &self,
        first: reqwest::Result<Option<Bytes>>,
        mut response: Response,
        ids: &mut CallIds,
        tell: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<Answer, Trouble> {
        let mut reader = AnswerReader::new(self.dialect, self.limits.clone());
        let mut out = Vec::new();
        let mut next = Ok(first);
        let mut usage_by = None;
        loop {
            let trouble = match next {
                Ok(Ok(Some(chunk))) => reader.push(&chunk, &mut out).err(),
                Ok(Ok(None)) => break,
                // A connection that breaks after the end of the answer does not matter.
                Ok(Err(_)) | Err(_) if reader.is_over() => break,
                Ok(Err(_)) => Some(Trouble::Cut),
                Err(_) => Some(Trouble::Silent(self.idle_timeout)),
            };
            out.drain(..).for_each(&mut *tell);
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
            if reader.is_closed() {
                break;
            }
            let now = Instant::now();
            // Bytes that are no usage do not extend the wait for it.
            let until = match reader.is_over() {
                true => *usage_by.get_or_insert(now + USAGE_TIMEOUT),
                false => now + self.idle_timeout,
            };
            next = timeout_at(until, response.chunk()).await;
        }
        let answer = reader.finish(ids, &mut out);
        out.drain(..).for_each(tell);
        answer
    }

    /// Reads the beginning of an error response. One that breaks or takes too long is used as far as it came.
    async fn read_error(&self, mut response: Response) -> ProviderError {
        let status = response.status().as_u16();
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let retry_after = read_retry_after(header);
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES {
            match timeout(self.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                _ => break,
            }
        }
        body.truncate(MAX_ERROR_BYTES);
        ProviderError::from_response(status, &body).with_retry_after(retry_after)
    }

    /// Waits until the time that the provider named in an earlier 429, unless that is too long.
    async fn wait_for_hold_off(&self) -> Result<(), Trouble> {
        let held_until = *self.hold_off.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = held_until.filter(|it| *it > Instant::now()) else { return Ok(()) };
        let wait = until - Instant::now();
        if wait > MAX_HOLD_OFF {
            return Err(ProviderError::hold_off(wait).into());
        }
        sleep_until(until).await;
        Ok(())
    }

    fn note_hold_off(&self, trouble: &Trouble) {
        if let Some(wait) = trouble.retry_after().filter(|_| trouble.is_rate_limit()) {
            let until = Instant::now().checked_add(wait);
            *self.hold_off.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }

    /// Replaces secrets that a server repeated in its error, and adds advice about the key.
    fn describe(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Provider(mut error) => {
                error.message = self.redactor.redact(&error.message);
                error.hint = match error.kind {
                    ProviderErrorKind::Unauthorized => Some(self.key_hint.clone()),
                    _ => error.hint,
                };
                Trouble::Provider(error)
            }
            Trouble::NotEvents(beginning) => Trouble::NotEvents(self.redactor.redact(&beginning)),
            Trouble::Garbled(why) => Trouble::Garbled(self.redactor.redact(&why)),
            other => other,
        }
    }
}

fn build_http(url: &Url, egress: Option<EgressPolicy>) -> ClientBuilder {
    let mut http = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A key goes to the configured host only.
        .redirect(Policy::none())
        .no_proxy();
    if let Some(egress) = egress {
        http = http.dns_resolver(Arc::new(egress));
    }
    // Loading the root certificates takes longer than the rest of the start.
    if url.scheme() == "http" { http.tls_certs_only([]) } else { http }
}

fn connect_trouble(error: &reqwest::Error) -> Trouble {
    if error.is_connect() || error.is_timeout() {
        return Trouble::Connect(root_cause(error));
    }
    Trouble::Cut
}

/// Returns the innermost cause of an error. The outer layers only say that something failed, and name the URL.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

// Headers contain the key, so they are not printed.
impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient").field("options", &self.options.native_key()).finish_non_exhaustive()
    }
}
