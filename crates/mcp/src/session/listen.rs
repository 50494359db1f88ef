//! Receives change notifications in the 2026-07-28 era through one long `subscriptions/listen` request.
//!
//! The task sends it again when the stream ends or the wanted set changes. It drops the old stream only after the
//! server has acknowledged the new one, so that no notification is lost in between.

use super::{
    Terms,
    ears::Ears,
    meta,
    watching::{Agreed, Wanted, WatchList, error, unannounced},
    wire::WeakWire,
};
use crate::{Class, Failure, Outbound, Raw, RpcError};
use serde_json::json;
use std::{
    collections::BTreeSet,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{self, Instant},
};

/// Initial and maximum pause before listening again; the pause doubles in between.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// Stream lifetime after which the pause is reset.
const GOOD: Duration = Duration::from_secs(60);

/// Future of a `subscriptions/listen` request; resolves when the server's stream ends.
type Stream<'a> = Pin<Box<dyn Future<Output = Option<Result<Raw, Failure>>> + Send + 'a>>;

/// Reason for no longer reading a stream.
enum Ended {
    /// The wanted set changed.
    Changed,
    /// The server closed the stream, or the request failed.
    Closed(Option<Result<Raw, Failure>>),
    /// The session's last handle was dropped.
    Over,
}

/// Runs the listening task until the session ends.
pub(super) async fn run(wire: WeakWire, mut list: WatchList, standing: Vec<u8>, terms: Arc<Terms>) {
    let mut pause = FIRST_PAUSE;
    let mut before: Option<Stream<'_>> = None;
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        let since = Instant::now();
        let (told, acknowledged) = oneshot::channel();
        let Some(filter) = filter(&terms, &wanted.uris) else {
            before = None;
            refuse(&list, &wanted, &unannounced());
            if !changed(&wire, &mut list).await {
                return;
            }
            continue;
        };
        let params = meta::with_meta(Some(filter), None, Some(&standing), None);
        let routing = terms.routing(None, Vec::new());
        let make = move |id| Outbound::Request { id, method: "subscriptions/listen".into(), params, routing };
        let mut stream: Stream<'_> = Box::pin(wire.ask(make, Ears { on_ack: Some(told), ..Ears::default() }));
        match follow(&mut stream, &mut before, acknowledged, &mut list, &wanted).await {
            Ended::Changed => {
                before = Some(stream);
                continue;
            }
            Ended::Over | Ended::Closed(None) => return,
            Ended::Closed(Some(Err(failure))) if failure.class == Class::Closed => return,
            // The server does not support the method, so no subscription can succeed.
            Ended::Closed(Some(Err(failure))) if failure.class == Class::Rpc => {
                return refuse_all(&wire, list, &error(&failure)).await;
            }
            Ended::Closed(Some(_)) => {}
        }
        pause = if since.elapsed() > GOOD { FIRST_PAUSE } else { (pause * 2).min(LAST_PAUSE) };
        tokio::select! {
            () = time::sleep(pause) => {}
            () = wire.over() => return,
        }
    }
}

/// Reads a stream until it ends or the wanted set changes. An acknowledgement drops the previous stream.
async fn follow<'a>(
    stream: &mut Stream<'a>,
    before: &mut Option<Stream<'a>>,
    acknowledged: oneshot::Receiver<Raw>,
    list: &mut WatchList,
    wanted: &Wanted,
) -> Ended {
    let mut acknowledged = pin!(acknowledged);
    let mut stands = false;
    loop {
        tokio::select! {
            closed = &mut *stream => return Ended::Closed(closed),
            Ok(accepted) = &mut acknowledged, if !stands => {
                stands = true;
                *before = None;
                list.agreed.send_replace(agreed(&accepted, &wanted.uris));
            }
            changed = list.wanted.changed() => {
                return if changed.is_ok() { Ended::Changed } else { Ended::Over };
            }
        }
    }
}

/// Builds the filter of wanted notifications; `None` if the server offers none of them.
fn filter(terms: &Terms, uris: &BTreeSet<String>) -> Option<Raw> {
    let changes = |capability| terms.offers(capability, Some("listChanged"));
    let (tools, prompts, resources) = (changes("tools"), changes("prompts"), changes("resources"));
    let watches = !uris.is_empty() && terms.offers("resources", Some("subscribe"));
    if !(tools || prompts || resources || watches) {
        return None;
    }
    let mut wanted = json!({
        "toolsListChanged": tools, "promptsListChanged": prompts, "resourcesListChanged": resources,
    });
    if watches {
        wanted["resourceSubscriptions"] = json!(uris);
    }
    Some(json!({ "notifications": wanted }).into())
}

/// Maps each wanted URI to the server's decision.
fn agreed(accepted: &Raw, uris: &BTreeSet<String>) -> Agreed {
    let accepted = accepted.member("notifications").and_then(|it| it.member("resourceSubscriptions"));
    let accepted: BTreeSet<String> = accepted.map(|it| it.decode_or_default()).unwrap_or_default();
    uris.iter().map(|uri| (uri.clone(), (!accepted.contains(uri)).then(unannounced))).collect()
}

/// Rejects all wanted URIs with this error.
fn refuse(list: &WatchList, wanted: &Wanted, why: &RpcError) {
    list.agreed.send_replace(wanted.uris.iter().map(|uri| (uri.clone(), Some(why.clone()))).collect());
}

/// Rejects every wanted URI, now and later, until the session ends.
async fn refuse_all(wire: &WeakWire, mut list: WatchList, why: &RpcError) {
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        refuse(&list, &wanted, why);
        if !changed(wire, &mut list).await {
            return;
        }
    }
}

/// Waits until the wanted set changes; returns `false` if the session ends first.
async fn changed(wire: &WeakWire, list: &mut WatchList) -> bool {
    tokio::select! {
        changed = list.wanted.changed() => changed.is_ok(),
        () = wire.over() => false,
    }
}
