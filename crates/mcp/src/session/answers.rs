//! The server's questions that the host is answering.

use super::{host::Host, until::Asking};
use crate::{Raw, RpcError, caught};
use std::{collections::HashMap, sync::Arc};
use tokio::task::{AbortHandle, JoinSet};

/// How many questions are answered at the same time.
const AT_ONCE: usize = 32;

pub(super) struct Answers {
    host: Arc<dyn Host>,
    tasks: JoinSet<(Raw, Result<Raw, RpcError>)>,
    /// How to stop each, by the server's id.
    handles: HashMap<Vec<u8>, AbortHandle>,
}

impl Answers {
    pub(super) fn new(host: Arc<dyn Host>) -> Answers {
        Answers { host, tasks: JoinSet::new(), handles: HashMap::new() }
    }

    /// Begins to answer a question, unless there are too many. The host is the session's, unless the question belongs to
    /// a request that has one of its own; the clock of that request stands still meanwhile.
    pub(super) fn begin(
        &mut self,
        id: Raw,
        question: (&str, Option<Raw>),
        host: Option<Arc<dyn Host>>,
        asking: Option<Asking>,
    ) -> Result<(), RpcError> {
        if self.tasks.len() >= AT_ONCE {
            return Err(RpcError::new(RpcError::INTERNAL, "too many requests at once"));
        }
        let (method, params) = question;
        let (host, method) = (host.unwrap_or_else(|| self.host.clone()), method.to_owned());
        let params = params.map(|params| params.detached());
        let answering = caught::answer(async move { host.answer(&method, params).await });
        let key = id.as_bytes().to_vec();
        let handle = self.tasks.spawn(async move {
            let _asking = asking;
            (id, answering.await)
        });
        self.handles.insert(key, handle);
        Ok(())
    }

    /// The next answer that is ready; `None` if none is being found.
    pub(super) async fn next(&mut self) -> Option<(Raw, Result<Raw, RpcError>)> {
        loop {
            // One that was given up is passed over: others may be under way.
            if let Ok((id, outcome)) = self.tasks.join_next().await? {
                self.handles.remove(id.as_bytes());
                return Some((id, outcome));
            }
        }
    }

    /// The server does not want this answer any more.
    pub(super) fn cancel(&mut self, id: &Raw) {
        if let Some(handle) = self.handles.remove(id.as_bytes()) {
            handle.abort();
        }
    }

    pub(super) fn abort_all(&mut self) {
        self.tasks.abort_all();
    }
}
