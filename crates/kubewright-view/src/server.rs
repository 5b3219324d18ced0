//! The port: who may come, and who may see data.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body as HttpBody;
use kubewright_control_plane::Secret;
use kubewright_serve::connection::Http1;
use kubewright_serve::{Listener, MaxConnections};
use subtle::ConstantTimeEq;

use crate::answer::{self, Body, Refusal};
use crate::{View, api, assets};

/// Connections at a time: a few pages of one person.
const CONNECTIONS: usize = 64;
/// Ten years. A page may sleep, and where the cluster's time jumps, a connection does not end for that.
const IDLE: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;

/// A port of this machine on which a [`View`] is served to who has the link.
pub struct Server {
    listener: Listener,
    token: Secret,
}

impl Server {
    /// Takes a port on 127.0.0.1 (0: any that is free), and makes a token.
    ///
    /// # Errors
    /// When another program has the port, or the machine gives no entropy.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = Listener::bind("view", SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let token = Secret::random().map_err(|_| io::Error::other("the machine gives no entropy"))?;
        Ok(Self { listener, token })
    }

    /// The address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The link that opens the page. Who has it sees all that the view shows.
    #[must_use]
    pub fn link(&self) -> String {
        format!("http://{}/#token={}", self.address(), self.token.reveal())
    }

    /// Serves a view for ever. Dropping the future ends all connections.
    pub async fn serve(self, view: View) {
        let Self { listener, token } = self;
        let port = listener.local_addr().port();
        let gate = Gate { port, token };
        let following = view.clone();
        let http = Http1 { head: IDLE, head_bytes: HEAD, keep_alive: true };
        let answer = move |request| {
            let (gate, view) = (gate.clone(), view.clone());
            async move { gate.answer(&view, request).await }
        };
        tokio::join!(following.keep_up(), http.serve_all(listener, MaxConnections(CONNECTIONS), answer));
    }
}

/// What stands before the data.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) port: u16,
    pub(crate) token: Secret,
}

impl Gate {
    /// Answers a request: the page to all on this machine, data to who shows the token.
    pub(crate) async fn answer<B>(&self, view: &View, request: Request<B>) -> Response<Body>
    where
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        match self.admits(&parts) {
            Err(refusal) => refusal.into(),
            Ok(()) => match parts.uri.path().strip_prefix("/api/") {
                Some(path) => api::answer(view, path, &parts, body).await.unwrap_or_else(Response::from),
                None if parts.method != http::Method::GET => {
                    Refusal(StatusCode::METHOD_NOT_ALLOWED, "the page is read only".to_owned()).into()
                }
                None => match assets::asset(parts.uri.path()) {
                    Some(asset) => answer::bytes(asset.media_type, asset.bytes),
                    None => Refusal::missing(format!("there is no {}", parts.uri.path())).into(),
                },
            },
        }
    }

    /// A name that somebody else has made an address of this machine is not the one that the page is at, and neither is the origin of
    /// another page.
    fn admits(&self, parts: &Parts) -> Result<(), Refusal> {
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let own = |host: &str| {
            ["127.0.0.1", "localhost"].iter().any(|name| host == format!("{name}:{}", self.port))
        };
        if !header(HOST).is_some_and(own) {
            let why = format!("Host: the view is at 127.0.0.1:{} and under no other name", self.port);
            return Err(Refusal(StatusCode::MISDIRECTED_REQUEST, why));
        }
        if header(ORIGIN).is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(own)) {
            return Err(Refusal(StatusCode::FORBIDDEN, "Origin: another page asks".to_owned()));
        }
        if !parts.uri.path().starts_with("/api/") {
            return Ok(());
        }
        let shown = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if bool::from(shown.as_bytes().ct_eq(self.token.reveal().as_bytes())) {
            return Ok(());
        }
        let why = "token: open the link that the command has printed, all of it";
        Err(Refusal(StatusCode::UNAUTHORIZED, why.to_owned()))
    }
}
