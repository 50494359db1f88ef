//! Lowers `record:`.

use crate::{
    diagnostic::Diagnostics,
    node::Value,
    place::Placed,
    raw::{Field, RawRecord},
    read::Reader,
    record_settings::{RecordSettings, TextPattern},
};

const CLASS: &str = "ConfigError";

/// Lowers the settings of recordings.
pub(super) fn record(field: Option<Field>, diagnostics: &mut Diagnostics) -> RecordSettings {
    let mut settings = RecordSettings::default();
    let Some(raw) = field.filter(|it| !matches!(it.node.value, Value::Null)) else { return settings };
    let Some(RawRecord { ignore, redact }) = RawRecord::read(raw.node, diagnostics) else { return settings };
    if let Some(ignore) = ignore {
        let Value::Map(pairs) = ignore.node.value else {
            diagnostics.wrong_type(CLASS, "record.ignore", "a mapping of lists", &ignore.node);
            return settings;
        };
        for pair in pairs {
            let field = Field { key_at: pair.key_at, node: pair.node };
            let pointers = Reader { class: CLASS, diagnostics }.texts("record.ignore", Some(field));
            let pointers = pointers.map(|it| it.value).unwrap_or_default();
            for Placed { value, at } in pointers.iter().filter(|it| !it.value.expose().starts_with('/')) {
                diagnostics.not_a_pointer(*at, value.shown());
            }
            settings
                .ignore
                .insert(pair.key, pointers.iter().map(|it| it.value.expose().to_owned()).collect());
        }
    }
    let patterns = Reader { class: CLASS, diagnostics }.text_map("record.redact", redact).unwrap_or_default();
    for (name, pattern) in patterns {
        let is_word = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        if name.value.is_empty() || !name.value.chars().all(is_word) {
            diagnostics.not_a_redaction_name(name.at, &name.value);
        }
        match TextPattern::new(pattern.value.expose()) {
            Ok(compiled) => _ = settings.redact.insert(name.value, compiled),
            Err(why) => diagnostics.not_a_pattern(pattern.at, &why),
        }
    }
    settings
}
