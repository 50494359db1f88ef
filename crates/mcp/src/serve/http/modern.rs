//! Answers POSTs of 2026-07-28, which are stateless: the request carries everything, and its headers must match its
//! body.

use super::{
    HttpService, guard,
    response::{self, Pending},
};
use crate::{
    Message, Outbound, Raw, RpcError,
    http::{decode_value, headers},
    serve::{Incoming, RequestParams, dispatch},
};
use ::http::{HeaderMap, HeaderName, Response, StatusCode, request::Parts};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Maximum number of messages waiting for a slow client.
const OUTBOUND_CAPACITY: usize = 64;

impl HttpService {
    pub(super) async fn answer_modern(
        &self,
        message: Message,
        members: Box<RequestParams>,
        parts: Parts,
    ) -> Response<response::Body> {
        let (id, method, params) = match message {
            Message::Request { id, method, params } => (id, method, params),
            // A client of this era has no session that a notification could belong to.
            Message::Notification { .. } => return response::empty(StatusCode::ACCEPTED),
            // The server sends no requests in this era, so there is nothing to answer.
            Message::Answer { .. } => return response::empty(StatusCode::BAD_REQUEST),
        };
        if let Err(what) = self.check_headers(&parts.headers, &method, &members) {
            let error = RpcError::new(RpcError::HEADER_MISMATCH, what);
            return response::error_response(StatusCode::BAD_REQUEST, Some(id), error);
        }
        let terms = match members.modern_terms(self.service.about().eras) {
            Ok(terms) => Some(Arc::new(terms)),
            Err(error) => return response::error_response(StatusCode::BAD_REQUEST, Some(id), error),
        };
        let permit = match method.as_str() {
            "subscriptions/listen" => match self.acquire_stream() {
                None => return self.too_many_streams(Some(id)),
                permit => permit,
            },
            _ => None,
        };
        let prefers_stream = guard::prefers_stream(&parts.headers);
        let request = Incoming { method, params, members, http: Some(Arc::new(parts)) };
        let (out, messages) = mpsc::channel(OUTBOUND_CAPACITY);
        let pending = dispatch::answer(self.service.clone(), request, terms, id.clone(), Arc::default(), out);
        let pending: Pending = match permit {
            None => Box::pin(pending),
            Some(permit) => Box::pin(async move {
                let outcome = pending.await;
                drop(permit);
                outcome
            }),
        };
        let write_stream = |answer: &Outbound| response::event(answer);
        let write_stream = prefers_stream.then_some(&write_stream as _);
        let response = response::json_or_messages(id, pending, messages, status_of, write_stream).await;
        response.unwrap_or_else(response::stream_messages)
    }

    /// Checks that the headers match the body.
    fn check_headers(
        &self,
        headers: &HeaderMap,
        method: &str,
        members: &RequestParams,
    ) -> Result<(), String> {
        let text = |raw: Option<&Raw>| raw.and_then(|raw| raw.decode::<String>().ok());
        // A body without a version is rejected later, for the missing version and not for its header.
        if let Some(version) = text(members.meta.as_ref().and_then(|meta| meta.version.as_ref())) {
            check_header(headers, &headers::VERSION, &version)?;
        }
        check_header(headers, &headers::METHOD, method)?;
        let name = match method {
            "tools/call" | "prompts/get" => &members.name,
            "resources/read" => &members.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => &members.task_id,
            _ => return Ok(()),
        };
        let Some(name) = text(name.as_ref()) else { return Ok(()) };
        check_header(headers, &headers::NAME, &name)?;
        if method == "tools/call" {
            self.check_arguments(headers, &name, members.arguments.as_ref())?;
        }
        Ok(())
    }

    fn check_arguments(
        &self,
        headers: &HeaderMap,
        tool: &str,
        arguments: Option<&Raw>,
    ) -> Result<(), String> {
        let Some(tool) = self.service.handler().tool(tool) else { return Ok(()) };
        for (suffix, value) in tool.header_params(arguments) {
            let name = HeaderName::try_from(format!("{}{suffix}", headers::PARAM))
                .map_err(|error| error.to_string())?;
            check_header(headers, &name, &value)?;
        }
        Ok(())
    }
}

fn check_header(headers: &HeaderMap, name: &HeaderName, expected: &str) -> Result<(), String> {
    let found = headers.get(name).and_then(|value| value.to_str().ok()).and_then(decode_value);
    match found {
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(format!("the header `{name}` is `{found}`, but the body has `{expected}`")),
        None => Err(format!("the header `{name}` is missing or unreadable")),
    }
}

/// Returns the HTTP status of a response that consists of this error only.
fn status_of(error: &RpcError) -> StatusCode {
    match error.code {
        RpcError::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        RpcError::HEADER_MISMATCH | RpcError::MISSING_CAPABILITY | RpcError::UNSUPPORTED_VERSION => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
