//! Paths and headers of requests on the wire.

use super::{KEY, ask, client, model_at, wire};
use crate::dialect::Dialect;
use scripted_model::{Reply, ScriptedModel};
use wharf_config::{MaskedString, ModelApi, Provider};

#[tokio::test]
async fn paths_and_keys_are_those_of_each_provider() {
    let bearer = format!("Bearer {KEY}");
    let rows = [
        (Dialect::Responses, "/v1/responses", "authorization", bearer.as_str()),
        (Dialect::Chat, "/v1/chat/completions", "authorization", &bearer),
        (Dialect::Anthropic, "/v1/messages", "x-api-key", KEY),
        (Dialect::Gemini, "/v1/models/m:streamGenerateContent?alt=sse", "x-goog-api-key", KEY),
        (Dialect::Ollama, "/v1/api/chat", "authorization", &bearer),
    ];
    for (dialect, path, header, key) in rows {
        let server = ScriptedModel::start(vec![Reply::text(wire(dialect), "ok")]);
        let mut model = model_at(dialect, &format!("{}v1", server.url()));
        model.headers = vec![("X-Team".into(), MaskedString::plain("blue"))];
        ask(&client(&model)).await.answer.expect("an answer");
        let request = &server.requests()[0];
        assert_eq!(request.path, path, "{dialect:?}");
        assert_eq!(request.header(header), Some(key), "{dialect:?}");
        assert_eq!(request.header("x-team"), Some("blue"), "{dialect:?}");
        let version = (dialect == Dialect::Anthropic).then_some("2023-06-01");
        assert_eq!(request.header("anthropic-version"), version, "{dialect:?}");
    }
}

#[tokio::test]
async fn azure_has_two_paths() {
    let rows = [
        (None, None, "/openai/v1/responses"),
        (None, Some("2026-01-01"), "/openai/deployments/m/chat/completions?api-version=2026-01-01"),
        (Some(ModelApi::Chat), None, "/openai/v1/chat/completions"),
    ];
    for (api, version, path) in rows {
        let dialect = if path.contains("chat") { Dialect::Chat } else { Dialect::Responses };
        let server = ScriptedModel::start(vec![Reply::text(wire(dialect), "ok")]);
        let mut model = model_at(Dialect::Chat, &server.url());
        (model.provider, model.api) = (Provider::AzureOpenAi, api);
        model.api_version = version.map(MaskedString::plain);
        ask(&client(&model)).await.answer.expect("an answer");
        let request = &server.requests()[0];
        assert_eq!((request.path.as_str(), request.header("api-key")), (path, Some(KEY)));
    }
}
