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

/// The user at the terminal, and the tools that they allowed for this conversation.
pub(in crate::commands) struct TerminalApprover {
    prompt: PromptLine,
    allowed_tools: Arc<Mutex<BTreeSet<String>>>,
}

impl TerminalApprover {
    pub(in crate::commands) fn new(prompt: PromptLine) -> TerminalApprover {
        TerminalApprover { prompt, allowed_tools: Arc::default() }
    }

    /// Returns the tools that the user allowed without further questions.
    pub(in crate::commands) fn allowed_tools(&self) -> Vec<String> {
        self.allowed_tools.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
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
    allowed_tools: &Mutex<BTreeSet<String>>,
) -> Vec<(String, ApprovalAnswer)> {
    progress::clear_lines();
    let mut decisions = Vec::new();
    for question in questions {
        let mut allowed_tools = allowed_tools.lock().unwrap_or_else(PoisonError::into_inner);
        let is_allowed = allowed_tools.contains(&question.tool_id)
            || ask(&question, prompt, &mut allowed_tools).unwrap_or(false);
        decisions.push((question.call_id, ApprovalAnswer { is_allowed, ..ApprovalAnswer::default() }));
    }
    decisions
}

/// Asks until the answer is clear. The end of input denies.
fn ask(
    question: &ApprovalQuestion,
    prompt: &PromptLine,
    allowed_tools: &mut BTreeSet<String>,
) -> io::Result<bool> {
    let arguments = format_arguments(&question.arguments);
    let name = printable(&question.tool_name);
    let line = format!("allow {name}({arguments})? [y]es [t]his tool [n]o [d]etails ");
    while let Some(answer) = prompt(&line)? {
        match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "t" => {
                allowed_tools.insert(question.tool_id.clone());
                return Ok(true);
            }
            "n" | "no" | "" => return Ok(false),
            "d" => {
                print_details(question)?;
            }
            _ => {}
        }
    }
    Ok(false)
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
