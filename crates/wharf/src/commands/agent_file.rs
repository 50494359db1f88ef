//! Adds servers to an agent file. Preserves its existing text byte for byte.

mod block_list;

use super::files;
use crate::environment::read_agent_file;
use std::{collections::BTreeSet, fs, path::Path};
use wharf_config::{Diagnostics, Env, Plan, Severity, load};

/// An agent file, which may not exist yet.
pub(super) struct AgentFile<'a> {
    path: &'a Path,
    text: Option<String>,
    /// The current plan, with placeholders for variables that are not set. `None` if the file is missing or empty.
    plan: Option<Plan>,
}

impl<'a> AgentFile<'a> {
    /// Reads the file. Returns an error if it is already invalid.
    pub(super) fn read(path: &'a Path, env: &Env) -> Result<AgentFile<'a>, String> {
        let shown = path.display();
        if !fs::exists(path).unwrap_or(true) {
            return Ok(AgentFile { path, text: None, plan: None });
        }
        let bytes = read_agent_file(path).map_err(|it| it.render(false))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("error: {shown} is not UTF-8 text\n"))?;
        let is_empty = text.lines().all(|it| it.trim().is_empty() || it.trim_start().starts_with('#'));
        if is_empty {
            return Ok(AgentFile { path, text: Some(text), plan: None });
        }
        let (plan, diagnostics) = load(&text, env);
        if let Some(first) = first_error(&diagnostics) {
            return Err(format!(
                "error: {shown} is already invalid: {first}\nhelp: `wharf check` shows all errors\n"
            ));
        }
        let plan = plan.or_else(|| load(&text, &with_placeholder_variables(env, &text)).0);
        Ok(AgentFile { path, text: Some(text), plan })
    }

    /// Returns the names of its servers.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let sources = self.plan.iter().flat_map(|it| &it.sources);
        sources.map(|it| it.name.expose().to_owned()).collect()
    }

    /// Returns its text with these entries at the end of `tools:`, or an error if the result would not load or would
    /// change existing servers. `env` includes the env files that the new entries name.
    pub(super) fn with_entries(&self, entries: &str, env: &Env) -> Result<String, String> {
        let shown = self.path.display();
        let add_by_hand = |why: &str| format!("error: {why}\nhelp: add this entry by hand:\n{entries}");
        let before = self.text.as_deref().unwrap_or_default();
        let after = block_list::insert_entry(before, entries)
            .ok_or_else(|| add_by_hand(&format!("`tools` in {shown} is not a block list")))?;
        // The variables of the new entries may not be set yet.
        let mut env = with_placeholder_variables(env, entries);
        let (mut plan, diagnostics) = load(&after, &env);
        if let Some(first) = first_error(&diagnostics) {
            return Err(match first.strip_prefix("Duplicate tool names found: ") {
                Some(names) => format!(
                    "error: {shown} has a tool called '{}' already\nhelp: `--name NAME` gives it another name\n",
                    names.split(". Each").next().unwrap_or_default()
                ),
                None => add_by_hand(&first),
            });
        }
        if plan.is_none() {
            env = with_placeholder_variables(&env, &after);
            plan = load(&after, &env).0;
        }
        // With the same variables, because an existing entry may use one of the same name.
        let old = self.plan.as_ref().and_then(|_| load(before, &env).0);
        if let (Some(old), Some(new)) = (&old, &plan)
            && new.sources.get(..old.sources.len()) != Some(&old.sources[..])
        {
            return Err(add_by_hand(&format!(
                "the entry cannot be added to {shown} without changing other entries"
            )));
        }
        Ok(after)
    }

    /// Writes the new text to the file.
    pub(super) fn write(&self, text: &str) -> Result<(), String> {
        files::replace(self.path, text, self.text.is_none(), 0o644)
            .map_err(|error| format!("error: {} cannot be written: {error}\n", self.path.display()))
    }

    pub(super) fn is_new(&self) -> bool {
        self.text.is_none()
    }
}

/// Returns the first error, ignoring variables that are not set.
fn first_error(diagnostics: &Diagnostics) -> Option<String> {
    let errors = diagnostics.items().iter().filter(|it| it.severity == Severity::Error);
    errors.filter(|it| it.code != "V-09").map(|it| it.message.clone()).next()
}

/// Returns a copy of `env` in which every variable that the text names has a value.
fn with_placeholder_variables(env: &Env, text: &str) -> Env {
    let mut env = env.clone();
    for (start, _) in text.match_indices("${") {
        let inside = &text[start + 2..];
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
        if !inside[..end].is_empty() {
            env.variables.entry(inside[..end].to_owned()).or_insert_with(|| "1".to_owned());
        }
    }
    env
}
