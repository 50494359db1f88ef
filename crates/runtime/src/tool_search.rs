//! Finds tools by a question: a BM25 index over their names, titles, descriptions and arguments.
//!
//! Equal tools and equal questions give an equal order everywhere, so that prompt caches hit.

mod search_tools;
mod words;

use crate::catalog::ToolEntry;
pub use search_tools::{CALL_TOOL, FIND_TOOLS, InnerCall, ToolQuery, call_tool, find_tools};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use words::words;

/// Saturation of the number of occurrences.
const K1: f32 = 1.2;
/// Influence of the length of a definition.
const B: f32 = 0.75;
/// Weight of a word in the name, the title and the description of an argument; elsewhere it is 1.
const NAME_WEIGHT: f32 = 3.0;
const TITLE_WEIGHT: f32 = 2.0;
const ARGUMENT_TEXT_WEIGHT: f32 = 0.5;
/// Maximum number of words of a question that count.
const MAX_WORDS: usize = 64;

/// Tool to index.
#[derive(Clone, Debug, Default)]
pub struct SearchedTool {
    /// Shown name.
    pub name: String,
    /// `source:tool`.
    pub id: String,
    /// Title, if it has one.
    pub title: String,
    /// Description.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
}

/// Index of tools.
#[derive(Debug, Default)]
pub struct ToolIndex {
    /// Shown name and id of each tool.
    names: Vec<(String, String)>,
    /// Weighted length of each definition.
    lengths: Vec<f32>,
    mean_length: f32,
    /// For each word, the tools that contain it, with the weighted number of occurrences.
    postings: HashMap<String, Vec<(usize, f32)>>,
}

impl ToolIndex {
    /// Indexes tools.
    pub fn new(tools: impl IntoIterator<Item = SearchedTool>) -> ToolIndex {
        let mut names = Vec::new();
        let mut postings: HashMap<String, Vec<(usize, f32)>> = HashMap::new();
        let mut lengths: Vec<f32> = Vec::new();
        for (at, tool) in tools.into_iter().enumerate() {
            let counts = weighted_words(&tool);
            names.push((tool.name, tool.id));
            lengths.push(counts.values().sum());
            for (word, count) in counts {
                postings.entry(word).or_default().push((at, count));
            }
        }
        let mean_length = lengths.iter().sum::<f32>() / lengths.len().max(1) as f32;
        ToolIndex { names, lengths, mean_length, postings }
    }

    /// Returns the positions of the tools that fit a question best, at most `limit`. A tool whose name is the question is
    /// the first.
    pub fn search(&self, question: &str, limit: usize) -> Vec<usize> {
        let mut scores: HashMap<usize, f32> = HashMap::new();
        for word in words(question).into_iter().take(MAX_WORDS) {
            let Some(found) = self.postings.get(&word) else { continue };
            let (all, with) = (self.names.len() as f32, found.len() as f32);
            let rarity = ((all - with + 0.5) / (with + 0.5)).ln_1p();
            for (at, count) in found {
                let length = self.lengths[*at] / self.mean_length.max(1.0);
                let saturated = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                *scores.entry(*at).or_default() += rarity * saturated;
            }
        }
        let asked = question.trim();
        let is_named = |at: usize| self.names[at].0 == asked || self.names[at].1 == asked;
        let mut ranked: Vec<(usize, f32)> = scores.into_iter().collect();
        ranked.sort_by(|(a, a_score), (b, b_score)| {
            let by_score = is_named(*b).cmp(&is_named(*a)).then(b_score.total_cmp(a_score));
            by_score.then_with(|| self.names[*a].cmp(&self.names[*b]))
        });
        ranked.into_iter().take(limit).map(|(at, _)| at).collect()
    }
}

impl SearchedTool {
    /// Describes a tool of the catalog.
    pub fn of(tool: &ToolEntry) -> SearchedTool {
        let title = tool.raw.member("title").and_then(|it| it.decode::<String>().ok());
        let schema = tool.tool.as_ref().map(|it| it.input_schema.decode_or_default::<Value>());
        SearchedTool {
            name: tool.name.clone(),
            id: tool.id(),
            title: title.unwrap_or_default(),
            description: tool.description.clone().unwrap_or_default(),
            input_schema: schema.unwrap_or_default(),
        }
    }
}

/// Counts the words of a definition, each weighted by its place.
fn weighted_words(tool: &SearchedTool) -> BTreeMap<String, f32> {
    let mut counts: BTreeMap<String, f32> = BTreeMap::new();
    let mut add = |text: &str, weight: f32| {
        for word in words(text) {
            *counts.entry(word).or_default() += weight;
        }
    };
    add(&tool.name, NAME_WEIGHT);
    add(&tool.title, TITLE_WEIGHT);
    add(&tool.description, 1.0);
    for (name, argument) in tool.input_schema["properties"].as_object().into_iter().flatten() {
        add(name, 1.0);
        add(argument["description"].as_str().unwrap_or_default(), ARGUMENT_TEXT_WEIGHT);
    }
    counts
}
