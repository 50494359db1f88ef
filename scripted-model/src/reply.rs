//! One response of the scripted model: its head, and how its body is sent.

use crate::{Finish, Step, Wire, render};
use serde_json::Value;
use std::time::Duration;

/// Response to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers beside those of the transfer.
    pub headers: Vec<(String, String)>,
    /// Steps of sending the response. The head is sent before the first one, unless that is [`Action::HangBeforeHead`].
    pub actions: Vec<Action>,
    /// Maximum size of a chunk in bytes.
    pub chunk: usize,
}

/// Step of sending a response.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends the same bytes again and again, until the client closes the connection.
    SendForever(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Sends nothing more and waits until the client closes the connection.
    Hang,
    /// Sends not even a head and waits until the client closes the connection.
    HangBeforeHead,
    /// Closes the connection without an end of the body.
    Cut,
}

impl Reply {
    /// Creates a stream of these bytes.
    pub fn stream(bytes: impl Into<Vec<u8>>) -> Reply {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Reply { status: 200, headers, actions: vec![Action::Send(bytes.into())], chunk: usize::MAX }
    }

    /// Creates the answer of a well-behaved provider.
    pub fn answer(wire: Wire, steps: &[Step]) -> Reply {
        Reply::stream(render(wire, steps))
    }

    /// Creates an answer of text.
    pub fn text(wire: Wire, text: &str) -> Reply {
        Reply::answer(wire, &[crate::text(text), Step::End(Finish::Stop), Step::Usage])
    }

    /// Creates an answer with tool calls, each `(id, name, arguments)`.
    pub fn calls(wire: Wire, calls: &[(&str, &str, &str)]) -> Reply {
        let mut steps: Vec<Step> =
            calls.iter().map(|(id, name, arguments)| crate::call(id, name, arguments)).collect();
        steps.extend([Step::End(Finish::ToolCalls), Step::Usage]);
        Reply::answer(wire, &steps)
    }

    /// Creates an error response with a JSON body.
    pub fn error(status: u16, body: &Value) -> Reply {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Reply { status, headers, actions: vec![Action::Send(body.to_string().into())], chunk: usize::MAX }
    }

    /// Creates a response that ends with this action.
    pub fn then(mut self, action: Action) -> Reply {
        self.actions.push(action);
        self
    }

    /// Sends nothing, not even a head.
    pub fn silence() -> Reply {
        Reply { actions: vec![Action::HangBeforeHead], ..Reply::stream("") }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the body in chunks of this many bytes.
    pub fn in_chunks(mut self, size: usize) -> Reply {
        self.chunk = size.max(1);
        self
    }
}
