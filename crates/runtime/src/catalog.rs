//! Defines the catalog: everything that the servers offer, under the names shown to people and models.
//!
//! A [`Catalog`] is an immutable snapshot that contains data only: an entry has the configuration of its source, with
//! which the executor finds the running one. The catalog writer (`CatalogWriter`) publishes a new one after every change;
//! holders of an older snapshot keep it unchanged.

mod block_reason;
mod changed_items;
mod freshness;
mod lookup;
mod offer;
mod offered_tool;
mod shown_definition;
pub(crate) mod tool_names;

use crate::{
    fault::Fault,
    lock::{Difference, LockState, LockedKind},
};
pub use block_reason::BlockReason;
use block_reason::tool_differences;
pub(crate) use changed_items::ChangedItem;
use changed_items::{BlockedItems, changed_items};
pub use freshness::Freshness;
use freshness::FreshnessByList;
pub(crate) use lookup::Lookup;
pub use offer::Offer;
pub use offered_tool::{OfferedTool, Quarantine, QuarantineCause};
use std::{collections::HashMap, ops::Deref, sync::Arc};
pub use tool_names::{NameParts, shown_names};
use wharf_config::Source;
use wharf_mcp::{
    Raw,
    model::{Item, Prompt, Resource, Template},
    session::List,
};

/// Tools that an operator has disabled, by `source:tool`, with the reason.
pub type DisabledTools = HashMap<String, String>;

/// Registered sources that cannot be used, by name, with the fault that calls to them receive.
pub type UnavailableSources = HashMap<String, Arc<Fault>>;

/// Snapshot of everything that all sources offer.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Number of published changes.
    pub revision: u64,
    /// The tools, in the order of the sources and then of each server's list.
    pub tools: Vec<Arc<ToolEntry>>,
    /// The prompts.
    pub prompts: Vec<PromptEntry>,
    /// The resources.
    pub resources: Vec<Sourced<Resource>>,
    /// The resource templates.
    pub templates: Vec<Sourced<Template>>,
    /// Listed prompts, resources and templates that could not be parsed.
    pub odd: Vec<Odd>,
    /// Source and wire name of each tool that an override switches off.
    hidden_tools: Vec<(String, String)>,
    /// Prompts and templates that differ from the lock.
    pub(crate) changed_items: Vec<ChangedItem>,
    pub(crate) listings: Vec<SourceListing>,
    /// Edition of the set of sources that this catalog is based on.
    pub(crate) edition: u64,
    lookup: Lookup,
}

/// One tool of one source. Dereferences to the tool as the server lists it.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// The shown name, unique in the catalog.
    pub name: String,
    /// The name of the source.
    pub source: String,
    /// Whether models may use the tool, according to `allow` and `deny`.
    pub for_models: bool,
    /// Reason why the tool must not be called, if blocked.
    pub blocked: Option<BlockReason>,
    /// How the tool differs from the lock, if it does and nobody accepted it.
    pub changed: Option<Arc<[Difference]>>,
    offered: Arc<OfferedTool>,
    config: Arc<Source>,
}

/// One prompt of one source.
#[derive(Clone, Debug)]
pub struct PromptEntry {
    /// The shown name, unique in the catalog.
    pub name: String,
    /// The name of the source.
    pub source: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Configuration of the source.
    pub(crate) config: Arc<Source>,
}

/// An item together with its source.
#[derive(Clone, Debug)]
pub struct Sourced<T> {
    /// The name of the source.
    pub source: String,
    /// The item.
    pub item: T,
}

/// A listed item that could not be parsed.
#[derive(Clone, Debug)]
pub struct Odd {
    /// The name of the source.
    pub source: String,
    /// The list that contains it.
    pub list: List,
    /// Its JSON.
    pub raw: Raw,
    /// The parse error.
    pub why: String,
}

/// Progress of listing a source.
#[derive(Clone, Debug, Default)]
pub enum Discovery {
    /// Not started: the source starts with its first call.
    #[default]
    NotStarted,
    /// In progress.
    Pending,
    /// The last listing succeeded.
    Done,
    /// The last listing failed. Entries from an earlier listing remain.
    Failed(Arc<Fault>),
}

/// The catalog writer's data about one source.
#[derive(Clone, Debug)]
pub(crate) struct ListedSource {
    pub(crate) listing: SourceListing,
    pub(crate) offer: Offer,
}

/// One source in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct SourceListing {
    /// Configuration of the source.
    pub(crate) source: Arc<Source>,
    pub(crate) discovery: Discovery,
    /// Number of completed listings, successful or not.
    pub(crate) reads: u64,
    /// Cache lifetimes of its lists.
    pub(crate) fresh: FreshnessByList,
    /// Lists that the server offers but that could not be read.
    pub(crate) unread: Vec<(List, Arc<Fault>)>,
}

impl Catalog {
    /// Builds a catalog from the data of all sources.
    pub(crate) fn assemble(
        revision: u64,
        edition: u64,
        listed_sources: &[ListedSource],
        off: &DisabledTools,
        lock: &LockState,
    ) -> Catalog {
        let tools = tools(listed_sources, off, lock);
        let changed_items = changed_items(listed_sources, lock);
        let blocked = BlockedItems::of(&changed_items);
        let lookup = Lookup::new(&tools);
        Catalog {
            revision,
            edition,
            prompts: prompts(listed_sources, &blocked),
            resources: sourced(listed_sources, |it| &it.resources),
            templates: templates(listed_sources, &blocked),
            odd: odd(listed_sources),
            listings: listed_sources.iter().map(listing).collect(),
            lookup,
            tools,
            changed_items,
            hidden_tools: hidden_tools(listed_sources),
        }
    }

    /// Finds a tool by its shown name, by `source:tool`, or by a bare name that only one source has.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.lookup.find(name).map(|at| &self.tools[at])
    }

    /// Returns the names that a server lists, also those of tools that an override switches off.
    pub fn listed_names(&self, source: &str) -> Vec<&str> {
        let shown = self.tools.iter().filter(|it| it.source == source).map(|it| &*it.wire_name);
        let hidden = self.hidden_tools.iter().filter(|(it, _)| it == source).map(|(_, name)| &**name);
        shown.chain(hidden).collect()
    }

    /// Finds a prompt by its shown name, by `source:prompt`, or by a bare name that only one source has.
    pub fn prompt(&self, name: &str) -> Option<&PromptEntry> {
        let id = |it: &&PromptEntry| {
            name.strip_prefix(it.source.as_str()).and_then(|it| it.strip_prefix(':')) == Some(&it.prompt.name)
        };
        let found = self.prompts.iter().find(|it| it.name == name).or_else(|| self.prompts.iter().find(id));
        found.or_else(|| {
            let mut bare = self.prompts.iter().filter(|it| it.prompt.name == name);
            bare.next().filter(|_| bare.next().is_none())
        })
    }

    /// Returns the listing progress of a source.
    pub fn discovery(&self, source: &str) -> Option<&Discovery> {
        self.listing(source).map(|it| &it.discovery)
    }

    /// Returns the lists that a source offers but that could not be read, although its tools could, with the faults.
    pub fn unread(&self, source: &str) -> &[(List, Arc<Fault>)] {
        self.listing(source).map(|it| &it.unread[..]).unwrap_or_default()
    }

    /// Suggests the tool that an unknown name probably means, in the form of that name: `source:tool`, or the shown
    /// name.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let near = |it: &Arc<ToolEntry>| {
            let (likeness, meant) = match name.contains(':') {
                true => (strsim::jaro_winkler(name, &it.id()), it.id()),
                false => {
                    let by_name = strsim::jaro_winkler(name, &it.name);
                    (by_name.max(strsim::jaro_winkler(name, &it.wire_name)), it.name.clone())
                }
            };
            (likeness > 0.85).then_some((likeness, meant))
        };
        self.tools.iter().filter_map(near).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
    }

    /// Returns whether `name` is `source:tool` with an unknown source and a close match. If so, sources whose listing
    /// failed cannot have the tool.
    pub fn is_misspelt(&self, name: &str) -> bool {
        let names_source = |it: &SourceListing| {
            name.strip_prefix(it.source.name.expose()).is_some_and(|it| it.starts_with(':'))
        };
        name.contains(':') && !self.listings.iter().any(names_source) && self.nearest(name).is_some()
    }

    /// Returns whether every source has been listed or has failed.
    pub fn is_settled(&self) -> bool {
        self.listings.iter().all(|it| !matches!(it.discovery, Discovery::Pending))
    }

    /// Returns how long clients may cache this list of all sources combined. An incomplete list must not be cached.
    pub fn freshness(&self, list: List) -> Freshness {
        let is_missing =
            |it: &SourceListing| matches!(it.discovery, Discovery::Pending | Discovery::Failed(_));
        if self.listings.iter().any(is_missing) {
            return Freshness::default();
        }
        FreshnessByList::combined(self.listings.iter().map(|it| it.fresh), list)
    }

    pub(crate) fn listing(&self, source: &str) -> Option<&SourceListing> {
        self.listings.iter().find(|it| it.source.name.expose() == source)
    }
}

fn listing(listed_source: &ListedSource) -> SourceListing {
    SourceListing {
        fresh: listed_source.offer.fresh,
        unread: listed_source.offer.unread.clone(),
        ..listed_source.listing.clone()
    }
}

impl ToolEntry {
    /// Returns `source:tool`, the stable id of the tool.
    pub fn id(&self) -> String {
        tool_id(&self.source, &self.wire_name)
    }

    /// Returns the configuration of the source.
    pub fn config(&self) -> &Arc<Source> {
        &self.config
    }
}

impl Deref for ToolEntry {
    type Target = OfferedTool;

    fn deref(&self) -> &OfferedTool {
        &self.offered
    }
}

/// Builds `source:tool`, the stable id of a tool.
pub fn tool_id(source: &str, wire_name: &str) -> String {
    format!("{source}:{wire_name}")
}

fn tools(listed_sources: &[ListedSource], off: &DisabledTools, lock: &LockState) -> Vec<Arc<ToolEntry>> {
    let listed = || {
        let enabled = |it: &&Arc<OfferedTool>| it.is_enabled;
        listed_sources.iter().flat_map(move |it| {
            it.offer.tools.iter().filter(enabled).map(move |tool| (&it.listing.source, tool))
        })
    };
    let named = listed().map(|(source, tool)| NameParts {
        source: source.name.expose(),
        prefix: source.prefix.expose(),
        wire_name: &tool.wire_name,
        name: tool.renamed.as_deref().unwrap_or(&tool.wire_name),
    });
    let names = shown_names(&named.collect::<Vec<_>>());
    let entries = listed().zip(names).map(|((source, offered), name)| {
        let changed = tool_differences(offered, source, lock);
        Arc::new(ToolEntry {
            for_models: for_models(source, &offered.wire_name, &name),
            blocked: BlockReason::of(offered, source, off, changed.as_ref()),
            changed,
            source: source.name.expose().to_owned(),
            offered: offered.clone(),
            config: source.clone(),
            name,
        })
    });
    entries.collect()
}

fn hidden_tools(listed_sources: &[ListedSource]) -> Vec<(String, String)> {
    let hidden = listed_sources.iter().flat_map(|it| {
        let tools = it.offer.tools.iter().filter(|tool| !tool.is_enabled);
        tools.map(|tool| (it.listing.source.name.expose().to_owned(), tool.wire_name.to_string()))
    });
    hidden.collect()
}

/// Returns whether `allow` and `deny` let models use this tool. The globs may match the wire name or the shown name.
fn for_models(source: &Source, wire_name: &str, name: &str) -> bool {
    let fits = |globs: &[crate::Glob]| globs.iter().any(|it| it.matches(wire_name) || it.matches(name));
    (source.allow.is_empty() || fits(&source.allow)) && !fits(&source.deny)
}

fn prompts(listed_sources: &[ListedSource], blocked: &BlockedItems<'_>) -> Vec<PromptEntry> {
    let listed: Vec<(&Arc<Source>, &Prompt)> = listed_sources
        .iter()
        .flat_map(|it| valid_items(&it.offer.prompts).map(move |prompt| (&it.listing.source, prompt)))
        .filter(|(source, it)| blocked.allows(source.name.expose(), LockedKind::Prompt, &it.name))
        .collect();
    let named: Vec<NameParts<'_>> = listed
        .iter()
        .map(|(source, it)| NameParts::new(source.name.expose(), source.prefix.expose(), &it.name))
        .collect();
    let entries = listed.iter().zip(shown_names(&named)).map(|((source, prompt), name)| PromptEntry {
        name,
        source: source.name.expose().to_owned(),
        prompt: (*prompt).clone(),
        config: (*source).clone(),
    });
    entries.collect()
}

fn templates(listed_sources: &[ListedSource], blocked: &BlockedItems<'_>) -> Vec<Sourced<Template>> {
    let mut templates = sourced(listed_sources, |it| &it.templates);
    templates.retain(|it| blocked.allows(&it.source, LockedKind::Template, &it.item.uri_template));
    templates
}

fn sourced<T: Clone>(
    listed_sources: &[ListedSource],
    list: impl Fn(&Offer) -> &Vec<Item<T>>,
) -> Vec<Sourced<T>> {
    let mut all = Vec::new();
    for ListedSource { listing: SourceListing { source, .. }, offer } in listed_sources {
        let source = source.name.expose();
        all.extend(
            valid_items(list(offer)).map(|it| Sourced { source: source.to_owned(), item: it.clone() }),
        );
    }
    all
}

fn odd(listed_sources: &[ListedSource]) -> Vec<Odd> {
    let mut all = Vec::new();
    for ListedSource { listing: SourceListing { source, .. }, offer } in listed_sources {
        let source = source.name.expose();
        let mut add = |list: List, (raw, why): (&Raw, &String)| {
            all.push(Odd { source: source.to_owned(), list, raw: raw.clone(), why: why.clone() });
        };
        offer.prompts.iter().filter_map(parse_error).for_each(|it| add(List::Prompts, it));
        offer.resources.iter().filter_map(parse_error).for_each(|it| add(List::Resources, it));
        offer.templates.iter().filter_map(parse_error).for_each(|it| add(List::Templates, it));
    }
    all
}

fn parse_error<T>(item: &Item<T>) -> Option<(&Raw, &String)> {
    match item {
        Item::Valid(_) => None,
        Item::Invalid(raw, why) => Some((raw, why)),
    }
}

fn valid_items<T>(items: &[Item<T>]) -> impl Iterator<Item = &T> {
    items.iter().filter_map(|it| match it {
        Item::Valid(it) => Some(it),
        Item::Invalid(..) => None,
    })
}
