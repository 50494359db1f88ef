//! Arguments that do not fit the schema of a tool: a result that the model can read over MCP, a 422 over REST.

use super::{
    COMBINATIONS,
    test_client::{Gateway, Transport},
    test_server::TestServer,
};
use serde_json::json;
use wharf_mcp::{Request, serve::Eras, session::Era};

#[tokio::test]
async fn invalid_arguments_are_a_tool_error_that_names_each_path() {
    for (transport, era, eras) in COMBINATIONS {
        let test_server = TestServer::start(eras).await;
        let gateway = Gateway::in_front_of(&test_server);
        let ada = gateway.connect(transport, era, "Ada").await;
        let wrong = json!({ "wait": "long", "place": { "city": 7 } });
        let result = ada.result(Request::call_tool("echo", Some(&wrong.into()))).await;
        assert_eq!(result["isError"], true, "{transport:?} {era:?} {result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        for path in ["`arguments.wait`", "`arguments.place.city`"] {
            assert!(text.contains(path), "{transport:?} {era:?} {text}");
        }
        let problems = result["_meta"]["io.wharf/problems"].as_array().expect("a list");
        let mut paths: Vec<_> = problems.iter().map(|it| it["path"].as_str().unwrap_or("?")).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/place/city", "/wait"], "{transport:?} {era:?}");
        // Neither an unknown tool nor arguments that are no object are for the model.
        let said = ada.call("nothing", json!({})).await;
        assert!(said.starts_with("-32602 "), "{transport:?} {era:?} {said}");
        let said = ada.call("echo", json!([])).await;
        assert!(said.starts_with("-32602 "), "{transport:?} {era:?} {said}");
    }
}

#[tokio::test]
async fn invalid_arguments_do_not_move_the_breaker_and_are_422_over_rest() {
    let test_server = TestServer::start(Eras::Both).await;
    let gateway = Gateway::in_front_of(&test_server);
    let ada = gateway.connect(Transport::Http, Era::Modern, "Ada").await;
    for _ in 0..10 {
        assert!(ada.call("echo", json!({ "wait": "long" })).await.contains("arguments.wait"));
    }
    let body = r#"{"arguments": {"place": {"city": 7}, "wait": null}}"#;
    let (status, problem) = gateway.rest("POST /api/v1/tools/island:echo/call", body);
    let problems = json!([
        { "path": "/place/city", "message": "is 7, but a string is expected" },
        { "path": "/wait", "message": "is null, but an integer is expected" },
    ]);
    assert_eq!((status, &problem["problems"]), (422, &problems), "{problem}");
    let (_, breakers) = gateway.rest("GET /api/v1/breakers", "");
    let breaker = &breakers["items"][0];
    assert_eq!((&breaker["state"], &breaker["failure_count"]), (&json!("CLOSED"), &json!(0)), "{breakers}");
    assert_eq!(ada.call("echo", json!({ "nonce": 5 })).await, "5");
}
