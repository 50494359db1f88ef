//! Runs the host's answers to requests from the server.

use super::{deadline::IdlePause, host::Host};
use crate::{Raw, RpcError, panic_guard};
use std::{collections::HashMap, sync::Arc};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of server requests answered concurrently.
const MAX_CONCURRENT_ANSWERS: usize = 32;

/// Running answers to server requests.
pub(super) struct Answers {
    host: Arc<dyn Host>,
    tasks: JoinSet<(Raw, Result<Raw, RpcError>)>,
    /// Abort handles by the server's request id.
    handles: HashMap<Vec<u8>, AbortHandle>,
}

impl Answers {
    pub(super) fn new(host: Arc<dyn Host>) -> Answers {
        Answers { host, tasks: JoinSet::new(), handles: HashMap::new() }
    }

    /// Starts answering a server request, or rejects it if too many are running. `host` overrides the session's host
    /// when the question belongs to a request with a host of its own; `pause` pauses that request's idle timeout
    /// meanwhile.
    pub(super) fn start(
        &mut self,
        id: Raw,
        question: (&str, Option<Raw>),
        host: Option<Arc<dyn Host>>,
        pause: Option<IdlePause>,
    ) -> Result<(), RpcError> {
        if self.tasks.len() >= MAX_CONCURRENT_ANSWERS {
            return Err(RpcError::new(RpcError::INTERNAL, "too many concurrent requests"));
        }
        let (method, params) = question;
        let (host, method) = (host.unwrap_or_else(|| self.host.clone()), method.to_owned());
        let params = params.map(|params| params.detached());
        let answer = panic_guard::catch_panic(async move { host.answer(&method, params).await });
        let key = id.as_bytes().to_vec();
        let handle = self.tasks.spawn(async move {
            let _pause = pause;
            (id, answer.await)
        });
        self.handles.insert(key, handle);
        Ok(())
    }

    /// Returns the next finished answer, or `None` if none is running.
    pub(super) async fn next(&mut self) -> Option<(Raw, Result<Raw, RpcError>)> {
        loop {
            // An aborted answer yields a join error; skip it.
            if let Ok((id, outcome)) = self.tasks.join_next().await? {
                self.handles.remove(id.as_bytes());
                return Some((id, outcome));
            }
        }
    }

    /// Aborts an answer that the server has cancelled.
    pub(super) fn cancel(&mut self, id: &Raw) {
        if let Some(handle) = self.handles.remove(id.as_bytes()) {
            handle.abort();
        }
    }

    pub(super) fn abort_all(&mut self) {
        self.tasks.abort_all();
    }
}
