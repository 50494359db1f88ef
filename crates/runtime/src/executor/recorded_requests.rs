//! Records requests that are no calls, prompts and resources, and what servers ask during calls.

use super::Executor;
use crate::{
    Call, Fault,
    active_source::ActiveSource,
    cassette::StepKind,
    circuit_breaker::Permit,
    consent::Consent,
    server_questions::{RememberingConsent, ServerQuestions},
    source_request::{Method, SourceRequest},
    upstream::source_host,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wharf_config::Source;
use wharf_mcp::{Raw, session::Host};

impl Executor {
    /// Remembers what the server asks during a call. A caller with a consent of its own gets a consent that remembers;
    /// others need the returned host.
    pub(super) fn remember_questions(
        &self,
        source: &Arc<Source>,
        call: &mut Call,
    ) -> (Option<Arc<dyn Host>>, Option<Arc<ServerQuestions>>) {
        let questions = Arc::<ServerQuestions>::default();
        let remembering = |consent: Arc<dyn Consent>| -> Arc<dyn Consent> {
            Arc::new(RememberingConsent { consent, questions: questions.clone() })
        };
        let host = match call.caller.as_mut().and_then(|it| it.consent.as_mut()) {
            Some(consent) => {
                *consent = remembering(consent.clone());
                None
            }
            None => Some(source_host(source, remembering(self.root_changes.clone()))),
        };
        (host, Some(questions))
    }

    /// Sends a request to a source. If there is a recorder, prompts and resources are recorded.
    pub(crate) async fn ask_recorded(
        &self,
        active_source: &Arc<ActiveSource>,
        permit: Permit,
        ask: SourceRequest<'_>,
    ) -> Result<Raw, Arc<Fault>> {
        let recording = self.recorder.as_ref().and_then(|recorder| {
            let (kind, request) = recorded_request(active_source.source().name.expose(), &ask.method)?;
            let audience = ask.caller.map(|it| &it.audience);
            let principal = audience.and_then(|it| it.principal.as_deref()).unwrap_or_default();
            let client = audience.and_then(|it| it.client).map(|it| format!("{principal} {it}"));
            Some((recorder, recorder.start(&client.unwrap_or_else(|| principal.to_owned())), kind, request))
        });
        let answer = active_source.ask(permit, ask).await;
        if let Some((recorder, position, kind, request)) = recording {
            recorder.finish_request(position, kind, request, &answer);
        }
        answer
    }
}

/// Returns the members by which a replay finds a request. `None` for one that is not recorded.
fn recorded_request(source: &str, method: &Method<'_>) -> Option<(StepKind, Map<String, Value>)> {
    let (kind, request) = match method {
        Method::Prompt(name, arguments) => {
            let arguments = arguments.map_or_else(|| json!({}), |it| it.decode_or_default::<Value>());
            (StepKind::Prompt, json!({ "source": source, "name": name, "arguments": arguments }))
        }
        Method::Resource(uri) => (StepKind::Read, json!({ "source": source, "uri": uri })),
        Method::Tool(..) | Method::Task(..) | Method::Other(..) => return None,
    };
    let Value::Object(members) = request else { return None };
    Some((kind, members))
}
