//! The endpoints for operators: health, readiness, metrics and the OpenAPI document.

use super::{Api, ApiState, document, json_response, openapi, problem::Problem, query::Query, routes::Route};
use crate::{http_server::RequestBody, metrics::JournalStatus};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use wharf_mcp::serve::http::Body;

impl Api {
    /// Answers the endpoints for operators: health, readiness, metrics and the OpenAPI document.
    pub(super) fn operator_response(
        &self,
        route: Route,
        request: &Request<RequestBody>,
    ) -> Result<Response<Body>, Problem> {
        let ApiState { journal, handle, openapi, .. } = &*self.shared;
        match route {
            Route::Metrics => {
                Query::read(request.uri().query(), &[])?;
                let database = journal.status();
                let status = JournalStatus {
                    is_database_up: !database.is_away(),
                    waiting_calls: database.waiting(),
                    lost_calls: database.lost(),
                };
                let text =
                    journal.metrics().text(handle, status, self.shared.upstream_context.faults.as_deref());
                Ok(document(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
            }
            Route::OpenApi => {
                let text = openapi.get_or_init(|| openapi::document().to_string().into());
                Ok(document(StatusCode::OK, "application/json", text.clone()))
            }
            Route::Ready => Ok(self.ready()),
            _ => Ok(json_response(StatusCode::OK, json!({ "status": "ok" }))),
        }
    }

    /// Answers `/ready`. Only a gateway that is draining, or that cannot journal calls any more, answers 503.
    fn ready(&self) -> Response<Body> {
        let body = self.shared.readiness();
        let is_unwell = self.shared.journal.status().is_full() || body["status"] == "draining";
        let status = if is_unwell { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        json_response(status, body)
    }
}

impl ApiState {
    /// Reports whether the gateway accepts new work. A lost database only degrades it, because calls still work, and
    /// otherwise all replicas would leave service at once.
    pub(super) fn readiness(&self) -> Value {
        let database = self.journal.status();
        let (away, full, waiting) = (database.is_away(), database.is_full(), database.waiting());
        let mut body = match *self.draining.borrow() {
            true => json!({ "status": "draining" }),
            false if away || full || waiting > 0 => {
                let missing = [("database", away), ("journal", full)];
                let missing: Vec<&str> =
                    missing.iter().filter(|(_, it)| *it).map(|(name, _)| *name).collect();
                json!({ "status": "degraded", "missing": missing, "waiting": waiting })
            }
            false => json!({ "status": "ready" }),
        };
        if database.lost() > 0 {
            body["lost"] = json!(database.lost());
        }
        if let Some(faults) = &self.upstream_context.faults {
            body["faults"] = json!(faults.rules());
        }
        body
    }
}
