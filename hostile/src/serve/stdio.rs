//! Stdin and stdout: one message per line.

use super::{Server, Tasks};
use crate::{
    action::Action,
    modes::Stage,
    performer::{Framing, Output, Performer},
    received::ReceivedMessage,
};
use std::{fs::File, io, os::fd::AsFd, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader, Lines, stdin},
    net::unix::pipe,
};

type Input = Lines<BufReader<Box<dyn AsyncRead + Unpin>>>;

pub(super) async fn run(server: Arc<Server>) {
    let out = Output::stdout();
    let no_message = ReceivedMessage::nothing(&server.options, "");
    let mut performer = new_performer(&out);
    let _ = server.perform(&mut performer, server.startup_actions(&no_message), &no_message).await;
    let mut lines = input();
    let mut tasks = Tasks::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some(received) = ReceivedMessage::read(&server.options, "", line.as_bytes()) else { continue };
        let actions = server.decide(&received);
        let (server, mut performer) = (server.clone(), new_performer(&out));
        if actions.iter().any(|action| matches!(action, Action::CloseInput)) {
            drop(lines);
            let _ = close_input();
            let _ = server.perform(&mut performer, actions, &received).await;
            return;
        }
        if actions.iter().any(|action| matches!(action, Action::Freeze)) {
            let _ = server.perform(&mut performer, actions, &received).await;
        } else if actions.iter().all(|action| matches!(action, Action::Note(_) | Action::Send(_))) {
            // Runs simple responses inline, which keeps them in order and is fastest.
            if server.perform(&mut performer, actions, &received).await.is_err() {
                return;
            }
        } else {
            tasks.start(async move { server.perform(&mut performer, actions, &received).await });
        }
    }
    if let Some(mode) = server.schedule.faulty_mode(Stage::Close) {
        let actions = (mode.actions)(&no_message, &server.schedule);
        let _ = server.perform(&mut performer, actions, &no_message).await;
    }
}

fn new_performer(out: &Output) -> Performer {
    Performer { out: out.clone(), framing: Framing::Lines, post: None }
}

/// Opens stdin as a pipe, which can be closed during a read, or as a plain reader if it is not a pipe.
fn input() -> Input {
    let piped = io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    let input: Box<dyn AsyncRead + Unpin> = match piped {
        Ok(piped) => Box::new(piped),
        Err(_) => Box::new(stdin()),
    };
    BufReader::new(input).lines()
}

/// Replaces stdin, which closes the last reference to the pipe.
fn close_input() -> io::Result<()> {
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(())
}
