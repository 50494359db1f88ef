//! Applies changes of the agent file while the gateway runs. An invalid file changes nothing and is logged.

use crate::{
    agent_input, cli::Common, commands::load_agent_or_todo, registry::Registry, surroundings::Surroundings,
};
use std::{fs, future, path::Path, time::Duration};
use tokio::time;
use wharf_config::Diagnostics;
use wharf_runtime::Applied;

/// Interval at which the file is checked.
const LOOK: Duration = Duration::from_secs(1);

/// Modification time and size of the file, which detect a change without reading it.
#[derive(PartialEq, Eq)]
struct Look(Option<(std::time::SystemTime, u64)>);

/// Applies every change of the agent file. Never returns.
pub(crate) async fn follow(common: Common, around: Surroundings, registry: &Registry) {
    if agent_input::is_standard_input(&common.file) {
        return future::pending().await;
    }
    let mut seen = Look::at(&common.file);
    loop {
        time::sleep(LOOK).await;
        let now = Look::at(&common.file);
        if now != seen {
            seen = now;
            let (loaded, diagnostics) = load_agent_or_todo(&common, &around);
            match loaded {
                Some((plan, settings)) => {
                    say(&common.file, &registry.file_changed(plan, settings.grants).await);
                }
                None => complain(&diagnostics),
            }
        }
    }
}

impl Look {
    fn at(path: &Path) -> Look {
        let known = fs::metadata(path).ok();
        Look(known.and_then(|it| Some((it.modified().ok()?, it.len()))))
    }
}

fn say(file: &Path, applied: &Applied) {
    let Applied { started, stopped, kept } = applied;
    let kept = kept.len();
    let names = |all: &[String]| all.join(", ");
    let (file, started, stopped) = (file.display(), names(started), names(stopped));
    tracing::info!(target: "wharf::reload", started, stopped, kept, "{file} has changed and is applied");
}

fn complain(diagnostics: &Diagnostics) {
    let text = diagnostics.render(false);
    tracing::error!(target: "wharf::reload", "the agent file has changed, but not for the better; nothing is changed:\n{text}");
}
