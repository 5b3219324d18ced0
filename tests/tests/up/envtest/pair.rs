//! The two programs, started the way envtest starts them: with its flags, its files, in process groups of their own.

use std::{
    env, fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{Client, Config, config::AuthInfo};
use kubewright_cluster::{Endpoint, TokenKey};
use kubewright_tests::needed;
use kubewright_world::World;

/// How long something may take that takes milliseconds; this is for busy machines.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// A folder of its own with links of both names, removed at its end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(test: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("kubewright-envtest-{test}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        for name in ["etcd", "kube-apiserver"] {
            symlink(needed("KUBEWRIGHT"), path.join(name)).expect("a link");
        }
        Self(path)
    }

    /// Starts one of the two.
    pub(super) fn spawn(
        &self,
        name: &str,
        arguments: &[String],
        adjust: impl FnOnce(&mut Command),
    ) -> Running {
        let mut command = program(self, name);
        command.args(arguments).stderr(Stdio::null()).process_group(0);
        adjust(&mut command);
        Running { process: command.spawn().expect("it starts") }
    }

    /// The names of all files in it, sorted.
    pub(super) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let inside = path.strip_prefix(&self.0).expect("it is inside");
                    files.push(inside.display().to_string());
                }
            }
        }
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of the two by its name, in an environment without our settings.
pub(super) fn program(folder: &Folder, name: &str) -> Command {
    let mut command = Command::new(folder.0.join(name));
    for variable in ["KUBEWRIGHT_CONTROLLERS", "KUBEWRIGHT_NODES", "KUBEWRIGHT_RECORD", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.current_dir(&folder.0);
    command
}

/// A process that is killed when it is dropped.
pub(super) struct Running {
    pub(super) process: Child,
}

impl Running {
    /// Ends its process group with SIGTERM and waits for it; `None` when it does not end.
    pub(super) async fn end(&mut self) -> Option<ExitStatus> {
        let group = format!("-{}", self.process.id());
        let sent = Command::new("kill").args(["-TERM", "--", &group]).status().expect("kill is there");
        assert!(sent.success(), "it has ended before");
        let ended = eventually(async || self.process.try_wait().expect("a status"));
        tokio::time::timeout(PATIENCE, ended).await.ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Both programs, healthy.
pub(super) struct Pair {
    pub(super) folder: Folder,
    pub(super) apiserver: Running,
    etcd: Running,
    /// The ports of the API and of etcd's clients.
    ports: (u16, u16),
    /// Made the certificates.
    authority: Endpoint,
}

impl Pair {
    /// Starts both with the flags of controller-runtime's envtest and waits as it does. `adjust` is what a test changes in
    /// the command of the API server.
    pub(super) async fn start(test: &str, adjust: impl FnOnce(&mut Command)) -> Self {
        Self::start_authorizing(test, "--authorization-mode=RBAC", adjust).await
    }

    /// The same, with this flag to say who may do what.
    pub(super) async fn start_authorizing(
        test: &str,
        authorization: &str,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let folder = Folder::new(test);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let authority = Endpoint::bind(any, &World::real()).await.expect("certificates");
        let key = TokenKey::generate_pem().expect("a key");
        let made = authority.certificate();
        for (name, text) in [
            ("apiserver.crt", made.chain_pem()),
            ("apiserver.key", made.key_pem()),
            ("client-cert-auth-ca.crt", authority.ca_pem()),
            ("sa-signer.key", key.clone()),
            ("sa-signer.crt", key),
        ] {
            fs::write(folder.0.join(name), text).expect("the folder is writable");
        }
        let ports = (free_port(), free_port());
        let etcd = folder.spawn("etcd", &etcd_arguments(&folder.0, ports.1), |_| {});
        let arguments = apiserver_arguments(&folder.0, ports, authorization);
        let apiserver = folder.spawn("kube-apiserver", &arguments, adjust);
        let pair = Self { folder, apiserver, etcd, ports, authority };
        let healthy = async || pair.anonymous().apiserver_version().await.ok();
        tokio::time::timeout(PATIENCE, eventually(healthy)).await.expect("the API server is healthy");
        let healthy = async || TcpStream::connect((Ipv4Addr::LOCALHOST, pair.ports.1)).ok();
        tokio::time::timeout(PATIENCE, eventually(healthy)).await.expect("etcd is healthy");
        pair
    }

    /// Ends both as envtest does; gives how each has ended, if it has.
    pub(super) async fn terminate(&mut self) -> [(&'static str, Option<ExitStatus>); 2] {
        [("kube-apiserver", self.apiserver.end().await), ("etcd", self.etcd.end().await)]
    }

    pub(super) fn anonymous(&self) -> Client {
        client(&self.url(), &self.authority.ca_pem(), None)
    }

    pub(super) fn admin(&self) -> Client {
        self.client("admin", &["system:masters"])
    }

    /// A client with a certificate of this user.
    pub(super) fn client(&self, user: &str, groups: &[&str]) -> Client {
        let hour = Duration::from_secs(3600);
        let shown = self.authority.client_certificate(user, groups, hour).expect("a certificate");
        let pem = shown.certificate_pem() + &shown.key_pem();
        client(&self.url(), &self.authority.ca_pem(), Some(&pem))
    }

    /// What etcd answers to a GET: the status and the body.
    pub(super) fn etcd(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.1)).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.0)
    }
}

fn etcd_arguments(folder: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--advertise-client-urls=http://127.0.0.1:{port}"),
        format!("--data-dir={}", folder.display()),
        format!("--listen-client-urls=http://127.0.0.1:{port}"),
        format!("--listen-peer-urls=http://127.0.0.1:{}", free_port()),
        "--unsafe-no-fsync=true".to_owned(),
    ]
}

fn apiserver_arguments(folder: &Path, (port, etcd): (u16, u16), authorization: &str) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        "--allow-privileged=true".to_owned(),
        authorization.to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", folder.display()),
        format!("--client-ca-file={}", file("client-cert-auth-ca.crt")),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        format!("--secure-port={port}"),
        format!("--service-account-issuer=https://127.0.0.1:{port}/"),
        format!("--service-account-key-file={}", file("sa-signer.crt")),
        format!("--service-account-signing-key-file={}", file("sa-signer.key")),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
    ]
}

/// A client that trusts these certificates; with a certificate and a key of its own, if it has them.
pub(super) fn client(url: &str, ca: &str, identity: Option<&str>) -> Client {
    let mut config = Config::new(url.parse().expect("a URL"));
    config.root_cert =
        Some(pem::parse_many(ca).expect("PEM").into_iter().map(pem::Pem::into_contents).collect());
    if let Some(pem) = identity {
        let encoded = Some(STANDARD.encode(pem));
        config.auth_info = AuthInfo {
            client_certificate_data: encoded.clone(),
            client_key_data: encoded.map(Into::into),
            ..AuthInfo::default()
        };
    }
    Client::try_from(config).expect("a client")
}

/// A port that nobody has at the moment.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Looks again and again until there is something.
pub(super) async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
