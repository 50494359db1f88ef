//! One line per server while it is being connected to. Only on a terminal; otherwise there is nothing to see.

use crate::output::Output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// The lines of all servers.
pub(crate) struct Progress {
    lines: MultiProgress,
}

/// The line of one server. It goes when it is done, and what it said is said again by the command.
pub(crate) struct Line(ProgressBar);

impl Progress {
    /// Draws to stderr, which indicatif does only if that is a terminal.
    pub(crate) fn new(output: Output) -> Progress {
        let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Progress { lines: MultiProgress::with_draw_target(target) }
    }

    pub(crate) fn line(&self, name: &str) -> Line {
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
    /// Connected, after how long and with how many tools; or not connected.
    pub(crate) fn done(self, connected: Option<(Duration, usize)>) {
        match connected {
            Some((took, tools)) => {
                self.0.set_message(format!("ready after {:.1} s, {tools} tools", took.as_secs_f64()))
            }
            None => self.0.set_message("failed"),
        }
        self.0.finish_and_clear();
    }
}
