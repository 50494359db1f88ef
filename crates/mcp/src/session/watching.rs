//! Keeps resource subscriptions in sync: the set a caller wants and the server's decision for each URI.
//!
//! Callers replace the wanted set as a whole; one task per session brings the server up to date. In the handshake era
//! that task sends `resources/subscribe` and `resources/unsubscribe` per URI; in the 2026-07-28 era the set is part
//! of `subscriptions/listen`.

use super::{ears::Ears, terms::Terms, wire::WeakWire};
use crate::{Failure, Outbound, Raw, RpcError};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time};

/// Timeout of one subscribe or unsubscribe request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Session handle's half: sets the wanted URIs and reads the server's decisions.
#[derive(Debug)]
pub(super) struct Watching {
    wanted: watch::Sender<Wanted>,
    agreed: watch::Receiver<Agreed>,
}

/// Subscription task's half.
#[derive(Debug)]
pub(super) struct WatchList {
    pub(super) wanted: watch::Receiver<Wanted>,
    pub(super) agreed: watch::Sender<Agreed>,
}

/// Wanted resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) uris: BTreeSet<String>,
    /// How often the server has lost its subscriptions; a change makes the task subscribe again.
    lapses: u64,
}

/// Server's decision for each URI: `None` if subscribed, else the error.
pub(super) type Agreed = BTreeMap<String, Option<RpcError>>;

/// Creates both halves.
pub(super) fn list() -> (Watching, WatchList) {
    let (want, wanted) = watch::channel(Wanted::default());
    let (agree, agreed) = watch::channel(Agreed::new());
    (Watching { wanted: want, agreed }, WatchList { wanted, agreed: agree })
}

impl Watching {
    pub(super) fn want(&self, uris: BTreeSet<String>) {
        self.wanted.send_if_modified(|it| {
            let differs = it.uris != uris;
            it.uris = uris;
            differs
        });
    }

    pub(super) fn want_again(&self) {
        self.wanted.send_modify(|it| it.lapses += 1);
    }

    pub(super) async fn settled(&self, uri: &str) -> Result<(), RpcError> {
        let mut agreed = self.agreed.clone();
        match agreed.wait_for(|it| it.contains_key(uri)).await {
            Ok(agreed) => agreed.get(uri).cloned().flatten().map_or(Ok(()), Err),
            Err(_) => Err(RpcError::new(RpcError::INTERNAL, "the server has left")),
        }
    }
}

/// Runs the subscription task of the handshake era until the session ends or its last handle is dropped.
pub(super) async fn run(wire: WeakWire, mut list: WatchList, terms: Arc<Terms>) {
    let mut lapses = 0;
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        if std::mem::replace(&mut lapses, wanted.lapses) != wanted.lapses {
            list.agreed.send_replace(Agreed::new());
        }
        tokio::select! {
            () = bring_up_to_date(&wire, &list, &wanted, &terms) => {}
            () = wire.over() => return,
        }
        tokio::select! {
            changed = list.wanted.changed() => if changed.is_err() { return },
            () = wire.over() => return,
        }
    }
}

/// Subscribes to new URIs and unsubscribes from those no longer wanted.
async fn bring_up_to_date(wire: &WeakWire, list: &WatchList, wanted: &Wanted, terms: &Terms) {
    let agreed = list.agreed.borrow().clone();
    for uri in wanted.uris.iter().filter(|uri| !agreed.contains_key(*uri)) {
        let refused = match terms.offers("resources", Some("subscribe")) {
            true => ask(wire, "resources/subscribe", uri, terms).await.err(),
            false => Some(unannounced()),
        };
        list.agreed.send_modify(|it| drop(it.insert(uri.clone(), refused)));
    }
    for (uri, refused) in agreed.iter().filter(|(uri, _)| !wanted.uris.contains(*uri)) {
        if refused.is_none() {
            let _ = ask(wire, "resources/unsubscribe", uri, terms).await;
        }
        list.agreed.send_modify(|it| drop(it.remove(uri)));
    }
}

/// Sends one subscribe or unsubscribe request.
async fn ask(wire: &WeakWire, method: &'static str, uri: &str, terms: &Terms) -> Result<Raw, RpcError> {
    let (params, routing) = (Some(json!({ "uri": uri }).into()), terms.routing(None, Vec::new()));
    let make = |id| Outbound::Request { id, method: method.into(), params, routing };
    match time::timeout(PATIENCE, wire.ask(make, Ears::default())).await {
        Ok(Some(answer)) => answer.map_err(|failure| error(&failure)),
        Ok(None) => Err(RpcError::new(RpcError::INTERNAL, "the server has left")),
        Err(_) => Err(RpcError::new(RpcError::INTERNAL, "the server did not answer in time")),
    }
}

/// Returns the server's error, or describes the failure that prevented an answer.
pub(super) fn error(failure: &Failure) -> RpcError {
    failure.rpc.clone().unwrap_or_else(|| RpcError::new(RpcError::INTERNAL, failure.to_string()))
}

/// Builds the error for a resource whose changes the server does not announce.
pub(super) fn unannounced() -> RpcError {
    RpcError::new(RpcError::METHOD_NOT_FOUND, "the server does not announce changes of this resource")
}
