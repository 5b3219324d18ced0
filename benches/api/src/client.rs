//! Kubeconfig and a bare HTTP client: one TCP (and TLS) connection per `Conn`, bytes in, bytes out.
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub type Error = Box<dyn std::error::Error>;
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Limit of streams on one HTTP/2 connection that we stay below (servers commonly allow 100).
pub const STREAMS_PER_CONN: usize = 80;

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    value: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(rename = "current-context")]
    current_context: String,
    clusters: Vec<Named<Cluster>>,
    #[serde(default)]
    users: Vec<Named<User>>,
    contexts: Vec<Named<Context>>,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    tls_server_name: Option<String>,
}

#[derive(Deserialize, Default)]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    #[serde(rename = "client-certificate")]
    cert: Option<PathBuf>,
    #[serde(rename = "client-certificate-data")]
    cert_data: Option<String>,
    #[serde(rename = "client-key")]
    key: Option<PathBuf>,
    #[serde(rename = "client-key-data")]
    key_data: Option<String>,
}

fn find<T>(list: Vec<Named<T>>, name: &str) -> Option<T> {
    list.into_iter().find(|n| n.name == name).map(|n| n.value)
}

/// PEM from inline base64 or from a file (relative to the kubeconfig).
fn pem(dir: &Path, data: Option<String>, file: Option<PathBuf>) -> Result<Option<Vec<u8>>> {
    Ok(match (data, file) {
        (Some(d), _) => Some(BASE64_STANDARD.decode(d.trim())?),
        (None, Some(f)) => Some(std::fs::read(dir.join(f))?),
        _ => None,
    })
}

/// Where and how to connect.
pub struct Target {
    host: String,
    port: u16,
    base: String,
    authority: HeaderValue,
    auth: Option<HeaderValue>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    pub h2: bool,
}

impl Target {
    /// `h2`: None = HTTP/2 over TLS, HTTP/1.1 over plain http.
    pub fn load(kubeconfig: &Path, h2: Option<bool>) -> Result<Arc<Self>> {
        let dir = kubeconfig.parent().unwrap_or(Path::new("."));
        let text =
            std::fs::read_to_string(kubeconfig).map_err(|e| format!("{}: {e}", kubeconfig.display()))?;
        let k: Kubeconfig = serde_saphyr::from_str(&text)?;
        let ctx = find(k.contexts, &k.current_context).ok_or("current-context not found")?;
        let cluster = find(k.clusters, &ctx.cluster).ok_or("cluster not found")?;
        let user = find(k.users, &ctx.user).unwrap_or_default();
        let uri: hyper::Uri = cluster.server.trim_end_matches('/').parse()?;
        let https = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or("server URL without host")?.trim_matches(['[', ']']).to_string();
        let h2 = h2.unwrap_or(https);
        let token = match (user.token, user.token_file) {
            (Some(t), _) => Some(t),
            (None, Some(f)) => Some(std::fs::read_to_string(dir.join(f))?.trim().to_string()),
            _ => None,
        };
        let tls = if https {
            let mut roots = RootCertStore::empty();
            let ca = pem(dir, cluster.certificate_authority_data, cluster.certificate_authority)?.ok_or(
                "the cluster needs a certificate-authority (insecure-skip-tls-verify is not supported)",
            )?;
            for c in CertificateDer::pem_slice_iter(&ca) {
                roots.add(c?)?;
            }
            let b = ClientConfig::builder().with_root_certificates(roots);
            let mut cfg = match (pem(dir, user.cert_data, user.cert)?, pem(dir, user.key_data, user.key)?) {
                (Some(c), Some(k)) => {
                    let chain = CertificateDer::pem_slice_iter(&c).collect::<Result<Vec<_>, _>>()?;
                    b.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&k)?)?
                }
                _ => b.with_no_client_auth(),
            };
            cfg.alpn_protocols = vec![if h2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
            let name = cluster.tls_server_name.unwrap_or_else(|| host.clone());
            Some((TlsConnector::from(Arc::new(cfg)), ServerName::try_from(name)?))
        } else {
            None
        };
        let authority = uri.authority().ok_or("server URL without authority")?.as_str();
        Ok(Arc::new(Self {
            port: uri.port_u16().unwrap_or(if https { 443 } else { 80 }),
            base: format!("{}://{}", uri.scheme_str().unwrap_or("http"), authority),
            authority: authority.parse()?,
            auth: token.map(|t| format!("Bearer {t}").parse()).transpose()?,
            host,
            tls,
            h2,
        }))
    }

    pub async fn connect(self: &Arc<Self>) -> Result<Conn> {
        self.connect_with(false).await
    }

    /// `is_small`: with the windows of HTTP/2's specification, 64 KiB for all streams together.
    async fn connect_with(self: &Arc<Self>, is_small: bool) -> Result<Conn> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await?;
        tcp.set_nodelay(true)?;
        let inner = match &self.tls {
            Some((c, name)) => {
                let tls = c.connect(name.clone(), tcp).await?;
                if self.h2 && tls.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err("the server does not offer HTTP/2 (use --http1)".into());
                }
                handshake(self.h2, is_small, TokioIo::new(tls)).await?
            }
            None => handshake(self.h2, is_small, TokioIo::new(tcp)).await?,
        };
        Ok(Conn { target: self.clone(), accept: JSON, inner })
    }

    /// `n` clients: each its own connection with HTTP/1.1, shared connections with HTTP/2.
    pub async fn clients(self: &Arc<Self>, n: usize, h2_conns: usize) -> Result<Vec<Conn>> {
        self.clients_with(n, h2_conns, false).await
    }

    /// As `clients`; `is_small`: what is not read soon fills a connection's window.
    pub async fn clients_with(
        self: &Arc<Self>,
        n: usize,
        h2_conns: usize,
        is_small: bool,
    ) -> Result<Vec<Conn>> {
        let conns = if self.h2 { h2_conns.max(n.div_ceil(STREAMS_PER_CONN)).min(n) } else { n };
        let mut out: Vec<Conn> = Vec::with_capacity(n);
        for i in 0..n {
            out.push(if i < conns { self.connect_with(is_small).await? } else { out[i % conns].share() });
        }
        Ok(out)
    }
}

async fn handshake<T>(h2: bool, is_small: bool, io: TokioIo<T>) -> Result<Inner>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    Ok(if h2 {
        let (stream, all) = if is_small { (65_535, 65_535) } else { (4 << 20, 64 << 20) };
        let (s, conn) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(stream)
            .initial_connection_window_size(all)
            .handshake(io)
            .await?;
        tokio::spawn(conn);
        Inner::H2(s)
    } else {
        let (s, conn) = http1::handshake(io).await?;
        tokio::spawn(conn);
        Inner::H1(s)
    })
}

enum Inner {
    H1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
}

/// One connection (HTTP/1.1), or a handle of a shared one (HTTP/2).
pub struct Conn {
    target: Arc<Target>,
    pub accept: &'static str,
    inner: Inner,
}

pub const JSON: &str = "application/json";
pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
pub const APPLY: &str = "application/apply-patch+yaml";

impl Conn {
    fn share(&self) -> Conn {
        match &self.inner {
            Inner::H2(s) => {
                Conn { target: self.target.clone(), accept: self.accept, inner: Inner::H2(s.clone()) }
            }
            Inner::H1(_) => unreachable!("HTTP/1.1 connections are not shared"),
        }
    }

    /// Sends a request; returns as soon as the response headers are here.
    pub async fn send(
        &mut self,
        m: Method,
        path: &str,
        ctype: &'static str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        let closed = match &self.inner {
            Inner::H1(s) => s.is_closed(),
            Inner::H2(s) => s.is_closed(),
        };
        if closed {
            *self = Conn { accept: self.accept, ..self.target.connect().await? };
        }
        let t = &self.target;
        let uri = if t.h2 { format!("{}{path}", t.base) } else { path.to_string() };
        let mut req = Request::builder().method(m).uri(uri).body(Full::new(body))?;
        let h = req.headers_mut();
        if !t.h2 {
            h.insert(HOST, t.authority.clone());
        }
        if let Some(a) = &t.auth {
            h.insert(AUTHORIZATION, a.clone());
        }
        h.insert(ACCEPT, HeaderValue::from_static(self.accept));
        h.insert(USER_AGENT, HeaderValue::from_static("apibench"));
        if !ctype.is_empty() {
            h.insert(CONTENT_TYPE, HeaderValue::from_static(ctype));
        }
        Ok(match &mut self.inner {
            Inner::H1(s) => {
                s.ready().await?;
                s.send_request(req).await?
            }
            Inner::H2(s) => {
                s.ready().await?;
                s.send_request(req).await?
            }
        })
    }

    /// Sends a request and collects the body: (status, body).
    pub async fn call(
        &mut self,
        m: Method,
        path: &str,
        ctype: &'static str,
        body: Bytes,
    ) -> Result<(u16, Bytes)> {
        let r = self.send(m, path, ctype, body).await?;
        let status = r.status().as_u16();
        Ok((status, r.into_body().collect().await?.to_bytes()))
    }

    /// As `call`, but any status other than 2xx is an error.
    pub async fn ok(
        &mut self,
        m: Method,
        path: &str,
        ctype: &'static str,
        body: impl Into<Bytes>,
    ) -> Result<Bytes> {
        let what = format!("{m} {path}");
        let (status, b) = self.call(m, path, ctype, body.into()).await?;
        if !(200..300).contains(&status) {
            return Err(
                format!("{what}: {status} {}", String::from_utf8_lossy(&b[..b.len().min(300)])).into()
            );
        }
        Ok(b)
    }

    pub async fn get(&mut self, path: &str) -> Result<Bytes> {
        self.ok(Method::GET, path, "", "").await
    }

    /// GET whose body is counted and thrown away: (bytes, seconds to the first byte of the body).
    pub async fn drain(&mut self, path: &str) -> Result<(usize, f64)> {
        let t = std::time::Instant::now();
        let r = self.send(Method::GET, path, "", Bytes::new()).await?;
        if !r.status().is_success() {
            return Err(format!("GET {path}: {}", r.status()).into());
        }
        let (mut body, mut n, mut first) = (r.into_body(), 0, 0.0);
        while let Some(f) = body.frame().await {
            if let Ok(d) = f?.into_data() {
                if n == 0 {
                    first = t.elapsed().as_secs_f64();
                }
                n += d.len();
            }
        }
        Ok((n, first))
    }
}

/// A watch that goes on from the last resourceVersion when the server ends it.
pub struct Watch {
    conn: Conn,
    /// up to `resourceVersion=`
    url: String,
    rv: String,
    body: Incoming,
    buf: Vec<u8>,
    pos: usize,
    pub reopened: usize,
}

impl Watch {
    /// Watches the collection `path` from `rv` on; `selector`: empty or `&key=value...`.
    pub async fn open(mut conn: Conn, path: &str, selector: &str, rv: &str) -> Result<Self> {
        let url = format!("{path}?watch=1{selector}&resourceVersion=");
        let body = Self::request(&mut conn, &url, rv).await?;
        Ok(Self { conn, url, rv: rv.into(), body, buf: Vec::new(), pos: 0, reopened: 0 })
    }

    /// As `open`, from now on.
    pub async fn from_now(mut conn: Conn, path: &str, selector: &str) -> Result<Self> {
        let rv = list_rv(&conn.get(&format!("{path}?limit=1{selector}")).await?)?;
        Self::open(conn, path, selector, &rv).await
    }

    async fn request(conn: &mut Conn, url: &str, rv: &str) -> Result<Incoming> {
        let r = conn.send(Method::GET, &format!("{url}{rv}"), "", Bytes::new()).await?;
        if !r.status().is_success() {
            return Err(format!("watch {url}{rv}: {}", r.status()).into());
        }
        Ok(r.into_body())
    }

    /// The next event's JSON (one line).
    pub async fn next(&mut self) -> Result<&[u8]> {
        let mut scan = self.pos;
        loop {
            if let Some(i) = memchr::memchr(b'\n', &self.buf[scan..]) {
                let (start, end) = (self.pos, scan + i);
                self.pos = end + 1;
                let line = &self.buf[start..end];
                if memchr::memmem::find(&line[..line.len().min(32)], b"\"ERROR\"").is_some() {
                    return Err(String::from_utf8_lossy(line).into());
                }
                if let Some(v) = field(line, RV) {
                    self.rv.clear();
                    self.rv.push_str(v);
                }
                return Ok(&self.buf[start..end]);
            }
            self.buf.drain(..self.pos);
            self.pos = 0;
            scan = self.buf.len();
            match self.body.frame().await {
                Some(Ok(f)) => {
                    if let Ok(d) = f.into_data() {
                        self.buf.extend_from_slice(&d);
                    }
                }
                _ => {
                    self.buf.clear();
                    scan = 0;
                    self.body = Self::request(&mut self.conn, &self.url, &self.rv).await?;
                    self.reopened += 1;
                }
            }
        }
    }
}

/// The text after `key` up to the next quote: `field(b, b"\"resourceVersion\":\"")`. No parsing of the rest.
pub fn field<'a>(json: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let start = memchr::memmem::find(json, key)? + key.len();
    let len = memchr::memchr(b'"', &json[start..])?;
    std::str::from_utf8(&json[start..start + len]).ok()
}

pub const RV: &[u8] = b"\"resourceVersion\":\"";

/// The resourceVersion of a list (wherever its metadata stands in the body).
pub fn list_rv(body: &[u8]) -> Result<String> {
    #[derive(Deserialize)]
    struct List {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: String,
    }
    Ok(serde_json::from_slice::<List>(body)?.metadata.resource_version)
}
