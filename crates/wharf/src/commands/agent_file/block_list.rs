//! Inserts entries at the end of `tools:` in the text of an agent file. Leaves all other text in place.

/// Returns the text with the entry, whose lines are indented by two spaces. `None` if `tools:` is not a block list.
pub(super) fn insert_entry(text: &str, entry: &str) -> Option<String> {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(tools) = lines.iter().position(|it| it.starts_with("tools:")) else {
        let gap = if text.trim().is_empty() { "" } else { line_end };
        return Some(format!(
            "{}{gap}tools:{line_end}{}",
            with_line_end(text, line_end),
            reindent(entry, 2, line_end)
        ));
    };
    let written = lines[tools]["tools:".len()..].trim();
    let value = written.split(" #").next().unwrap_or_default().trim();
    let (indent, last) = match value {
        "" => end_of_list(&lines, tools)?,
        "[]" => (2, tools),
        comment if comment.starts_with('#') => end_of_list(&lines, tools)?,
        _ => return None,
    };
    let mut before: String = lines[..=last].concat();
    if value == "[]" {
        before = before.replacen("tools: []", "tools:", 1);
    }
    let after = lines[last + 1..].concat();
    Some(format!("{}{}{after}", with_line_end(&before, line_end), reindent(entry, indent, line_end)))
}

/// Returns the indentation of the list's items and the index of its last line.
fn end_of_list(lines: &[&str], tools: usize) -> Option<(usize, usize)> {
    let is_content = |it: &str| !it.trim().is_empty() && !it.trim_start().starts_with('#');
    let Some(first) = lines.iter().skip(tools + 1).find(|it| is_content(it)) else { return Some((2, tools)) };
    let indent = indent_of(first);
    match first.trim_start().starts_with('-') {
        true => {}
        // The list is empty and the next key follows.
        false if indent == 0 => return Some((2, tools)),
        false => return None,
    }
    let mut last = tools;
    for (number, line) in lines.iter().enumerate().skip(tools + 1) {
        let own = indent_of(line);
        match () {
            () if line.trim().is_empty() => {}
            // A more deeply indented line may be part of a block scalar, even if it looks like a comment.
            () if own > indent => last = number,
            () if line.trim_start().starts_with('#') => {}
            () if own == indent && line.trim_start().starts_with('-') => last = number,
            () => break,
        }
    }
    Some((indent, last))
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn reindent(entry: &str, indent: usize, line_end: &str) -> String {
    entry
        .lines()
        .map(|it| format!("{}{}{line_end}", " ".repeat(indent), it.strip_prefix("  ").unwrap_or(it)))
        .collect()
}

fn with_line_end(text: &str, line_end: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
    format!("{text}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_inserted_at_the_end_of_tools() {
        for (text, expected) in [
            ("", Some("tools:\n  - name: x\n    type: mcp\n")),
            ("name: a", Some("name: a\n\ntools:\n  - name: x\n    type: mcp\n")),
            ("tools: []\nname: a\n", Some("tools:\n  - name: x\n    type: mcp\nname: a\n")),
            ("tools:\nname: a\n", Some("tools:\n  - name: x\n    type: mcp\nname: a\n")),
            (
                "tools: # mine\n  - name: a\n    # b\n\n# the end\nname: a\n",
                Some(
                    "tools: # mine\n  - name: a\n    # b\n  - name: x\n    type: mcp\n\n# the end\nname: a\n",
                ),
            ),
            ("tools:\n- name: a\nname: a", Some("tools:\n- name: a\n- name: x\n  type: mcp\nname: a")),
            (
                "tools:\n    - name: a\n      b: |\n        c\n\n        # d",
                Some(
                    "tools:\n    - name: a\n      b: |\n        c\n\n        # d\n    - name: x\n      type: mcp\n",
                ),
            ),
            ("tools:\r\n  - name: a\r\n", Some("tools:\r\n  - name: a\r\n  - name: x\r\n    type: mcp\r\n")),
            ("tools: [{name: a}]\n", None),
            ("tools:\n  [{name: a}]\n", None),
        ] {
            assert_eq!(insert_entry(text, "  - name: x\n    type: mcp\n").as_deref(), expected, "{text}");
        }
    }
}
