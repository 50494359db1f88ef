//! A proxy between a client and the gateway that cuts one connection once, after the first progress notification.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

const MARK: &[u8] = b"notifications/progress";

pub(super) struct CuttingProxy {
    pub(super) address: String,
    has_cut: Arc<AtomicBool>,
}

impl CuttingProxy {
    /// Starts a proxy for this address. It runs as long as the tests.
    pub(super) fn in_front_of(address: &str) -> CuttingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("an address").to_string();
        let has_cut = Arc::new(AtomicBool::new(false));
        let (address, cut) = (address.to_owned(), has_cut.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&address).expect("the gateway listens");
                join(&client, &server, cut.clone());
            }
        });
        CuttingProxy { address: here, has_cut }
    }

    pub(super) fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::SeqCst)
    }
}

fn join(client: &TcpStream, server: &TcpStream, cut: Arc<AtomicBool>) {
    let both = || (client.try_clone().expect("a handle"), server.try_clone().expect("a handle"));
    let (mut from, mut to) = both();
    thread::spawn(move || {
        _ = std::io::copy(&mut from, &mut to);
        _ = to.shutdown(Shutdown::Write);
    });
    let (mut to, mut from) = both();
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let said = &buffer[..count];
            if to.write_all(said).is_err() {
                break;
            }
            let is_marked = said.windows(MARK.len()).any(|it| it == MARK);
            if is_marked && !cut.swap(true, Ordering::SeqCst) {
                break;
            }
        }
        _ = to.shutdown(Shutdown::Both);
        _ = from.shutdown(Shutdown::Both);
    });
}
