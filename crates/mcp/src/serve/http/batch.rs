//! Answers JSON-RPC batches, which exist in only one protocol version.

use super::{
    HttpService,
    legacy::{NO_SESSION, OUTBOUND_CAPACITY},
    response::{self, Body},
};
use crate::{
    Message, Outbound, Raw, Routing, RpcError,
    envelope::ParsedFrame,
    serve::{Incoming, MessageSender, check_batch},
    session::BATCHING,
};
use ::http::{Response, StatusCode, request::Parts};
use futures_util::{StreamExt, stream};
use std::{future::Future, pin::Pin, sync::Arc};
use tokio::sync::mpsc;

/// Maximum number of requests of one batch that run concurrently.
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// A pending response with the id of its request.
type BatchAnswer = Pin<Box<dyn Future<Output = (Raw, Result<Raw, RpcError>)> + Send>>;

impl HttpService {
    /// Answers the requests of a batch on one SSE stream, each as soon as it is ready.
    pub(super) async fn batch(&self, messages: Vec<ParsedFrame>, parts: Parts) -> Response<Body> {
        let session = match self.session(&parts.headers, parts.extensions.get()).await {
            Ok(session) => session,
            Err((status, what)) => {
                return response::error_response(status, None, RpcError::new(NO_SESSION, what));
            }
        };
        if session.peer.terms.get().is_none_or(|terms| terms.version != BATCHING) {
            let error = RpcError::new(RpcError::INVALID_REQUEST, "this protocol version has no batches");
            return response::error_response(StatusCode::BAD_REQUEST, None, error);
        }
        if let Err(error) = check_batch(messages.len()) {
            return response::error_response(StatusCode::BAD_REQUEST, None, error);
        }
        let http = Some(Arc::new(parts));
        let (out, outgoing) = mpsc::channel(OUTBOUND_CAPACITY);
        let mut answers = Vec::<BatchAnswer>::new();
        for message in messages {
            match message {
                ParsedFrame::Message(Message::Request { id, method, params }) => {
                    let request = Incoming::new(method, params, http.clone());
                    let answer = self.answer(session.clone(), id.clone(), request, out.clone());
                    answers.push(Box::pin(async { (id, answer.await) }));
                }
                ParsedFrame::Message(Message::Notification { method, params }) => {
                    self.handle_notification(&session, &method, params);
                }
                ParsedFrame::Message(Message::Answer { id, outcome }) => session.peer.answered(id, outcome),
                ParsedFrame::Malformed { id, why } => {
                    let error = RpcError::new(RpcError::INVALID_REQUEST, why);
                    answers.push(Box::pin(async move { (serde_json::json!(id).into(), Err(error)) }));
                }
                ParsedFrame::Noise | ParsedFrame::Batch(_) => {}
            }
        }
        if answers.is_empty() {
            return response::empty(StatusCode::ACCEPTED);
        }
        response::stream_while(Box::pin(send_answers(answers, out)), outgoing)
    }
}

async fn send_answers(answers: Vec<BatchAnswer>, out: MessageSender) {
    let send = |answer: BatchAnswer| async {
        let (id, outcome) = answer.await;
        // A failed send means that the client has disconnected.
        let answer = Outbound::Answer { id, outcome, routing: Routing::default() };
        let _ = out.send(Box::new(answer)).await;
    };
    stream::iter(answers).for_each_concurrent(MAX_CONCURRENT_REQUESTS, send).await;
}
