//! Provides a short API for library users: start an agent file by its path, call a tool by its name.

mod host_environment;
mod wharf_program;

use crate::{
    Fault, Redactor, Runtime, RuntimeOptions,
    call::{Call, CallRecord, Outcome, text_of},
    upstream::{Builtins, UpstreamContext},
    views,
};
use serde_json::Value;
use std::{
    error::Error,
    fmt,
    future::{Future, IntoFuture},
    io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
};
use wharf_config::{Diagnostics, FileError, Grants, MAX_FILE_BYTES, load, read_regular};
use wharf_mcp::{Failure, Raw};
pub use wharf_program::WharfProgram;

/// An agent file to be started. Await it, or set options first.
#[derive(Debug)]
#[must_use = "nothing is started before this is awaited"]
pub struct FromFile {
    file: PathBuf,
    grants: Grants,
    builtins: Option<Arc<dyn Builtins>>,
    options: RuntimeOptions,
}

/// Reason why an agent file could not be started.
#[derive(Debug)]
pub enum LoadError {
    /// All errors in the file, or the reason why it cannot be read.
    File(Box<Diagnostics>),
    /// The current directory cannot be used.
    Folder(io::Error),
    /// The HTTP client could not be created.
    Client(Failure),
}

/// Reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The tool returned an error; this is its text.
    Refused(String),
    /// No result: the tool is unknown, the arguments are invalid, the server is down or too slow.
    Failed(Arc<Fault>),
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    record: Arc<CallRecord>,
    result: Raw,
}

impl Runtime {
    /// Starts the servers of an agent file with the environment, current directory and home directory of this
    /// process. Await the returned value. The servers connect in the background, in parallel.
    ///
    /// By default there are no grants and no stored credentials, and `builtin:todo` runs `wharf todo` if `wharf` is
    /// on PATH. The options of [`FromFile`] change that. For anything else use [`config::load`](wharf_config::load)
    /// and [`Runtime::start`].
    pub fn from_file(path: impl Into<PathBuf>) -> FromFile {
        let (grants, options) = (Grants::default(), RuntimeOptions::default());
        FromFile { file: path.into(), grants, builtins: None, options }
    }

    /// Calls a tool by its shown name, by `source:tool`, or by a bare name that is unique. Waits for a server that is
    /// still starting.
    pub async fn call(&self, tool: &str, arguments: impl Into<Raw>) -> Result<ToolOutput, CallError> {
        let record = self.handle().call(Call::new(tool).arguments(arguments)).await;
        match (&record.outcome, record.result()) {
            (Outcome::Failed(fault), _) => Err(CallError::Failed(fault.clone())),
            (Outcome::Refused(result), _) => Err(CallError::Refused(text_of(result))),
            (Outcome::Answered(result), truncated) => {
                let result = truncated.unwrap_or_else(|| result.clone());
                Ok(ToolOutput { record, result })
            }
        }
    }
}

impl FromFile {
    /// Sets the grants, like `[grants]` in a wharf.toml.
    pub fn grants(mut self, grants: Grants) -> FromFile {
        self.grants = grants;
        self
    }

    /// Sets how the built-in servers are opened. The default starts the program `wharf`.
    pub fn builtins(mut self, builtins: impl Builtins + 'static) -> FromFile {
        self.builtins = Some(Arc::new(builtins));
        self
    }

    /// Sets the options of the runtime.
    pub fn options(mut self, options: RuntimeOptions) -> FromFile {
        self.options = options;
        self
    }

    fn start(self) -> Result<Runtime, LoadError> {
        let FromFile { file, grants, builtins, options } = self;
        let env = host_environment::env_for(&file, grants).map_err(LoadError::Folder)?;
        let text = read_regular(&env.folder.join(file.file_name().unwrap_or_default()), MAX_FILE_BYTES);
        let text = text.map_err(|trouble| unreadable(&env.file, &trouble))?;
        let (plan, diagnostics) = load(text, &env);
        let plan = plan.ok_or_else(|| LoadError::File(Box::new(diagnostics)))?;
        let scratch = host_environment::scratch();
        let usual = || {
            let program = host_environment::wharf_program();
            let folder = scratch.join("todo");
            Arc::new(WharfProgram::new(program, folder, &host_environment::variables())) as Arc<dyn Builtins>
        };
        let builtins = Some(builtins.unwrap_or_else(usual));
        let plain = UpstreamContext::plain(&scratch).map_err(LoadError::Client)?;
        let context = UpstreamContext { builtins, redactor: Arc::new(Redactor::of(&plan)), ..plain };
        Ok(Runtime::start(&plan, &context, options))
    }
}

impl IntoFuture for FromFile {
    type Output = Result<Runtime, LoadError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.start() })
    }
}

fn unreadable(file: &str, trouble: &FileError) -> LoadError {
    let message = format!("ConfigError: '{file}' {trouble}");
    LoadError::File(Box::new(Diagnostics::unreadable(file, message, None)))
}

impl ToolOutput {
    /// Returns the text of all text blocks, joined.
    pub fn text(&self) -> String {
        text_of(&self.result)
    }

    /// Returns the result for a program: its structured content, otherwise its text as JSON or as a string.
    pub fn json(&self) -> Value {
        views::result_value(&self.result).decode_or_default()
    }

    /// Returns the result as JSON, truncated to the source's size limit.
    pub fn raw(&self) -> &Raw {
        &self.result
    }

    /// Returns the record of the call.
    pub fn record(&self) -> &CallRecord {
        &self.record
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::File(diagnostics) => f.write_str(diagnostics.render(false).trim_end()),
            LoadError::Folder(_) => f.write_str("the current folder cannot be used"),
            LoadError::Client(_) => f.write_str("the HTTP client could not be set up"),
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LoadError::File(_) => None,
            LoadError::Folder(error) => Some(error),
            LoadError::Client(failure) => Some(failure),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Refused(words) => write!(f, "the tool returned an error: {}", words.trim_end()),
            CallError::Failed(fault) => fault.fmt(f),
        }
    }
}

impl Error for CallError {}
