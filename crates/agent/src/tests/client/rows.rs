//! Behaviours of a server and the expected outcomes.

use super::{ask, check, client, model_at, outcome, wire};
use crate::dialect::Dialect;
use scripted_model::{Action, Finish::*, Reply, ScriptedModel, Step, call, render, text};
use serde_json::json;
use std::time::{Duration, Instant};

fn answer(dialect: Dialect) -> Reply {
    Reply::answer(wire(dialect), &[text("Hé"), text("llo"), Step::End(Stop), Step::Usage])
}

/// Waits without blocking the runtime, whose tasks close the connections.
async fn wait_for_abandoned(server: ScriptedModel, count: usize) {
    let waiting = tokio::task::spawn_blocking(move || server.wait_for_abandoned(count));
    waiting.await.expect("the connections are closed");
}

const ANSWERED: &str = r#""Héllo" [] Stop"#;

#[tokio::test]
async fn answers_are_whole_whatever_their_chunks() {
    for dialect in Dialect::ALL {
        let steps = [text("a"), call("1", "f", "{}"), call("2", "g", r#"{"x":"ü"}"#), Step::End(ToolCalls)];
        for size in [1, 7, usize::MAX] {
            check(dialect, "text", vec![answer(dialect).in_chunks(size)], ANSWERED, 1).await;
            let calls = Reply::answer(wire(dialect), &steps).in_chunks(size);
            let finish =
                if matches!(dialect, Dialect::Chat | Dialect::Anthropic) { "ToolCalls" } else { "Stop" };
            check(dialect, "calls", vec![calls], &format!(r#""a" ["f", "g"] {finish}"#), 1).await;
        }
        let crlf = Reply::stream(render(wire(dialect), &[text("x"), Step::End(Stop)]).replace('\n', "\r\n"));
        check(dialect, "CRLF", vec![crlf], r#""x" [] Stop"#, 1).await;
        let many: Vec<Step> = (0..2_000).map(|_| text("a")).chain([Step::End(Stop)]).collect();
        let expected = format!(r#""{}" [] Stop"#, "a".repeat(2_000));
        check(dialect, "2,000 deltas", vec![Reply::answer(wire(dialect), &many)], &expected, 1).await;
    }
}

#[tokio::test]
async fn trouble_is_retried_and_shown_text_is_taken_back() {
    for dialect in Dialect::ALL {
        let begun = render(wire(dialect), &[text("lost"), call("1", "f", r#"{"a":1}"#)]);
        let half = &begun[..begun.len() - 20];
        let garbled = begun.clone() + if dialect == Dialect::Ollama { "{x\n" } else { "data: {x\n\n" };
        let bad_utf8 = [begun.as_bytes(), &[b'd', b'a', b't', b'a', b':', 0xff, b'\n', b'\n']].concat();
        let server_error = json!({ "error": { "message": "oops" } });
        let rows: Vec<(&str, Reply, &str)> = vec![
            ("clean EOF", Reply::stream(begun.clone()), "Cut"),
            ("cut in an event", Reply::stream(half).then(Action::Cut), "Cut"),
            ("cut after text", Reply::stream(begun.clone()).then(Action::Cut), "Cut"),
            ("nothing", Reply::stream(""), "Cut"),
            ("garbled", Reply::stream(garbled), "Garbled"),
            ("bad UTF-8", Reply::stream(bad_utf8), "Garbled"),
            ("empty", Reply::answer(wire(dialect), &[Step::End(Stop)]), "Empty"),
            ("HTML", Reply::stream("<html><body>Sign in</body></html>\n\n"), "NotEvents"),
            ("500", Reply::error(500, &server_error), "Server"),
            ("503", Reply::error(503, &server_error).header("retry-after", "0"), "Server"),
            ("408", Reply::error(408, &json!({})), "Timeout"),
            ("429", Reply::error(429, &json!({})).header("retry-after-ms", "1"), "RateLimited"),
            ("429 without a time", Reply::error(429, &json!({})), "RateLimited"),
            ("529", Reply::error(529, &json!({})), "Overloaded"),
        ];
        for (row, reply, expected) in rows {
            check(dialect, row, vec![reply.clone()], expected, 4).await;
            check(dialect, row, vec![reply.clone(), reply, answer(dialect)], ANSWERED, 3).await;
        }
    }
}

#[tokio::test]
async fn errors_that_stay_are_not_retried() {
    for dialect in Dialect::ALL {
        let echo = json!({ "error": { "message": format!("wrong key {}", super::KEY) } });
        let refused_tool = json!({ "error": { "message": "tools.2.input_schema: invalid" } });
        let too_long = json!({ "error": { "message": "prompt is too long: 9 tokens > 8 maximum" } });
        let rows = [
            ("400", 400, &echo, "BadRequest"),
            ("401", 401, &echo, "Unauthorized"),
            ("403", 403, &echo, "Unauthorized"),
            ("404", 404, &echo, "NotFound"),
            ("413", 413, &echo, "TooLong { window: None }"),
            ("a redirect", 307, &echo, "BadRequest"),
            ("a refused tool", 400, &refused_tool, "ToolRefused { index: 2 }"),
            ("too long", 400, &too_long, "TooLong { window: Some(8) }"),
        ];
        for (row, status, body, expected) in rows {
            let reply = Reply::error(status, body).header("location", "http://127.0.0.1:1/");
            check(dialect, row, vec![reply], expected, 1).await;
        }
        let later = Reply::error(429, &json!({})).header("retry-after", "61");
        check(dialect, "retry after 61 s", vec![later], "RateLimited", 1).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_the_question() {
    for dialect in Dialect::ALL {
        let event = "TooMuch { what: \"bytes in one event\", limit: 100000 }";
        let endless_event = Reply::stream("data: {").then(Action::SendForever(vec![b'a'; 4096]));
        check(dialect, "event without end", vec![endless_event], event, 1).await;
        let stream = "TooMuch { what: \"bytes in one answer\", limit: 1000000 }";
        let piece = render(wire(dialect), &[text(&"a".repeat(4096))]);
        let endless = Reply::stream("").then(Action::SendForever(piece.into()));
        check(dialect, "stream without end", vec![endless], stream, 1).await;
        let calls: Vec<Step> =
            (0..65).map(|it| call(&it.to_string(), "f", "{}")).chain([Step::End(ToolCalls)]).collect();
        let calls = Reply::answer(wire(dialect), &calls);
        check(dialect, "65 calls", vec![calls], "TooMuch { what: \"tool calls\", limit: 64 }", 1).await;
    }
}

#[tokio::test]
async fn silence_before_and_in_an_answer_is_found() {
    for dialect in Dialect::ALL {
        let begun = render(wire(dialect), &[text("lost")]);
        let rows = [
            ("before the head", Reply::silence(), "NoFirstByte(200ms)"),
            ("after the head", Reply::stream("").then(Action::Hang), "NoFirstByte(200ms)"),
            ("after text", Reply::stream(begun).then(Action::Hang), "Silent(200ms)"),
        ];
        for (row, reply, expected) in rows {
            let server = ScriptedModel::start(vec![reply]);
            let mut model = model_at(dialect, &server.url());
            (model.timeout, model.idle_timeout) = (Duration::from_millis(200), Duration::from_millis(200));
            let asked = ask(&client(&model)).await;
            assert_eq!(outcome(&asked), expected, "{row} in {dialect:?}");
            assert_eq!((asked.shown.as_str(), asked.retries.len()), ("", 3), "{row} in {dialect:?}");
            // On a busy machine a request may end before it arrives.
            let arrived = server.requests().len();
            wait_for_abandoned(server, arrived).await;
        }
    }
}

#[tokio::test]
async fn a_connection_that_stays_open_after_the_answer_delays_nothing_but_usage() {
    for dialect in Dialect::ALL {
        let reply = answer(dialect).then(Action::Hang);
        check(dialect, "hang after the end", vec![reply], ANSWERED, 1).await;
    }
}

/// Bytes that trickle in after the answer do not keep the client waiting.
#[tokio::test]
async fn a_drip_after_the_answer_delays_nothing_but_usage() {
    const PAUSE: Duration = Duration::from_millis(200);
    for dialect in [Dialect::Chat, Dialect::Gemini] {
        let over = render(wire(dialect), &[text("Hé"), text("llo"), Step::End(Stop)]);
        let reply = (0..100).fold(Reply::stream(over), |reply, _| {
            reply.then(Action::Pause(PAUSE)).then(Action::Send(b": wait\n\n".to_vec()))
        });
        let began = Instant::now();
        check(dialect, "drip after the end", vec![reply], ANSWERED, 1).await;
        assert!(began.elapsed() < 50 * PAUSE, "{dialect:?}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_dropped_question_closes_the_stream() {
    for dialect in Dialect::ALL {
        let begun = render(wire(dialect), &[text("a")]);
        let server = ScriptedModel::start(vec![Reply::stream(begun).then(Action::Hang)]);
        let client = client(&model_at(dialect, &server.url()));
        let question = ask(&client);
        let arrived = tokio::task::spawn_blocking(move || {
            server.wait_for_requests(1);
            server
        });
        let server = tokio::select! {
            _ = question => panic!("the answer never ends"),
            server = arrived => server.expect("the request arrives"),
        };
        drop(client);
        wait_for_abandoned(server, 1).await;
    }
}
