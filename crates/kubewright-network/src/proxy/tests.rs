//! Real sockets of this machine: what connects is carried.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// An address that no Service of a cluster has, at a port that is free on all of them for now.
async fn free(protocol: Protocol) -> Socket {
    let any = (Ipv4Addr::LOCALHOST, 0);
    let port = match protocol {
        Protocol::Tcp => TcpListener::bind(any).await.and_then(|socket| socket.local_addr()),
        Protocol::Udp => UdpSocket::bind(any).await.and_then(|socket| socket.local_addr()),
    };
    let port = port.expect("a port").port();
    Socket { protocol, address: SocketAddr::from(([127, 63, 9, 1], port)) }
}

fn leads_to(socket: Socket, backends: Vec<SocketAddr>) -> BTreeMap<Socket, Frontend> {
    BTreeMap::from([(socket, Frontend { owner: "shop/web".to_owned(), backends, affinity: None })])
}

/// An endpoint that says its name to each connection, and then what it is told.
async fn endpoint(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(name.as_bytes()).await?;
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    address
}

/// An endpoint that answers each datagram with its name.
async fn datagrams(name: &'static str) -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = socket.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut buffer = [0; 16];
        while let Ok((_, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(name.as_bytes(), from).await;
        }
    });
    address
}

/// Where nothing listens.
async fn nobody() -> SocketAddr {
    let free = free(Protocol::Tcp).await;
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), free.address.port())
}

async fn greeting(socket: Socket) -> std::io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(socket.address).await?;
    let mut name = [0; 1];
    stream.read_exact(&mut name).await?;
    Ok((stream, String::from_utf8_lossy(&name).into_owned()))
}

#[tokio::test]
async fn a_connection_is_carried_both_ways_to_its_end() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Tcp).await);
    assert!(proxy.apply(leads_to(socket, vec![endpoint("a").await])).await.is_empty());
    let (mut stream, name) = greeting(socket).await.expect("it answers");
    assert_eq!(name, "a");
    stream.write_all(b"there and back").await.expect("it is sent");
    // Half of the connection ends; the other half still comes.
    stream.shutdown().await.expect("it ends");
    let mut back = String::new();
    stream.read_to_string(&mut back).await.expect("an answer");
    assert_eq!(back, "there and back");
}

#[tokio::test]
async fn endpoints_take_turns_and_one_that_is_gone_is_passed_over() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Tcp).await);
    let endpoints = vec![endpoint("a").await, nobody().await, endpoint("b").await];
    proxy.apply(leads_to(socket, endpoints)).await;
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(greeting(socket).await.expect("it answers").1);
    }
    assert_eq!(names, ["a", "b", "b"]);
}

#[tokio::test]
async fn what_no_endpoint_takes_is_closed() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Tcp).await);
    proxy.apply(leads_to(socket, vec![nobody().await])).await;
    assert!(greeting(socket).await.is_err());
}

#[tokio::test]
async fn a_port_that_is_gone_refuses_while_its_connections_stay() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Tcp).await);
    proxy.apply(leads_to(socket, vec![endpoint("a").await])).await;
    let (mut stream, _) = greeting(socket).await.expect("it answers");
    proxy.apply(BTreeMap::new()).await;
    // The socket goes with its task, which ends when it is next looked at.
    while TcpStream::connect(socket.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(b"still").await.expect("it is sent");
    let mut back = [0; 5];
    stream.read_exact(&mut back).await.expect("an answer");
    assert_eq!(&back, b"still");
}

#[tokio::test]
async fn datagrams_are_answered_and_led_anew_when_their_endpoint_goes() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Udp).await);
    let (a, b) = (datagrams("a").await, datagrams("b").await);
    proxy.apply(leads_to(socket, vec![a, b])).await;
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    client.connect(socket.address).await.expect("a way");
    let ask = async || {
        client.send(b"?").await.expect("it is sent");
        let mut answer = [0; 1];
        client.recv(&mut answer).await.expect("an answer");
        char::from(answer[0])
    };
    assert_eq!((ask().await, ask().await), ('a', 'a'), "a client stays where it is");
    proxy.apply(leads_to(socket, vec![b])).await;
    assert_eq!(ask().await, 'b');
}

#[tokio::test]
async fn a_socket_that_somebody_else_has_is_said_once_and_tried_again() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Tcp).await);
    let other = TcpListener::bind(socket.address).await.expect("it is free");
    let backends = vec![endpoint("a").await];
    let problems = proxy.apply(leads_to(socket, backends.clone())).await;
    let [(at, service, reason)] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((*at, &**service), (socket, "shop/web"));
    assert!(reason.contains("in use"), "{reason}");
    assert!(proxy.apply(leads_to(socket, vec![endpoint("b").await])).await.is_empty());
    assert!(proxy.apply(leads_to(socket, backends.clone())).await.is_empty());
    assert!(proxy.is_incomplete());
    drop(other);
    tokio::time::pause();
    tokio::time::advance(AGAIN).await;
    tokio::time::resume();
    assert!(proxy.apply(leads_to(socket, backends)).await.is_empty() && !proxy.is_incomplete());
    assert_eq!(greeting(socket).await.expect("it answers").1, "a");
}

#[tokio::test]
async fn a_program_that_starts_again_gets_back_its_port_of_all_addresses() {
    let (mut proxy, socket) = (Proxy::default(), free(Protocol::Tcp).await);
    let everywhere = (Ipv4Addr::UNSPECIFIED, socket.address.port());
    let program = TcpListener::bind(everywhere).await.expect("it is free");
    let backends = vec![socket.address];
    assert_eq!(proxy.apply(leads_to(socket, backends.clone())).await.len(), 1);
    drop(program);
    assert!(proxy.apply(leads_to(socket, backends)).await.is_empty());
    TcpListener::bind(everywhere).await.expect("it is still free");
    let elsewhere = vec![endpoint("b").await];
    assert!(proxy.apply(leads_to(socket, elsewhere)).await.is_empty() && !proxy.is_incomplete());
}
