//! `wharf serve`: every tool on one port.

use crate::{
    cli::{Common, ServeArgs},
    dock::{Dock, interrupted},
    exit::Exit,
    front::{Front, Key, make_or_read},
    journal::Journal,
    output::Output,
    reload,
    surroundings::Surroundings,
};
use std::{net::SocketAddr, path::PathBuf, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use wharf_store::Store;

/// How long calls that are out may take once we are leaving.
const GRACE: Duration = Duration::from_secs(10);

/// Where the token is, or what it is.
#[derive(Debug)]
pub(crate) enum Token {
    /// The operator has set it.
    Set(String),
    /// It is kept in this file.
    File(PathBuf),
}

pub(super) async fn run(
    dock: Dock,
    args: ServeArgs,
    token: Option<Token>,
    (common, around): (Common, Surroundings),
) -> Exit {
    let output = dock.output;
    let opened = open(&args, token, output).await;
    let (listener, address, key) = match opened {
        Ok(opened) => opened,
        Err(complaint) => {
            output.complain(&format!("error: {complaint}\n"));
            return Exit::Usage;
        }
    };
    let store = match open_store(&dock).await {
        Ok(store) => store,
        Err(complaint) => {
            output.complain(&format!("error: {complaint}\n"));
            return Exit::Unavailable;
        }
    };
    let (journal, writing) = Journal::new(store.clone());
    let runtime = dock.start();
    let (drain, draining) = watch::channel(false);
    let front = Front::new(runtime.handle(), journal, &listener, key, draining);
    output.data(&format!("REST  http://{address}/api/v1\nMCP   http://{address}/mcp\n"));
    let leave = async {
        // To be told to leave is how a server ends well.
        interrupted().await;
        drain.send_replace(true);
        Exit::Fine
    };
    let serving = async {
        let exit = tokio::select! {
            exit = front.serve(listener, leave) => exit,
            () = reload::follow(common, around, &dock, &runtime) => Exit::OurBug,
        };
        runtime.shutdown(GRACE).await;
        exit
    };
    // The journal is closed by whoever held it last, so it is written to the end.
    let (exit, ()) = tokio::join!(serving, writing);
    store.close().await;
    exit
}

async fn open_store(dock: &Dock) -> Result<Store, String> {
    let nowhere = "there is no folder for the database\nhelp: set WHARF_HOME, or give --database";
    let location = dock.database().ok_or_else(|| nowhere.to_owned())?;
    Store::open(location).await.map_err(|error| error.to_string())
}

/// The listener, and what opens the door.
async fn open(
    args: &ServeArgs,
    token: Option<Token>,
    output: Output,
) -> Result<(TcpListener, SocketAddr, Option<Key>), String> {
    let listener = TcpListener::bind(&args.listen).await.map_err(|error| unusable(args, &error))?;
    let address = listener.local_addr().map_err(|error| unusable(args, &error))?;
    if args.no_auth {
        if !address.ip().is_loopback() {
            return Err(format!(
                "`--no-auth` would let everybody in who can reach {address}\nhelp: listen on 127.0.0.1, or use the token"
            ));
        }
        return Ok((listener, address, None));
    }
    let key = match token {
        Some(Token::Set(token)) if token.len() < 16 => {
            return Err("WHARF_TOKEN is too short to be a secret\nhelp: at least 16 characters".to_owned());
        }
        Some(Token::Set(token)) => Key::new(&token),
        Some(Token::File(path)) => {
            let token = make_or_read(&path)?;
            output.say(&format!("the token is in {}", path.display()));
            Key::new(&token)
        }
        None => return Err("there is no place for a token\nhelp: set WHARF_TOKEN or WHARF_HOME".to_owned()),
    };
    Ok((listener, address, Some(key)))
}

fn unusable(args: &ServeArgs, error: &std::io::Error) -> String {
    format!("cannot listen on `{}`: {error}\nhelp: `--listen 127.0.0.1:0` takes any free port", args.listen)
}
