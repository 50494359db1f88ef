//! Remembers which client was asked to open a URL, so that the server's notification that the user has finished
//! reaches that client.

use super::{client_request::RequestKind, pending_input::CallIdentity};
use serde::Deserialize;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use wharf_mcp::{
    Raw, RpcError,
    serve::{Client, ClientRef},
    session::Era,
};
use wharf_runtime::Catalog;

/// Maximum number of open elicitations of all clients. The oldest are forgotten first.
const MAX_ELICITATIONS: usize = 1_000;

/// The error of a server that needs the user to open a URL before the request can succeed (2025-11-25).
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Open elicitations and the clients that were asked.
#[derive(Debug, Default)]
pub(super) struct Elicitations(Mutex<VecDeque<Elicitation>>);

#[derive(Debug)]
struct Elicitation {
    /// Two servers may use the same id.
    source: String,
    id: String,
    client: ClientRef,
}

impl Elicitations {
    /// Remembers a client of the handshake era. The other era has no such notification.
    pub(super) fn note(&self, source: &str, params: &Raw, client: &Client) {
        let id = elicitation_id(params).filter(|_| client.terms().era == Era::Legacy);
        let Some(id) = id else { return };
        let mut elicitations = self.elicitations();
        if elicitations.len() >= MAX_ELICITATIONS {
            elicitations.pop_front();
        }
        elicitations.push_back(Elicitation { source: source.to_owned(), id, client: client.downgrade() });
    }

    /// Remembers the client of a call that failed because the user has to open URLs first.
    pub(super) fn note_error(
        &self,
        error: &RpcError,
        call: &CallIdentity,
        catalog: &Catalog,
        client: &Client,
    ) {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Data {
            elicitations: Vec<Raw>,
        }
        if error.code != URL_ELICITATION_REQUIRED || call.kind() != RequestKind::Tool {
            return;
        }
        let Some(tool) = catalog.tool(call.name()) else { return };
        let data: Data = error.data.as_ref().map(Raw::decode_or_default).unwrap_or_default();
        data.elicitations.iter().for_each(|it| self.note(&tool.source, it, client));
    }

    /// Notifies the client that was asked.
    pub(super) fn complete(&self, source: &str, params: Raw) {
        let Some(id) = elicitation_id(&params) else { return };
        let mut elicitations = self.elicitations();
        let found = elicitations.iter().position(|it| it.source == source && it.id == id);
        let elicitation = found.and_then(|at| elicitations.remove(at));
        drop(elicitations);
        if let Some(Elicitation { client, .. }) = elicitation {
            client.notify("notifications/elicitation/complete", Some(params));
        }
    }

    fn elicitations(&self) -> MutexGuard<'_, VecDeque<Elicitation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn elicitation_id(params: &Raw) -> Option<String> {
    params.member("elicitationId")?.decode().ok()
}
