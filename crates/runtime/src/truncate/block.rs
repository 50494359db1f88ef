//! Fits content blocks into a size limit. Keeps small blocks, truncates texts, replaces images and audio by a note,
//! and drops the middle of a very long list of blocks.

use super::{
    MIN_USEFUL_BYTES,
    text::{format_bytes, keep_ends, marker_block, short_name},
};
use serde_json::{Value, value::RawValue};

/// Locations of text in a block.
const TEXT_POINTERS: [&str; 2] = ["/text", "/resource/text"];

/// Returns the blocks as JSON in at most `limit` bytes including commas, or `None` if there is no room for any.
pub(super) fn fitted(blocks: &[&RawValue], limit: usize) -> Option<Vec<String>> {
    let total: usize = blocks.iter().map(|it| it.get().len() + 1).sum();
    if total <= limit {
        return Some(blocks.iter().map(|it| it.get().to_owned()).collect());
    }
    // Reserves one place for the note about the dropped blocks.
    let places = limit / MIN_USEFUL_BYTES;
    let room = if blocks.len() <= places { blocks.len() } else { places.checked_sub(1)? };
    let head = (room * 2).div_ceil(3);
    let tail = blocks.len() - (room - head);
    let (first, dropped, last) = (&blocks[..head], &blocks[head..tail], &blocks[tail..]);
    let dropped_note = (!dropped.is_empty()).then(|| marker_block(&describe_blocks(dropped)));
    let limit = limit - dropped_note.as_ref().map_or(0, |it| it.len() + 1);
    let share = share(first.iter().chain(last).map(|it| it.get().len() + 1).collect(), limit);
    let truncated = |blocks: &[&RawValue]| blocks.iter().map(|it| shortened(it, share)).collect::<Vec<_>>();
    Some(truncated(first).into_iter().chain(dropped_note).chain(truncated(last)).collect())
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
    truncate_text(&value, share - 1)
        .unwrap_or_else(|| marker_block(&describe_block(&value, block.get().len())))
}

/// Truncates the text of a block. Returns `None` if the rest of the block is already too long.
fn truncate_text(block: &Value, limit: usize) -> Option<String> {
    let place = TEXT_POINTERS.into_iter().find(|place| block.pointer(place).is_some_and(Value::is_string))?;
    let text = block.pointer(place)?.as_str()?;
    let mut frame = without_text(block, place);
    let before = frame.to_string().len();
    let mut length = before;
    if before > limit / 3 {
        // The text is more important than annotations.
        frame = essential(&frame);
        length = frame.to_string().len();
    }
    let room = limit.checked_sub(length).filter(|room| *room > super::text::MAX_MARKER_BYTES)?;
    *frame.pointer_mut(place)? = keep_ends(text, room, before.saturating_sub(length)).into();
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

/// Describes a block: `an image (image/png, 1,234 format_bytes)`.
fn describe_block(block: &Value, length: usize) -> String {
    let word = |place: &str| block.pointer(place).and_then(Value::as_str);
    let kind = match word("/type") {
        Some("text") => "a text".to_owned(),
        Some("image") => "an image".to_owned(),
        Some("audio") => "a sound".to_owned(),
        Some("resource") => "a resource".to_owned(),
        Some("resource_link") => "a link".to_owned(),
        Some(other) => format!("a block of type `{}`", short_name(other)),
        None => "a block".to_owned(),
    };
    let data = ["/data", "/resource/blob"].into_iter().find_map(word).map_or(length, str::len);
    match ["/mimeType", "/resource/mimeType"].into_iter().find_map(word) {
        Some(mime) => format!("{kind} ({}, {})", short_name(mime), format_bytes(data)),
        None => format!("{kind} ({})", format_bytes(data)),
    }
}

fn describe_blocks(blocks: &[&RawValue]) -> String {
    let total: usize = blocks.iter().map(|it| it.get().len()).sum();
    match blocks.len() {
        1 => format!("1 block, {},", format_bytes(total)),
        count => format!("{count} blocks, {},", format_bytes(total)),
    }
}
