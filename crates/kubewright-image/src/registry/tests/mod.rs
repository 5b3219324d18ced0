//! Against a small registry in this process, on a loopback address.

mod fake;
mod proxied;

use std::{fs, path::PathBuf};

use serde_json::json;

use self::fake::{Fake, Fault, USER};
use super::*;
use crate::{
    Recipe, Source,
    testing::{Folder, TestImage, TestLayer, blob, index},
};

/// An image in a store, and the store's folder as the layout that it is pushed from.
struct Pushed {
    folder: Folder,
    store: Store,
    manifest: Digest,
}

impl Pushed {
    /// An image with a layer of this many bytes.
    fn new(test: &str, bytes: usize) -> Self {
        let folder = Folder::new(test);
        let content: Vec<u8> = (0..bytes).map(|at| (at / 7 % 251) as u8).collect();
        let image = TestImage::new(&[TestLayer::new().file("a", 0o644, &content)], &json!({}));
        let layout = folder.path().join("layout");
        image.layout(&layout, &["app:v1"]).expect("written");
        let store = Store::open(&folder.path().join("store")).expect("a store");
        store.load(Source::Path(&layout), None).expect("loaded");
        let manifest = store.manifest(&name("app:v1")).expect("read").expect("there");
        Self { folder, store, manifest }
    }

    async fn push(&self, client: &Client, to: &Reference) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        let pushed = client.push(self.store.folder(), self.manifest, to, |event| events.push(event)).await;
        pushed.map(|()| events).map_err(|error| one_line(&error))
    }

    async fn pull(&self, client: &Client, from: &Reference) -> Result<Loaded, String> {
        let store = Store::open(&self.folder.path().join("pulled")).expect("a store");
        client.pull(from, &store, |_| ()).await.map_err(|error| one_line(&error))
    }
}

fn one_line(error: &RegistryError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(!text.contains(fake::PASSWORD) && !text.contains(fake::TOKEN), "a secret is told: {text}");
    text
}

fn name(text: &str) -> Reference {
    Reference::parse(text).expect("a name")
}

fn anonymous() -> Client {
    Client::new(Credentials::none(), false).expect("TLS")
}

/// A client of a user with this password.
fn client(folder: &Folder, registry: &str, password: &str) -> Client {
    use base64::Engine;
    let auth = base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{password}"));
    let path: PathBuf = folder.path().join("config.json");
    fs::write(&path, json!({"auths": {registry: {"auth": auth}}}).to_string()).expect("written");
    Client::new(Credentials::of_files(vec![path], "".into()), false).expect("TLS")
}

#[tokio::test]
async fn what_was_pushed_is_pulled_with_the_same_digest_and_is_not_sent_twice() {
    let fake = Fake::start().await;
    let image = Pushed::new("registry-twice", 1000);
    let to = name(&format!("{}/team/app:v1", fake.address));
    let events = image.push(&anonymous(), &to).await.expect("pushed");
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Done(_))).count(), 2);
    let loaded = image.pull(&anonymous(), &to).await.expect("pulled");
    assert_eq!(loaded.names, std::slice::from_ref(&to));
    assert_eq!(loaded.image.repo_digests, [to.by_digest(image.manifest)]);
    let by_digest = image.pull(&anonymous(), &to.by_digest(image.manifest)).await.expect("pulled");
    assert_eq!(by_digest.image.id, loaded.image.id);
    let again = image.push(&anonymous(), &to).await.expect("pushed");
    assert!(again.iter().all(|event| matches!(event, Event::Exists(_))), "{again:?}");
}

#[tokio::test]
async fn a_large_layer_goes_in_chunks_and_goes_on_where_the_registry_lost_it() {
    let image = Pushed::new("registry-chunks", 40 << 20);
    for faults in [vec![], vec![Fault::Truncated("PATCH"); 2], vec![Fault::Gone("PATCH"), Fault::Lost("PUT")]]
    {
        let fake = Fake::start().await;
        let to = name(&format!("{}/app:v1", fake.address));
        fake.faults(&faults);
        image.push(&anonymous(), &to).await.expect("pushed");
        assert_eq!(fake.faults_left(), 0);
        assert!(fake.count("PATCH") >= 3, "in chunks");
        image.pull(&anonymous(), &to).await.expect("whole");
    }
}

#[tokio::test]
async fn a_registry_that_fails_for_a_while_is_asked_again_and_one_that_goes_on_failing_is_not() {
    let image = Pushed::new("registry-again", 1000);
    let fake = Fake::start().await;
    let to = name(&format!("{}/app:v1", fake.address));
    fake.faults(&[Fault::Status("HEAD", 500), Fault::Status("POST", 429), Fault::Status("PUT", 503)]);
    image.push(&anonymous(), &to).await.expect("pushed in the end");
    fake.faults(&[Fault::Status("GET", 502), Fault::Truncated("GET")]);
    image.pull(&anonymous(), &to).await.expect("pulled in the end");
    assert_eq!(fake.faults_left(), 0);
    fake.faults(&[Fault::Status("GET", 500); 20]);
    let refused = image.pull(&anonymous(), &to).await.expect_err("it goes on");
    assert!(refused.contains("500 Internal Server Error") && refused.contains("on fire"), "{refused}");
    assert_eq!(fake.faults_left(), 20 - 5, "it was asked five times");
}

#[tokio::test]
async fn tokens_are_asked_for_with_the_credentials_of_the_registry_and_for_what_is_done() {
    let image = Pushed::new("registry-token", 1000);
    let fake = Fake::with_tokens().await;
    let to = name(&format!("{}/app:v1", fake.address));
    let known = client(&image.folder, &fake.address, fake::PASSWORD);
    image.push(&known, &to).await.expect("pushed");
    image.pull(&known, &to).await.expect("pulled");
    assert_eq!(fake.scopes(), ["repository:app:pull,push", "repository:app:pull"]);
    let refused = image.pull(&anonymous(), &to).await.expect_err("nobody");
    assert!(refused.contains("wants credentials for app") && refused.contains("docker login"), "{refused}");
    let wrong = client(&image.folder, &fake.address, "guess");
    let refused = image.pull(&wrong, &to).await.expect_err("somebody else");
    assert!(refused.contains("other credentials than those that are known"), "{refused}");
}

#[tokio::test]
async fn names_and_passwords_are_told_to_who_wants_them_in_each_request() {
    let image = Pushed::new("registry-basic", 1000);
    let fake = Fake::with_passwords().await;
    let to = name(&format!("{}/app:v1", fake.address));
    let known = client(&image.folder, &fake.address, fake::PASSWORD);
    image.push(&known, &to).await.expect("pushed");
    image.pull(&known, &to).await.expect("pulled");
    let wrong = client(&image.folder, &fake.address, "guess");
    for refused in [
        image.push(&wrong, &to).await.expect_err("wrong"),
        image.push(&anonymous(), &to).await.expect_err("none"),
    ] {
        assert!(refused.contains("credentials") && refused.contains("docker login"), "{refused}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_is_not_allowed() {
    let image = Pushed::new("registry-denied", 1000);
    let fake = Fake::start().await;
    let to = name(&format!("{}/team/app:v1", fake.address));
    fake.faults(&[Fault::Status("POST", 403)]);
    let refused = image.push(&anonymous(), &to).await.expect_err("denied");
    assert!(refused.contains("does not allow pushing a layer to team/app: DENIED: not yours"), "{refused}");
    let missing = image.pull(&anonymous(), &to).await.expect_err("not there");
    assert!(missing.contains("has no team/app:v1: MANIFEST_UNKNOWN"), "{missing}");
}

#[tokio::test]
async fn what_is_not_what_its_digest_says_is_not_taken() {
    let image = Pushed::new("registry-digest", 1000);
    let fake = Fake::start().await;
    let to = name(&format!("{}/app:v1", fake.address));
    image.push(&anonymous(), &to).await.expect("pushed");
    for damage in ["manifests/v1", "blobs/"] {
        fake.damage(damage);
        let from = if damage == "blobs/" { to.clone() } else { to.by_digest(image.manifest) };
        let refused = image.pull(&anonymous(), &from).await.expect_err(damage);
        assert!(refused.contains("not to be trusted"), "{refused}");
        assert!(
            Store::open(&image.folder.path().join("pulled"))
                .expect("a store")
                .list()
                .expect("read")
                .is_empty()
        );
    }
    fake.damage("told digest");
    let other = Pushed::new("registry-digest-told", 2000);
    let refused = other.push(&anonymous(), &to).await.expect_err("another digest");
    assert!(refused.contains("says it has sha256:0000"), "{refused}");
}

#[tokio::test]
async fn a_blob_that_never_ends_is_not_read_to_its_end() {
    let image = Pushed::new("registry-endless", 1000);
    let fake = Fake::start().await;
    let to = name(&format!("{}/app:v1", fake.address));
    image.push(&anonymous(), &to).await.expect("pushed");
    fake.damage("endless");
    let refused = image.pull(&anonymous(), &to).await.expect_err("endless");
    assert!(refused.contains("has more than its"), "{refused}");
}

#[tokio::test]
async fn layers_are_fetched_from_where_the_registry_sends_us_without_the_token() {
    let image = Pushed::new("registry-elsewhere", 1000);
    let (fake, storage) = (Fake::with_tokens().await, Fake::start().await);
    let to = name(&format!("{}/app:v1", fake.address));
    let known = client(&image.folder, &fake.address, fake::PASSWORD);
    image.push(&known, &to).await.expect("pushed");
    image.push(&anonymous(), &name(&format!("{}/app:v1", storage.address))).await.expect("stored");
    fake.send_elsewhere(&storage.address);
    image.pull(&known, &to).await.expect("pulled");
    assert!(storage.count("GET") >= 2 && !storage.was_told_who(), "without authorization");
}

#[tokio::test]
async fn of_an_image_for_several_machines_the_one_for_this_machine_is_pulled() {
    let fake = Fake::start().await;
    let folder = Folder::new("registry-index");
    let image = TestImage::new(&[TestLayer::new().file("a", 0o644, b"here")], &json!({}));
    let layout = folder.path().join("layout");
    image.layout(&layout, &["app:v1"]).expect("written");
    let mut here = image.blobs(&layout).expect("written");
    let architecture = crate::platform::Platform::here().architecture;
    here["platform"] = json!({"os": "linux", "architecture": architecture});
    let mut other = image.clone().built_for("s390x").blobs(&layout).expect("written");
    other["platform"] = json!({"os": "linux", "architecture": "s390x"});
    let list = json!({"schemaVersion": 2, "manifests": [other, here]}).to_string();
    let pointer = blob(&layout, crate::oci::INDEX, list.as_bytes()).expect("written");
    index(&layout, std::slice::from_ref(&pointer)).expect("written");
    fake.take(&layout, "app", "v1", &pointer);
    let store = Store::open(&folder.path().join("store")).expect("a store");
    let from = name(&format!("{}/app:v1", fake.address));
    let loaded = anonymous().pull(&from, &store, |_| ()).await.expect("pulled");
    assert_eq!(loaded.image.id, image.id());
    let list: Digest = pointer["digest"].as_str().expect("a digest").parse().expect("a digest");
    assert_eq!(loaded.image.repo_digests, [from.by_digest(list)]);
}

#[tokio::test]
async fn nobody_there_and_a_registry_elsewhere_without_tls_are_told() {
    let image = Pushed::new("registry-nobody", 10);
    let nobody = name("127.0.0.1:1/app:v1");
    let refused = image.push(&anonymous(), &nobody).await.expect_err("nobody");
    assert!(refused.contains("cannot reach the registry 127.0.0.1:1: Connection refused"), "{refused}");
    let told = RegistryError::Unreachable { registry: "r".into(), reason: "x".into(), plain_http: true };
    assert!(told.to_string().ends_with("say --insecure"));
}

#[tokio::test]
async fn what_kubewright_built_is_pushed_from_where_it_was_built() {
    let fake = Fake::start().await;
    let folder = Folder::new("registry-built");
    let program = folder.path().join("program");
    fs::write(&program, crate::elf::tests::program_for_here()).expect("written");
    let recipe = Recipe { program: &program, name: "app", labels: [].into(), authorities: None, time: 0 };
    let to = name(&format!("{}/app:v1", fake.address));
    let made = recipe.make(&folder.path().join("image"), std::slice::from_ref(&to)).expect("made");
    anonymous().push(&made.layout, made.digest, &to, |_| ()).await.expect("pushed");
    let store = Store::open(&folder.path().join("store")).expect("a store");
    let loaded = anonymous().pull(&to, &store, |_| ()).await.expect("pulled");
    assert_eq!((loaded.image.id, loaded.image.repo_digests), (made.id, vec![to.by_digest(made.digest)]));
}
