//! Tasks: requests that the server answers at once and finishes later, while the client polls.
//!
//! 2025-11-25 has tasks in its core: the client asks for one with `params.task` and fetches the result with
//! `tasks/result`. 2026-07-28 has them as an extension: the server decides, and `tasks/get` returns the result too.
//! In this crate a task is raw JSON in the form of 2026-07-28; [`from_legacy`] and [`to_legacy`] convert it.

use crate::{Raw, RpcError, json::splice};
use serde_json::json;

/// Name of the extension in the capabilities of 2026-07-28.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// `_meta` member of 2025-11-25 that relates a message to a task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Error code for a task that was cancelled; JSON-RPC itself has none.
pub const CANCELLED: i64 = -32800;

/// Status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// The server is processing the request.
    Working,
    /// The server needs input from the client.
    InputRequired,
    /// The request has a result.
    Completed,
    /// The request failed with a JSON-RPC error.
    Failed,
    /// The request was cancelled.
    Cancelled,
}

/// Whether a tool of 2025-11-25 can be called as a task (`execution.taskSupport`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// The tool cannot be called as a task.
    #[default]
    Forbidden,
    /// The client may call the tool as a task.
    Optional,
    /// The client must call the tool as a task.
    Required,
}

impl TaskStatus {
    const ALL: [TaskStatus; 5] = [
        TaskStatus::Working,
        TaskStatus::InputRequired,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];

    /// Reads the status of a task.
    pub fn of(task: &Raw) -> Option<TaskStatus> {
        let status: String = task.member("status")?.decode().ok()?;
        TaskStatus::ALL.into_iter().find(|it| it.name() == status)
    }

    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Returns whether the task is over.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

impl TaskSupport {
    /// Reads `execution.taskSupport` of a tool.
    pub(crate) fn of(tool: &Raw) -> TaskSupport {
        let support: Option<String> =
            tool.member("execution").and_then(|it| it.member("taskSupport")?.decode().ok());
        match support.as_deref() {
            Some("optional") => TaskSupport::Optional,
            Some("required") => TaskSupport::Required,
            _ => TaskSupport::Forbidden,
        }
    }
}

/// Returns whether a result is a task. The byte search skips most results without parsing them.
pub fn is_task(result: &Raw) -> bool {
    memchr::memmem::find(result.as_bytes(), b"\"resultType\"").is_some()
        && result.member("resultType").is_some_and(|it| it.as_bytes() == b"\"task\"")
}

/// Returns the id of a task.
pub fn id_of(task: &Raw) -> Option<String> {
    task.member("taskId")?.decode().ok()
}

/// Returns the task under another id.
pub fn with_id(task: &Raw, id: &str) -> Raw {
    splice::replace(task, "taskId", &splice::string(id))
}

/// Converts a task of 2025-11-25.
pub fn from_legacy(task: &Raw) -> Raw {
    // `ttl` is required and `null` means unlimited, so it must survive.
    let task = rename(task, [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")]);
    if task.members().get("ttlMs").is_some() { task } else { task.with("ttlMs", &Raw::null()) }
}

/// Converts a task to the form of 2025-11-25, which has neither a result nor an error nor input requests.
pub fn to_legacy(task: &Raw) -> Raw {
    let task = rename(task, [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")]);
    let others = ["resultType", "result", "error", "inputRequests"];
    task.without(&others)
}

/// Converts the result that creates a task at a 2025-11-25 server, if it is one.
pub fn created_from_legacy(result: &Raw) -> Option<Raw> {
    let [task, meta] = result.pick(["task", "_meta"]);
    let task = from_legacy(&task.filter(|it| id_of(it).is_some())?);
    let task = meta.map_or(task.clone(), |meta| task.with("_meta", &meta));
    Some(task.with("resultType", &json!("task").into()))
}

/// Converts the result that creates a task to the form of 2025-11-25.
pub fn created_to_legacy(result: &Raw) -> Raw {
    let meta = result.member("_meta").map(|meta| ("_meta", meta));
    Raw::object([("task", to_legacy(&result.without(&["_meta"])))].into_iter().chain(meta))
}

/// Relates a result to its task, as 2025-11-25 requires for `tasks/result`.
pub fn with_related_task(result: &Raw, id: &str) -> Raw {
    let meta = result.member("_meta").unwrap_or_else(Raw::empty_object);
    result.with("_meta", &meta.with(RELATED_TASK, &json!({ "taskId": id }).into()))
}

/// Removes the relation to a task, which 2026-07-28 does not have.
pub fn without_related_task(result: &Raw) -> Raw {
    let Some(meta) = result.member("_meta").filter(|it| it.member(RELATED_TASK).is_some()) else {
        return result.clone();
    };
    let meta = meta.without(&[RELATED_TASK]);
    if meta.members().0.is_empty() { result.without(&["_meta"]) } else { result.with("_meta", &meta) }
}

/// Returns whether these capabilities of 2026-07-28 include tasks.
pub fn is_declared(capabilities: &Raw) -> bool {
    memchr::memmem::find(capabilities.as_bytes(), EXTENSION.as_bytes()).is_some()
        && capabilities.member("extensions").is_some_and(|it| it.member(EXTENSION).is_some())
}

/// Adds tasks to capabilities of 2026-07-28.
pub fn declare(capabilities: &Raw) -> Raw {
    let extensions = capabilities.member("extensions").unwrap_or_else(Raw::empty_object);
    capabilities.with("extensions", &extensions.with(EXTENSION, &Raw::empty_object()))
}

/// Builds the error for a client of 2026-07-28 that does not declare tasks.
pub fn missing_capability() -> RpcError {
    let data = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
    let what = format!("the client does not declare the extension `{EXTENSION}`");
    RpcError { data: Some(data.into()), ..RpcError::new(RpcError::MISSING_CAPABILITY, what) }
}

/// Returns whether a server rejected a request because the client does not declare tasks.
pub(crate) fn is_required(error: &RpcError) -> bool {
    let required = || error.data.as_ref()?.member("requiredCapabilities");
    error.code == RpcError::MISSING_CAPABILITY && required().is_some_and(|it| is_declared(&it))
}

/// Builds the error for a task that does not exist, or that the client may not see.
pub fn unknown_task() -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, "unknown task: it has expired or never existed")
}

fn rename(object: &Raw, names: [(&str, &str); 2]) -> Raw {
    let members = object.members();
    splice::object(members.0.iter().map(|(name, value)| {
        let renamed = names.iter().find(|(from, _)| from == name).map_or(&**name, |(_, to)| *to);
        (renamed, value.get().as_bytes())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn tasks_convert_between_eras() {
        let legacy = raw(r#"{"taskId":"1","status":"working","ttl":null,"pollInterval":5,"x":1}"#);
        let modern = raw(r#"{"taskId":"1","status":"working","ttlMs":null,"pollIntervalMs":5,"x":1}"#);
        assert_eq!(from_legacy(&legacy), modern);
        let done = modern.with("result", &raw("{}")).with("resultType", &raw("\"complete\""));
        assert_eq!(to_legacy(&done), legacy);
        let created = created_from_legacy(&raw(r#"{"task":{"taskId":"1"},"_meta":{"a":1}}"#)).unwrap();
        assert_eq!(created.as_str(), r#"{"resultType":"task","_meta":{"a":1},"ttlMs":null,"taskId":"1"}"#);
        assert!(is_task(&created));
        let back = created_to_legacy(&created);
        assert_eq!(back.as_str(), r#"{"task":{"ttl":null,"taskId":"1"},"_meta":{"a":1}}"#);
        assert_eq!(created_from_legacy(&raw(r#"{"content":[]}"#)), None);
    }

    #[test]
    fn only_declared_tasks_count() {
        let without = raw(r#"{"extensions":{"x":{}},"experimental":{"io.modelcontextprotocol/tasks":{}}}"#);
        assert!(!is_declared(&without));
        assert!(is_declared(&declare(&without)) && is_declared(&declare(&raw("{}"))));
        assert!(is_required(&missing_capability()));
        assert!(!is_required(&RpcError::new(RpcError::MISSING_CAPABILITY, "roots")));
    }

    #[test]
    fn relation_to_a_task_comes_and_goes() {
        let result = raw(r#"{"content":[]}"#);
        let related = with_related_task(&result, "1");
        assert!(
            related.as_str().contains(r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}"#)
        );
        assert_eq!(without_related_task(&related), result);
    }
}
