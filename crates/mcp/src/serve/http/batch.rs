//! Answers JSON-RPC batches, which exist in only one protocol version.

use super::{
    HttpService,
    legacy::{NO_SESSION, QUEUE},
    response::{self, Body},
};
use crate::{
    Message, Outbound, Raw, Routing, RpcError,
    envelope::Reading,
    serve::{Handler, Incoming, check_batch, mailbox},
    session::BATCHING,
};
use ::http::{Response, StatusCode, request::Parts};
use futures_util::{StreamExt, stream};
use std::{future::Future, pin::Pin, sync::Arc};

/// Maximum number of requests of one batch that run concurrently.
const AT_ONCE: usize = 16;

/// A pending response with the id of its request.
type Answering = Pin<Box<dyn Future<Output = (Raw, Result<Raw, RpcError>)> + Send>>;

impl<H: Handler> HttpService<H> {
    /// Answers the requests of a batch on one SSE stream, each as soon as it is ready.
    pub(super) async fn batch(&self, messages: Vec<Reading>, parts: Parts) -> Response<Body> {
        let session = match self.session(&parts.headers, parts.extensions.get()).await {
            Ok(session) => session,
            Err((status, what)) => return response::refusal(status, None, RpcError::new(NO_SESSION, what)),
        };
        if session.peer.terms.get().is_none_or(|terms| terms.version != BATCHING) {
            let error = RpcError::new(RpcError::INVALID_REQUEST, "this protocol version has no batches");
            return response::refusal(StatusCode::BAD_REQUEST, None, error);
        }
        if let Err(refused) = check_batch(messages.len()) {
            return response::refusal(StatusCode::BAD_REQUEST, None, refused);
        }
        let http = Some(Arc::new(parts));
        let (out, said) = mailbox::channel(QUEUE);
        let mut answers = Vec::<Answering>::new();
        for message in messages {
            match message {
                Reading::Message(Message::Request { id, method, params }) => {
                    let request = Incoming { method, params, http: http.clone() };
                    let answer = self.answer(session.clone(), id.clone(), request, out.clone());
                    answers.push(Box::pin(async { (id, answer.await) }));
                }
                Reading::Message(Message::Notification { method, params }) => {
                    self.noted(&session, &method, params);
                }
                Reading::Message(Message::Answer { id, outcome }) => session.peer.answered(id, outcome),
                Reading::Garbled { id, why } => {
                    let error = RpcError::new(RpcError::INVALID_REQUEST, why);
                    answers.push(Box::pin(async move { (serde_json::json!(id).into(), Err(error)) }));
                }
                Reading::Noise | Reading::Batch(_) => {}
            }
        }
        if answers.is_empty() {
            return response::empty(StatusCode::ACCEPTED);
        }
        response::stream_while(Box::pin(say_all(answers, out)), said)
    }
}

async fn say_all(answers: Vec<Answering>, out: mailbox::Sender<Outbound>) {
    let said = |answer: Answering| async {
        let (id, outcome) = answer.await;
        // A failed send means that the client has disconnected.
        let answer = Outbound::Answer { id, outcome, routing: Routing::default() };
        let _ = out.send(answer).await;
    };
    stream::iter(answers).for_each_concurrent(AT_ONCE, said).await;
}
