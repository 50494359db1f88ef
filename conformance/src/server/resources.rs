//! Resource contents.

use crate::fixtures::{Answer, PICTURE, invalid};
use serde_json::{Value, json};

pub(crate) fn read(params: &Value) -> Answer {
    let uri = params["uri"].as_str().unwrap_or_default();
    let text = |kind: &str, text: &str| json!({ "uri": uri, "mimeType": kind, "text": text });
    let held = match uri {
        "test://static-text" => text("text/plain", "This is the content of the static text resource."),
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PICTURE }),
        "test://watched-resource" => text("text/plain", "This is the content of the watched resource."),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| invalid("the resource is unknown", json!({ "uri": uri })))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            text("application/json", &data.to_string())
        }
    };
    Ok(json!({ "contents": [held] }))
}
