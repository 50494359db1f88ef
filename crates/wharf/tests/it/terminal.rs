//! Runs programs on a terminal, through Python's `pty` module.

use std::{
    io::{Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Starts its arguments on a new terminal of 110 columns and forwards input. Ends after five minutes, so that no test
/// waits forever.
const DRIVER: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 110, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
signal.alarm(300)
watched = [0, master]
while True:
    for ready in select.select(watched, [], [])[0]:
        try:
            data = os.read(ready, 65536)
        except OSError:
            data = b""
        if ready == 0:
            os.write(master, data) if data else watched.remove(0)
        elif data:
            os.write(1, data)
        else:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Screen contents and exit code.
pub(crate) struct TerminalOutput {
    pub(crate) text: String,
    pub(crate) code: Option<i32>,
}

/// A program running on a terminal.
pub(crate) struct TerminalProgram {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    shown: Vec<u8>,
}

/// Runs wharf on a terminal in this folder with only these variables, and types `typed`.
pub(crate) fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str], typed: &str) -> TerminalOutput {
    let words: Vec<&str> = [env!("CARGO_BIN_EXE_wharf")].into_iter().chain(args.iter().copied()).collect();
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut running = TerminalProgram::start(folder, &variables, &words);
    running.type_in(typed);
    running.end()
}

impl TerminalProgram {
    /// Starts a program with its arguments.
    pub(crate) fn start(folder: &Path, variables: &[(String, String)], words: &[&str]) -> TerminalProgram {
        let mut command = Command::new("python3");
        command.args(["-c", DRIVER]).args(words).current_dir(folder);
        command.env_clear().env("TERM", "xterm").envs(variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("Python runs");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("its stdout");
        TerminalProgram { child, stdin, stdout, shown: Vec::new() }
    }

    pub(crate) fn type_in(&mut self, typed: &str) {
        let stdin = self.stdin.as_mut().expect("its stdin");
        stdin.write_all(typed.as_bytes()).and_then(|()| stdin.flush()).expect("it reads");
    }

    /// Types something again and again until the program ends.
    pub(crate) fn type_until_end(mut self, typed: &str) -> TerminalOutput {
        while self.stdin.as_mut().is_some_and(|it| it.write_all(typed.as_bytes()).is_ok()) && self.read_more()
        {
        }
        self.end()
    }

    /// Reads until the screen contains this text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !screen(&self.shown).contains(text) {
            assert!(self.read_more(), "it ended without `{text}`:\n{}", screen(&self.shown));
        }
    }

    /// Reads until the screen changes.
    pub(crate) fn wait_for_change(&mut self) {
        assert!(self.read_more(), "it ended:\n{}", screen(&self.shown));
    }

    /// Returns the current screen contents.
    pub(crate) fn screen(&self) -> String {
        screen(&self.shown)
    }

    /// Waits for the exit.
    pub(crate) fn end(mut self) -> TerminalOutput {
        while self.read_more() {}
        drop(self.stdin.take());
        let code = self.child.wait().expect("it ends").code();
        TerminalOutput { text: screen(&self.shown), code }
    }

    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let count = self.stdout.read(&mut buffer).expect("it can be read");
        self.shown.extend(&buffer[..count]);
        count > 0
    }
}

impl Drop for TerminalProgram {
    fn drop(&mut self) {
        // The terminal closes with the driver, which sends SIGHUP to the program.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns the screen contents after these bytes. Handles rewritten and erased lines, and ignores colours.
fn screen(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let (mut lines, mut row, mut column) = (vec![Vec::<char>::new()], 0_usize, 0_usize);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                if row == lines.len() {
                    lines.push(Vec::new());
                }
            }
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                let mut number = String::new();
                let command = loop {
                    match rest.next() {
                        Some(c) if c.is_ascii_alphabetic() => break c,
                        Some(c) => number.push(c),
                        None => break ' ',
                    }
                };
                let count = number.parse::<usize>();
                match command {
                    'A' => row = row.saturating_sub(count.unwrap_or(1)),
                    'C' => column += count.unwrap_or(1),
                    'D' => column = column.saturating_sub(count.unwrap_or(1)),
                    'B' => row = (row + count.unwrap_or(1)).min(lines.len() - 1),
                    'K' if count == Ok(2) => lines[row].clear(),
                    'K' => lines[row].truncate(column),
                    'J' => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                    _ => {}
                }
            }
            '\u{7}' => {}
            c => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
    }
    let lines = lines.iter().map(|it| it.iter().collect::<String>().trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn rewritten_line_is_shown_once() {
    let shown =
        "one\r\n\u{1b}[2Kwait 1\r\u{1b}[2Kwait 22\r\u{1b}[2K\u{1b}[32mdone\u{1b}[0m\r\nx\u{1b}[1A\rD\n";
    assert_eq!(screen(shown.as_bytes()), "one\nDone\nx");
}
