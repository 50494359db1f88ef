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
const MAX_QUEUED_BYTES: usize = 1 << 20;

/// Size at which the thread writes without waiting for more lines, so that a burst does not fill the queue.
const EARLY_WRITE_BYTES: usize = MAX_QUEUED_BYTES / 4;

/// How long the thread waits for more lines before it writes, so that a busy server does not wake it for every line.
const WRITE_DELAY: Duration = Duration::from_millis(10);

/// How long flushing the last lines may take.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Accepts log lines. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct LogQueue(Arc<LogQueueState>);

#[derive(Debug, Default)]
struct LogQueueState {
    lines: Mutex<QueuedLines>,
    /// Signals the first line, a long queue or a flush.
    wake_writer: Condvar,
    /// Signals that all lines have been written.
    all_written: Condvar,
}

#[derive(Debug, Default)]
struct QueuedLines {
    text: Vec<u8>,
    dropped: u64,
    /// A batch is being written.
    writing: bool,
    /// A flush is waiting.
    flushing: bool,
}

impl LogQueue {
    /// Starts the writer thread, which runs until the process ends. Returns `None` if the thread cannot be created.
    pub(super) fn start() -> Option<LogQueue> {
        let queue = LogQueue::default();
        let writer = queue.clone();
        let started = thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                writer.write_to(&mut io::stderr());
            }
        });
        started.ok().map(|_| queue)
    }

    /// Waits until all lines are written, for at most [`FLUSH_TIMEOUT`].
    pub(super) fn flush_lines(&self) {
        let mut lines = self.lines();
        lines.flushing = true;
        self.0.wake_writer.notify_one();
        let pending = |it: &mut QueuedLines| it.writing || !it.text.is_empty();
        let _ = self.0.all_written.wait_timeout_while(lines, FLUSH_TIMEOUT, pending);
    }

    /// Waits for lines and writes one batch.
    fn write_to(&self, to: &mut impl Write) {
        let lines = self.0.wake_writer.wait_while(self.lines(), |it| it.text.is_empty());
        let lines = lines.unwrap_or_else(PoisonError::into_inner);
        let is_early = |it: &mut QueuedLines| !it.flushing && it.text.len() < EARLY_WRITE_BYTES;
        let woken = self.0.wake_writer.wait_timeout_while(lines, WRITE_DELAY, is_early);
        let (mut lines, _) = woken.unwrap_or_else(PoisonError::into_inner);
        lines.writing = true;
        let mut text = std::mem::take(&mut lines.text);
        let dropped = std::mem::take(&mut lines.dropped);
        drop(lines);
        if dropped > 0 {
            let _ =
                writeln!(text, "{dropped} lines were dropped: the log is written more slowly than it grows");
        }
        // A failed write to stderr cannot be reported anywhere.
        let _ = to.write_all(&text);
        self.lines().writing = false;
        self.0.all_written.notify_all();
    }

    fn lines(&self) -> MutexGuard<'_, QueuedLines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = self.lines();
        if lines.text.len() + line.len() > MAX_QUEUED_BYTES {
            lines.dropped += 1;
            return Ok(line.len());
        }
        let before = lines.text.len();
        lines.text.extend_from_slice(line);
        let after = lines.text.len();
        drop(lines);
        if before == 0 || before < EARLY_WRITE_BYTES && after >= EARLY_WRITE_BYTES {
            self.0.wake_writer.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = LogQueue;

    fn make_writer(&'a self) -> LogQueue {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_in_order_and_dropped_ones_are_counted() {
        let mut queue = LogQueue::default();
        let long = vec![b'x'; MAX_QUEUED_BYTES - 10];
        for line in ["one\n".as_bytes(), &long, b"two\n", b"three and more\n", b"!\n"] {
            queue.write_all(line).expect("it takes everything");
        }
        let mut written = Vec::new();
        queue.write_to(&mut written);
        let written = String::from_utf8(written).expect("text");
        let end = "two\n!\n1 lines were dropped: the log is written more slowly than it grows\n";
        assert!(
            written.starts_with("one\nxxx") && written.ends_with(end),
            "{}",
            &written[MAX_QUEUED_BYTES - 20..]
        );
    }

    #[test]
    fn flush_waits_for_the_last_line() {
        let queue = LogQueue::start().expect("a thread");
        queue.clone().write_all(b"").expect("it takes everything");
        queue.flush_lines();
        let lines = queue.lines();
        assert!(lines.text.is_empty() && !lines.writing);
    }
}
