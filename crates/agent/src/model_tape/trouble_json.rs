//! Errors of a model as lines of a recording have them. A replay reacts to them as the recorded run did.

use crate::model::trouble::{ProviderError, ProviderErrorKind, Trouble};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the JSON of an error.
pub(super) fn trouble_json(trouble: &Trouble) -> Value {
    let mut json = json!({ "type": trouble.error_type(), "message": trouble.to_string() });
    let seconds = |time: &Duration| json!(time.as_secs_f64().ceil());
    let (kind, detail) = match trouble {
        Trouble::Cut => ("cut", Value::Null),
        Trouble::Empty => ("empty", Value::Null),
        Trouble::NotEvents(beginning) => ("not_events", json!(beginning)),
        Trouble::Garbled(why) => ("garbled", json!(why)),
        Trouble::Connect(why) => ("connect", json!(why)),
        Trouble::NoFirstByte(time) => ("no_first_byte", seconds(time)),
        Trouble::Silent(time) => ("silent", seconds(time)),
        Trouble::Unavailable { retry_after } => ("unavailable", seconds(retry_after)),
        Trouble::Provider(error) => ("provider", provider_json(error)),
        Trouble::TooMuch { .. } | Trouble::NotRecorded(_) => ("garbled", json!(trouble.to_string())),
    };
    json["kind"] = json!(kind);
    if !detail.is_null() {
        json["detail"] = detail;
    }
    json
}

/// Reads an error. An unknown one is an answer that cannot be decoded.
pub(super) fn read_trouble(json: &Value) -> Trouble {
    let detail = &json["detail"];
    let text = || detail.as_str().or(json["message"].as_str()).unwrap_or_default().to_owned();
    let time = || Duration::try_from_secs_f64(detail.as_f64().unwrap_or(0.0)).unwrap_or_default();
    match json["kind"].as_str().unwrap_or_default() {
        "cut" => Trouble::Cut,
        "empty" => Trouble::Empty,
        "not_events" => Trouble::NotEvents(text()),
        "connect" => Trouble::Connect(text()),
        "no_first_byte" => Trouble::NoFirstByte(time()),
        "silent" => Trouble::Silent(time()),
        "unavailable" => Trouble::Unavailable { retry_after: time() },
        "provider" => Trouble::Provider(read_provider(detail)),
        _ => Trouble::Garbled(text()),
    }
}

fn provider_json(error: &ProviderError) -> Value {
    use ProviderErrorKind as Kind;
    let kind = match &error.kind {
        Kind::RateLimited => json!("rate_limited"),
        Kind::Overloaded => json!("overloaded"),
        Kind::Server => json!("server"),
        Kind::Timeout => json!("timeout"),
        Kind::TooLong { window } => json!({ "too_long": window }),
        Kind::ToolRefused { index } => json!({ "tool_refused": index }),
        Kind::Unauthorized => json!("unauthorized"),
        Kind::NotFound => json!("not_found"),
        Kind::BadRequest => json!("bad_request"),
    };
    json!({ "kind": kind, "status": error.status, "message": error.message })
}

fn read_provider(json: &Value) -> ProviderError {
    use ProviderErrorKind as Kind;
    let kind = &json["kind"];
    let index = kind["tool_refused"].as_u64().and_then(|it| usize::try_from(it).ok());
    let kind = match (kind.as_str(), index, kind.get("too_long")) {
        (_, Some(index), _) => Kind::ToolRefused { index },
        (_, _, Some(window)) => Kind::TooLong { window: window.as_u64() },
        (Some("rate_limited"), ..) => Kind::RateLimited,
        (Some("overloaded"), ..) => Kind::Overloaded,
        (Some("timeout"), ..) => Kind::Timeout,
        (Some("unauthorized"), ..) => Kind::Unauthorized,
        (Some("not_found"), ..) => Kind::NotFound,
        (Some("bad_request"), ..) => Kind::BadRequest,
        _ => Kind::Server,
    };
    ProviderError {
        kind,
        status: json["status"].as_u64().and_then(|it| u16::try_from(it).ok()),
        message: json["message"].as_str().unwrap_or_default().to_owned(),
        retry_after: None,
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_comes_back_as_it_was() {
        use ProviderErrorKind as Kind;
        let provider = |kind| {
            Trouble::Provider(ProviderError {
                kind,
                status: Some(400),
                message: "no".to_owned(),
                retry_after: None,
                hint: None,
            })
        };
        let kinds = [
            Kind::RateLimited,
            Kind::Overloaded,
            Kind::Server,
            Kind::Timeout,
            Kind::TooLong { window: Some(8) },
            Kind::TooLong { window: None },
            Kind::ToolRefused { index: 3 },
            Kind::Unauthorized,
            Kind::NotFound,
            Kind::BadRequest,
        ];
        let second = Duration::from_secs(3);
        let others = [
            Trouble::Cut,
            Trouble::Empty,
            Trouble::NotEvents("a".to_owned()),
            Trouble::Garbled("b".to_owned()),
            Trouble::Connect("c".to_owned()),
            Trouble::NoFirstByte(second),
            Trouble::Silent(second),
            Trouble::Unavailable { retry_after: second },
        ];
        for trouble in kinds.map(provider).into_iter().chain(others) {
            assert_eq!(read_trouble(&trouble_json(&trouble)), trouble);
        }
    }
}
