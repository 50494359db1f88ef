//! Tests for suspended calls and for who may resume them.

use super::*;
use crate::gateway::reports;
use tokio::sync::oneshot;
use wharf_mcp::serve::{RequestParams, http::Owner};

type AnswerReceiver = oneshot::Receiver<Result<Raw, RpcError>>;

fn client_request(name: &str, input: &Value, owner: &str) -> ClientRequest {
    let request = http::Request::builder().extension(Owner(owner.into())).body(()).unwrap();
    let principal = PrincipalName::of(Some(&request.into_parts().0));
    let mut params = input.clone();
    params["name"] = name.into();
    ClientRequest::read(RequestKind::Tool, RequestParams::read(Some(&params.into())), principal).unwrap()
}

/// Suspends a call with two questions; returns its state and the receivers of its answers.
fn suspended(pending_input: &Arc<PendingInput>) -> (Value, [AnswerReceiver; 2]) {
    let identity = CallIdentity::of(&client_request("t", &json!({}), "a"));
    let work = Box::pin(async { Ok(Raw::empty_object()) });
    let call = RunningCall { identity, work, question_receiver: None, reports: reports::channel().1 };
    let (one, first) = Question::new("elicitation/create", Raw::empty_object());
    let (two, second) = Question::new("sampling/createMessage", Raw::empty_object());
    let input_required: Value = pending_input.suspend(call, vec![one, two]).unwrap().decode().unwrap();
    assert_eq!(input_required["inputRequests"]["question2"]["method"], "sampling/createMessage");
    (input_required["requestState"].clone(), [first, second])
}

fn resume(
    pending_input: &Arc<PendingInput>,
    name: &str,
    state: &Value,
    responses: &Value,
    token: &str,
) -> String {
    let input = json!({ "requestState": state, "inputResponses": responses });
    match pending_input.resume(&client_request(name, &input, token)) {
        Ok(ResumeRequest::New) => "new".to_owned(),
        Ok(ResumeRequest::Resume(_)) => "back".to_owned(),
        Ok(ResumeRequest::MissingInput(input_required)) => {
            let input_required: Value = input_required.decode().unwrap();
            let missing = input_required["inputRequests"].as_object().unwrap().keys().cloned();
            missing.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn call_resumes_with_all_answers_from_its_own_client() {
    let pending_input = Arc::<PendingInput>::default();
    let (state, [first, second]) = suspended(&pending_input);
    let over = "the call of this `requestState` has ended (-32602)";
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
        assert_eq!(resume(&pending_input, name, state, responses, token), expected, "{name} {state} {token}");
    }
    assert_eq!(first.await.unwrap().unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(second.await.unwrap().unwrap().as_str(), r#"{"b":2}"#);
}

#[tokio::test(start_paused = true)]
async fn call_expires_when_its_client_does_not_resume() {
    let pending_input = Arc::<PendingInput>::default();
    let (state, [first, _second]) = suspended(&pending_input);
    time::sleep(RESUME_TIMEOUT + Duration::from_secs(1)).await;
    assert!(first.await.is_err(), "its questions are dropped");
    let over = "the call of this `requestState` has ended (-32602)";
    assert_eq!(resume(&pending_input, "t", &state, &json!({}), "a"), over);
}
