//! Shows a progress line for each server that connects or runs a call. Shows nothing if stderr is not a terminal.

use crate::{content::printable, output::Output};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time;
use wharf_config::Plan;
use wharf_mcp::session::Progress as CallProgress;
use wharf_runtime::{Handle, OnProgress, catalog::Discovery};

/// Interval of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// Message of a line until the server is connected.
const CONNECTING: &str = "connecting";

/// The lines currently on the terminal, so that a question to the user can remove them.
static ON_TERMINAL: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// The progress lines of all servers.
pub(crate) struct Progress {
    lines: MultiProgress,
}

/// One progress line. Dropping it removes it from the terminal, also when the work is interrupted. The command
/// reports the result itself.
pub(crate) struct ProgressLine(ProgressBar);

impl Progress {
    /// Creates the progress display on stderr. indicatif draws only if that is a terminal.
    pub(crate) fn new(output: Output) -> Progress {
        let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let lines = MultiProgress::with_draw_target(target);
        *ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines.clone());
        Progress { lines }
    }

    /// Shows the progress of connecting, until every server is connected or has failed.
    pub(crate) async fn show_until_connected(&self, handle: &Handle, plan: &Plan) {
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
                line.connecting(state.and_then(|it| it.status.downloading.as_deref()));
            }
            tokio::select! {
                changed = catalogs.changed() => if changed.is_err() { return },
                () = time::sleep(TICK) => {}
            }
        }
    }

    /// Shows the activity of a server until the line is dropped.
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
    /// Returns a callback that shows the progress of a call in this line, if the line is visible.
    pub(crate) fn reporter(&self) -> Option<OnProgress> {
        if self.0.is_hidden() {
            return None;
        }
        let (bar, doing) = (self.0.clone(), self.0.message());
        Some(Box::new(move |at: &CallProgress| {
            let share = at.total.filter(|total| *total > 0.0).map(|total| at.progress / total * 100.0);
            let share = share.map(|it| format!(" {:.0} %", it.clamp(0.0, 100.0))).unwrap_or_default();
            let message = at.message.as_deref().map(|it| format!(": {}", printable(it))).unwrap_or_default();
            bar.set_message(format!("{doing}{share}{message}"));
        }))
    }

    /// Sets the message of a server that is not connected yet. Its package may have to be downloaded first.
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

/// Removes every line from the terminal permanently, because the user is about to be asked a question.
pub(crate) fn clear_lines() {
    if let Some(lines) = ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // If the terminal cannot be written, it shows nothing anyway.
        let _ = lines.clear();
        lines.set_draw_target(ProgressDrawTarget::hidden());
    }
}
