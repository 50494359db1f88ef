//! Hearing of changes in the 2026-07-28 era: one long request, asked again whenever it ends.

use super::{Options, Terms, meta, terms::Era, wire::WeakWire};
use crate::{Class, Outbound, Raw};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{self, Instant};

/// The first pause before listening again; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// A subscription that held this long was a good one.
const GOOD: Duration = Duration::from_secs(60);

/// What to listen for, if the server announces any changes.
pub(super) fn filter(terms: &Terms) -> Option<Raw> {
    let changes = |capability| terms.offers(capability, Some("listChanged"));
    let (tools, prompts, resources) = (changes("tools"), changes("prompts"), changes("resources"));
    let any = terms.era == Era::Modern && (tools || prompts || resources);
    any.then(|| {
        json!({ "notifications": {
            "toolsListChanged": tools, "promptsListChanged": prompts, "resourcesListChanged": resources,
        } })
        .into()
    })
}

/// Listens until the conversation is over, or the server does not know how to.
pub(super) async fn run(wire: WeakWire, filter: Raw, options: Options, terms: Arc<Terms>) {
    let standing = meta::modern(&options);
    drop(options);
    let mut pause = FIRST_PAUSE;
    loop {
        let since = Instant::now();
        let params = meta::with_meta(Some(filter.clone()), Some(&standing), None);
        let routing = terms.routing(None, Vec::new());
        let asked = wire
            .ask(|id| Outbound::Request { id, method: "subscriptions/listen".into(), params, routing })
            .await;
        match asked {
            None => return,
            Some(Err(failure)) if matches!(failure.class, Class::Rpc | Class::Closed) => return,
            Some(_) => {}
        }
        pause = if since.elapsed() > GOOD { FIRST_PAUSE } else { (pause * 2).min(LAST_PAUSE) };
        time::sleep(pause).await;
    }
}
