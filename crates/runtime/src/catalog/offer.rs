//! Reads the lists of one server: tools, prompts, resources and templates.

use super::{freshness::FreshnessByList, offered_tool::OfferedTool};
use crate::{Fault, lists_to_refresh::ALL_LISTS};
use std::{collections::HashMap, sync::Arc};
use wharf_config::Overrides;
use wharf_mcp::{
    Class, Failure, RpcError, Session,
    model::{Item, Prompt, Resource, Template},
    session::{List, Listing},
};

/// Everything that one server offers.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Its tools.
    pub tools: Vec<Arc<OfferedTool>>,
    /// Its prompts.
    pub prompts: Vec<Item<Prompt>>,
    /// Its resources.
    pub resources: Vec<Item<Resource>>,
    /// Its resource templates.
    pub templates: Vec<Item<Template>>,
    /// Cache lifetimes of the lists.
    pub(crate) fresh: FreshnessByList,
    /// Lists that the server offers but that could not be read, with the faults. Their previous entries remain.
    pub(crate) unread: Vec<(List, Arc<Fault>)>,
}

impl Offer {
    /// Reads the given lists of a server, in parallel.
    pub async fn read(session: &Session, lists: &[List]) -> Result<Offer, Failure> {
        let mut offer = Offer::default();
        offer.refresh(session, lists, &Overrides::default()).await?;
        Ok(offer)
    }

    /// Reads the given lists again. Returns the lists that could not be read although the server is reachable. Fails,
    /// and changes nothing, if the tools could not be read or the session is lost, because a server is useless
    /// without its tools.
    pub(crate) async fn refresh(
        &mut self,
        session: &Session,
        lists: &[List],
        overrides: &Overrides,
    ) -> Result<Vec<(List, Failure)>, Failure> {
        let wanted = async |list: List| match lists.contains(&list) {
            true => session.list(list).await.map(Some),
            false => Ok(None),
        };
        let reads_tools = lists.contains(&List::Tools);
        let optional = async |list: List| match wanted(list).await {
            Ok(listing) => Ok(Ok(listing)),
            Err(failure) if !session.is_over() && affects_one_list_only(&failure, reads_tools) => {
                Ok(Err(failure))
            }
            Err(failure) => Err(failure),
        };
        let (tools, prompts, resources, templates) = tokio::try_join!(
            wanted(List::Tools),
            optional(List::Prompts),
            optional(List::Resources),
            optional(List::Templates)
        )?;
        let mut unread = Vec::new();
        let mut readable = |list: List, listing: Result<Option<Listing>, Failure>| match listing {
            Ok(listing) => listing,
            // Many servers have resources but no templates and do not implement this method.
            Err(failure)
                if list == List::Templates && failure.rpc_code() == Some(RpcError::METHOD_NOT_FOUND) =>
            {
                Some(Listing::default())
            }
            Err(failure) => {
                unread.push((list, failure));
                None
            }
        };
        let prompts = readable(List::Prompts, prompts);
        let resources = readable(List::Resources, resources);
        let templates = readable(List::Templates, templates);
        let read = [&tools, &prompts, &resources, &templates].into_iter().zip(ALL_LISTS);
        for (listing, list) in read.filter_map(|(listing, list)| Some((listing.as_ref()?, list))) {
            self.fresh.note(list, listing);
        }
        if let Some(listing) = tools {
            self.tools = self.read_tools(&listing, overrides);
        }
        self.prompts = prompts.map_or_else(|| std::mem::take(&mut self.prompts), |it| it.read());
        self.resources = resources.map_or_else(|| std::mem::take(&mut self.resources), |it| it.read());
        self.templates = templates.map_or_else(|| std::mem::take(&mut self.templates), |it| it.read());
        Ok(unread)
    }

    /// Replaces the faults recorded for these lists.
    pub(crate) fn note_unread(&mut self, lists: &[List], unread: Vec<(List, Arc<Fault>)>) {
        self.unread.retain(|(list, _)| !lists.contains(list));
        self.unread.extend(unread);
    }

    /// Parses the tools of a listing. Reuses the parsed tools whose definition has not changed.
    fn read_tools(&self, listing: &Listing, overrides: &Overrides) -> Vec<Arc<OfferedTool>> {
        let known: HashMap<&[u8], &Arc<OfferedTool>> =
            self.tools.iter().filter(|it| !it.is_duplicate()).map(|it| (it.listed.as_bytes(), it)).collect();
        let tools = listing.items.iter().map(|raw| match known.get(raw.as_bytes()) {
            Some(tool) => Arc::clone(tool),
            None => Arc::new(OfferedTool::read(raw, overrides)),
        });
        deduplicate(tools.collect())
    }
}

/// Returns whether a failure concerns one list only and not the whole server.
fn affects_one_list_only(failure: &Failure, reads_tools: bool) -> bool {
    match failure.class {
        Class::Rpc | Class::Protocol => true,
        // If the tools were read in parallel, the server is reachable.
        Class::Timeout => reads_tools,
        Class::Connect | Class::Closed => false,
    }
}

/// Removes identical duplicates. Quarantines different tools with the same name, because a call could not select one
/// of them.
fn deduplicate(tools: Vec<Arc<OfferedTool>>) -> Vec<Arc<OfferedTool>> {
    let mut hashes: HashMap<Arc<str>, Vec<String>> = HashMap::new();
    let mut kept = Vec::with_capacity(tools.len());
    for tool in tools {
        let known = hashes.entry(tool.wire_name.clone()).or_default();
        if !known.contains(&tool.definition_hash) {
            known.push(tool.definition_hash.clone());
            kept.push(tool);
        }
    }
    let as_duplicate = |it: Arc<OfferedTool>| match hashes[&it.wire_name].len() {
        1 => it,
        _ => Arc::new(it.as_duplicate()),
    };
    kept.into_iter().map(as_duplicate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_mcp::Raw;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("JSON")
    }

    #[test]
    fn identical_duplicates_merge_and_different_ones_are_quarantined() {
        let listing = Listing {
            items: vec![
                raw(r#"{"name":"same","inputSchema":{}}"#),
                raw(r#"{"inputSchema":{},"name":"same"}"#),
                raw(r#"{"name":"other","inputSchema":{}}"#),
                raw(r#"{"name":"other","inputSchema":{"type":"object"}}"#),
                raw(r#"{"name":"","inputSchema":{}}"#),
            ],
            ..Listing::default()
        };
        let tools = Offer::default().read_tools(&listing, &Overrides::default());
        let found: Vec<(&str, bool)> =
            tools.iter().map(|it| (&*it.wire_name, it.quarantined.is_some())).collect();
        assert_eq!(found, [("same", false), ("other", true), ("other", true), ("unnamed", true)]);
    }
}
