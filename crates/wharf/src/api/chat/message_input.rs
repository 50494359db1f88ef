//! The message of `POST /api/v1/chat`: a text or a prompt of a server, and resources that are attached to it.

use super::{
    super::{ApiState, body, problem::Problem},
    chat_request::{given, invalid},
};
use crate::{
    message_context::{MAX_ATTACHMENTS, UserMessage},
    message_reader::{MessageError, MessageReader},
};
use http::StatusCode;
use std::sync::Arc;
use wharf_mcp::Raw;
use wharf_runtime::{Caller, Fault};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Maximum length of a URI, in characters.
const MAX_URI_CHARS: usize = 8_192;
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 256;

/// A message as a client sends it.
#[derive(Debug)]
pub(super) struct MessageInput {
    beginning: MessageBeginning,
    attachments: Vec<AttachedResource>,
}

#[derive(Debug)]
enum MessageBeginning {
    Text(String),
    Prompt { name: String, arguments: Raw },
}

/// A resource to attach.
#[derive(Debug)]
struct AttachedResource {
    uri: String,
    /// Server that has it, if the client says so.
    source: Option<String>,
}

impl MessageInput {
    pub(super) fn read(body: &Raw) -> Result<MessageInput, Problem> {
        let beginning = match (given(body, "message"), given(body, "prompt")) {
            (Some(_), Some(_)) => return Err(invalid("`message` and `prompt` exclude each other")),
            (Some(message), None) => MessageBeginning::Text(read_text(&message)?),
            (None, Some(prompt)) => read_prompt(&prompt)?,
            (None, None) => return Err(invalid("`message` is missing")),
        };
        Ok(MessageInput { beginning, attachments: read_attachments(body)? })
    }

    /// Gets the prompt and reads the resources from their servers.
    pub(super) async fn resolve(
        self,
        shared: &ApiState,
        principal: &Arc<str>,
    ) -> Result<UserMessage, Problem> {
        let MessageInput { beginning, attachments } = self;
        if attachments.is_empty()
            && let MessageBeginning::Text(text) = beginning
        {
            return Ok(UserMessage::of_text(text));
        }
        // A model that cannot be asked needs no resources.
        shared.agent_runs.check_model()?;
        let (catalog, caller) = (shared.settled().await, Caller::without_client(principal.clone()));
        let reader = MessageReader { handle: &shared.handle, catalog: &catalog, caller: Some(&caller) };
        let mut message = match beginning {
            MessageBeginning::Text(text) => UserMessage::of_text(text),
            MessageBeginning::Prompt { name, arguments } => {
                shared.check_call_limit()?;
                reader.prompt(&name, &arguments).await?
            }
        };
        for AttachedResource { uri, source } in attachments {
            shared.check_call_limit()?;
            message.attachments.extend(reader.resource(&uri, source.as_deref()).await?);
        }
        Ok(message)
    }
}

/// Reads the text without its control characters.
fn read_text(raw: &Raw) -> Result<String, Problem> {
    let text = raw.decode::<String>().map_err(|_| body::malformed("`message` has to be a string"))?;
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "`message` is longer than 64 KiB"));
    }
    let is_kept = |it: &char| !it.is_control() || matches!(it, '\n' | '\t' | '\r');
    let message: String = text.chars().filter(is_kept).collect();
    if message.trim().is_empty() { Err(invalid("`message` is empty")) } else { Ok(message) }
}

fn read_prompt(prompt: &Raw) -> Result<MessageBeginning, Problem> {
    if !prompt.is_object() {
        return Err(body::malformed("`prompt` has to be an object"));
    }
    body::reject_unknown_keys(prompt, &["name", "arguments"])?;
    let name = body::read_text(prompt, "name", MAX_NAME_CHARS)?;
    let name = name.ok_or_else(|| invalid("`prompt.name` is missing"))?;
    let arguments = given(prompt, "arguments").unwrap_or_else(Raw::empty_object);
    if !arguments.is_object() {
        return Err(body::malformed("`prompt.arguments` has to be an object"));
    }
    Ok(MessageBeginning::Prompt { name, arguments })
}

fn read_attachments(body: &Raw) -> Result<Vec<AttachedResource>, Problem> {
    let malformed = || body::malformed("`attachments` has to be a list of objects");
    let Some(raw) = given(body, "attachments") else { return Ok(Vec::new()) };
    let list = raw.decode::<Vec<serde_json::Value>>().map_err(|_| malformed())?;
    if list.len() > MAX_ATTACHMENTS {
        let detail = format!("a message can have {MAX_ATTACHMENTS} attachments, not {}", list.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let read = |it: serde_json::Value| {
        let it = Raw::from(it);
        if !it.is_object() {
            return Err(malformed());
        }
        body::reject_unknown_keys(&it, &["uri", "source"])?;
        let uri = body::read_text(&it, "uri", MAX_URI_CHARS)?;
        let uri = uri.ok_or_else(|| invalid("`uri` of an attachment is missing"))?;
        let source = match given(&it, "source") {
            Some(_) => body::read_text(&it, "source", MAX_NAME_CHARS)?,
            None => None,
        };
        Ok(AttachedResource { uri, source })
    };
    list.into_iter().map(read).collect()
}

impl From<MessageError> for Problem {
    fn from(error: MessageError) -> Problem {
        match error {
            MessageError::NoResource(uri) => Problem::not_found("resource", &uri),
            MessageError::Resource(uri, fault) => {
                refused(&fault, StatusCode::NOT_FOUND, || format!("`{uri}` cannot be read: {}", fault.cause))
            }
            MessageError::Prompt(fault) => refused(&fault, StatusCode::UNPROCESSABLE_ENTITY, || {
                format!("the prompt cannot be used: {}", fault.cause)
            }),
            MessageError::Content(error) => Problem::new(error.status(), error.message()),
        }
    }
}

/// Returns this status if the server refused the request, and that of the fault if it could not be asked.
fn refused(fault: &Fault, status: StatusCode, detail: impl Fn() -> String) -> Problem {
    if fault.rpc.is_some() { Problem::new(status, detail()) } else { Problem::of(fault, None) }
}
