//! Requests over the network: HTTP/1.1, and TLS by rustls.

use std::{error::Error, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::{Network, Transport, Trust, Unreachable};

/// The longest answer that is read.
const LONGEST: usize = 64 << 20;

/// The network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Internet;

impl Network for Internet {
    fn transport(&self, trust: &Trust) -> Result<Arc<dyn Transport>, Unreachable> {
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls(trust)?).https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Ok(Arc::new(Connections(client)))
    }
}

struct Connections(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Transport for Connections {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Unreachable>> {
        Box::pin(async move {
            let answer = self.0.request(request.map(Full::new)).await.map_err(|error| describe(&error))?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LONGEST).collect().await.map_err(|error| describe(&*error))?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        })
    }
}

/// What is at the bottom of an error, which says more than what is on top.
fn describe(error: &(dyn Error + 'static)) -> Unreachable {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    Unreachable(deepest.to_string())
}

fn tls(trust: &Trust) -> Result<ClientConfig, Unreachable> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| describe(&error))?;
    let builder = match &trust.authorities {
        Some(pem) => builder.with_root_certificates(bundle(pem)?),
        // That the machine has none is no error yet: not every cloud has TLS.
        None => match builder.clone().with_native_roots() {
            Ok(builder) => builder,
            Err(_) => builder.with_root_certificates(RootCertStore::empty()),
        },
    };
    let Some((cert, key)) = &trust.client else { return Ok(builder.with_no_client_auth()) };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(cert.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| Unreachable("the client certificate is no PEM".to_owned()))?;
    // What the parser says could quote the key.
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| Unreachable("the client's key is no PEM".to_owned()))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| Unreachable(format!("the client certificate and its key: {error}")))
}

fn bundle(pem: &str) -> Result<RootCertStore, Unreachable> {
    let bad = |what: String| Unreachable(format!("cacert: {what}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}
