//! Receives change notifications in the 2026-07-28 era through one long `subscriptions/listen` request.
//!
//! The task sends it again when the stream ends or the wanted set changes. It drops the old stream only a while after
//! the server has acknowledged the new one, so that no notification is lost in between.

use super::{
    Terms,
    hooks::RequestHooks,
    meta,
    sender::WeakRequestSender,
    subscriptions::{SubscriptionDecisions, SubscriptionList, Wanted, not_subscribable, to_rpc_error},
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
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Stream lifetime after which the pause is reset.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// How long the old stream stays open after the new one is acknowledged. Over HTTP each stream has a connection of its own, so
/// an earlier notification on the old one may arrive after the acknowledgement. A later one may arrive twice.
const HANDOVER: Duration = Duration::from_millis(500);

/// Future of a `subscriptions/listen` request; resolves when the server's stream ends.
type ListenRequest<'a> = Pin<Box<dyn Future<Output = Option<Result<Raw, Failure>>> + Send + 'a>>;

/// Reason for no longer reading a stream.
enum StreamEnd {
    /// The wanted set changed.
    Changed,
    /// The server closed the stream, or the request failed.
    Closed(Option<Result<Raw, Failure>>),
    /// The session's last handle was dropped.
    SessionEnded,
}

/// Runs the listening task until the session ends.
pub(super) async fn run(
    sender: WeakRequestSender,
    mut list: SubscriptionList,
    session_meta: Vec<u8>,
    terms: Arc<Terms>,
) {
    let mut pause = FIRST_PAUSE;
    let mut previous: Option<ListenRequest<'_>> = None;
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        let since = Instant::now();
        let (ack_sender, acknowledged) = oneshot::channel();
        let Some(filter) = filter(&terms, &wanted.uris) else {
            previous = None;
            reject_wanted(&list, &wanted, &not_subscribable());
            if !wait_for_change(&sender, &mut list).await {
                return;
            }
            continue;
        };
        let params = meta::with_meta(Some(filter), None, Some(&session_meta), None);
        let routing = terms.routing(None, Vec::new());
        let build =
            move |id| Outbound::Request { id, method: "subscriptions/listen".into(), params, routing };
        let mut stream: ListenRequest<'_> = Box::pin(
            sender.send_request(build, RequestHooks { on_ack: Some(ack_sender), ..RequestHooks::default() }),
        );
        match read_stream(&mut stream, &mut previous, acknowledged, &mut list, &wanted).await {
            StreamEnd::Changed => {
                previous = Some(stream);
                continue;
            }
            StreamEnd::SessionEnded | StreamEnd::Closed(None) => return,
            StreamEnd::Closed(Some(Err(failure))) if failure.class == Class::Closed => return,
            // The server does not support the method, so no subscription can succeed.
            StreamEnd::Closed(Some(Err(failure))) if failure.class == Class::Rpc => {
                return reject_forever(&sender, list, &to_rpc_error(&failure)).await;
            }
            StreamEnd::Closed(Some(_)) => {}
        }
        pause = if since.elapsed() > STABLE_AFTER { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
        tokio::select! {
            () = time::sleep(pause) => {}
            () = sender.wait_for_end() => return,
        }
    }
}

/// Reads a stream until it ends or the wanted set changes. The previous stream is dropped [`HANDOVER`] after the
/// acknowledgement.
async fn read_stream<'a>(
    stream: &mut ListenRequest<'a>,
    previous: &mut Option<ListenRequest<'a>>,
    acknowledged: oneshot::Receiver<Raw>,
    list: &mut SubscriptionList,
    wanted: &Wanted,
) -> StreamEnd {
    let mut acknowledged = pin!(acknowledged);
    let mut is_acknowledged = false;
    let mut handover = pin!(time::sleep(HANDOVER));
    loop {
        tokio::select! {
            closed = &mut *stream => return StreamEnd::Closed(closed),
            Ok(accepted) = &mut acknowledged, if !is_acknowledged => {
                is_acknowledged = true;
                handover.as_mut().reset(Instant::now() + HANDOVER);
                list.decisions.send_replace(decisions(&accepted, &wanted.uris));
            }
            () = &mut handover, if is_acknowledged && previous.is_some() => *previous = None,
            changed = list.wanted.changed() => {
                return if changed.is_ok() { StreamEnd::Changed } else { StreamEnd::SessionEnded };
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
fn decisions(accepted: &Raw, uris: &BTreeSet<String>) -> SubscriptionDecisions {
    let accepted = accepted.member("notifications").and_then(|it| it.member("resourceSubscriptions"));
    let accepted: BTreeSet<String> = accepted.map(|it| it.decode_or_default()).unwrap_or_default();
    uris.iter().map(|uri| (uri.clone(), (!accepted.contains(uri)).then(not_subscribable))).collect()
}

/// Rejects all wanted URIs with this error.
fn reject_wanted(list: &SubscriptionList, wanted: &Wanted, why: &RpcError) {
    list.decisions.send_replace(wanted.uris.iter().map(|uri| (uri.clone(), Some(why.clone()))).collect());
}

/// Rejects every wanted URI, now and later, until the session ends.
async fn reject_forever(sender: &WeakRequestSender, mut list: SubscriptionList, why: &RpcError) {
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        reject_wanted(&list, &wanted, why);
        if !wait_for_change(sender, &mut list).await {
            return;
        }
    }
}

/// Waits until the wanted set changes; returns `false` if the session ends first.
async fn wait_for_change(sender: &WeakRequestSender, list: &mut SubscriptionList) -> bool {
    tokio::select! {
        changed = list.wanted.changed() => changed.is_ok(),
        () = sender.wait_for_end() => false,
    }
}
