//! Answers from a recording in place of the real servers: `--replay FILE`.
//!
//! A session with a recorded server is an ordinary session over an in-memory pipe, so names, lock, schema checks and APIs
//! are the real ones.

use crate::cassette_server::CassetteServer;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{duplex, split},
    task::JoinSet,
};
use wharf_mcp::{
    Failure, Link, Opener, Opening, link_over,
    serve::{Service, over_streams},
};
use wharf_runtime::{cassette::CassettePlayer, upstream::RecordedServers};

/// Capacity of the pipe in each direction, in bytes.
const PIPE_BYTES: usize = 64 * 1024;

/// The servers of a recording.
pub(crate) struct ReplayedServers {
    player: Arc<CassettePlayer>,
    /// The server side of every session. Dropping this aborts them.
    sessions: Arc<Mutex<JoinSet<()>>>,
}

struct ReplayedOpener {
    service: Service<CassetteServer>,
    sessions: Arc<Mutex<JoinSet<()>>>,
}

impl ReplayedServers {
    pub(crate) fn new(player: Arc<CassettePlayer>) -> ReplayedServers {
        ReplayedServers { player, sessions: Arc::default() }
    }
}

impl RecordedServers for ReplayedServers {
    fn opener(&self, source: &str) -> Result<Box<dyn Opener>, Failure> {
        if !self.player.cassette().servers.contains_key(source) {
            return Err(Failure::connect(format!("the server is not in {}", self.player.name())));
        }
        let service = Service::new(CassetteServer::replaying(self.player.clone(), source));
        Ok(Box::new(ReplayedOpener { service, sessions: self.sessions.clone() }))
    }
}

impl Opener for ReplayedOpener {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(self.link()) })
    }
}

impl ReplayedOpener {
    fn link(&self) -> Link {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (source, sink) = split(theirs);
        let service = self.service.clone();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        while sessions.try_join_next().is_some() {}
        sessions.spawn(async move {
            // The session ends when our side of the pipe is dropped. The result does not matter.
            let _ = over_streams(service, source, sink).await;
        });
        let (source, sink) = split(ours);
        link_over(source, sink)
    }
}

impl fmt::Debug for ReplayedServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayedServers").field("recording", &self.player.name()).finish_non_exhaustive()
    }
}
