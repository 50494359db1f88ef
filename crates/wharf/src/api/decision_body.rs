//! Decisions about calls, as clients send them: `{"decision", "scope", "digest", "reason"}`.

use super::{body, problem::Problem};
use crate::agent_runs::CallDecision;
use http::StatusCode;
use wharf_mcp::Raw;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 1_000;

/// Reads the decision about the call of this question.
pub(super) fn read(approval_id: &str, body: &Raw) -> Result<CallDecision, Problem> {
    body::reject_unknown_keys(body, &["decision", "scope", "digest", "reason"])?;
    let word = |key: &str| body::read_text(body, key, MAX_REASON_CHARS);
    let invalid = |what: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what.to_owned());
    let is_allowed = match word("decision")?.as_deref() {
        Some("allow") => true,
        Some("deny") => false,
        _ => return Err(invalid("`decision` has to be `allow` or `deny`")),
    };
    let is_for_tool = match word("scope")?.as_deref() {
        None | Some("once") => false,
        Some("tool") => true,
        Some(_) => return Err(invalid("`scope` has to be `once` or `tool`")),
    };
    let digest = Some(word("digest")?.ok_or_else(|| invalid("`digest` is missing"))?);
    Ok(CallDecision {
        approval_id: approval_id.to_owned(),
        digest,
        is_allowed,
        is_for_tool,
        reason: word("reason")?,
    })
}

/// Reads a decision that names its question as `approval_id`.
pub(super) fn read_with_id(body: &Raw) -> Result<CallDecision, Problem> {
    if !body.is_object() {
        return Err(body::malformed("`approvals` has to be a list of objects"));
    }
    let missing = || Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "`approval_id` is missing");
    let id = body::read_text(body, "approval_id", MAX_REASON_CHARS)?.ok_or_else(missing)?;
    read(&id, &body.without(&["approval_id"]))
}
