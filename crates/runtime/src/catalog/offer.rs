//! What one server offers, as it lists it.

use super::freshness::Freshnesses;
use crate::{Fault, schema::Schema, stale::LISTS};
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

/// The longest description that is shown.
const LONGEST_DESCRIPTION: usize = 16 * 1024;

/// The `_meta` key under which a tool names aliases of its arguments: `{"alias": "name"}`.
const ALIASES: &str = "wharf/aliases";

/// What one server offers.
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
    /// How long each list may be kept.
    pub(crate) fresh: Freshnesses,
    /// The lists that the server offers and could not be read, each with the reason; what was known of them stays.
    pub(crate) unread: Vec<(List, Arc<Fault>)>,
}

/// A tool, before it has a name of ours.
#[derive(Debug)]
pub struct OfferedTool {
    /// The name on the wire.
    pub wire_name: String,
    /// What it does.
    pub description: Option<String>,
    /// The tool, unless it is quarantined.
    pub tool: Option<Tool>,
    /// Its whole definition, as the server sent it.
    pub raw: Raw,
    /// SHA-256 over the canonical JSON of its definition.
    pub definition_hash: String,
    /// Why it cannot be called.
    pub quarantined: Option<String>,
    pub(crate) schema: Option<Schema>,
    /// Other names under which it takes arguments, each with the true one.
    aliases: BTreeMap<String, String>,
}

impl Offer {
    /// Reads some lists of a server, all at once.
    pub async fn read(session: &Session, lists: &[List]) -> Result<Offer, Failure> {
        let mut offer = Offer::default();
        offer.renew(session, lists).await?;
        Ok(offer)
    }

    /// Reads some lists again, and returns those that could not be read although the server is there. Without its tools a
    /// server is of no use: if those cannot be read, or the server is gone, everything stays as it was.
    pub(crate) async fn renew(
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
            Err(failure) if !session.is_over() && is_of_one_list(&failure, reads_tools) => Ok(Err(failure)),
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
            // Many servers have resources and no templates, and do not know the list.
            Err(failure) if list == List::Templates && is_unknown_method(&failure) => {
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
        let read = [&tools, &prompts, &resources, &templates].into_iter().zip(LISTS);
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

    /// Notes which of these lists could not be read.
    pub(crate) fn note_unread(&mut self, lists: &[List], unread: Vec<(List, Arc<Fault>)>) {
        self.unread.retain(|(list, _)| !lists.contains(list));
        self.unread.extend(unread);
    }

    /// The tools of a listing. What has not changed is not worked out again.
    fn read_tools(&self, listing: &Listing) -> Vec<Arc<OfferedTool>> {
        let known: HashMap<&[u8], &Arc<OfferedTool>> =
            self.tools.iter().filter(|it| !it.is_double()).map(|it| (it.raw.as_bytes(), it)).collect();
        let tools = listing.items.iter().map(|raw| match known.get(raw.as_bytes()) {
            Some(tool) => Arc::clone(tool),
            None => Arc::new(OfferedTool::read(raw)),
        });
        told_apart(tools.collect())
    }
}

/// Whether a failure says something about one list, and not about the server as a whole.
fn is_of_one_list(failure: &Failure, reads_tools: bool) -> bool {
    match failure.class {
        Class::Rpc | Class::Protocol => true,
        // Tools that were read in the meantime show that the server is there.
        Class::Timeout => reads_tools,
        Class::Connect | Class::Closed => false,
    }
}

fn is_unknown_method(failure: &Failure) -> bool {
    failure.rpc_code() == Some(RpcError::METHOD_NOT_FOUND)
}

const DOUBLE: &str = "the server lists several tools of this name, and they differ";

impl OfferedTool {
    fn read(raw: &Raw) -> OfferedTool {
        let raw = raw.detached();
        let read = match Item::<Tool>::read(&raw) {
            Item::Odd(_, why) => Err(why),
            Item::Good(tool) => match tool.header_flaw() {
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
            description: text("description").map(cut),
            definition_hash: definition_hash(&raw),
            tool,
            schema,
            quarantined,
            aliases: aliases(&raw),
            raw,
        }
    }

    fn is_double(&self) -> bool {
        self.quarantined.as_deref() == Some(DOUBLE)
    }

    /// The same tool, which nobody can call because it has a double.
    fn doubled(&self) -> OfferedTool {
        OfferedTool {
            wire_name: self.wire_name.clone(),
            description: self.description.clone(),
            tool: None,
            raw: self.raw.clone(),
            definition_hash: self.definition_hash.clone(),
            quarantined: Some(DOUBLE.to_owned()),
            schema: None,
            aliases: BTreeMap::new(),
        }
    }

    /// Other names under which it takes arguments, each with the name that its schema has.
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// The arguments under the names that the schema has for them.
    pub(crate) fn truly_named(&self, arguments: &Raw) -> Option<Raw> {
        if self.aliases.is_empty() || !arguments.is_object() {
            return None;
        }
        let mut named = arguments.clone();
        for (alias, name) in self.aliases.iter().filter(|(_, name)| arguments.member(name).is_none()) {
            if let Some(value) = named.member(alias) {
                named = named.without(alias).with(name, &value);
            }
        }
        Some(named)
    }
}

/// What a tool says in its `_meta` about other names of its arguments.
fn aliases(raw: &Raw) -> BTreeMap<String, String> {
    let declared = raw.member("_meta").and_then(|it| it.member(ALIASES));
    declared.map(|it| it.decode_or_default()).unwrap_or_default()
}

/// A tool that is listed twice is one tool; two tools of one name cannot be told apart on the wire, so neither is called.
fn told_apart(tools: Vec<Arc<OfferedTool>>) -> Vec<Arc<OfferedTool>> {
    let mut hashes: HashMap<String, Vec<String>> = HashMap::new();
    let mut kept = Vec::with_capacity(tools.len());
    for tool in tools {
        let known = hashes.entry(tool.wire_name.clone()).or_default();
        if !known.contains(&tool.definition_hash) {
            known.push(tool.definition_hash.clone());
            kept.push(tool);
        }
    }
    let doubled = |it: Arc<OfferedTool>| match hashes[&it.wire_name].len() {
        1 => it,
        _ => Arc::new(it.doubled()),
    };
    kept.into_iter().map(doubled).collect()
}

fn cut(mut description: String) -> String {
    description.truncate(description.floor_char_boundary(LONGEST_DESCRIPTION));
    description
}

/// The same for the same definition, however its JSON is written.
fn definition_hash(raw: &Raw) -> String {
    let canonical = raw.decode::<Value>().ok().and_then(|it| serde_json_canonicalizer::to_vec(&it).ok());
    // What canonical JSON cannot say (a number beyond double) is hashed as it came.
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
    fn the_hash_is_of_the_meaning() {
        let hash = |text: &str| definition_hash(&raw(text));
        assert_eq!(
            hash(r#"{"name":"a","inputSchema":{}}"#),
            hash(r#"{ "inputSchema": {}, "name": "\u0061" }"#)
        );
        assert_ne!(hash(r#"{"name":"a"}"#), hash(r#"{"name":"b"}"#));
        assert_ne!(hash(r#"{"name":"a","x":1e99999}"#), hash(r#"{"name":"b","x":1e99999}"#));
    }

    #[test]
    fn doubles_are_one_or_none() {
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
        let told: Vec<(&str, bool)> =
            tools.iter().map(|it| (it.wire_name.as_str(), it.quarantined.is_some())).collect();
        assert_eq!(told, [("same", false), ("other", true), ("other", true), ("unnamed", true)]);
    }
}
