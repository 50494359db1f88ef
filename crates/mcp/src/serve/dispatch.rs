//! Answers protocol requests such as `initialize` and `ping`, passes all others to the handler, and adds the
//! protocol's own members to its results.

use super::{
    About, Eras, Incoming, MessageSender, Service,
    client::{Client, ClientTerms, Peer},
    listen,
};
use crate::{
    Raw, RpcError,
    json::splice,
    model::LogLevel,
    panic_guard,
    session::{Era, LATEST_LEGACY, LEGACY, MODERN, MetaKey, meta},
};
use serde_json::json;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Methods whose results carry `ttlMs` and `cacheScope`.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Answers one request according to its protocol era. `modern_terms` are the client's terms if the transport has read
/// them already.
pub(super) async fn answer(
    service: Service,
    mut request: Incoming,
    modern_terms: Option<Arc<ClientTerms>>,
    id: Raw,
    peer: Arc<Peer>,
    out: MessageSender,
) -> Result<Raw, RpcError> {
    let (eras, has_version) = (service.about().eras, request.members.has_version());
    if request.method == "initialize" && !has_version {
        return if eras == Eras::ModernOnly {
            Err(unsupported_version(eras, None))
        } else {
            initialize(&service, &request, &peer).await
        };
    }
    let terms = match (has_version, peer.terms.get()) {
        (true, _) if eras == Eras::LegacyOnly => return Err(RpcError::method_not_found(&request.method)),
        (true, _) => match modern_terms {
            Some(terms) => terms,
            None => Arc::new(request.members.modern_terms(eras)?),
        },
        (false, Some(terms)) => terms.clone(),
        (false, None) if request.method == "ping" => return Ok(Raw::empty_object()),
        (false, None) => return Err(invalid_params(&format!("`_meta` has no `{}`", MetaKey::VERSION))),
    };
    let method = request.method.clone();
    let result = match (terms.era, method.as_str()) {
        (Era::Modern, "subscriptions/listen") => {
            return Box::pin(listen::run(&service, &request, &terms, id, out)).await;
        }
        (Era::Modern, "server/discover") => {
            discovery_result(service.about(), service.handler().instructions().await)
        }
        // 2026-07-28 removed these methods.
        (
            Era::Modern,
            "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe",
        ) => return Err(RpcError::method_not_found(&method)),
        (Era::Legacy, "ping") => Raw::empty_object(),
        (Era::Legacy, "logging/setLevel") if service.about().capabilities.member("logging").is_some() => {
            peer.set_log_level(read_log_level(&request)?);
            Raw::empty_object()
        }
        (Era::Legacy, "resources/subscribe") if has_subscriptions(service.about()) => {
            peer.watch(service.watch(&read_uri(&request)?).await?)?;
            Raw::empty_object()
        }
        (Era::Legacy, "resources/unsubscribe") if has_subscriptions(service.about()) => {
            peer.unwatch(&read_uri(&request)?)?;
            Raw::empty_object()
        }
        _ => {
            let client = Client::new(terms.clone(), peer, out, request.members.meta.take(), id);
            let tasks = if method.starts_with("tasks/") { service.handler().tasks() } else { None };
            match tasks {
                // Boxed, so that the futures of other requests do not reserve space for it.
                Some(tasks) => Box::pin(tasks.answer(request, client)).await?,
                None => {
                    panic_guard::catch_panic(async { service.handler().handle(request, client).await })
                        .await?
                }
            }
        }
    };
    Ok(match terms.era {
        Era::Legacy => result,
        Era::Modern => add_protocol_members(service.about(), &method, result),
    })
}

fn read_log_level(request: &Incoming) -> Result<LogLevel, RpcError> {
    let level: Option<String> =
        request.params.as_ref().and_then(|params| params.member("level")?.decode().ok());
    level.and_then(|level| LogLevel::named(&level)).ok_or_else(|| invalid_params("`level` is unknown"))
}

fn has_subscriptions(about: &About) -> bool {
    let announces = about.capabilities.member("resources").and_then(|it| it.member("subscribe"));
    announces.is_some_and(|it| it.as_bytes() == b"true")
}

fn read_uri(request: &Incoming) -> Result<String, RpcError> {
    let uri = request.params.as_ref().and_then(|params| params.member("uri")?.decode().ok());
    uri.ok_or_else(|| invalid_params("`uri` is missing"))
}

async fn initialize(service: &Service, request: &Incoming, peer: &Peer) -> Result<Raw, RpcError> {
    let params = request.params.as_ref().ok_or_else(|| invalid_params("`initialize` needs parameters"))?;
    let wanted: String = params
        .member("protocolVersion")
        .and_then(|it| it.decode().ok())
        .ok_or_else(|| invalid_params("`protocolVersion` is missing"))?;
    let version = LEGACY.into_iter().find(|known| *known == wanted).unwrap_or(LATEST_LEGACY);
    let _ = peer.terms.set(Arc::new(ClientTerms {
        era: Era::Legacy,
        version: version.to_owned(),
        capabilities: params.member("capabilities").map_or_else(Raw::empty_object, |it| it.detached()),
        info: params.member("clientInfo").map(|it| it.detached()),
        as_meta: OnceLock::new(),
    }));
    let (info, capabilities) = (&service.about().info, service.about().capabilities(version));
    let instructions = service.handler().instructions().await.as_deref().map(splice::string);
    let version = splice::string(version);
    let members = [
        ("protocolVersion", version.as_slice()),
        ("capabilities", capabilities.as_bytes()),
        ("serverInfo", info.as_bytes()),
    ];
    Ok(splice::object(members.into_iter().chain(instructions.as_deref().map(|text| ("instructions", text)))))
}

fn discovery_result(about: &About, instructions: Option<String>) -> Raw {
    let versions = Raw::from(json!(supported_versions(about.eras)));
    let instructions = instructions.as_deref().map(splice::string);
    let capabilities = about.capabilities(MODERN);
    let members = [("supportedVersions", versions.as_bytes()), ("capabilities", capabilities.as_bytes())];
    splice::object(members.into_iter().chain(instructions.as_deref().map(|text| ("instructions", text))))
}

/// Beginning of a list that already has the protocol's members, see [`complete_list`].
const COMPLETE_LIST: &[u8] = br#"{"resultType":"complete","ttlMs":"#;

/// Adds the protocol's members to a list that has none of them yet: `resultType`, the cache hints and the server's
/// identity. A handler that serves a long list from memory calls this itself, so that no list is read again to find
/// out what is missing.
pub fn complete_list(list: &Raw, ttl: Duration, shared: bool, about: &About) -> Raw {
    let scope: &[u8] = if shared { b"\"public\"" } else { b"\"private\"" };
    list.prepend([
        ("resultType", &b"\"complete\""[..]),
        ("ttlMs", u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).to_string().as_bytes()),
        ("cacheScope", scope),
        ("_meta", splice::object([(MetaKey::SERVER, about.info.as_bytes())]).as_bytes()),
    ])
}

/// Adds the members that every 2026-07-28 result needs, unless the handler has set them.
fn add_protocol_members(about: &About, method: &str, result: Raw) -> Raw {
    let is_cacheable = CACHEABLE.contains(&method);
    if is_cacheable && result.as_bytes().starts_with(COMPLETE_LIST) {
        return result;
    }
    let [result_type, ttl, scope, given] = result.pick(["resultType", "ttlMs", "cacheScope", "_meta"]);
    // A result that asks the client for input must not be cached.
    let is_cacheable = is_cacheable && result_type.as_ref().is_none_or(|it| it.as_bytes() == b"\"complete\"");
    let mut members = Vec::<(&str, Cow<'_, [u8]>)>::with_capacity(4);
    if result_type.is_none() {
        members.push(("resultType", b"\"complete\"".into()));
    }
    if is_cacheable && ttl.is_none() {
        members.push(("ttlMs", about.ttl.as_millis().to_string().into_bytes().into()));
    }
    if is_cacheable && scope.is_none() {
        let scope: &[u8] = if about.shared_cache { b"\"public\"" } else { b"\"private\"" };
        members.push(("cacheScope", scope.into()));
    }
    let meta = match &given {
        Some(given) if given.member(MetaKey::SERVER).is_some() => None,
        Some(given) => Some(splice::replace(given, MetaKey::SERVER, about.info.as_bytes())),
        None => Some(splice::object([(MetaKey::SERVER, about.info.as_bytes())])),
    };
    // An absent `_meta` may be there as `null`.
    let result =
        if meta.is_some() && meta::contains_meta(&result) { result.without(&["_meta"]) } else { result };
    members.extend(meta.as_ref().map(|meta| ("_meta", Cow::Borrowed(meta.as_bytes()))));
    result.prepend(members.iter().map(|(name, value)| (*name, &**value)))
}

fn supported_versions(eras: Eras) -> Vec<&'static str> {
    let modern = (eras != Eras::LegacyOnly).then_some(MODERN);
    let legacy = (eras != Eras::ModernOnly).then_some(LEGACY);
    modern.into_iter().chain(legacy.into_iter().flatten()).collect()
}

pub(super) fn unsupported_version(eras: Eras, requested: Option<&str>) -> RpcError {
    let data = json!({ "supported": supported_versions(eras), "requested": requested });
    RpcError {
        data: Some(data.into()),
        ..RpcError::new(RpcError::UNSUPPORTED_VERSION, "unsupported protocol version")
    }
}

pub(super) fn invalid_params(what: &str) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn completed(method: &str, result: &str) -> Value {
        let about = About::new("it", "1", Raw::empty_object());
        let result: Raw = serde_json::from_str::<Value>(result).expect("JSON").into();
        add_protocol_members(&about, method, result).decode().expect("JSON")
    }

    #[test]
    fn missing_protocol_members_are_added_and_given_ones_kept() {
        let server = json!({ MetaKey::SERVER: { "name": "it", "version": "1" } });
        let given = json!({ MetaKey::SERVER: { "name": "other", "version": "2" }, "a": 1 });
        for (method, result, expected) in [
            ("tools/call", json!({}), json!({ "resultType": "complete", "_meta": server })),
            (
                "tools/call",
                json!({ "content": [] }),
                json!({ "resultType": "complete", "_meta": server, "content": [] }),
            ),
            ("tools/call", json!({ "_meta": null }), json!({ "resultType": "complete", "_meta": server })),
            (
                "tools/call",
                json!({ "_meta": { "a": 1 }, "x": 2 }),
                json!({
                    "resultType": "complete",
                    "_meta": { "a": 1, MetaKey::SERVER: { "name": "it", "version": "1" } },
                    "x": 2,
                }),
            ),
            (
                "tools/call",
                json!({ "resultType": "input_required", "_meta": given }),
                json!({ "resultType": "input_required", "_meta": given }),
            ),
            (
                "tools/list",
                json!({ "tools": [], "ttlMs": 7 }),
                json!({ "resultType": "complete", "cacheScope": "private", "_meta": server, "tools": [], "ttlMs": 7 }),
            ),
            (
                "resources/read",
                json!({ "resultType": "input_required" }),
                json!({ "resultType": "input_required", "_meta": server }),
            ),
        ] {
            assert_eq!(completed(method, &result.to_string()), expected, "{method} {result}");
        }
    }

    #[test]
    fn a_list_that_the_handler_completed_is_not_read_again() {
        let about = About::new("it", "1", Raw::empty_object());
        let list = Raw::from(json!({ "tools": [{ "name": "a" }] }));
        let complete = complete_list(&list, Duration::from_secs(2), true, &about);
        let sent = add_protocol_members(&about, "tools/list", complete.clone());
        assert_eq!(sent.as_bytes().as_ptr(), complete.as_bytes().as_ptr());
        let expected = json!({
            "resultType": "complete",
            "ttlMs": 2000,
            "cacheScope": "public",
            "_meta": { MetaKey::SERVER: { "name": "it", "version": "1" } },
            "tools": [{ "name": "a" }],
        });
        assert_eq!(sent.decode::<Value>().expect("JSON"), expected);
    }
}
