//! The circuit breaker of a model, and the hold-off of its provider.

use super::{ask, client, model_at, outcome, wire};
use crate::{dialect::Dialect, model::trouble::Trouble};
use scripted_model::{Action, Reply, ScriptedModel};
use serde_json::json;
use wharf_config::BreakerPolicy;
use wharf_runtime::BreakerState;

#[tokio::test]
async fn three_failed_questions_open_the_breaker() {
    let server = ScriptedModel::start(vec![Reply::error(500, &json!({}))]);
    let client = client(&model_at(Dialect::Chat, &server.url()));
    for failures in 1..=3 {
        assert_eq!(outcome(&ask(&client).await), "Server");
        assert_eq!(server.requests().len(), 4 * failures, "one verdict per question, after its retries");
    }
    let asked = ask(&client).await;
    let Err(Trouble::Unavailable { retry_after }) = asked.answer else { panic!("the breaker is open") };
    assert!((50..=60).contains(&retry_after.as_secs()), "{retry_after:?}");
    assert_eq!(server.requests().len(), 12, "an open breaker sends nothing");
}

/// The clock stands still while the breaker is open and is set forward by the open time.
#[tokio::test]
async fn after_the_open_time_one_probe_decides() {
    let replies = vec![Reply::error(500, &json!({})); 16];
    let server = ScriptedModel::start([replies, vec![Reply::text(wire(Dialect::Chat), "ok")]].concat());
    let client = client(&model_at(Dialect::Chat, &server.url()));
    for _ in 0..3 {
        assert_eq!(outcome(&ask(&client).await), "Server");
    }
    for (sent, is_back) in [(12, false), (16, true)] {
        assert!(matches!(ask(&client).await.answer, Err(Trouble::Unavailable { .. })));
        assert_eq!(server.requests().len(), sent, "an open breaker sends nothing");
        tokio::time::pause();
        tokio::time::advance(BreakerPolicy::MODEL.recovery_timeout).await;
        tokio::time::resume();
        assert_eq!(ask(&client).await.answer.is_ok(), is_back, "the probe decides");
    }
    assert_eq!(client.breaker().snapshot().state, BreakerState::Closed { failures: 0 });
}

/// While the probe is under way, other questions are refused.
#[tokio::test]
async fn only_one_probe_is_under_way() {
    let failures = vec![Reply::error(500, &json!({})); 12];
    let server = ScriptedModel::start([failures, vec![Reply::stream("").then(Action::Hang)]].concat());
    let client = client(&model_at(Dialect::Chat, &server.url()));
    for _ in 0..3 {
        ask(&client).await;
    }
    tokio::time::pause();
    tokio::time::advance(BreakerPolicy::MODEL.recovery_timeout).await;
    tokio::time::resume();
    tokio::select! {
        _ = ask(&client) => panic!("the probe hangs"),
        () = async {
            while server.requests().len() < 13 {
                tokio::task::yield_now().await;
            }
            assert_eq!(client.breaker().snapshot().state, BreakerState::HalfOpen);
            assert!(matches!(ask(&client).await.answer, Err(Trouble::Unavailable { .. })));
            assert_eq!(server.requests().len(), 13, "the second question is not sent");
        } => {}
    }
    // The probe was abandoned without a verdict, so the next question is the probe.
    assert_eq!(client.breaker().snapshot().state.as_str(), "OPEN");
}

#[tokio::test]
async fn refusals_and_rate_limits_do_not_open_the_breaker() {
    for status in [400, 401, 404, 429] {
        let reply = Reply::error(status, &json!({})).header("retry-after", "0");
        let server = ScriptedModel::start(vec![reply]);
        let client = client(&model_at(Dialect::Anthropic, &server.url()));
        for _ in 0..4 {
            ask(&client).await;
        }
        assert_eq!(client.breaker().snapshot().state, BreakerState::Closed { failures: 0 }, "{status}");
    }
}

#[tokio::test]
async fn a_success_resets_the_failures() {
    let failure = Reply::error(500, &json!({}));
    let replies = vec![failure.clone(), failure.clone(), failure.clone(), failure];
    let replies = [replies, vec![Reply::text(wire(Dialect::Gemini), "ok")]].concat();
    let server = ScriptedModel::start(replies);
    let client = client(&model_at(Dialect::Gemini, &server.url()));
    assert_eq!(outcome(&ask(&client).await), "Server");
    assert_eq!(client.breaker().snapshot().failures, 1);
    assert!(ask(&client).await.answer.is_ok());
    assert_eq!(client.breaker().snapshot().failures, 0);
}

#[tokio::test]
async fn a_long_rate_limit_holds_for_the_next_question() {
    let server = ScriptedModel::start(vec![Reply::error(429, &json!({})).header("retry-after", "600")]);
    let client = client(&model_at(Dialect::Chat, &server.url()));
    for _ in 0..2 {
        let asked = ask(&client).await;
        let trouble = asked.answer.expect_err("a rate limit");
        assert!(trouble.is_rate_limit());
        assert!(trouble.to_string().contains("retry after 600 s"), "{trouble}");
    }
    assert_eq!(server.requests().len(), 1, "the second question is not sent");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_without_its_key() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let asked = ask(&client(&model_at(Dialect::Chat, &url))).await;
    assert_eq!((outcome(&asked).as_str(), asked.retries.len()), ("Connect", 3));
}
