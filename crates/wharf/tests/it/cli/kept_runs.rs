//! Tests that a kept conversation goes on after its command was killed, and not while the command runs.

use super::{CliWorkspace, TODO, stderr, stdout};
use scripted_model::{Action, Reply, ScriptedModel, Wire, render, text};
use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
};

fn workspace(model: &ScriptedModel) -> CliWorkspace {
    let url = model.url();
    CliWorkspace::with(&format!(
        "model: {{provider: openai, name: m, endpoint: '{url}', api_key: k}}\n{TODO}"
    ))
}

/// An answer that never ends.
fn hang() -> Reply {
    Reply::stream(render(Wire::Chat, &[text("Once upon")])).then(Action::Hang)
}

/// Starts wharf, as the last words of a command line, with a line of input.
fn start(workspace: &CliWorkspace, first: &[&str], words: &[&str]) -> Child {
    let all = [first, &[env!("CARGO_BIN_EXE_wharf")], words].concat();
    let mut command: Command = workspace.command(all[0].as_ref());
    command.args(&all[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wharf runs");
    let mut stdin = child.stdin.take().expect("its stdin");
    // `wharf run` has its message already.
    let _ = stdin.write_all(b"And now?\n");
    child
}

fn continued(workspace: &CliWorkspace) -> Output {
    start(workspace, &[], &["chat", "--continue"]).wait_with_output().expect("it ends")
}

#[test]
fn conversation_of_a_killed_command_continues_at_once() {
    for words in [&["chat"][..], &["run", "--save", "Hi"]] {
        let model = ScriptedModel::start(vec![hang(), Reply::text(Wire::Chat, "Hello.")]);
        let workspace = workspace(&model);
        let mut killed = start(&workspace, &[], words);
        model.wait_for_requests(1);
        let busy = continued(&workspace);
        assert_eq!(busy.status.code(), Some(75), "{words:?}: {}", stderr(&busy));
        assert!(stderr(&busy).contains("of the conversation is under way"), "{}", stderr(&busy));
        killed.kill().expect("it runs");
        killed.wait().expect("it ends");
        let done = continued(&workspace);
        assert_eq!(stdout(&done), "Hello.\n", "{words:?}: {}", stderr(&done));
        let named = stderr(&done);
        let id = named.split([' ', ':']).nth(1).expect("an id");
        let run = workspace.wharf(&["run", "--conversation", id, "And then?"]);
        assert_eq!(stdout(&run), "Hello.\n", "{words:?}: {}", stderr(&run));
    }
}

#[test]
fn two_chats_in_one_folder_do_not_end_each_other() {
    let script = |number: usize| if number == 1 { Reply::text(Wire::Chat, "Hello.") } else { hang() };
    let model = ScriptedModel::with(move |number, _| script(number));
    let workspace = workspace(&model);
    let mut first = start(&workspace, &[], &["chat"]);
    model.wait_for_requests(1);
    let second = start(&workspace, &[], &["chat"]).wait_with_output().expect("it ends");
    assert_eq!(stdout(&second), "Hello.\n", "{}", stderr(&second));
    let listed = stdout(&workspace.wharf(&["conversations", "list"]));
    assert_eq!(listed.matches("  running  ").count(), 1, "the first one still runs: {listed}");
    first.kill().expect("it runs");
    first.wait().expect("it ends");
}

/// Closing a terminal window sends SIGHUP. A program that was started with `nohup` stays.
#[cfg(target_os = "linux")]
#[test]
fn closed_terminal_ends_the_run_unless_it_is_ignored() {
    for (first, is_ended) in
        [(["env", "--default-signal=HUP"], true), (["env", "--ignore-signal=HUP"], false)]
    {
        let model = ScriptedModel::start(vec![hang()]);
        let workspace = workspace(&model);
        let chat = start(&workspace, &first, &["chat"]);
        model.wait_for_requests(1);
        let signal = |name: &str| Command::new("kill").args([name, &chat.id().to_string()]).status();
        assert!(signal("-HUP").expect("kill runs").success());
        if is_ended {
            model.wait_for_abandoned(1);
        } else {
            assert!(signal("-INT").expect("kill runs").success());
        }
        let ended = chat.wait_with_output().expect("it ends");
        let code = if is_ended { 143 } else { 130 };
        assert_eq!(ended.status.code(), Some(code), "{first:?}: {}", stderr(&ended));
        let listed = stdout(&workspace.wharf(&["conversations", "list"]));
        assert!(listed.contains("  idle  "), "{first:?}: {listed}");
    }
}
