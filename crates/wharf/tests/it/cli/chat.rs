//! Tests `wharf chat` on a terminal and with piped lines, with a scripted model and the Todo server.

use super::{CliWorkspace, TODO, stderr, stdout};
use crate::terminal::{TerminalOutput, TerminalProgram};
use scripted_model::{Action, Reply, ScriptedModel, Wire, render, text};
use serde_json::Value;
use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const UP: &str = "\u{1b}[A";

fn workspace(model: &ScriptedModel, more: &str) -> CliWorkspace {
    let url = model.url();
    let file = format!("model: {{provider: openai, name: m, endpoint: '{url}', api_key: k}}\n{more}{TODO}");
    CliWorkspace::with(&file)
}

/// Starts a chat on a terminal, and waits for its prompt.
fn start(workspace: &CliWorkspace, flags: &[&str]) -> TerminalProgram {
    start_with(workspace, flags, "5 tools of 1 server.")
}

/// Starts a chat that greets with a number of tools.
fn start_with(workspace: &CliWorkspace, flags: &[&str], tools: &str) -> TerminalProgram {
    let home = workspace.path("home").to_string_lossy().into_owned();
    let variables = [("HOME".to_owned(), home), ("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let words = [&[env!("CARGO_BIN_EXE_wharf"), "chat"], flags].concat();
    let mut chat = TerminalProgram::start(workspace.folder.path(), &variables, &words);
    chat.wait_for(&format!("{tools} /help lists the commands, Ctrl-D leaves.\n>"));
    chat
}

/// Types a line and waits for a text on the screen, and for the next prompt.
fn say(chat: &mut TerminalProgram, line: &str, expected: &str) {
    let prompts = |chat: &TerminalProgram| chat.screen().matches("\n>").count();
    let before = prompts(chat);
    chat.type_in(&format!("{line}\r"));
    chat.wait_for(expected);
    while prompts(chat) <= before {
        chat.wait_for_change();
    }
}

fn messages(model: &ScriptedModel, request: usize) -> Vec<(String, String)> {
    let requests = model.requests();
    let messages = requests[request].body["messages"].as_array().cloned().unwrap_or_default();
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    messages.iter().map(|it| (text(&it["role"]), text(&it["content"]))).collect()
}

#[test]
fn a_conversation_has_several_turns_and_commands() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#)]),
        Reply::text(Wire::Chat, "# Done\nI **created** `it`: [list](https://w.example).\n").in_chunks(3),
        Reply::text(Wire::Chat, "As I \u{1b}]0;owned\u{7}\u{202e}said."),
    ]);
    let workspace = workspace(&model, "");
    let mut chat = start(&workspace, &[]);
    say(&mut chat, "Remind me to buy eggs", "\nDone\nI created it: list (https://w.example).\n");
    assert!(chat.screen().contains("→ todo__create_todo title=\"buy eggs\"\n← "), "{}", chat.screen());
    say(&mut chat, "Really?", "As I ]0;owned");
    let second = messages(&model, 2);
    let roles: Vec<&str> =
        second.iter().map(|(role, _)| role.as_str()).filter(|it| *it != "system").collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"], "the history is sent: {second:?}");
    say(&mut chat, "/usage", "2 messages: 30 tokens in (12 cached), 15 out (6 reasoning)");
    say(&mut chat, "/why", "turn 1: 10 tokens in (4 cached), 5 out\nended: finished");
    say(&mut chat, "/tools create", "todo__create_todo  ");
    say(&mut chat, "/approvals", "default: ask");
    say(&mut chat, "/model", "openai/m, context window 128000 tokens");
    say(&mut chat, "/nope", "error: there is no command `/nope`\nhelp: /help lists the commands");
    say(&mut chat, "/new", "this is a new conversation");
    say(&mut chat, "Hello", "said.");
    assert_eq!(messages(&model, 3).iter().filter(|(role, _)| role == "user").count(), 1);
    chat.type_in(CTRL_D);
    let TerminalOutput { text, code } = chat.end();
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(model.requests().len(), 4, "commands are not sent to the model");
}

#[test]
fn without_colour_markdown_is_shown_as_it_is() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "# Done\n- **b** [a](https://b)\n")]);
    let workspace = workspace(&model, "");
    let mut chat = start(&workspace, &["--color", "never"]);
    say(&mut chat, "Hi", "\n# Done\n- **b** [a](https://b)\n");
    say(&mut chat, "/help", "/SERVER:PROMPT key=value");
    chat.type_in("exit\r");
    assert_eq!(chat.end().code, Some(0));
}

#[test]
fn lines_are_completed_and_remembered() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello.")]);
    let workspace = workspace(&model, "");
    let mut chat = start(&workspace, &[]);
    say(&mut chat, "Hi there", "Hello.");
    say(&mut chat, "/us\t", "1 messages: 10 tokens in");
    say(&mut chat, &format!("{UP}{UP}"), "Hello.\n> /usage");
    chat.type_in("/exit\r");
    assert_eq!(chat.end().code, Some(0));
    let sent: Vec<String> = messages(&model, 1).into_iter().map(|(_, text)| text).collect();
    assert_eq!(sent.iter().filter(|it| it.contains("Hi there")).count(), 2, "{sent:?}");
    let history = workspace.path("home/.local/share/wharf/chat_history");
    let mode = std::fs::metadata(&history).expect("a history").permissions().mode();
    assert_eq!(mode & 0o077, 0, "only its owner may read it");
    let mut chat = start(&workspace, &[]);
    say(&mut chat, &format!("{UP}{UP}{UP}"), "0 messages: 0 tokens");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
}

#[test]
fn calls_are_approved_at_the_terminal() {
    let create = |title: &str| {
        let arguments = format!(r#"{{"title":"{title}"}}"#);
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", arguments.as_str())])
    };
    let done = || Reply::text(Wire::Chat, "Done.");
    let script = vec![create("a"), done(), create("b"), done(), create("c"), done()];
    let model = ScriptedModel::start(script);
    let workspace = workspace(&model, "approval: {ask: ['todo:create_*']}\n");
    let mut chat = start(&workspace, &[]);
    chat.type_in("One\r");
    let question = "allow todo__create_todo(title=\"a\")? [y]es [t]his tool [n]o [d]etails";
    chat.wait_for(question);
    say(&mut chat, "n", "← todo__create_todo denied");
    chat.type_in("Two\r");
    chat.wait_for("allow todo__create_todo(title=\"b\")?");
    chat.type_in("d\r");
    chat.wait_for("why:  the rule 'todo:create_*' asks");
    say(&mut chat, "t", "← ");
    say(&mut chat, "Three", "→ todo__create_todo title=\"c\"");
    say(&mut chat, "/approvals", "allowed in this conversation: todo:create_todo");
    say(&mut chat, "/new", "this is a new conversation");
    say(&mut chat, "/approvals", "allowed in this conversation: -");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
    let denied =
        messages(&model, 1).iter().any(|(_, text)| text.starts_with("denied: the user did not allow"));
    assert!(denied, "{:?}", messages(&model, 1));
    let todos = stdout(&workspace.wharf(&["call", "list_todos", "--json"]));
    assert!(!todos.contains("\"title\": \"a\"") && todos.contains("\"title\": \"b\""), "{todos}");
}

#[test]
fn an_allowed_tool_stays_allowed_when_the_conversation_continues() {
    let create = |title: &str| {
        let arguments = format!(r#"{{"title":"{title}"}}"#);
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", arguments.as_str())])
    };
    let done = || Reply::text(Wire::Chat, "Done.");
    let model = ScriptedModel::start(vec![create("a"), done(), create("b"), done()]);
    let workspace = workspace(&model, "approval: {ask: ['todo:create_*']}\n");
    let mut chat = start(&workspace, &[]);
    chat.type_in("One\r");
    chat.wait_for("allow todo__create_todo(title=\"a\")?");
    say(&mut chat, "t", "Done.");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
    let mut chat = start(&workspace, &["--continue"]);
    say(&mut chat, "/approvals", "allowed in this conversation: todo:create_todo");
    say(&mut chat, "Two", "→ todo__create_todo title=\"b\"");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
}

#[test]
fn rules_of_the_operator_are_shown_and_hide_tools() {
    let model = ScriptedModel::start(Vec::new());
    let workspace = workspace(&model, "approval: {deny: ['todo:update_*']}\n");
    let rules = "[agent.approval]\ndeny = ['todo:delete_*']\nask = ['todo:create_*']\ndefault = 'deny'\n";
    workspace.write("wharf.toml", rules);
    let settings = workspace.path("wharf.toml").display().to_string();
    let mut chat = start_with(&workspace, &["--settings", &settings], "3 tools of 1 server.");
    say(&mut chat, "/tools delete", "no tools");
    let shown = "deny:  todo:update_*\nask:   -\nallow: -\nallowed in this conversation: -\ndefault: ask\n\
        wharf.toml deny:  todo:delete_*\nwharf.toml ask:   todo:create_*\nwharf.toml default: deny\n";
    say(&mut chat, "/approvals", shown);
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
}

#[test]
fn the_operator_sets_the_circuit_breaker_of_a_chat() {
    let error = Reply::error(500, &Value::Null).header("retry-after-ms", "1");
    let model = ScriptedModel::start(vec![error]);
    let workspace = workspace(&model, "");
    workspace.write("wharf.toml", "[agent.breaker]\nfailure_threshold = 1\n");
    let settings = workspace.path("wharf.toml").display().to_string();
    let output = pipe(&workspace, &["--no-save", "--settings", &settings], "One\nTwo\n");
    assert!(stderr(&output).contains("the circuit breaker for the model is open"), "{}", stderr(&output));
    assert_eq!(model.requests().len(), 4, "the first message and its retries");
    workspace.write("wharf.toml", "[agent.breaker]\nfailures = 1\n");
    let output = pipe(&workspace, &["--no-save", "--settings", &settings], "One\n");
    assert!(stderr(&output).contains("[agent.breaker]"), "{}", stderr(&output));
}

#[test]
fn ctrl_c_cancels_the_answer_and_a_second_one_leaves() {
    let begun = render(Wire::Chat, &[text("Once upon")]);
    let hang = Reply::stream(begun).then(Action::Hang);
    let model = ScriptedModel::start(vec![hang.clone(), Reply::text(Wire::Chat, "Hello."), hang]);
    let workspace = workspace(&model, "");
    let mut chat = start(&workspace, &[]);
    chat.type_in("Tell me a story\r");
    chat.wait_for("Once upon");
    chat.type_in(CTRL_C);
    chat.wait_for("note: press Ctrl-C again, or Ctrl-D, to leave\n>");
    model.wait_for_abandoned(1);
    say(&mut chat, "Hi", "Hello.");
    // The record has the message that was cancelled.
    assert_eq!(messages(&model, 1).iter().filter(|(role, _)| role == "user").count(), 2);
    chat.type_in("Another one\r");
    model.wait_for_requests(3);
    chat.type_in(CTRL_C);
    model.wait_for_abandoned(2);
    // Two within two seconds leave. A busy machine may not notice the first in time.
    let TerminalOutput { text, code } = chat.type_until_end(CTRL_C);
    assert_eq!(code, Some(130), "{text}");
}

#[test]
fn ctrl_c_at_a_question_cancels_the_answer() {
    let create = Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"a"}"#)]);
    let model = ScriptedModel::start(vec![create, Reply::text(Wire::Chat, "Hello.")]);
    let workspace = workspace(&model, "approval: {ask: ['todo:create_*']}\n");
    let mut chat = start(&workspace, &[]);
    chat.type_in("One\r");
    chat.wait_for("allow todo__create_todo(");
    say(&mut chat, CTRL_C, "note: press Ctrl-C again");
    say(&mut chat, "Hi", "Hello.");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
    let todos = stdout(&workspace.wharf(&["call", "list_todos", "--json"]));
    assert!(!todos.contains("\"title\": \"a\""), "{todos}");
}

#[test]
fn prompts_and_resources_of_servers_become_messages() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Noted.")]);
    let workspace = workspace(&model, "");
    workspace.wharf(&["call", "create_todo", "title=Buy eggs"]);
    let mut chat = start(&workspace, &[]);
    say(&mut chat, "/prompts", "/todo:plan_my_day");
    say(&mut chat, "/todo:plan_my_day", "Noted.");
    let planned = messages(&model, 0).pop().expect("a message");
    assert!(planned.0 == "user" && planned.1.contains("[Prompt todo:plan_my_day]"), "{planned:?}");
    assert!(planned.1.contains("Buy eggs"), "{planned:?}");
    say(&mut chat, "What is @todo://1?", "Noted.\n> What is @todo://1?\nNoted.");
    let asked = messages(&model, 1).pop().expect("a message").1;
    assert!(asked.contains("Resource todo://1 of the server todo:"), "{asked}");
    assert!(asked.contains("Buy eggs"), "{asked}");
    say(&mut chat, "What is @todo://99?", "error: `todo://99` cannot be read");
    say(&mut chat, "/todo:nope", "error: there is no prompt 'todo:nope'");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().code, Some(0));
    assert_eq!(model.requests().len(), 2);
}

/// Sends a line to a chat without a terminal.
fn pipe(workspace: &CliWorkspace, flags: &[&str], line: &str) -> std::process::Output {
    let mut command = workspace.command(env!("CARGO_BIN_EXE_wharf").as_ref());
    command.arg("chat").args(flags);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wharf runs");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(line.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_chat_continues_a_kept_conversation() {
    let model =
        ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello Ann."), Reply::text(Wire::Chat, "Ann.")]);
    let workspace = workspace(&model, "");
    let nothing = pipe(&workspace, &["--continue"], "Who am I?\n");
    assert!(stderr(&nothing).contains("there is no conversation to continue"), "{}", stderr(&nothing));
    assert_eq!(pipe(&workspace, &[], "I am Ann.\n").status.code(), Some(0));
    let continued = pipe(&workspace, &["--continue"], "Who am I?\n");
    assert_eq!(stdout(&continued), "Ann.\n", "{}", stderr(&continued));
    assert!(stderr(&continued).ends_with(": I am Ann.\n"), "{}", stderr(&continued));
    let roles: Vec<String> = messages(&model, 1).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let id = stderr(&continued).split([' ', ':']).nth(1).expect("an id").to_owned();
    assert_eq!(pipe(&workspace, &["--conversation", &id], "And now?\n").status.code(), Some(0));
    assert_eq!(messages(&model, 2).len(), 6, "all of it is sent");
    assert_eq!(pipe(&workspace, &["--no-save"], "Hi\n").status.code(), Some(0));
    let listed = stdout(&workspace.wharf(&["conversations", "list"]));
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

/// A handle of one chat means the same result in the next one of the conversation.
#[test]
fn a_continued_chat_reads_the_results_of_the_one_before() {
    let call = |name: &str, arguments: &str| Reply::calls(Wire::Chat, &[("c1", name, arguments)]);
    let long = |words: &str| format!(r#"{{"title":"a","description":"{}"}}"#, words.repeat(100));
    let first = long("the first result ");
    let second = long("another result ");
    let model = ScriptedModel::start(vec![
        call("todo__create_todo", &first),
        Reply::text(Wire::Chat, "One."),
        call("todo__create_todo", &second),
        call("wharf__grep_result", r#"{"id":"r-1","pattern":"the first"}"#),
        Reply::text(Wire::Chat, "Two."),
    ]);
    let workspace = workspace(&model, "results: {inline_limit: 512}\n");
    assert_eq!(stdout(&pipe(&workspace, &[], "Go\n")), "One.\n");
    let continued = pipe(&workspace, &["--continue"], "Go on\n");
    assert_eq!(stdout(&continued), "Two.\n", "{}", stderr(&continued));
    let (_, found) = messages(&model, 4).pop().expect("a result");
    assert!(found.contains("the first result"), "{found}");
}

#[test]
fn without_a_terminal_each_line_is_a_message() {
    let script = vec![Reply::text(Wire::Chat, "**One**"), Reply::text(Wire::Chat, "Two")];
    let model = ScriptedModel::start(script);
    let workspace = workspace(&model, "");
    let mut command = workspace.command(env!("CARGO_BIN_EXE_wharf").as_ref());
    command.arg("chat").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wharf runs");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(b"First\n\n/help @todo://1\n").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "**One**\nTwo\n"));
    assert_eq!(stderr(&output), "");
    let second = messages(&model, 1);
    let users: Vec<&str> =
        second.iter().filter(|(role, _)| role == "user").map(|(_, text)| text.as_str()).collect();
    assert_eq!(users, ["First", "/help @todo://1"], "nothing is a command, and nothing is read: {second:?}");
}

#[test]
fn a_signal_ends_the_chat_and_restores_the_terminal() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello.")]);
    let workspace = workspace(&model, "");
    let home = workspace.path("home").to_string_lossy().into_owned();
    let variables = [("HOME".to_owned(), home), ("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let program = env!("CARGO_BIN_EXE_wharf");
    let script = format!("sh -c 'echo pid=$$.; exec {program} chat'; echo left=$?; stty -a");
    let words = ["sh", "-c", script.as_str()];
    let mut chat = TerminalProgram::start(workspace.folder.path(), &variables, &words);
    chat.wait_for("Ctrl-D leaves.\n>");
    let screen = chat.screen();
    let pid =
        screen.split("pid=").nth(1).and_then(|it| it.split('.').next()).expect("a process id").to_owned();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let TerminalOutput { text, .. } = chat.end();
    assert!(text.contains("left=143"), "{text}");
    assert!(text.contains("icanon"), "{text}");
    assert!(!["-icanon", "-isig", "-echo "].iter().any(|it| text.contains(it)), "{text}");
}
