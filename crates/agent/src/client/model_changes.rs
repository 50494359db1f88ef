//! Applies the changes of a request to the options of a model.

use crate::{
    dialect::Dialect,
    model::{ModelChanges, ModelOptions},
};
use serde_json::{Map, Value};

/// Applies the changes. The error names the option that the dialect does not have.
pub(super) fn apply_changes(
    changes: &ModelChanges,
    dialect: Dialect,
    options: &mut ModelOptions,
) -> Result<(), &'static str> {
    options.temperature = changes.temperature.or(options.temperature);
    options.top_p = changes.top_p.or(options.top_p);
    let lower = |wanted: u64| options.max_tokens.map_or(wanted, |it| it.min(wanted));
    options.max_tokens = changes.max_tokens.map(lower).or(options.max_tokens);
    let stop = Some(Value::from(changes.stop.clone())).filter(|_| !changes.stop.is_empty());
    let seed = changes.seed.map(Value::from);
    let (object, stop_key, seed_key) = match dialect {
        Dialect::Chat => (None, Some("stop"), Some("seed")),
        Dialect::Responses => (None, None, None),
        Dialect::Anthropic => (None, Some("stop_sequences"), None),
        Dialect::Gemini => (Some("generationConfig"), Some("stopSequences"), Some("seed")),
        Dialect::Ollama => (Some("options"), Some("stop"), Some("seed")),
    };
    for (name, key, value) in [("stop", stop_key, stop), ("seed", seed_key, seed)] {
        let Some(value) = value else { continue };
        let key = key.ok_or(name)?;
        let target = match object {
            None => &mut options.extra,
            Some(object) => {
                let entry = options.extra.entry(object).or_insert_with(|| Map::new().into());
                entry.as_object_mut().ok_or(name)?
            }
        };
        target.insert(key.to_owned(), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wharf_config::Provider;

    #[test]
    fn options_go_where_the_dialect_has_them() {
        let changes = ModelChanges {
            temperature: Some(0.5),
            max_tokens: Some(50),
            seed: Some(7),
            stop: vec!["END".into()],
            ..ModelChanges::default()
        };
        for (dialect, expected) in [
            (Dialect::Chat, Ok(json!({ "stop": ["END"], "seed": 7 }))),
            (Dialect::Responses, Err("stop")),
            (Dialect::Anthropic, Err("seed")),
            (Dialect::Gemini, Ok(json!({ "generationConfig": { "stopSequences": ["END"], "seed": 7 } }))),
            (Dialect::Ollama, Ok(json!({ "options": { "stop": ["END"], "seed": 7 } }))),
        ] {
            let mut options =
                ModelOptions { max_tokens: Some(20), ..ModelOptions::new(Provider::OpenAi, "m") };
            let applied = apply_changes(&changes, dialect, &mut options);
            assert_eq!(applied.map(|()| Value::Object(options.extra.clone())), expected, "{dialect:?}");
            assert_eq!(
                (options.temperature, options.max_tokens),
                (Some(0.5), Some(20)),
                "the lower limit stays"
            );
        }
    }
}
