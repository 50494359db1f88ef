//! One line per server while it is being connected to. Only on a terminal; otherwise there is nothing to see.

use crate::output::Output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;
use wharf_runtime::{Handle, catalog::Discovery, config::Plan};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// The lines of all servers.
pub(crate) struct Progress {
    lines: MultiProgress,
}

/// The line of one server. It goes when it is done, and what it said is said again by the command.
struct Line(ProgressBar);

impl Progress {
    /// Draws to stderr, which indicatif does only if that is a terminal.
    pub(crate) fn new(output: Output) -> Progress {
        let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Progress { lines: MultiProgress::with_draw_target(target) }
    }

    /// Shows how connecting goes, until every server has been heard or has failed.
    pub(crate) async fn follow(&self, handle: &Handle, plan: &Plan) {
        let names = plan.sources.iter().map(|it| it.name.expose());
        let mut lines: Vec<(&str, Line)> = names.map(|it| (it, self.line(it))).collect();
        let mut catalogs = handle.catalogs();
        while !lines.is_empty() {
            let catalog = catalogs.borrow_and_update().clone();
            lines.retain(|(name, line)| match catalog.discovery(name) {
                None | Some(Discovery::Pending) => true,
                Some(Discovery::Done | Discovery::Asleep) => {
                    line.done(Some(catalog.tools.iter().filter(|it| it.source == *name).count()));
                    false
                }
                Some(Discovery::Failed(_)) => {
                    line.done(None);
                    false
                }
            });
            if !lines.is_empty() && catalogs.changed().await.is_err() {
                return;
            }
        }
    }

    fn line(&self, name: &str) -> Line {
        let bar = self.lines.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message("connecting");
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Line(bar)
    }
}

impl Line {
    /// Connected, with so many tools; or not connected.
    fn done(&self, connected: Option<usize>) {
        match connected {
            Some(tools) => self.0.set_message(format!("ready, {tools} tools")),
            None => self.0.set_message("failed"),
        }
        self.0.finish_and_clear();
    }
}
