//! `wharf chat`: a conversation with the agent, at a terminal or line by line from standard input.

mod command;
mod completion;
mod history;
mod kept_chat;
mod line_editor;
mod line_input;
mod session;
mod terminal_mode;

use super::{
    recording::Recording,
    run::{consent::AgentConsent, model, required_fault, settings, warn_about_faults},
};
use crate::{
    app::{App, Connections},
    cli::ChatArgs,
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    signals::Signals,
    terminal::{Terminal, is_available},
};
use completion::Completion;
use line_editor::LineEditor;
use session::ChatSession;
use std::{
    io::{self, IsTerminal},
    sync::Arc,
};
use tokio::sync::Notify;
use wharf_mcp::session::List;
use wharf_runtime::cassette::ConversationNaming;

pub(super) async fn run(mut app: App, args: ChatArgs, environment: Environment) -> Exit {
    let output = app.output;
    if output.json {
        let complaint = "`wharf chat` has no JSON output\nhelp: `wharf run --json` prints one answer as JSON";
        return output.fail(&CommandError::usage(complaint));
    }
    let prepared =
        Recording::begin(&mut app, &args.cassette, ConversationNaming::Main).and_then(|recording| {
            let client = model::client(&app, args.agent.model.as_deref(), &environment, &recording.tape())?;
            model::price(&app, &client, &settings(&app, &args.agent).limits)?;
            Ok((recording, client))
        });
    let (recording, client) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return output.fail(&error),
    };
    let cancel = Arc::new(Notify::new());
    let editor = match open_editor(&environment) {
        Ok(editor) => editor,
        Err(error) => return output.fail(&error),
    };
    if let Some(editor) = &editor {
        app.options.consent = Arc::new(Terminal::with_prompt(editor.prompt_line(cancel.clone())));
    }
    app.options.consent = AgentConsent::wrap(app.options.consent.clone(), &app.plan.agent.sampling);
    let mut signals = Signals::listen();
    let lists = [List::Tools, List::Prompts, List::Resources];
    let connections = tokio::select! {
        connections = app.connect(|_| true, &lists) => connections,
        signal = signals.next() => {
            let exit = output.fail(&CommandError::interrupted(signal));
            app.shut_down_promptly().await;
            return exit;
        }
    };
    recording.add_servers(&connections);
    let exit = match required_fault(&connections) {
        Some(error) => output.fail(&error),
        None => {
            warn_about_faults(&connections, output);
            let mut session = ChatSession::new(&app, &args.agent, &environment, &connections, client, cancel);
            match session.keep(&args).await {
                Ok(()) => {
                    session.keep_results();
                    converse(&mut session, editor.as_ref(), &connections, &mut signals).await
                }
                Err(error) => output.fail(&error),
            }
        }
    };
    connections.close().await;
    recording.end(exit, output)
}

/// Talks at the terminal, or answers the lines of standard input.
async fn converse(
    session: &mut ChatSession<'_>,
    editor: Option<&LineEditor>,
    connections: &Connections,
    signals: &mut Signals,
) -> Exit {
    let exit = match editor {
        Some(editor) => {
            editor.set_completion(Completion::of(&connections.catalog));
            session.talk(editor, signals).await
        }
        None => session.answer_lines(signals).await,
    };
    session.close().await;
    exit
}

/// Opens the line editor if the user is at a terminal.
fn open_editor(environment: &Environment) -> Result<Option<LineEditor>, CommandError> {
    if !is_available() || !io::stdout().is_terminal() {
        return Ok(None);
    }
    let editor = LineEditor::open(environment.chat_history());
    editor.map(Some).map_err(|error| {
        CommandError::new("MCPError", &format!("the terminal cannot be used: {error}"), Exit::InternalError)
    })
}
