//! A parsed client request: `tools/call`, `prompts/get` or `resources/read`. It may take several rounds when the
//! server asks for input.

use super::{invalid, own_meta::CallIds};
use http::request::Parts;
use std::sync::Arc;
use wharf_mcp::{
    Raw, RpcError,
    serve::{RequestParams, http::Owner},
    session::Input,
};

/// The kind of a client request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Tool,
    Prompt,
    Resource,
}

/// A parsed client request.
#[derive(Debug)]
pub(super) struct ClientRequest {
    pub(super) kind: RequestKind,
    /// Name of the tool or prompt, or URI of the resource.
    pub(super) name: String,
    pub(super) arguments: Option<Raw>,
    /// Answers and state that the client sends when it resumes a suspended call.
    pub(super) input: Option<Input>,
    /// `params.task`, with which a client asks for a task of 2025-11-25.
    pub(super) task: Option<Raw>,
    pub(super) principal: PrincipalName,
    /// Ids that the client chose, for a tool call.
    pub(super) ids: CallIds,
}

/// The authenticated principal, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PrincipalName(pub(super) Option<Arc<str>>);

impl ClientRequest {
    /// Checks the request's parameters.
    pub(super) fn read(
        kind: RequestKind,
        params: Box<RequestParams>,
        principal: PrincipalName,
    ) -> Result<ClientRequest, RpcError> {
        let RequestParams {
            name,
            uri,
            arguments,
            input_responses: responses,
            request_state: state,
            task,
            ..
        } = *params;
        let (key, name) = if kind == RequestKind::Resource { ("uri", uri) } else { ("name", name) };
        let name = name.and_then(|it| it.decode().ok());
        let name = name.ok_or_else(|| invalid(&format!("`{key}` is missing")))?;
        if arguments.as_ref().is_some_and(|it| !it.is_object()) {
            return Err(invalid("`arguments` is not an object"));
        }
        let input = (responses.is_some() || state.is_some()).then_some(Input { responses, state });
        let task = task.filter(|task| kind == RequestKind::Tool && task.is_object());
        Ok(ClientRequest { kind, name, arguments, input, task, principal, ids: CallIds::default() })
    }
}

impl PrincipalName {
    pub(super) fn of(http: Option<&Parts>) -> PrincipalName {
        PrincipalName(http.and_then(|it| it.extensions.get::<Owner>()).map(|it| it.0.clone()))
    }
}
