//! Compares JSON numbers, which are decimals of any length, with machine numbers. Lost precision must not reject
//! valid arguments, so a result that depends on it is `None`.

use serde_json::Number;
use std::cmp::Ordering;

/// From here on, doubles cannot represent every integer.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Compares two numbers. `None` if the result is uncertain.
pub(super) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (as_integer(a), as_integer(b)) {
        return Some(a.cmp(&b));
    }
    let (a, b) = (a.as_f64()?, b.as_f64()?);
    // Rounding preserves order, so numbers that differ after it also differed before.
    let order = a.partial_cmp(&b)?;
    (order != Ordering::Equal || a.abs() < MAX_EXACT_INTEGER).then_some(order)
}

/// Returns whether `a` is a multiple of `b`. `None` if that is uncertain.
pub(super) fn is_multiple(a: &Number, b: &Number) -> Option<bool> {
    if let (Some(a), Some(b)) = (as_integer(a), as_integer(b)) {
        return a.checked_rem(b).map(|rest| rest == 0);
    }
    let quotient = a.as_f64()? / b.as_f64()?;
    if !quotient.is_finite() || quotient.abs() >= MAX_EXACT_INTEGER {
        return None;
    }
    // 0.3 is a multiple of 0.1, although doubles disagree. Only a remainder that rounding cannot explain counts.
    let rest = (quotient - quotient.round()).abs();
    let size = quotient.abs().max(1.0);
    match rest {
        _ if rest <= 4.0 * f64::EPSILON * size => Some(true),
        _ if rest >= 1e-9 * size => Some(false),
        _ => None,
    }
}

fn as_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).expect("a number")
    }

    #[test]
    fn numbers_compare_exactly_or_not_at_all() {
        for (a, b, expected) in [
            ("1", "1.0", Some(Ordering::Equal)),
            ("1", "1.5", Some(Ordering::Less)),
            ("-0.0", "0", Some(Ordering::Equal)),
            ("9007199254740993", "9007199254740992", Some(Ordering::Greater)),
            ("9007199254740993", "9007199254740992.0", None),
            ("18446744073709551617", "18446744073709551618", None),
            ("18446744073709551615", "1", Some(Ordering::Greater)),
            ("1e300", "-9223372036854775808", Some(Ordering::Greater)),
        ] {
            assert_eq!(compare(&number(a), &number(b)), expected, "{a} and {b}");
        }
    }

    #[test]
    fn multiples_allow_for_rounding() {
        for (a, b, expected) in [
            ("10", "5", Some(true)),
            ("7", "5", Some(false)),
            ("7", "0", None),
            ("0", "0.1", Some(true)),
            ("0.3", "0.1", Some(true)),
            ("0.0075", "0.0001", Some(true)),
            ("0.00751", "0.0001", Some(false)),
            ("4.5", "1.5", Some(true)),
            ("35", "1.5", Some(false)),
            ("1e308", "0.123456789", None),
            ("1", "0.0", None),
        ] {
            assert_eq!(is_multiple(&number(a), &number(b)), expected, "{a} of {b}");
        }
    }
}
