//! Makes one connect attempt. Starts a process once, but retries a remote server after a transient failure.

use super::SessionKeeperContext;
use crate::{
    Fault, FaultKind,
    upstream::{ConnectAttempt, Upstream, UpstreamSession},
};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::time;
use wharf_config::Lifecycle;
use wharf_mcp::session::EraHint;

/// Maximum number of tries for a remote server.
const MAX_CONNECT_TRIES: u32 = 3;

/// Pause after the first try. Each later pause is four times as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(100);

pub(super) type ConnectFuture = Pin<Box<dyn Future<Output = Result<UpstreamSession, Arc<Fault>>> + Send>>;

impl SessionKeeperContext {
    /// Starts a connect attempt.
    pub(super) fn connect(&self) -> ConnectFuture {
        let (upstream, publisher, consent) =
            (self.upstream.clone(), self.publisher.clone(), self.consent.clone());
        let (lists_to_refresh, stop, only) = (self.lists_to_refresh.clone(), self.stop.clone(), self.era);
        publisher.connecting();
        Box::pin(async move {
            let mut tried = 0;
            let fault = loop {
                let previous = || publisher.status().0.era.map(EraHint::Cached);
                let era = only.map(EraHint::Only).or_else(previous);
                let connect_attempt =
                    ConnectAttempt { publisher: Some(publisher.clone()), era, quit: Some(stop.clone()) };
                let fault = match upstream.connect_attempt(consent.clone(), connect_attempt).await {
                    Ok(live) => {
                        let sessions = publisher.session_opened(live.session.terms(), live.took);
                        // A restarted server may offer different tools, prompts and resources.
                        if sessions > 1 && upstream.source().lifecycle == Lifecycle::Singleton {
                            lists_to_refresh.mark_all();
                        }
                        return Ok(live);
                    }
                    Err(fault) => fault,
                };
                tried += 1;
                if tried == MAX_CONNECT_TRIES || *stop.borrow() || !is_transient(&upstream, &fault) {
                    break Arc::new(fault);
                }
                time::sleep(pause(tried)).await;
            };
            tracing::debug!(source = &**publisher.name(), "{fault}");
            publisher.open_failed(&fault);
            Err(fault)
        })
    }
}

/// Returns whether a retry may succeed: a remote server, a connection failure, and no status or 502 to 504.
fn is_transient(upstream: &Upstream, fault: &Fault) -> bool {
    upstream.source().endpoint.is_remote()
        && fault.kind == FaultKind::Connection
        && matches!(fault.status, None | Some(502..=504))
}

/// Returns the pause before the next try. Grows exponentially, with jitter so that clients disconnected together do
/// not retry together.
fn pause(tried: u32) -> Duration {
    let pause = FIRST_RETRY_PAUSE * 4u32.pow(tried - 1);
    pause.mul_f64(0.5 + fastrand::f64())
}
