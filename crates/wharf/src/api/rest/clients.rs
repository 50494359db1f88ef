//! `GET /api/v1/clients`: the MCP clients that have talked to the gateway lately.

use super::HandlerResult;
use crate::{api::query::Query, gateway::SeenClients};

pub(super) fn list(clients: &SeenClients, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["limit", "cursor"])?;
    let clients: Vec<(usize, serde_json::Value)> = clients.list().into_iter().enumerate().collect();
    query.page(&clients, |(place, _)| place.to_string(), |(_, client)| client.clone().into())
}
