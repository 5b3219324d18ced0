//! `kubewright image push` and `pull` with the registry of `github.com/distribution/distribution`, on loopback.
//!
//! `cargo xtask test` finds or fetches it (Debian's `docker-registry`).

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use kubewright_image::testing::{Folder, TestImage, TestLayer};
use kubewright_image::{Reference, Store};
use kubewright_tests::needed;
use serde_json::json;

/// `open-sesame`, by bcrypt, as `htpasswd -B` writes it.
const HTPASSWD: &str = "somebody:$2b$04$7mwU/Y6nEdaWxlOJ8nsGEeYzLF94BiLpsK8Usoyjx6wvXnCwkC9P.\n";

/// A registry that runs; ended when dropped.
struct Registry {
    process: Child,
    address: String,
    folder: Folder,
}

impl Registry {
    /// Starts one; with `users` it wants to know who asks.
    async fn start(test: &str, users: bool) -> Self {
        let folder = Folder::new(test);
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("bound").to_string();
        drop(free);
        let at = |name: &str| folder.path().join(name);
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": at("registry")}},
            "http": {"addr": address, "secret": "of this test"},
        });
        if users {
            fs::write(at("htpasswd"), HTPASSWD).expect("written");
            config["auth"] = json!({"htpasswd": {"realm": "test", "path": at("htpasswd")}});
        }
        // JSON is YAML.
        fs::write(at("config.yml"), config.to_string()).expect("written");
        let process = Command::new(needed("DOCKER_REGISTRY"))
            .arg("serve")
            .arg(at("config.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry starts");
        let registry = Self { process, address, folder };
        for _ in 0..600 {
            if TcpStream::connect(&registry.address).is_ok() {
                return registry;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("docker-registry does not listen on {}", registry.address);
    }

    fn store(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts an image with a layer of this many bytes into the store `pushed`, under a name at this registry.
    fn image(&self, repository: &str, bytes: usize) -> String {
        let content: Vec<u8> = (0..bytes).map(|at| (at / 11 % 253) as u8).collect();
        let image = TestImage::new(&[TestLayer::new().file("a", 0o644, &content)], &json!({}));
        let layout = self.store("layout");
        let name = format!("{}/{repository}", self.address);
        image.layout(&layout, &[&name]).expect("written");
        self.run("pushed", &["load", &layout.display().to_string()], None);
        name
    }

    /// Runs `kubewright image` on a store, with the credentials in a folder.
    fn try_run(&self, store: &str, arguments: &[&str], docker: Option<&str>) -> Output {
        let mut command = Command::new(needed("KUBEWRIGHT"));
        command.arg("image").args(arguments).arg("--image-store").arg(self.store(store));
        command
            .env("HOME", self.folder.path())
            .env_remove("REGISTRY_AUTH_FILE")
            .env_remove("XDG_RUNTIME_DIR");
        command.env("DOCKER_CONFIG", self.store(docker.unwrap_or("nobody")));
        command.output().expect("kubewright starts")
    }

    fn run(&self, store: &str, arguments: &[&str], docker: Option<&str>) -> String {
        let output = self.try_run(store, arguments, docker);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// What the registry says that the digest of a tag is.
    fn digest(&self, repository: &str, tag: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "HEAD /v2/{repository}/manifests/{tag} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Accept: application/vnd.oci.image.manifest.v1+json\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let digest = answer.lines().find_map(|line| line.strip_prefix("Docker-Content-Digest: "));
        digest.unwrap_or_else(|| panic!("no digest: {answer}")).to_owned()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
#[ignore = "needs docker-registry: cargo xtask test"]
async fn what_is_pushed_to_a_real_registry_comes_back_with_the_same_digest() {
    let registry = Registry::start("registry-real", false).await;
    // One that goes in chunks, and a small one.
    for (repository, bytes) in [("team/large", 50 << 20), ("small", 1000)] {
        let name = registry.image(repository, bytes);
        let pushed = registry.run("pushed", &["push", &name], None);
        let reference = Reference::parse(&name).expect("a name");
        let store = Store::open(&registry.store("pushed")).expect("a store");
        let digest = store.manifest(&reference).expect("read").expect("there").to_string();
        assert!(pushed.ends_with(&format!("Pushed   {name}:latest@{digest}\n")), "{pushed}");
        assert_eq!(registry.digest(repository, "latest"), digest);
        let again = registry.run("pushed", &["push", &name], None);
        assert_eq!(again.matches(": is there").count(), 2, "{again}");
        for from in [name.clone(), format!("{name}@{digest}")] {
            let pulled = registry.run("pulled", &["pull", &from], None);
            assert!(pulled.contains(&digest), "{pulled}");
        }
        let pulled = Store::open(&registry.store("pulled")).expect("a store");
        assert_eq!(pulled.manifest(&reference).expect("read").expect("there").to_string(), digest);
        let image = pulled.get(&reference).expect("read").expect("there");
        assert!(
            pulled.root(&image).expect("unpacked").join("a").metadata().expect("there").len() == bytes as u64
        );
    }
    let missing = registry.try_run("pulled", &["pull", &format!("{}/nothing:v1", registry.address)], None);
    let told = String::from_utf8_lossy(&missing.stderr);
    assert!(
        missing.status.code() == Some(1) && told.contains("has no nothing:v1: MANIFEST_UNKNOWN"),
        "{told}"
    );
}

#[tokio::test]
#[ignore = "needs docker-registry: cargo xtask test"]
async fn a_real_registry_that_asks_for_a_password_gets_the_one_that_docker_login_kept() {
    let registry = Registry::start("registry-password", true).await;
    let name = registry.image("app", 1000);
    for (docker, password) in [("known", "open-sesame"), ("wrong", "guess")] {
        fs::create_dir_all(registry.store(docker)).expect("a folder");
        let auth = STANDARD.encode(format!("somebody:{password}"));
        let config = json!({"auths": {&registry.address: {"auth": auth}}});
        fs::write(registry.store(docker).join("config.json"), config.to_string()).expect("written");
    }
    for (docker, words) in [(None, "wants credentials for app"), (Some("wrong"), "wants other credentials")] {
        let refused = registry.try_run("pushed", &["push", &name], docker);
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && told.contains(words), "{told}");
        assert!(!told.contains("guess"), "{told}");
    }
    registry.run("pushed", &["push", &name], Some("known"));
    registry.run("pulled", &["pull", &name], Some("known"));
}
