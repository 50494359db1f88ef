//! Checks a server with our client.

use super::facts::{self, assert_holds};
use crate::eras::options;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use wharf_mcp::{
    Host, News, Opener, Options, Raw, Request, RpcError, Session, http,
    session::{Connected, Era, EraHint, HostFuture, List, NewsFeed},
};

struct User;

impl Host for User {
    fn capabilities(&self) -> Raw {
        json!({ "elicitation": { "form": {} }, "sampling": {} }).into()
    }

    fn answer(&self, method: &str, _params: Option<Raw>) -> HostFuture {
        let answer = match method {
            "elicitation/create" => Ok(facts::user_says().into()),
            "sampling/createMessage" => Ok(facts::model_says().into()),
            unknown => Err(RpcError::method_not_found(unknown)),
        };
        Box::pin(async { answer })
    }
}

pub(crate) fn endpoint(url: &str) -> http::HttpEndpoint {
    let client = http::HttpClient::new(Duration::from_secs(2)).unwrap();
    http::HttpEndpoint::new(url.parse().unwrap(), client)
}

/// Checks every feature of a server.
pub(crate) async fn check(opener: &dyn Opener, era: Era) {
    let options = Options { host: Arc::new(User), era: EraHint::Only(era), ..options() };
    let Connected { session, task, mut news } = Session::connect(opener, &options).await.unwrap();
    assert_eq!(session.terms().era, era);
    lists(&session).await;
    for (tool, expected) in facts::results() {
        assert_holds(&call(&session, tool).await, &expected, tool);
    }
    reads(&session).await;
    refusals(&session).await;
    progress(&session).await;
    let asked = call(&session, "ask").await;
    assert_holds(&asked, &facts::ask_result(&facts::user_says(), &facts::model_says()), "ask");
    cancellation(&session).await;
    changes(&session, &mut news).await;
    drop(session);
    task.join().await;
}

async fn lists(session: &Session) {
    for (list, key, expected) in [
        (List::Tools, "tools", facts::tools()),
        (List::Prompts, "prompts", facts::prompts()),
        (List::Resources, "resources", facts::resources()),
    ] {
        let items = session.list(list).await.unwrap().items;
        let items: Vec<Value> = items.iter().map(|item| item.decode().unwrap()).collect();
        assert_holds(&json!({ key: items }), &expected, "list");
    }
}

async fn reads(session: &Session) {
    let whom = Raw::from(json!({ "whom": "you" }));
    let prompt = ask(session, Request::get_prompt("greet", Some(&whom))).await;
    assert_holds(&prompt, &facts::prompt("you"), "prompt");
    let contents = ask(session, Request::read_resource("mem://one")).await;
    assert_holds(&contents, &facts::contents("mem://one"), "resource");
}

async fn refusals(session: &Session) {
    for (request, code) in [
        (Request::call_tool("nothing", None), RpcError::INVALID_PARAMS),
        (Request::new("no/such"), RpcError::METHOD_NOT_FOUND),
    ] {
        let refused = session.request(request).await.unwrap_err();
        assert_eq!(refused.rpc_code(), Some(code), "{refused}");
    }
}

async fn progress(session: &Session) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = seen.clone();
    let request =
        Request::call_tool("steps", None).on_progress(move |at| recorder.lock().unwrap().push(at.progress));
    ask(session, request).await;
    assert_eq!(*seen.lock().unwrap(), (1..=facts::STEPS).map(f64::from).collect::<Vec<_>>());
}

async fn cancellation(session: &Session) {
    let before = call(session, "cancelled").await;
    let slow = session.request(Request::call_tool("slow", None));
    assert!(tokio::time::timeout(Duration::from_millis(100), slow).await.is_err());
    while call(session, "cancelled").await == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Repeats the call until the notification arrives, because a subscription starts asynchronously.
async fn changes(session: &Session, news: &mut NewsFeed) {
    loop {
        call(session, "change").await;
        let received = tokio::time::timeout(Duration::from_millis(50), news.next()).await;
        if let Ok(Some(News::ToolsChanged)) = received {
            return;
        }
    }
}

async fn call(session: &Session, tool: &str) -> Value {
    ask(session, Request::call_tool(tool, None)).await
}

async fn ask(session: &Session, request: Request) -> Value {
    session.request(request).await.unwrap().decode().unwrap()
}
