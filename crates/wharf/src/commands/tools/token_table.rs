//! `wharf tools --tokens`: shows how much of a model's context each tool takes.

use crate::content::printable;
use serde_json::{Value, json};
use wharf_runtime::tokens::estimate_definition;

/// Adds the estimate to the JSON form of each tool. Returns the total.
pub(super) fn add_tokens(tools: &mut [Value]) -> u64 {
    let mut total = 0;
    for tool in tools {
        let tokens = tokens(tool);
        tool["tokens"] = json!(tokens);
        total += tokens;
    }
    total
}

/// Formats the tools of each server with their tokens, largest first, and the total.
pub(super) fn token_table<'a>(servers: impl Iterator<Item = (&'a str, &'a str)>, tools: &[Value]) -> String {
    let mut out = String::new();
    let mut total = 0;
    for (name, shown) in servers {
        let own = tools.iter().filter(|it| it["source"] == name);
        let mut own: Vec<(u64, &str)> =
            own.map(|it| (tokens(it), it["name"].as_str().unwrap_or_default())).collect();
        own.sort_by(|one, two| two.0.cmp(&one.0).then(one.1.cmp(two.1)));
        let sum: u64 = own.iter().map(|it| it.0).sum();
        out.push_str(&format!("{shown} ({}): {sum} tokens\n", own.len()));
        for (tokens, name) in own {
            out.push_str(&format!("  {tokens:>6}  {}\n", printable(name)));
        }
        total += sum;
    }
    out + &format!("total: {total} tokens (estimated)\n")
}

fn tokens(tool: &Value) -> u64 {
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    estimate_definition(text("name"), text("description"), &tool["input_schema"])
}
