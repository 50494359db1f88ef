//! Which tools a client is shown: all of them, or a few and a tool that finds the others. It changes what is listed, never
//! what may be called.

use super::{Gateway, client_request::ClientRequest, invalid, lists::ListCache, session_modes::SessionModes};
use http::request::Parts;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use wharf_config::{ClientTools, ContextSettings, Glob, NamedToken};
use wharf_mcp::{
    Raw, RpcError,
    serve::{Client, http::Owner},
    session::Era,
};
use wharf_runtime::{
    Catalog,
    catalog::ToolEntry,
    tokens::{estimate_tokens, estimate_tool},
    tool_search::{CALL_TOOL, FIND_TOOLS, InnerCall, ToolQuery},
};

/// How clients are shown tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolMode {
    clients: Option<ClientTools>,
    budget: Option<u64>,
    pins: Vec<Glob>,
    /// Modes of principals, by name.
    principals: BTreeMap<String, ClientTools>,
    sessions: Arc<SessionModes>,
}

impl ToolMode {
    pub(crate) fn of(settings: &ContextSettings) -> ToolMode {
        let principals = BTreeMap::new();
        let (clients, pins) = (Some(settings.clients), settings.pin.clone());
        ToolMode { clients, budget: settings.tool_budget, pins, principals, sessions: Arc::default() }
    }

    /// Adds the modes that wharf.toml gives to tokens.
    pub(crate) fn with_tokens(self, tokens: &[NamedToken]) -> ToolMode {
        let modes = tokens.iter().filter_map(|it| Some((it.name.clone(), it.tool_mode?)));
        ToolMode { principals: modes.collect(), ..self }
    }

    /// Returns whether a client searches for tools: its address says so, its token, or the settings. A session keeps its
    /// mode, whatever happens to the catalog.
    pub(super) fn is_search(&self, client: &Client, http: Option<&Parts>, catalog: &Catalog) -> bool {
        match client.terms().era {
            Era::Legacy => self.sessions.keep(client.number(), || self.is_search_now(http, catalog)),
            Era::Modern => self.is_search_now(http, catalog),
        }
    }

    fn is_search_now(&self, http: Option<&Parts>, catalog: &Catalog) -> bool {
        let asked = http.and_then(|it| it.uri.query()).and_then(asked_mode);
        let principal = http.and_then(|it| it.extensions.get::<Owner>()).map(|it| &*it.0);
        self.searches(asked, principal, catalog)
    }

    /// Returns whether a client of this principal searches for tools, unless its address says otherwise.
    pub(crate) fn is_search_for(&self, principal: &str, catalog: &Catalog) -> bool {
        self.searches(None, Some(principal), catalog)
    }

    fn searches(&self, asked: Option<ClientTools>, principal: Option<&str>, catalog: &Catalog) -> bool {
        let of_token = principal.and_then(|it| self.principals.get(it).copied());
        match asked.or(of_token).or(self.clients).unwrap_or(ClientTools::All) {
            ClientTools::All => false,
            ClientTools::Search => true,
            ClientTools::Auto => {
                let mut tokens = 0;
                let budget = self.budget();
                catalog.tools.iter().any(|it| {
                    tokens += estimate_tool(it);
                    tokens > budget
                })
            }
        }
    }

    /// Returns whether a tool is listed although the client searches.
    pub(crate) fn is_pinned(&self, tool: &ToolEntry) -> bool {
        self.pins.iter().any(|it| it.matches(&tool.id()))
    }

    fn budget(&self) -> u64 {
        self.budget.unwrap_or(ContextSettings::MAX_DEFAULT_BUDGET)
    }

    /// Answers a call of the tool that finds tools, with at most a quarter of the budget.
    pub(super) fn find(&self, lists: &ListCache, catalog: &Catalog, arguments: Option<&Raw>) -> Raw {
        let arguments = arguments.map(|it| it.decode_or_default::<Value>()).unwrap_or_default();
        let query = match ToolQuery::read(&arguments) {
            Ok(query) => query,
            Err(why) => {
                return json!({ "content": [{ "type": "text", "text": why }], "isError": true }).into();
            }
        };
        let (mut lines, mut used) = (Vec::new(), 0);
        for tool in lists.search(catalog, &query.query, query.limit) {
            let schema = tool.tool.as_ref().map(|it| it.input_schema.decode_or_default::<Value>());
            let line = json!({ "name": tool.name, "description": tool.description, "input_schema": schema })
                .to_string();
            used += estimate_tokens(&line);
            if used > self.budget() / 4 && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        let text =
            if lines.is_empty() { "no tool fits; try other words".to_owned() } else { lines.join("\n") };
        json!({ "content": [{ "type": "text", "text": text }] }).into()
    }
}

impl Gateway {
    /// Handles the tools of clients that search for tools: answers a search, or replaces a call by the one inside it.
    pub(super) fn search_tools(
        &self,
        client_request: &mut ClientRequest,
        client: &Client,
        http: Option<&Parts>,
    ) -> Result<Option<Raw>, RpcError> {
        let catalog = self.handle.catalog();
        let is_search = |it: &str| matches!(it, FIND_TOOLS | CALL_TOOL);
        if !is_search(&client_request.name) || !self.tool_mode.is_search(client, http, &catalog) {
            return Ok(None);
        }
        if client_request.name == FIND_TOOLS {
            return Ok(Some(self.tool_mode.find(&self.lists, &catalog, client_request.arguments.as_ref())));
        }
        let InnerCall { name, arguments } = inner_call(client_request.arguments.as_ref())?;
        (client_request.name, client_request.arguments) = (name, Some(arguments));
        Ok(None)
    }
}

/// Reads the call that a call of the tool that calls tools stands for.
fn inner_call(arguments: Option<&Raw>) -> Result<InnerCall, RpcError> {
    InnerCall::read(arguments.unwrap_or(&Raw::empty_object())).map_err(|why| invalid(&why))
}

/// Reads `tools=…` of an address.
fn asked_mode(query: &str) -> Option<ClientTools> {
    query.split('&').find_map(|it| it.strip_prefix("tools=")).and_then(ClientTools::parse)
}
