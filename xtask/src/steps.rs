//! Runs the steps of a task. Prints the start and duration of each, and a summary at the end. The first failing
//! step ends the task.

use std::time::{Duration, Instant};

use crate::failure::Failure;

pub(crate) struct Steps {
    done: Vec<Step>,
    notes: Vec<String>,
}

struct Step {
    name: String,
    took: Duration,
    passed: bool,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { done: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn run<T>(
        &mut self,
        name: impl Into<String>,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let name = name.into();
        eprintln!("\n==> {name}");
        let started = Instant::now();
        let result = work();
        let took = started.elapsed();
        let passed = result.is_ok();
        eprintln!("==> {name}: {} after {}", verdict(passed), seconds(took));
        self.done.push(Step { name, took, passed });
        result
    }

    /// Adds a sentence to the end of the summary.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Prints the summary, unless no step has run.
    pub(crate) fn summary(&self) {
        if self.done.is_empty() {
            return;
        }
        eprintln!("\n==> summary");
        for Step { name, took, passed } in &self.done {
            eprintln!("{:>8}  {:>9}  {name}", verdict(*passed), seconds(*took));
        }
        let all = self.done.iter().map(|step| step.took).sum();
        eprintln!("{:>8}  {:>9}", "total", seconds(all));
        for note in &self.notes {
            eprintln!("    note  {note}");
        }
    }
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
