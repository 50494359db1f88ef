//! Something that a client has done for it, in one round or in several: a tool called, a prompt filled in, a resource
//! read.

use super::invalid;
use http::request::Parts;
use std::sync::Arc;
use wharf_mcp::{Raw, RpcError, serve::http::Owner, session::Input};

/// What can be had done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// What a client wants done.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) kind: Kind,
    /// The tool, the prompt, or the address of the resource.
    pub(super) name: String,
    pub(super) arguments: Option<Raw>,
    /// What the client comes back with, if it was here before.
    pub(super) input: Option<Input>,
    pub(super) whose: Principal,
}

/// Whom a request is from, as the door knows them that it came in by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Principal(pub(super) Option<Arc<str>>);

impl Errand {
    /// Reads it from a request's parameters, in one go.
    pub(super) fn read(kind: Kind, params: &Raw, whose: Principal) -> Result<Errand, RpcError> {
        let key = if kind == Kind::Resource { "uri" } else { "name" };
        let names = [key, "arguments", "inputResponses", "requestState"];
        let [name, arguments, responses, state] = params.pick(names);
        let name = name.and_then(|it| it.decode().ok());
        let name = name.ok_or_else(|| invalid(&format!("`{key}` is missing")))?;
        if arguments.as_ref().is_some_and(|it| !it.is_object()) {
            return Err(invalid("`arguments` is no object"));
        }
        let input = (responses.is_some() || state.is_some()).then_some(Input { responses, state });
        Ok(Errand { kind, name, arguments, input, whose })
    }
}

impl Principal {
    pub(super) fn of(http: Option<&Parts>) -> Principal {
        Principal(http.and_then(|it| it.extensions.get::<Owner>()).map(|it| it.0.clone()))
    }
}
