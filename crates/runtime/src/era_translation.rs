//! Translates answers between the era of a server and that of the client that asked.

use wharf_mcp::{
    Failure, Raw, RpcError,
    session::{Era, MetaKey},
};

/// Members that 2026-07-28 adds to results.
const RESULT_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Code of an unknown resource in the handshake era. In 2026-07-28 it is [`RpcError::INVALID_PARAMS`].
const NO_RESOURCE: i64 = -32002;

/// Translates an answer for a client of the other era.
pub(crate) fn translate(answer: Result<Raw, Failure>, client: Era) -> Result<Raw, Failure> {
    match client {
        Era::Legacy => answer.map(without_protocol_members).map_err(|it| with_code(it, handshake_code)),
        Era::Modern => answer.map_err(|it| with_code(it, modern_code)),
    }
}

/// Removes what 2026-07-28 adds to a result: its own members, and the identity of the server in `_meta`. A task is left
/// as it is: its `ttlMs` is its own, and its `resultType` says that it is one.
fn without_protocol_members(result: Raw) -> Raw {
    let names = ["resultType", "ttlMs", "cacheScope", "_meta", "taskId"];
    let [kind, ttl, scope, meta, task] = result.pick(names);
    if task.is_some() {
        return result;
    }
    let has_own = kind.or(ttl).or(scope).is_some();
    match meta.filter(|it| it.member(MetaKey::SERVER).is_some()).map(|it| it.without(&[MetaKey::SERVER])) {
        Some(meta) if meta.as_bytes() != b"{}" => result.without(&RESULT_MEMBERS).with("_meta", &meta),
        Some(_) => result.without(&[&RESULT_MEMBERS[..], &["_meta"]].concat()),
        None if has_own => result.without(&RESULT_MEMBERS),
        None => result,
    }
}

/// Returns the code of the handshake era for an error of 2026-07-28.
fn handshake_code(error: &RpcError) -> i64 {
    let names_resource = || error.data.as_ref().is_some_and(|it| it.member("uri").is_some());
    match error.code {
        RpcError::INVALID_PARAMS if names_resource() => NO_RESOURCE,
        // These are about the request that wharf has built, not about the client's.
        RpcError::HEADER_MISMATCH | RpcError::UNSUPPORTED_VERSION => RpcError::INTERNAL,
        code => code,
    }
}

/// Returns the code of 2026-07-28 for an error of the handshake era.
fn modern_code(error: &RpcError) -> i64 {
    if error.code == NO_RESOURCE { RpcError::INVALID_PARAMS } else { error.code }
}

/// Replaces the code of a server's error.
fn with_code(failure: Failure, code_of: fn(&RpcError) -> i64) -> Failure {
    match &failure.rpc {
        Some(error) if code_of(error) != error.code => {
            Failure::rpc(RpcError { code: code_of(error), ..error.clone() })
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshake_client_receives_no_members_of_the_other_era() {
        let server = r#""io.modelcontextprotocol/serverInfo":{"name":"x"}"#;
        for (result, expected) in [
            (r#"{"content":[]}"#.to_owned(), r#"{"content":[]}"#),
            (r#"{"resultType":"complete","content":[]}"#.to_owned(), r#"{"content":[]}"#),
            (r#"{"contents":[],"ttlMs":5,"cacheScope":"public"}"#.to_owned(), r#"{"contents":[]}"#),
            (format!(r#"{{"resultType":"complete","_meta":{{{server}}},"a":1}}"#), r#"{"a":1}"#),
            (format!(r#"{{"_meta":{{{server},"x":1}},"a":1}}"#), r#"{"_meta":{"x":1},"a":1}"#),
            (
                r#"{"resultType":"complete","structuredContent":{"resultType":1,"ttlMs":2}}"#.to_owned(),
                r#"{"structuredContent":{"resultType":1,"ttlMs":2}}"#,
            ),
            (
                r#"{"resultType":"task","taskId":"1","ttlMs":5}"#.to_owned(),
                r#"{"resultType":"task","taskId":"1","ttlMs":5}"#,
            ),
            (r#"{"_meta":{"x":1},"isError":true}"#.to_owned(), r#"{"_meta":{"x":1},"isError":true}"#),
        ] {
            let translated = translate(Ok(Raw::parse(result.clone()).expect("JSON")), Era::Legacy);
            assert_eq!(translated.expect("a result").as_str(), expected, "{result}");
        }
    }

    #[test]
    fn error_codes_are_those_of_the_clients_era() {
        let unknown = Some(Raw::parse(r#"{"uri":"a:b"}"#).expect("JSON"));
        for (client, code, data, expected) in [
            (Era::Legacy, RpcError::INVALID_PARAMS, unknown.clone(), NO_RESOURCE),
            (Era::Legacy, RpcError::INVALID_PARAMS, None, RpcError::INVALID_PARAMS),
            (Era::Legacy, RpcError::HEADER_MISMATCH, None, RpcError::INTERNAL),
            (Era::Legacy, RpcError::MISSING_CAPABILITY, None, RpcError::MISSING_CAPABILITY),
            (Era::Modern, NO_RESOURCE, unknown, RpcError::INVALID_PARAMS),
            (Era::Modern, -32000, None, -32000),
        ] {
            let failure = Failure::rpc(RpcError { data, ..RpcError::new(code, "m") });
            let translated = translate(Err(failure), client).expect_err("an error");
            assert_eq!(translated.rpc_code(), Some(expected), "{client:?} {code}");
        }
    }
}
