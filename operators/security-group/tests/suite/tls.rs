//! The client over sockets: HTTP/1.1, TLS, and whose certificates are good.

use std::{net::Ipv4Addr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kubewright::World;
use kubewright_security_group::cloud::{CloudError, Internet, Neutron, Session};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::fake::Fake;

/// Beyond 6: a cloud whose certificate only its own authority vouches for.
#[tokio::test]
async fn a_cloud_is_trusted_by_its_own_authority_and_by_no_other() {
    let (cloud, ca) = serve().await;
    let mut access = cloud.access("demo");
    let stranger = Session::new(access.clone(), &Internet).expect("a session");
    let refused = stranger.project().await.expect_err("nobody vouches for it");
    assert!(matches!(&refused, CloudError::Unreachable(why) if why.contains("UnknownIssuer")), "{refused}");

    access.trust.authorities = Some(ca);
    let session = Arc::new(Session::new(access.clone(), &Internet).expect("a session"));
    let neutron = Neutron::new(session);
    let made = neutron.create_group("over TLS", "a group").await.expect("made");
    assert_eq!(neutron.groups_named("over TLS").await.expect("a list")[0].id, made.id);

    access.trust.authorities = Some("no certificate".to_owned());
    let error = Session::new(access, &Internet).expect_err("there is none").to_string();
    assert_eq!(error, "cacert: there is no certificate in it");
}

/// Serves the fake over TLS; gives it and the certificate of its authority.
async fn serve() -> (Fake, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a certificate and its key");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let fake = Fake::at(&format!("https://localhost:{port}"), &World::simulated(3));
    let (served, acceptor) = (fake.clone(), TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (fake, acceptor) = (served.clone(), acceptor.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(socket).await else { return };
                let answer = service_fn(move |request: http::Request<Incoming>| {
                    let fake = fake.clone();
                    async move {
                        let (parts, body) = request.into_parts();
                        let body: Bytes = body.collect().await?.to_bytes();
                        Ok::<_, hyper::Error>(
                            fake.answer(&http::Request::from_parts(parts, body)).map(Full::new),
                        )
                    }
                });
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    (fake, certified.cert.pem())
}
