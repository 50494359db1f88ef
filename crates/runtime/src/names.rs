//! Tool names as models may see them. The name on the wire is never changed.

use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// The longest name that every model takes.
const LONGEST: usize = 64;
/// Enough of a hash to tell apart what one agent has.
const SUFFIX: usize = 8;

/// The shown names of tools, given as source, prefix and wire name, in their order.
///
/// What would collide or be cut gets a suffix that depends on the tool alone, whatever else there is and in whatever
/// order. Of several that collide, the only one whose name needs no change keeps it.
pub fn shown_names(tools: &[(&str, &str, &str)]) -> Vec<String> {
    let plain: Vec<(String, bool)> = tools.iter().map(|(_, prefix, wire)| plain(prefix, wire)).collect();
    let mut claims: HashMap<&str, Claims> = HashMap::new();
    for (name, exact) in &plain {
        let claims = claims.entry(name).or_default();
        claims.all += 1;
        claims.exact += usize::from(*exact);
    }
    let keeps = |name: &str, exact: bool| {
        name.len() <= LONGEST && (claims[name].all == 1 || exact && claims[name].exact == 1)
    };
    let suffixed: Vec<String> =
        tools.iter().zip(&plain).map(|((source, _, wire), (name, _))| suffixed(name, source, wire)).collect();
    let given = plain.iter().zip(&suffixed).filter(|((name, exact), _)| !keeps(name, *exact));
    // A server may call its tool just what another one is called with its suffix.
    let taken: HashSet<&str> = given.map(|(_, suffixed)| suffixed.as_str()).collect();
    plain
        .iter()
        .zip(&suffixed)
        .map(|((name, exact), suffixed)| match keeps(name, *exact) && !taken.contains(name.as_str()) {
            true => name.clone(),
            false => suffixed.clone(),
        })
        .collect()
}

/// How many tools would be called so, and how many of them are.
#[derive(Default)]
struct Claims {
    all: usize,
    exact: usize,
}

/// The name without a suffix, and whether nothing had to be replaced in it.
fn plain(prefix: &str, wire: &str) -> (String, bool) {
    let name = match prefix {
        "" => normal(wire),
        _ => format!("{}__{}", normal(prefix), normal(wire)),
    };
    (name, wire.bytes().chain(prefix.bytes()).all(is_normal))
}

/// Every character that a model may not see becomes `-`.
pub(crate) fn normal(name: &str) -> String {
    name.chars().map(|c| if u8::try_from(c).is_ok_and(is_normal) { c } else { '-' }).collect()
}

fn is_normal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
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

    #[test]
    fn plain_names_stay_plain() {
        let tools = [("s", "files", "read_file"), ("s", "", "x.y z")];
        assert_eq!(shown_names(&tools), ["files__read_file", "x-y-z"]);
    }

    #[test]
    fn collisions_and_cuts_are_told_apart_whatever_the_order() {
        let long = "x".repeat(80);
        let tools = [("a", "p", "a.b"), ("a", "p", "a b"), ("b", "p", "a.b"), ("a", "p", long.as_str())];
        let forward = shown_names(&tools);
        let mut reversed: Vec<_> = tools.into_iter().rev().collect();
        let backward = shown_names(&reversed);
        reversed.reverse();
        assert_eq!(forward, backward.into_iter().rev().collect::<Vec<_>>());
        assert!(forward.iter().all(|it| it.len() <= LONGEST));
        assert_eq!(forward.iter().collect::<HashSet<_>>().len(), 4, "{forward:?}");
        assert!(forward[0].starts_with("p__a-b-"), "{forward:?}");
    }

    #[test]
    fn the_exact_name_keeps_it() {
        let names = shown_names(&[("s", "p", "a/b"), ("s", "p", "a-b"), ("s", "p", "a:b")]);
        assert_eq!(names[1], "p__a-b");
        assert!(names[0].starts_with("p__a-b-") && names[2].starts_with("p__a-b-") && names[0] != names[2]);
    }

    #[test]
    fn nobody_takes_a_name_that_was_given() {
        let given = shown_names(&[("s", "", "a/b"), ("s", "", "a b")]);
        let thief = given[0].clone();
        let names = shown_names(&[("s", "", "a/b"), ("s", "", "a b"), ("t", "", &thief)]);
        assert_eq!(names[..2], given[..]);
        assert_ne!(names[2], thief);
    }
}
