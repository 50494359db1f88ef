//! Maps a fault to a JSON-RPC error; nothing else in the gateway does.

use serde_json::json;
use wharf_mcp::{Raw, RpcError};
use wharf_runtime::{Fault, FaultKind, sent_word, views};

/// The code that SDKs use for a closed connection.
const CONNECTION: i64 = -32000;

/// The code that SDKs use for a timeout.
const TIMEOUT: i64 = -32001;

/// Legacy-era code for an unknown resource.
const NO_RESOURCE: i64 = -32002;

/// Maps a fault to an error for the client. An error that the server itself returned is forwarded unchanged.
pub(super) fn rpc_error(fault: &Fault) -> RpcError {
    if let Some(error) = &fault.rpc {
        return error.clone();
    }
    let code = match fault.kind {
        FaultKind::ToolNotFound
        | FaultKind::Quarantined
        | FaultKind::Disabled
        | FaultKind::LockMismatch
        | FaultKind::ResultNotFound
        | FaultKind::NotRecorded
        | FaultKind::Arguments => RpcError::INVALID_PARAMS,
        FaultKind::Connection
        | FaultKind::BreakerOpen
        | FaultKind::ProcessLimitReached
        | FaultKind::NotReady
        | FaultKind::Closing => CONNECTION,
        FaultKind::Timeout => TIMEOUT,
        FaultKind::Protocol | FaultKind::Abandoned => RpcError::INTERNAL,
    };
    let data = json!({
        "type": fault.kind.as_str(),
        "source": fault.source,
        "hint": fault.hint,
        "phase": fault.phase.as_str(),
        "sent": sent_word(fault.sent),
        "retry_after": fault.retry_after.map(|it| it.as_secs_f64().ceil()),
    });
    RpcError { data: Some(data.into()), ..RpcError::new(code, fault.message()) }
}

/// Returns the tool error for invalid arguments. A model sees a result, but many clients hide a JSON-RPC error from it
/// (SEP-1303).
pub(super) fn argument_errors(fault: &Fault) -> Raw {
    json!({
        "content": [{ "type": "text", "text": fault.message() }],
        "isError": true,
        "_meta": { "io.wharf/problems": views::argument_errors(fault) },
    })
    .into()
}

/// Checks whether a server says that it does not have a resource. Servers use different codes for that.
pub(super) fn is_not_found(error: &RpcError) -> bool {
    matches!(error.code, NO_RESOURCE | RpcError::INVALID_PARAMS | RpcError::METHOD_NOT_FOUND | 0)
}

/// The error for a resource that no source has, with the code of the client's era.
pub(super) fn no_resource(uri: &str, modern: bool) -> RpcError {
    let data = json!({ "uri": uri });
    let code = if modern { RpcError::INVALID_PARAMS } else { NO_RESOURCE };
    RpcError { data: Some(data.into()), ..RpcError::new(code, "no source has this resource") }
}
