//! Truncates a result that exceeds a size limit. Keeps the beginning and the end of its texts, with a marker between
//! them that states how much is missing.
//!
//! The output is a valid result with the same `isError`. The complete result is kept in the call record, not here.

#[cfg(test)]
mod tests;

use serde_json::{Value, value::RawValue};
use std::borrow::Cow;
use wharf_mcp::Raw;

/// A member of an object with its raw value.
type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// Minimum space for one content block, in bytes. A block that is only a marker fits.
const MIN_BLOCK_BYTES: usize = 200;
/// Maximum length of the marker in a truncated text, in bytes of JSON.
const MAX_MARKER_BYTES: usize = 110;
/// Minimum space for the members beside the content, in bytes. The required ones fit.
const MIN_MEMBERS_BYTES: usize = 64;
/// Members needed to interpret a result. They have the first claim on the space.
const REQUIRED_MEMBERS: [&str; 2] = ["isError", "resultType"];
const CONTENT: &str = "content";
/// Locations of text in a block.
const TEXT_POINTERS: [&str; 2] = ["/text", "/resource/text"];

/// Truncates a result to at most `limit` bytes of JSON. Returns `None` if it already fits. A limit below 512 bytes
/// may be too small for the marker, and is then exceeded.
pub fn result(raw: &Raw, limit: usize) -> Option<Raw> {
    let length = raw.as_bytes().len();
    if length <= limit {
        return None;
    }
    let members = raw.members().0;
    let (kept, dropped) = keep_members(&members, (limit / 2).max(MIN_MEMBERS_BYTES));
    let missing = if members.is_empty() { length } else { dropped };
    let left = limit.saturating_sub(r#"{"content":[]}"#.len() + kept.len());
    let content = fit_blocks(&blocks(&members), left, missing).join(",");
    Raw::parse(format!(r#"{{"content":[{content}]{kept}}}"#)).ok()
}

/// Returns the members beside the content that fit into `limit` bytes, as JSON, and the size of the others. A member
/// is kept or dropped as a whole.
fn keep_members(members: &[Member<'_>], limit: usize) -> (String, usize) {
    let mut others: Vec<_> = members.iter().filter(|(name, _)| name != CONTENT).collect();
    others.sort_by_key(|(name, _)| !REQUIRED_MEMBERS.contains(&name.as_ref()));
    let (mut kept, mut dropped) = (String::new(), 0);
    for (name, value) in others {
        let value = value.get();
        // Values that are far too long are not formatted at all.
        let text = (value.len() < limit).then(|| format!(",{}:{value}", Value::from(name.as_ref())));
        match text.filter(|text| kept.len() + text.len() <= limit) {
            Some(text) => kept.push_str(&text),
            None => dropped += value.len(),
        }
    }
    (kept, dropped)
}

/// Returns the blocks of the content. Content that is not a list becomes one unknown block.
fn blocks<'a>(members: &[Member<'a>]) -> Vec<&'a RawValue> {
    // If a member is repeated, the last one counts, as in JSON libraries.
    let Some((_, content)) = members.iter().rev().find(|(name, _)| name == CONTENT) else {
        return Vec::new();
    };
    serde_json::from_str(content.get()).unwrap_or_else(|_| vec![*content])
}

/// Returns the blocks as JSON in at most `limit` bytes including commas. Long blocks are shortened. If there are too
/// many blocks, the last ones are dropped. A marker at the end counts them and the bytes `missing` elsewhere.
fn fit_blocks(blocks: &[&RawValue], limit: usize, missing: usize) -> Vec<String> {
    let limit = limit.saturating_sub(MIN_BLOCK_BYTES);
    let lengths: Vec<usize> = blocks.iter().map(|it| it.get().len() + 1).collect();
    let fits = lengths.iter().sum::<usize>() <= limit;
    let count = if fits { blocks.len() } else { blocks.len().min(limit / MIN_BLOCK_BYTES) };
    let missing = missing + blocks[count..].iter().map(|it| it.get().len()).sum::<usize>();
    let share = share(lengths[..count].to_vec(), limit);
    let mut fitted: Vec<String> = blocks[..count].iter().map(|it| shorten_block(it, share)).collect();
    if missing > 0 {
        fitted.push(marker_block(&format!("{missing} bytes")));
    }
    fitted
}

/// Returns the maximum length per block so that all fit. Long blocks get the space that short blocks do not need.
fn share(mut lengths: Vec<usize>, limit: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, count) = (limit, lengths.len());
    for (at, length) in lengths.into_iter().enumerate() {
        let share = left / (count - at);
        if length > share {
            return share;
        }
        left -= length;
    }
    limit
}

/// Shortens a block to less than `share` bytes. A block without a text that can be truncated becomes a marker.
fn shorten_block(block: &RawValue, share: usize) -> String {
    let length = block.get().len();
    if length < share {
        return block.get().to_owned();
    }
    let mut value: Value = serde_json::from_str(block.get()).unwrap_or_default();
    truncate_text(&mut value, share - 1).unwrap_or_else(|| {
        let kind = match value.get("type").and_then(Value::as_str) {
            Some("image") => "an image",
            Some("audio") => "a sound",
            Some("resource") => "a resource",
            _ => "a block",
        };
        marker_block(&format!("{kind} of {length} bytes"))
    })
}

/// Truncates the text of a block to `limit` bytes. Returns `None` if the rest of the block is already too long.
fn truncate_text(block: &mut Value, limit: usize) -> Option<String> {
    let is_text = |pointer: &&str| block.pointer(pointer).is_some_and(Value::is_string);
    let pointer = TEXT_POINTERS.into_iter().find(is_text)?;
    let text = std::mem::replace(block.pointer_mut(pointer)?, "".into());
    let room = limit.checked_sub(block.to_string().len()).filter(|room| *room > MAX_MARKER_BYTES)?;
    *block.pointer_mut(pointer)? = keep_ends(text.as_str()?, room).into();
    Some(block.to_string())
}

/// Truncates a text to `limit` bytes of JSON without quotes: two thirds from the beginning, one third from the end,
/// and a marker between them.
fn keep_ends(text: &str, limit: usize) -> String {
    if text.chars().map(json_length).sum::<usize>() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(MAX_MARKER_BYTES);
    let head = fitting_length(text.chars(), room * 2 / 3);
    let tail = text.len() - fitting_length(text[head..].chars().rev(), room / 3);
    format!("{}\n{}\n{}", &text[..head], marker(&format!("{} bytes", tail - head)), &text[tail..])
}

/// Returns the number of bytes of text whose JSON fits into `limit` bytes.
fn fitting_length(chars: impl Iterator<Item = char>, limit: usize) -> usize {
    let with_end = chars.scan(0, |used, c| {
        *used += json_length(c);
        Some((c, *used))
    });
    with_end.take_while(|(_, used)| *used <= limit).map(|(c, _)| c.len_utf8()).sum()
}

/// Returns the length of a character in JSON, in bytes.
fn json_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

/// Formats a text block, as JSON, that states what is missing.
fn marker_block(what: &str) -> String {
    format!(r#"{{"type":"text","text":"{}"}}"#, marker(what))
}

fn marker(what: &str) -> String {
    format!("[… {what} left out; the whole result is in the call record …]")
}
