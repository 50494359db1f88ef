//! An MCP server that answers from a recording.

use crate::wire_faults::WireFaults;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    future,
    sync::Arc,
};
use tokio::time::sleep;
use wharf_config::FaultEffect;
use wharf_mcp::{
    Raw, RpcError,
    model::{Read, Tool},
    serve::{About, Client, Handler, HandlerFuture, Incoming},
    session::Era,
};
use wharf_runtime::{
    NameParts,
    cassette::{CassettePlayer, RecordedOutcome, RecordedServer, RecordedStep, StepKind},
    shown_names,
    upstream::{FaultInjection, fault_data, injected_result, not_recorded_data},
};

/// Faults of calls, and those of the frames that answer them.
type ServedFaults = (FaultInjection, Arc<WireFaults>);

/// Questions of servers, and the capability of clients that answer them.
const QUESTIONS: [(&str, &str); 3] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling"), ("roots/list", "roots")];

/// The MCP handler of a recording.
pub(crate) struct CassetteServer {
    state: Arc<CassetteState>,
}

struct CassetteState {
    player: Arc<CassettePlayer>,
    /// Faults to inject into calls, if any.
    faults: Option<ServedFaults>,
    /// Whether our own client asks, which turns the data of an error back into the recorded fault.
    is_replay: bool,
    info: Value,
    /// Definitions of the tools, under the names that clients use.
    tools: Vec<Value>,
    /// Definitions of the prompts, under the names that clients use.
    prompts: Vec<Value>,
    /// Resources and templates.
    resources: (Vec<Value>, Vec<Value>),
    /// Names of the served servers.
    sources: Vec<String>,
    /// Source and wire name of each tool, by the name that clients use.
    names: NamedItems,
    /// Source and wire name of each prompt, by the name that clients use.
    prompt_names: NamedItems,
}

/// Source and wire name of each item, by the name that clients use.
type NamedItems = BTreeMap<String, (String, String)>;

impl CassetteServer {
    /// Serves all recorded servers, or one. One server keeps the names of its tools; those of several get prefixes.
    pub(crate) fn new(player: Arc<CassettePlayer>, source: Option<&str>) -> CassetteServer {
        CassetteServer { state: Arc::new(CassetteState::new(player, source)) }
    }

    /// Injects faults into the calls. The session of our own client does that itself.
    pub(crate) fn with_faults(self, faults: Option<ServedFaults>) -> CassetteServer {
        let state = Arc::into_inner(self.state).map(|state| CassetteState { faults, ..state });
        CassetteServer { state: Arc::new(state.unwrap_or_else(|| unreachable!("nobody else has the state"))) }
    }

    /// Serves one recorded server to our own client, in place of the real one.
    pub(crate) fn replaying(player: Arc<CassettePlayer>, source: &str) -> CassetteServer {
        let state = CassetteState::new(player, Some(source));
        CassetteServer { state: Arc::new(CassetteState { is_replay: true, ..state }) }
    }
}

impl CassetteState {
    fn new(player: Arc<CassettePlayer>, source: Option<&str>) -> CassetteState {
        let servers =
            player.cassette().servers.values().filter(|it| source.is_none_or(|name| it.name == name));
        let servers: Vec<_> = servers.collect();
        let is_one = servers.len() == 1;
        let of = |list: fn(&RecordedServer) -> &Vec<Value>| {
            servers.iter().flat_map(move |it| list(it).iter().map(|item| (it.name.as_str(), item)))
        };
        let (tools, names) = named(&of(|it| &it.tools).collect::<Vec<_>>(), is_one);
        let (prompts, prompt_names) = named(&of(|it| &it.prompts).collect::<Vec<_>>(), is_one);
        let info = match servers.first().filter(|_| is_one) {
            Some(server) => json!({ "name": server.server["name"], "version": server.server["version"] }),
            None => json!({ "name": "wharf-mock", "version": env!("CARGO_PKG_VERSION") }),
        };
        let resources = distinct(of(|it| &it.resources), "uri");
        let templates = distinct(of(|it| &it.templates), "uriTemplate");
        CassetteState {
            faults: None,
            is_replay: false,
            resources: (resources, templates),
            sources: servers.iter().map(|it| it.name.clone()).collect(),
            info,
            tools,
            prompts,
            names,
            prompt_names,
            player: player.clone(),
        }
    }
}

/// Gives tools or prompts the names that clients use: their own if they are of one server, else those of a gateway.
fn named(listed: &[(&str, &Value)], is_one: bool) -> (Vec<Value>, NamedItems) {
    let wire_name = |it: &Value| it["name"].as_str().unwrap_or_default().to_owned();
    let wire_names: Vec<String> = listed.iter().map(|(_, it)| wire_name(it)).collect();
    let parts =
        listed.iter().zip(&wire_names).map(|((source, _), name)| NameParts::new(source, source, name));
    let shown = match is_one {
        true => wire_names.clone(),
        false => shown_names(&parts.collect::<Vec<_>>()),
    };
    let renamed = listed.iter().zip(&shown).map(|((_, item), name)| {
        let mut item = (*item).clone();
        item["name"] = json!(name);
        item
    });
    let owners = listed.iter().zip(wire_names).map(|((source, _), wire)| ((*source).to_owned(), wire));
    (renamed.collect(), shown.iter().cloned().zip(owners).collect())
}

/// Returns the items without those whose address an earlier server has too.
fn distinct<'a>(listed: impl Iterator<Item = (&'a str, &'a Value)>, address: &str) -> Vec<Value> {
    let mut seen = HashSet::new();
    listed.filter(|(_, it)| seen.insert(it[address].to_string())).map(|(_, it)| it.clone()).collect()
}

impl Handler for CassetteServer {
    fn about(&self) -> About {
        let text = |key: &str| self.state.info[key].as_str().unwrap_or("recorded").to_owned();
        let mut capabilities = json!({ "tools": {} });
        if !self.state.prompts.is_empty() {
            capabilities["prompts"] = json!({});
        }
        if self.state.has_resources() {
            capabilities["resources"] = json!({});
        }
        About::new(&text("name"), &text("version"), capabilities.into())
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let state = self.state.clone();
        Box::pin(async move {
            if let Some(injected) = state.inject_fault(&request, &client).await {
                return injected;
            }
            match state.ask_again(&request, &client).await {
                Some(questions) => Ok(questions),
                None => state.answer(&request),
            }
        })
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let tool = self.state.tools.iter().find(|tool| tool["name"] == name)?;
        Tool::read(&tool.clone().into()).ok()
    }
}

impl CassetteState {
    fn answer(&self, request: &Incoming) -> Result<Raw, RpcError> {
        match request.method.as_str() {
            "tools/list" => Ok(json!({ "tools": self.tools }).into()),
            "prompts/list" if !self.prompts.is_empty() => Ok(json!({ "prompts": self.prompts }).into()),
            "tools/call" => {
                let params = params(request);
                self.call(params["name"].as_str().unwrap_or_default(), params.get("arguments"))
            }
            "prompts/get" if !self.prompts.is_empty() => {
                let params = params(request);
                let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
                let shown = params["name"].as_str().unwrap_or_default();
                let own = || (self.sources.first().cloned().unwrap_or_default(), shown.to_owned());
                let (source, name) = self.prompt_names.get(shown).cloned().unwrap_or_else(own);
                self.play(StepKind::Prompt, &source, &json!({ "name": name, "arguments": arguments }))
            }
            "resources/list" if self.has_resources() => Ok(json!({ "resources": self.resources.0 }).into()),
            "resources/templates/list" if self.has_resources() => {
                Ok(json!({ "resourceTemplates": self.resources.1 }).into())
            }
            "resources/read" if self.has_resources() => {
                let uri = &params(request)["uri"];
                self.play(StepKind::Read, self.owner_of(uri), &json!({ "uri": uri }))
            }
            other => Err(RpcError::method_not_found(other)),
        }
    }

    /// Returns whether resources of a served server are recorded.
    fn has_resources(&self) -> bool {
        let (resources, templates) = &self.resources;
        !resources.is_empty()
            || !templates.is_empty()
            || self.sources.iter().any(|source| self.reads_of(source).next().is_some())
    }

    /// Returns the recorded reads of a server.
    fn reads_of(&self, source: &str) -> impl Iterator<Item = &RecordedStep> {
        let steps = self.player.cassette().steps_of(StepKind::Read);
        steps.filter(move |it| it.body.get("source").is_some_and(|it| it == source))
    }

    /// Returns the first served server of which a read of this resource is recorded, or the first one of all.
    fn owner_of(&self, uri: &Value) -> &str {
        let has_read = |it: &&String| self.reads_of(it).any(|step| step.body.get("uri") == Some(uri));
        let owner = self.sources.iter().find(has_read).or(self.sources.first());
        owner.map(String::as_str).unwrap_or_default()
    }

    /// Answers a request for a prompt or a resource of a server.
    fn play(&self, kind: StepKind, source: &str, request: &Value) -> Result<Raw, RpcError> {
        let mut members = request.as_object().cloned().unwrap_or_default();
        members.insert("source".to_owned(), json!(source));
        match self.player.play_request(kind, &members) {
            Some(RecordedOutcome::Result(result)) => Ok(result.into()),
            Some(RecordedOutcome::Fault(fault)) => Err(self.recorded_error(&fault)),
            None => {
                let cause = format!("the {} {request} is not in {}", kind.as_str(), self.player.name());
                let data = self.is_replay.then(|| not_recorded_data(&cause).into());
                let message = format!("MCPNotRecordedError: {cause}");
                Err(RpcError { data, ..RpcError::new(RpcError::INVALID_PARAMS, message) })
            }
        }
    }

    /// Injects the fault of a call, if it gets one. Returns the answer to the call if the fault determines it.
    async fn inject_fault(&self, request: &Incoming, client: &Client) -> Option<Result<Raw, RpcError>> {
        let (faults, wire_faults) = self.faults.as_ref().filter(|_| request.method == "tools/call")?;
        let name: String = request.params.as_ref()?.member("name")?.decode().ok()?;
        let (source, tool) = self.names.get(&name)?;
        match faults.next_for_tool(&format!("{source}:{tool}"))? {
            FaultEffect::Delay(delay) => sleep(*delay).await,
            FaultEffect::RpcError { code, text } => return Some(Err(RpcError::new(*code, text))),
            FaultEffect::ToolError { text } => return Some(Ok(injected_result(text, true))),
            FaultEffect::Oversized(bytes) => return Some(Ok(injected_result(&"x".repeat(*bytes), false))),
            FaultEffect::ListChanged(times) => {
                for _ in 0..*times {
                    client.notify("notifications/tools/list_changed", None).await;
                }
            }
            FaultEffect::Drop => future::pending().await,
            FaultEffect::Disconnect => return Some(Ok(injected_result(wire_faults.disconnect(), false))),
            FaultEffect::Malformed => return Some(Ok(injected_result(wire_faults.malformed(), false))),
        }
        None
    }

    /// Asks the client what the server asked during the recorded call, as far as the client takes such questions. The
    /// recorded result follows whatever it answers. Returns the questions if the client expects them as a result.
    async fn ask_again(&self, request: &Incoming, client: &Client) -> Option<Raw> {
        if self.is_replay || request.method != "tools/call" {
            return None;
        }
        let params = params(request);
        let (source, tool) = self.names.get(params["name"].as_str()?)?;
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let asked = self.player.next_asked(source, tool, &arguments);
        let asked = asked.iter().filter_map(|it| recorded_question(it, client));
        let asked: Vec<(&'static str, Value)> = asked.collect();
        if client.terms().era == Era::Legacy {
            for (method, params) in asked {
                // The recording has only one result, so the answer makes no difference.
                let _ = client.ask(method, Some(params.into())).await;
            }
            return None;
        }
        if asked.is_empty() || params.get("inputResponses").is_some() {
            return None;
        }
        let named = asked.into_iter().enumerate().map(|(at, (method, params))| {
            (format!("q{}", at + 1), json!({ "method": method, "params": params }))
        });
        let questions: Map<String, Value> = named.collect();
        Some(json!({ "resultType": "input_required", "inputRequests": questions }).into())
    }

    fn call(&self, name: &str, arguments: Option<&Value>) -> Result<Raw, RpcError> {
        let unknown = || RpcError::new(RpcError::INVALID_PARAMS, format!("unknown tool: {name}"));
        let (source, tool) = self.names.get(name).ok_or_else(unknown)?;
        let empty = json!({});
        match self.player.play(source, tool, arguments.unwrap_or(&empty)) {
            Ok(RecordedOutcome::Result(result)) => Ok(result.clone().into()),
            Ok(RecordedOutcome::Fault(fault)) => Err(self.recorded_error(fault)),
            Err(miss) => {
                let message =
                    format!("MCPNotRecordedError: `{name}` with these arguments is not recorded; {miss}");
                let recording = self.player.name();
                let cause = format!(
                    "`{source}:{tool}` with these arguments is not in {recording}{}",
                    miss.to_lines()
                );
                let data = self.is_replay.then(|| not_recorded_data(&cause).into());
                Err(RpcError { data, ..RpcError::new(RpcError::INVALID_PARAMS, message) })
            }
        }
    }

    /// Returns the error of a recorded failure: that of the server if it returned one, else a description.
    fn recorded_error(&self, fault: &Value) -> RpcError {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let data = self.is_replay.then(|| fault_data(fault).into());
        let error = match fault.get("rpc") {
            Some(rpc) => {
                RpcError::new(rpc["code"].as_i64().unwrap_or(RpcError::INTERNAL), text(&rpc["message"]))
            }
            None => {
                let message = format!("{}: {}", text(&fault["type"]), text(&fault["message"]));
                RpcError::new(RpcError::INTERNAL, message)
            }
        };
        RpcError { data, ..error }
    }
}

/// Returns the method and parameters of a recorded question that this client takes.
fn recorded_question(asked: &Value, client: &Client) -> Option<(&'static str, Value)> {
    let (method, _) = QUESTIONS
        .into_iter()
        .find(|(method, capability)| asked["method"] == *method && client.offers(capability))?;
    Some((method, asked["params"].clone()))
}

fn params(request: &Incoming) -> Value {
    request.params.as_ref().map(|it| it.decode_or_default()).unwrap_or_default()
}
