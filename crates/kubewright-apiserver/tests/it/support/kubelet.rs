//! A kubelet whose containers know a few commands, and whose pods have a few ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use kubewright_apiserver::kubelet::{Duplex, Kubelet, LogOptions, Refusal, Session, Streams, Target};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;

#[derive(Debug, Default)]
pub struct Fake {
    /// Commands that have neither ended nor been ended.
    pub running: Arc<AtomicUsize>,
    /// What was asked of it, in words.
    pub asked: Mutex<Vec<String>>,
}

/// A command that runs, until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The process's ends of its streams.
struct Process {
    stdin: DuplexStream,
    stdout: DuplexStream,
    stderr: DuplexStream,
    sizes: mpsc::Receiver<kubewright_apiserver::kubelet::TerminalSize>,
}

async fn run(command: Vec<String>, process: Process) -> Result<i32, String> {
    let Process { mut stdin, mut stdout, mut stderr, mut sizes } = process;
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words[..] {
        ["echo", ref words @ ..] => {
            let _ = stdout.write_all(format!("{}\n", words.join(" ")).as_bytes()).await;
            Ok(0)
        }
        ["complain", ref words @ ..] => {
            let _ = stderr.write_all(format!("{}\n", words.join(" ")).as_bytes()).await;
            Ok(1)
        }
        ["cat"] => {
            let _ = tokio::io::copy(&mut stdin, &mut stdout).await;
            Ok(0)
        }
        ["count"] => {
            let count = tokio::io::copy(&mut stdin, &mut tokio::io::sink()).await.unwrap_or_default();
            let _ = stdout.write_all(format!("{count}\n").as_bytes()).await;
            Ok(0)
        }
        ["flood", bytes] => {
            let bytes = bytes.parse().unwrap_or_default();
            let _ = tokio::io::copy(&mut tokio::io::repeat(b'x').take(bytes), &mut stdout).await;
            Ok(0)
        }
        ["exit", code] => code.parse().map_err(|_| "no code".to_owned()),
        ["sizes"] => {
            while let Some(size) = sizes.recv().await {
                let _ = stdout.write_all(format!("{}x{}\n", size.width, size.height).as_bytes()).await;
                if size.width == 1 {
                    break;
                }
            }
            Ok(0)
        }
        ["sleep"] => std::future::pending().await,
        _ => Err(format!("exec: {:?}: executable file not found in $PATH", words.first())),
    }
}

impl Fake {
    fn session(&self, command: Vec<String>) -> Session {
        let (in_near, stdin) = duplex(1 << 16);
        let (out_near, stdout) = duplex(1 << 16);
        let (err_near, stderr) = duplex(1 << 16);
        let (resize, sizes) = mpsc::channel(1);
        let running = Running::new(&self.running);
        let process = tokio::spawn(run(command, Process { stdin, stdout, stderr, sizes }));
        let ending = AbortOnDrop(process);
        Session {
            stdin: Some(Box::new(in_near)),
            stdout: Some(Box::new(out_near)),
            stderr: Some(Box::new(err_near)),
            resize: Some(resize),
            exit: async move {
                let _running = running;
                let mut ending = ending;
                (&mut ending.0).await.map_err(|error| error.to_string())?
            }
            .boxed(),
        }
    }

    fn note(&self, what: String) {
        self.asked.lock().push(what);
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<Result<i32, String>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Kubelet for Fake {
    fn logs(
        &self,
        target: Target,
        options: LogOptions,
    ) -> BoxFuture<'_, Result<BoxStream<'static, std::io::Result<Bytes>>, Refusal>> {
        self.note(format!("logs {}/{} {} {options:?}", target.namespace, target.pod, target.container));
        let Target { pod, container, .. } = target;
        let logs = match (container.as_str(), options.previous) {
            ("late", _) => Err(Refusal::BadRequest(format!(
                "container {container:?} in pod {pod:?} is waiting to start: ContainerCreating"
            ))),
            ("lost", _) => Err(Refusal::NotFound(format!("pod {pod:?} does not exist"))),
            ("broken", _) => Err(Refusal::Failed("the disk is gone".to_owned())),
            (_, true) => Err(Refusal::BadRequest(format!(
                "previous terminated container {container:?} in pod {pod:?} not found"
            ))),
            _ => {
                let lines =
                    stream::iter([Ok(Bytes::from_static(b"one\n")), Ok(Bytes::from_static(b"two\n"))]);
                Ok(if options.follow { lines.chain(stream::pending()).boxed() } else { lines.boxed() })
            }
        };
        async { logs }.boxed()
    }

    fn exec(
        &self,
        target: Target,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'_, Result<Session, Refusal>> {
        self.note(format!("exec {} {command:?} {streams:?}", target.container));
        let session = match command.first().map(String::as_str) {
            Some("refused") => Err(Refusal::Failed(format!("container not found ({:?})", target.container))),
            _ => Ok(self.session(command)),
        };
        async { session }.boxed()
    }

    fn attach(&self, target: Target, streams: Streams) -> BoxFuture<'_, Result<Session, Refusal>> {
        self.note(format!("attach {} {streams:?}", target.container));
        let session = self.session(vec!["cat".to_owned()]);
        async { Ok(session) }.boxed()
    }

    fn port_forward(&self, target: Target, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, Refusal>> {
        self.note(format!("port {} {port}", target.pod));
        let (near, mut far) = duplex(1 << 16);
        match port {
            7 => {
                tokio::spawn(async move {
                    let (mut reader, mut writer) = tokio::io::split(far);
                    let _ = tokio::io::copy(&mut reader, &mut writer).await;
                    let _ = writer.shutdown().await;
                });
            }
            80 | 8080 => {
                let service =
                    hyper::service::service_fn(async |request: http::Request<_>| answer(request).await);
                let io = hyper_util::rt::TokioIo::new(far);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
            }
            443 => {
                tokio::spawn(serve_tls(far));
            }
            19 => {
                tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut tokio::io::repeat(b'x'), &mut far).await;
                });
            }
            _ => {
                let why = format!("dial tcp4 127.0.0.1:{port}: connect: connection refused");
                return async { Err(Refusal::Failed(why)) }.boxed();
            }
        }
        async { Ok(Box::new(near) as Box<dyn Duplex>) }.boxed()
    }
}

/// A small web server: it tells what it was asked.
async fn answer(
    request: http::Request<hyper::body::Incoming>,
) -> Result<http::Response<http_body_util::Full<Bytes>>, std::convert::Infallible> {
    use http_body_util::BodyExt;

    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut response = http::Response::new(http_body_util::Full::default());
    if parts.uri.path() == "/away" {
        *response.status_mut() = http::StatusCode::FOUND;
        response.headers_mut().insert("location", http::HeaderValue::from_static("/home?a=b"));
    }
    if let path @ ("/page" | "/long") = parts.uri.path() {
        let headers = response.headers_mut();
        headers.insert("content-type", http::HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert("access-control-allow-origin", http::HeaderValue::from_static("*"));
        let text = "x".repeat(if path == "/long" { 200 * 1024 } else { 0 });
        *response.body_mut() = http_body_util::Full::from(format!("<a href=\"/x\">/x</a>{text}"));
        return Ok(response);
    }
    let text = format!(
        "{} {} host={} via={} body={}\n",
        parts.method,
        parts.uri,
        parts.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default(),
        parts.headers.get("x-forwarded-uri").and_then(|uri| uri.to_str().ok()).unwrap_or_default(),
        String::from_utf8_lossy(&body)
    );
    *response.body_mut() = http_body_util::Full::from(text);
    Ok(response)
}

/// The same behind TLS, with a certificate that nobody vouches for.
async fn serve_tls(stream: DuplexStream) {
    let own = rcgen::generate_simple_self_signed(["elsewhere".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a pair");
    let Ok(stream) = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(stream).await else { return };
    let service = hyper::service::service_fn(async |request: http::Request<_>| answer(request).await);
    let io = hyper_util::rt::TokioIo::new(stream);
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
}
