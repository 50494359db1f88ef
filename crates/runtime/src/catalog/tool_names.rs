//! Generates the tool names that models see. The names on the wire never change.

use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// Maximum length of a name, accepted by every model.
const MAX_NAME_LENGTH: usize = 64;
/// Length of the hash suffix, in hexadecimal digits.
const HASH_SUFFIX_LENGTH: usize = 8;

/// The parts of a shown name.
#[derive(Clone, Copy, Debug)]
pub struct NameParts<'a> {
    /// Name of the source.
    pub source: &'a str,
    /// Prefix of the source's tools. Empty means no prefix.
    pub prefix: &'a str,
    /// Name on the wire.
    pub wire_name: &'a str,
    /// Name that follows the prefix: the wire name, or the one that agent.yaml gives the tool.
    pub name: &'a str,
}

impl<'a> NameParts<'a> {
    /// Creates the parts of an item that is shown under its wire name.
    pub fn new(source: &'a str, prefix: &'a str, wire_name: &'a str) -> NameParts<'a> {
        NameParts { source, prefix, wire_name, name: wire_name }
    }
}

/// Returns the shown names of tools, in the same order.
///
/// A name that collides or is too long gets a suffix that depends on the tool alone, independent of the other tools
/// and their order. If exactly one of the colliding names is used without a replaced character, it keeps the name.
pub fn shown_names(tools: &[NameParts<'_>]) -> Vec<String> {
    let plain: Vec<(String, bool)> = tools.iter().map(|it| plain(it.prefix, it.name)).collect();
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
        tools.iter().zip(&plain).map(|(it, (name, _))| suffixed(name, it.source, it.wire_name)).collect();
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

/// Returns the shown name of a tool whose name is unique and short.
pub(crate) fn plain_name(prefix: &str, name: &str) -> String {
    plain(prefix, name).0
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

    /// Returns the shown names of tools given as source, prefix and wire name.
    fn shown(tools: &[(&str, &str, &str)]) -> Vec<String> {
        let parts = tools.iter().map(|(source, prefix, wire)| NameParts::new(source, prefix, wire));
        shown_names(&parts.collect::<Vec<_>>())
    }

    #[test]
    fn valid_names_stay_unchanged() {
        let tools = [("s", "files", "read_file"), ("s", "", "x.y z")];
        assert_eq!(shown(&tools), ["files__read_file", "x-y-z"]);
    }

    #[test]
    fn colliding_and_long_names_get_stable_suffixes_in_any_order() {
        let long = "x".repeat(80);
        let tools = [("a", "p", "a.b"), ("a", "p", "a b"), ("b", "p", "a.b"), ("a", "p", long.as_str())];
        let forward = shown(&tools);
        let mut reversed: Vec<_> = tools.into_iter().rev().collect();
        let backward = shown(&reversed);
        reversed.reverse();
        assert_eq!(forward, backward.into_iter().rev().collect::<Vec<_>>());
        assert!(forward.iter().all(|it| it.len() <= MAX_NAME_LENGTH));
        assert_eq!(forward.iter().collect::<HashSet<_>>().len(), 4, "{forward:?}");
        assert!(forward[0].starts_with("p__a-b-"), "{forward:?}");
    }

    #[test]
    fn exact_name_wins_a_collision() {
        let names = shown(&[("s", "p", "a/b"), ("s", "p", "a-b"), ("s", "p", "a:b")]);
        assert_eq!(names[1], "p__a-b");
        assert!(names[0].starts_with("p__a-b-") && names[2].starts_with("p__a-b-") && names[0] != names[2]);
    }

    #[test]
    fn wire_name_equal_to_a_suffixed_name_gets_its_own_suffix() {
        let given = shown(&[("s", "", "a/b"), ("s", "", "a b")]);
        let taken_name = given[0].clone();
        let names = shown(&[("s", "", "a/b"), ("s", "", "a b"), ("t", "", &taken_name)]);
        assert_eq!(names[..2], given[..]);
        assert_ne!(names[2], taken_name);
    }

    #[test]
    fn tools_renamed_alike_get_different_suffixes() {
        let renamed = |wire_name| NameParts { name: "search", ..NameParts::new("s", "p", wire_name) };
        let names = shown_names(&[renamed("find"), renamed("lookup")]);
        assert!(names.iter().all(|it| it.starts_with("p__search-")) && names[0] != names[1], "{names:?}");
    }
}
