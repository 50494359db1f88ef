//! Formats a tool as text: a signature on one line, or a full description.

use crate::{
    arguments::{Parameter, Parameters},
    content::printable,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum length of a signature. Optional parameters beyond it are left out.
const MAX_SIGNATURE: usize = 240;

/// Maximum length of a description on one line.
const MAX_LINE: usize = 100;

/// Maximum width of a table column.
const MAX_COLUMN: usize = 40;

/// One tool, as read from its JSON form.
pub(super) struct ToolView {
    name: String,
    wire_name: String,
    source: String,
    description: String,
    quarantined: Option<String>,
    parameters: Parameters,
    /// The fields of its result, if the server describes them.
    result: Vec<Parameter>,
    annotations: Value,
}

impl ToolView {
    /// Reads the JSON form of a tool.
    pub(super) fn of(tool: &Value) -> ToolView {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        ToolView {
            name: text("name"),
            wire_name: text("wire_name"),
            source: text("source"),
            description: text("description"),
            quarantined: tool["quarantined"].as_str().map(str::to_owned),
            parameters: Parameters::of(&tool["input_schema"], BTreeMap::new()),
            result: Parameters::of(&tool["output_schema"], BTreeMap::new()).list,
            annotations: tool["annotations"].clone(),
        }
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Formats the signature: `create_todo(title: string, priority?: 1..5)`.
    pub(super) fn signature(&self) -> String {
        let (required, optional): (Vec<_>, Vec<_>) =
            self.parameters.list.iter().partition(|it| it.is_required);
        let mut out = format!("{}({}", printable(&self.name), fields(&required));
        for parameter in optional {
            if out.len() > MAX_SIGNATURE {
                out.push_str(", …");
                break;
            }
            out.push_str(if out.ends_with('(') { "" } else { ", " });
            out.push_str(&field(parameter));
        }
        out + ")"
    }

    /// Formats the signature and the first line of the description; with `long`, the full description and the
    /// parameters.
    pub(super) fn entry(&self, long: bool) -> String {
        let mut out = format!("  {}\n", self.signature());
        if let Some(why) = &self.quarantined {
            out.push_str(&format!("      (quarantined: {})\n", printable(why)));
        }
        if !long {
            let line = first_line(&self.description);
            return if line.is_empty() { out } else { format!("{out}      {line}\n") };
        }
        out.push_str(&indent_lines(&self.description, "      "));
        for (name, about) in self.parameters.list.iter().map(|it| (printable(&it.name), about(it))) {
            out.push_str(&format!(
                "      - {name}{}\n",
                if about.is_empty() { about } else { format!(": {about}") }
            ));
        }
        out
    }

    /// Formats the full description of the tool.
    pub(super) fn page(&self) -> String {
        let (name, source, wire_name) =
            (printable(&self.name), printable(&self.source), printable(&self.wire_name));
        let mut out = format!("{name}\n  tool `{wire_name}` of the server `{source}`\n");
        if let Some(why) = &self.quarantined {
            out.push_str(&format!("  quarantined: {}\n", printable(why)));
        }
        if !self.description.trim().is_empty() {
            out.push_str(&format!("\n{}", indent_lines(&self.description, "  ")));
        }
        if !self.parameters.list.is_empty() {
            out.push_str(&format!("\nParameters\n{}", table(&self.parameters.list)));
        }
        if !self.result.is_empty() {
            out.push_str(&format!("\nResult\n{}", table(&self.result)));
        }
        if let Some(annotations) = describe_annotations(&self.annotations) {
            out.push_str(&format!("\nAnnotations\n  {annotations}\n"));
        }
        if self.quarantined.is_none() {
            out.push_str(&format!("\nExample\n  wharf call {}\n", self.example()));
        }
        out
    }

    /// Formats an example call with all required arguments.
    fn example(&self) -> String {
        let required = self.parameters.list.iter().filter(|it| it.is_required).map(Parameter::example);
        [printable(&self.name)].into_iter().chain(required).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the first line that is not blank, truncated if it is too long.
pub(in crate::commands) fn first_line(text: &str) -> String {
    let line = printable(text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default().trim());
    let short: String = line.chars().take(MAX_LINE).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}

fn fields(parameters: &[&Parameter]) -> String {
    parameters.iter().map(|it| field(it)).collect::<Vec<_>>().join(", ")
}

/// Formats one parameter: `title: string`, `priority?: 1..5`.
fn field(parameter: &Parameter) -> String {
    let mark = if parameter.is_required { "" } else { "?" };
    format!("{}{mark}: {}", printable(&parameter.name), parameter.value_type.label())
}

fn table(parameters: &[Parameter]) -> String {
    let rows: Vec<(String, String, String)> = parameters
        .iter()
        .map(|it| {
            let mark = if it.is_required { "" } else { "?" };
            (format!("{}{mark}", printable(&it.name)), it.value_type.label(), about(it))
        })
        .collect();
    let width = |of: fn(&(String, String, String)) -> &String| {
        rows.iter().map(|it| of(it).chars().count()).max().unwrap_or_default().min(MAX_COLUMN)
    };
    let (names, types) = (width(|it| &it.0), width(|it| &it.1));
    let line = |(name, label, about): &(String, String, String)| {
        format!("{}\n", format!("  {name:<names$}  {label:<types$}  {about}").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Returns a parameter's description on one line, with its default.
fn about(parameter: &Parameter) -> String {
    let words = printable(parameter.description.as_deref().unwrap_or_default());
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match parameter.default.as_ref().filter(|it| !it.is_null()) {
        Some(default) => format!("{words} [default: {}]", printable(&default.to_string())).trim().to_owned(),
        None => words,
    }
}

fn indent_lines(text: &str, indent: &str) -> String {
    let lines = printable(text.trim()).lines().map(|it| format!("{indent}{it}")).collect::<Vec<_>>();
    lines.iter().map(|it| format!("{}\n", it.trim_end())).collect()
}

/// Describes the effects of a tool from its annotations.
fn describe_annotations(annotations: &Value) -> Option<String> {
    let words = [
        ("readOnlyHint", "read-only", "modifies data"),
        ("destructiveHint", "may overwrite or delete", "only adds"),
        ("idempotentHint", "idempotent", "not idempotent"),
        ("openWorldHint", "reaches external systems", "closed system"),
    ];
    let only_reads = annotations["readOnlyHint"] == true;
    let described =
        words.iter().filter(|(key, ..)| *key == "readOnlyHint" || !only_reads || *key == "openWorldHint");
    let described: Vec<&str> = described
        .filter_map(|(key, yes, no)| annotations[*key].as_bool().map(|it| if it { *yes } else { *no }))
        .collect();
    (!described.is_empty()).then(|| described.join("; "))
}

#[cfg(test)]
mod tests;
