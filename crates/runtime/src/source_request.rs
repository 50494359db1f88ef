//! A request to a source: what is asked, for whom and until when. It does not know how it is sent.

use crate::{
    Trace,
    call::{Call, Caller, Deadline, OnProgress},
    catalog::ToolEntry,
    running_calls::RunningCall,
};
use std::sync::{Arc, Mutex, PoisonError};
use wharf_mcp::{
    Raw, Request,
    session::{Host, Progress, TaskOperation},
};

/// A request to a source, which may be sent more than once.
pub(crate) struct SourceRequest<'a> {
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
    /// The call that the request belongs to, for a tool call.
    pub(crate) running: Option<&'a RunningCall>,
    /// Answers the server's requests if the caller has no consent of its own, in place of the session's host.
    pub(crate) host: Option<Arc<dyn Host>>,
}

/// Method and parameters of a request.
pub(crate) enum Method<'a> {
    /// Tool, by its name on the wire, and arguments.
    Tool(&'a str, Option<&'a Raw>),
    /// Prompt, by its name on the wire, and arguments.
    Prompt(&'a str, Option<&'a Raw>),
    /// URI of a resource.
    Resource(&'a str),
    /// Operation on a task, and the id that the server gave it.
    Task(TaskOperation, &'a str),
    /// Any other method and parameters, forwarded unchanged.
    Other(&'a str, Option<&'a Raw>),
}

impl<'a> SourceRequest<'a> {
    pub(crate) fn new(method: Method<'a>, caller: Option<&'a Caller>) -> SourceRequest<'a> {
        let (tool, on_progress, trace, running, host) = (None, None, None, None, None);
        SourceRequest { method, by: Deadline::default(), tool, on_progress, caller, trace, running, host }
    }

    /// Creates a request that calls `tool`.
    pub(crate) fn tool(tool: &'a ToolEntry, call: &'a mut Call, by: Deadline) -> SourceRequest<'a> {
        let on_progress = call.on_progress.take().map(|it| Arc::new(Mutex::new(it)));
        let method = Method::Tool(&tool.wire_name, call.arguments.as_ref());
        let (caller, trace) = (call.caller.as_ref(), call.trace.as_ref());
        SourceRequest { method, by, tool: Some(tool), on_progress, caller, trace, running: None, host: None }
    }

    /// Builds the request as it is sent.
    pub(crate) fn request(&self) -> Request {
        let request = match &self.method {
            Method::Tool(name, arguments) => {
                let headers = self.tool.map(|it| it.header_params(*arguments)).unwrap_or_default();
                let support = self.tool.and_then(|it| it.tool.as_ref()).map(|it| it.task_support);
                let request = Request::call_tool(name, *arguments).header_params(headers);
                request.task_support(support.unwrap_or_default())
            }
            Method::Prompt(name, arguments) => Request::get_prompt(name, *arguments),
            Method::Resource(uri) => Request::read_resource(uri),
            Method::Task(operation, id) => Request::task(operation.clone(), id),
            Method::Other(method, params) => {
                let request = Request::new((*method).to_owned());
                match params {
                    Some(params) => request.params((*params).clone()),
                    None => request,
                }
            }
        };
        let request = match &self.host {
            Some(host) => request.host(host.clone()),
            None => request,
        };
        match &self.on_progress {
            Some(on_progress) => request.on_progress(share_callback(on_progress)),
            None => request,
        }
    }
}

/// Shares one progress callback between the attempts of a request. Only one attempt runs at a time.
fn share_callback(on_progress: &Arc<Mutex<OnProgress>>) -> impl FnMut(Progress) + Send + 'static {
    let on_progress = on_progress.clone();
    move |at| on_progress.lock().unwrap_or_else(PoisonError::into_inner)(&at)
}
