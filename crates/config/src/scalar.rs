//! Types unquoted scalars by the core schema of YAML 1.2, so `yes` and `on` are strings and `0o17` is a number.

use super::node::Value;

/// Returns the typed value of an unquoted scalar.
pub(crate) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::plain(text)),
    }
}

fn number(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            let infinity = if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
            return Some(Value::Float(infinity));
        }
        _ if matches!(text, ".nan" | ".NaN" | ".NAN") => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        // An integer beyond 128 bits is still a number, but no field accepts it.
        return Some(text.parse().map_or(Value::Float(f64::INFINITY), Value::Int));
    }
    is_decimal(unsigned).then(|| float(text))
}

fn radix(digits: &str, radix: u32) -> Option<Value> {
    let all_digits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    all_digits.then(|| i128::from_str_radix(digits, radix).map_or(Value::Float(f64::INFINITY), Value::Int))
}

fn float(text: &str) -> Value {
    Value::Float(text.parse().unwrap_or(f64::NAN))
}

/// Returns whether `text` is a decimal such as `1.5`, `.5`, `5.` or `1e3`.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_fits = mantissa.bytes().any(|b| b.is_ascii_digit())
        && (whole.is_empty() || digits(whole))
        && (fraction.is_empty() || digits(fraction));
    mantissa_fits && exponent.is_none_or(|it| digits(it.strip_prefix(['-', '+']).unwrap_or(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_scalars_follow_the_core_schema() {
        for (text, expected) in [
            ("", Value::Null),
            ("~", Value::Null),
            ("true", Value::Bool(true)),
            ("yes", Value::plain("yes")),
            ("on", Value::plain("on")),
            ("60", Value::Int(60)),
            ("-7", Value::Int(-7)),
            ("+7", Value::Int(7)),
            ("007", Value::Int(7)),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("1.5", Value::Float(1.5)),
            (".5", Value::Float(0.5)),
            ("5.", Value::Float(5.0)),
            ("1e3", Value::Float(1000.0)),
            ("1e400", Value::Float(f64::INFINITY)),
            ("-.inf", Value::Float(f64::NEG_INFINITY)),
            ("1.2.3", Value::plain("1.2.3")),
            (".", Value::plain(".")),
            ("-", Value::plain("-")),
            ("e3", Value::plain("e3")),
            ("1_000", Value::plain("1_000")),
            ("0x", Value::plain("0x")),
            ("12:30", Value::plain("12:30")),
        ] {
            assert_eq!(resolve(text), expected, "{text:?}");
        }
        assert!(matches!(resolve(".nan"), Value::Float(it) if it.is_nan()));
    }
}
