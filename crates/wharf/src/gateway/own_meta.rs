//! The `_meta` members by which a client talks to this gateway: the ids under which a call is in events and the journal.

use super::invalid;
use crate::request_ids::MAX_ID_CHARS;
use memchr::memmem;
use wharf_mcp::{Raw, RpcError};

/// Prefix of our members.
const PREFIX: &[u8] = b"io.wharf/";

/// Ids that a client chose for its call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallIds {
    pub(super) request_id: Option<String>,
    pub(super) thread_id: Option<String>,
}

impl CallIds {
    /// Reads the ids in a request's `_meta`. Most requests have none, so a byte search comes first.
    pub(super) fn read(meta: Option<&Raw>) -> Result<CallIds, RpcError> {
        match meta.filter(|it| memmem::find(it.as_bytes(), PREFIX).is_some()) {
            None => Ok(CallIds::default()),
            Some(meta) => Ok(CallIds {
                request_id: id(meta, "io.wharf/request_id")?,
                thread_id: id(meta, "io.wharf/thread_id")?,
            }),
        }
    }
}

fn id(meta: &Raw, key: &str) -> Result<Option<String>, RpcError> {
    let Some(raw) = meta.member(key) else { return Ok(None) };
    let fits = |it: &String| {
        !it.is_empty() && it.chars().count() <= MAX_ID_CHARS && !it.chars().any(char::is_control)
    };
    let wrong = || {
        invalid(&format!("`_meta[\"{key}\"]` has to be a string of 1 to {MAX_ID_CHARS} printable characters"))
    };
    raw.decode::<String>().ok().filter(fits).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_checked() {
        for (meta, expected) in [
            (r#"{"progressToken":1}"#, Ok((None, None))),
            (r#"{"io.wharf/request_id":"a","io.wharf/thread_id":"t"}"#, Ok((Some("a"), Some("t")))),
            (r#"{"note":"io.wharf/ is a prefix"}"#, Ok((None, None))),
            (r#"{"io.wharf/request_id":""}"#, Err(())),
            (r#"{"io.wharf/request_id":7}"#, Err(())),
            (r#"{"io.wharf/thread_id":"a\nb"}"#, Err(())),
        ] {
            let found = CallIds::read(Some(&Raw::parse(meta.to_owned()).expect("JSON")));
            let found =
                found.as_ref().map(|it| (it.request_id.as_deref(), it.thread_id.as_deref())).map_err(|_| ());
            assert_eq!(found, expected, "{meta}");
        }
    }
}
