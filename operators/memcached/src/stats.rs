//! Asking memcached how it is: `stats`, over TCP.

use std::{collections::BTreeMap, io, time::Duration};

use kubewright::{
    World,
    probes::{ProbeResult, Probes},
    sources::{Every, Jitter},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::{desired::PORT, reconciler::Stats};

/// How often a Memcached is asked, and how long its pods may take.
const EVERY: Duration = Duration::from_secs(15);
const TIMEOUT: Duration = Duration::from_secs(5);
/// How much one answer may have.
const LONGEST: u64 = 64 << 10;

/// Asks the pods of a Memcached, each at its address.
#[must_use]
pub fn over_tcp(world: &World) -> Stats {
    with(world, |addresses| async move {
        let mut answers = Vec::new();
        for (pod, address) in addresses {
            answers.push((pod, ask((address.as_str(), PORT)).await));
        }
        result(answers)
    })
}

/// Asks the pods of a Memcached, whose addresses are given by name, as `ask` has it.
#[must_use]
pub fn with<F>(world: &World, ask: impl Fn(BTreeMap<String, String>) -> F + Send + Sync + 'static) -> Stats
where
    F: Future<Output = ProbeResult> + Send + 'static,
{
    Probes::new(world, Every::new(EVERY).jitter(Jitter(0.1)), TIMEOUT, ask)
}

/// What one memcached says of itself.
///
/// # Errors
/// When it cannot be reached, or says something else.
pub async fn ask(address: impl tokio::net::ToSocketAddrs) -> io::Result<BTreeMap<String, String>> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(b"stats\r\n").await?;
    let (reading, mut writing) = connection.split();
    let mut lines = BufReader::new(reading.take(LONGEST)).lines();
    let mut stats = BTreeMap::new();
    while let Some(line) = lines.next_line().await? {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("END"), None, None) => {
                writing.write_all(b"quit\r\n").await?;
                return Ok(stats);
            }
            (Some("STAT"), Some(name), Some(value)) => {
                stats.insert(name.to_owned(), value.to_owned());
            }
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it says {line:?}"))),
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its answer has no end"))
}

/// What all pods together say: well, if each answered.
fn result(answers: Vec<(String, io::Result<BTreeMap<String, String>>)>) -> ProbeResult {
    let count = answers.len();
    let mut versions = std::collections::BTreeSet::new();
    let mut silent = Vec::new();
    for (pod, answer) in answers {
        match answer {
            // Numbers that change all the time would be an event each time.
            Ok(stats) => versions.extend(stats.get("version").cloned()),
            Err(error) => silent.push(format!("{pod}: {error}")),
        }
    }
    if silent.is_empty() {
        let versions: Vec<String> = versions.into_iter().collect();
        Ok(format!("{count} pods answer: memcached {}", versions.join(", ")))
    } else {
        Err(silent.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn answering(text: &'static [u8]) -> std::net::SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut asked = [0; 7];
                connection.read_exact(&mut asked).await.expect("a question");
                assert_eq!(&asked, b"stats\r\n");
                connection.write_all(text).await.expect("an answer");
            }
        });
        address
    }

    /// Beyond 6.
    #[tokio::test]
    async fn mc_02_stats_are_read_as_memcached_writes_them() {
        let address = answering(b"STAT pid 1\r\nSTAT version 1.6.9\r\nSTAT x a b\r\nEND\r\n").await;
        let stats = ask(address).await.expect("an answer");
        assert_eq!((stats["version"].as_str(), stats["x"].as_str()), ("1.6.9", "a b"));
    }

    #[tokio::test]
    async fn what_is_no_memcached_is_told() {
        let other = ask(answering(b"HTTP/1.1 400 Bad Request\r\n").await).await.expect_err("it is none");
        assert!(other.to_string().starts_with("it says \"HTTP/1.1 400"), "{other}");
        let cut = ask(answering(b"STAT pid 1\r\n").await);
        assert!(cut.await.is_err());
        let result = result(vec![("a".to_owned(), Err(other)), ("b".to_owned(), Ok(BTreeMap::new()))]);
        assert!(result.expect_err("one is silent").starts_with("a: it says"));
    }
}
