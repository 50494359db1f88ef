//! Builds JSON objects from raw members without decoding them.

use super::Raw;
use bytes::BytesMut;
use serde_json::json;

/// Sets a member of `target`, replacing an existing one.
pub(crate) fn replace(target: &Raw, name: &str, value: &[u8]) -> Raw {
    let members = target.members();
    let others =
        members.0.iter().filter(|(key, _)| key != name).map(|(key, value)| (&**key, value.get().as_bytes()));
    object(std::iter::once((name, value)).chain(others))
}

/// Builds an object from raw members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Raw {
    let mut out = BytesMut::with_capacity(128);
    out.extend_from_slice(b"{");
    for (name, value) in members {
        put_member(&mut out, name, value);
    }
    out.extend_from_slice(b"}");
    Raw::spliced(out)
}

/// Encodes a JSON string.
pub(crate) fn string(text: &str) -> Vec<u8> {
    json!(text).to_string().into_bytes()
}

/// Appends a JSON string, with a fast path for names that need no escaping.
pub(crate) fn put_string(out: &mut BytesMut, text: &str) {
    // `fold` reads every byte, but several at a time; `any` stops early, and reads one at a time.
    let needs_escapes = |found, byte| found | (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, needs_escapes) {
        out.extend_from_slice(&string(text));
        return;
    }
    out.extend_from_slice(b"\"");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\"");
}

/// Adds members in front of those of `target`, which must not have them yet.
pub(crate) fn prepend<'a>(target: &Raw, members: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Raw {
    let rest = target.as_bytes().strip_prefix(b"{").unwrap_or(b"}").trim_ascii_start();
    let mut out = BytesMut::with_capacity(target.as_bytes().len() + 256);
    out.extend_from_slice(b"{");
    for (name, value) in members {
        put_member(&mut out, name, value);
    }
    if rest != b"}" {
        put_comma(&mut out);
    }
    out.extend_from_slice(rest);
    Raw::spliced(out)
}

/// Appends a member, after a comma if it is not the first one.
pub(crate) fn put_member(out: &mut BytesMut, name: &str, value: &[u8]) {
    put_comma(out);
    put_string(out, name);
    out.extend_from_slice(b":");
    out.extend_from_slice(value);
}

/// Appends a comma, unless no member precedes.
pub(crate) fn put_comma(out: &mut BytesMut) {
    if !matches!(out.last(), None | Some(b'{')) {
        out.extend_from_slice(b",");
    }
}

/// Encloses members in braces.
pub(crate) fn in_braces(members: &[u8]) -> Vec<u8> {
    // The caller may leave a trailing comma when no members follow.
    let members = members.strip_suffix(b",").unwrap_or(members);
    [b"{", members, b"}"].concat()
}
