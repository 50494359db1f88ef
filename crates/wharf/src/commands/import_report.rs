//! Reports the result of an import: notes, refused servers with reasons, and a count.

use crate::{
    import::{Imported, ImportedServer, Reason},
    output::Output,
};
use serde_json::{Value, json};

/// Prints the report as text.
pub(super) fn say(made: &Imported, output: Output) {
    for note in &made.notes {
        output.say(&format!("note: {note}"));
    }
    for server in refused(made) {
        let mut reasons = server.refused.iter();
        let first = reasons.next().map(|it| it.message.as_str()).unwrap_or_default();
        output.say(&format!("refused: `{}`: {first}", crate::import::printable(&server.name)));
        let more = reasons.map(|it| it.message.as_str());
        let hints = server.refused.iter().filter_map(|it| it.hint.as_deref()).map(|it| format!("help: {it}"));
        for line in more.map(str::to_owned).chain(hints) {
            output.say(&format!("  {}", crate::import::printable(&line)));
        }
    }
    for server in needing(made) {
        let place = server.env_file.as_ref().map_or_else(String::new, |it| format!(" (`{it}`)"));
        let names = server.needs.join(", ");
        output.say(&format!("needs a value: `{}`: {names}{place}", crate::import::printable(&server.name)));
    }
}

/// Formats the count: `3 imported, 1 needs a value, 2 refused`.
pub(super) fn count(made: &Imported) -> String {
    let (refused, needing) = (refused(made).count(), needing(made).count());
    let needs = if needing == 1 { "needs" } else { "need" };
    format!("{} imported, {needing} {needs} a value, {refused} refused", made.servers.len() - refused)
}

/// Returns the report as JSON members. The lists are empty if nothing was imported.
pub(super) fn json(made: Option<&Imported>) -> [(&'static str, Value); 4] {
    let Some(made) = made else {
        return ["imported", "needs_value", "refused", "notes"].map(|it| (it, json!([])));
    };
    let reason = |it: &Reason| json!({ "message": it.message, "hint": it.hint });
    let accepted = made.servers.iter().filter(|it| it.refused.is_empty());
    let notes: Value = made.notes.iter().map(|it| json!({ "server": it.server, "text": it.text })).collect();
    [
        ("imported", accepted.map(|it| it.name.as_str()).collect()),
        (
            "needs_value",
            needing(made)
                .map(|it| json!({ "server": it.name, "variables": it.needs, "env_file": it.env_file }))
                .collect(),
        ),
        (
            "refused",
            refused(made)
                .map(|it| {
                    let reasons: Vec<Value> = it.refused.iter().map(reason).collect();
                    json!({ "server": it.name, "reasons": reasons })
                })
                .collect(),
        ),
        ("notes", notes),
    ]
}

fn refused(made: &Imported) -> impl Iterator<Item = &ImportedServer> {
    made.servers.iter().filter(|it| !it.refused.is_empty())
}

fn needing(made: &Imported) -> impl Iterator<Item = &ImportedServer> {
    made.servers.iter().filter(|it| it.refused.is_empty() && !it.needs.is_empty())
}
