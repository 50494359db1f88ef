//! Formats the arguments of an entry as a YAML list on one line.

use wharf_config::{ArgOrigin, Launch};

/// Returns the arguments as the entry writes them, or could write them, in the form that may be shown.
pub(super) fn as_yaml(launch: &Launch) -> String {
    let args = launch.args.iter().filter_map(|it| match &it.origin {
        ArgOrigin::Added(_) => None,
        ArgOrigin::Resolved(text) | ArgOrigin::Versioned(text) | ArgOrigin::Locked(text) => {
            Some(text.shown())
        }
        ArgOrigin::Written | ArgOrigin::FromServer => Some(it.value.shown()),
    });
    args.map(item).collect::<Vec<_>>().join(", ")
}

/// Quotes an item, unless YAML reads it as the same string without quotes.
fn item(text: &str) -> String {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '-')
        && text.contains(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./@=".contains(&b))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_yaml_would_read_something_else() {
        for (text, expected) in [
            ("mcp-server-time==2026.10.19", "mcp-server-time==2026.10.19"),
            ("--db-path", "--db-path"),
            ("/home/alice/notes.db", "/home/alice/notes.db"),
            ("@scope/name", "\"@scope/name\""),
            ("3.12", "\"3.12\""),
            ("-1", "\"-1\""),
            ("off", "\"off\""),
            ("${KEY}", "\"${KEY}\""),
            ("a, b", "\"a, b\""),
            ("say \"x\"", "\"say \\\"x\\\"\""),
            ("", "\"\""),
        ] {
            assert_eq!(item(text), expected);
        }
    }
}
