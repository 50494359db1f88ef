//! What servers offer, under the names that people and models use.

use crate::{config::Source, names::shown_names};
use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_mcp::{
    Failure, Raw, Session,
    model::{Item, Prompt, Resource, Template, Tool},
    session::List,
};

/// The longest description that is shown.
const LONGEST_DESCRIPTION: usize = 16 * 1024;

/// What one server offers, as it lists it.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Its tools.
    pub tools: Vec<Item<Tool>>,
    /// Its prompts.
    pub prompts: Vec<Item<Prompt>>,
    /// Its resources.
    pub resources: Vec<Item<Resource>>,
    /// Its resource templates.
    pub templates: Vec<Item<Template>>,
}

/// One tool of one source.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// The shown name, unique in its catalog.
    pub name: String,
    /// The name on the wire.
    pub wire_name: String,
    /// The source, as its entry names it.
    pub source: String,
    /// What it does.
    pub description: Option<String>,
    /// The tool, unless it is quarantined.
    pub tool: Option<Tool>,
    /// SHA-256 over the canonical JSON of its definition.
    pub definition_hash: String,
    /// Why it cannot be called.
    pub quarantined: Option<String>,
}

impl Offer {
    /// Asks a server for some of its lists.
    pub async fn read(session: &Session, lists: &[List]) -> Result<Offer, Failure> {
        let mut offer = Offer::default();
        for list in lists {
            let listing = session.list(*list).await?;
            match list {
                List::Tools => offer.tools = listing.read(),
                List::Prompts => offer.prompts = listing.read(),
                List::Resources => offer.resources = listing.read(),
                List::Templates => offer.templates = listing.read(),
            }
        }
        Ok(offer)
    }
}

/// The tools of several sources under their shown names, sources in their order, tools as their servers list them.
pub fn tools<'a>(offers: impl Iterator<Item = (&'a Source, &'a Offer)>) -> Vec<ToolEntry> {
    let listed: Vec<(&Source, &Item<Tool>)> =
        offers.flat_map(|(source, offer)| offer.tools.iter().map(move |it| (source, it))).collect();
    let wire: Vec<String> = listed.iter().map(|(_, it)| wire_name(it)).collect();
    let named = listed.iter().zip(&wire);
    let names = shown_names(
        named.map(|((source, _), wire)| (source.name.expose(), source.prefix.expose(), wire.as_str())),
    );
    let entries = listed.into_iter().zip(wire.iter().cloned()).zip(names);
    entries.map(|(((source, item), wire_name), name)| entry(source, item, wire_name, name)).collect()
}

fn entry(source: &Source, item: &Item<Tool>, wire_name: String, name: String) -> ToolEntry {
    let (raw, tool, quarantined) = match item {
        Item::Good(tool) => match tool.header_flaw() {
            Some(flaw) => (&tool.raw, None, Some(flaw.to_owned())),
            None => (&tool.raw, Some(tool.clone()), None),
        },
        Item::Odd(raw, why) => (raw, None, Some(why.clone())),
    };
    let description = raw.member("description").and_then(|it| it.decode::<String>().ok()).map(cut);
    let source = source.name.shown().to_owned();
    ToolEntry {
        name,
        wire_name,
        source,
        description,
        tool,
        definition_hash: definition_hash(raw),
        quarantined,
    }
}

fn wire_name(item: &Item<Tool>) -> String {
    match item {
        Item::Good(tool) => tool.name.clone(),
        Item::Odd(raw, _) => {
            raw.member("name").and_then(|it| it.decode().ok()).unwrap_or_else(|| "unnamed".to_owned())
        }
    }
}

fn cut(mut description: String) -> String {
    description.truncate(description.floor_char_boundary(LONGEST_DESCRIPTION));
    description
}

/// The same for the same definition, however its JSON is written.
fn definition_hash(raw: &Raw) -> String {
    let value: Value = raw.decode_or_default();
    // What canonical JSON cannot say (a number beyond double) is hashed as it came.
    let canonical = serde_json_canonicalizer::to_vec(&value).unwrap_or_else(|_| raw.as_bytes().to_vec());
    Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_of_the_meaning() {
        let hash = |text: &str| definition_hash(&Raw::parse(text.to_owned()).expect("JSON"));
        assert_eq!(
            hash(r#"{"name":"a","inputSchema":{}}"#),
            hash(r#"{ "inputSchema": {}, "name": "\u0061" }"#)
        );
        assert_ne!(hash(r#"{"name":"a"}"#), hash(r#"{"name":"b"}"#));
    }
}
