//! Generates the tool names that models see. The names on the wire never change.

use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// Maximum length of a name, accepted by every model.
const MAX_NAME_LENGTH: usize = 64;
/// Length of the hash suffix, in hexadecimal digits.
const HASH_SUFFIX_LENGTH: usize = 8;

/// Returns the shown names of tools given as (source, prefix, wire name), in the same order.
///
/// A name that collides or is too long gets a suffix that depends on the tool alone, independent of the other tools
/// and their order. If exactly one of the colliding names is used without a replaced character, it keeps the name.
pub fn shown_names(tools: &[(&str, &str, &str)]) -> Vec<String> {
    let plain: Vec<(String, bool)> = tools.iter().map(|(_, prefix, wire)| plain(prefix, wire)).collect();
    let mut claims: HashMap<&str, NameClaims> = HashMap::new();
    for (name, exact) in &plain {
        let claims = claims.entry(name).or_default();
        claims.all += 1;
        claims.exact += usize::from(*exact);
    }
    let keeps = |name: &str, exact: bool| {
        name.len() <= MAX_NAME_LENGTH && (claims[name].all == 1 || exact && claims[name].exact == 1)
    };
    let suffixed: Vec<String> =
        tools.iter().zip(&plain).map(|((source, _, wire), (name, _))| suffixed(name, source, wire)).collect();
    let given = plain.iter().zip(&suffixed).filter(|((name, exact), _)| !keeps(name, *exact));
    // A wire name may equal the suffixed name of another tool.
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

/// Number of tools that produce a name, and how many of them without a replaced character.
#[derive(Default)]
struct NameClaims {
    all: usize,
    exact: usize,
}

/// Returns the name without a suffix, and whether no character was replaced.
fn plain(prefix: &str, wire: &str) -> (String, bool) {
    let name = match prefix {
        "" => normalize(wire),
        _ => format!("{}__{}", normalize(prefix), normalize(wire)),
    };
    (name, wire.bytes().chain(prefix.bytes()).all(is_allowed))
}

/// Replaces every character that is not allowed in a shown name by `-`.
pub(crate) fn normalize(name: &str) -> String {
    name.chars().map(|c| if u8::try_from(c).is_ok_and(is_allowed) { c } else { '-' }).collect()
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn suffixed(name: &str, source: &str, wire: &str) -> String {
    let digest = Sha256::new().chain_update(source).chain_update([0]).chain_update(wire).finalize();
    let hash: String = digest.iter().take(HASH_SUFFIX_LENGTH / 2).map(|byte| format!("{byte:02x}")).collect();
    // The name is ASCII here, so every index is a character boundary.
    format!("{}-{hash}", &name[..name.len().min(MAX_NAME_LENGTH - HASH_SUFFIX_LENGTH - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_stay_unchanged() {
        let tools = [("s", "files", "read_file"), ("s", "", "x.y z")];
        assert_eq!(shown_names(&tools), ["files__read_file", "x-y-z"]);
    }

    #[test]
    fn colliding_and_long_names_get_stable_suffixes_in_any_order() {
        let long = "x".repeat(80);
        let tools = [("a", "p", "a.b"), ("a", "p", "a b"), ("b", "p", "a.b"), ("a", "p", long.as_str())];
        let forward = shown_names(&tools);
        let mut reversed: Vec<_> = tools.into_iter().rev().collect();
        let backward = shown_names(&reversed);
        reversed.reverse();
        assert_eq!(forward, backward.into_iter().rev().collect::<Vec<_>>());
        assert!(forward.iter().all(|it| it.len() <= MAX_NAME_LENGTH));
        assert_eq!(forward.iter().collect::<HashSet<_>>().len(), 4, "{forward:?}");
        assert!(forward[0].starts_with("p__a-b-"), "{forward:?}");
    }

    #[test]
    fn exact_name_wins_a_collision() {
        let names = shown_names(&[("s", "p", "a/b"), ("s", "p", "a-b"), ("s", "p", "a:b")]);
        assert_eq!(names[1], "p__a-b");
        assert!(names[0].starts_with("p__a-b-") && names[2].starts_with("p__a-b-") && names[0] != names[2]);
    }

    #[test]
    fn wire_name_equal_to_a_suffixed_name_gets_its_own_suffix() {
        let given = shown_names(&[("s", "", "a/b"), ("s", "", "a b")]);
        let taken_name = given[0].clone();
        let names = shown_names(&[("s", "", "a/b"), ("s", "", "a b"), ("t", "", &taken_name)]);
        assert_eq!(names[..2], given[..]);
        assert_ne!(names[2], taken_name);
    }
}
