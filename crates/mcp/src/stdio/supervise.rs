//! Implements the supervisor: a small process between host and server that outlives both.
//!
//! It is not in the data path: the server uses the host's pipes directly. As a subreaper it adopts the orphans of the
//! server's process tree, so it knows when no process is left. It ends the tree when the server exits, when it is
//! asked to, and when the host disappears for any reason: TERM to the tree, a grace period, then KILL to its own
//! children until none is left. A killed child's children become ours and are killed next. A child's pid stays
//! reserved until we reap it, so no unrelated process can be hit.
//!
//! The host starts it as `program __supervise …`. Its stdin is one end of the lifeline; its environment, working
//! directory, stdout and stderr are the server's.

use super::{
    LAST_GRACE, REMOVE_UNFINISHED,
    lifeline::{self, Order, Word},
    tree,
};
use crate::Exit;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd},
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper,
        set_dumpable_behavior, setsid, wait,
    },
    stdio::{dup2_stderr, dup2_stdout},
};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    low_level::pipe,
};
use std::{
    ffi::OsString,
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

/// Default grace period between TERM and KILL.
const GRACE: Duration = Duration::from_secs(1);

/// How long to repeat KILL. Processes left after that belong to another user or are blocked on a device.
const PERSISTENCE: Duration = Duration::from_secs(5);

/// Polling interval while killing the tree.
const GLANCE: Duration = Duration::from_millis(10);

/// Commands to run: the server, and one after its last process has ended.
struct Task {
    server: Vec<OsString>,
    last: Vec<OsString>,
}

/// State of the supervisor.
struct Supervisor {
    /// Our own pid.
    own: Pid,
    /// Pid of the server.
    server: Pid,
    /// Lifeline to the host; `None` after the host is gone.
    host: Option<UnixStream>,
    /// Readable after SIGCHLD.
    deaths: UnixStream,
    /// Readable after a termination signal.
    requests: UnixStream,
    phase: Phase,
    exit: Option<Exit>,
}

/// Stage of the shutdown.
#[derive(Clone, Copy)]
enum Phase {
    Serving,
    Ending { kill_at: Instant },
    Killing { until: Instant },
}

/// Encodes the commands as arguments for a supervisor.
pub(super) fn words(server: Vec<OsString>, last: Vec<OsString>) -> Vec<OsString> {
    let count = OsString::from(last.len().to_string());
    [count].into_iter().chain(last).chain(server).collect()
}

/// Runs the supervisor until no process is left. `words` are the arguments after [`SUPERVISE`](super::SUPERVISE).
///
/// The process must do nothing else, and call this first.
pub fn supervise(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let Some(exit) = read_words(&words).and_then(|task| contain(&task).ok()) else {
        return ExitCode::from(2);
    };
    ExitCode::from(match exit {
        Some(Exit::Code(code)) => u8::try_from(code).unwrap_or(1),
        Some(Exit::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        None => 1,
    })
}

fn read_words(words: &[OsString]) -> Option<Task> {
    let (count, words) = words.split_first()?;
    let (last, server) = words.split_at_checked(count.to_str()?.parse().ok()?)?;
    (!server.is_empty()).then(|| Task { server: server.to_vec(), last: last.to_vec() })
}

/// Starts the server and returns when no process of its tree is left.
fn contain(task: &Task) -> io::Result<Option<Exit>> {
    // The host handles Ctrl-C, and a server that prompts for a password on a terminal would hang.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    // Other servers run as the same user and must not read this server's secrets from our environment.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let deaths = woken_by(&[SIGCHLD])?;
    let requests = woken_by(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    keep_descriptors()?;
    let mut host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = lifeline::receive_stdin(&host)?;
    let server = match start(&task.server, stdin) {
        Ok(server) => server,
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
            host.write_all(&Word::NotStarted(errno).encode())?;
            return Ok(None);
        }
    };
    // A failed write is ignored: the loop below detects a host that is gone.
    let _ = host.write_all(&Word::Started(server).encode());
    let_go_of_output();
    let mut supervisor = Supervisor {
        own: getpid(),
        server,
        host: Some(host),
        deaths,
        requests,
        phase: Phase::Serving,
        exit: None,
    };
    supervisor.watch();
    supervisor.run_last(&task.last);
    Ok(supervisor.exit)
}

/// Returns a socket that becomes readable when one of the signals arrives.
fn woken_by(signals: &[i32]) -> io::Result<UnixStream> {
    let (woken, waker) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    for signal in signals {
        pipe::register(*signal, waker.try_clone()?)?;
    }
    Ok(woken)
}

/// Sets close-on-exec on every inherited descriptor, so that a child gets only its own pipes.
fn keep_descriptors() -> io::Result<()> {
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in open {
        #[expect(
            unsafe_code,
            reason = "nobody owns a descriptor that was inherited, and this process has one thread, so that none can be \
                      closed or opened here; the flag harms no owner, and a number that is free is refused"
        )]
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        if let Ok(flags) = fcntl_getfd(descriptor) {
            fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

/// Starts the server in its own process group, so that a signal to its group does not reach us.
fn start(server: &[OsString], stdin: OwnedFd) -> io::Result<Pid> {
    let (program, args) = server.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program).args(args).stdin(Stdio::from(stdin)).process_group(0).spawn()?;
    Ok(Pid::from_child(&child))
}

/// Closes our copies of stdout and stderr, so that the host sees EOF when the server closes its output.
fn let_go_of_output() {
    if let Ok(nowhere) = fs::File::options().write(true).open("/dev/null") {
        let _ = dup2_stdout(&nowhere);
        let _ = dup2_stderr(&nowhere);
    }
}

impl Supervisor {
    /// Handles events until no child is left.
    fn watch(&mut self) {
        while self.collect() {
            match self.phase {
                Phase::Killing { until } if Instant::now() > until => return,
                Phase::Killing { .. } => self.kill_children(),
                Phase::Ending { kill_at } if Instant::now() > kill_at => self.kill(),
                _ => self.wait(),
            }
        }
    }

    /// Reaps dead children; returns whether any child is left.
    fn collect(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => {
                    let code = status.exit_status().map(Exit::Code);
                    self.exit = code.or_else(|| status.terminating_signal().map(Exit::Signal));
                    self.tell_the_end();
                    self.end();
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Reports the server's exit to the host.
    fn tell_the_end(&mut self) {
        if let (Some(host), Some(exit)) = (&mut self.host, self.exit) {
            let _ = host.write_all(&Word::Ended(exit).encode());
        }
    }

    fn kill_children(&self) {
        for child in tree::children(self.own) {
            let _ = kill_process(child, Signal::KILL);
        }
        self.wait_for_deaths(GLANCE);
    }

    fn wait_for_deaths(&self, patience: Duration) {
        let mut woken = [PollFd::new(&self.deaths, PollFlags::IN)];
        let _ = poll(&mut woken, timespec(Some(patience)).as_ref());
        drain(&self.deaths);
    }

    fn wait(&mut self) {
        let patience = match self.phase {
            Phase::Ending { kill_at } => Some(kill_at.saturating_duration_since(Instant::now()) + GLANCE),
            _ => None,
        };
        let mut woken =
            vec![PollFd::new(&self.deaths, PollFlags::IN), PollFd::new(&self.requests, PollFlags::IN)];
        woken.extend(self.host.as_ref().map(|host| PollFd::new(host, PollFlags::IN)));
        let _ = poll(&mut woken, timespec(patience).as_ref());
        let host_spoke = woken.get(2).is_some_and(|it| !it.revents().is_empty());
        drain(&self.deaths);
        if drain(&self.requests) {
            self.end();
        }
        if host_spoke {
            self.obey();
        }
    }

    /// Executes commands from the host; a closed lifeline starts the shutdown.
    fn obey(&mut self) {
        let mut bytes = [0; 16];
        match self.host.as_mut().map(|host| host.read(&mut bytes)) {
            Some(Ok(count @ 1..)) => {
                for order in bytes[..count].iter().filter_map(|byte| Order::decode(*byte)) {
                    match order {
                        Order::Terminate => tree::signal_below(self.own, Signal::TERM),
                        Order::Kill => self.kill(),
                    }
                }
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => {
                self.host = None;
                self.end();
            }
        }
    }

    fn end(&mut self) {
        if let Phase::Serving = self.phase {
            self.phase = Phase::Ending { kill_at: Instant::now() + GRACE };
            tree::signal_below(self.own, Signal::TERM);
        }
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing { until: Instant::now() + PERSISTENCE };
        }
    }

    /// Runs the final command, which the host can no longer influence.
    fn run_last(&mut self, last: &[OsString]) {
        let Some((program, args)) = last.split_first() else { return };
        if let (true, [folder, finished]) = (program == REMOVE_UNFINISHED, args) {
            if !Path::new(folder).join(finished).exists() {
                let _ = fs::remove_dir_all(folder);
            }
            return;
        }
        let mut command = Command::new(program);
        // The server's working directory may no longer exist.
        command.args(args).current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok() {
            self.host = None;
            self.phase = Phase::Ending { kill_at: Instant::now() + LAST_GRACE };
            self.watch();
        }
    }
}

/// Empties the pipe; returns whether it contained anything.
fn drain(mut woken: &UnixStream) -> bool {
    let mut bytes = [0; 64];
    let mut any = false;
    while let Ok(1..) = woken.read(&mut bytes) {
        any = true;
    }
    any
}

fn timespec(patience: Option<Duration>) -> Option<Timespec> {
    patience.and_then(|it| it.try_into().ok())
}
