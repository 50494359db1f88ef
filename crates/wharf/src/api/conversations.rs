//! `/api/v1/conversations` and `/api/v1/approvals`: what is kept of conversations, and the questions that wait.

use super::{
    ApiState, body, chat, decision_body, json_response, problem::Problem, query::Query, rest, routes::Route,
    tokens::Principal,
};
use crate::agent_runs::{LiveAnswer, StartError};
use crate::http_server::RequestBody;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};
use wharf_agent::{ApprovalAnswer, InputAnswer, check_form};
use wharf_config::Role;
use wharf_mcp::{Raw, serve::http::Body, time_format::rfc3339};
use wharf_runtime::result_handle::ResultOwner;
use wharf_store::{ApprovalRow, ConversationRow, EntryRow, Store, StoreError};

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Maximum number of conversations that are listed.
const MAX_LISTED: usize = 5_000;

/// Answers a request. `segment` is the id in the path.
pub(super) async fn respond(
    shared: &Arc<ApiState>,
    route: Route,
    segment: &str,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Problem> {
    shared.require_database()?;
    let Some(principal) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return Err(Problem::unauthorized());
    };
    let access = ConversationAccess { shared, store: shared.journal.store(), principal: &principal };
    let query = request.uri().query().map(str::to_owned);
    let query = query.as_deref();
    match route {
        Route::Conversations => access.list(query).await,
        Route::CreateConversation => access.create(query, request).await,
        Route::Conversation => access.get(segment, query).await,
        Route::RenameConversation => access.rename(segment, query, request).await,
        Route::DeleteConversation => access.delete(segment, query).await,
        Route::Entries => access.entries(segment, query).await,
        Route::ConversationResult => access.result(segment, query, request.headers()).await,
        Route::ConversationStream => access.stream(segment, query, request.headers()).await,
        Route::CancelRun => access.cancel(segment, query).await,
        Route::Approvals => access.approvals(query).await,
        _ => access.decide(segment, query, request).await,
    }
}

/// A principal's access to conversations: their own, and all of them for operators.
struct ConversationAccess<'a> {
    shared: &'a Arc<ApiState>,
    store: &'a Store,
    principal: &'a Principal,
}

impl ConversationAccess<'_> {
    /// The owner that conversations must have, unless all may be seen.
    fn owner(&self) -> Option<&str> {
        (self.principal.role < Role::Operator).then_some(&*self.principal.name)
    }

    async fn find(&self, id: &str) -> Result<ConversationRow, Problem> {
        let found = self.store.conversation(id, self.owner()).await.map_err(unavailable)?;
        found.ok_or_else(|| Problem::not_found("conversation", id))
    }

    async fn list(&self, query: Option<&str>) -> Result<Response<Body>, Problem> {
        let query = Query::read(query, &["q", "limit", "cursor"])?;
        let mut all = self.store.conversations(self.owner(), None, MAX_LISTED).await.map_err(unavailable)?;
        all.retain(|it| query.matches_search(&it.title));
        query.page(&all, |it| it.id.clone(), |it| conversation(it).into())
    }

    async fn create(
        &self,
        query: Option<&str>,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        let body = body::read_object(request).await?;
        body::reject_unknown_keys(&body, &["title"])?;
        let title = body::read_text(&body, "title", MAX_TITLE_CHARS)?.unwrap_or_default();
        let runs = &self.shared.agent_runs;
        let created = runs.conversations().create(&self.principal.name, &title, &runs.run_agent()).await;
        let created = self.find(&created.map_err(unavailable)?).await?;
        Ok(json_response(StatusCode::CREATED, conversation(&created)))
    }

    async fn get(&self, id: &str, query: Option<&str>) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        Ok(json_response(StatusCode::OK, conversation(&self.find(id).await?)))
    }

    async fn rename(
        &self,
        id: &str,
        query: Option<&str>,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        let body = body::read_object(request).await?;
        body::reject_unknown_keys(&body, &["title"])?;
        let title = body::read_text(&body, "title", MAX_TITLE_CHARS)?;
        let title = title.ok_or_else(|| body::malformed("`title` is missing"))?;
        self.find(id).await?;
        self.store.rename_conversation(id, self.owner(), &title).await.map_err(unavailable)?;
        Ok(json_response(StatusCode::OK, conversation(&self.find(id).await?)))
    }

    async fn delete(&self, id: &str, query: Option<&str>) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        if self.find(id).await?.shown_state() == "running" {
            return Err(Problem::new(StatusCode::CONFLICT, "a run of the conversation is under way")
                .hint("cancel it first"));
        }
        self.store.delete_conversation(id, self.owner()).await.map_err(unavailable)?;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    async fn entries(&self, id: &str, query: Option<&str>) -> Result<Response<Body>, Problem> {
        let query = Query::read(query, &["limit", "cursor"])?;
        self.find(id).await?;
        let limit = query.limit(super::query::MAX_PAGE_SIZE)?;
        let after = match query.text("cursor") {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| query.invalid_parameter("cursor"))?,
        };
        let mut rows = self.store.entries(id, after, limit + 1).await.map_err(unavailable)?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|it| it.seq.to_string());
        Ok(super::query::list(rows.iter().map(entry).collect(), next))
    }

    /// Returns a stored result. `path` is `ID/results/HANDLE`.
    async fn result(
        &self,
        path: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        let (id, handle) = path.split_once("/results/").unwrap_or((path, ""));
        let row = self.find(id).await?;
        let owner = ResultOwner { principal: row.principal.into(), conversation: Some(row.id.into()) };
        rest::read_result(self.shared, &owner, handle, headers).await
    }

    async fn stream(
        &self,
        id: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        self.find(id).await?;
        let after = headers.get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok()).unwrap_or(0);
        Ok(match self.shared.agent_runs.attach(id, after) {
            Some(events) => chat::stream(events, None, false),
            None => empty(StatusCode::NO_CONTENT),
        })
    }

    async fn cancel(&self, id: &str, query: Option<&str>) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        self.find(id).await?;
        if self.shared.agent_runs.cancel(id).await.map_err(Problem::from)? {
            return Ok(json_response(StatusCode::ACCEPTED, json!({ "ok": true })));
        }
        Err(Problem::new(StatusCode::CONFLICT, "no run of the conversation is under way here"))
    }

    async fn approvals(&self, query: Option<&str>) -> Result<Response<Body>, Problem> {
        let query = Query::read(query, &["limit", "cursor"])?;
        let open = self.store.open_approvals(self.owner()).await.map_err(unavailable)?;
        let mut open: Vec<Value> = open.iter().map(approval).collect();
        open.extend(self.shared.agent_runs.live_questions().list(self.owner()));
        let id = |it: &Value| it["approval_id"].as_str().unwrap_or_default().to_owned();
        open.sort_by_key(id);
        query.page(&open, id, |it| it.clone().into())
    }

    async fn decide(
        &self,
        id: &str,
        query: Option<&str>,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, Problem> {
        Query::read(query, &[])?;
        let body = body::read_object(request).await?;
        let runs = &self.shared.agent_runs;
        if let Some(question) = runs.live_questions().find(id, self.owner()) {
            return self.answer_live(id, question, &body);
        }
        let decision = decision_body::read(id, &body)?;
        let decided = runs.decide(self.owner(), &self.principal.name, &decision).await?;
        runs.wake();
        Ok(json_response(StatusCode::OK, approval(&decided)))
    }

    /// Answers the question of a run under way: about a call, or of a server.
    fn answer_live(&self, id: &str, mut question: Value, body: &Raw) -> Result<Response<Body>, Problem> {
        let stale = |why: &str| Problem::new(StatusCode::CONFLICT, why.to_owned()).kind("approval_stale");
        let answer = match question["digest"].as_str().filter(|_| question["kind"] == "call") {
            Some(digest) => {
                let decision = decision_body::read(id, body)?;
                if decision.digest.as_deref() != Some(digest) {
                    return Err(stale("the digest is that of another call"));
                }
                question["decision"] = if decision.is_allowed { "allow" } else { "deny" }.into();
                LiveAnswer::Decision(ApprovalAnswer {
                    is_allowed: decision.is_allowed,
                    reason: decision.reason,
                    by: Some(self.principal.name.to_string()),
                    is_for_tool: decision.is_for_tool,
                })
            }
            None => {
                let answer = input_answer(&question, body)?;
                question["action"] = body.member("action").unwrap_or_else(Raw::null).decode_or_default();
                LiveAnswer::Input(answer)
            }
        };
        if !self.shared.agent_runs.live_questions().answer(id, answer) {
            return Err(stale("the question is decided or has expired"));
        }
        question["decided_by"] = self.principal.name.to_string().into();
        Ok(json_response(StatusCode::OK, question))
    }
}

/// Reads the answer to a server: `{"action", "content"}`, where the content fits the form.
fn input_answer(question: &Value, body: &Raw) -> Result<InputAnswer, Problem> {
    body::reject_unknown_keys(body, &["action", "content"])?;
    let invalid = |what: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what);
    let answer = InputAnswer::from_json(&body.decode_or_default());
    let answer =
        answer.ok_or_else(|| invalid("`action` has to be `accept`, `decline` or `cancel`".to_owned()))?;
    if let InputAnswer::Accept(content) = &answer
        && question["kind"] == "form"
    {
        check_form(&question["requested_schema"], content).map_err(invalid)?;
    }
    Ok(answer)
}

fn conversation(row: &ConversationRow) -> Value {
    json!({ "id": row.id, "title": row.title, "agent": row.agent, "principal": row.principal,
        "provider": row.provider, "model": row.model, "state": row.shown_state(), "run_id": row.run_id,
        "entries": row.entries, "bytes": row.bytes,
        "usage": { "input": row.input_tokens, "output": row.output_tokens },
        "created_at": time(row.created_at), "updated_at": time(row.updated_at) })
}

fn entry(row: &EntryRow) -> Raw {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    json!({ "seq": row.seq, "run_id": row.run_id, "kind": row.kind, "call_id": row.call_id, "body": body,
        "created_at": time(row.created_at) })
    .into()
}

fn approval(row: &ApprovalRow) -> Value {
    let mut shown: Value = serde_json::from_str(&row.question).unwrap_or_default();
    if !shown.is_object() {
        shown = json!({});
    }
    shown["approval_id"] = row.id.as_str().into();
    shown["conversation_id"] = row.conversation_id.as_str().into();
    shown["run_id"] = row.run_id.as_str().into();
    shown["digest"] = row.digest.as_str().into();
    shown["decision"] = row.decision.clone().into();
    shown["scope"] = row.scope.clone().into();
    shown["decided_by"] = row.decided_by.clone().into();
    shown["kind"] = row.kind.as_str().into();
    shown
}

fn time(micros: i64) -> String {
    rfc3339(UNIX_EPOCH + Duration::from_micros(micros.max(0).cast_unsigned()))
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = status;
    response
}

fn unavailable(error: StoreError) -> Problem {
    tracing::warn!(target: "wharf::agent", "a conversation cannot be read or written: {error}");
    StartError::from(wharf_store::BeginError::Store(error)).into()
}
