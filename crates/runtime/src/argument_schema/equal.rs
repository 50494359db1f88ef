//! Compares JSON values: numbers by value, objects regardless of member order.

use super::number;
use serde_json::Value;
use std::{
    cmp::Ordering,
    hash::{DefaultHasher, Hash, Hasher},
};

/// Returns the cost of a text of this length, in steps.
pub(super) fn text_cost(length: usize) -> u32 {
    u32::try_from(length / 1024).map_or(u32::MAX, |cost| cost.saturating_add(1))
}

/// Subtracts `cost` from the remaining steps. If too few are left, sets them to 0 and returns `None`.
pub(super) fn spend(steps: &mut u32, cost: u32) -> Option<()> {
    let left = steps.checked_sub(cost);
    *steps = left.unwrap_or(0);
    left.map(drop)
}

/// Returns whether two values are equal. `None` if that is uncertain or the steps are used up.
pub(super) fn equal(a: &Value, b: &Value, steps: &mut u32) -> Option<bool> {
    spend(steps, 1)?;
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number::compare(a, b).map(|order| order == Ordering::Equal),
        (Value::String(a), Value::String(b)) if a.len() == b.len() => {
            spend(steps, text_cost(a.len()))?;
            Some(a == b)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            all(a.iter().zip(b).map(|(a, b)| (a, Some(b))), steps)
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            spend(steps, a.keys().fold(0, |sum, name| text_cost(name.len()).saturating_add(sum)))?;
            all(a.iter().map(|(name, value)| (value, b.get(name))), steps)
        }
        (Value::Null, Value::Null) => Some(true),
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        _ => Some(false),
    }
}

fn all<'a>(pairs: impl Iterator<Item = (&'a Value, Option<&'a Value>)>, steps: &mut u32) -> Option<bool> {
    let mut known = Some(true);
    for (a, b) in pairs {
        let Some(b) = b else { return Some(false) };
        match equal(a, b, steps) {
            Some(true) => {}
            Some(false) => return Some(false),
            None if *steps == 0 => return None,
            None => known = None,
        }
    }
    known
}

/// Returns the indices of the first two equal values, if there are any. `None` if that is uncertain.
pub(super) fn first_duplicates(values: &[Value], steps: &mut u32) -> Option<Option<(usize, usize)>> {
    let mut hashes = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        hash(value, &mut hasher, steps)?;
        hashes.push((hasher.finish(), at));
    }
    hashes.sort_unstable();
    let (mut found, mut known) = (None::<(usize, usize)>, true);
    for run in hashes.chunk_by(|a, b| a.0 == b.0) {
        for (at, (_, first)) in run.iter().enumerate() {
            for (_, second) in &run[at + 1..] {
                match equal(&values[*first], &values[*second], steps) {
                    Some(true) => {
                        let pair = (*first, *second);
                        found = Some(found.map_or(pair, |best| best.min(pair)));
                    }
                    Some(false) => {}
                    None if *steps == 0 && found.is_none() => return None,
                    None => known = false,
                }
            }
        }
    }
    (known || found.is_some()).then_some(found)
}

/// Hashes a value. Equal values have equal hashes.
fn hash(value: &Value, hasher: &mut DefaultHasher, steps: &mut u32) -> Option<()> {
    spend(steps, 1)?;
    match value {
        Value::Null => 0u8.hash(hasher),
        Value::Bool(it) => (1u8, it).hash(hasher),
        // Adding 0.0 turns -0.0 into 0.0.
        Value::Number(it) => (2u8, (it.as_f64()? + 0.0).to_bits()).hash(hasher),
        Value::String(it) => {
            spend(steps, text_cost(it.len()))?;
            (3u8, it).hash(hasher);
        }
        Value::Array(items) => {
            (4u8, items.len()).hash(hasher);
            for item in items {
                hash(item, hasher, steps)?;
            }
        }
        Value::Object(members) => {
            let mut sum = 0u64;
            for (name, value) in members {
                let mut member = DefaultHasher::new();
                spend(steps, text_cost(name.len()))?;
                name.hash(&mut member);
                hash(value, &mut member, steps)?;
                // Sum the hashes, because the order of members does not matter.
                sum = sum.wrapping_add(member.finish());
            }
            (5u8, sum).hash(hasher);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_equal_regardless_of_notation() {
        for (a, b, expected) in [
            (json!(1), json!(1.0), Some(true)),
            (json!(0.0), json!(-0.0), Some(true)),
            (json!("a"), json!("a"), Some(true)),
            (json!("a"), json!("b"), Some(false)),
            (json!(true), json!(1), Some(false)),
            (json!([1, 2]), json!([2, 1]), Some(false)),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), Some(true)),
            (json!({"a": 1}), json!({"b": 1}), Some(false)),
            (json!([1e20]), json!([1e20]), None),
            (json!([1e20, 1]), json!([1e20, 2]), Some(false)),
        ] {
            assert_eq!(equal(&a, &b, &mut 100), expected, "{a} and {b}");
            let first_duplicates = first_duplicates(&[a.clone(), b.clone()], &mut 100).map(|it| it.is_some());
            assert_eq!(first_duplicates, expected, "{a} and {b} as twins");
        }
        assert_eq!(equal(&json!([1, 2, 3]), &json!([1, 2, 3]), &mut 3), None, "too few steps");
        assert_eq!(first_duplicates(&[json!(3), json!(1), json!(3), json!(1)], &mut 100), Some(Some((0, 2))));
    }
}
