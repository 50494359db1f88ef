//! Compares JSON values: numbers by value, objects regardless of member order.

use super::number;
use serde_json::Value;
use std::cmp::Ordering;

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

/// Returns the indices of the first two equal values, if there are any. `None` if that is uncertain or too expensive:
/// every value is compared with every other one.
pub(super) fn first_duplicates(values: &[Value], steps: &mut u32) -> Option<Option<(usize, usize)>> {
    if values.len().saturating_mul(values.len()) / 2 > *steps as usize {
        return None;
    }
    let mut is_certain = true;
    for (first, value) in values.iter().enumerate() {
        for (second, other) in values.iter().enumerate().skip(first + 1) {
            match equal(value, other, steps) {
                Some(true) => return Some(Some((first, second))),
                Some(false) => {}
                None if *steps == 0 => return None,
                None => is_certain = false,
            }
        }
    }
    is_certain.then_some(None)
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
