//! Runs the Todo server inside this process: `server: builtin:todo`.
//!
//! A session with it is an ordinary session over an in-memory pipe. The first session opens the database; all
//! sessions share it.

use super::TodoServer;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{duplex, split},
    sync::OnceCell,
    task::JoinSet,
};
use wharf_config::Builtin;
use wharf_mcp::{
    Failure, Link, Opener, Opening, link_over,
    serve::{Service, over_streams},
};
use wharf_runtime::upstream::Builtins;
use wharf_store::{Location, Store};

/// Capacity of the pipe in each direction, in bytes.
const PIPE_BYTES: usize = 64 * 1024;

/// The built-in servers.
pub(crate) struct BuiltinServers {
    todo: Arc<BuiltinTodo>,
}

struct BuiltinTodo {
    /// The database. `None` if there is no folder for it.
    location: Option<Location>,
    service: OnceCell<Service<TodoServer>>,
    /// The server side of every session, and the change notifications. Dropping this aborts them.
    tasks: Mutex<JoinSet<()>>,
}

struct TodoOpener(Arc<BuiltinTodo>);

impl BuiltinServers {
    pub(crate) fn new(location: Option<Location>) -> BuiltinServers {
        let (service, tasks) = (OnceCell::new(), Mutex::default());
        BuiltinServers { todo: Arc::new(BuiltinTodo { location, service, tasks }) }
    }
}

impl Builtins for BuiltinServers {
    fn opener(&self, builtin: Builtin) -> Box<dyn Opener> {
        match builtin {
            Builtin::Todo => Box::new(TodoOpener(self.todo.clone())),
        }
    }
}

impl Opener for TodoOpener {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { self.0.link().await })
    }
}

impl BuiltinTodo {
    async fn link(&self) -> Result<Link, Failure> {
        let service = self.service.get_or_try_init(|| self.start()).await?.clone();
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (source, sink) = split(theirs);
        self.spawn(async move {
            // The session ends when our side of the pipe is dropped. The result does not matter.
            let _ = over_streams(service, source, sink).await;
        });
        let (source, sink) = split(ours);
        Ok(link_over(source, sink))
    }

    async fn start(&self) -> Result<Service<TodoServer>, Failure> {
        let no_folder = || Failure::connect("there is no folder for the todos: set `WHARF_HOME`");
        let location = self.location.as_ref().ok_or_else(no_folder)?;
        let store = Store::open(location).await.map_err(|error| Failure::connect(error.to_string()))?;
        let (service, announcing) = super::service(store).await;
        self.spawn(announcing);
        Ok(service)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

impl fmt::Debug for BuiltinServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltinServers").field("location", &self.todo.location).finish_non_exhaustive()
    }
}
