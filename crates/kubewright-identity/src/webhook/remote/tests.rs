use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use kubewright_serve::authority::Authority;
use kubewright_serve::tls::{ServerTls, ServingCertificate};
use kubewright_world::World;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::super::Local;
use super::*;
use crate::trust::Bundle;

fn no_files(path: &str) -> io::Result<Vec<u8>> {
    Err(io::Error::new(io::ErrorKind::NotFound, format!("open {path}: no such file or directory")))
}

fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\npreferences: {{}}\n\
         clusters: [{{name: hook, cluster: {{{cluster}}}}}]\n\
         users: [{{name: us, user: {{{user}}}}}]\n\
         contexts: [{{name: here, context: {{cluster: hook, user: us, namespace: x}}}}]\n"
    )
}

fn refused(text: &str) -> String {
    Remote::of_kubeconfig(text, &no_files).unwrap_err().to_string()
}

/// Remembers what it was asked, and answers with these codes one after the other, then with 200.
struct Recorder {
    asked: Mutex<Vec<(String, Option<String>)>>,
    codes: Mutex<Vec<u16>>,
}

impl Recorder {
    fn new(codes: &[u16]) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), codes: Mutex::new(codes.to_vec()) })
    }
}

impl Local for Recorder {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let authorization = request.headers().get("authorization");
        let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        self.asked.lock().unwrap().push((request.uri().to_string(), authorization));
        let code = self.codes.lock().unwrap().pop().unwrap_or(200);
        let answer = Response::builder().status(code).body(Bytes::from_static(b"{}")).unwrap();
        Some(async move { answer }.boxed())
    }
}

async fn post(remote: &Remote, local: &Arc<Recorder>) -> Result<Bytes, Failure> {
    let client = Client::new(World::simulated(1).clock);
    client.attach(Arc::clone(local) as Arc<dyn Local>);
    remote.post(&client, Bytes::from_static(b"{}"), Duration::from_secs(30)).await
}

#[tokio::test(start_paused = true)]
async fn a_server_is_called_at_its_path_with_what_its_user_shows() {
    for (user, shown) in [
        ("", None),
        ("token: abc", Some("Bearer abc")),
        ("username: a, password: b", Some("Basic YTpi")),
        ("token: abc, username: a", Some("Bearer abc")),
    ] {
        let text = kubeconfig("server: 'https://hook.example.com:8443/authorize'", user);
        let remote = Remote::of_kubeconfig(&text, &no_files).unwrap();
        let local = Recorder::new(&[]);
        post(&remote, &local).await.unwrap();
        let url = "https://hook.example.com:8443/authorize?timeout=30s".to_owned();
        assert_eq!(*local.asked.lock().unwrap(), [(url, shown.map(str::to_owned))]);
    }
}

#[tokio::test(start_paused = true)]
async fn files_are_read_when_the_kubeconfig_is() {
    let files = BTreeMap::from([("/token", b"from-a-file\n".to_vec())]);
    let read = |path: &str| files.get(path).cloned().map_or_else(|| no_files(path), Ok);
    let remote =
        Remote::of_kubeconfig(&kubeconfig("server: 'https://a'", "tokenFile: /token"), &read).unwrap();
    let local = Recorder::new(&[]);
    post(&remote, &local).await.unwrap();
    assert_eq!(local.asked.lock().unwrap()[0].1.as_deref(), Some("Bearer from-a-file"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_asked_again_and_one_that_refuses_is_not() {
    let remote = Remote::of_kubeconfig(&kubeconfig("server: 'https://a'", ""), &no_files).unwrap();
    let start = tokio::time::Instant::now();
    let local = Recorder::new(&[429, 500]);
    post(&remote, &local).await.unwrap();
    assert_eq!(local.asked.lock().unwrap().len(), 3);
    assert_eq!(start.elapsed(), Duration::from_millis(500 + 750));
    let local = Recorder::new(&[500; 9]);
    assert!(matches!(post(&remote, &local).await, Err(Failure::Later(_))));
    assert_eq!(local.asked.lock().unwrap().len(), 5);
    let local = Recorder::new(&[403]);
    assert!(matches!(post(&remote, &local).await, Err(Failure::Call(_))));
    assert_eq!(local.asked.lock().unwrap().len(), 1);
}

#[test]
fn a_broken_kubeconfig_says_what_is_wrong_in_one_line() {
    for (text, why) in [
        ("a: [", "cannot read the kubeconfig: "),
        ("{}", "invalid configuration: context was not found for specified context: "),
        ("current-context: x", "invalid configuration: context was not found for specified context: x"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]",
            "invalid configuration: user \"u\" was not found for context \"x\"",
        ),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]",
            "invalid configuration: cluster \"c\" was not found for context \"x\"",
        ),
        (&kubeconfig("", ""), "invalid configuration: no server found for cluster \"hook\""),
        (
            &kubeconfig("server: 'https://a', certificate-authority: /ca.pem", ""),
            "invalid configuration: unable to read certificate-authority /ca.pem for hook due to open /ca.pem: no such file or directory",
        ),
        (
            &kubeconfig(
                "server: 'https://a', insecure-skip-tls-verify: true, certificate-authority-data: eA==",
                "",
            ),
            "invalid configuration: specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            &kubeconfig("server: 'https://a'", "client-certificate-data: eA=="),
            "invalid configuration: both client-certificate and client-key must be specified for us",
        ),
        (
            &kubeconfig("server: 'https://a'", "client-certificate-data: eA==, client-key-data: eA=="),
            "invalid configuration: tls: failed to find any PEM data in certificate input",
        ),
        (
            &kubeconfig("server: 'https://a'", "exec: {command: x}"),
            "users[\"us\"]: exec is not supported for webhooks here; use a client certificate, a token or a password",
        ),
    ] {
        let found = refused(text);
        assert!(found.starts_with(why), "{found}");
    }
}

/// A real socket: the server asks for a certificate, and tells whom it was shown.
#[tokio::test]
async fn a_server_is_shown_the_certificate_of_the_kubeconfig_and_known_by_its_authority() {
    let world = World::real();
    let authority = Authority::new(&world).unwrap();
    let stranger = Authority::new(&world).unwrap();
    let clients = Bundle::of_der([authority.ca_der().clone()]).unwrap();
    let serving: ServingCertificate = authority.serving_certificate(&["localhost"]).unwrap().into();
    let tls = ServerTls::showing(serving.certified().unwrap()).asking_clients(clients.subjects());
    let tls = TlsAcceptor::from(tls.clock(world.clock).http_2().without_resumption().build().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = authority.client_certificate("hook-caller", &[], Duration::from_secs(3600)).unwrap();
    let encode = |text: String| STANDARD.encode(text);
    let user = format!(
        "client-certificate-data: {}, client-key-data: {}",
        encode(client.certificate_pem()),
        encode(client.key_pem())
    );
    // (how the server is known, whether it is then shown the client's certificate)
    for (known_by, talks) in [
        (
            format!("tls-server-name: localhost, certificate-authority-data: {}", encode(authority.ca_pem())),
            true,
        ),
        (format!("certificate-authority-data: {}", encode(authority.ca_pem())), false),
        (
            format!("tls-server-name: localhost, certificate-authority-data: {}", encode(stranger.ca_pem())),
            false,
        ),
        ("insecure-skip-tls-verify: true".to_owned(), true),
    ] {
        let text = kubeconfig(&format!("server: 'https://127.0.0.1:{port}', {known_by}"), &user);
        let remote = Remote::of_kubeconfig(&text, &no_files).unwrap();
        let caller = Client::new(world.clock);
        let call = remote.post(&caller, Bytes::from_static(b"{}"), Duration::from_secs(5));
        let accept = async {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = tls.accept(stream).await.ok()?;
            stream.get_ref().1.peer_certificates().map(|chain| chain[0].clone())
        };
        let (_, shown) = tokio::join!(call, accept);
        assert_eq!(shown.as_ref(), talks.then_some(client.certificate_der()), "{known_by}");
    }
}
