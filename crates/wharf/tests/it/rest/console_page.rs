//! Tests how the embedded console is served: kinds, gzip, caching, and that its files come from this host only.

use crate::serve::server::{AfterSending, Server};
use std::io::Read;

/// Fetches a path without a token. Returns the head in lower case, and the body.
fn fetch(server: &Server, path: &str, headers: &str) -> (String, Vec<u8>) {
    use std::{io::Write, net::TcpStream};
    let mut stream = TcpStream::connect(&server.address).expect("somebody listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\r\n", server.address);
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").expect("a head");
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).expect("text").to_lowercase(), body)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(": "))
}

/// The page names its files, every one is served, and each has its gzip form, its caching and its 304.
#[test]
fn page_and_its_files_are_served() {
    let server = Server::start(&[]);
    let (head, page) = fetch(&server, "/", "");
    let page = String::from_utf8(page).expect("text");
    assert!(head.starts_with("http/1.1 200") && page.contains("<!doctype html>"), "{head}{page}");
    assert_eq!(header(&head, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(header(&head, "cache-control"), Some("no-cache"));
    let files: Vec<&str> = page
        .split(['"', '\''])
        .filter(|it| it.starts_with("/assets/") || it.starts_with("./assets/"))
        .collect();
    assert!(!files.is_empty(), "{page}");
    for path in ["/"].into_iter().chain(files.iter().map(|it| it.trim_start_matches('.'))) {
        let (head, plain) = fetch(&server, path, "");
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        assert_eq!(header(&head, "content-encoding"), None, "{path}");
        assert_eq!(header(&head, "vary"), Some("accept-encoding"), "{path}");
        if path != "/" {
            assert_eq!(header(&head, "cache-control"), Some("max-age=31536000, immutable"), "{path}");
        }
        let etag = header(&head, "etag").expect("an etag").to_owned();
        let (head, packed) = fetch(&server, path, "Accept-Encoding: gzip, br\r\n");
        if header(&head, "content-encoding") == Some("gzip") {
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).expect("it is gzip");
            assert!(unpacked == plain && packed.len() < plain.len(), "{path}");
            assert_ne!(header(&head, "etag"), Some(etag.as_str()), "{path}");
        } else {
            assert_eq!(packed, plain, "{path}");
        }
        let (head, nothing) = fetch(&server, path, &format!("If-None-Match: {etag}\r\n"));
        assert!(head.starts_with("http/1.1 304") && nothing.is_empty(), "{path}: {head}");
        assert_eq!(header(&head, "etag"), Some(etag.as_str()), "{path}");
        let (head, _) = fetch(&server, path, "If-None-Match: \"another\"\r\n");
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
    }
}

#[test]
fn other_methods_are_not_allowed() {
    let server = Server::start(&[]);
    let request = format!(
        "PUT / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        server.address, server.token
    );
    let answer = server.send(request.as_bytes(), AfterSending::Stay);
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET"), "{answer}");
}
