//! Reaches a handshake-era client outside a request, or after it.

use super::{Peer, disconnected};
use crate::{Outbound, Raw, Routing, RpcError, serve::MessageSender, session::Era};
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

/// Handle to a client that outlives a request and does not keep the connection open.
///
/// A message uses the stream of the request or connection that the handle comes from. If that has ended, it uses the
/// client's notification stream. A message to a client that has neither is lost.
#[derive(Clone, Debug)]
pub struct ClientRef {
    peer: Weak<Peer>,
    out: Option<mpsc::WeakSender<Box<Outbound>>>,
}

impl ClientRef {
    pub(in crate::serve) fn new(peer: &Arc<Peer>, out: Option<&MessageSender>) -> ClientRef {
        ClientRef { peer: Arc::downgrade(peer), out: out.map(mpsc::Sender::downgrade) }
    }

    /// Checks whether this is a handshake-era client that declared a capability, such as `roots`.
    pub fn offers(&self, capability: &str) -> bool {
        let peer = self.peer.upgrade();
        let terms = peer.as_ref().and_then(|peer| peer.terms.get());
        terms.is_some_and(|it| it.era == Era::Legacy && it.capabilities.member(capability).is_some())
    }

    /// Sends a notification.
    pub fn notify(&self, method: &'static str, params: Option<Raw>) {
        let message = Outbound::Notification { method: method.into(), params, routing: Routing::default() };
        if let Some(peer) = self.peer.upgrade() {
            self.send(&peer, message);
        }
    }

    /// Sends a request and waits for its response.
    pub async fn ask(&self, method: &'static str, params: Option<Raw>) -> Result<Raw, RpcError> {
        let peer = self.peer.upgrade().ok_or_else(disconnected)?;
        let (id, answer, _forget) = peer.register_request();
        let request = Outbound::Request { id, method: method.into(), params, routing: Routing::default() };
        if !self.send(&peer, request) {
            return Err(disconnected());
        }
        answer.await.map_err(|_| disconnected())?
    }

    /// Sends a message without waiting. Returns whether the client has a stream for it.
    fn send(&self, peer: &Peer, message: Outbound) -> bool {
        let Some(out) = self.out.as_ref().and_then(mpsc::WeakSender::upgrade) else {
            return peer.direct.get().is_some_and(|direct| direct.send((peer.number, message)).is_ok());
        };
        match out.try_send(Box::new(message)) {
            Ok(()) => true,
            Err(error) => {
                let message = *error.into_inner();
                peer.direct.get().is_some_and(|direct| direct.send((peer.number, message)).is_ok())
            }
        }
    }
}
