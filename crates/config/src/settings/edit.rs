//! Adds a grant to the text of a wharf.toml. Keeps everything else in it unchanged, including comments.

use super::{Settings, load_settings};
use crate::grants::MissingGrant;
use toml::de::{DeTable, DeValue};

/// Returns `text`, a wharf.toml, with this grant added. Returns `None` if the file is invalid, or if its layout does
/// not allow a safe automatic edit.
pub fn settings_with_grant(text: &str, grant: &MissingGrant) -> Option<String> {
    let mut expected = settings(text)?;
    expected.grants.add(grant.clone());
    let after = add_grant(text, grant)?;
    (settings(&after).as_ref() == Some(&expected)).then_some(after)
}

fn settings(text: &str) -> Option<Settings> {
    load_settings(text, "wharf.toml").0
}

fn add_grant(text: &str, grant: &MissingGrant) -> Option<String> {
    if let Some((at, before, after)) = insertion_point(text, grant.key())? {
        return Some(format!("{}{before}{}{after}{}", &text[..at], grant.toml_string(), &text[at..]));
    }
    let line = format!("{} = [{}]\n", grant.key(), grant.toml_string());
    if let Some(at) = end_of_header(text) {
        return Some(format!("{}{line}{}", &text[..at], &text[at..]));
    }
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let gap = if text.trim().is_empty() { "" } else { "\n" };
    Some(format!("{text}{end}{gap}[grants]\n{line}"))
}

/// Finds the place for another string in the list `grants.KEY`, with the text to write before and after it.
/// `Some(None)` means that there is no such list yet; `None` means that the file cannot be edited.
fn insertion_point(text: &str, key: &str) -> Option<Option<(usize, &'static str, &'static str)>> {
    let table = DeTable::parse(text).ok()?;
    let Some(grants) = table.get_ref().get("grants") else { return Some(None) };
    let DeValue::Table(grants) = grants.get_ref() else { return None };
    let Some(list) = grants.get(key) else { return Some(None) };
    let DeValue::Array(items) = list.get_ref() else { return None };
    Some(Some(match items.iter().last() {
        Some(last) => (last.span().end, ", ", ""),
        None => (list.span().start + 1, "", ""),
    }))
}

/// Returns the end of the line `[grants]`.
fn end_of_header(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.split('#').next().unwrap_or_default().trim();
        start += line.len();
        if bare == "[grants]" && line.ends_with('\n') {
            return Some(start);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_added_and_everything_else_stays() {
        let node = MissingGrant::Command("/usr/bin/node".into());
        let package = MissingGrant::Package("git+https://x.example/y".into());
        for (text, grant, expected) in [
            ("", &node, Some("[grants]\ncommands = [\"/usr/bin/node\"]\n")),
            ("# mine\n", &package, Some("# mine\n\n[grants]\npackages = [\"git+https://x.example/y\"]\n")),
            (
                "[grants] # few\n\n[server]\nno_auth = true",
                &node,
                Some("[grants] # few\ncommands = [\"/usr/bin/node\"]\n\n[server]\nno_auth = true"),
            ),
            (
                "[server]\nno_auth = true",
                &node,
                Some("[server]\nno_auth = true\n\n[grants]\ncommands = [\"/usr/bin/node\"]\n"),
            ),
            (
                "[grants]\ncommands = [\n  \"/a\", # the first\n  \"/b\", # the last\n]\n",
                &node,
                Some(
                    "[grants]\ncommands = [\n  \"/a\", # the first\n  \"/b\", \"/usr/bin/node\", # the last\n]\n",
                ),
            ),
            ("[grants]\ncommands = []\n", &node, Some("[grants]\ncommands = [\"/usr/bin/node\"]\n")),
            ("grants.commands = [\"/a\"]\n", &node, Some("grants.commands = [\"/a\", \"/usr/bin/node\"]\n")),
            (
                "[grants.arguments]\nnpx = [\"--registry=*\"]\n",
                &node,
                Some(
                    "[grants.arguments]\nnpx = [\"--registry=*\"]\n\n[grants]\ncommands = [\"/usr/bin/node\"]\n",
                ),
            ),
            ("grants = { commands = [\"/a\"] }\n", &package, None),
            ("[grants]\nunknown = 1\n", &node, None),
            ("[grants", &node, None),
        ] {
            assert_eq!(settings_with_grant(text, grant).as_deref(), expected, "{text}");
        }
    }
}
