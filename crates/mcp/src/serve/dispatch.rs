//! Answers protocol requests such as `initialize` and `ping`, passes all others to the handler, and adds the
//! protocol's own members to its results.

use super::{
    About, Eras, Handler, Incoming, Service,
    client::{Client, ClientTerms, Peer},
    listen,
};
use crate::{
    Outbound, Raw, RpcError,
    json::splice,
    model::LogLevel,
    panic_guard,
    session::{Era, LATEST_LEGACY, LEGACY, MODERN, MetaKey, meta},
};
use serde_json::json;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};
use tokio::sync::mpsc;

/// Methods whose results carry `ttlMs` and `cacheScope`.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Answers one request according to its protocol era.
pub(super) async fn answer<H: Handler>(
    service: Service<H>,
    request: Incoming,
    id: Raw,
    peer: Arc<Peer>,
    out: mpsc::Sender<Outbound>,
) -> Result<Raw, RpcError> {
    let meta = request.params.as_ref().and_then(meta::find_meta);
    let named = meta.as_ref().and_then(|meta| meta.member(MetaKey::VERSION));
    let eras = service.about().eras;
    if request.method == "initialize" && named.is_none() {
        return if eras == Eras::ModernOnly {
            Err(unsupported_version(eras, None))
        } else {
            initialize(&service, &request, &peer)
        };
    }
    let terms = match (&named, peer.terms.get()) {
        (Some(_), _) if eras == Eras::LegacyOnly => return Err(RpcError::method_not_found(&request.method)),
        (Some(_), _) => Arc::new(modern_terms(eras, meta.as_ref())?),
        (None, Some(terms)) => terms.clone(),
        (None, None) if request.method == "ping" => return Ok(Raw::empty_object()),
        (None, None) => return Err(invalid_params(&format!("`_meta` has no `{}`", MetaKey::VERSION))),
    };
    let method = request.method.clone();
    let client = Client::new(terms.clone(), peer.clone(), out.clone(), meta.as_ref(), id.clone());
    match terms.era {
        Era::Legacy => answer_legacy(&service, request, client, &peer).await,
        Era::Modern if method == "subscriptions/listen" => listen::run(&service, &request, id, out).await,
        Era::Modern => {
            let result = answer_modern(&service, request, client).await?;
            Ok(add_protocol_members(service.about(), &method, &result))
        }
    }
}

async fn answer_legacy<H: Handler>(
    service: &Service<H>,
    request: Incoming,
    client: Client,
    peer: &Peer,
) -> Result<Raw, RpcError> {
    match request.method.as_str() {
        "ping" => Ok(Raw::empty_object()),
        "logging/setLevel" if service.about().capabilities.member("logging").is_some() => {
            let level: Option<String> =
                request.params.and_then(|params| params.member("level")?.decode().ok());
            let level = level
                .and_then(|level| LogLevel::named(&level))
                .ok_or_else(|| invalid_params("`level` is unknown"))?;
            peer.set_log_level(level);
            Ok(Raw::empty_object())
        }
        "resources/subscribe" if has_subscriptions(service.about()) => {
            peer.watch(service.watch(&read_uri(&request)?).await?)?;
            Ok(Raw::empty_object())
        }
        "resources/unsubscribe" if has_subscriptions(service.about()) => {
            peer.unwatch(&read_uri(&request)?);
            Ok(Raw::empty_object())
        }
        _ => panic_guard::catch_panic(async { service.handler().handle(request, client).await }).await,
    }
}

async fn answer_modern<H: Handler>(
    service: &Service<H>,
    request: Incoming,
    client: Client,
) -> Result<Raw, RpcError> {
    match request.method.as_str() {
        "server/discover" => Ok(discovery_result(service.about())),
        // 2026-07-28 removed these methods.
        "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            Err(RpcError::method_not_found(&request.method))
        }
        _ => panic_guard::catch_panic(async { service.handler().handle(request, client).await }).await,
    }
}

fn has_subscriptions(about: &About) -> bool {
    let announces = about.capabilities.member("resources").and_then(|it| it.member("subscribe"));
    announces.is_some_and(|it| it.as_bytes() == b"true")
}

fn read_uri(request: &Incoming) -> Result<String, RpcError> {
    let uri = request.params.as_ref().and_then(|params| params.member("uri")?.decode().ok());
    uri.ok_or_else(|| invalid_params("`uri` is missing"))
}

fn initialize<H: Handler>(service: &Service<H>, request: &Incoming, peer: &Peer) -> Result<Raw, RpcError> {
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
    let About { info, capabilities, instructions, .. } = service.about();
    let (version, instructions) = (splice::string(version), instructions.as_deref().map(splice::string));
    let members = [
        ("protocolVersion", version.as_slice()),
        ("capabilities", capabilities.as_bytes()),
        ("serverInfo", info.as_bytes()),
    ];
    Ok(splice::object(members.into_iter().chain(instructions.as_deref().map(|text| ("instructions", text)))))
}

/// Reads version, capabilities and identity of the client from `_meta` of a 2026-07-28 request.
pub(super) fn modern_terms(eras: Eras, meta: Option<&Raw>) -> Result<ClientTerms, RpcError> {
    let version: Option<String> = meta.and_then(|meta| meta.member(MetaKey::VERSION)?.decode().ok());
    let version = version.ok_or_else(|| invalid_params(&format!("`_meta` has no `{}`", MetaKey::VERSION)))?;
    if version != MODERN {
        return Err(unsupported_version(eras, Some(&version)));
    }
    let capabilities = meta.and_then(|meta| meta.member(MetaKey::CAPABILITIES)).filter(Raw::is_object);
    let capabilities =
        capabilities.ok_or_else(|| invalid_params(&format!("`_meta` has no `{}`", MetaKey::CAPABILITIES)))?;
    let info = meta.and_then(|meta| meta.member(MetaKey::CLIENT));
    Ok(ClientTerms { era: Era::Modern, version, capabilities, info, as_meta: OnceLock::new() })
}

fn discovery_result(about: &About) -> Raw {
    let versions = Raw::from(json!(supported_versions(about.eras)));
    let instructions = about.instructions.as_deref().map(splice::string);
    let members =
        [("supportedVersions", versions.as_bytes()), ("capabilities", about.capabilities.as_bytes())];
    splice::object(members.into_iter().chain(instructions.as_deref().map(|text| ("instructions", text))))
}

/// Adds the members that every 2026-07-28 result needs, unless the handler has set them.
fn add_protocol_members(about: &About, method: &str, result: &Raw) -> Raw {
    let members = result.members();
    let mut all: Vec<(&str, Cow<'_, [u8]>)> =
        members.0.iter().map(|(name, value)| (&**name, Cow::Borrowed(value.get().as_bytes()))).collect();
    let mut add = |name: &'static str, value: Cow<'static, [u8]>| {
        if members.get(name).is_none() {
            all.push((name, value));
        }
    };
    // A result that asks the client for input must not be cached.
    let is_complete = members.get("resultType").is_none_or(|it| it.get() == "\"complete\"");
    add("resultType", Cow::Borrowed(b"\"complete\""));
    if is_complete && CACHEABLE.contains(&method) {
        add("ttlMs", about.ttl.as_millis().to_string().into_bytes().into());
        let scope: &[u8] = if about.shared_cache { b"\"public\"" } else { b"\"private\"" };
        add("cacheScope", Cow::Borrowed(scope));
    }
    let given = result.member("_meta").unwrap_or_else(Raw::empty_object);
    if given.member(MetaKey::SERVER).is_none() {
        all.retain(|(name, _)| *name != "_meta");
        let meta = splice::replace(&given, MetaKey::SERVER, about.info.as_bytes());
        all.push(("_meta", meta.into_bytes().to_vec().into()));
    }
    splice::object(all.iter().map(|(name, value)| (*name, &**value)))
}

fn supported_versions(eras: Eras) -> Vec<&'static str> {
    let modern = (eras != Eras::LegacyOnly).then_some(MODERN);
    let legacy = (eras != Eras::ModernOnly).then_some(LEGACY);
    modern.into_iter().chain(legacy.into_iter().flatten()).collect()
}

fn unsupported_version(eras: Eras, requested: Option<&str>) -> RpcError {
    let data = json!({ "supported": supported_versions(eras), "requested": requested });
    RpcError {
        data: Some(data.into()),
        ..RpcError::new(RpcError::UNSUPPORTED_VERSION, "unsupported protocol version")
    }
}

fn invalid_params(what: &str) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, what)
}
