//! Reads the lists of one server: tools, prompts, resources and templates.

use super::freshness::FreshnessByList;
use crate::{Fault, argument_schema::Schema, lists_to_refresh::ALL_LISTS};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use wharf_mcp::{
    Class, Failure, Raw, RpcError, Session,
    model::{Item, Prompt, Resource, Template, Tool},
    session::{List, Listing},
};

/// Maximum length of a shown description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// The `_meta` key under which a tool declares aliases of its arguments: `{"alias": "name"}`.
const ALIASES: &str = "wharf/aliases";

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

/// A tool as its server lists it, without a shown name.
#[derive(Debug)]
pub struct OfferedTool {
    /// The name on the wire.
    pub wire_name: String,
    /// The description, truncated if it is too long.
    pub description: Option<String>,
    /// The parsed tool, unless quarantined.
    pub tool: Option<Tool>,
    /// The complete definition as the server sent it.
    pub raw: Raw,
    /// SHA-256 of the definition's canonical JSON.
    pub definition_hash: String,
    /// Reason why the tool cannot be called, if quarantined.
    pub quarantined: Option<String>,
    pub(crate) schema: Option<Schema>,
    /// Aliases of arguments, each with the real name.
    aliases: BTreeMap<String, String>,
}

impl Offer {
    /// Reads the given lists of a server, in parallel.
    pub async fn read(session: &Session, lists: &[List]) -> Result<Offer, Failure> {
        let mut offer = Offer::default();
        offer.refresh(session, lists).await?;
        Ok(offer)
    }

    /// Reads the given lists again. Returns the lists that could not be read although the server is reachable. Fails,
    /// and changes nothing, if the tools could not be read or the session is lost, because a server is useless
    /// without its tools.
    pub(crate) async fn refresh(
        &mut self,
        session: &Session,
        lists: &[List],
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
            self.tools = self.read_tools(&listing);
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
    fn read_tools(&self, listing: &Listing) -> Vec<Arc<OfferedTool>> {
        let known: HashMap<&[u8], &Arc<OfferedTool>> =
            self.tools.iter().filter(|it| !it.is_duplicate()).map(|it| (it.raw.as_bytes(), it)).collect();
        let tools = listing.items.iter().map(|raw| match known.get(raw.as_bytes()) {
            Some(tool) => Arc::clone(tool),
            None => Arc::new(OfferedTool::read(raw)),
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

const DUPLICATE_NAME: &str = "the server lists several different tools with this name";

impl OfferedTool {
    fn read(raw: &Raw) -> OfferedTool {
        let raw = raw.detached();
        let read = match Item::<Tool>::read(&raw) {
            Item::Invalid(_, why) => Err(why),
            Item::Valid(tool) => match tool.header_flaw() {
                Some(flaw) => Err(flaw.to_owned()),
                None => Schema::compile(&tool.input_schema).map(|schema| (tool, schema)),
            },
        };
        let (tool, schema, quarantined) = match read {
            Ok((tool, schema)) => (Some(tool), Some(schema), None),
            Err(why) => (None, None, Some(why)),
        };
        let text = |key: &str| raw.member(key).and_then(|it| it.decode::<String>().ok());
        OfferedTool {
            wire_name: text("name").filter(|it| !it.is_empty()).unwrap_or_else(|| "unnamed".to_owned()),
            description: text("description").map(truncate_description),
            definition_hash: definition_hash(&raw),
            tool,
            schema,
            quarantined,
            aliases: aliases(&raw),
            raw,
        }
    }

    fn is_duplicate(&self) -> bool {
        self.quarantined.as_deref() == Some(DUPLICATE_NAME)
    }

    /// Returns a quarantined copy of a tool whose name is ambiguous.
    fn as_duplicate(&self) -> OfferedTool {
        OfferedTool {
            wire_name: self.wire_name.clone(),
            description: self.description.clone(),
            tool: None,
            raw: self.raw.clone(),
            definition_hash: self.definition_hash.clone(),
            quarantined: Some(DUPLICATE_NAME.to_owned()),
            schema: None,
            aliases: BTreeMap::new(),
        }
    }

    /// Returns the aliases of arguments, each with the name in the schema.
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// Returns the arguments with every alias replaced by the name in the schema.
    pub(crate) fn resolve_aliases(&self, arguments: &Raw) -> Option<Raw> {
        if self.aliases.is_empty() || !arguments.is_object() {
            return None;
        }
        let mut named = arguments.clone();
        for (alias, name) in self.aliases.iter().filter(|(_, name)| arguments.member(name).is_none()) {
            if let Some(value) = named.member(alias) {
                named = named.without(&[alias]).with(name, &value);
            }
        }
        Some(named)
    }
}

/// Reads the aliases of arguments from a tool's `_meta`.
fn aliases(raw: &Raw) -> BTreeMap<String, String> {
    let declared = raw.member("_meta").and_then(|it| it.member(ALIASES));
    declared.map(|it| it.decode_or_default()).unwrap_or_default()
}

/// Removes identical duplicates. Quarantines different tools with the same name, because a call could not select one
/// of them.
fn deduplicate(tools: Vec<Arc<OfferedTool>>) -> Vec<Arc<OfferedTool>> {
    let mut hashes: HashMap<String, Vec<String>> = HashMap::new();
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

fn truncate_description(mut description: String) -> String {
    description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
    description
}

/// Hashes a definition independently of its JSON formatting.
fn definition_hash(raw: &Raw) -> String {
    let canonical = raw.decode::<Value>().ok().and_then(|it| serde_json_canonicalizer::to_vec(&it).ok());
    // JSON that has no canonical form, such as a number beyond double precision, is hashed as received.
    let canonical = canonical.unwrap_or_else(|| raw.as_bytes().to_vec());
    Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("JSON")
    }

    #[test]
    fn definition_hash_ignores_formatting() {
        let hash = |text: &str| definition_hash(&raw(text));
        assert_eq!(
            hash(r#"{"name":"a","inputSchema":{}}"#),
            hash(r#"{ "inputSchema": {}, "name": "\u0061" }"#)
        );
        assert_ne!(hash(r#"{"name":"a"}"#), hash(r#"{"name":"b"}"#));
        assert_ne!(hash(r#"{"name":"a","x":1e99999}"#), hash(r#"{"name":"b","x":1e99999}"#));
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
        let tools = Offer::default().read_tools(&listing);
        let found: Vec<(&str, bool)> =
            tools.iter().map(|it| (it.wire_name.as_str(), it.quarantined.is_some())).collect();
        assert_eq!(found, [("same", false), ("other", true), ("other", true), ("unnamed", true)]);
    }
}
