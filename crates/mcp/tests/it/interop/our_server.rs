//! Our server, serving the facts.

use super::facts::{self, World};
use crate::serving::{serve_http, spawn};
use serde_json::{Value, json};
use wharf_mcp::{
    News, Raw, RpcError,
    serve::{self, About, Client, Handler, HandlerFuture, Incoming, Service},
    session::Era,
};

struct Ours(World);

pub(crate) async fn over_pipe() {
    let served = serve::over_streams(service(), tokio::io::stdin(), tokio::io::stdout()).await;
    served.unwrap();
}

/// Serves for as long as the test runs; returns the URL.
pub(crate) async fn over_http() -> String {
    format!("http://127.0.0.1:{}/mcp", serve_http(service()).await)
}

fn service() -> Service<Ours> {
    let world = World::new();
    let mut changes = world.changes.subscribe();
    let service = Service::new(Ours(world));
    let announcer = service.clone();
    spawn(async move {
        while changes.recv().await.is_ok() {
            announcer.announce(News::ToolsChanged);
        }
    });
    service
}

impl Handler for Ours {
    fn about(&self) -> About {
        About::new("ours", "1", facts::capabilities().into())
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let world = self.0.clone();
        Box::pin(async move {
            let params: Value = request.params.map(|params| params.decode_or_default()).unwrap_or_default();
            let text = |name: &str| params[name].as_str().unwrap_or_default();
            let answer = match request.method.as_str() {
                "tools/list" => facts::tools(),
                "prompts/list" => facts::prompts(),
                "prompts/get" => facts::prompt(params["arguments"]["whom"].as_str().unwrap_or_default()),
                "resources/list" => facts::resources(),
                "resources/read" => facts::contents(text("uri")),
                "tools/call" => call(text("name"), &params, &world, &client).await?,
                unknown => return Err(RpcError::method_not_found(unknown)),
            };
            Ok(answer.into())
        })
    }
}

async fn call(tool: &str, params: &Value, world: &World, client: &Client) -> Result<Value, RpcError> {
    if let Some(result) = facts::result(tool) {
        return Ok(result);
    }
    match tool {
        "steps" => {
            for step in 1..=facts::STEPS {
                client.progress(f64::from(step), Some(f64::from(facts::STEPS)), None).await;
            }
        }
        "ask" => return ask(params, client).await,
        "slow" => {
            let _count = world.count_cancelled();
            std::future::pending::<()>().await;
        }
        "cancelled" => return Ok(facts::text(&world.cancelled().to_string())),
        "change" => world.change(),
        unknown => return Err(RpcError::new(RpcError::INVALID_PARAMS, format!("no tool `{unknown}`"))),
    }
    Ok(facts::text("done"))
}

async fn ask(params: &Value, client: &Client) -> Result<Value, RpcError> {
    if client.terms().era == Era::Modern {
        let answers = &params["inputResponses"];
        if answers.is_null() {
            return Ok(json!({
                "resultType": "input_required",
                "inputRequests": {
                    "user": { "method": "elicitation/create", "params": facts::question() },
                    "model": { "method": "sampling/createMessage", "params": facts::prompt_for_model() },
                },
                "requestState": "asked \"both\"",
            }));
        }
        assert_eq!(params["requestState"], "asked \"both\"");
        return Ok(facts::ask_result(&answers["user"], &answers["model"]));
    }
    let decode = |raw: Raw| raw.decode_or_default::<Value>();
    let user = decode(client.ask("elicitation/create", Some(facts::question().into())).await?);
    let model = decode(client.ask("sampling/createMessage", Some(facts::prompt_for_model().into())).await?);
    Ok(facts::ask_result(&user, &model))
}
