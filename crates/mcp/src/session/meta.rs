//! Builds `_meta` and splices it into request params without decoding them.

use super::{Era, Options, Terms, terms::MODERN};
use crate::{
    Raw,
    json::splice::{in_braces, prepend, put_comma, put_member, put_string, replace, string},
    model::LogLevel,
};
use bytes::BytesMut;
use memchr::memmem::Finder;
use serde_json::json;
use std::sync::LazyLock;

/// Names of the protocol's own `_meta` members.
#[derive(Debug)]
pub struct MetaKey;

impl MetaKey {
    /// Protocol version of a request.
    pub const VERSION: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// Name and version of the client.
    pub const CLIENT: &'static str = "io.modelcontextprotocol/clientInfo";
    /// Capabilities of the client.
    pub const CAPABILITIES: &'static str = "io.modelcontextprotocol/clientCapabilities";
    /// Subscription that a notification belongs to.
    pub const SUBSCRIPTION: &'static str = "io.modelcontextprotocol/subscriptionId";
    /// Name and version of the server.
    pub const SERVER: &'static str = "io.modelcontextprotocol/serverInfo";
    /// Minimum level of the log lines that the client wants.
    pub const LOG_LEVEL: &'static str = "io.modelcontextprotocol/logLevel";
    /// Parent span of a request, as in the W3C header of that name.
    pub const TRACE_PARENT: &'static str = "traceparent";
    /// Vendor-specific trace data, as in the W3C header of that name.
    pub const TRACE_STATE: &'static str = "tracestate";
}

/// Name and version of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// Program name.
    pub name: String,
    /// Program version.
    pub version: String,
}

impl ClientInfo {
    pub(crate) fn to_raw(&self) -> Raw {
        json!({ "name": self.name, "version": self.version }).into()
    }
}

/// Returns the `_meta` members that every request of this session carries.
pub(crate) fn session_meta(terms: &Terms, options: &Options) -> Option<Vec<u8>> {
    (terms.era == Era::Modern).then(|| modern(options))
}

/// Returns the `_meta` members that every request of the 2026-07-28 era carries.
pub(crate) fn modern(options: &Options) -> Vec<u8> {
    let mut out = BytesMut::new();
    put_member(&mut out, MetaKey::VERSION, &string(MODERN));
    put_member(&mut out, MetaKey::CLIENT, options.client.to_raw().as_bytes());
    put_member(&mut out, MetaKey::CAPABILITIES, options.host.capabilities().as_bytes());
    for (name, value) in options.extra_meta.iter().flat_map(|extra| extra.members().0) {
        put_member(&mut out, &name, value.get().as_bytes());
    }
    out.to_vec()
}

/// Prefix of the protocol's own `_meta` members.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";

/// Prefix of the members by which a caller talks to this gateway.
const OWN_PREFIX: &str = "io.wharf/";

/// Selects the members of a caller's `_meta` to forward. A progress token is only meaningful between the caller and
/// us; a handshake-era server would misread protocol members, which belong to the other era.
pub(crate) fn forwarded(given: Option<&Raw>, era: Era, level: Option<LogLevel>) -> Option<Raw> {
    let mut out = BytesMut::new();
    if let Some(level) = level.filter(|_| era == Era::Modern) {
        put_member(&mut out, MetaKey::LOG_LEVEL, &string(level.name()));
    }
    let mut forward = |name: &str, value: &[u8]| {
        let ours = name == "progressToken" || name == MetaKey::LOG_LEVEL || name.starts_with(OWN_PREFIX);
        if !ours && (era == Era::Modern || !name.starts_with(PROTOCOL_PREFIX)) {
            put_member(&mut out, name, value);
        }
    };
    given.into_iter().for_each(|it| it.each_member(&mut forward));
    (!out.is_empty()).then(|| Raw::spliced(in_braces(&out)))
}

/// Adds `_meta` to `params`: forwarded members, the session's standing members and a progress token. Forwarded
/// members, or those already in `params`, override the standing ones, because a gateway forwards its caller's values.
pub(crate) fn with_meta(
    params: Option<Raw>,
    forwarded: Option<&Raw>,
    session_meta: Option<&[u8]>,
    token: Option<u64>,
) -> Option<Raw> {
    if forwarded.is_none() && session_meta.is_none() && token.is_none() {
        return params;
    }
    let params = params.unwrap_or_else(Raw::empty_object);
    let mut meta = BytesMut::with_capacity(64 + session_meta.map_or(0, <[u8]>::len));
    if let Some(token) = token {
        put_member(&mut meta, "progressToken", token.to_string().as_bytes());
    }
    let own = find_meta(&params);
    let Some(given) = forwarded.or(own.as_ref()) else {
        put_comma(&mut meta);
        meta.extend_from_slice(session_meta.unwrap_or_default());
        return Some(prepend(&params, [("_meta", &in_braces(&meta)[..])]));
    };
    let given = given.members();
    for (name, value) in given.0.iter().filter(|(name, _)| token.is_none() || name != "progressToken") {
        put_member(&mut meta, name, value.get().as_bytes());
    }
    let session_meta = Raw::spliced(in_braces(session_meta.unwrap_or_default()));
    for (name, value) in session_meta.members().0.iter().filter(|(name, _)| given.get(name).is_none()) {
        put_member(&mut meta, name, value.get().as_bytes());
    }
    Some(match own {
        Some(_) => replace(&params, "_meta", &in_braces(&meta)),
        None => prepend(&params, [("_meta", &in_braces(&meta)[..])]),
    })
}

/// Builds the params of a request for a named item, with optional arguments.
pub(crate) fn named_params(key: &str, name: &str, arguments: Option<&Raw>) -> Raw {
    let length = arguments.map_or(0, |it| it.as_bytes().len());
    let mut out = BytesMut::with_capacity(key.len() + name.len() + length + 32);
    out.extend_from_slice(b"{");
    put_string(&mut out, key);
    out.extend_from_slice(b":");
    put_string(&mut out, name);
    if let Some(arguments) = arguments {
        put_member(&mut out, "arguments", arguments.as_bytes());
    }
    out.extend_from_slice(b"}");
    Raw::spliced(out)
}

/// Returns the `_meta` of params. The byte search is far cheaper than parsing every member.
pub(crate) fn find_meta(params: &Raw) -> Option<Raw> {
    contains_meta(params).then(|| params.member("_meta")).flatten()
}

/// Checks whether the text `"_meta"` occurs anywhere in the value.
pub(crate) fn contains_meta(value: &Raw) -> bool {
    static META: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"_meta\""));
    META.find(value.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_meta_is_spliced_into_params() {
        let session_meta = br#""v":1,"c":2"#.as_slice();
        for (params, session_meta, token, expected) in [
            (None, None, None, None),
            (Some(r#"{"a":1}"#), None, None, Some(r#"{"a":1}"#)),
            (None, Some(session_meta), None, Some(r#"{"_meta":{"v":1,"c":2}}"#)),
            (Some("{ }"), None, Some(7), Some(r#"{"_meta":{"progressToken":7}}"#)),
            (
                Some(r#"{"a":1}"#),
                Some(session_meta),
                Some(7),
                Some(r#"{"_meta":{"progressToken":7,"v":1,"c":2},"a":1}"#),
            ),
            (
                Some(r#"{"a":1,"_meta":{"progressToken":1,"v":9,"x":"y"}}"#),
                Some(session_meta),
                Some(7),
                Some(r#"{"_meta":{"progressToken":7,"v":9,"x":"y","c":2},"a":1}"#),
            ),
        ] {
            let params = params.map(|params| Raw::parse(params).unwrap());
            let spliced = with_meta(params, None, session_meta, token);
            assert_eq!(spliced.as_ref().map(Raw::as_str), expected);
        }
    }

    #[test]
    fn only_meta_members_of_the_era_are_forwarded() {
        let given = r#"{"progressToken":"t","io.modelcontextprotocol/clientCapabilities":{"a":1},"traceparent":"00-1"}"#;
        let given = Raw::parse(given).unwrap();
        for (given, era, level, expected) in [
            (Some(&given), Era::Legacy, None, Some(r#"{"traceparent":"00-1"}"#)),
            (
                Some(&given),
                Era::Modern,
                Some(LogLevel::Debug),
                Some(
                    r#"{"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/clientCapabilities":{"a":1},"traceparent":"00-1"}"#,
                ),
            ),
            (None, Era::Legacy, Some(LogLevel::Debug), None),
        ] {
            assert_eq!(forwarded(given, era, level).as_ref().map(Raw::as_str), expected);
        }
        let meta = Raw::parse(r#"{"c":9,"x":1}"#).unwrap();
        let spliced =
            with_meta(Some(Raw::parse(r#"{"a":1}"#).unwrap()), Some(&meta), Some(br#""v":1,"c":2"#), Some(7));
        assert_eq!(
            spliced.as_ref().map(Raw::as_str),
            Some(r#"{"_meta":{"progressToken":7,"c":9,"x":1,"v":1},"a":1}"#)
        );
    }
}
