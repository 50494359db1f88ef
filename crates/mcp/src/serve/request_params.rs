//! The members of a request's parameters that the protocol defines, read in one pass per request.

use crate::{
    Raw, RpcError,
    session::{Era, MODERN, MetaKey},
};
use std::sync::OnceLock;

use super::{
    Eras,
    client::ClientTerms,
    dispatch::{invalid_params, unsupported_version},
};

/// Members of a request's parameters. `null` counts as absent.
#[derive(Clone, Debug, Default)]
pub struct RequestParams {
    /// Name of a tool or prompt.
    pub name: Option<Raw>,
    /// URI of a resource.
    pub uri: Option<Raw>,
    /// Arguments of a tool or prompt.
    pub arguments: Option<Raw>,
    /// Answers of the client to the questions of an earlier round.
    pub input_responses: Option<Raw>,
    /// State of an earlier round.
    pub request_state: Option<Raw>,
    /// Position in a list.
    pub cursor: Option<Raw>,
    /// Request of a 2025-11-25 client to run a tool call as a task.
    pub task: Option<Raw>,
    /// Id of a task.
    pub task_id: Option<Raw>,
    /// `_meta`.
    pub(super) meta: Option<RequestMeta>,
}

/// `_meta` of a request, and the members of it that the protocol defines.
#[derive(Clone, Debug)]
pub(super) struct RequestMeta {
    pub(super) raw: Raw,
    pub(super) version: Option<Raw>,
    pub(super) log_level: Option<Raw>,
    pub(super) progress_token: Option<Raw>,
    capabilities: Option<Raw>,
    client: Option<Raw>,
}

impl RequestParams {
    /// Reads the parameters of a request. They are boxed, because every layer that a request passes would copy them.
    pub fn read(params: Option<&Raw>) -> Box<RequestParams> {
        let Some(params) = params else { return Box::default() };
        let names = [
            "name",
            "uri",
            "arguments",
            "inputResponses",
            "requestState",
            "cursor",
            "task",
            "taskId",
            "_meta",
        ];
        let [name, uri, arguments, input_responses, request_state, cursor, task, task_id, meta] =
            params.pick(names);
        let meta = meta.map(RequestMeta::read);
        Box::new(RequestParams {
            name,
            uri,
            arguments,
            input_responses,
            request_state,
            cursor,
            task,
            task_id,
            meta,
        })
    }

    /// Checks whether `_meta` names a protocol version, as every request of 2026-07-28 does.
    pub(super) fn has_version(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.version.is_some())
    }

    /// Returns version, capabilities and identity of a 2026-07-28 client.
    pub(super) fn modern_terms(&self, eras: Eras) -> Result<ClientTerms, RpcError> {
        let missing = |key: &str| invalid_params(&format!("`_meta` has no `{key}`"));
        let meta = self.meta.as_ref().ok_or_else(|| missing(MetaKey::VERSION))?;
        let version: Option<String> = meta.version.as_ref().and_then(|it| it.decode().ok());
        let version = version.ok_or_else(|| missing(MetaKey::VERSION))?;
        if version != MODERN {
            return Err(unsupported_version(eras, Some(&version)));
        }
        let capabilities = meta.capabilities.clone().filter(Raw::is_object);
        let capabilities = capabilities.ok_or_else(|| missing(MetaKey::CAPABILITIES))?;
        let info = meta.client.clone();
        Ok(ClientTerms { era: Era::Modern, version, capabilities, info, as_meta: OnceLock::new() })
    }
}

impl RequestMeta {
    fn read(raw: Raw) -> RequestMeta {
        let names =
            [MetaKey::VERSION, MetaKey::CAPABILITIES, MetaKey::CLIENT, MetaKey::LOG_LEVEL, "progressToken"];
        let [version, capabilities, client, log_level, progress_token] = raw.pick(names);
        RequestMeta { raw, version, log_level, progress_token, capabilities, client }
    }
}
