//! A cloud in memory, to try the operator on without OpenStack: the one of the tests, behind a socket, in the machine's time.
//!
//! It prints where it is, and then the IDs of its servers, one on a line; user, password and project are demo, secret and demo.
//! Quotas are lifted. It lives until it is killed.
#![allow(dead_code, reason = "the tests use more of it")]

#[path = "../tests/suite/fake/mod.rs"]
mod fake;

use std::{
    io::{self, Write},
    net::Ipv4Addr,
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kubewright::World;
use serde_json::{Map, json};
use tokio::net::{TcpListener, TcpStream};

use fake::Fake;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let servers = std::env::args().nth(1).map_or(Ok(3), |number| number.parse());
    let servers: usize = servers.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let cloud = Fake::at(&url, &World::real());
    let mut out = io::stdout();
    writeln!(out, "{url}")?;
    for server in boot(&cloud, servers) {
        writeln!(out, "{server}")?;
    }
    out.flush()?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(serve(cloud.clone(), socket));
    }
}

/// Servers with a port each, in a project that may have any number of groups.
fn boot(cloud: &Fake, servers: usize) -> Vec<String> {
    cloud.with(|state| {
        let unlimited = ["security_group", "security_group_rule"].map(|name| (name.to_owned(), json!(-1)));
        state.quotas.insert("demo".to_owned(), Map::from_iter(unlimited));
        let server = |_| {
            let server = state.id();
            state.boot(&server);
            server
        };
        (0..servers).map(server).collect()
    })
}

async fn serve(cloud: Fake, socket: TcpStream) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let cloud = cloud.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body: Bytes = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(cloud.answer(&Request::from_parts(parts, body)).map(Full::new))
        }
    });
    // Whoever goes away in the middle of an answer does not want it.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
}
