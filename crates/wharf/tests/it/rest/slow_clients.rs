//! Tests slow clients: they delay no other client, and each is disconnected eventually.

use super::CREATE;
use crate::serve::server::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Time until an idle connection is closed: ten seconds, plus tolerance for a busy machine.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// Reads until the connection closes. Returns the bytes and the time of the end.
fn read_to_end(mut stream: TcpStream) -> (String, Instant) {
    let mut said = Vec::new();
    let mut piece = [0; 1_024];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        said.extend_from_slice(&piece[..read]);
    }
    (String::from_utf8_lossy(&said).into_owned(), Instant::now())
}

/// Sends single bytes with pauses until the connection fails.
fn drip(mut stream: TcpStream) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for _ in 0..120 {
            std::thread::sleep(Duration::from_millis(500));
            if stream.write_all(b"x").is_err() {
                return;
            }
        }
    })
}

#[test]
fn slow_clients_are_disconnected() {
    let server = Server::start(&[]);
    let (address, token) = (&server.address, &server.token);
    let begun = Instant::now();
    let silent = connect(&server);
    let headers = connect(&server);
    write!(&headers, "GET /health HTTP/1.1\r\nHost: {address}\r\nX-Slow: ").expect("it listens");
    let drips = drip(headers.try_clone().expect("a second end"));
    let bodies = [CREATE, "/mcp"].map(|path| {
        let stream = connect(&server);
        write!(
            &stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        )
        .expect("it listens");
        stream
    });
    for body in bodies {
        let (said, end) = read_to_end(body);
        assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
        assert!(end - begun < CLOSE_TIMEOUT, "after {:?}", end - begun);
    }
    for stream in [silent, headers] {
        let (said, end) = read_to_end(stream);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408 "), "{said}");
        assert!(end - begun < CLOSE_TIMEOUT, "after {:?}", end - begun);
    }
    drips.join().expect("it was sent away");
}

/// Two thousand idle connections do not delay a request.
#[test]
fn idle_connections_do_not_delay_requests() {
    let server = Server::start(&[]);
    // Raises the file limit of the test; the program raises its own.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("as many files as may be");
    let idle: Vec<TcpStream> = (0..2_000).map(|_| connect(&server)).collect();
    let mut times: Vec<Duration> = (0..20)
        .map(|_| {
            let begun = Instant::now();
            assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
            begun.elapsed()
        })
        .collect();
    times.sort();
    // Uses the fastest request, because the machine may be busy with other tests at times.
    assert!(times[0] < Duration::from_millis(50), "{times:?}");
    drop(idle);
}
