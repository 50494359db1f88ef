//! A TCP connection that several tasks share, and that any of them can reset.

use rustix::net::{Shutdown, shutdown, sockopt};
use std::{
    io,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    sync::{Mutex, watch},
};

pub(crate) struct SharedConnection {
    stream: RwLock<Option<Arc<TcpStream>>>,
    reset_signal: watch::Sender<bool>,
    /// Keeps concurrent messages from interleaving.
    pub(super) write_lock: Arc<Mutex<()>>,
}

impl SharedConnection {
    pub(crate) fn new(stream: TcpStream) -> Arc<SharedConnection> {
        // Bytes that are written in pieces must arrive in pieces.
        let _ = stream.set_nodelay(true);
        let stream = RwLock::new(Some(Arc::new(stream)));
        Arc::new(SharedConnection {
            stream,
            reset_signal: watch::channel(false).0,
            write_lock: Arc::default(),
        })
    }

    fn stream(&self) -> io::Result<Arc<TcpStream>> {
        let stream = self.stream.read().unwrap_or_else(PoisonError::into_inner).clone();
        stream.ok_or_else(|| io::ErrorKind::ConnectionReset.into())
    }

    /// Reads more bytes into the buffer. Returns 0 at the end.
    pub(crate) async fn fill(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let stream = self.stream()?;
        let mut reset_signal = self.reset_signal.subscribe();
        loop {
            tokio::select! {
                readable = stream.readable() => readable?,
                _ = reset_signal.wait_for(|reset_signal| *reset_signal) => return Err(io::ErrorKind::ConnectionReset.into()),
            }
            let mut chunk = [0; 16 << 10];
            match stream.try_read(&mut chunk) {
                Ok(count) => {
                    buffer.extend_from_slice(&chunk[..count]);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until `buffer` is at least this long.
    pub(crate) async fn fill_to(&self, buffer: &mut Vec<u8>, length: usize) -> io::Result<()> {
        while buffer.len() < length {
            if self.fill(buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    pub(crate) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream()?;
        while !bytes.is_empty() {
            stream.writable().await?;
            match stream.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn close_output(&self) -> io::Result<()> {
        shutdown(&self.stream()?, Shutdown::Write)?;
        Ok(())
    }

    /// Resets the connection. The reset happens when the last reference to the stream is dropped, so pending reads
    /// are woken to drop theirs.
    pub(crate) fn reset(&self) -> io::Result<()> {
        let stream = self.stream.write().unwrap_or_else(PoisonError::into_inner).take();
        let stream = stream.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))?;
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        self.reset_signal.send_replace(true);
        Err(io::ErrorKind::ConnectionReset.into())
    }
}
