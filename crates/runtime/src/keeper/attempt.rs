//! Makes one connect attempt. Starts a process once, but retries a remote server after a transient failure.

use super::Keep;
use crate::{
    Fault, FaultKind,
    upstream::{Live, Upstream, Visit},
};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::time;
use wharf_config::Lifecycle;

/// Maximum number of tries for a remote server.
const TRIES: u32 = 3;

/// Pause after the first try. Each later pause is four times as long.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) type Attempt = Pin<Box<dyn Future<Output = Result<Live, Arc<Fault>>> + Send>>;

impl Keep {
    /// Starts a connect attempt.
    pub(super) fn attempt(&self) -> Attempt {
        let (upstream, board, consent) = (self.upstream.clone(), self.board.clone(), self.consent.clone());
        let (stale, stop) = (self.stale.clone(), self.stop.clone());
        board.wanted();
        Box::pin(async move {
            let mut tried = 0;
            let fault = loop {
                let era = board.standing().0.era;
                let visit = Visit { board: Some(board.clone()), era, quit: Some(stop.clone()) };
                let fault = match upstream.visit(consent.clone(), visit).await {
                    Ok(live) => {
                        let sessions = board.opened(live.session.terms(), live.took);
                        // A restarted server may offer different tools, prompts and resources.
                        if sessions > 1 && upstream.source().lifecycle == Lifecycle::Singleton {
                            stale.mark_all();
                        }
                        return Ok(live);
                    }
                    Err(fault) => fault,
                };
                tried += 1;
                if tried == TRIES || *stop.borrow() || !may_pass(&upstream, &fault) {
                    break Arc::new(fault);
                }
                time::sleep(pause(tried)).await;
            };
            tracing::debug!(source = &**board.name(), "{fault}");
            board.not_opened(&fault);
            Err(fault)
        })
    }
}

/// Returns whether a retry may succeed: a remote server, a connection failure, and no status or 502 to 504.
fn may_pass(upstream: &Upstream, fault: &Fault) -> bool {
    upstream.source().endpoint.is_remote()
        && fault.kind == FaultKind::Connection
        && matches!(fault.status, None | Some(502..=504))
}

/// Returns the pause before the next try. Grows exponentially, with jitter so that clients disconnected together do
/// not retry together.
fn pause(tried: u32) -> Duration {
    let pause = PAUSE * 4u32.pow(tried - 1);
    pause.mul_f64(0.5 + fastrand::f64())
}
