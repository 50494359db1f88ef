//! Converts a document tree to plain JSON.

use super::node::{Node, Value};
use crate::masked_string::MaskedString;
use serde_json::{Map, Number, Value as Json};

/// Returns the tree as JSON, with each text in this form.
pub(crate) fn json_tree(node: &Node, form: fn(&MaskedString) -> &str) -> Json {
    match &node.value {
        Value::Null | Value::Broken => Json::Null,
        Value::Bool(it) => Json::Bool(*it),
        Value::Str(it) => Json::String(form(&it.text).to_owned()),
        Value::Int(it) => Number::from_i128(*it).map_or(Json::Null, Json::Number),
        Value::Float(it) => Number::from_f64(*it).map_or(Json::Null, Json::Number),
        Value::Seq(items) => Json::Array(items.iter().map(|it| json_tree(it, form)).collect()),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|it| (it.key.clone(), json_tree(&it.node, form)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
    }
}
