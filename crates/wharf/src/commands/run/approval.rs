//! Asks the user at the terminal about calls.

use crate::{
    agent_activity::format_arguments,
    content::printable,
    progress,
    terminal::{PromptLine, write_stderr},
};
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::task;
use wharf_agent::{ApprovalAnswer, ApprovalDecisions, ApprovalQuestion, Approver};

/// Tools that the user allowed for this conversation, each with the hash of its definition.
type AllowedTools = BTreeSet<(String, String)>;

/// The user at the terminal, and the tools that they allowed for this conversation.
pub(in crate::commands) struct TerminalApprover {
    prompt: PromptLine,
    allowed_tools: Arc<Mutex<AllowedTools>>,
}

impl TerminalApprover {
    pub(in crate::commands) fn new(prompt: PromptLine) -> TerminalApprover {
        TerminalApprover { prompt, allowed_tools: Arc::default() }
    }

    /// Returns the tools that the user allowed without further questions.
    pub(in crate::commands) fn allowed_tools(&self) -> Vec<String> {
        let allowed_tools = self.allowed_tools.lock().unwrap_or_else(PoisonError::into_inner);
        allowed_tools.iter().map(|(tool_id, _)| tool_id.clone()).collect()
    }

    /// Forgets the tools that the user allowed.
    pub(in crate::commands) fn forget_tools(&self) {
        self.allowed_tools.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Approver for TerminalApprover {
    fn decide(&self, questions: Vec<ApprovalQuestion>) -> ApprovalDecisions<'_> {
        let (prompt, allowed_tools) = (self.prompt.clone(), self.allowed_tools.clone());
        Box::pin(async move {
            let asking = task::spawn_blocking(move || ask_all(questions, &prompt, &allowed_tools));
            asking.await.unwrap_or_default()
        })
    }
}

fn ask_all(
    questions: Vec<ApprovalQuestion>,
    prompt: &PromptLine,
    allowed_tools: &Mutex<AllowedTools>,
) -> Vec<(String, ApprovalAnswer)> {
    progress::clear_lines();
    let mut decisions = Vec::new();
    for question in questions {
        let mut allowed_tools = allowed_tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = (question.tool_id.clone(), question.definition_hash.clone());
        // A call that may have been executed needs a decision of its own.
        let is_known = !question.is_repetition && allowed_tools.contains(&tool);
        let answer = if is_known { TypedAnswer::Tool } else { ask(&question, prompt).unwrap_or_default() };
        let is_for_tool = answer == TypedAnswer::Tool;
        if is_for_tool {
            allowed_tools.insert(tool);
        }
        let is_allowed = answer != TypedAnswer::No;
        let answer = ApprovalAnswer { is_allowed, is_for_tool, ..ApprovalAnswer::default() };
        decisions.push((question.call_id, answer));
    }
    decisions
}

/// Answer of the user to a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TypedAnswer {
    /// This call is allowed.
    Yes,
    /// The tool is allowed for the conversation.
    Tool,
    /// The call is denied.
    #[default]
    No,
}

/// Asks until the answer is clear. The end of input denies.
fn ask(question: &ApprovalQuestion, prompt: &PromptLine) -> io::Result<TypedAnswer> {
    let arguments = format_arguments(&question.arguments);
    let name = printable(&question.tool_name);
    write_stderr(&warning(question))?;
    let line = format!("allow {name}({arguments})? [y]es [t]his tool [n]o [d]etails ");
    while let Some(answer) = prompt(&line)? {
        match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(TypedAnswer::Yes),
            "t" => return Ok(TypedAnswer::Tool),
            "n" | "no" | "" => return Ok(TypedAnswer::No),
            "d" => {
                print_details(question)?;
            }
            _ => {}
        }
    }
    Ok(TypedAnswer::No)
}

/// Returns a line about a call that may have been executed already. Empty for other calls.
fn warning(question: &ApprovalQuestion) -> String {
    match question.is_repetition {
        true => format!("careful: {}\n", printable(&question.why)),
        false => String::new(),
    }
}

fn print_details(question: &ApprovalQuestion) -> io::Result<()> {
    let ApprovalQuestion { tool_id, why, arguments, passed, .. } = question;
    let passed = passed.iter().map(|it| {
        let hash = if it.pointer.is_empty() { "" } else { "#" };
        format!("passes: {} bytes of result {}{hash}{}\n", it.bytes, it.id, printable(&it.pointer))
    });
    write_stderr(&format!(
        "tool: {}\nwhy:  {}\narguments: {}\n{}",
        printable(tool_id),
        printable(why),
        printable(&format!("{arguments:#}")),
        passed.collect::<String>()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn question(call_id: &str, definition_hash: &str, is_repetition: bool) -> ApprovalQuestion {
        ApprovalQuestion {
            approval_id: String::new(),
            call_id: call_id.to_owned(),
            tool_id: "files:write".to_owned(),
            tool_name: "files__write".to_owned(),
            arguments: Value::Null,
            why: String::new(),
            hints: Value::Null,
            definition_hash: definition_hash.to_owned(),
            digest: String::new(),
            passed: Vec::new(),
            is_repetition,
            expires_at: None,
        }
    }

    #[test]
    fn a_question_about_a_call_that_may_have_been_executed_begins_with_a_warning() {
        let why = "an earlier call with the same arguments may have been executed".to_owned();
        let about = |is_repetition| {
            warning(&ApprovalQuestion { why: why.clone(), ..question("c", "a", is_repetition) })
        };
        assert_eq!(about(true), format!("careful: {why}\n"));
        assert_eq!(about(false), "");
    }

    #[test]
    fn an_allowed_tool_covers_neither_another_definition_nor_a_call_that_may_have_been_executed() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let prompt: PromptLine = Arc::new(move |_| {
            let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
            Ok(Some(if is_first { "t" } else { "n" }.to_owned()))
        });
        let questions = vec![
            question("first", "a", false),
            question("same tool", "a", false),
            question("other definition", "b", false),
            question("unknown fate", "a", true),
        ];
        let decisions = ask_all(questions, &prompt, &Mutex::default());
        let decided = decisions.iter().map(|(id, it)| (id.as_str(), it.is_allowed, it.is_for_tool));
        let expected = [
            ("first", true, true),
            ("same tool", true, true),
            ("other definition", false, false),
            ("unknown fate", false, false),
        ];
        assert_eq!(decided.collect::<Vec<_>>(), expected);
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }
}
