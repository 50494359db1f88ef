//! Queue of log lines on their way to stderr. A separate thread writes them in batches, so that a call never waits
//! for a terminal or a blocked pipe. When the queue is full, new lines are dropped and counted.

use std::{
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use tracing_subscriber::fmt::MakeWriter;

/// Maximum size of the queue, in bytes.
const MOST: usize = 1 << 20;

/// How long the thread waits for more lines before it writes, so that a busy server does not wake it for every line.
const MOMENT: Duration = Duration::from_millis(10);

/// How long flushing the last lines may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Accepts log lines. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Spool(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Signals new lines or a flush.
    come: Condvar,
    /// Signals that all lines have been written.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    dropped: u64,
    /// A batch is being written.
    writing: bool,
    /// A flush is waiting.
    ending: bool,
}

impl Spool {
    /// Starts the writer thread, which runs until the process ends. Returns `None` if the thread cannot be created.
    pub(super) fn start() -> Option<Spool> {
        let spool = Spool::default();
        let written = spool.clone();
        let started = thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                written.write_to(&mut io::stderr());
            }
        });
        started.ok().map(|_| spool)
    }

    /// Waits until all lines are written, for at most [`PATIENCE`].
    pub(super) fn finish(&self) {
        let mut waiting = self.waiting();
        waiting.ending = true;
        self.0.come.notify_one();
        let pending = |it: &mut Waiting| it.writing || !it.text.is_empty();
        let _ = self.0.done.wait_timeout_while(waiting, PATIENCE, pending);
    }

    /// Waits for lines and writes one batch.
    fn write_to(&self, to: &mut impl Write) {
        let waiting = self.0.come.wait_while(self.waiting(), |it| it.text.is_empty());
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let gathered = self.0.come.wait_timeout_while(waiting, MOMENT, |it| !it.ending);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        waiting.writing = true;
        let mut text = std::mem::take(&mut waiting.text);
        let dropped = std::mem::take(&mut waiting.dropped);
        drop(waiting);
        if dropped > 0 {
            let _ =
                writeln!(text, "{dropped} lines were dropped: they came faster than they could be written");
        }
        // A failed write to stderr cannot be reported anywhere.
        let _ = to.write_all(&text);
        self.waiting().writing = false;
        self.0.done.notify_all();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Spool {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.waiting();
        if waiting.text.len() + line.len() > MOST {
            waiting.dropped += 1;
            return Ok(line.len());
        }
        let is_first = waiting.text.is_empty();
        waiting.text.extend_from_slice(line);
        drop(waiting);
        if is_first {
            self.0.come.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Spool {
    type Writer = Spool;

    fn make_writer(&'a self) -> Spool {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_in_order_and_what_does_not_fit_is_counted() {
        let mut spool = Spool::default();
        let long = vec![b'x'; MOST - 10];
        for line in ["one\n".as_bytes(), &long, b"two\n", b"three and more\n", b"!\n"] {
            spool.write_all(line).expect("it takes everything");
        }
        let mut written = Vec::new();
        spool.write_to(&mut written);
        let written = String::from_utf8(written).expect("text");
        let end = "two\n!\n1 lines were dropped: they came faster than they could be written\n";
        assert!(written.starts_with("one\nxxx") && written.ends_with(end), "{}", &written[MOST - 20..]);
    }

    #[test]
    fn the_end_waits_for_the_last_line() {
        let spool = Spool::start().expect("a thread");
        spool.clone().write_all(b"").expect("it takes everything");
        spool.finish();
        let waiting = spool.waiting();
        assert!(waiting.text.is_empty() && !waiting.writing);
    }
}
