//! Reports the result of an import: notes, refused servers with reasons, and a count.

use crate::{
    import::{Imported, ImportedServer, Reason},
    output::Output,
};
use serde_json::{Value, json};

/// Prints the report as text.
pub(super) fn print(imported: &Imported, output: Output) {
    for note in &imported.notes {
        output.print_info(&format!("note: {note}"));
    }
    for server in refused(imported) {
        let mut reasons = server.refused.iter();
        let first = reasons.next().map(|it| it.message.as_str()).unwrap_or_default();
        output.print_info(&format!("refused: `{}`: {first}", crate::import::printable(&server.name)));
        let more = reasons.map(|it| it.message.as_str());
        let hints = server.refused.iter().filter_map(|it| it.hint.as_deref()).map(|it| format!("help: {it}"));
        for line in more.map(str::to_owned).chain(hints) {
            output.print_info(&format!("  {}", crate::import::printable(&line)));
        }
    }
    for server in missing_values(imported) {
        let place = server.env_file.as_ref().map_or_else(String::new, |it| format!(" (`{it}`)"));
        let names = server.needs.join(", ");
        output.print_info(&format!(
            "needs a value: `{}`: {names}{place}",
            crate::import::printable(&server.name)
        ));
    }
}

/// Formats the count: `3 imported, 1 needs a value, 2 refused`.
pub(super) fn count(imported: &Imported) -> String {
    let (refused, missing_values) = (refused(imported).count(), missing_values(imported).count());
    let needs = if missing_values == 1 { "needs" } else { "need" };
    format!(
        "{} imported, {missing_values} {needs} a value, {refused} refused",
        imported.servers.len() - refused
    )
}

/// Returns the report as JSON members. The lists are empty if nothing was imported.
pub(super) fn json(imported: Option<&Imported>) -> [(&'static str, Value); 4] {
    let Some(imported) = imported else {
        return ["imported", "needs_value", "refused", "notes"].map(|it| (it, json!([])));
    };
    let reason = |it: &Reason| json!({ "message": it.message, "hint": it.hint });
    let accepted = imported.servers.iter().filter(|it| it.refused.is_empty());
    let notes: Value =
        imported.notes.iter().map(|it| json!({ "server": it.server, "text": it.text })).collect();
    [
        ("imported", accepted.map(|it| it.name.as_str()).collect()),
        (
            "needs_value",
            missing_values(imported)
                .map(|it| json!({ "server": it.name, "variables": it.needs, "env_file": it.env_file }))
                .collect(),
        ),
        (
            "refused",
            refused(imported)
                .map(|it| {
                    let reasons: Vec<Value> = it.refused.iter().map(reason).collect();
                    json!({ "server": it.name, "reasons": reasons })
                })
                .collect(),
        ),
        ("notes", notes),
    ]
}

fn refused(imported: &Imported) -> impl Iterator<Item = &ImportedServer> {
    imported.servers.iter().filter(|it| !it.refused.is_empty())
}

fn missing_values(imported: &Imported) -> impl Iterator<Item = &ImportedServer> {
    imported.servers.iter().filter(|it| it.refused.is_empty() && !it.needs.is_empty())
}
