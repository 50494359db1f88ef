//! Builder for requests.

use super::{
    hooks::{Audience, OnLog, OnProgress, Progress},
    host::Host,
    meta::{self, MetaKey},
};
use crate::{Raw, json::splice, model::LogLevel, tasks::TaskSupport};
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::time::Instant;

/// One request to the server.
pub struct Request {
    pub(super) method: Cow<'static, str>,
    pub(super) params: Option<Raw>,
    pub(super) deadline: Option<Instant>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) name: Option<String>,
    pub(super) header_params: Vec<(String, String)>,
    /// `_meta` of the client on whose behalf the request is made.
    pub(super) meta: Option<Raw>,
    pub(super) logs: Option<LogSettings>,
    pub(super) host: Option<Arc<dyn Host>>,
    pub(super) input: Option<Input>,
    pub(super) single_round: bool,
    pub(super) audience: Audience,
    pub(super) tasks: TaskMode,
    pub(super) task_support: TaskSupport,
    /// `params.task`, sent if the request becomes a task of 2025-11-25.
    pub(super) task_params: Option<Raw>,
    pub(super) task_operation: Option<TaskOperation>,
}

/// Reaction to a server that answers a tool call with a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskMode {
    /// Wait for the result. If the server requires support for tasks, declare it.
    #[default]
    Wait,
    /// Wait for the result, but declare nothing for the client on whose behalf the request is made.
    WaitUndeclared,
    /// Return the task. The caller's `_meta` declares tasks.
    Return,
}

/// Operation on a task, the same for servers of both eras.
#[derive(Clone, Debug)]
pub enum TaskOperation {
    /// Returns the task, with its result or error if it is over.
    Get,
    /// Returns the status of the task without its result.
    GetStatus,
    /// Waits until the task is over and returns its result.
    Result,
    /// Sends these input responses.
    Update(Raw),
    /// Cancels the task.
    Cancel,
}

/// Log level and callback of a request.
#[derive(Clone)]
pub(super) struct LogSettings {
    pub(super) level: LogLevel,
    pub(super) explicit: bool,
    pub(super) callback: OnLog,
}

/// Answers to an `input_required` result, sent back by a client (2026-07-28).
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// `inputResponses`, unchanged.
    pub responses: Option<Raw>,
    /// `requestState`, unchanged.
    pub state: Option<Raw>,
}

impl Request {
    /// Creates a request for `method`.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Request {
        Request {
            method: method.into(),
            params: None,
            deadline: None,
            idle_timeout: None,
            on_progress: None,
            name: None,
            header_params: Vec::new(),
            meta: None,
            logs: None,
            host: None,
            input: None,
            single_round: false,
            audience: Audience::default(),
            tasks: TaskMode::default(),
            task_support: TaskSupport::default(),
            task_params: None,
            task_operation: None,
        }
    }

    /// Creates a `tools/call` request; `arguments` is an object.
    pub fn call_tool(name: &str, arguments: Option<&Raw>) -> Request {
        Request::named("tools/call", "name", name, arguments)
    }

    /// Creates a `prompts/get` request.
    pub fn get_prompt(name: &str, arguments: Option<&Raw>) -> Request {
        Request::named("prompts/get", "name", name, arguments)
    }

    /// Creates a `resources/read` request.
    pub fn read_resource(uri: &str) -> Request {
        Request::named("resources/read", "uri", uri, None)
    }

    /// Creates an operation on a task of the server.
    pub fn task(operation: TaskOperation, id: &str) -> Request {
        let method = match operation {
            TaskOperation::Get | TaskOperation::GetStatus => "tasks/get",
            TaskOperation::Result => "tasks/result",
            TaskOperation::Update(_) => "tasks/update",
            TaskOperation::Cancel => "tasks/cancel",
        };
        Request { task_operation: Some(operation), ..Request::named(method, "taskId", id, None) }
    }

    fn named(method: &'static str, key: &str, name: &str, arguments: Option<&Raw>) -> Request {
        let params = meta::named_params(key, name, arguments);
        Request { name: Some(name.to_owned()), ..Request::new(method) }.params(params)
    }

    /// Sets the params, which must be an object.
    #[inline]
    #[must_use]
    pub fn params(mut self, params: Raw) -> Request {
        self.params = Some(params);
        self
    }

    /// Sets the deadline.
    #[inline]
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Request {
        self.deadline = Some(deadline);
        self
    }

    /// Sets an idle timeout. Progress restarts it, and answering a question from the server pauses it. The deadline
    /// still applies.
    #[inline]
    #[must_use]
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Request {
        self.idle_timeout = Some(idle_timeout);
        self
    }

    /// Sets a progress callback, called in order and before the response. It runs in the session task and must not
    /// block.
    #[must_use]
    pub fn on_progress(mut self, callback: impl FnMut(Progress) + Send + 'static) -> Request {
        self.on_progress = Some(Box::new(callback));
        self
    }

    /// Sets the arguments to repeat in `Mcp-Param-*` headers, over HTTP in the 2026-07-28 era.
    #[inline]
    #[must_use]
    pub fn header_params(mut self, params: Vec<(String, String)>) -> Request {
        self.header_params = params;
        self
    }

    /// Sets the `_meta` of the client on whose behalf the request is made. Protocol members are forwarded only to
    /// servers of the 2026-07-28 era; the progress token is never forwarded.
    #[inline]
    #[must_use]
    pub fn meta(mut self, meta: Raw) -> Request {
        self.meta = Some(meta);
        self
    }

    /// Adds `traceparent` and `tracestate` to `_meta`, replacing existing values.
    #[must_use]
    pub fn traced(self, traceparent: &str, tracestate: Option<&str>) -> Request {
        let own = || self.params.as_ref().and_then(|it| it.member("_meta"));
        let given = self.meta.clone().or_else(own).unwrap_or_else(Raw::empty_object);
        let mut meta = splice::replace(&given, MetaKey::TRACE_PARENT, &splice::string(traceparent));
        if let Some(state) = tracestate {
            meta = splice::replace(&meta, MetaKey::TRACE_STATE, &splice::string(state));
        }
        self.meta(meta)
    }

    /// Sets a log callback and the minimum level; lines below it may arrive too. An explicit level is sent to a
    /// handshake-era server that has none or a less verbose one. A default level is sent only to replace a less
    /// verbose one that was set earlier.
    #[inline]
    #[must_use]
    pub fn logs(mut self, level: LogLevel, explicit: bool, callback: OnLog) -> Request {
        self.logs = Some(LogSettings { level, explicit, callback });
        self
    }

    /// Sets for whom the request is made.
    #[must_use]
    pub fn audience(mut self, audience: Audience) -> Request {
        self.audience = audience;
        self
    }

    /// Sets the host that answers the server's questions during this request, instead of the session's host.
    #[must_use]
    pub fn host(mut self, host: Arc<dyn Host>) -> Request {
        self.host = Some(host);
        self
    }

    /// Sets the input responses and the state of an earlier `input_required` result.
    #[must_use]
    pub fn input(mut self, input: Input) -> Request {
        self.input = Some(input);
        self
    }

    /// Returns an `input_required` result to the caller instead of answering it.
    #[inline]
    #[must_use]
    pub fn single_round(mut self, single_round: bool) -> Request {
        self.single_round = single_round;
        self
    }

    /// Sets what to do if the server answers with a task.
    #[must_use]
    pub fn tasks(mut self, mode: TaskMode) -> Request {
        self.tasks = mode;
        self
    }

    /// Sets whether the tool can be called as a task of 2025-11-25.
    #[must_use]
    pub fn task_support(mut self, support: TaskSupport) -> Request {
        self.task_support = support;
        self
    }

    /// Sets `params.task` of a client of 2025-11-25.
    #[must_use]
    pub fn task_params(mut self, params: Raw) -> Request {
        self.task_params = Some(params);
        self
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
