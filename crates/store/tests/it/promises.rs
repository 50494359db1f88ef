//! Tests that a call with an idempotency key is executed once.

use crate::engines::on_both;
use std::time::Duration;
use wharf_store::{Claim, Promise};

const DAY: Duration = Duration::from_secs(86_400);

fn promise(principal: &str, key: &str) -> Promise {
    let (principal, promise_key) = (principal.to_owned(), key.to_owned());
    Promise { principal, promise_key, fingerprint: "f".into(), ..Promise::default() }
}

#[tokio::test]
async fn a_promise_is_claimed_once_by_each() {
    on_both(async |store| {
        let mine = promise("me", "key");
        assert_eq!(store.claim(&mine, DAY).await.expect("it is asked"), Claim::Ours);
        let Claim::Known(begun) = store.claim(&mine, DAY).await.expect("it is asked") else {
            panic!("it was claimed twice")
        };
        assert_eq!((begun.fingerprint.as_str(), begun.status), ("f", None));
        assert_eq!(store.claim(&promise("you", "key"), DAY).await.expect("it is asked"), Claim::Ours);

        let (request_id, answer) = (Some("r".to_owned()), Some("{}".to_owned()));
        let over = Promise { request_id, status: Some(200), answer, ..mine.clone() };
        store.fulfil(&over).await.expect("it is written");
        let known = store.claim(&mine, DAY).await.expect("it is asked");
        assert_eq!(known, Claim::Known(Promise { begun_at: begun.begun_at, ..over }));

        store.give_back(&promise("you", "key")).await.expect("it is written");
        assert_eq!(store.claim(&promise("you", "key"), DAY).await.expect("it is asked"), Claim::Ours);
        // With a retention of zero, all records have expired.
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(store.claim(&mine, Duration::ZERO).await.expect("it is asked"), Claim::Ours);
    })
    .await;
}
