//! One line per server while it is being connected to or answers a call. Only on a terminal; otherwise there is nothing
//! to see.

use crate::output::Output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time;
use wharf_runtime::{Handle, catalog::Discovery, config::Plan};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// What the line of a server says until it is connected.
const CONNECTING: &str = "connecting";

/// The lines that are on the terminal now, so that a question can take their place.
static ON_TERMINAL: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// The lines of all servers.
pub(crate) struct Progress {
    lines: MultiProgress,
}

/// One line. It goes when it is dropped: when it is done, and when the work is interrupted. What it said is said again
/// by the command.
pub(crate) struct ProgressLine(ProgressBar);

impl Progress {
    /// Draws to stderr, which indicatif does only if that is a terminal.
    pub(crate) fn new(output: Output) -> Progress {
        let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let lines = MultiProgress::with_draw_target(target);
        *ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines.clone());
        Progress { lines }
    }

    /// Shows how connecting goes, until every server has been heard or has failed.
    pub(crate) async fn follow(&self, handle: &Handle, plan: &Plan) {
        let names = plan.sources.iter().map(|it| it.name.expose());
        let mut lines: Vec<(&str, ProgressLine)> = names.map(|it| (it, self.line(it, CONNECTING))).collect();
        let mut catalogs = handle.catalogs();
        while !lines.is_empty() {
            let catalog = catalogs.borrow_and_update().clone();
            lines.retain(|(name, _)| matches!(catalog.discovery(name), None | Some(Discovery::Pending)));
            if lines.is_empty() {
                return;
            }
            let states = handle.sources();
            for (name, line) in &lines {
                let state = states.iter().find(|it| it.source.name.expose() == *name);
                line.connecting(state.and_then(|it| it.standing.downloading.as_deref()));
            }
            tokio::select! {
                changed = catalogs.changed() => if changed.is_err() { return },
                () = time::sleep(TICK) => {}
            }
        }
    }

    /// Shows what a server is busy with, for as long as the line is kept.
    pub(crate) fn line(&self, name: &str, doing: &str) -> ProgressLine {
        let bar = self.lines.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message(doing.to_owned());
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        ProgressLine(bar)
    }
}

impl ProgressLine {
    /// Not connected yet; perhaps because its package is being downloaded first.
    fn connecting(&self, downloading: Option<&str>) {
        match downloading {
            Some(what) => self.0.set_message(format!("downloading {what}")),
            None => self.0.set_message(CONNECTING),
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Takes every line off the terminal, for good: somebody is asked something there.
pub(crate) fn make_way() {
    if let Some(lines) = ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that cannot be written to shows nothing anyway.
        let _ = lines.clear();
        lines.set_draw_target(ProgressDrawTarget::hidden());
    }
}
