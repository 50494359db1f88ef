//! One chat: reads what the user types, runs the agent, and keeps the conversation.

mod commands;

use super::{
    command::ChatInput,
    history::{ChatConversation, RunNotes},
    kept_chat::KeptChat,
    line_editor::{LineEditor, TypedLine},
    line_input::{clean, next_message},
    terminal_mode::TerminalMode,
};
use crate::{
    app::{App, Connections},
    cli::{AgentArgs, ChatArgs},
    command_error::CommandError,
    commands::{
        attachment::{attach_resources, get_prompt},
        run::{self, approval::TerminalApprover, kept::run_agent, renderer::Renderer},
    },
    content::printable,
    conversations::KeptRun,
    environment::Environment,
    exit::Exit,
    message_context::UserMessage,
    signals::Signals,
    terminal::Terminal,
};
use std::{future, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use wharf_agent::{
    Agent, Approver, InputAnswerer, RunRequest, RunRules, RunSignals,
    client::ModelClient,
    message::{Content, Message},
};

/// Time within which a second Ctrl-C leaves the chat.
const LEAVE_TIME: Duration = Duration::from_secs(2);
/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
const PROMPT: &str = "> ";

/// A chat under way.
pub(super) struct ChatSession<'a> {
    app: &'a App,
    args: &'a AgentArgs,
    environment: &'a Environment,
    connections: &'a Connections,
    agent: Agent,
    rules: RunRules,
    approver: Option<Arc<TerminalApprover>>,
    inputs: Option<Arc<dyn InputAnswerer>>,
    /// Is notified when the user presses Ctrl-C at a question.
    cancel: Arc<Notify>,
    conversation: ChatConversation,
    /// The database, if conversations are kept.
    kept: Option<KeptChat>,
    interrupted_at: Option<Instant>,
}

impl<'a> ChatSession<'a> {
    pub(super) fn new(
        app: &'a App,
        args: &'a AgentArgs,
        environment: &'a Environment,
        connections: &'a Connections,
        client: ModelClient,
        cancel: Arc<Notify>,
    ) -> ChatSession<'a> {
        let agent = Agent {
            model: Arc::new(client),
            tools: connections.handle.clone(),
            redactor: app.redactor().clone(),
            call_log: None,
        };
        ChatSession {
            app,
            args,
            environment,
            connections,
            agent,
            rules: run::rules(app, args, connections),
            approver: None,
            inputs: None,
            cancel,
            conversation: ChatConversation::new(),
            kept: None,
            interrupted_at: None,
        }
    }

    /// Keeps conversations in the database, and finds the one to continue. Without a database the chat is not kept.
    pub(super) async fn keep(&mut self, args: &ChatArgs) -> Result<(), CommandError> {
        if args.no_save {
            return Ok(());
        }
        let continues = args.continues || args.conversation.is_some();
        let kept = match KeptChat::open(self.app).await {
            Ok(kept) => kept,
            Err(error) if continues => return Err(error),
            Err(error) => {
                let why = error.to_text().lines().next().unwrap_or_default().to_owned();
                self.app
                    .output
                    .print_info(&format!("warning: the conversation is not kept: {}", printable(&why)));
                return Ok(());
            }
        };
        if continues {
            let (id, title) = kept.find(args.conversation.as_deref()).await?;
            self.app.output.print_info(&format!("continuing {id}: {}", printable(&title)));
            let allowed_tools = kept.allowed_tools(&id).await?;
            self.conversation =
                ChatConversation { id, is_new: false, allowed_tools, ..ChatConversation::new() };
        }
        self.kept = Some(kept);
        Ok(())
    }

    /// Stores large results: with the conversations, or until the chat ends.
    pub(super) fn keep_results(&self) {
        let handle = &self.connections.handle;
        match &self.kept {
            Some(kept) => kept.keep_results(self.app, handle),
            None => self.app.keep_temporary_results(handle),
        }
    }

    /// Closes the database.
    pub(super) async fn close(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.close().await;
        }
    }

    /// Talks with the user at the terminal until they leave.
    pub(super) async fn talk(&mut self, editor: &LineEditor, signals: &mut Signals) -> Exit {
        let prompt = editor.prompt_line(self.cancel.clone());
        self.approver = Some(Arc::new(TerminalApprover::new(prompt.clone())));
        self.inputs = Some(Arc::new(Terminal::with_prompt(prompt)));
        self.greet();
        let mode = TerminalMode::save();
        loop {
            let typed = tokio::select! {
                typed = editor.read(PROMPT) => typed,
                exit = signals.next() => {
                    mode.restore();
                    return exit;
                }
            };
            let left = match typed {
                TypedLine::End => Some(Exit::Success),
                TypedLine::Interrupted => self.note_interrupt(),
                TypedLine::Line(line) => {
                    editor.remember(line.trim());
                    self.handle(&line, signals).await
                }
            };
            if let Some(exit) = left {
                return exit;
            }
        }
    }

    /// Answers every line of standard input. Returns the first failure.
    pub(super) async fn answer_lines(&mut self, signals: &mut Signals) -> Exit {
        let mut ended = Exit::Success;
        loop {
            let message = tokio::select! {
                message = next_message() => message,
                exit = signals.next() => return exit,
            };
            let message = match message {
                Ok(Some(message)) => message,
                Ok(None) => return ended,
                Err(error) => return self.app.output.fail(&CommandError::usage(&error.to_string())),
            };
            let exit = self.run_message(UserMessage::of_text(message), signals).await;
            if matches!(exit, Exit::Interrupted | Exit::Terminated) {
                return exit;
            }
            ended = if ended == Exit::Success { exit } else { ended };
        }
    }

    fn greet(&self) {
        let servers = self.connections.sources.iter().filter(|it| it.is_connected()).count();
        let tools = self.offered_tools().count();
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        self.app.output.print_info(&format!(
            "{}, {tools} tool{} of {servers} server{}. /help lists the commands, Ctrl-D leaves.",
            self.agent.model.options().native_key(),
            plural(tools),
            plural(servers),
        ));
    }

    /// Handles a line of the user. Returns the exit code if they leave.
    async fn handle(&mut self, line: &str, signals: &mut Signals) -> Option<Exit> {
        match ChatInput::parse(&clean(line)) {
            ChatInput::Empty => None,
            ChatInput::Unknown(name) => {
                self.complain(&format!("there is no command `/{name}`\nhelp: /help lists the commands"));
                None
            }
            ChatInput::Command("exit", _) => Some(Exit::Success),
            ChatInput::Command(name, rest) => {
                self.run_command(name, &rest);
                None
            }
            ChatInput::Message(message) => {
                if message.len() > MAX_MESSAGE_BYTES {
                    self.complain("the message is longer than 64 KiB");
                    return None;
                }
                let message = attach_resources(message, self.connections).await;
                self.run_input(message, signals).await
            }
            ChatInput::Prompt(name, words) => {
                let message = get_prompt(&name, &words, self.connections).await;
                self.run_input(message, signals).await
            }
        }
    }

    /// Sends a message. Returns the exit code if the user leaves.
    async fn run_input(
        &mut self,
        input: Result<UserMessage, CommandError>,
        signals: &mut Signals,
    ) -> Option<Exit> {
        let message = match input {
            Ok(message) => message,
            Err(error) => {
                let line = error.to_text().lines().next().unwrap_or_default();
                self.complain(line.trim_start_matches("error: "));
                return None;
            }
        };
        match self.run_message(message, signals).await {
            Exit::Interrupted => self.note_interrupt(),
            Exit::Terminated => Some(Exit::Terminated),
            _ => None,
        }
    }

    /// Runs the agent and prints what happens. Returns the exit code of the run.
    async fn run_message(&mut self, message: UserMessage, signals: &mut Signals) -> Exit {
        let output = self.app.output;
        let mut request = self.request(message);
        let kept = match self.begin_kept(&mut request).await {
            Ok(kept) => kept,
            Err(error) => return output.fail(&error),
        };
        let mut renderer = Renderer::for_conversation(output);
        let mut notes = RunNotes::default();
        self.forget_cancel().await;
        let (stopped, mut stop) = oneshot::channel();
        let cancel = async {
            let exit = tokio::select! {
                exit = signals.next() => exit,
                () = self.cancel.notified() => Exit::Interrupted,
                () = keep_lease(kept.as_deref()) => Exit::TemporaryFailure,
            };
            // The receiver lives as long as the run.
            let _ = stopped.send(exit);
        };
        let mut on_event = |event| {
            notes.note(&event);
            renderer.show(&event);
        };
        let signals = RunSignals { cancel, drain: future::pending() };
        let ran = self.agent.run(request, signals, &mut on_event).await;
        self.conversation.last_run = notes;
        let result = match ran {
            Ok(result) => result,
            Err(why) => {
                let complaint = format!("'response_format' is not a JSON Schema: {why} at /");
                return output.fail(&CommandError::new("ConfigError", &complaint, Exit::Usage));
            }
        };
        renderer.finish(&result);
        self.conversation.add_usage(result.report.usage);
        // A message without an answer can be sent again; it is not part of a conversation that is not kept.
        if kept.is_none() && result.messages.iter().any(|it| matches!(it, Message::Answer(_))) {
            self.conversation.messages.extend(result.messages);
        }
        stop.try_recv().unwrap_or_else(|_| (&result.report).into())
    }

    /// Begins a run in the database, if conversations are kept.
    async fn begin_kept(&mut self, request: &mut RunRequest) -> Result<Option<Arc<KeptRun>>, CommandError> {
        let Some(kept) = &self.kept else { return Ok(None) };
        let text: Vec<String> = request.message.iter().map(Content::as_text).collect();
        let ChatConversation { id, is_new, .. } = &self.conversation;
        let agent = run_agent(self.app, self.agent.model.options());
        let run = kept.begin((id, *is_new), (&text.join(" "), &agent), request).await?;
        self.conversation.is_new = false;
        Ok(Some(run))
    }

    fn request(&self, message: UserMessage) -> RunRequest {
        let settings = run::settings(self.app, self.args);
        let price = run::model::price(self.app, &self.agent.model, &settings.limits);
        RunRequest {
            conversation_id: self.conversation.id.clone(),
            history: self.conversation.messages.clone().into(),
            instructions: run::instructions(self.app),
            rules: self.rules.clone(),
            approver: self.approver.clone().map(|it| it as Arc<dyn Approver>),
            inputs: self.inputs.clone(),
            price: price.ok().flatten(),
            earlier: message.earlier,
            attachments: message.attachments,
            ..RunRequest::new(message.content, settings, self.connections.handle.catalog())
        }
    }

    /// Forgets a Ctrl-C at a question that is over.
    async fn forget_cancel(&self) {
        tokio::select! {
            biased;
            () = self.cancel.notified() => {}
            () = future::ready(()) => {}
        }
    }

    /// Notes a Ctrl-C. Returns the exit code if it is the second one within two seconds.
    fn note_interrupt(&mut self) -> Option<Exit> {
        let now = Instant::now();
        let before = self.interrupted_at.replace(now);
        if before.is_some_and(|it| now - it < LEAVE_TIME) {
            return Some(Exit::Interrupted);
        }
        self.app.output.print_info("note: press Ctrl-C again, or Ctrl-D, to leave");
        None
    }

    fn complain(&self, why: &str) {
        self.app.output.print_error(&format!("error: {}\n", printable(why)));
    }
}

/// Renews the lease of a kept run until it is lost.
async fn keep_lease(kept: Option<&KeptRun>) {
    match kept {
        Some(kept) => kept.keep_lease().await,
        None => future::pending().await,
    }
}
