//! Stored results as resources: `wharf://results/ID`, for the principal that owns them.

use super::{VIA, error::no_resource};
use serde_json::json;
use wharf_mcp::{Raw, RpcError};
use wharf_runtime::{
    Caller, Handle,
    result_handle::{ResultOwner, ResultReference},
};

/// Returns whether a URI means a stored result, for clients that get handles.
pub(super) fn is_result(handle: &Handle, uri: &str) -> bool {
    ResultReference::parse(uri).is_some() && handle.has_handles_for(VIA)
}

/// Reads a stored result of the client's principal, or the part that the URI's pointer names.
pub(super) async fn read(handle: &Handle, uri: &str, caller: &Caller) -> Result<Raw, RpcError> {
    let missing = || no_resource(uri, caller.retries_with_input);
    let reference = ResultReference::parse(uri).ok_or_else(missing)?;
    let results = handle.results().ok_or_else(missing)?;
    let owner =
        ResultOwner { principal: caller.audience.principal.clone().unwrap_or_default(), conversation: None };
    let found = results.read(&owner, &reference.id).await.map_err(|error| {
        tracing::error!(target: "wharf::results", "the stored results cannot be read: {error}");
        RpcError::new(RpcError::INTERNAL, "the stored results cannot be read")
    })?;
    let (_, document) = found.ok_or_else(missing)?;
    let text = document.part_text(&reference.pointer).ok_or_else(missing)?;
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": document.media_type(), "text": text }] }).into())
}

/// Returns the template under which stored results are listed.
pub(super) fn template() -> Raw {
    json!({ "uriTemplate": "wharf://results/{id}", "name": "stored result",
        "description": "A result that was too large for its reader." })
    .into()
}
