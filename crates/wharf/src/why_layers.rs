//! Layers of `wharf why` that the runtime does not know: roles, approvals, limits, and tools that are not listed.

use wharf_config::{Decision, FilePosition, Role};
use wharf_runtime::why::{ToolExplanation, ToolLayer};

/// Returns the layer that says whether a principal may call tools.
pub(crate) fn role_layer(principal: &str, role: Role) -> ToolLayer {
    let is_ok = role >= Role::Caller;
    let may = if is_ok { "may" } else { "may not" };
    ToolLayer {
        is_ok,
        code: (!is_ok).then_some("role"),
        hint: (!is_ok).then(|| "give the token the role `caller` in wharf.toml".to_owned()),
        ..layer(
            "role",
            format!("the token `{principal}` has the role `{}` and {may} call tools", role.as_str()),
        )
    }
}

/// Returns the layer that says whether a call of the model needs approval, from the decision, its reason and its line.
pub(crate) fn ask_layer((decision, why, at): (Decision, String, Option<FilePosition>)) -> ToolLayer {
    let decided = match decision {
        Decision::Allow => layer("ask", format!("a call needs no approval: {why}")),
        Decision::Ask => {
            ToolLayer { code: Some("asked"), ..layer("ask", format!("a call needs approval: {why}")) }
        }
        Decision::Deny => ToolLayer {
            is_ok: false,
            code: Some("denied"),
            hint: Some("change `approval` in agent.yaml, or `[agent.approval]` in wharf.toml".to_owned()),
            ..layer("ask", format!("a call of the model is denied: {why}"))
        },
    };
    ToolLayer { at: at.map(|it| it.to_string()), ..decided }
}

/// Returns the layer that says whether the gateway takes another call.
pub(crate) fn limit_layer(in_flight: usize, limit: usize) -> ToolLayer {
    let is_ok = in_flight < limit;
    ToolLayer {
        is_ok,
        code: (!is_ok).then_some("calls"),
        hint: (!is_ok)
            .then(|| "try again in a moment, or raise `max_calls` in [server] of wharf.toml".to_owned()),
        ..layer("limit", format!("{in_flight} of {limit} concurrent calls"))
    }
}

/// Notes that a tool is not listed, but found by a question.
pub(crate) fn note_deferred(explanation: &mut ToolExplanation) {
    let offer = explanation.layers.iter_mut().find(|it| it.name == "offer" && it.is_ok && it.code.is_none());
    if let Some(offer) = offer {
        offer.code = Some("deferred");
        offer.detail =
            "not listed, because of the tool mode or budget; `wharf__find_tools` finds it".to_owned();
    }
}

fn layer(name: &'static str, detail: String) -> ToolLayer {
    ToolLayer { name, is_ok: true, code: None, detail, hint: None, at: None }
}
