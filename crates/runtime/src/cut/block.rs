//! Fits content blocks into a size limit. Keeps small blocks, truncates texts, replaces images and audio by a note,
//! and drops the middle of a very long list of blocks.

use super::{
    SCRAP,
    text::{bytes, ends, note, short},
};
use serde_json::{Value, value::RawValue};

/// Locations of text in a block.
const TEXTS: [&str; 2] = ["/text", "/resource/text"];

/// Returns the blocks as JSON in at most `limit` bytes including commas, or `None` if there is no room for any.
pub(super) fn fitted(blocks: &[&RawValue], limit: usize) -> Option<Vec<String>> {
    let total: usize = blocks.iter().map(|it| it.get().len() + 1).sum();
    if total <= limit {
        return Some(blocks.iter().map(|it| it.get().to_owned()).collect());
    }
    // Reserves one place for the note about the dropped blocks.
    let places = limit / SCRAP;
    let room = if blocks.len() <= places { blocks.len() } else { places.checked_sub(1)? };
    let head = (room * 2).div_ceil(3);
    let tail = blocks.len() - (room - head);
    let (first, missing, last) = (&blocks[..head], &blocks[head..tail], &blocks[tail..]);
    let gone = (!missing.is_empty()).then(|| note(&counted(missing)));
    let limit = limit - gone.as_ref().map_or(0, |it| it.len() + 1);
    let share = share(first.iter().chain(last).map(|it| it.get().len() + 1).collect(), limit);
    let cut = |blocks: &[&RawValue]| blocks.iter().map(|it| shortened(it, share)).collect::<Vec<_>>();
    Some(cut(first).into_iter().chain(gone).chain(cut(last)).collect())
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

/// Shortens a block to less than `share` bytes, including its comma.
fn shortened(block: &RawValue, share: usize) -> String {
    if block.get().len() < share {
        return block.get().to_owned();
    }
    let value: Value = serde_json::from_str(block.get()).unwrap_or_default();
    with_ends(&value, share - 1).unwrap_or_else(|| note(&named(&value, block.get().len())))
}

/// Truncates the text of a block. Returns `None` if the rest of the block is already too long.
fn with_ends(block: &Value, limit: usize) -> Option<String> {
    let place = TEXTS.into_iter().find(|place| block.pointer(place).is_some_and(Value::is_string))?;
    let text = block.pointer(place)?.as_str()?;
    let mut frame = without_text(block, place);
    let before = frame.to_string().len();
    let mut length = before;
    if before > limit / 3 {
        // The text is more important than annotations.
        frame = essential(&frame);
        length = frame.to_string().len();
    }
    let room = limit.checked_sub(length).filter(|room| *room > super::text::MARKER)?;
    *frame.pointer_mut(place)? = ends(text, room, before.saturating_sub(length)).into();
    Some(frame.to_string())
}

/// Returns the block with an empty text, without copying the long one.
fn without_text(block: &Value, place: &str) -> Value {
    match (block, place.strip_prefix('/').and_then(|it| it.split_once('/'))) {
        (Value::Object(members), None) => replaced(members, &place[1..], "".into()),
        (Value::Object(members), Some((outer, inner))) => {
            let Some(Value::Object(within)) = members.get(outer) else { return Value::Null };
            replaced(members, outer, replaced(within, inner, "".into()))
        }
        _ => Value::Null,
    }
}

fn replaced(members: &serde_json::Map<String, Value>, name: &str, by: Value) -> Value {
    let mut by = Some(by);
    let one = |(other, value): (&String, &Value)| {
        let value = if other == name { by.take().unwrap_or_default() } else { value.clone() };
        (other.clone(), value)
    };
    Value::Object(members.iter().map(one).collect())
}

/// Returns a text block or a resource with required members only.
fn essential(frame: &Value) -> Value {
    match frame.get("resource") {
        Some(resource) => {
            let uri = resource.get("uri").cloned().unwrap_or_default();
            serde_json::json!({"type": "resource", "resource": {"uri": uri, "text": ""}})
        }
        None => serde_json::json!({"type": "text", "text": ""}),
    }
}

/// Describes a block: `an image (image/png, 1,234 bytes)`.
fn named(block: &Value, length: usize) -> String {
    let word = |place: &str| block.pointer(place).and_then(Value::as_str);
    let kind = match word("/type") {
        Some("text") => "a text".to_owned(),
        Some("image") => "an image".to_owned(),
        Some("audio") => "a sound".to_owned(),
        Some("resource") => "a resource".to_owned(),
        Some("resource_link") => "a link".to_owned(),
        Some(other) => format!("a block of type `{}`", short(other)),
        None => "a block".to_owned(),
    };
    let data = ["/data", "/resource/blob"].into_iter().find_map(word).map_or(length, str::len);
    match ["/mimeType", "/resource/mimeType"].into_iter().find_map(word) {
        Some(mime) => format!("{kind} ({}, {})", short(mime), bytes(data)),
        None => format!("{kind} ({})", bytes(data)),
    }
}

fn counted(blocks: &[&RawValue]) -> String {
    let total: usize = blocks.iter().map(|it| it.get().len()).sum();
    match blocks.len() {
        1 => format!("1 block, {},", bytes(total)),
        count => format!("{count} blocks, {},", bytes(total)),
    }
}
