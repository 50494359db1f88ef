//! `GET /api/v1/tokens`: the tokens by name, without their values.

use super::HandlerResult;
use crate::api::{ApiState, query::Query};
use serde_json::json;
use wharf_runtime::time_format::rfc3339;

pub(super) async fn list(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["limit", "cursor"])?;
    let sessions = shared.sign_ins.count_sessions().await?;
    query.page(
        shared.tokens.principals(),
        |it| it.name.to_string(),
        |it| {
            json!({
                "name": &*it.name,
                "role": it.role.as_str(),
                "last_used": it.last_used().map(rfc3339),
                "sessions": sessions.get(&*it.name).copied().unwrap_or_default(),
            })
            .into()
        },
    )
}
