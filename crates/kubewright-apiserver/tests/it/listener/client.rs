//! Clients of every kind, well-behaved ones first.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewright_serve::authority::Credentials;
use rustls::client::WantsClientCert;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::server::Server;

pub(crate) type Http1 = http1::SendRequest<Empty<Bytes>>;
pub(crate) type Http2 = http2::SendRequest<Empty<Bytes>>;

impl Server {
    /// A TLS connection on which the client offers a protocol (if not an empty one), and a certificate if it has one.
    pub(crate) async fn tls(
        &self,
        alpn: &str,
        shown: Option<&Credentials>,
    ) -> io::Result<TlsStream<TcpStream>> {
        self.tls_on(TcpStream::connect(self.address).await?, alpn, shown).await
    }

    /// The same on a connection that is there already.
    pub(crate) async fn tls_on(
        &self,
        stream: TcpStream,
        alpn: &str,
        shown: Option<&Credentials>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let config = self.trusting();
        let mut config = match shown {
            Some(shown) => config
                .with_client_auth_cert(vec![shown.certificate_der().clone()], shown.key_der().into())
                .unwrap(),
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = [alpn].into_iter().filter(|alpn| !alpn.is_empty()).map(Into::into).collect();
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }

    /// A TLS connection on which the client shows a certificate and signs with this key, whoever's it is.
    pub(crate) async fn tls_with(
        &self,
        certificate: &CertificateDer<'static>,
        key: PrivatePkcs8KeyDer<'static>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let key = rustls::crypto::ring::sign::any_ecdsa_type(&key.into()).unwrap();
        let shown = CertifiedKey::new(vec![certificate.clone()], key);
        let resolver = Arc::new(SingleCertAndKey::from(shown));
        let config = Arc::new(self.trusting().with_client_cert_resolver(resolver));
        let stream = TcpStream::connect(self.address).await?;
        TlsConnector::from(config).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }

    /// The settings of a client that knows the server's authority.
    fn trusting(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.ca_der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
    }

    pub(crate) async fn http1(&self) -> Http1 {
        http1_on(self.tls("http/1.1", None).await.unwrap()).await
    }

    pub(crate) async fn http2(&self) -> Http2 {
        http2_on(self.tls("h2", None).await.unwrap()).await
    }
}

pub(crate) async fn http1_on(stream: TlsStream<TcpStream>) -> Http1 {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

pub(crate) async fn http2_on(stream: TlsStream<TcpStream>) -> Http2 {
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

pub(crate) fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("https://localhost{path}")).header("host", "localhost").body(Empty::new()).unwrap()
}

pub(crate) async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.into()).unwrap()
}
