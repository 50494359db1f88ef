//! Tests that a call with an idempotency key is executed once.

use crate::engines::on_both;
use std::time::Duration;
use wharf_store::{IdempotencyRecord, KeyClaim};

const DAY: Duration = Duration::from_secs(86_400);

fn record(principal: &str, key: &str) -> IdempotencyRecord {
    let (principal, promise_key) = (principal.to_owned(), key.to_owned());
    IdempotencyRecord { principal, promise_key, fingerprint: "f".into(), ..IdempotencyRecord::default() }
}

#[tokio::test]
async fn idempotency_key_is_claimed_once_per_principal() {
    on_both(async |store| {
        let mine = record("me", "key");
        assert_eq!(store.claim_key(&mine, DAY).await.expect("it is asked"), KeyClaim::Claimed);
        let KeyClaim::Known(begun) = store.claim_key(&mine, DAY).await.expect("it is asked") else {
            panic!("it was claimed twice")
        };
        assert_eq!((begun.fingerprint.as_str(), begun.status), ("f", None));
        assert_eq!(
            store.claim_key(&record("you", "key"), DAY).await.expect("it is asked"),
            KeyClaim::Claimed
        );

        let (request_id, answer) = (Some("r".to_owned()), Some("{}".to_owned()));
        let over = IdempotencyRecord { request_id, status: Some(200), answer, ..mine.clone() };
        store.complete_key(&over).await.expect("it is written");
        let known = store.claim_key(&mine, DAY).await.expect("it is asked");
        assert_eq!(known, KeyClaim::Known(IdempotencyRecord { begun_at: begun.begun_at, ..over }));

        store.release_key(&record("you", "key")).await.expect("it is written");
        assert_eq!(
            store.claim_key(&record("you", "key"), DAY).await.expect("it is asked"),
            KeyClaim::Claimed
        );
        // With a retention of zero, all records have expired.
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(store.claim_key(&mine, Duration::ZERO).await.expect("it is asked"), KeyClaim::Claimed);
    })
    .await;
}
