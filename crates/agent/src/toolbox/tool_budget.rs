//! Keeps the offered tools within a budget of tokens. The rest can be found and called by two tools of our own, so the list,
//! and with it the provider's prompt cache, never changes.

use super::{Toolbox, spec_of};
use crate::{message::ToolCall, policy::RunRules, result_text::CallOutcome, tool_list::ToolSpec};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use wharf_config::{ContextSettings, DeferLoading, Glob};
use wharf_runtime::{
    Catalog, Raw,
    catalog::ToolEntry,
    own_tool::is_own_tool,
    tokens::estimate_tokens,
    tool_search::{
        CALL_TOOL, FIND_TOOLS, InnerCall, SearchedTool, ToolIndex, ToolQuery, call_tool, find_tools,
    },
};

/// Tools that are not offered.
#[derive(Debug, Default)]
pub(super) struct DeferredTools {
    pub(super) specs: Vec<ToolSpec>,
    index: ToolIndex,
    /// Maximum number of tokens of one answer.
    answer_tokens: u64,
}

/// Returns whether a model of this context window finds a tool by a question only, because the offered tools do not fit
/// the budget.
pub fn is_deferred(
    tool: &ToolEntry,
    catalog: &Catalog,
    rules: &RunRules,
    settings: &ContextSettings,
    context_window: u64,
) -> bool {
    let Ok(mut toolbox) = Toolbox::new(catalog, rules, None) else { return false };
    toolbox.fit(tool_budget(settings, context_window), &settings.pin);
    toolbox.deferred.is_some_and(|it| it.specs.iter().any(|it| it.name == tool.name))
}

/// Returns how many tokens the offered tools may take.
pub(crate) fn tool_budget(settings: &ContextSettings, context_window: u64) -> u64 {
    settings.tool_budget.unwrap_or((context_window / 5).min(ContextSettings::MAX_DEFAULT_BUDGET))
}

impl Toolbox {
    /// Defers tools until the others fit the budget: pinned tools stay first, then whole sources in order. A source may
    /// say that its tools are always deferred, or never.
    pub(crate) fn fit(&mut self, budget: u64, pins: &[Glob]) {
        let tokens: HashMap<&str, u64> =
            self.specs().iter().map(|it| (it.name.as_str(), it.tokens())).collect();
        let tokens = |it: &ToolSpec| tokens.get(it.name.as_str()).copied().unwrap_or_default();
        let total: u64 = self.specs().iter().map(tokens).sum();
        let defer =
            |it: &ToolSpec| self.find(&it.name).map_or(DeferLoading::Never, |tool| tool.defer_loading);
        if total <= budget && self.specs().iter().all(|it| defer(it) != DeferLoading::Always) {
            return;
        }
        let search_tools = [spec_of(find_tools()), spec_of(call_tool())];
        let mut left = budget.saturating_sub(search_tools.iter().map(ToolSpec::tokens).sum());
        let mut kept: HashSet<String> = HashSet::new();
        let mut keep = |specs: &[&ToolSpec], left: &mut u64, must_fit: bool| {
            let needed: u64 = specs.iter().map(|it| tokens(it)).sum();
            if !must_fit || needed <= *left {
                *left = left.saturating_sub(needed);
                kept.extend(specs.iter().map(|it| it.name.clone()));
            }
        };
        let candidates = self.specs().iter().filter(|it| defer(it) != DeferLoading::Always);
        let (always, others): (Vec<&ToolSpec>, Vec<&ToolSpec>) =
            candidates.partition(|it| is_own_tool(&it.name) || defer(it) == DeferLoading::Never);
        keep(&always, &mut left, false);
        let (pinned, others): (Vec<&ToolSpec>, Vec<&ToolSpec>) = others.into_iter().partition(|it| {
            self.find(&it.name).is_some_and(|tool| pins.iter().any(|pin| pin.matches(&tool.id)))
        });
        pinned.iter().for_each(|it| keep(&[*it], &mut left, true));
        let source = |it: &ToolSpec| self.find(&it.name).map(|tool| tool.source.as_str());
        for of_source in others.chunk_by(|a, b| source(a) == source(b)) {
            keep(of_source, &mut left, true);
        }
        let all = self.change_specs(std::mem::take);
        let (kept, deferred): (Vec<ToolSpec>, Vec<ToolSpec>) =
            all.into_iter().partition(|it| kept.contains(&it.name));
        let (own, kept): (Vec<ToolSpec>, Vec<ToolSpec>) =
            kept.into_iter().partition(|it| is_own_tool(&it.name));
        self.change_specs(|all| all.extend(kept.into_iter().chain(search_tools).chain(own)));
        let index = ToolIndex::new(deferred.iter().map(|it| self.searched(it)));
        self.deferred = Some(Arc::new(DeferredTools { specs: deferred, index, answer_tokens: budget / 4 }));
    }

    fn searched(&self, spec: &ToolSpec) -> SearchedTool {
        SearchedTool {
            name: spec.name.clone(),
            id: self.find(&spec.name).map_or_else(String::new, |it| it.id.clone()),
            title: String::new(),
            description: spec.description.clone(),
            input_schema: spec.schema.clone(),
        }
    }

    /// Answers a call of the tool that finds tools. `None` if the call is another one.
    pub(crate) fn find_deferred(&self, call: &ToolCall) -> Option<CallOutcome> {
        let deferred = self.deferred.as_ref().filter(|_| call.name == FIND_TOOLS)?;
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        Some(match ToolQuery::read(&arguments) {
            Ok(query) => CallOutcome { is_error: false, ..CallOutcome::refused(deferred.describe(&query)) },
            Err(why) => CallOutcome::refused(format!("not executed: {why}.")),
        })
    }

    /// Returns the call that a call stands for, and the name that the model used if it is another one.
    pub(crate) fn inner_call(&self, call: ToolCall) -> (ToolCall, Option<String>) {
        if self.deferred.is_none() || call.name != CALL_TOOL {
            return (call, None);
        }
        let inner = call.checked_arguments().ok().and_then(|it| Raw::parse(it.to_owned()).ok());
        match inner.and_then(|it| InnerCall::read(&it).ok()) {
            Some(InnerCall { name, arguments }) => (
                ToolCall { name, arguments: arguments.as_str().to_owned(), ..call },
                Some(CALL_TOOL.to_owned()),
            ),
            None => (call, None),
        }
    }
}

impl DeferredTools {
    /// Describes the tools that fit a query, one per line, as far as they fit the budget of an answer.
    fn describe(&self, query: &ToolQuery) -> String {
        let (mut lines, mut used) = (Vec::new(), 0);
        for at in self.index.search(&query.query, query.limit) {
            let ToolSpec { name, description, schema } = &self.specs[at];
            let line =
                json!({ "name": name, "description": description, "input_schema": schema }).to_string();
            used += estimate_tokens(&line);
            if used > self.answer_tokens && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        match lines.is_empty() {
            true => "no tool fits; try other words".to_owned(),
            false => lines.join("\n"),
        }
    }
}
