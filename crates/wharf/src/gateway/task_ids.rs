//! Ids under which clients know the tasks of servers.
//!
//! An id names the source and the server's own id, and is signed together with the principal. So any replica can route
//! it without a table of tasks, no client can make one up, and one client's id is of no use to another.

use super::tasks::TaskForm;
use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use std::{fmt, sync::Arc};
use wharf_mcp::{Raw, tasks};
use wharf_runtime::CallRecord;
use wharf_store::{Store, StoreError};

/// Length of the key, in bytes.
const KEY_BYTES: usize = 32;

/// Length of the signature, in bytes. An attacker has to guess it online.
const SIGNATURE_BYTES: usize = 16;

/// Name of the key in the database.
const KEY_NAME: &str = "tasks";

/// Signs and checks the ids of tasks.
#[derive(Clone)]
pub(crate) struct TaskIds(Arc<hmac::Key>);

/// A task of one source.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceTask {
    pub(super) source: String,
    /// The id that the server gave the task.
    pub(super) id: String,
}

impl TaskIds {
    /// Uses the key that all gateways on this database share.
    pub(crate) async fn shared(store: &Store) -> Result<TaskIds, StoreError> {
        let key = store.shared_key(KEY_NAME, &URL_SAFE_NO_PAD.encode(random_key())).await?;
        Ok(TaskIds::new(key.as_bytes()))
    }

    /// Uses a key of this process, for a gateway without a database.
    pub(crate) fn random() -> TaskIds {
        TaskIds::new(&random_key())
    }

    fn new(key: &[u8]) -> TaskIds {
        TaskIds(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key)))
    }

    /// Replaces the id in a result that creates a task, and returns the result in the client's form. Other results
    /// stay as they are.
    pub(super) fn replace_id(&self, record: &CallRecord, result: Raw, form: TaskForm) -> Raw {
        if !tasks::is_task(&result) {
            return result;
        }
        let (Some(source), Some(id)) = (record.source.as_deref(), tasks::id_of(&result)) else {
            return result;
        };
        let task = tasks::with_id(&result, &self.seal(record.principal.as_deref(), source, &id));
        match form {
            TaskForm::Modern => task,
            TaskForm::Legacy => tasks::created_to_legacy(&task),
        }
    }

    /// Returns the id that a client gets.
    fn seal(&self, principal: Option<&str>, source: &str, id: &str) -> String {
        let payload = URL_SAFE_NO_PAD.encode(json!([source, id]).to_string());
        let signature = URL_SAFE_NO_PAD.encode(self.signature(principal, source, id));
        format!("{payload}.{signature}")
    }

    /// Returns the task of an id that this principal got, or `None` for any other id.
    pub(super) fn open(&self, principal: Option<&str>, sealed: &str) -> Option<SourceTask> {
        let (payload, signature) = sealed.split_once('.')?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let (source, id): (String, String) = serde_json::from_slice(&payload).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let expected = self.signature(principal, &source, &id);
        verify_slices_are_equal(&signature, &expected).ok()?;
        Some(SourceTask { source, id })
    }

    fn signature(&self, principal: Option<&str>, source: &str, id: &str) -> Vec<u8> {
        let signed = json!([principal, source, id]).to_string();
        hmac::sign(&self.0, signed.as_bytes()).as_ref().iter().copied().take(SIGNATURE_BYTES).collect()
    }
}

/// Two random UUIDs: 244 random bits.
fn random_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let [one, other] = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    key[..16].copy_from_slice(one.as_bytes());
    key[16..].copy_from_slice(other.as_bytes());
    key
}

impl fmt::Debug for TaskIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskIds")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_opens_only_for_its_principal_and_only_unchanged() {
        let ids = TaskIds::random();
        let sealed = ids.seal(Some("ada"), "srv", "task:1/ü");
        let task = SourceTask { source: "srv".into(), id: "task:1/ü".into() };
        assert_eq!(ids.open(Some("ada"), &sealed), Some(task));
        for other in [None, Some("bob")] {
            assert_eq!(ids.open(other, &sealed), None);
        }
        assert_eq!(TaskIds::random().open(Some("ada"), &sealed), None);
        let (_, signature) = sealed.split_once('.').unwrap();
        let forged = format!("{}.{signature}", URL_SAFE_NO_PAD.encode(r#"["other","task:1/ü"]"#));
        for wrong in [forged.as_str(), "", ".", "a.b", &sealed[1..], &sealed[..sealed.len() - 1]] {
            assert_eq!(ids.open(Some("ada"), wrong), None, "{wrong}");
        }
        assert!(sealed.bytes().all(|it| it.is_ascii_graphic()), "it fits in an HTTP header");
    }
}
