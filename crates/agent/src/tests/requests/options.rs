//! Options, tool choice, images, native data and schemas in requests.

use super::{body, conversation, model, own_body, user};
use crate::{
    dialect::Dialect,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolResult},
    model::ModelOptions,
    tool_list::ToolSpec,
    view::{ToolChoice, View},
};
use serde_json::{Value, json};
use wharf_config::{Provider, ReasoningEffort};

fn body_of(dialect: Dialect, model: &ModelOptions) -> Value {
    body(dialect, model, &[user("Hi")], ToolChoice::Auto)
}

#[test]
fn set_options_have_the_names_of_the_dialect() {
    let rows = [
        (Dialect::Responses, "/max_output_tokens", "/temperature", "/top_p"),
        (Dialect::Chat, "/max_completion_tokens", "/temperature", "/top_p"),
        (Dialect::Anthropic, "/max_tokens", "/temperature", "/top_p"),
        (
            Dialect::Gemini,
            "/generationConfig/maxOutputTokens",
            "/generationConfig/temperature",
            "/generationConfig/topP",
        ),
        (Dialect::Ollama, "/options/num_predict", "/options/temperature", "/options/top_p"),
    ];
    for (dialect, max_tokens, temperature, top_p) in rows {
        let options = ModelOptions {
            max_tokens: Some(100),
            temperature: Some(0.5),
            top_p: Some(0.25),
            ..model(dialect)
        };
        let body = body_of(dialect, &options);
        let found = [max_tokens, temperature, top_p].map(|path| body.pointer(path).cloned());
        assert_eq!(found, [Some(json!(100)), Some(json!(0.5)), Some(json!(0.25))], "{dialect:?}");
    }
}

#[test]
fn the_provider_and_its_address_choose_the_dialect() {
    let rows = [
        (Provider::OpenAi, false, false, Dialect::Responses),
        (Provider::OpenAi, true, false, Dialect::Chat),
        (Provider::AzureOpenAi, true, false, Dialect::Responses),
        (Provider::AzureOpenAi, true, true, Dialect::Chat),
        (Provider::Anthropic, true, true, Dialect::Anthropic),
        (Provider::Gemini, true, false, Dialect::Gemini),
        (Provider::Ollama, true, false, Dialect::Ollama),
    ];
    for (provider, has_endpoint, has_api_version, expected) in rows {
        assert_eq!(Dialect::choose(provider, has_endpoint, has_api_version), expected, "{provider:?}");
    }
}

#[test]
fn compatible_servers_get_no_keys_that_they_may_refuse() {
    let options = ModelOptions { has_other_host: true, max_tokens: Some(100), ..model(Dialect::Chat) };
    let body = body_of(Dialect::Chat, &options);
    assert_eq!(body["max_tokens"], 100);
    for key in ["max_completion_tokens", "prompt_cache_key", "stream_options"] {
        assert_eq!(body.get(key), None, "{key}");
    }
    let azure = ModelOptions { provider: Provider::AzureOpenAi, ..options };
    assert_eq!(body_of(Dialect::Chat, &azure)["max_completion_tokens"], 100);
}

#[test]
fn extra_keys_are_added_and_replace_nothing() {
    for dialect in Dialect::ALL {
        let plain = body_of(dialect, &model(dialect));
        let mut options = model(dialect);
        let known: Vec<String> = plain.as_object().expect("an object").keys().cloned().collect();
        options.extra = known.iter().map(|key| (key.clone(), json!("mine"))).collect();
        options.extra.insert("seed".into(), json!(7));
        let body = body_of(dialect, &options);
        assert_eq!(body["seed"], 7, "{dialect:?}");
        for key in known {
            assert_eq!(body[&key], plain[&key], "{key} in {dialect:?}");
        }
    }
    let mut options = model(Dialect::Ollama);
    options.extra.insert("options".into(), json!({ "num_ctx": 1, "seed": 7 }));
    assert_eq!(body_of(Dialect::Ollama, &options)["options"], json!({ "num_ctx": 16384, "seed": 7 }));
}

#[test]
fn reasoning_is_sent_only_if_it_is_set() {
    let adaptive = json!({ "thinking": { "type": "adaptive" }, "output_config": { "effort": "low" } });
    let budget = json!({ "thinking": { "type": "enabled", "budget_tokens": 2048 } });
    let gemini = json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": 2048, "includeThoughts": true } } });
    let rows = [
        (Dialect::Responses, "gpt-5.1", json!({ "reasoning": { "effort": "low", "summary": "auto" } })),
        (Dialect::Chat, "gpt-5.1", json!({ "reasoning_effort": "low" })),
        (Dialect::Anthropic, "claude-opus-4-6", adaptive.clone()),
        (Dialect::Anthropic, "claude-sonnet-5", adaptive),
        (Dialect::Anthropic, "claude-haiku-4-5-20251001", budget.clone()),
        (Dialect::Anthropic, "claude-3-7-sonnet-20250219", budget),
        (Dialect::Gemini, "gemini-2.5-flash", gemini),
        (Dialect::Ollama, "qwen3", json!({ "think": "low" })),
    ];
    for (dialect, name, expected) in rows {
        let plain = ModelOptions { name: name.into(), ..model(dialect) };
        let options = ModelOptions { reasoning: Some(ReasoningEffort::Low), ..plain.clone() };
        let mut body = body_of(dialect, &options);
        for key in body_of(dialect, &plain).as_object().expect("an object").keys() {
            body.as_object_mut().expect("an object").shift_remove(key);
        }
        assert_eq!(body, expected, "{name}");
    }
}

/// Anthropic refuses thinking in a request that forces a tool, and a budget that is not below `max_tokens`. The latter is
/// always so for what a server asks the model, whose answer has at most 1,024 tokens.
#[test]
fn anthropic_gets_no_thinking_where_it_refuses_it() {
    for name in ["claude-opus-4-6", "claude-haiku-4-5-20251001"] {
        let reasoning = Some(ReasoningEffort::High);
        let model = ModelOptions { name: name.into(), reasoning, ..model(Dialect::Anthropic) };
        let messages = [user("Hi")];
        let has_thinking = |model: &ModelOptions, tool_choice| {
            let body = body(Dialect::Anthropic, model, &messages, tool_choice);
            body.get("thinking").or(body.get("output_config")).is_some()
        };
        assert!(
            has_thinking(&model, ToolChoice::Auto) && has_thinking(&model, ToolChoice::Forbidden),
            "{name}"
        );
        assert!(!has_thinking(&model, ToolChoice::Required("get")), "{name}");
        let has_budget = name.contains("4-5");
        let short = ModelOptions { max_tokens: Some(1_024), ..model };
        assert_eq!(has_thinking(&short, ToolChoice::Auto), !has_budget, "{name}");
    }
}

#[test]
fn a_tool_can_be_required_and_calls_can_be_forbidden() {
    let function = json!({ "type": "function", "function": { "name": "get" } });
    let only = json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["get"] } });
    let rows = [
        (Dialect::Responses, "tool_choice", json!({ "type": "function", "name": "get" }), json!("none")),
        (Dialect::Chat, "tool_choice", function, json!("none")),
        (
            Dialect::Anthropic,
            "tool_choice",
            json!({ "type": "tool", "name": "get" }),
            json!({ "type": "none" }),
        ),
        (Dialect::Gemini, "toolConfig", only, json!({ "functionCallingConfig": { "mode": "NONE" } })),
    ];
    for (dialect, key, required, forbidden) in rows {
        let model = model(dialect);
        assert_eq!(body(dialect, &model, &[user("Hi")], ToolChoice::Required("get"))[key], required);
        let body = body(dialect, &model, &[user("Hi")], ToolChoice::Forbidden);
        assert_eq!(body[key], forbidden);
        assert!(body.get("tools").is_some(), "the tools stay for the prompt cache");
    }
    let ollama = body(Dialect::Ollama, &model(Dialect::Ollama), &[user("Hi")], ToolChoice::Forbidden);
    assert_eq!(ollama.get("tools"), None);
}

#[test]
fn native_data_goes_to_its_own_model_only() {
    for dialect in Dialect::ALL {
        let foreign = body(dialect, &model(dialect), &conversation("other/m"), ToolChoice::Auto).to_string();
        for word in ["signature", "sig", "Hm."] {
            assert!(!foreign.contains(word), "{word} in {dialect:?}");
        }
        assert!(foreign.contains("Wait."), "{dialect:?}");
    }
}

#[test]
fn images_are_sent_to_models_that_accept_them() {
    let image = Content::image("image/png", "QUJDRA==");
    let messages = [
        Message::User(vec![Content::Text("Look".into()), image.clone()]),
        Message::Result(ToolResult {
            call_id: "a".into(),
            name: "get".into(),
            content: vec![image],
            is_error: false,
        }),
    ];
    for dialect in Dialect::ALL {
        for images in [true, false] {
            let options = ModelOptions { images, ..model(dialect) };
            let body = body(dialect, &options, &messages, ToolChoice::Auto).to_string();
            assert_eq!(body.matches("QUJDRA==").count(), if images { 2 } else { 0 }, "{dialect:?}");
            assert!(images || body.matches("[image/png, 1 KB]").count() == 2, "{dialect:?}");
        }
    }
}

#[test]
fn a_longer_conversation_begins_like_the_shorter_one() {
    for dialect in Dialect::ALL.into_iter().filter(|it| *it != Dialect::Anthropic) {
        let model = model(dialect);
        let key =
            ["messages", "input", "contents"].into_iter().find(|key| own_body(dialect).get(key).is_some());
        let key = key.expect("a list of messages");
        let mut messages = conversation(&model.native_key());
        let shorter = body(dialect, &model, &messages, ToolChoice::Auto)[key].to_string();
        messages.push(user("And now?"));
        let longer = body(dialect, &model, &messages, ToolChoice::Auto)[key].to_string();
        assert!(longer.starts_with(shorter.trim_end_matches(']')), "{dialect:?}");
    }
}

#[test]
fn schemas_and_names_fit_the_provider() {
    let schema = json!({ "oneOf": [
        { "properties": { "a": { "type": "string" } }, "required": ["a"] },
        { "properties": { "b": { "type": "string" } } },
    ] });
    let tools = [ToolSpec { name: "7zip".into(), description: String::new(), schema: schema.clone() }];
    let written = |dialect: Dialect| {
        let tools = dialect.write_tools(&tools);
        let view = View {
            conversation_id: "c",
            instructions: "",
            tools: &tools,
            tool_choice: ToolChoice::Auto,
            messages: &[],
        };
        serde_json::from_slice::<Value>(&dialect.write(&view, &model(dialect))).expect("JSON")["tools"][0]
            .clone()
    };
    let flat =
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
    assert_eq!(written(Dialect::Anthropic)["input_schema"], flat);
    assert_eq!(written(Dialect::Chat)["function"]["parameters"]["oneOf"], schema["oneOf"]);
    assert_eq!(written(Dialect::Chat)["function"]["parameters"]["type"], "object");
    assert_eq!(written(Dialect::Gemini)["functionDeclarations"][0]["name"], "_7zip");
}

#[test]
fn anthropic_refuses_empty_texts_and_free_ids_so_neither_is_sent() {
    let parts = vec![
        AnswerPart::Text { text: " ".into(), native: None },
        super::tool_call("functions.get:0", "{}", None),
    ];
    let messages = [
        user(""),
        Message::Answer(AnswerMessage { parts, model: String::new() }),
        super::result("functions.get:0", "", false),
    ];
    let body = body(Dialect::Anthropic, &model(Dialect::Anthropic), &messages, ToolChoice::Auto);
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(body["messages"][0]["content"][0]["id"], "functions_get_0");
    assert_eq!(body["messages"][1]["content"][0]["tool_use_id"], "functions_get_0");
    assert_eq!(body["messages"][1]["content"][0]["content"], json!([]));
}

#[test]
fn gemini_names_are_escaped_only_where_needed_and_stay_different() {
    let names = ["get", "_get", "7zip", "_7zip", "__7zip", "-x", "_"];
    let tools =
        names.map(|name| ToolSpec { name: name.into(), description: String::new(), schema: json!({}) });
    let tools = Dialect::Gemini.write_tools(&tools);
    let tool_choice = ToolChoice::Auto;
    let view = View { conversation_id: "c", instructions: "", tools: &tools, tool_choice, messages: &[] };
    let body: Value =
        serde_json::from_slice(&Dialect::Gemini.write(&view, &model(Dialect::Gemini))).expect("JSON");
    let shown = (0..names.len()).map(|at| body["tools"][0]["functionDeclarations"][at]["name"].clone());
    let shown: Vec<Value> = shown.collect();
    assert_eq!(shown, ["get", "_get", "_7zip", "__7zip", "___7zip", "_-x", "_"]);
}
