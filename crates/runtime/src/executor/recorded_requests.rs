//! Records requests that are no calls: prompts and resources.

use super::Executor;
use crate::{
    Fault,
    active_source::ActiveSource,
    cassette::StepKind,
    circuit_breaker::Permit,
    source_request::{Method, SourceRequest},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wharf_mcp::Raw;

impl Executor {
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
