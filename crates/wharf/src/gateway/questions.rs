//! Questions that servers ask in the middle of a call, brought to the client that made the call and to nobody else.
//!
//! A server of the 2026-07-28 era asks within the call itself, so the caller is known. One of the handshake era asks over
//! the session that all callers share: then it is the caller's if there is just one, and nobody's if there are several.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{mpsc, oneshot};
use wharf_mcp::{Raw, RpcError};
use wharf_runtime::upstream::{Asked, Consent};

tokio::task_local! {
    /// The call that this task is making.
    static CALLER: mpsc::Sender<Question>;
}

/// Something that only the client can answer.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) method: String,
    pub(super) params: Raw,
    reply: oneshot::Sender<Result<Raw, RpcError>>,
}

/// Knows who is calling which source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switchboard {
    lines: Arc<Mutex<Lines>>,
    next: Arc<AtomicU64>,
}

type Lines = HashMap<String, Vec<(u64, mpsc::Sender<Question>)>>;

/// One call to one source, until it is dropped.
#[derive(Debug)]
pub(super) struct Line {
    board: Switchboard,
    source: String,
    number: u64,
}

impl Question {
    pub(super) fn answer(self, answer: Result<Raw, RpcError>) {
        // A server that has left needs no answer.
        let _ = self.reply.send(answer);
    }
}

impl Switchboard {
    /// Notes that somebody calls this source.
    pub(super) fn open(&self, source: &str, asks: mpsc::Sender<Question>) -> Line {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lines().entry(source.to_owned()).or_default().push((number, asks));
        Line { board: self.clone(), source: source.to_owned(), number }
    }

    /// The call that a source's question belongs to, if that is certain.
    fn only_caller(&self, source: &str) -> Option<mpsc::Sender<Question>> {
        match self.lines().get(source).map(Vec::as_slice) {
            Some([(_, only)]) => Some(only.clone()),
            _ => None,
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut lines = self.board.lines();
        if let Some(callers) = lines.get_mut(&self.source) {
            callers.retain(|(number, _)| *number != self.number);
            if callers.is_empty() {
                lines.remove(&self.source);
            }
        }
    }
}

/// Runs a call whose questions go to `asks`.
pub(super) fn asking<F: Future>(asks: mpsc::Sender<Question>, call: F) -> impl Future<Output = F::Output> {
    CALLER.scope(asks, call)
}

impl Consent for Switchboard {
    fn answers_forms(&self) -> bool {
        true
    }

    fn answers_samples(&self) -> bool {
        true
    }

    fn answer(&self, asked: Asked) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        let caller = CALLER.try_with(Clone::clone).ok().or_else(|| self.only_caller(&asked.source));
        Box::pin(async move {
            let nobody = || RpcError::new(RpcError::INVALID_REQUEST, "nobody is there to answer this");
            let caller = caller.ok_or_else(nobody)?;
            let (reply, answer) = oneshot::channel();
            let question = Question { method: asked.method, params: asked.params, reply };
            caller.send(question).await.map_err(|_| nobody())?;
            answer.await.map_err(|_| nobody())?
        })
    }
}
