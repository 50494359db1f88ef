//! Applies changes of the agent file, and of the lock beside it, while the gateway runs. An invalid file changes nothing and is logged.

use crate::{
    agent_input, cli::GlobalOptions, environment::Environment, load_agent::load_agent_or_todo,
    registry::SourceRegistry,
};
use std::{fs, future, path::Path, sync::Arc, time::Duration};
use tokio::{task, time};
use wharf_config::LOCK_FILE;
use wharf_runtime::PlanChanges;

/// Interval at which the file is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Modification times and sizes of the agent file and its lock, which detect a change without reading them.
#[derive(PartialEq, Eq)]
struct FileStamp([Option<(std::time::SystemTime, u64)>; 2]);

/// Applies every change of the agent file. Never returns.
pub(crate) async fn follow(common: GlobalOptions, environment: Environment, registry: &SourceRegistry) {
    if agent_input::is_standard_input(&common.file) {
        return future::pending().await;
    }
    let mut seen = FileStamp::at(&common.file);
    let inputs = Arc::new((common, environment));
    loop {
        time::sleep(POLL_INTERVAL).await;
        let file = &inputs.0.file;
        let now = FileStamp::at(file);
        if now != seen {
            seen = now;
            // The thread of this task serves calls, which must not wait for a large file.
            let inputs = inputs.clone();
            let loading = task::spawn_blocking(move || load_agent_or_todo(&inputs.0, &inputs.1));
            match loading.await {
                Ok((Some((plan, settings)), _)) => {
                    log_applied(file, &registry.apply_agent_file(plan, settings.grants).await);
                }
                Ok((None, diagnostics)) => tracing::error!(
                    target: "wharf::reload",
                    "agent.yaml changed but is invalid; keeping the running configuration:\n{}",
                    diagnostics.render(false)
                ),
                Err(error) => {
                    tracing::error!(target: "wharf::reload", "agent.yaml changed but could not be read: {error}");
                }
            }
        }
    }
}

impl FileStamp {
    fn at(path: &Path) -> FileStamp {
        let stamp = |path: &Path| {
            let known = fs::metadata(path).ok();
            known.and_then(|it| Some((it.modified().ok()?, it.len())))
        };
        FileStamp([stamp(path), stamp(&path.with_file_name(LOCK_FILE))])
    }
}

fn log_applied(file: &Path, applied: &PlanChanges) {
    let PlanChanges { started, stopped, kept } = applied;
    let kept = kept.len();
    let names = |all: &[String]| all.join(", ");
    let (file, started, stopped) = (file.display(), names(started), names(stopped));
    tracing::info!(target: "wharf::reload", started, stopped, kept, "{file} changed; the change is applied");
}
