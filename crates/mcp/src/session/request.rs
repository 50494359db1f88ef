//! One request, as whoever makes it puts it together.

use super::{
    ears::{OnLog, OnProgress, Progress},
    host::Host,
    meta::{self, MetaKey},
};
use crate::{Raw, model::LogLevel};
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::time::Instant;

/// One request.
pub struct Request {
    pub(super) method: Cow<'static, str>,
    pub(super) params: Option<Raw>,
    pub(super) deadline: Option<Instant>,
    pub(super) quiet: Option<Duration>,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) name: Option<String>,
    pub(super) header_params: Vec<(String, String)>,
    /// The `_meta` of somebody whom this request is made for.
    pub(super) meta: Option<Raw>,
    pub(super) logs: Option<Logs>,
    pub(super) host: Option<Arc<dyn Host>>,
    pub(super) input: Option<Input>,
    pub(super) once: bool,
}

/// Which log lines are wanted, and by whom.
#[derive(Clone)]
pub(super) struct Logs {
    pub(super) level: LogLevel,
    pub(super) explicit: bool,
    pub(super) told: OnLog,
}

/// What a client brings when it comes back with the input that a server wanted (2026-07-28).
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// `inputResponses`, as they came.
    pub responses: Option<Raw>,
    /// `requestState`, as it came.
    pub state: Option<Raw>,
}

impl Request {
    /// A request for `method`.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Request {
        Request {
            method: method.into(),
            params: None,
            deadline: None,
            quiet: None,
            on_progress: None,
            name: None,
            header_params: Vec::new(),
            meta: None,
            logs: None,
            host: None,
            input: None,
            once: false,
        }
    }

    /// A call of the tool `name`; `arguments` is an object.
    pub fn call_tool(name: &str, arguments: Option<&Raw>) -> Request {
        Request::named("tools/call", "name", name, arguments)
    }

    /// The prompt `name`, filled in.
    pub fn get_prompt(name: &str, arguments: Option<&Raw>) -> Request {
        Request::named("prompts/get", "name", name, arguments)
    }

    /// The contents of a resource.
    pub fn read_resource(uri: &str) -> Request {
        Request::named("resources/read", "uri", uri, None)
    }

    fn named(method: &'static str, key: &str, name: &str, arguments: Option<&Raw>) -> Request {
        let params = meta::named(key, name, arguments);
        Request { name: Some(name.to_owned()), ..Request::new(method) }.params(params)
    }

    /// With these parameters: an object.
    #[must_use]
    pub fn params(mut self, params: Raw) -> Request {
        self.params = Some(params);
        self
    }

    /// To be answered by then.
    #[must_use]
    pub fn by(mut self, deadline: Instant) -> Request {
        self.deadline = Some(deadline);
        self
    }

    /// To be given up after this much silence: progress is not silence, and neither is a question of the server's while
    /// it is being answered. Never later than its deadline.
    #[must_use]
    pub fn quiet_for(mut self, quiet: Duration) -> Request {
        self.quiet = Some(quiet);
        self
    }

    /// With this told about progress, in order and before the answer. It runs in the conversation's task and must
    /// not block.
    #[must_use]
    pub fn on_progress(mut self, told: impl FnMut(Progress) + Send + 'static) -> Request {
        self.on_progress = Some(Box::new(told));
        self
    }

    /// With these arguments repeated in `Mcp-Param-*` headers, over HTTP in the 2026-07-28 era.
    #[must_use]
    pub fn header_params(mut self, params: Vec<(String, String)>) -> Request {
        self.header_params = params;
        self
    }

    /// On behalf of somebody who said this in `_meta`. What the protocol itself says there goes to a server of the
    /// 2026-07-28 era only; a progress token stays here.
    #[must_use]
    pub fn meta(mut self, meta: Raw) -> Request {
        self.meta = Some(meta);
        self
    }

    /// As part of this trace: `traceparent` and `tracestate` in `_meta`, in place of what anybody else says there.
    #[must_use]
    pub fn traced(self, traceparent: &str, tracestate: Option<&str>) -> Request {
        let own = || self.params.as_ref().and_then(|it| it.member("_meta"));
        let given = self.meta.clone().or_else(own).unwrap_or_else(Raw::empty_object);
        let mut meta = meta::replace(&given, MetaKey::TRACE_PARENT, &meta::string(traceparent));
        if let Some(state) = tracestate {
            meta = meta::replace(&meta, MetaKey::TRACE_STATE, &meta::string(state));
        }
        self.meta(meta)
    }

    /// With its log lines of at least this level told; lesser ones may be told too. A level that was asked for is asked
    /// for at the server, another is what one may expect.
    #[must_use]
    pub fn logs(mut self, level: LogLevel, explicit: bool, told: OnLog) -> Request {
        self.logs = Some(Logs { level, explicit, told });
        self
    }

    /// With this answering what the server asks in the course of it, in place of the session's own host.
    #[must_use]
    pub fn host(mut self, host: Arc<dyn Host>) -> Request {
        self.host = Some(host);
        self
    }

    /// With the input that the server wanted, and the state it gave.
    #[must_use]
    pub fn input(mut self, input: Input) -> Request {
        self.input = Some(input);
        self
    }

    /// To be asked once: a demand for more input is its result.
    #[must_use]
    pub fn once(mut self, once: bool) -> Request {
        self.once = once;
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
