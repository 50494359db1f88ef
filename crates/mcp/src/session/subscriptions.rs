//! Keeps resource subscriptions in sync: the set a caller wants and the server's decision for each URI.
//!
//! Callers replace the wanted set as a whole; one task per session brings the server up to date. In the handshake era
//! that task sends `resources/subscribe` and `resources/unsubscribe` per URI; in the 2026-07-28 era the set is part
//! of `subscriptions/listen`.

use super::{hooks::RequestHooks, sender::WeakRequestSender, terms::Terms};
use crate::{Failure, Outbound, Raw, RpcError};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time};

/// Timeout of one subscribe or unsubscribe request.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Session handle's half: sets the wanted URIs and reads the server's decisions.
#[derive(Debug)]
pub(super) struct SubscriptionHandle {
    wanted: watch::Sender<Wanted>,
    decisions: watch::Receiver<SubscriptionDecisions>,
}

/// Subscription task's half.
#[derive(Debug)]
pub(super) struct SubscriptionList {
    pub(super) wanted: watch::Receiver<Wanted>,
    pub(super) decisions: watch::Sender<SubscriptionDecisions>,
}

/// Wanted resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) uris: BTreeSet<String>,
    /// How often the server has lost its subscriptions; a change makes the task subscribe again.
    lapses: u64,
}

/// Server's decision for each URI: `None` if subscribed, else the error.
pub(super) type SubscriptionDecisions = BTreeMap<String, Option<RpcError>>;

/// Creates both halves.
pub(super) fn channel() -> (SubscriptionHandle, SubscriptionList) {
    let (set_wanted, wanted) = watch::channel(Wanted::default());
    let (decisions_sender, decisions) = watch::channel(SubscriptionDecisions::new());
    (
        SubscriptionHandle { wanted: set_wanted, decisions },
        SubscriptionList { wanted, decisions: decisions_sender },
    )
}

impl SubscriptionHandle {
    pub(super) fn set_wanted(&self, uris: BTreeSet<String>) {
        self.wanted.send_if_modified(|it| {
            let differs = it.uris != uris;
            it.uris = uris;
            differs
        });
    }

    pub(super) fn resubscribe(&self) {
        self.wanted.send_modify(|it| it.lapses += 1);
    }

    pub(super) async fn wait_for_decision(&self, uri: &str) -> Result<(), RpcError> {
        let mut decisions = self.decisions.clone();
        match decisions.wait_for(|it| it.contains_key(uri)).await {
            Ok(decisions) => decisions.get(uri).cloned().flatten().map_or(Ok(()), Err),
            Err(_) => Err(RpcError::new(RpcError::INTERNAL, "the server disconnected")),
        }
    }
}

/// Runs the subscription task of the handshake era until the session ends or its last handle is dropped.
pub(super) async fn run(sender: WeakRequestSender, mut list: SubscriptionList, terms: Arc<Terms>) {
    let mut lapses = 0;
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        if std::mem::replace(&mut lapses, wanted.lapses) != wanted.lapses {
            list.decisions.send_replace(SubscriptionDecisions::new());
        }
        tokio::select! {
            () = sync_subscriptions(&sender, &list, &wanted, &terms) => {}
            () = sender.wait_for_end() => return,
        }
        tokio::select! {
            changed = list.wanted.changed() => if changed.is_err() { return },
            () = sender.wait_for_end() => return,
        }
    }
}

/// Subscribes to new URIs and unsubscribes from those no longer wanted.
async fn sync_subscriptions(
    sender: &WeakRequestSender,
    list: &SubscriptionList,
    wanted: &Wanted,
    terms: &Terms,
) {
    let decisions = list.decisions.borrow().clone();
    for uri in wanted.uris.iter().filter(|uri| !decisions.contains_key(*uri)) {
        let rejection = match terms.offers("resources", Some("subscribe")) {
            true => send_request(sender, "resources/subscribe", uri, terms).await.err(),
            false => Some(not_subscribable()),
        };
        list.decisions.send_modify(|it| drop(it.insert(uri.clone(), rejection)));
    }
    for (uri, rejection) in decisions.iter().filter(|(uri, _)| !wanted.uris.contains(*uri)) {
        if rejection.is_none() {
            let _ = send_request(sender, "resources/unsubscribe", uri, terms).await;
        }
        list.decisions.send_modify(|it| drop(it.remove(uri)));
    }
}

/// Sends one subscribe or unsubscribe request.
async fn send_request(
    sender: &WeakRequestSender,
    method: &'static str,
    uri: &str,
    terms: &Terms,
) -> Result<Raw, RpcError> {
    let (params, routing) = (Some(json!({ "uri": uri }).into()), terms.routing(None, Vec::new()));
    let build = |id| Outbound::Request { id, method: method.into(), params, routing };
    match time::timeout(SUBSCRIBE_TIMEOUT, sender.send_request(build, RequestHooks::default())).await {
        Ok(Some(answer)) => answer.map_err(|failure| to_rpc_error(&failure)),
        Ok(None) => Err(RpcError::new(RpcError::INTERNAL, "the server disconnected")),
        Err(_) => Err(RpcError::new(RpcError::INTERNAL, "the server did not answer in time")),
    }
}

/// Returns the server's error, or describes the failure that prevented an answer.
pub(super) fn to_rpc_error(failure: &Failure) -> RpcError {
    failure.rpc.clone().unwrap_or_else(|| RpcError::new(RpcError::INTERNAL, failure.to_string()))
}

/// Builds the error for a resource whose changes the server does not announce.
pub(super) fn not_subscribable() -> RpcError {
    RpcError::new(RpcError::METHOD_NOT_FOUND, "the server does not support subscriptions to this resource")
}
