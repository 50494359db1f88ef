//! `wharf conversations`: lists, shows and deletes the agent's conversations in the database.

use super::run::kept::open;
use crate::{
    app::App, cli::ConversationsCommand, command_error::CommandError, content::printable, exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};
use wharf_runtime::time_format::rfc3339;
use wharf_store::{ConversationRow, EntryRow, Store, StoreError};

/// Maximum number of conversations that are listed.
const MAX_LISTED: usize = 1_000;
/// Number of entries that are read at once.
const READ_BATCH: usize = 500;

pub(super) async fn run(app: App, command: ConversationsCommand) -> Exit {
    let output = app.output;
    let store = match open(&app).await {
        Ok(store) => store,
        Err(error) => return output.fail(&error),
    };
    let done = match &command {
        ConversationsCommand::List => list(&store, output).await,
        ConversationsCommand::Show { id } => show(&store, id, output).await,
        ConversationsCommand::Delete { id } => delete(&store, id, output).await,
    };
    store.close().await;
    match done {
        Ok(()) => Exit::Success,
        Err(error) => output.fail(&error),
    }
}

async fn list(store: &Store, output: Output) -> Result<(), CommandError> {
    let rows = store.conversations(None, None, MAX_LISTED).await.map_err(|it| unavailable(&it))?;
    if output.json {
        output.json(&json!({ "conversations": rows.iter().map(conversation).collect::<Vec<Value>>() }));
        return Ok(());
    }
    for row in rows {
        let (state, title) = (row.shown_state(), printable(&row.title));
        output.data(&format!("{}  {}  {state}  {title}\n", row.id, time(row.updated_at)));
    }
    Ok(())
}

async fn show(store: &Store, id: &str, output: Output) -> Result<(), CommandError> {
    let row = store.conversation(id, None).await.map_err(|it| unavailable(&it))?;
    let row = row.ok_or_else(|| unknown(id))?;
    let (mut entries, mut after) = (Vec::new(), 0);
    loop {
        let read = store.entries(id, after, READ_BATCH).await.map_err(|it| unavailable(&it))?;
        let Some(last) = read.last() else { break };
        after = last.seq;
        entries.extend(read);
    }
    if output.json {
        let mut document = conversation(&row);
        document["entries"] = entries.iter().map(entry).collect::<Vec<Value>>().into();
        output.json(&document);
        return Ok(());
    }
    for row in &entries {
        for line in lines(row) {
            output.data(&format!("{:8}  {}\n", row.kind, printable(&line)));
        }
    }
    Ok(())
}

async fn delete(store: &Store, id: &str, output: Output) -> Result<(), CommandError> {
    if !store.delete_conversation(id, None).await.map_err(|it| unavailable(&it))? {
        return Err(unknown(id));
    }
    match output.json {
        true => output.json(&json!({ "deleted": id })),
        false => output.print_info(&format!("deleted {id}")),
    }
    Ok(())
}

/// Returns the lines that describe an entry.
fn lines(row: &EntryRow) -> Vec<String> {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |content: &Value| -> Vec<String> {
        content.as_array().into_iter().flatten().map(|it| text(&it["text"])).collect()
    };
    match row.kind.as_str() {
        "user" => texts(&body["content"]),
        "answer" => body["parts"].as_array().into_iter().flatten().filter_map(part).collect(),
        "started" => vec![format!("{} ({})", text(&body["tool_id"]), text(&body["why"]))],
        "result" => vec![format!("{}: {}", text(&body["status"]), texts(&body["content"]).join(" "))],
        "approval" => {
            let word = if body["is_allowed"] == true { "allowed" } else { "denied" };
            vec![format!("{word} by {}", text(&body["by"]))]
        }
        "ending" => vec![text(&body["status"])],
        _ => vec![["summary", "notice", "message"].map(|key| text(&body[key])).concat()],
    }
}

/// Describes a part of an answer. Reasoning is left out.
fn part(part: &Value) -> Option<String> {
    if let Some(text) = part["text"]["text"].as_str() {
        return Some(text.to_owned());
    }
    let call = part.get("call")?;
    Some(format!("→ {} {}", call["name"].as_str()?, call["arguments"].as_str()?))
}

fn conversation(row: &ConversationRow) -> Value {
    json!({ "id": row.id, "title": row.title, "state": row.shown_state(), "principal": row.principal,
        "provider": row.provider, "model": row.model,
        "usage": { "input": row.input_tokens, "output": row.output_tokens },
        "created_at": time(row.created_at), "updated_at": time(row.updated_at) })
}

fn entry(row: &EntryRow) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    json!({ "seq": row.seq, "run_id": row.run_id, "kind": row.kind, "call_id": row.call_id, "body": body,
        "created_at": time(row.created_at) })
}

fn time(micros: i64) -> String {
    rfc3339(UNIX_EPOCH + Duration::from_micros(micros.max(0).cast_unsigned()))
}

fn unknown(id: &str) -> CommandError {
    let complaint = format!("there is no conversation '{id}'\nhelp: `wharf conversations list` lists them");
    CommandError::new("MCPError", &complaint, Exit::NotFound)
}

fn unavailable(error: &StoreError) -> CommandError {
    CommandError::new("MCPError", &format!("the database failed: {error}"), Exit::Unavailable)
}
