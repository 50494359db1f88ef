//! Tool names as models may see them. The name on the wire is never changed.

use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The longest name that every model takes.
const LONGEST: usize = 64;
/// Enough of a hash to tell apart what one agent has.
const SUFFIX: usize = 8;

/// The shown names of tools, in their order. What would collide or be cut gets a suffix that depends on the tool alone.
pub fn shown_names<'a>(tools: impl Iterator<Item = (&'a str, &'a str, &'a str)> + Clone) -> Vec<String> {
    let plain = |prefix: &str, wire: &str| match prefix {
        "" => normal(wire),
        _ => format!("{}__{}", normal(prefix), normal(wire)),
    };
    let mut count: HashMap<String, usize> = HashMap::new();
    for (_, prefix, wire) in tools.clone() {
        *count.entry(plain(prefix, wire)).or_default() += 1;
    }
    tools
        .map(|(source, prefix, wire)| {
            let name = plain(prefix, wire);
            match name.len() <= LONGEST && count[&name] == 1 {
                true => name,
                false => suffixed(&name, source, wire),
            }
        })
        .collect()
}

/// Every character that a model may not see becomes `-`.
fn normal(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' }).collect()
}

fn suffixed(name: &str, source: &str, wire: &str) -> String {
    let digest = Sha256::new().chain_update(source).chain_update([0]).chain_update(wire).finalize();
    let hash: String = digest.iter().take(SUFFIX / 2).map(|byte| format!("{byte:02x}")).collect();
    // Normal names are ASCII, so any cut is between characters.
    format!("{}-{hash}", &name[..name.len().min(LONGEST - SUFFIX - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[(&str, &str, &str)]) -> Vec<String> {
        shown_names(tools.iter().copied())
    }

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(names(&[("s", "files", "read_file"), ("s", "", "x.y z")]), ["files__read_file", "x-y-z"]);
    }

    #[test]
    fn collisions_and_cuts_are_told_apart_whatever_the_order() {
        let long = "x".repeat(80);
        let tools = [("a", "p", "a.b"), ("a", "p", "a b"), ("b", "p", "a.b"), ("a", "p", long.as_str())];
        let forward = names(&tools);
        let mut reversed: Vec<_> = tools.into_iter().rev().collect();
        let backward = names(&reversed);
        reversed.reverse();
        assert_eq!(forward, backward.into_iter().rev().collect::<Vec<_>>());
        assert!(forward.iter().all(|it| it.len() <= LONGEST));
        let mut unique = forward.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), 4, "{forward:?}");
        assert!(forward[0].starts_with("p__a-b-"), "{forward:?}");
    }
}
