//! The error message for an address that the gateway or the Todo server cannot listen on.

use std::io::{Error, ErrorKind};

/// Formats the error and a hint that fits its cause. `place` is the position of the address in a configuration file,
/// if it comes from one.
pub(super) fn cannot_listen(listen: &str, place: Option<&str>, error: &Error) -> String {
    let place = place.map(|it| format!("\n --> {it}")).unwrap_or_default();
    format!("cannot listen on `{listen}`: {error}{place}\nhelp: {}", help(listen, error))
}

fn help(listen: &str, error: &Error) -> String {
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, ""));
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let bare = listen.strip_prefix(':').unwrap_or(listen);
    if is_number(bare) {
        return format!(
            "a port alone is not an address: `--listen 127.0.0.1:{bare}` serves this machine, `--listen 0.0.0.0:{bare}` others too"
        );
    }
    if port.is_empty() || port.ends_with(']') {
        return format!("the port is missing: `--listen {}:7373`", listen.trim_end_matches(':'));
    }
    if port.parse::<u16>().is_err() {
        return format!("a port is a number from 0 to 65535: `--listen {host}:7373`");
    }
    match error.kind() {
        ErrorKind::AddrInUse => {
            "another program listens there, perhaps another wharf; `--listen 127.0.0.1:0` takes any free port"
                .to_owned()
        }
        ErrorKind::PermissionDenied => format!(
            "ports below 1024 need privileges (on Linux CAP_NET_BIND_SERVICE); `--listen {host}:8080` needs none"
        ),
        ErrorKind::AddrNotAvailable => format!(
            "this machine has no such address; `--listen 127.0.0.1:{port}` serves this machine, `--listen 0.0.0.0:{port}` others too"
        ),
        _ => format!(
            "use an address of this machine: `--listen 127.0.0.1:{port}`, or `--listen 0.0.0.0:{port}` to serve others too"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: the address, the kind of error, and text that the message must contain.
    #[test]
    fn help_matches_the_cause() {
        for (listen, kind, words) in [
            ("80", ErrorKind::InvalidInput, "a port alone is not an address: `--listen 127.0.0.1:80`"),
            (":80", ErrorKind::InvalidInput, "a port alone is not an address: `--listen 127.0.0.1:80`"),
            ("localhost", ErrorKind::InvalidInput, "the port is missing: `--listen localhost:7373`"),
            ("localhost:", ErrorKind::InvalidInput, "the port is missing: `--listen localhost:7373`"),
            ("[::1]", ErrorKind::InvalidInput, "the port is missing: `--listen [::1]:7373`"),
            ("127.0.0.1:http", ErrorKind::InvalidInput, "from 0 to 65535: `--listen 127.0.0.1:7373`"),
            ("127.0.0.1:70000", ErrorKind::InvalidInput, "from 0 to 65535: `--listen 127.0.0.1:7373`"),
            ("127.0.0.1:7373", ErrorKind::AddrInUse, "`--listen 127.0.0.1:0` takes any free port"),
            ("0.0.0.0:80", ErrorKind::PermissionDenied, "`--listen 0.0.0.0:8080` needs none"),
            ("192.0.2.1:80", ErrorKind::AddrNotAvailable, "no such address; `--listen 127.0.0.1:80`"),
            ("no.such.host:80", ErrorKind::Other, "use an address of this machine: `--listen 127.0.0.1:80`"),
        ] {
            let said = cannot_listen(listen, None, &Error::new(kind, "why"));
            assert!(said.starts_with(&format!("cannot listen on `{listen}`: why\nhelp: ")), "{said}");
            assert!(said.contains(words), "{said}");
        }
    }
}
