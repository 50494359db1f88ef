//! Tickets and sessions of the console for the words in `attacks.txt`.

use super::permissive::TOKENS;
use crate::serve::server::Server;

/// Replaces each word by a credential of this gateway that was made for it.
pub(super) fn expand(line: String, server: &Server) -> String {
    let operator = server.token.as_str();
    let mut line = line;
    for (word, make) in [
        ("TICKET", &(|| ticket(server, operator)) as &dyn Fn() -> String),
        ("SPENT", &|| {
            let ticket = ticket(server, operator);
            session(server, &ticket);
            ticket
        }),
        ("SESSION", &|| session(server, operator)),
        ("ENDED", &|| {
            let session = session(server, operator);
            assert_eq!(ask(server, "DELETE", "/api/v1/session", &session).0, 204);
            session
        }),
        ("GUEST", &|| session(server, &ticket(server, TOKENS[0].1))),
    ] {
        if line.contains(word) {
            line = line.replace(word, &make());
        }
    }
    line
}

fn ticket(server: &Server, token: &str) -> String {
    let (status, ticket) = ask(server, "POST", "/api/v1/tickets", token);
    assert_eq!(status, 201, "{ticket}");
    ticket["ticket"].as_str().expect("a ticket").to_owned()
}

fn session(server: &Server, credential: &str) -> String {
    let (status, session) = ask(server, "POST", "/api/v1/session", credential);
    assert_eq!(status, 201, "{session}");
    session["session"].as_str().expect("a session").to_owned()
}

fn ask(server: &Server, method: &str, path: &str, credential: &str) -> (u16, serde_json::Value) {
    server.ask_with(method, path, &[&format!("Authorization: Bearer {credential}")], None)
}
