//! Defines the protocol between host and supervisor.
//!
//! They talk over a socket pair. Each side holds the only copy of its end, so a closed socket proves that the other
//! process is gone, for whatever reason: this is the lifeline. The server's stdin is passed over it too, because the
//! supervisor's own stdin is the socket.

use crate::Exit;
use rustix::{
    cmsg_space,
    io::{Errno, Result},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
    process::Pid,
};
use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// Command from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Send TERM to every process of the tree.
    Terminate,
    /// Send KILL to every process of the tree.
    Kill,
}

/// Message from the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SupervisorMessage {
    /// The server runs with this pid.
    Started(Pid),
    /// The server could not be started.
    NotStarted(Errno),
    /// The server itself has exited; its descendants may still run.
    Exited(Exit),
}

impl Order {
    pub(super) fn encode(self) -> u8 {
        match self {
            Order::Terminate => b'T',
            Order::Kill => b'K',
        }
    }

    pub(super) fn decode(byte: u8) -> Option<Order> {
        [Order::Terminate, Order::Kill].into_iter().find(|it| it.encode() == byte)
    }
}

impl SupervisorMessage {
    pub(super) const LENGTH: usize = 5;

    pub(super) fn encode(self) -> [u8; SupervisorMessage::LENGTH] {
        let (tag, number) = match self {
            SupervisorMessage::Started(pid) => (b's', pid.as_raw_nonzero().get()),
            SupervisorMessage::NotStarted(error) => (b'n', error.raw_os_error()),
            SupervisorMessage::Exited(Exit::Code(code)) => (b'c', code),
            SupervisorMessage::Exited(Exit::Signal(signal)) => (b'k', signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn decode([tag, number @ ..]: [u8; SupervisorMessage::LENGTH]) -> Option<SupervisorMessage> {
        let number = i32::from_le_bytes(number);
        match tag {
            b's' => Pid::from_raw(number).map(SupervisorMessage::Started),
            b'n' => Some(SupervisorMessage::NotStarted(Errno::from_raw_os_error(number))),
            b'c' => Some(SupervisorMessage::Exited(Exit::Code(number))),
            b'k' => Some(SupervisorMessage::Exited(Exit::Signal(number))),
            _ => None,
        }
    }
}

/// Sends the descriptor of the server's stdin.
pub(super) fn send_stdin(socket: impl AsFd, stdin: BorrowedFd<'_>) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let stdin = [stdin];
    ancillary.push(SendAncillaryMessage::ScmRights(&stdin));
    sendmsg(socket, &[IoSlice::new(b"0")], &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}

/// Receives the descriptor of the server's stdin.
pub(super) fn receive_stdin(socket: impl AsFd) -> Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptors.next().ok_or(Errno::BADMSG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write, pipe},
        os::unix::net::UnixStream,
    };

    #[test]
    fn messages_survive_encoding() {
        for message in [
            SupervisorMessage::Started(Pid::INIT),
            SupervisorMessage::NotStarted(Errno::NOENT),
            SupervisorMessage::Exited(Exit::Code(-1)),
            SupervisorMessage::Exited(Exit::Signal(9)),
        ] {
            assert_eq!(SupervisorMessage::decode(message.encode()), Some(message));
        }
        for order in [Order::Terminate, Order::Kill] {
            assert_eq!(Order::decode(order.encode()), Some(order));
        }
        assert_eq!(
            (SupervisorMessage::decode([0; SupervisorMessage::LENGTH]), Order::decode(0)),
            (None, None)
        );
    }

    #[test]
    fn a_descriptor_is_received_or_an_error() {
        let (host, supervisor) = UnixStream::pair().unwrap();
        let (reader, mut writer) = pipe().unwrap();
        send_stdin(&host, reader.as_fd()).unwrap();
        drop(reader);
        let mut received = std::fs::File::from(receive_stdin(&supervisor).unwrap());
        writer.write_all(b"ahoy").unwrap();
        drop(writer);
        let mut text = String::new();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ahoy");
        drop(host);
        assert!(receive_stdin(&supervisor).is_err());
    }
}
