//! Applies an override of agent.yaml to a tool: builds the definition that clients see, and translates their arguments
//! to those of the server.
//!
//! Only the arguments at the top level of the schema can be changed. An override that does not fit the server's schema is
//! an error, because a tool without its fixed argument would do something else than its operator wants.

use crate::argument_schema::{ArgumentError, Check, Schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wharf_config::{ArgumentChange, ArgumentOverride, ServerConfig, ToolOverride};
use wharf_mcp::{
    Raw,
    model::{Item, Tool},
};

/// A tool as clients see it.
#[derive(Debug)]
pub(super) struct ShownDefinition {
    pub(super) raw: Raw,
    pub(super) tool: Tool,
    pub(super) schema: Schema,
    pub(super) mapping: Option<ArgumentMapping>,
    /// Aliases of the arguments that clients see.
    pub(super) aliases: BTreeMap<String, String>,
}

/// Translates the arguments of a client to those of the server.
#[derive(Debug)]
pub(crate) struct ArgumentMapping {
    /// The tool as the server lists it.
    listed: Tool,
    /// Names that clients use, each with the server's name.
    renamed: Vec<(String, String)>,
    /// Values that are always sent.
    fixed: Vec<(String, Raw)>,
    /// Values that are sent if the client sends none, by the server's name.
    defaults: Vec<(String, Raw)>,
    /// Names that clients must not send, each with the reason.
    rejected: Vec<(String, String)>,
}

impl ShownDefinition {
    /// Builds the definition that clients see. The error names the line of agent.yaml.
    pub(super) fn new(
        tool: &Tool,
        changes: &ToolOverride,
        aliases: &BTreeMap<String, String>,
    ) -> Result<ShownDefinition, String> {
        let mut raw = tool.raw.clone();
        for (key, text) in [("title", &changes.title), ("description", &changes.description)] {
            if let Some(text) = text {
                raw = raw.with(key, &json!(text).into());
            }
        }
        if !changes.annotations.is_empty() {
            let listed = tool.annotations.as_ref().map(|it| it.decode_or_default::<Map<String, Value>>());
            let mut annotations = listed.unwrap_or_default();
            annotations.extend(changes.annotations.clone());
            raw = raw.with("annotations", &Value::Object(annotations).into());
        }
        let mut mapping = None;
        if !changes.arguments.is_empty() {
            let mut schema = ShownSchema::new(tool)?;
            for (name, change) in &changes.arguments {
                schema.apply(name, change).map_err(|why| format!("{}: {why}", change.at))?;
            }
            let (shown, changed) = schema.finish(tool).map_err(|why| format!("{}: {why}", changes.at))?;
            raw = raw.with("inputSchema", &shown.into());
            mapping = Some(changed);
        }
        let Item::Valid(tool) = Item::<Tool>::read(&raw) else {
            return Err(format!("{}: the changed definition is invalid", changes.at));
        };
        let schema = Schema::compile(&tool.input_schema).map_err(|why| format!("{}: {why}", changes.at))?;
        let aliases = shown_aliases(aliases, mapping.as_mut());
        Ok(ShownDefinition { raw, tool, schema, mapping, aliases })
    }
}

/// Returns the aliases of visible arguments. An alias of a fixed or hidden argument is rejected like its name.
fn shown_aliases(
    aliases: &BTreeMap<String, String>,
    mapping: Option<&mut ArgumentMapping>,
) -> BTreeMap<String, String> {
    let Some(mapping) = mapping else { return aliases.clone() };
    let mut shown = BTreeMap::new();
    for (alias, name) in aliases {
        let renamed = mapping.renamed.iter().find(|(_, server)| server == name);
        let rejected = mapping.rejected.iter().find(|(rejected, _)| rejected == name).cloned();
        match (renamed, rejected) {
            (None, Some((_, why))) => mapping.rejected.push((alias.clone(), why)),
            (renamed, _) => {
                let name = renamed.map_or(name, |(client, _)| client);
                shown.insert(alias.clone(), name.clone());
            }
        }
    }
    shown
}

/// The schema of the arguments while it is being changed.
struct ShownSchema {
    schema: Map<String, Value>,
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Name that clients use, by the server's name.
    names: BTreeMap<String, String>,
    renamed: Vec<(String, String)>,
    fixed: Vec<(String, Raw)>,
    defaults: Vec<(String, Raw)>,
    rejected: Vec<(String, String)>,
}

impl ShownSchema {
    fn new(tool: &Tool) -> Result<ShownSchema, String> {
        let schema: Map<String, Value> = tool.input_schema.decode().map_err(|error| error.to_string())?;
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        Ok(ShownSchema {
            schema,
            properties,
            required,
            names: BTreeMap::new(),
            renamed: Vec::new(),
            fixed: Vec::new(),
            defaults: Vec::new(),
            rejected: Vec::new(),
        })
    }

    fn apply(
        &mut self,
        name: &str,
        ArgumentOverride { change, at: _ }: &ArgumentOverride,
    ) -> Result<(), String> {
        match change {
            ArgumentChange::Fixed(value) => self.fix(name, value),
            ArgumentChange::Hidden => self.hide(name),
            ArgumentChange::Shown { name: shown, description, default } => {
                if let Some(property) = self.properties.get_mut(name) {
                    describe(property, description.as_deref());
                    self.default(name, default.as_ref())?;
                    self.rename(name, shown.as_deref());
                }
                Ok(())
            }
        }
    }

    fn fix(&mut self, name: &str, value: &ServerConfig) -> Result<(), String> {
        if !self.properties.contains_key(name) {
            return Err(format!("'{name}' is fixed, but the tool has no such argument"));
        }
        self.check_value(name, value, "fixed value")?;
        self.fixed.push((name.to_owned(), value.expose().clone().into()));
        self.remove(name, "is fixed by agent.yaml");
        Ok(())
    }

    fn hide(&mut self, name: &str) -> Result<(), String> {
        if self.required.iter().any(|it| it == name) {
            return Err(format!("'{name}' is hidden, but the server requires it"));
        }
        self.remove(name, "is hidden by agent.yaml");
        Ok(())
    }

    /// Removes an argument from the schema, although the others keep their order.
    fn remove(&mut self, name: &str, why: &str) {
        self.properties.shift_remove(name);
        self.required.retain(|it| it != name);
        self.rejected.push((name.to_owned(), why.to_owned()));
    }

    fn default(&mut self, name: &str, default: Option<&ServerConfig>) -> Result<(), String> {
        let Some(default) = default else { return Ok(()) };
        self.check_value(name, default, "default")?;
        if let Some(property) = self.properties.get_mut(name).and_then(Value::as_object_mut) {
            // Clients must not see the value of a variable.
            match default.is_secret() {
                true => _ = property.shift_remove("default"),
                false => _ = property.insert("default".to_owned(), default.expose().clone()),
            }
        }
        self.required.retain(|it| it != name);
        self.defaults.push((name.to_owned(), default.expose().clone().into()));
        Ok(())
    }

    fn rename(&mut self, name: &str, shown: Option<&str>) {
        let Some(shown) = shown.filter(|it| *it != name) else { return };
        self.names.insert(name.to_owned(), shown.to_owned());
        self.renamed.push((shown.to_owned(), name.to_owned()));
        self.rejected.push((name.to_owned(), format!("is named '{shown}' by agent.yaml")));
    }

    /// Checks a value against the server's schema of the argument.
    fn check_value(&self, name: &str, value: &ServerConfig, what: &str) -> Result<(), String> {
        let own = |key: &str| Some((key.to_owned(), self.schema.get(key)?.clone()));
        let mut schema: Map<String, Value> =
            ["$defs", "definitions", "properties"].into_iter().filter_map(own).collect();
        schema.insert("type".to_owned(), json!("object"));
        let schema = Schema::compile(&Value::Object(schema).into())?;
        match schema.check(&json!({ name: value.expose() }).into()) {
            Check::Valid | Check::Skipped(_) => Ok(()),
            Check::Invalid(problems) => {
                // A message of the validator may quote the value, which may be a secret.
                let why =
                    problems.first().filter(|_| !value.is_secret()).map(|it| format!(": {}", it.message));
                Err(format!(
                    "the {what} of '{name}' does not fit the server's schema{}",
                    why.unwrap_or_default()
                ))
            }
        }
    }

    /// Returns the changed schema and the mapping. Fails if two arguments would have the same name.
    fn finish(mut self, listed: &Tool) -> Result<(Value, ArgumentMapping), String> {
        let shown = |name: &str| self.names.get(name).map_or(name, String::as_str).to_owned();
        let mut properties = Map::new();
        for (name, property) in &self.properties {
            if properties.insert(shown(name), property.clone()).is_some() {
                return Err(format!("two arguments would be named '{}'", shown(name)));
            }
        }
        let required: Vec<String> = self.required.iter().map(|it| shown(it)).collect();
        self.rejected.retain(|(name, _)| !properties.contains_key(name));
        match required.is_empty() {
            true => _ = self.schema.shift_remove("required"),
            false => _ = self.schema.insert("required".to_owned(), json!(required)),
        }
        self.schema.insert("properties".to_owned(), Value::Object(properties));
        let mapping = ArgumentMapping {
            listed: listed.clone(),
            renamed: self.renamed,
            fixed: self.fixed,
            defaults: self.defaults,
            rejected: self.rejected,
        };
        Ok((Value::Object(self.schema), mapping))
    }
}

fn describe(property: &mut Value, description: Option<&str>) {
    if let (Some(property), Some(description)) = (property.as_object_mut(), description) {
        property.insert("description".to_owned(), json!(description));
    }
}

impl ArgumentMapping {
    /// Returns the tool as the server lists it.
    pub(crate) fn listed(&self) -> &Tool {
        &self.listed
    }

    /// Returns an error for each argument that clients must not send.
    pub(crate) fn rejected(&self, arguments: &Raw) -> Vec<ArgumentError> {
        let sent = self.rejected.iter().filter(|(name, _)| arguments.member(name).is_some());
        let error = |(name, why): &(String, String)| ArgumentError {
            path: format!("arguments.{name}"),
            pointer: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            message: why.clone(),
        };
        sent.map(error).collect()
    }

    /// Translates the arguments of a client. Every value that the client sends keeps its bytes.
    pub(crate) fn to_server(&self, arguments: Option<&Raw>) -> Raw {
        let sent = arguments.cloned().unwrap_or_else(Raw::empty_object);
        let clients: Vec<&str> = self.renamed.iter().map(|(client, _)| client.as_str()).collect();
        let mut mapped = sent.without(&clients);
        for (client, server) in &self.renamed {
            if let Some(value) = sent.member(client) {
                mapped = mapped.with(server, &value);
            }
        }
        for (server, value) in &self.defaults {
            if mapped.member(server).is_none() {
                mapped = mapped.with(server, value);
            }
        }
        self.fixed.iter().fold(mapped, |mapped, (server, value)| mapped.with(server, value))
    }
}

#[cfg(test)]
mod tests;
