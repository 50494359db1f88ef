//! Reads what belongs to a message of the user from servers: resources and prompts.
//!
//! Every interface of the agent uses it, so that a resource means the same everywhere.

use crate::message_context::{ContentError, UserMessage, prompt_message, resource_attachments};
use std::sync::Arc;
use wharf_agent::Attachment;
use wharf_mcp::{
    Raw, RpcError,
    model::{PromptResult, ReadResult},
};
use wharf_runtime::{Caller, Catalog, Fault, Handle, catalog::Discovery};

/// Reads resources and prompts of servers.
pub(crate) struct MessageReader<'a> {
    pub(crate) handle: &'a Handle,
    pub(crate) catalog: &'a Catalog,
    /// Client on whose behalf servers are asked.
    pub(crate) caller: Option<&'a Caller>,
}

/// Reason why something cannot be added to a message.
#[derive(Debug)]
pub(crate) enum MessageError {
    /// No server has this resource.
    NoResource(String),
    /// A server refused the resource, or could not be asked.
    Resource(String, Arc<Fault>),
    /// A server refused the prompt, or could not be asked.
    Prompt(Arc<Fault>),
    /// The server returned something that the model cannot be shown.
    Content(ContentError),
}

impl MessageReader<'_> {
    /// Reads a resource as attachments: from this server, or from the one that has it.
    pub(crate) async fn resource(
        &self,
        uri: &str,
        source: Option<&str>,
    ) -> Result<Vec<Attachment>, MessageError> {
        let found = self.find_resource(uri, source).await;
        let (source, result) = found.map_err(|fault| match fault {
            None => MessageError::NoResource(uri.to_owned()),
            Some(fault) => MessageError::Resource(uri.to_owned(), fault),
        })?;
        resource_attachments(result, &source).map_err(MessageError::Content)
    }

    /// Gets a prompt of a server as messages.
    pub(crate) async fn prompt(&self, name: &str, arguments: &Raw) -> Result<UserMessage, MessageError> {
        let result = self.handle.prompt(name, Some(arguments), self.caller).await;
        let result = PromptResult::read(&result.map_err(MessageError::Prompt)?);
        let entry = self.catalog.prompt(name).map(|it| (it.source.as_str(), it.prompt.name.as_str()));
        prompt_message(result, entry.unwrap_or(("", name))).map_err(MessageError::Content)
    }

    /// Reads a resource from the server that lists it. If none does, tries every connected server in turn. The error is
    /// that of the last server, or `None` if no server has it.
    pub(crate) async fn find_resource(
        &self,
        uri: &str,
        source: Option<&str>,
    ) -> Result<(String, ReadResult), Option<Arc<Fault>>> {
        let mut refused = None;
        for name in self.servers_to_ask(uri, source) {
            match self.handle.read(&name, uri, self.caller).await {
                Ok(raw) => return Ok((name, ReadResult::read(&raw))),
                // This server does not support resources, so its error does not matter.
                Err(fault) if fault.rpc.as_ref().is_some_and(|it| it.code == RpcError::METHOD_NOT_FOUND) => {}
                Err(fault) => refused = Some(fault),
            }
        }
        Err(refused)
    }

    fn servers_to_ask(&self, uri: &str, source: Option<&str>) -> Vec<String> {
        let sources = self.handle.sources();
        let names = || sources.iter().map(|it| it.source.name.expose());
        if let Some(wanted) = source {
            return names().filter(|it| *it == wanted).map(str::to_owned).collect();
        }
        let lists =
            |name: &&str| self.catalog.resources.iter().any(|it| it.source == *name && it.item.uri == uri);
        let owners: Vec<String> = names().filter(lists).map(str::to_owned).collect();
        if !owners.is_empty() {
            return owners;
        }
        let is_connected = |name: &&str| !matches!(self.catalog.discovery(name), Some(Discovery::Failed(_)));
        names().filter(is_connected).map(str::to_owned).collect()
    }
}
