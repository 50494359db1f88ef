//! Formats the measurements of the agent as the page `docs/agent-performance.md`.

use super::{AgentMeasurements, CONVERSATIONS, ROUND_MESSAGES, TaskTimes, scripted_agent::Task};
use crate::machine;
use std::{fmt::Write as _, time::Duration};

const INTRODUCTION: &str = "<!-- Written by `cargo xtask bench`. -->
# Performance of the agent

What the agent adds to the stream of a model, measured side by side in one run. On another machine, compare only the ratios.
`cargo xtask bench` measures again and rewrites this page.

- **model** is a client that reads the stream of the scripted model itself, as often as an agent does. Nothing can be faster.
- **wharf** is `wharf serve` with its defaults, at `POST /api/v1/chat`: every conversation and every call is written to the database. Its
  client is another process.
- **openai-agents** is the OpenAI Agents SDK for Python, in its own process, without a client and without keeping conversations.

Both agents have the same MCP server over stdio. *CPU* is the processor time of the agent; it varies least, and on a busy machine it is the
only figure to rely on. *Added* is the median beyond that of **model**. The goals: the first text 2 ms later than the model's own, two calls
within 3 ms beyond model, server and one write to disk, and 30 µs of CPU per delta. Memory is the median of three
measurements of wharf, because an allocator takes and returns it in large pieces, and one of the other agent.
";

/// Formats all measurements as a page.
pub(super) fn page(measured: &AgentMeasurements) -> String {
    let mut page = INTRODUCTION.to_owned();
    let _ = writeln!(
        page,
        "\n{}; {} rounds of {ROUND_MESSAGES} messages. Load average of the machine meanwhile: {}; above the number of\n\
         cores, others have used it, and times and their p99 are too long.",
        machine::describe(),
        measured.rounds,
        machine::load_average()
    );
    messages(&mut page, measured);
    page.push_str("\n## Deltas\n\nAn answer of 10,000 deltas, each sent by itself.\n\n| | CPU µs per delta | added to the answer, µs per delta |\n| --- | ---: | ---: |\n");
    if let Some((_, [model, wharf, other])) =
        measured.tasks.iter().find(|(task, _)| *task == Task::ManyDeltas)
    {
        let added =
            |it: &TaskTimes| (micros(&it.whole, 0.5) - micros(&model.whole, 0.5)) / super::DELTAS as f64;
        let _ = writeln!(page, "| **wharf** | {:.1} | {:.1} |", wharf.cpu_per_delta(), added(wharf));
        let _ = writeln!(page, "| openai-agents | {:.1} | {:.1} |", other.cpu_per_delta(), added(other));
    }
    others(&mut page, measured);
    page
}

fn messages(page: &mut String, measured: &AgentMeasurements) {
    page.push_str(
        "\n## Messages\n\n| message | | CPU µs | first text µs | p99 | added | whole answer µs | p99 | added |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let names = [(Task::Answer, "an answer of 20 deltas"), (Task::TwoCalls, "two tool calls, and an answer")];
    for (task, name) in names {
        let Some((_, times)) = measured.tasks.iter().find(|(it, _)| *it == task) else { continue };
        let model = &times[0];
        for (index, (who, times)) in ["model", "**wharf**", "openai-agents"].iter().zip(times).enumerate() {
            let name = if index == 0 { name } else { "" };
            let cpu = if index == 0 { "-".to_owned() } else { format!("{:.0}", times.cpu_per_message()) };
            let columns = [(&times.first, &model.first), (&times.whole, &model.whole)].map(|(of, bare)| {
                let (median, p99) = (micros(of, 0.5), micros(of, 0.99));
                format!("{median:.0} | {p99:.0} | {:.0}", median - micros(bare, 0.5))
            });
            let _ = writeln!(page, "| {name} | {who} | {cpu} | {} | {} |", columns[0], columns[1]);
        }
    }
}

fn others(page: &mut String, measured: &AgentMeasurements) {
    let AgentMeasurements { resting, parked, cold, cancels, .. } = measured;
    page.push_str("\n## At rest, at the start and at the end\n\n| | goal | **wharf** | openai-agents |\n| --- | ---: | ---: | ---: |\n");
    let millis = |it: &[Duration]| format!("{:.1} ms", micros(it, 0.5) / 1000.0);
    let mib = |kib: f64| format!("{:.2} MiB", kib.max(0.0) / 1024.0);
    let rows = [
        (
            format!("memory of {CONVERSATIONS} conversations at rest"),
            "1 MiB",
            mib(resting[0]),
            mib(resting[1]),
        ),
        (
            format!("memory of {CONVERSATIONS} runs that wait for a person"),
            "2 MiB",
            mib(*parked),
            "-".to_owned(),
        ),
        (
            "start of the program to its first request (`wharf run`)".to_owned(),
            "60 ms",
            millis(&cold[0]),
            millis(&cold[1]),
        ),
        (
            "cancelling a run to `notifications/cancelled` at the server".to_owned(),
            "50 ms",
            millis(cancels),
            "-".to_owned(),
        ),
    ];
    for (what, goal, wharf, other) in rows {
        let _ = writeln!(page, "| {what} | {goal} | {wharf} | {other} |");
    }
}

/// Returns a quantile in microseconds.
fn micros(times: &[Duration], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let index = (times.len().saturating_sub(1) as f64 * part) as usize;
    times.get(index).map_or(0.0, |it| it.as_secs_f64() * 1e6)
}
