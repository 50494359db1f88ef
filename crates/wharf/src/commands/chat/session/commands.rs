//! Runs the commands of a chat, apart from `/exit`.

use super::ChatSession;
use crate::{
    commands::{
        chat::{command::COMMANDS, history::ChatConversation},
        run::model,
        tools::first_line,
    },
    content::printable,
};
use std::{collections::BTreeSet, sync::Arc};
use wharf_agent::approved_definition;
use wharf_config::{ApprovalRules, Glob, OperatorRules};
use wharf_runtime::catalog::ToolEntry;

impl ChatSession<'_> {
    /// Runs a command and prints its output.
    pub(super) fn run_command(&mut self, name: &str, rest: &str) {
        let text = match name {
            "help" => help(),
            "tools" => self.tools(rest),
            "prompts" => self.prompts(),
            "model" => return self.choose_model(rest),
            "usage" => self.usage(),
            "why" => match self.conversation.last_run.lines.is_empty() {
                true => "nothing has happened yet\n".to_owned(),
                false => self.conversation.last_run.lines.join("\n") + "\n",
            },
            "approvals" => self.approvals(),
            _ => {
                self.conversation = ChatConversation::new();
                self.approver.iter().for_each(|it| it.forget_tools());
                "this is a new conversation\n".to_owned()
            }
        };
        self.app.output.data(&printable(&text));
    }

    /// Returns the tools that the model may call.
    pub(super) fn offered_tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.connections.catalog.tools.iter().filter(|it| {
            let is_usable = it.for_models && it.blocked.is_none() && it.quarantined.is_none();
            is_usable && self.rules.denying_rule(&it.id()).is_none()
        })
    }

    fn tools(&self, text: &str) -> String {
        let rows: Vec<(&str, &str)> = self
            .offered_tools()
            .filter(|it| it.name.contains(text))
            .map(|it| (it.name.as_str(), it.description.as_deref().unwrap_or_default()))
            .collect();
        table(&rows, "no tools")
    }

    fn prompts(&self) -> String {
        let prompts = self.connections.catalog.prompts.iter().map(|it| {
            let arguments = it.prompt.arguments.iter();
            let arguments = arguments.map(|it| {
                let name = &it.name;
                if it.required { format!(" {name}=…") } else { format!(" [{name}=…]") }
            });
            format!("/{}:{}{}", it.source, it.prompt.name, arguments.collect::<String>())
        });
        let names: Vec<String> = prompts.collect();
        let about = self.connections.catalog.prompts.iter();
        let about = about.map(|it| it.prompt.description.as_deref().unwrap_or_default());
        let rows: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(about).collect();
        table(&rows, "no prompts")
    }

    fn choose_model(&mut self, named: &str) {
        if !named.is_empty() {
            let tape = self.agent.model.tape();
            match model::client(self.app, Some(named), self.environment, tape) {
                Ok(client) => self.agent.model = Arc::new(client),
                Err(error) => return self.app.output.print_error(error.to_text()),
            }
        }
        let options = self.agent.model.options();
        let window = options.context_window;
        self.app.output.data(&format!("{}, context window {window} tokens\n", options.native_key()));
    }

    fn usage(&self) -> String {
        let (usage, runs) = (self.conversation.usage, self.conversation.runs);
        let total = usage.total;
        let estimated = if usage.is_estimated { ", partly estimated" } else { "" };
        format!(
            "{runs} messages: {} tokens in ({} cached), {} out ({} reasoning){estimated}\n",
            total.input, total.cached_input, total.output, total.reasoning
        )
    }

    fn approvals(&self) -> String {
        let ApprovalRules { default, allow, ask, deny, after_untrusted: _ } = &self.rules.configured;
        let default = if self.rules.allow_all { "allow (--yes)" } else { default.as_str() };
        format!(
            "deny:  {}\nask:   {}\nallow: {}\nallowed in this conversation: {}\ndefault: {default}\n{}",
            list(&[deny, &self.rules.deny]),
            list(&[ask]),
            list(&[allow, &self.rules.allow]),
            or_dash(&self.allowed_tools().iter().map(String::as_str).collect::<Vec<_>>()),
            operator_rules(&self.rules.operator),
        )
    }

    /// Returns the tools that the user allowed for the conversation, now or before it was continued.
    fn allowed_tools(&self) -> BTreeSet<String> {
        let now = self.approver.iter().flat_map(|it| it.allowed_tools());
        let earlier = &self.conversation.allowed_tools;
        // An approval ends when the definition of its tool changes.
        let is_allowed = |it: &Arc<ToolEntry>| earlier.contains(&(it.id(), approved_definition(it)));
        let tools = self.connections.catalog.tools.iter().filter(|it| is_allowed(it));
        tools.map(|it| it.id()).chain(now).collect()
    }
}

/// Formats the rules of wharf.toml, if there are any.
fn operator_rules(rules: &OperatorRules) -> String {
    let OperatorRules { default, allow, ask, deny, after_untrusted: _ } = rules;
    let default = default.map(|it| format!("wharf.toml default: {}\n", it.as_str()));
    let lines = [("deny: ", deny), ("ask:  ", ask), ("allow:", allow)];
    let lines = lines.into_iter().filter(|(_, globs)| !globs.is_empty());
    let lines = lines.map(|(word, globs)| format!("wharf.toml {word} {}\n", list(&[globs])));
    lines.chain(default).collect()
}

fn list(globs: &[&[Glob]]) -> String {
    or_dash(&globs.iter().copied().flatten().map(Glob::as_str).collect::<Vec<_>>())
}

fn or_dash(names: &[&str]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

fn help() -> String {
    let rows: Vec<(String, &str)> =
        COMMANDS.iter().map(|(name, about)| (format!("/{name}"), *about)).collect();
    let mut rows: Vec<(&str, &str)> = rows.iter().map(|(name, about)| (name.as_str(), *about)).collect();
    rows.push(("/SERVER:PROMPT key=value", "send a prompt of a server"));
    rows.push(("@URI", "in a message: attach a resource of a server"));
    rows.push(("Ctrl-C", "cancel the answer; twice leaves"));
    table(&rows, "")
}

/// Formats names and the first lines of their descriptions.
fn table(rows: &[(&str, &str)], if_empty: &str) -> String {
    if rows.is_empty() {
        return format!("{if_empty}\n");
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
    let line = |(name, about): &(&str, &str)| format!("{name:width$}  {}", first_line(about));
    rows.iter().map(|it| line(it).trim_end().to_owned() + "\n").collect()
}
