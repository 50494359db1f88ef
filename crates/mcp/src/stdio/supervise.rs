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
    lifeline::{self, Order, SupervisorMessage},
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
const TERM_GRACE: Duration = Duration::from_secs(1);

/// How long to repeat KILL. Processes left after that belong to another user or are blocked on a device.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Polling interval while killing the tree.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Commands to run: the server, and one after its last process has ended.
struct SupervisedCommands {
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
    child_exits: UnixStream,
    /// Readable after a termination signal.
    term_signals: UnixStream,
    stage: ShutdownStage,
    exit: Option<Exit>,
}

/// Stage of the shutdown.
#[derive(Clone, Copy)]
enum ShutdownStage {
    Running,
    Terminating { kill_at: Instant },
    Killing { until: Instant },
}

/// Encodes the commands as arguments for a supervisor.
pub(super) fn arguments(server: Vec<OsString>, last: Vec<OsString>) -> Vec<OsString> {
    let count = OsString::from(last.len().to_string());
    [count].into_iter().chain(last).chain(server).collect()
}

/// Runs the supervisor until no process is left. `arguments` are the arguments after [`SUPERVISE`](super::SUPERVISE).
///
/// The process must do nothing else, and call this first.
pub fn supervise(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Some(exit) = parse_arguments(&arguments).and_then(|commands| run_contained(&commands).ok()) else {
        return ExitCode::from(2);
    };
    ExitCode::from(match exit {
        Some(Exit::Code(code)) => u8::try_from(code).unwrap_or(1),
        Some(Exit::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        None => 1,
    })
}

fn parse_arguments(arguments: &[OsString]) -> Option<SupervisedCommands> {
    let (count, arguments) = arguments.split_first()?;
    let (last, server) = arguments.split_at_checked(count.to_str()?.parse().ok()?)?;
    (!server.is_empty()).then(|| SupervisedCommands { server: server.to_vec(), last: last.to_vec() })
}

/// Starts the server and returns when no process of its tree is left.
fn run_contained(commands: &SupervisedCommands) -> io::Result<Option<Exit>> {
    // The host handles Ctrl-C, and a server that prompts for a password on a terminal would hang.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    // Other servers run as the same user and must not read this server's secrets from our environment.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let child_exits = signal_socket(&[SIGCHLD])?;
    let term_signals = signal_socket(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    set_close_on_exec()?;
    let mut host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = lifeline::receive_stdin(&host)?;
    let server = match start(&commands.server, stdin) {
        Ok(server) => server,
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
            host.write_all(&SupervisorMessage::NotStarted(errno).encode())?;
            return Ok(None);
        }
    };
    // A failed write is ignored: the loop below detects a host that is gone.
    let _ = host.write_all(&SupervisorMessage::Started(server).encode());
    close_output();
    let mut supervisor = Supervisor {
        own: getpid(),
        server,
        host: Some(host),
        child_exits,
        term_signals,
        stage: ShutdownStage::Running,
        exit: None,
    };
    supervisor.run_until_empty();
    supervisor.run_last(&commands.last);
    Ok(supervisor.exit)
}

/// Returns a socket that becomes readable when one of the signals arrives.
fn signal_socket(signals: &[i32]) -> io::Result<UnixStream> {
    let (woken, waker) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    for signal in signals {
        pipe::register(*signal, waker.try_clone()?)?;
    }
    Ok(woken)
}

/// Sets close-on-exec on every inherited descriptor, so that a child gets only its own pipes.
fn set_close_on_exec() -> io::Result<()> {
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in open {
        #[expect(
            unsafe_code,
            reason = "an inherited descriptor has no owner in this process, and with one thread none can be closed or \
                      opened meanwhile; the kernel rejects the number of a closed descriptor"
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
fn close_output() {
    if let Ok(null) = fs::File::options().write(true).open("/dev/null") {
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(&null);
    }
}

impl Supervisor {
    /// Handles events until no child is left.
    fn run_until_empty(&mut self) {
        while self.reap() {
            match self.stage {
                ShutdownStage::Killing { until } if Instant::now() > until => return,
                ShutdownStage::Killing { .. } => self.kill_children(),
                ShutdownStage::Terminating { kill_at } if Instant::now() > kill_at => self.kill(),
                _ => self.wait(),
            }
        }
    }

    /// Reaps dead children; returns whether any child is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => {
                    let code = status.exit_status().map(Exit::Code);
                    self.exit = code.or_else(|| status.terminating_signal().map(Exit::Signal));
                    self.report_exit();
                    self.end();
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Reports the server's exit to the host.
    fn report_exit(&mut self) {
        if let (Some(host), Some(exit)) = (&mut self.host, self.exit) {
            let _ = host.write_all(&SupervisorMessage::Exited(exit).encode());
        }
    }

    fn kill_children(&self) {
        for child in tree::children(self.own) {
            let _ = kill_process(child, Signal::KILL);
        }
        self.wait_for_child_exit(POLL_INTERVAL);
    }

    fn wait_for_child_exit(&self, timeout: Duration) {
        let mut woken = [PollFd::new(&self.child_exits, PollFlags::IN)];
        let _ = poll(&mut woken, timespec(Some(timeout)).as_ref());
        drain(&self.child_exits);
    }

    fn wait(&mut self) {
        let timeout = match self.stage {
            ShutdownStage::Terminating { kill_at } => {
                Some(kill_at.saturating_duration_since(Instant::now()) + POLL_INTERVAL)
            }
            _ => None,
        };
        let mut woken = vec![
            PollFd::new(&self.child_exits, PollFlags::IN),
            PollFd::new(&self.term_signals, PollFlags::IN),
        ];
        woken.extend(self.host.as_ref().map(|host| PollFd::new(host, PollFlags::IN)));
        let _ = poll(&mut woken, timespec(timeout).as_ref());
        let is_host_readable = woken.get(2).is_some_and(|it| !it.revents().is_empty());
        drain(&self.child_exits);
        if drain(&self.term_signals) {
            self.end();
        }
        if is_host_readable {
            self.handle_orders();
        }
    }

    /// Executes commands from the host; a closed lifeline starts the shutdown.
    fn handle_orders(&mut self) {
        let mut bytes = [0; 16];
        match self.host.as_mut().map(|host| host.read(&mut bytes)) {
            Some(Ok(count @ 1..)) => {
                for order in bytes[..count].iter().filter_map(|byte| Order::decode(*byte)) {
                    match order {
                        Order::Terminate => tree::signal_descendants(self.own, Signal::TERM),
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
        if let ShutdownStage::Running = self.stage {
            self.stage = ShutdownStage::Terminating { kill_at: Instant::now() + TERM_GRACE };
            tree::signal_descendants(self.own, Signal::TERM);
        }
    }

    fn kill(&mut self) {
        if !matches!(self.stage, ShutdownStage::Killing { .. }) {
            self.stage = ShutdownStage::Killing { until: Instant::now() + KILL_TIMEOUT };
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
            self.stage = ShutdownStage::Terminating { kill_at: Instant::now() + LAST_GRACE };
            self.run_until_empty();
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

fn timespec(timeout: Option<Duration>) -> Option<Timespec> {
    timeout.and_then(|it| it.try_into().ok())
}
