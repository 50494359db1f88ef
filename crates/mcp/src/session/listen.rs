//! Hearing of changes in the 2026-07-28 era: one long request, asked again whenever it ends, and anew whenever something
//! else is wanted. The one before is only let go when its successor stands, so that nothing goes unheard in between.

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

/// The first pause before listening again; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// A subscription that held this long was a good one.
const GOOD: Duration = Duration::from_secs(60);

/// What becomes of the server's stream.
type Stream<'a> = Pin<Box<dyn Future<Output = Option<Result<Raw, Failure>>> + Send + 'a>>;

/// Why a stream is not read any further.
enum Ended {
    /// Something else is wanted.
    Changed,
    /// The server has ended it, or was never reached.
    Closed(Option<Result<Raw, Failure>>),
    /// Nobody can want anything any more.
    Over,
}

/// Listens until the conversation is over.
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
            // It does not know how to: there is nothing to hear, whatever is wanted.
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

/// Reads a stream until it ends or something else is wanted. Once it stands, the one before is let go.
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

/// What to listen for, if the server announces any of it.
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

/// Which of the wanted resources the server will tell of.
fn agreed(accepted: &Raw, uris: &BTreeSet<String>) -> Agreed {
    let accepted = accepted.member("notifications").and_then(|it| it.member("resourceSubscriptions"));
    let accepted: BTreeSet<String> = accepted.map(|it| it.decode_or_default()).unwrap_or_default();
    uris.iter().map(|uri| (uri.clone(), (!accepted.contains(uri)).then(unannounced))).collect()
}

fn refuse(list: &WatchList, wanted: &Wanted, why: &RpcError) {
    list.agreed.send_replace(wanted.uris.iter().map(|uri| (uri.clone(), Some(why.clone()))).collect());
}

async fn refuse_all(wire: &WeakWire, mut list: WatchList, why: &RpcError) {
    loop {
        let wanted = list.wanted.borrow_and_update().clone();
        refuse(&list, &wanted, why);
        if !changed(wire, &mut list).await {
            return;
        }
    }
}

/// Waits until something else is wanted; `false` if that cannot happen any more.
async fn changed(wire: &WeakWire, list: &mut WatchList) -> bool {
    tokio::select! {
        changed = list.wanted.changed() => changed.is_ok(),
        () = wire.over() => false,
    }
}
