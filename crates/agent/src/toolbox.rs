//! The tools of one run: what the model is offered, and what is known about each. A run keeps those it began with.

use crate::{policy::RunRules, tool_facts::ToolFacts, tool_list::ToolSpec};
use serde_json::Value;
use wharf_runtime::{
    Catalog,
    argument_schema::{Check, Schema},
};

/// Name of the tool by which a model returns a structured answer.
pub(crate) const ANSWER_TOOL: &str = "wharf__answer";

/// Tools of one run.
#[derive(Debug, Default)]
pub(crate) struct Toolbox {
    tools: Vec<ToolFacts>,
    specs: Vec<ToolSpec>,
    answer: Option<Schema>,
}

impl Toolbox {
    /// Selects the tools for a model. Tools that a rule denies are known, but not offered.
    pub(crate) fn new(
        catalog: &Catalog,
        rules: &RunRules,
        response_format: Option<&Value>,
    ) -> Result<Toolbox, String> {
        let usable = catalog.tools.iter().filter(|it| {
            it.for_models && it.disabled.is_none() && it.quarantined.is_none() && it.tool.is_some()
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
        let mut toolbox = Toolbox { specs: tools.iter().map(spec).collect(), tools, answer: None };
        if let Some(format) = response_format {
            toolbox.add_answer_tool(format)?;
        }
        Ok(toolbox)
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

    /// Returns the tools to offer.
    pub(crate) fn specs(&self) -> &[ToolSpec] {
        &self.specs
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
