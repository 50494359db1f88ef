//! The tools of one run: what the model is offered, and what is known about each. A run keeps those it began with.

mod tool_budget;

use crate::{estimate::estimate_tokens, policy::RunRules, tool_facts::ToolFacts, tool_list::ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tool_budget::DeferredTools;
pub use tool_budget::is_deferred;
pub(crate) use tool_budget::tool_budget;
use wharf_runtime::{
    Catalog,
    argument_schema::{Check, Schema},
    catalog::ToolEntry,
    own_tool::OwnTool,
    result_handle::ResultTool,
};

/// Name of the tool by which a model returns a structured answer.
pub(crate) const ANSWER_TOOL: &str = "wharf__answer";

/// Name of a tool and hash of its definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ToolDefinition {
    name: String,
    hash: String,
}

/// Tools of one run.
#[derive(Debug, Default)]
pub(crate) struct Toolbox {
    tools: Vec<ToolFacts>,
    specs: Vec<ToolSpec>,
    answer: Option<Schema>,
    /// Tools that are found by a question, if not all fit the budget.
    deferred: Option<DeferredTools>,
}

impl Toolbox {
    /// Selects the tools for a model. Tools that a rule denies are known, but not offered.
    pub(crate) fn new(
        catalog: &Catalog,
        rules: &RunRules,
        response_format: Option<&Value>,
    ) -> Result<Toolbox, String> {
        let usable = in_stable_order(catalog).into_iter().filter(|it| {
            it.for_models && it.blocked.is_none() && it.quarantined.is_none() && it.tool.is_some()
        });
        let mut toolbox = Toolbox::default();
        for entry in usable {
            let facts = ToolFacts::of(entry);
            let schema = entry.tool.as_ref().map(|it| it.input_schema.decode_or_default::<Value>());
            if rules.denying_rule(&facts.id).is_none() {
                toolbox.specs.push(ToolSpec {
                    name: entry.name.clone(),
                    description: entry.description.clone().unwrap_or_default(),
                    schema: schema.unwrap_or_default(),
                });
            }
            toolbox.tools.push(facts);
        }
        if let Some(format) = response_format {
            toolbox.add_answer_tool(format)?;
        }
        Ok(toolbox)
    }

    /// Creates a toolbox of these tools, without schemas.
    #[cfg(test)]
    pub(crate) fn of(tools: Vec<ToolFacts>, response_format: Option<&Value>) -> Result<Toolbox, String> {
        let spec = |tool: &ToolFacts| ToolSpec {
            name: tool.name.clone(),
            description: String::new(),
            schema: serde_json::json!({ "type": "object" }),
        };
        let mut toolbox =
            Toolbox { specs: tools.iter().map(spec).collect(), tools, answer: None, deferred: None };
        if let Some(format) = response_format {
            toolbox.add_answer_tool(format)?;
        }
        Ok(toolbox)
    }

    /// Offers the tools that read stored results, if there are tools that return some, or a message has one.
    pub(crate) fn add_result_tools(&mut self, is_one_attached: bool) {
        if !is_one_attached && self.specs.iter().all(|it| it.name == ANSWER_TOOL) {
            return;
        }
        for tool in ResultTool::ALL {
            self.specs.push(spec_of(tool.definition()));
            self.tools.push(ToolFacts::of_result_tool(tool));
        }
    }

    fn add_answer_tool(&mut self, format: &Value) -> Result<(), String> {
        self.answer = Some(Schema::compile(&format.clone().into())?);
        self.specs.push(ToolSpec {
            name: ANSWER_TOOL.to_owned(),
            description: "Returns the final answer. Call it once, when you are done.".to_owned(),
            schema: format.clone(),
        });
        Ok(())
    }

    /// Returns the definitions of all known tools.
    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(ToolFacts::definition).collect()
    }

    /// Removes the tools that the run did not begin with: those that are new or have another definition.
    pub(crate) fn keep_definitions(&mut self, known: &[ToolDefinition]) {
        let known: HashSet<&ToolDefinition> = known.iter().collect();
        self.tools.retain(|it| known.contains(&it.definition()));
        let names: HashSet<&str> = self.tools.iter().map(|it| it.name.as_str()).collect();
        self.specs.retain(|it| it.name == ANSWER_TOOL || names.contains(it.name.as_str()));
    }

    /// Returns the tools to offer.
    pub(crate) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Returns the names of the tools to offer, and their estimated tokens.
    pub(crate) fn offered_tokens(&self) -> Vec<(String, u64)> {
        self.specs.iter().map(ToolSpec::named_tokens).collect()
    }

    /// Returns the names of the tools that the model has to find, and their estimated tokens.
    pub(crate) fn deferred_tokens(&self) -> Vec<(String, u64)> {
        let deferred = self.deferred.iter().flat_map(|it| &it.specs);
        deferred.map(ToolSpec::named_tokens).collect()
    }

    /// Stops offering a tool. Returns its name.
    pub(crate) fn leave_out(&mut self, index: usize) -> Option<String> {
        let is_offered = self.specs.get(index).is_some_and(|it| it.name != ANSWER_TOOL);
        is_offered.then(|| self.specs.remove(index).name)
    }

    /// Returns whether the answer must have a format.
    pub(crate) fn has_answer_tool(&self) -> bool {
        self.answer.is_some()
    }

    /// Finds a tool by the name that the model uses.
    pub(crate) fn find(&self, name: &str) -> Option<&ToolFacts> {
        self.tools.iter().find(|it| it.name == name)
    }

    /// Returns the offered name that is most like an unknown one.
    pub(crate) fn closest(&self, name: &str) -> Option<&str> {
        wharf_config::closest(name, self.specs.iter().map(|it| it.name.as_str()))
    }

    /// Checks a structured answer. The error lists the paths that do not fit.
    pub(crate) fn check_answer(&self, arguments: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        match self.answer.as_ref().map(|it| it.check(&value.clone().into())) {
            Some(Check::Invalid(errors)) => {
                let lines = errors.iter().map(|it| {
                    let path = it.path.strip_prefix("arguments").unwrap_or(&it.path);
                    format!("answer{path} {}", it.message)
                });
                Err(lines.collect::<Vec<_>>().join("; "))
            }
            _ => Ok(value),
        }
    }
}

impl ToolSpec {
    fn named_tokens(&self) -> (String, u64) {
        let ToolSpec { name, description, schema } = self;
        (name.clone(), estimate_tokens(&format!("{name}{description}{schema}")))
    }
}

impl ToolFacts {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition { name: self.name.clone(), hash: self.definition_hash.clone() }
    }
}

/// Returns the offered form of one of our own tools.
fn spec_of(tool: OwnTool) -> ToolSpec {
    let OwnTool { name, description, input_schema } = tool;
    ToolSpec { name: name.to_owned(), description: description.to_owned(), schema: input_schema }
}

/// Returns the tools in an order that does not depend on how a server lists them, so that the provider's prompt cache
/// hits: sources as in the file, and the tools of a source by their names.
fn in_stable_order(catalog: &Catalog) -> Vec<&Arc<ToolEntry>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for tool in &catalog.tools {
        let next = places.len();
        places.entry(&tool.source).or_insert(next);
    }
    let mut tools: Vec<&Arc<ToolEntry>> = catalog.tools.iter().collect();
    tools.sort_by(|a, b| {
        (places.get(a.source.as_str()), &a.wire_name).cmp(&(places.get(b.source.as_str()), &b.wire_name))
    });
    tools
}
