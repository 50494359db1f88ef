//! What a server's answers say about its era.

use super::terms::{Era, LATEST_LEGACY, LEGACY, MODERN, Terms};
use crate::{Class, Failure, Raw, RpcError};
use serde::Deserialize;

/// What the server's reaction to a probe says.
pub(super) enum Evidence {
    /// It speaks the stateless era.
    Modern(Terms),
    /// It has a handshake; offer this version.
    Legacy(&'static str),
    /// It initialised while we waited for the probe.
    Initialized(Terms),
    /// It went away: start it again and do not probe.
    Gone(Failure),
    /// None: this is not about eras.
    None(Failure),
}

/// What an answer to `server/discover` says.
pub(super) fn judge(answer: Result<Raw, Failure>) -> Evidence {
    match answer {
        Ok(result) => judge_discovery(&result),
        Err(failure) => judge_failure(failure),
    }
}

/// Whether the server refuses a protocol version, which only servers of the stateless era know how to.
pub(super) fn refuses_version(failure: &Failure) -> bool {
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
        // Credentials and overload are no matter of eras.
        (_, _) if matches!(failure.status, Some(401 | 403 | 407 | 429 | 503)) => Evidence::None(failure),
        (_, _) if failure.status.is_some() => Evidence::Legacy(LATEST_LEGACY),
        (Class::Closed, _) => Evidence::Gone(failure),
        _ => Evidence::None(failure),
    }
}

/// Whether the server, while refusing a version, names the stateless one among those it speaks.
pub(super) fn supports_modern(failure: &Failure) -> bool {
    supported_versions(failure).iter().any(|version| version == MODERN)
}

fn supported_versions(failure: &Failure) -> Vec<String> {
    let data = failure.rpc.as_ref().and_then(|error| error.data.as_ref());
    data.and_then(|data| data.member("supported")?.decode().ok()).unwrap_or_default()
}

/// The newest version with a handshake that the server names.
fn best_legacy(supported: &[String]) -> Evidence {
    match LEGACY.into_iter().find(|version| supported.iter().any(|named| named == version)) {
        Some(version) => Evidence::Legacy(version),
        None if supported.is_empty() => Evidence::Legacy(LATEST_LEGACY),
        None => {
            let named = supported.join(", ");
            Evidence::None(Failure::protocol(format!(
                "no protocol version in common: the server speaks {named}"
            )))
        }
    }
}

/// The terms in an answer to `initialize`.
pub(super) fn read_initialized(result: &Raw) -> Result<Terms, Failure> {
    let named: Option<String> = result.member("protocolVersion").and_then(|version| version.decode().ok());
    let Some(named) = named else {
        return Err(Failure::protocol("the server's answer to `initialize` names no protocol version"));
    };
    let Some(version) = LEGACY.into_iter().find(|version| **version == named) else {
        return Err(Failure::protocol(format!("the server wants protocol version `{named}`")));
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
