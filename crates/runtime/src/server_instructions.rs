//! Merges the instructions of all servers into one text, for clients of the gateway and for the agent.

use crate::{SourceState, lock::LockState};
use std::borrow::Cow;

/// Maximum size of one server's instructions, in bytes.
const MAX_SERVER_BYTES: usize = 2 * 1024;

/// Maximum size of the merged text, in bytes.
const MAX_TOTAL_BYTES: usize = 16 * 1024;

/// Bytes kept free for the note about servers that are left out.
const NOTE_BYTES: usize = 128;

/// Merges the instructions of these sources, each under the name of its source. Leaves out those that differ from the
/// lock.
pub fn merge_instructions(sources: &[SourceState], lock: &LockState) -> Option<String> {
    let shown = sources.iter().filter(|it| it.source.instructions);
    let texts = shown.filter_map(|it| {
        let text = it.status.instructions.as_deref()?;
        lock.allows_instructions(&it.source, text).then(|| (it.source.name.shown(), text))
    });
    merge_texts(texts)
}

fn merge_texts<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let (mut merged, mut left_out) = (String::new(), 0);
    for (name, text) in texts.map(|(name, text)| (name, text.trim())).filter(|(_, text)| !text.is_empty()) {
        let separator = if merged.is_empty() { "" } else { "\n\n" };
        let section = format!("{separator}# {name}\n\n{}", cut(text));
        if merged.len() + section.len() > MAX_TOTAL_BYTES - NOTE_BYTES {
            left_out += 1;
        } else {
            merged += &section;
        }
    }
    if left_out > 0 {
        merged +=
            &format!("\n\n[left out: the instructions of {left_out} more servers, over the limit of 16 KiB]");
    }
    (!merged.is_empty()).then_some(merged)
}

/// Cuts a text that is too long at a character boundary, and says so at its end.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_SERVER_BYTES {
        return text.into();
    }
    let marker = format!("…\n[cut: the server's instructions have {} bytes]", text.len());
    let end = text.floor_char_boundary(MAX_SERVER_BYTES - marker.len());
    format!("{}{marker}", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(texts: &[(&str, &str)]) -> String {
        merge_texts(texts.iter().copied()).unwrap_or_default()
    }

    #[test]
    fn each_text_is_under_the_name_of_its_server() {
        assert_eq!(merged(&[]), "");
        assert_eq!(merged(&[("a", " \n")]), "");
        assert_eq!(
            merged(&[("a", "Use it.\n"), ("b", ""), ("c", "Or this.")]),
            "# a\n\nUse it.\n\n# c\n\nOr this."
        );
    }

    #[test]
    fn long_text_is_cut_visibly_at_a_character_boundary() {
        let fits = "x".repeat(MAX_SERVER_BYTES);
        assert_eq!(cut(&fits), fits);
        for padding in 0..4 {
            let long = "x".repeat(padding) + &"\u{1f6a2}".repeat(1_000);
            let short = cut(&long);
            assert!(short.len() <= MAX_SERVER_BYTES && short.len() > MAX_SERVER_BYTES - 8, "{}", short.len());
            assert!(
                short.ends_with(&format!("…\n[cut: the server's instructions have {} bytes]", long.len()))
            );
        }
    }

    #[test]
    fn all_texts_together_have_a_limit() {
        let long = "x".repeat(MAX_SERVER_BYTES);
        let names: Vec<String> = (0..20).map(|it| format!("server{it}")).collect();
        let mut texts: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), long.as_str())).collect();
        texts.push(("small", "It fits."));
        let all = merged(&texts);
        assert!(all.len() <= MAX_TOTAL_BYTES && all.len() > MAX_TOTAL_BYTES - 3 * 1024, "{}", all.len());
        assert!(all.contains("# small\n\nIt fits."));
        assert!(
            all.ends_with("[left out: the instructions of 13 more servers, over the limit of 16 KiB]"),
            "{all}"
        );
    }
}
