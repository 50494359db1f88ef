//! Arguments of a call as they are typed: `key=text`, `key:=JSON`, and whole objects.

use serde_json::{Map, Value};
use std::{
    fs,
    io::{self, Read},
};

/// The longest object that is read from a file or from standard input.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Everything that was typed as one object; what stands later wins.
pub(crate) fn object(whole: Option<&str>, pairs: &[String]) -> Result<Map<String, Value>, String> {
    let mut object = whole.map_or_else(|| Ok(Map::new()), read_whole)?;
    for pair in pairs {
        let (key, value) = read_pair(pair)?;
        object.insert(key, value);
    }
    Ok(object)
}

/// `key=text` or `key:=JSON`, whichever separator comes first.
fn read_pair(pair: &str) -> Result<(String, Value), String> {
    let malformed = || format!("'{pair}' is not an argument; write key=text, or key:=JSON");
    let (key, value) = pair.split_once('=').ok_or_else(malformed)?;
    match key.strip_suffix(':') {
        Some("") => Err(malformed()),
        Some(key) => {
            let value = serde_json::from_str(value)
                .map_err(|error| format!("the value of '{key}' is not JSON: {error}"))?;
            Ok((key.to_owned(), value))
        }
        None if key.is_empty() => Err(malformed()),
        None => Ok((key.to_owned(), Value::String(value.to_owned()))),
    }
}

fn read_whole(whole: &str) -> Result<Map<String, Value>, String> {
    let text = match whole.strip_prefix('@') {
        Some(file) => {
            let file_error = |error: io::Error| format!("'{file}' cannot be read: {error}");
            read_bounded(fs::File::open(file).map_err(file_error)?).map_err(file_error)?
        }
        None if whole == "-" => read_bounded(io::stdin().lock())
            .map_err(|error| format!("standard input cannot be read: {error}"))?,
        None => whole.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("--args must be a JSON object".to_owned()),
        Err(error) => Err(format!("--args is not JSON: {error}")),
    }
}

fn read_bounded(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST { Err(io::Error::other("it is larger than 16 MiB")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn typed() {
        let pairs = |pairs: &[&str]| pairs.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (whole, typed, expected) in [
            (
                None,
                &["a=1", "b:=1", "c:=[true]", "d=", "e=x=y", "f:=\"q\""][..],
                json!({"a": "1", "b": 1, "c": [true], "d": "", "e": "x=y", "f": "q"}),
            ),
            (Some(r#"{"a": 1, "b": 2}"#), &["b=3"], json!({"a": 1, "b": "3"})),
            (Some("{}"), &[], json!({})),
        ] {
            assert_eq!(object(whole, &pairs(typed)).map(Value::Object), Ok(expected));
        }
        for (whole, typed) in [
            (None, "a"),
            (None, "=1"),
            (None, ":=1"),
            (None, "a:={"),
            (Some("[]"), "a=1"),
            (Some("{"), "a=1"),
            (Some("@/nope"), "a=1"),
        ] {
            assert!(object(whole, &pairs(&[typed])).is_err(), "{whole:?} {typed}");
        }
    }
}
