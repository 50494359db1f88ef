//! Stdin and stdout: one message per line.

use super::{Server, Tasks};
use crate::{
    asked::Asked,
    deed::Deed,
    modes::Stage,
    mouth::{Framing, Mouth, Out},
};
use std::{fs::File, io, os::fd::AsFd, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader, Lines, stdin},
    net::unix::pipe,
};

type Input = Lines<BufReader<Box<dyn AsyncRead + Unpin>>>;

pub(super) async fn run(server: Arc<Server>) {
    let out = Out::stdout();
    let nobody = Asked::nothing(&server.orders, "");
    let mut mouth = speak(&out);
    let _ = server.perform(&mut mouth, server.greeting(&nobody), &nobody).await;
    let mut lines = input();
    let mut tasks = Tasks::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some(asked) = Asked::read(&server.orders, "", line.as_bytes()) else { continue };
        let deeds = server.decide(&asked);
        let (server, mut mouth) = (server.clone(), speak(&out));
        if deeds.iter().any(|deed| matches!(deed, Deed::Deafen)) {
            drop(lines);
            let _ = close_input();
            let _ = server.perform(&mut mouth, deeds, &asked).await;
            return;
        }
        if deeds.iter().any(|deed| matches!(deed, Deed::Freeze)) {
            let _ = server.perform(&mut mouth, deeds, &asked).await;
        } else if deeds.iter().all(|deed| matches!(deed, Deed::Note(_) | Deed::Say(_))) {
            // Runs simple responses inline, which keeps them in order and is fastest.
            if server.perform(&mut mouth, deeds, &asked).await.is_err() {
                return;
            }
        } else {
            tasks.start(async move { server.perform(&mut mouth, deeds, &asked).await });
        }
    }
    if let Some(mode) = server.temper.strike(Stage::Close) {
        let deeds = (mode.deeds)(&nobody, &server.temper);
        let _ = server.perform(&mut mouth, deeds, &nobody).await;
    }
}

fn speak(out: &Out) -> Mouth {
    Mouth { out: out.clone(), framing: Framing::Lines, post: None }
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
