//! The server under test: a listener around a small service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use kubewright_apiserver::http::listener::{self, Limits, Listener, RemoteAddress, Visitor};
use kubewright_identity::authn::PeerCertificate;
use kubewright_identity::trust::Bundle;
use kubewright_serve::authority::Authority;
use kubewright_serve::tls::{ServerTls, ServingCertificate};
use kubewright_world::World;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A server that is running.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    pub(crate) shutdown: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
    pub(crate) service: Service,
    /// The paths of the requests that have ended, answered or not.
    pub(crate) ended: mpsc::UnboundedReceiver<String>,
}

/// A service with a path for each thing that a request can do. It knows who asks, but for who asks for `/stranger`.
#[derive(Clone)]
pub(crate) struct Service {
    shutdown: CancellationToken,
    ended: mpsc::UnboundedSender<String>,
    /// Rings when a request to `/wait` or `/hang` has arrived.
    pub(crate) arrived: Arc<Notify>,
    /// Lets requests to `/wait` go on.
    pub(crate) go_on: CancellationToken,
    /// The bytes that `/flood` has produced.
    pub(crate) flooded: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(&World::real(), Limits::default()).await
    }

    pub(crate) async fn start_with(world: &World, limits: Limits) -> Self {
        Self::start_around(world, limits, |service| service).await
    }

    /// A listener around what is made of the service.
    pub(crate) async fn start_around<S: listener::Service>(
        world: &World,
        limits: Limits,
        make: impl FnOnce(Service) -> S,
    ) -> Self {
        let authority = Authority::new(world).unwrap();
        let serving: ServingCertificate =
            authority.serving_certificate(&["localhost", "127.0.0.1"]).unwrap().into();
        let clients = Bundle::of_der([authority.ca_der().clone()]).unwrap();
        let tls = ServerTls::showing(serving.certified().unwrap()).http_2().without_resumption();
        let tls = tls.asking_clients(clients.subjects()).clock(world.clock).build().unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr();
        let shutdown = CancellationToken::new();
        let (sender, ended) = mpsc::unbounded_channel();
        let service = Service {
            shutdown: shutdown.clone(),
            ended: sender,
            arrived: Arc::default(),
            go_on: CancellationToken::new(),
            flooded: Arc::default(),
        };
        let serving = tokio::spawn(listener.serve(make(service.clone()), tls, limits, shutdown.clone()));
        Self { address, authority, shutdown, serving, service, ended }
    }
}

/// Says that a request has ended, when it is dropped.
struct Ending(String, mpsc::UnboundedSender<String>);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.1.send(std::mem::take(&mut self.0));
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl tower::Service<Request<Incoming>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let service = self.clone();
        if request.uri().path() != "/stranger" {
            request.extensions().get::<Visitor>().unwrap().identified();
        }
        Box::pin(async move { Ok(Response::new(service.answer(&request).await)) })
    }
}

impl Service {
    async fn answer(self, request: &Request<Incoming>) -> Body {
        let ending = Ending(request.uri().path().to_owned(), self.ended.clone());
        match request.uri().path() {
            "/who" | "/stranger" => text(format!("{:?} {}", request.version(), who(request))),
            "/watch" => {
                let lines = stream::once(async { Bytes::from("ADDED\n") });
                let end = async move {
                    self.shutdown.cancelled().await;
                    drop(ending);
                };
                body(lines.chain(stream::once(end).filter_map(|()| async { None })))
            }
            "/wait" => {
                self.arrived.notify_one();
                self.go_on.cancelled().await;
                text("went on".to_owned())
            }
            "/hang" => {
                self.arrived.notify_one();
                std::future::pending().await
            }
            "/flood" => body(stream::repeat(Bytes::from_static(&[b'x'; 4096])).inspect(move |piece| {
                let _ = &ending;
                self.flooded.fetch_add(piece.len(), Ordering::Relaxed);
            })),
            "/panic" => panic!("a request that panics"),
            other => text(format!("{} has nothing at {other}", StatusCode::NOT_FOUND)),
        }
    }
}

fn text(text: String) -> Body {
    Full::from(text).boxed_unsync()
}

fn body(pieces: impl futures::Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// What the service can tell of its client.
fn who(request: &Request<Incoming>) -> String {
    let RemoteAddress(address) = request.extensions().get().unwrap();
    let name = request.extensions().get().map_or("nobody".to_owned(), |shown: &PeerCertificate| {
        let (_, certificate) = X509Certificate::from_der(shown.der()).unwrap();
        certificate.subject().to_string()
    });
    format!("{name} from {address}")
}
