//! Runs wharf at a terminal, as a person does: Python's `pty` stands between.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// Starts what follows on the command line at a new terminal, 200 columns wide, and passes on what is typed.
const DRIVER: &str = r#"
import fcntl, os, pty, struct, sys, termios
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
os.write(master, sys.stdin.buffer.read())
while True:
    try:
        data = os.read(master, 65536)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// What was seen at the terminal, and the exit code.
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) code: Option<i32>,
}

/// Runs wharf at a terminal in this folder, with nothing but these variables, and types this.
pub(crate) fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str], typed: &str) -> Seen {
    let mut command = Command::new("python3");
    command.args(["-c", DRIVER, env!("CARGO_BIN_EXE_wharf")]).args(args).current_dir(folder);
    command.env_clear().env("TERM", "xterm").envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().expect("Python runs");
    child.stdin.take().expect("its stdin").write_all(typed.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    Seen { text, code: output.status.code() }
}
