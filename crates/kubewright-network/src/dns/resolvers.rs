//! The name servers of the machine, which are asked for all that is no name of the cluster.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// How long one of them may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest datagram.
const DATAGRAM: usize = 65_535;

/// By what a question came, and goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Datagram,
    Stream,
}

/// The answer of the first server that gives one; `None` where none does.
pub(crate) async fn ask(resolvers: &[SocketAddr], message: &[u8], transport: Transport) -> Option<Vec<u8>> {
    for resolver in resolvers {
        let asked = async {
            match transport {
                Transport::Datagram => by_datagram(*resolver, message).await,
                Transport::Stream => by_stream(*resolver, message).await,
            }
        };
        match timeout(PATIENCE, asked).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => tracing::debug!(%resolver, %error, "a name server does not answer"),
            Err(_) => tracing::debug!(%resolver, "a name server does not answer in time"),
        }
    }
    None
}

async fn by_datagram(resolver: SocketAddr, message: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr =
        if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(resolver).await?;
    socket.send(message).await?;
    let mut answer = vec![0; DATAGRAM];
    loop {
        let length = socket.recv(&mut answer).await?;
        // Anybody can send one: it has to be to this question.
        if length >= 2 && answer[..2] == message[..2] {
            answer.truncate(length);
            return Ok(answer);
        }
    }
}

async fn by_stream(resolver: SocketAddr, message: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(resolver).await?;
    write(&mut stream, message).await?;
    read(&mut stream).await
}

/// Reads a message with its length before it.
pub(crate) async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

/// Writes a message with its length before it.
pub(crate) async fn write(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(message);
    stream.write_all(&framed).await
}
