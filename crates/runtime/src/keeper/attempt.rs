//! One attempt to connect: a process is started once; a remote server that is out for a moment gets another chance.

use super::Keep;
use crate::{
    Fault, FaultKind,
    config::Lifecycle,
    upstream::{Live, Upstream, Visit},
};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::time;

/// How often a remote server is tried.
const TRIES: u32 = 3;

/// The pause after the first try; each later one is four times as long.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) type Attempt = Pin<Box<dyn Future<Output = Result<Live, Arc<Fault>>> + Send>>;

impl Keep {
    /// Begins to connect.
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
                        // A server that was started again may offer something else than before.
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

/// Whether the same try may work a moment later.
fn may_pass(upstream: &Upstream, fault: &Fault) -> bool {
    upstream.source().endpoint.is_remote()
        && fault.kind == FaultKind::Connection
        && matches!(fault.status, None | Some(502..=504))
}

/// Longer each time, and never the same for two who were cut off together.
fn pause(tried: u32) -> Duration {
    let pause = PAUSE * 4u32.pow(tried - 1);
    pause.mul_f64(0.5 + fastrand::f64())
}
