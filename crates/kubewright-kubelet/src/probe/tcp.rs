//! Probes that connect to a port.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

use super::url::authority;

/// Connects; a failure is told in Go's words.
pub(crate) async fn connect(host: &str, port: u16, timeout: Duration) -> Result<TcpStream, String> {
    let to = authority(host, port);
    match tokio::time::timeout(timeout, TcpStream::connect((host, port))).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(format!("dial tcp {to}: {}", in_words(&error))),
        Err(_) => Err(format!("dial tcp {to}: i/o timeout")),
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => error.to_string(),
    }
}
