//! The name server's sockets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::message::{self, Outcome};
use super::resolvers::{self, Transport};
use crate::zone::Zone;

/// How many questions are answered at a time; datagrams beyond them are lost, as on any network.
const AT_A_TIME: usize = 512;
/// How many connections there are at a time.
const CONNECTIONS: usize = 128;
/// How long a connection waits for the next question.
const IDLE: Duration = Duration::from_secs(10);
/// How long it waits when a connection cannot be accepted, as there are no descriptors.
const BREATH: Duration = Duration::from_millis(50);
/// The longest question that is read.
const QUESTION: usize = 4096;

/// A name server that listens.
pub(crate) struct Server {
    datagrams: UdpSocket,
    streams: TcpListener,
    answers: Arc<Answers>,
}

struct Answers {
    zone: Arc<RwLock<Arc<Zone>>>,
    resolvers: Vec<SocketAddr>,
}

impl Server {
    /// Listens at an address, for datagrams and streams. Names that are not in `zone` are asked of `resolvers`.
    ///
    /// # Errors
    /// The address or its port cannot be had.
    pub(crate) async fn bind(
        address: (Ipv4Addr, u16),
        zone: Arc<RwLock<Arc<Zone>>>,
        resolvers: Vec<SocketAddr>,
    ) -> io::Result<Self> {
        let streams = TcpListener::bind(address).await?;
        let datagrams = UdpSocket::bind(streams.local_addr()?).await?;
        Ok(Self { datagrams, streams, answers: Arc::new(Answers { zone, resolvers }) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.streams.local_addr()
    }

    /// Answers until it is dropped.
    pub(crate) async fn run(self) {
        let Self { datagrams, streams, answers } = self;
        let by_datagram = serve_datagrams(Arc::new(datagrams), Arc::clone(&answers));
        tokio::join!(by_datagram, serve_streams(streams, answers));
    }
}

async fn serve_datagrams(socket: Arc<UdpSocket>, answers: Arc<Answers>) {
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = tokio::task::JoinSet::new();
    let mut buffer = vec![0; QUESTION];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            Some(_) = tasks.join_next() => continue,
        };
        // What is told of an answer that nobody took.
        let Ok((length, from)) = received else { continue };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (question, socket, answers) =
            (buffer[..length].to_vec(), Arc::clone(&socket), Arc::clone(&answers));
        tasks.spawn(async move {
            if let Some(answer) = answers.to(&question, Transport::Datagram).await {
                let _ = socket.send_to(&answer, from).await;
            }
            drop(place);
        });
    }
}

async fn serve_streams(listener: TcpListener, answers: Arc<Answers>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            sleep(BREATH).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let answers = Arc::clone(&answers);
        tasks.spawn(async move {
            // Who asks has gone, or says nothing any more.
            let _ = serve(stream, &answers).await;
            drop(place);
        });
    }
}

async fn serve(mut stream: TcpStream, answers: &Answers) -> io::Result<()> {
    loop {
        let question = timeout(IDLE, resolvers::read(&mut stream)).await??;
        let Some(answer) = answers.to(&question, Transport::Stream).await else { return Ok(()) };
        timeout(IDLE, resolvers::write(&mut stream, &answer)).await??;
    }
}

impl Answers {
    /// The answer to a message; `None` where it gets none.
    async fn to(&self, question: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let zone = Arc::clone(&self.zone.read());
        let reply = match message::answer(question, &zone) {
            Outcome::Dropped => return None,
            Outcome::Answered(mut reply) => {
                if let Some(asked) = reply.continued.take().and_then(|name| message::about(&name, question))
                    && let Some(answer) = resolvers::ask(&self.resolvers, &asked, transport).await
                {
                    reply.continue_with(&answer);
                }
                reply
            }
            Outcome::Elsewhere => match resolvers::ask(&self.resolvers, question, transport).await {
                Some(answer) => return Some(answer),
                None => message::failure(question)?,
            },
        };
        match transport {
            Transport::Datagram => reply.datagram(),
            Transport::Stream => reply.stream(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use simple_dns::rdata::{A, RData};
    use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE};

    use super::*;
    use crate::fixture::{service, services};

    /// A name server of the machine: it knows one address for every name.
    async fn resolver() -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = socket.local_addr().expect("an address");
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let asked = Packet::parse(&buffer[..length]).expect("a question");
                let mut answer = Packet::new_reply(asked.id());
                let data = RData::A(A::from(Ipv4Addr::new(10, 1, 2, 3)));
                answer.answers.push(ResourceRecord::new(
                    asked.questions[0].qname.clone(),
                    CLASS::IN,
                    60,
                    data,
                ));
                let answer = answer.build_bytes_vec().expect("bytes");
                let _ = socket.send_to(&answer, from).await;
            }
        });
        address
    }

    async fn server(resolvers: Vec<SocketAddr>) -> SocketAddr {
        let all = services([
            service("web", json!({"clusterIP": "127.128.0.9", "ports": [{"port": 80}]})),
            service("out", json!({"type": "ExternalName", "externalName": "example.org"})),
        ]);
        let zone = Arc::new(RwLock::new(Arc::new(Zone::of(&all, "cluster.local"))));
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), zone, resolvers).await.expect("a port");
        let address = server.address().expect("an address");
        tokio::spawn(server.run());
        address
    }

    fn question(name: &str) -> Vec<u8> {
        let mut query = Packet::new_query(7);
        let name = Name::new(name).expect("a name");
        query.questions.push(Question::new(name, QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN), false));
        query.build_bytes_vec().expect("bytes")
    }

    /// The code and the addresses of an answer.
    fn read(answer: &[u8]) -> (RCODE, Vec<String>) {
        let answer = Packet::parse(answer).expect("a message");
        let addresses = answer.answers.iter().filter_map(|record| match &record.rdata {
            RData::A(address) => Some(Ipv4Addr::from(address.address).to_string()),
            _ => None,
        });
        (answer.rcode(), addresses.collect())
    }

    async fn ask(server: SocketAddr, name: &str) -> (RCODE, Vec<String>) {
        let answer = resolvers::ask(&[server], &question(name), Transport::Datagram).await;
        read(&answer.expect("an answer"))
    }

    #[tokio::test]
    async fn names_of_services_are_answered_and_others_asked_of_the_machines_servers() {
        let server = server(vec![resolver().await]).await;
        assert_eq!(
            ask(server, "web.shop.svc.cluster.local").await,
            (RCODE::NoError, vec!["127.128.0.9".to_owned()])
        );
        assert_eq!(ask(server, "example.net").await, (RCODE::NoError, vec!["10.1.2.3".to_owned()]));
        assert_eq!(
            ask(server, "out.shop.svc.cluster.local").await,
            (RCODE::NoError, vec!["10.1.2.3".to_owned()])
        );
        assert_eq!(ask(server, "no.shop.svc.cluster.local").await, (RCODE::NameError, Vec::new()));
    }

    #[tokio::test]
    async fn without_servers_of_the_machine_other_names_fail() {
        let server = server(Vec::new()).await;
        assert_eq!(ask(server, "example.net").await, (RCODE::ServerFailure, Vec::new()));
        assert_eq!(
            ask(server, "out.shop.svc.cluster.local").await,
            (RCODE::NoError, Vec::new()),
            "an alias alone"
        );
    }

    #[tokio::test]
    async fn a_connection_has_as_many_answers_as_questions() {
        let server = server(Vec::new()).await;
        let mut stream = TcpStream::connect(server).await.expect("it answers");
        for _ in 0..3 {
            resolvers::write(&mut stream, &question("web.shop.svc.cluster.local")).await.expect("it is sent");
            let answer = resolvers::read(&mut stream).await.expect("an answer");
            assert_eq!(read(&answer).1, ["127.128.0.9"]);
        }
    }
}
