//! `wharf why CONVERSATION [CALL]`: what happened in a conversation, and who or what decided about each call.

mod explanation;
mod rendering;

use crate::{
    app::App, command_error::CommandError, commands::run::kept::open, conversations::Conversations,
    exit::Exit,
};
use explanation::ConversationExplanation;
use wharf_store::{ConversationRow, Store, StoreError};

/// Explains a conversation, or one call of it.
pub(super) async fn run(app: App, id: &str, call_id: Option<&str>) -> Exit {
    let output = app.output;
    let store = match open(&app).await {
        Ok(store) => store,
        Err(error) => return output.fail(&error),
    };
    let explained = explain(&app, &store, id).await;
    store.close().await;
    let explanation = match explained {
        Ok(explanation) => explanation,
        Err(error) => return output.fail(&error),
    };
    let Some(call_id) = call_id else {
        match output.json {
            true => output.json(&explanation.to_json()),
            false => output.data(&rendering::conversation(&explanation)),
        }
        return Exit::Success;
    };
    let Some(call) = explanation.find_call(call_id) else {
        let complaint =
            format!("the conversation has no call '{call_id}'\nhelp: `wharf why {id}` lists them");
        return output.fail(&CommandError::new("MCPError", &complaint, Exit::NotFound));
    };
    match output.json {
        true => output.json(&call.to_json()),
        false => output.data(&rendering::call(call)),
    }
    Exit::Success
}

async fn explain(app: &App, store: &Store, id: &str) -> Result<ConversationExplanation, CommandError> {
    let unavailable = |error: StoreError| {
        CommandError::new("MCPError", &format!("the database failed: {error}"), Exit::Unavailable)
    };
    let row: Option<ConversationRow> = store.conversation(id, None).await.map_err(unavailable)?;
    let row = row.ok_or_else(|| {
        let complaint =
            format!("there is no conversation '{id}'\nhelp: `wharf conversations list` lists them");
        CommandError::new("MCPError", &complaint, Exit::NotFound)
    })?;
    let conversations = Conversations::new(store.clone(), app.redactor().clone());
    let entries = conversations.read_with_runs(id).await.map_err(unavailable)?;
    Ok(ConversationExplanation::of(row, entries))
}
