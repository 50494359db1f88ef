//! The tools of one run: what the model is offered, and what is known about each. A run keeps those it began with.
//!
//! Cheap to clone, so that runs with the same catalog and settings share one; see [`toolbox_cache`].

mod tool_budget;
mod toolbox_cache;

use crate::{
    dialect::Dialect,
    policy::RunRules,
    tool_facts::ToolFacts,
    tool_list::{ToolList, ToolSpec},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};
use tool_budget::DeferredTools;
pub use tool_budget::is_deferred;
pub(crate) use tool_budget::tool_budget;
pub(crate) use toolbox_cache::{ToolboxCache, ToolboxSettings};
use wharf_runtime::{
    Catalog,
    argument_schema::{Check, Schema},
    catalog::ToolEntry,
    own_tool::OwnTool,
    result_handle::ResultTool,
    tokens::estimate_definition,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Toolbox {
    known: Arc<KnownTools>,
    offered: Arc<OfferedTools>,
    answer: Option<Arc<Schema>>,
    /// Tools that are found by a question, if not all fit the budget.
    deferred: Option<Arc<DeferredTools>>,
}

/// Facts about all tools that can be called.
#[derive(Clone, Debug, Default)]
struct KnownTools {
    tools: Vec<ToolFacts>,
    /// Position of each name.
    positions: HashMap<String, usize>,
}

/// Tools that the model is offered, and their other forms, which are made once.
#[derive(Clone, Debug, Default)]
struct OfferedTools {
    specs: Vec<ToolSpec>,
    tokens: OnceLock<Vec<(String, u64)>>,
    list: OnceLock<ToolList>,
}

impl KnownTools {
    fn push(&mut self, tool: ToolFacts) {
        self.positions.entry(tool.name.clone()).or_insert(self.tools.len());
        self.tools.push(tool);
    }
}

impl FromIterator<ToolFacts> for KnownTools {
    fn from_iter<I: IntoIterator<Item = ToolFacts>>(tools: I) -> KnownTools {
        let mut known = KnownTools::default();
        tools.into_iter().for_each(|it| known.push(it));
        known
    }
}

impl From<Vec<ToolSpec>> for OfferedTools {
    fn from(specs: Vec<ToolSpec>) -> OfferedTools {
        OfferedTools { specs, ..OfferedTools::default() }
    }
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
        let (mut known, mut specs) = (KnownTools::default(), Vec::new());
        for entry in usable {
            let facts = ToolFacts::of(entry);
            let schema = entry.tool.as_ref().map(|it| it.input_schema.decode_or_default::<Value>());
            if rules.denying_rule(&facts.id).is_none() {
                specs.push(ToolSpec {
                    name: entry.name.clone(),
                    description: entry.description.clone().unwrap_or_default(),
                    schema: schema.unwrap_or_default(),
                });
            }
            known.push(facts);
        }
        let mut toolbox =
            Toolbox { known: Arc::new(known), offered: Arc::new(specs.into()), ..Toolbox::default() };
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
        let specs: Vec<ToolSpec> = tools.iter().map(spec).collect();
        let known = Arc::new(tools.into_iter().collect());
        let mut toolbox = Toolbox { known, offered: Arc::new(specs.into()), ..Toolbox::default() };
        if let Some(format) = response_format {
            toolbox.add_answer_tool(format)?;
        }
        Ok(toolbox)
    }

    /// Offers the tools that read stored results, if there are tools that return some, or a message has one.
    pub(crate) fn add_result_tools(&mut self, is_one_attached: bool) {
        if !is_one_attached && self.specs().iter().all(|it| it.name == ANSWER_TOOL) {
            return;
        }
        let known = Arc::make_mut(&mut self.known);
        ResultTool::ALL.into_iter().for_each(|it| known.push(ToolFacts::of_result_tool(it)));
        let specs = ResultTool::ALL.into_iter().map(|it| spec_of(it.definition()));
        self.change_specs(|all| all.extend(specs));
    }

    /// Changes what is offered.
    fn change_specs<T>(&mut self, change: impl FnOnce(&mut Vec<ToolSpec>) -> T) -> T {
        let offered = Arc::make_mut(&mut self.offered);
        (offered.tokens, offered.list) = (OnceLock::new(), OnceLock::new());
        change(&mut offered.specs)
    }

    fn add_answer_tool(&mut self, format: &Value) -> Result<(), String> {
        self.answer = Some(Arc::new(Schema::compile(&format.clone().into())?));
        let spec = ToolSpec {
            name: ANSWER_TOOL.to_owned(),
            description: "Returns the final answer. Call it once, when you are done.".to_owned(),
            schema: format.clone(),
        };
        self.change_specs(|all| all.push(spec));
        Ok(())
    }

    /// Returns the definitions of all known tools.
    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        self.known.tools.iter().map(ToolFacts::definition).collect()
    }

    /// Removes the tools that the run did not begin with: those that are new or have another definition.
    pub(crate) fn keep_definitions(&mut self, known: &[ToolDefinition]) {
        let known: HashSet<&ToolDefinition> = known.iter().collect();
        let kept = self.known.tools.iter().filter(|it| known.contains(&it.definition())).cloned();
        self.known = Arc::new(kept.collect());
        let kept = self.known.clone();
        let is_kept = |it: &ToolSpec| it.name == ANSWER_TOOL || kept.positions.contains_key(&it.name);
        self.change_specs(|all| all.retain(is_kept));
    }

    /// Returns the tools to offer.
    pub(crate) fn specs(&self) -> &[ToolSpec] {
        &self.offered.specs
    }

    /// Returns the tools to offer in the form of the model's dialect. They are written once: all who share them have
    /// the same model.
    pub(crate) fn list(&self, dialect: Dialect) -> &ToolList {
        self.offered.list.get_or_init(|| dialect.write_tools(&self.offered.specs))
    }

    /// Returns the names of the tools to offer, and their estimated tokens.
    pub(crate) fn offered_tokens(&self) -> &[(String, u64)] {
        self.offered.tokens.get_or_init(|| self.specs().iter().map(ToolSpec::named_tokens).collect())
    }

    /// Returns the names of the tools that the model has to find, and their estimated tokens.
    pub(crate) fn deferred_tokens(&self) -> Vec<(String, u64)> {
        let deferred = self.deferred.iter().flat_map(|it| &it.specs);
        deferred.map(ToolSpec::named_tokens).collect()
    }

    /// Stops offering a tool. Returns its name and definition.
    pub(crate) fn leave_out(&mut self, index: usize) -> Option<ToolDefinition> {
        let name = self.specs().get(index).filter(|it| it.name != ANSWER_TOOL)?.name.clone();
        self.change_specs(|all| all.remove(index));
        let hash = self.find(&name).map(|it| it.definition_hash.clone()).unwrap_or_default();
        Some(ToolDefinition { name, hash })
    }

    /// Stops offering these tools, because the provider has refused them.
    fn leave_out_all(&mut self, refused: &HashSet<ToolDefinition>) {
        let known = self.known.clone();
        let is_refused = |it: &ToolSpec| {
            let tool = known.positions.get(&it.name).map(|at| known.tools[*at].definition());
            tool.is_some_and(|it| refused.contains(&it))
        };
        self.change_specs(|all| all.retain(|it| !is_refused(it)));
    }

    /// Returns whether the answer must have a format.
    pub(crate) fn has_answer_tool(&self) -> bool {
        self.answer.is_some()
    }

    /// Finds a tool by the name that the model uses.
    pub(crate) fn find(&self, name: &str) -> Option<&ToolFacts> {
        self.known.positions.get(name).map(|at| &self.known.tools[*at])
    }

    /// Returns the offered name that is most like an unknown one.
    pub(crate) fn closest(&self, name: &str) -> Option<&str> {
        wharf_config::closest(name, self.specs().iter().map(|it| it.name.as_str()))
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
    fn tokens(&self) -> u64 {
        estimate_definition(&self.name, &self.description, &self.schema)
    }

    fn named_tokens(&self) -> (String, u64) {
        (self.name.clone(), self.tokens())
    }
}

impl ToolDefinition {
    /// The name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.name
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
