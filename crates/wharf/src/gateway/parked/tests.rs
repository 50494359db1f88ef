//! Tests for suspended calls and for who may resume them.

use super::*;
use crate::gateway::reports;
use tokio::sync::oneshot;
use wharf_mcp::serve::http::Owner;

type Answer = oneshot::Receiver<Result<Raw, RpcError>>;

fn errand(name: &str, input: &Value, owner: &str) -> Errand {
    let request = http::Request::builder().extension(Owner(owner.into())).body(()).unwrap();
    let whose = Principal::of(Some(&request.into_parts().0));
    let mut params = input.clone();
    params["name"] = name.into();
    Errand::read(Kind::Tool, &params.into(), whose).unwrap()
}

/// Suspends a call with two questions; returns its state and the receivers of its answers.
fn parked(yard: &Arc<Yard>) -> (Value, [Answer; 2]) {
    let what = What::of(&errand("t", &json!({}), "a"));
    let work = Box::pin(async { Ok(Raw::empty_object()) });
    let call = Call { what, work, asking: None, reports: reports::channel().1 };
    let (one, first) = Question::new("elicitation/create", Raw::empty_object());
    let (two, second) = Question::new("sampling/createMessage", Raw::empty_object());
    let wanted: Value = yard.park(call, vec![one, two]).unwrap().decode().unwrap();
    assert_eq!(wanted["inputRequests"]["question2"]["method"], "sampling/createMessage");
    (wanted["requestState"].clone(), [first, second])
}

fn arrive(yard: &Arc<Yard>, name: &str, state: &Value, responses: &Value, token: &str) -> String {
    let input = json!({ "requestState": state, "inputResponses": responses });
    match yard.arrive(&errand(name, &input, token)) {
        Ok(Arrival::New) => "new".to_owned(),
        Ok(Arrival::Back(_)) => "back".to_owned(),
        Ok(Arrival::Lacking(wanted)) => {
            let wanted: Value = wanted.decode().unwrap();
            let lacking = wanted["inputRequests"].as_object().unwrap().keys().cloned();
            lacking.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_all_its_answers_and_for_its_own_client() {
    let yard = Arc::<Yard>::default();
    let (state, [first, second]) = parked(&yard);
    let over = "the call that `requestState` means is over (-32602)";
    let (one, two) = (json!({ "question1": { "a": 1 } }), json!({ "question2": { "b": 2 } }));
    for (name, state, responses, token, expected) in [
        ("t", &json!("a server's own"), &one, "a", "new"),
        ("t", &state, &one, "b", over),
        ("other", &state, &one, "a", over),
        ("t", &state, &json!({}), "a", "question1 question2"),
        ("t", &state, &json!({ "question1": 7 }), "a", "question1 question2"),
        ("t", &state, &one, "a", "question2"),
        ("t", &state, &two, "a", "back"),
        ("t", &state, &two, "a", over),
    ] {
        assert_eq!(arrive(&yard, name, state, responses, token), expected, "{name} {state} {token}");
    }
    assert_eq!(first.await.unwrap().unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(second.await.unwrap().unwrap().as_str(), r#"{"b":2}"#);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_stays_away_is_let_go() {
    let yard = Arc::<Yard>::default();
    let (state, [first, _second]) = parked(&yard);
    time::sleep(PATIENCE + Duration::from_secs(1)).await;
    assert!(first.await.is_err(), "its questions are not waited for any more");
    let over = "the call that `requestState` means is over (-32602)";
    assert_eq!(arrive(&yard, "t", &state, &json!({}), "a"), over);
}
