//! Reads lines at a terminal, with editing, history and completion.
//!
//! The editor blocks, so it reads on a thread of the blocking pool. Questions during a run use the same editor: while
//! it reads, Ctrl-C is a key and no signal.

use super::completion::Completion;
use crate::{
    state_folder::{make_private_folder, open_private},
    terminal::PromptLine,
};
use rustyline::{Config, Editor, error::ReadlineError, history::FileHistory};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{sync::Notify, task};

/// Maximum number of remembered lines.
const MAX_HISTORY_LINES: usize = 1000;

/// Line that the user typed, or the key that ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of input.
    End,
}

type ChatEditor = Editor<Completion, FileHistory>;

/// Line editor of one terminal.
pub(super) struct LineEditor {
    editor: Arc<Mutex<ChatEditor>>,
    history: Option<PathBuf>,
}

impl LineEditor {
    /// Opens the editor and reads the history.
    pub(super) fn open(history: Option<PathBuf>) -> Result<LineEditor, ReadlineError> {
        let config = Config::builder().auto_add_history(false).max_history_size(MAX_HISTORY_LINES)?;
        let mut editor = ChatEditor::with_config(config.build())?;
        if let Some(file) = &history {
            // A missing file is an empty history.
            let _ = editor.load_history(file);
        }
        Ok(LineEditor { editor: Arc::new(Mutex::new(editor)), history })
    }

    /// Sets the words that can be completed.
    pub(super) fn set_completion(&self, completion: Completion) {
        self.editor.lock().unwrap_or_else(PoisonError::into_inner).set_helper(Some(completion));
    }

    /// Reads one line.
    pub(super) async fn read(&self, prompt: &'static str) -> TypedLine {
        let editor = self.editor.clone();
        let reading = task::spawn_blocking(move || read_line(&editor, prompt));
        reading.await.unwrap_or(TypedLine::End)
    }

    /// Adds a line to the history.
    pub(super) fn remember(&self, line: &str) {
        let mut editor = self.editor.lock().unwrap_or_else(PoisonError::into_inner);
        // The chat goes on without a history.
        let is_new = editor.add_history_entry(line).unwrap_or(false);
        if let Some(file) = self.history.as_ref().filter(|_| is_new) {
            let _ = create_private_file(file).map(|()| editor.append_history(file));
        }
    }

    /// Returns a prompt for questions during a run. Ctrl-C there notifies `cancel`.
    pub(super) fn prompt_line(&self, cancel: Arc<Notify>) -> PromptLine {
        let editor = self.editor.clone();
        Arc::new(move |prompt| match read_line(&editor, prompt) {
            TypedLine::Line(line) => Ok(Some(line.trim().to_owned())),
            TypedLine::End => Ok(None),
            TypedLine::Interrupted => {
                cancel.notify_one();
                Err(io::ErrorKind::Interrupted.into())
            }
        })
    }
}

/// Creates the file of the history, readable by its owner only.
fn create_private_file(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), make_private_folder)?;
    open_private(file).map(drop)
}

fn read_line(editor: &Mutex<ChatEditor>, prompt: &str) -> TypedLine {
    let mut editor = editor.lock().unwrap_or_else(PoisonError::into_inner);
    match editor.readline(prompt) {
        Ok(line) => TypedLine::Line(line),
        Err(ReadlineError::Interrupted) => TypedLine::Interrupted,
        Err(_) => TypedLine::End,
    }
}
