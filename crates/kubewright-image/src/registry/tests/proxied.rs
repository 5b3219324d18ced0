//! Registries that only a proxy knows.

use std::sync::{Arc, Mutex};

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper_util::client::proxy::matcher::Matcher;
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring::default_provider};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::{
    super::{http::Http, proxy::Proxies},
    *,
};

/// A name that no server of names has.
const REGISTRY: &str = "registry.invalid:5000";
const SECRET: &str = "somebody:open-sesame";

/// A proxy that leads to one registry, whoever is asked for. To those who want a tunnel it plays the registry with TLS, too.
struct Proxy {
    address: String,
    /// The first lines of what it was asked.
    asked: Arc<Mutex<Vec<String>>>,
    authority: RootCertStore,
}

impl Proxy {
    async fn before(registry: &Fake) -> Self {
        let key =
            rcgen::generate_simple_self_signed(vec!["registry.invalid".to_owned()]).expect("a certificate");
        let mut authority = RootCertStore::empty();
        authority.add(key.cert.der().clone()).expect("an authority");
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], key.signing_key.into())
            .expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (tls, to, lines) =
            (TlsAcceptor::from(Arc::new(config)), registry.address.clone(), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, to.clone(), tls.clone(), Arc::clone(&lines)));
            }
        });
        Self { address, asked, authority }
    }

    /// A client that knows it by this name and password, and the registry's authority unless it is to do without TLS.
    fn client(&self, secret: &str, plain_http: bool) -> Client {
        let proxy = format!("http://{secret}@{}", self.address);
        let matcher = Matcher::builder().https(proxy.clone()).http(proxy).build();
        let authority = if plain_http { RootCertStore::empty() } else { self.authority.clone() };
        Client { http: through(matcher, authority), credentials: Credentials::none(), plain_http }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn through(proxies: Matcher, authority: RootCertStore) -> Http {
    let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let tls = tls.with_safe_default_protocol_versions().expect("versions");
    Http::with(Proxies::of(proxies), tls.with_root_certificates(authority).with_no_client_auth())
}

/// Passes on what one connection says, once it has said who it is.
async fn pass(
    mut stream: TcpStream,
    to: String,
    tls: TlsAcceptor,
    asked: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let line = text.lines().next().unwrap_or_default().to_owned();
    asked.lock().expect("no panic").push(line.clone());
    let mut registry = TcpStream::connect(to).await?;
    let known = STANDARD.encode(SECRET);
    if !text.to_lowercase().contains(&format!("proxy-authorization: basic {known}").to_lowercase()) {
        return stream
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            .await;
    }
    if line.starts_with("CONNECT ") {
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        let mut stream = tls.accept(stream).await?;
        copy_bidirectional(&mut stream, &mut registry).await?;
    } else {
        registry.write_all(&head).await?;
        copy_bidirectional(&mut stream, &mut registry).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_registry_is_pushed_to_and_pulled_from_through_a_tunnel_of_the_proxy() {
    let (image, fake) = (Pushed::new("registry-tunnel", 1000), Fake::with_passwords().await);
    let proxy = Proxy::before(&fake).await;
    let to = name(&format!("{REGISTRY}/team/app:v1"));
    let mut client = proxy.client(SECRET, false);
    client.credentials = super::client(&image.folder, REGISTRY, fake::PASSWORD).credentials;
    image.push(&client, &to).await.expect("pushed");
    let loaded = image.pull(&client, &to).await.expect("pulled");
    assert_eq!(loaded.image.repo_digests, [to.by_digest(image.manifest)]);
    let asked = proxy.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|line| line == "CONNECT registry.invalid:5000 HTTP/1.1"),
        "{asked:?}"
    );
}

/// Without TLS the proxy reads each request, and is told for whom it is.
#[tokio::test]
async fn a_registry_without_tls_is_asked_through_the_proxy() {
    let (image, fake) = (Pushed::new("registry-proxy", 1000), Fake::start().await);
    let proxy = Proxy::before(&fake).await;
    let to = name(&format!("{REGISTRY}/team/app:v1"));
    let client = proxy.client(SECRET, true);
    image.push(&client, &to).await.expect("pushed");
    image.pull(&client, &to).await.expect("pulled");
    let asked = proxy.asked();
    let is_plain = |line: &&String| line.contains(" http://registry.invalid:5000/v2/");
    assert!(asked.iter().filter(is_plain).count() > 0 && fake.count("PUT") > 0, "{asked:?}");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_and_so_is_one_that_nobody_can_speak_to() {
    let (image, fake) = (Pushed::new("registry-proxy-refuses", 10), Fake::start().await);
    let proxy = Proxy::before(&fake).await;
    let to = name(&format!("{REGISTRY}/app:v1"));
    let refused = image.push(&proxy.client("somebody:else", false), &to).await.expect_err("407");
    assert_eq!(
        refused,
        format!(
            "cannot reach the registry {REGISTRY}: the proxy {}: proxy authorization required",
            proxy.address
        )
    );
    assert_eq!(fake.count("GET"), 0);
    let mut client = proxy.client(SECRET, false);
    let matcher = Matcher::builder().https("socks5://proxy.invalid:1080").build();
    client.http = through(matcher, RootCertStore::empty());
    let refused = image.push(&client, &to).await.expect_err("socks");
    assert!(refused.contains("the proxy proxy.invalid:1080 is to be spoken to in another way"), "{refused}");
}

#[tokio::test]
async fn a_registry_on_this_machine_is_not_asked_through_a_proxy() {
    let (image, fake) = (Pushed::new("registry-no-proxy", 10), Fake::start().await);
    let proxy = Proxy::before(&fake).await;
    let to = name(&format!("{}/app:v1", fake.address));
    image.push(&proxy.client(SECRET, false), &to).await.expect("pushed");
    assert!(proxy.asked().is_empty());
}
