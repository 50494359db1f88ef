//! Derives the protocol era from a server's responses.

use super::terms::{Era, LATEST_LEGACY, LEGACY, MODERN, Terms};
use crate::{Class, Failure, Raw, RpcError};
use serde::Deserialize;

/// Conclusion from the server's reaction to a probe.
pub(super) enum Evidence {
    /// The server speaks the 2026-07-28 era.
    Modern(Terms),
    /// The server needs a handshake; offer this version.
    Legacy(&'static str),
    /// The server completed `initialize` with these terms.
    Initialized(Terms),
    /// The server disconnected: start it again and skip the probe.
    Disconnected(Failure),
    /// No conclusion about the era is possible; report this failure.
    None(Failure),
}

/// Interprets the response to `server/discover`.
pub(super) fn judge(answer: Result<Raw, Failure>) -> Evidence {
    match answer {
        Ok(result) => judge_discovery(&result),
        Err(failure) => judge_failure(failure),
    }
}

/// Returns whether the server rejects the protocol version with the code that only 2026-07-28 servers use.
pub(super) fn rejects_version(failure: &Failure) -> bool {
    failure.rpc_code() == Some(RpcError::UNSUPPORTED_VERSION)
}

fn judge_discovery(result: &Raw) -> Evidence {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct Discovery {
        #[serde(default)]
        supported_versions: Vec<String>,
        #[serde(default)]
        instructions: Option<String>,
    }
    let Discovery { supported_versions, instructions } = result.decode_or_default();
    if !supported_versions.iter().any(|version| version == MODERN) {
        return best_legacy(&supported_versions);
    }
    let server = result.member("_meta").and_then(|meta| meta.member(super::MetaKey::SERVER));
    Evidence::Modern(Terms {
        era: Era::Modern,
        version: MODERN.into(),
        capabilities: capabilities(result),
        server: server.map(|server| server.detached()),
        instructions,
    })
}

fn judge_failure(failure: Failure) -> Evidence {
    match (failure.class, failure.rpc_code()) {
        (Class::Rpc, Some(RpcError::UNSUPPORTED_VERSION)) => best_legacy(&supported_versions(&failure)),
        (Class::Rpc, Some(RpcError::HEADER_MISMATCH | RpcError::MISSING_CAPABILITY)) => {
            Evidence::None(failure)
        }
        (Class::Rpc, _) => Evidence::Legacy(LATEST_LEGACY),
        // Credential and overload errors say nothing about the era.
        (_, _) if matches!(failure.status, Some(401 | 403 | 407 | 429 | 503)) => Evidence::None(failure),
        (_, _) if failure.status.is_some() => Evidence::Legacy(LATEST_LEGACY),
        (Class::Closed, _) => Evidence::Disconnected(failure),
        _ => Evidence::None(failure),
    }
}

/// Returns whether a version error lists 2026-07-28 among the supported versions.
pub(super) fn supports_modern(failure: &Failure) -> bool {
    supported_versions(failure).iter().any(|version| version == MODERN)
}

fn supported_versions(failure: &Failure) -> Vec<String> {
    let data = failure.rpc.as_ref().and_then(|error| error.data.as_ref());
    data.and_then(|data| data.member("supported")?.decode().ok()).unwrap_or_default()
}

/// Picks the newest handshake version that the server supports.
fn best_legacy(supported: &[String]) -> Evidence {
    match LEGACY.into_iter().find(|version| supported.iter().any(|name| name == version)) {
        Some(version) => Evidence::Legacy(version),
        None if supported.is_empty() => Evidence::Legacy(LATEST_LEGACY),
        None => {
            let name = supported.join(", ");
            Evidence::None(Failure::protocol(format!(
                "no protocol version in common: the server speaks {name}"
            )))
        }
    }
}

/// Reads the negotiated terms from the result of `initialize`.
pub(super) fn read_initialized(result: &Raw) -> Result<Terms, Failure> {
    let name: Option<String> = result.member("protocolVersion").and_then(|version| version.decode().ok());
    let Some(name) = name else {
        return Err(Failure::protocol("the server's answer to `initialize` names no protocol version"));
    };
    let Some(version) = LEGACY.into_iter().find(|version| **version == name) else {
        return Err(Failure::protocol(format!(
            "the server requires the unsupported protocol version `{name}`"
        )));
    };
    Ok(Terms {
        era: Era::Legacy,
        version: version.into(),
        capabilities: capabilities(result),
        server: result.member("serverInfo").map(|server| server.detached()),
        instructions: result.member("instructions").and_then(|text| text.decode().ok()),
    })
}

fn capabilities(result: &Raw) -> Raw {
    let declared = result.member("capabilities").filter(Raw::is_object);
    declared.map_or_else(Raw::empty_object, |declared| declared.detached())
}
