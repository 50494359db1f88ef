//! Explains whether a principal's role allows it to call tools.

use wharf_config::Role;
use wharf_runtime::why::ToolLayer;

/// Returns the layer of `wharf why` that says whether a principal may call tools.
pub(crate) fn role_layer(principal: &str, role: Role) -> ToolLayer {
    let is_ok = role >= Role::Caller;
    let may = if is_ok { "may" } else { "may not" };
    ToolLayer {
        name: "role",
        is_ok,
        code: (!is_ok).then_some("role"),
        detail: format!("the token `{principal}` has the role `{}` and {may} call tools", role.as_str()),
        hint: (!is_ok).then(|| "give the token the role `caller` in wharf.toml".to_owned()),
        at: None,
    }
}
