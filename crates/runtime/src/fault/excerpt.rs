//! Extracts the lines of a server's stderr that explain its failure.
//!
//! Python, npm and most programs print the reason last. Others print it first, followed by their whole help text or a
//! chain of consequences, so the last lines do not explain anything.

/// Maximum number of lines.
const MAX_LINES: usize = 12;

/// Returns the last lines if they contain the reason, or else the lines from the last reason on.
pub(super) fn excerpt(stderr: &str) -> String {
    let lines = without_help(informative_lines(stderr));
    let end = lines.len().saturating_sub(MAX_LINES);
    let start = match lines.iter().rposition(|it| is_reason(it)) {
        Some(reason) if reason < end => reason,
        _ => end,
    };
    let shown = lines[start..].iter().take(MAX_LINES);
    let mut text = shown.copied().collect::<Vec<_>>().join("\n");
    if start < end {
        text.push_str(&format!("\n… ({} more lines)", end - start));
    }
    text
}

/// Returns the lines that carry information.
fn informative_lines(stderr: &str) -> Vec<&str> {
    // If npm failed, its warnings are not the reason.
    let npm_failed = stderr.lines().any(|it| it.starts_with("npm error"));
    let mut after_frame = false;
    let is_informative = |it: &&str| {
        // Keep only the first frame of a Node stack trace. The others are callers.
        let is_frame = it.starts_with("    at ");
        let is_another_frame = is_frame && after_frame;
        after_frame = is_frame;
        !(it.is_empty() || is_another_frame || npm_failed && it.starts_with("npm warn"))
    };
    stderr.lines().map(str::trim_end).filter(is_informative).collect()
}

/// Removes the help text that follows a reason. Help text before the reason stays.
fn without_help(mut lines: Vec<&str>) -> Vec<&str> {
    let is_help = |it: &&str| it.to_lowercase().starts_with("usage:");
    if let Some(help) = lines.iter().position(is_help)
        && lines[..help].iter().any(|it| is_reason(it))
        && !lines[help..].iter().any(|it| is_reason(it))
    {
        lines.truncate(help);
    }
    lines
}

/// Returns whether a line looks like an error: `error: …`, `ValueError: …`, `program: error: …`, `[ERROR] …`.
fn is_reason(line: &str) -> bool {
    const BEGINNINGS: [&str; 6] =
        ["error", "fatal", "panic", "uncaught", "npm error code", "no solution found"];
    let line = line.trim_start_matches([' ', '|', '+']);
    let lower = line.to_lowercase();
    let kind = line.split(':').next().unwrap_or_default();
    let is_kind = |end: &str| kind.ends_with(end) && !kind.contains(' ') && kind.len() < line.len();
    BEGINNINGS.iter().any(|it| lower.starts_with(it))
        || is_kind("Error")
        || is_kind("Exception")
        || lower.contains(": error: ")
        || line.contains("[ERROR]")
        || line.contains(" ERROR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered_lines(what: &str, count: usize) -> String {
        (1..=count).map(|number| format!("{what} {number}\n")).collect()
    }

    #[test]
    fn the_end_of_a_python_traceback_is_shown() {
        let frames = numbered_lines("  File \"server.py\", line", 30);
        let text = format!("Traceback (most recent call last):\n{frames}ValueError: KEY is required\n");
        let shown = excerpt(&text);
        assert_eq!(shown.lines().count(), MAX_LINES);
        assert!(shown.ends_with("line 30\nValueError: KEY is required"), "{shown}");
    }

    #[test]
    fn a_reason_before_the_programs_help_is_shown_without_the_help() {
        let text =
            format!("Error: no token\nPass `TOKEN`.\nUsage: it [flags]\n\n{}", numbered_lines("--flag", 40));
        assert_eq!(excerpt(&text), "Error: no token\nPass `TOKEN`.");
    }

    #[test]
    fn a_reason_after_the_programs_help_is_shown() {
        let text = format!(
            "usage: it [-h]\n{}it: error: arguments are required: --db\n",
            numbered_lines("  [--x]", 20)
        );
        assert!(excerpt(&text).ends_with("it: error: arguments are required: --db"), "{}", excerpt(&text));
    }

    #[test]
    fn reason_is_shown_with_the_first_lines_after_it() {
        let text = format!("Downloading\nerror: No solution found\n{}", numbered_lines("  And because", 20));
        let shown = excerpt(&text);
        assert!(shown.starts_with("error: No solution found\n  And because 1\n"), "{shown}");
        assert!(shown.ends_with("\n… (9 more lines)"), "{shown}");
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
    }

    #[test]
    fn node_stack_frames_do_not_displace_the_reason() {
        let text =
            format!("server.js:1\nError: KEY is required\n{}\nNode.js v22\n", numbered_lines("    at f", 30));
        assert_eq!(excerpt(&text), "server.js:1\nError: KEY is required\n    at f 1\nNode.js v22");
    }

    #[test]
    fn warnings_of_npm_are_left_out_where_it_failed() {
        assert_eq!(excerpt("npm warn old\nnpm error code E404\n"), "npm error code E404");
        assert_eq!(excerpt("npm warn old\n"), "npm warn old");
        assert_eq!(excerpt(""), "");
    }
}
