//! A host that accepts every server request.

use crate::sample;
use serde_json::{Value, json};
use wharf_mcp::{
    Host, Raw, RpcError,
    session::{HostFuture, NoHost},
};

pub(crate) struct AcceptingHost;

impl Host for AcceptingHost {
    fn capabilities(&self) -> Raw {
        json!({ "roots": {}, "sampling": {}, "elicitation": { "form": { "applyDefaults": true } } }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        let answer = match method {
            "elicitation/create" => elicited(params.as_ref()),
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "none", "stopReason": "endTurn",
                "content": { "type": "text", "text": "This is a sampled text." },
            }),
            "roots/list" => json!({ "roots": [{ "uri": "file:///srv/data", "name": "data" }] }),
            _ => return NoHost.answer(method, params),
        };
        Box::pin(async move { Ok::<_, RpcError>(answer.into()) })
    }
}

/// Accepts an elicitation, with the defaults of the form where it has some.
fn elicited(params: Option<&Raw>) -> Value {
    let schema = params.and_then(|params| params.member("requestedSchema"));
    let schema: Value = schema.map(|schema| schema.decode_or_default()).unwrap_or_default();
    json!({ "action": "accept", "content": sample::object(&schema) })
}
