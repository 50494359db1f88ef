//! Truncates a result that exceeds a size limit. Keeps the beginning and the end of its texts and states how much is
//! missing.
//!
//! The output is a valid result with the same `isError`. The complete result is kept in the call record, not here.

mod block;
#[cfg(test)]
mod tests;
mod text;

use serde_json::value::RawValue;
use std::borrow::Cow;
use text::{format_bytes, marker_block, short_name};
use wharf_mcp::Raw;

/// A member of an object with its raw value.
type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// Minimum limit in bytes. Below it, a truncated result consists of a marker only.
pub const MIN_LIMIT_BYTES: usize = 512;

/// Minimum space for useful content, in bytes.
const MIN_USEFUL_BYTES: usize = 200;
/// Members needed to interpret a result, kept even if everything else is dropped.
const REQUIRED_MEMBERS: [&str; 2] = ["isError", "resultType"];
const CONTENT: &str = "content";
const STRUCTURED: &str = "structuredContent";

/// Truncates a result to at most `limit` bytes of JSON. Returns `None` if it already fits. Below
/// [`MIN_LIMIT_BYTES`] bytes the output is only a marker, which may exceed a very small limit.
pub fn result(raw: &Raw, limit: usize) -> Option<Raw> {
    let length = raw.as_bytes().len();
    if length <= limit {
        return None;
    }
    let members = raw.members();
    let truncated =
        if limit < MIN_LIMIT_BYTES || members.0.is_empty() { None } else { shortened(&members.0, limit) };
    let text = truncated.unwrap_or_else(|| marker_only(&members.0, length));
    Raw::parse(text).ok()
}

/// Builds a result that contains only the marker and the essential members.
fn marker_only(members: &[Member<'_>], length: usize) -> String {
    let content = format!("[{}]", marker_block(&format_bytes(length)));
    let is_small = |name: &str, value: &RawValue| REQUIRED_MEMBERS.contains(&name) && value.get().len() <= 20;
    let kept = members.iter().filter(|(name, value)| is_small(name, value));
    assembled(&content, kept.map(|(name, value)| member(name, value)))
}

/// Keeps as much of every part as fits. Returns `None` if there is no room for any content.
fn shortened(members: &[Member<'_>], limit: usize) -> Option<String> {
    let mut space =
        RemainingSpace { left: limit - r#"{"content":[]}"#.len(), kept: Vec::new(), dropped: Vec::new() };
    let (structured, others): (Vec<_>, Vec<_>) =
        members.iter().filter(|(name, _)| name != CONTENT).partition(|(name, _)| name == STRUCTURED);
    others.into_iter().for_each(|it| space.take(it, limit / 8, 3 * limit / 4));
    structured.into_iter().for_each(|it| space.take(it, limit / 2, 2 * MIN_USEFUL_BYTES));
    let RemainingSpace { left, kept, dropped } = space;
    let missing = (!dropped.is_empty()).then(|| marker_block(&describe_dropped(&dropped)));
    let left = left.checked_sub(missing.as_ref().map_or(0, |it| it.len() + 1))?;
    let mut content = block::fitted(&blocks(members), left)?;
    content.extend(missing);
    let text = assembled(&format!("[{}]", content.join(",")), kept.into_iter());
    (text.len() <= limit).then_some(text)
}

/// The remaining space, and the kept and dropped members other than the content.
struct RemainingSpace<'a> {
    left: usize,
    kept: Vec<String>,
    dropped: Vec<(&'a str, usize)>,
}

impl<'a> RemainingSpace<'a> {
    /// Keeps a member if it is within its share and leaves `reserve` for the rest.
    fn take(&mut self, (name, value): &'a Member<'_>, share: usize, reserve: usize) {
        let length = value.get().len();
        // The escaped name may be longer than the name. Values that are far too long are not formatted at all.
        let text = (name.len() + length < share).then(|| member(name, value));
        match text.filter(|it| it.len() < share && self.left > it.len() + reserve) {
            Some(text) => {
                self.left -= text.len() + 1;
                self.kept.push(text);
            }
            None => self.dropped.push((name, length)),
        }
    }
}

fn member(name: &str, value: &RawValue) -> String {
    format!("{}:{}", serde_json::Value::from(name), value.get())
}

fn assembled(content: &str, others: impl Iterator<Item = String>) -> String {
    let mut text = format!("{{\"content\":{content}");
    for other in others {
        text.push(',');
        text.push_str(&other);
    }
    text.push('}');
    text
}

/// Returns the blocks of the content. Content that is not a list becomes one unknown block.
fn blocks<'a>(members: &[Member<'a>]) -> Vec<&'a RawValue> {
    // If a member is repeated, the last one counts, as in JSON libraries.
    let Some((_, content)) = members.iter().rev().find(|(name, _)| name == CONTENT) else {
        return Vec::new();
    };
    serde_json::from_str(content.get()).unwrap_or_else(|_| vec![*content])
}

/// Formats the dropped members: `structuredContent` and `_meta`, 1,234 bytes.
fn describe_dropped(dropped: &[(&str, usize)]) -> String {
    let total: usize = dropped.iter().map(|(_, length)| length).sum();
    let names: Vec<Cow<'_, str>> = dropped.iter().rev().take(3).map(|(name, _)| short_name(name)).collect();
    let more = dropped.len().saturating_sub(3);
    let names = names.join("`, `");
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("`{names}`{more}, {},", format_bytes(total))
}
