//! The page of `up --ui` and of `view`, in a browser.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubewright_cluster::recording::{Did, Recording, Revision, Write, Writer, besides};
use kubewright_recording::Record;
use kubewright_runtime::{
    CancellationToken, Context, Controller, Error, Key, Outcome, Reconciler,
    command::{Operator, Run},
};
use kubewright_tests::{
    Up,
    browser::{Browser, Scheme},
    needed,
};
use serde_json::json;

use crate::kube_rs::client;

/// The names of the objects that can be seen in the tree.
const TREE: &str = "[...document.querySelectorAll('#tree .line')].map((line) => line.innerText)";

fn web() -> Deployment {
    kubewright_objects::from_value(json!({
        "metadata": {"name": "web", "annotations": {"note": "<img src=x onerror=\"document.title='run'\">"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    }))
    .expect("a Deployment")
}

#[tokio::test]
#[ignore = "needs Chromium: cargo xtask test"]
async fn the_page_shows_what_happens_and_goes_back_in_time() {
    let up = Up::start("view", &["--ui", "--clock=2030-01-01T00:00:00Z,speed=1"]);
    let mut browser = Browser::start("view-profile");
    browser.open(up.link());
    browser.until("document.querySelector('#status').textContent === 'live'").await;
    assert!(!browser.value("location.href").to_string().contains("token"), "the token stays nowhere");

    // What happens after the page was opened is shown without a reload, as text whatever it is.
    let deployments: Api<Deployment> = Api::default_namespaced(client(&up).await);
    deployments.create(&PostParams::default(), &web()).await.expect("made");
    browser.until(&format!("{TREE}.filter((line) => /Pod\\s*web-.*Running/s.test(line)).length === 2")).await;

    // By keyboard: search, choose, and look.
    browser.press("/", "/");
    browser.call("Input.insertText", &json!({"text": "deployment web"}));
    browser.until(&format!("{TREE}.length === 2")).await;
    browser.press("Enter", "\r");
    browser.until("document.querySelector('#object h2')?.innerText === 'Deployment default/web'").await;
    browser.until("document.querySelector('.yaml').innerText.includes('onerror=')").await;
    assert_eq!(browser.value("document.images.length"), 0, "markup is text");
    assert!(browser.value("document.title").as_str().expect("one").starts_with("Kubewright"));
    assert!(
        browser
            .value("document.querySelector('.legend').innerText")
            .to_string()
            .contains("kube-controller-manager")
    );
    assert!(browser.value("location.hash").to_string().contains("object=apps"), "a link to it can be shared");

    // What changed it, and the cluster as it was when it was made.
    deployments
        .patch("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}})))
        .await
        .expect("scaled");
    browser.click(".tab:not([aria-selected=true])");
    browser.until("[...document.querySelectorAll('.diff.plus')].some((line) => line.innerText.includes('replicas: 3'))").await;
    browser.click(".change:last-child > .link");
    browser.until("document.body.classList.contains('past')").await;
    browser.value("document.querySelector('#search').focus()");
    browser.press("Escape", "");
    browser
        .until(&format!(
            "{TREE}.some((line) => /web/.test(line)) && !{TREE}.some((line) => /Pod\\s*web/.test(line))"
        ))
        .await;
    browser.press("[", "[");
    browser.until(&format!("!{TREE}.some((line) => /Deployment\\s*web/.test(line))")).await;
    browser.click("#live");
    browser.until(&format!("{TREE}.filter((line) => /Pod\\s*web/.test(line)).length === 3")).await;
    assert_eq!(browser.nameless(), [json!(null); 0], "all that can be used has a name");

    // Requests, time and faults.
    browser.click("#page-requests");
    browser.until("document.querySelector('#requests tbody').innerText.includes('deployments.apps')").await;
    assert_eq!(browser.nameless(), [json!(null); 0]);
    browser.click("#page-controls");
    browser.until("document.querySelector('#controls .large').innerText.startsWith('2030-01-01 00:')").await;
    browser.value("[...document.querySelectorAll('#controls button')].find((one) => one.textContent === '+24h').click()");
    browser.until("document.querySelector('#controls .large').innerText.startsWith('2030-01-02')").await;
    browser.value("[...document.querySelectorAll('#controls button')].find((one) => one.textContent === 'Inject').click()");
    browser.until("document.querySelector('#controls tbody').innerText.includes('conflict')").await;
    assert_eq!(browser.nameless(), [json!(null); 0]);
    assert_eq!(browser.errors, [""; 0], "no script failed, and the policy of the page refused nothing");
}

/// Takes every ConfigMap but `bad`, and marks `good`.
struct Maps;

impl Reconciler for Maps {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let map = ctx.get::<ConfigMap>(key);
        if key.name == "good" && map.is_some_and(|map| map.data.is_none()) {
            ctx.patch::<ConfigMap>(key, json!({"data": {"seen": "yes"}})).await?;
        }
        if key.name == "bad" { Err(Error::new("it is bad")) } else { Ok(Outcome::Done) }
    }
}

#[tokio::test]
#[ignore = "needs Chromium: cargo xtask test"]
async fn what_an_operator_reconciles_is_shown_with_why_and_what_fails_is_in_its_queue() {
    let file = std::env::temp_dir().join(format!("kubewright-view-{}.kwrec", std::process::id()));
    let mut up = Up::start("view-reconciles", &["--ui", "--record", &file.display().to_string()]);
    let run =
        Run { kubeconfig: Some(up.kubeconfig()), namespaces: vec!["default".to_owned()], ..Run::default() };
    let operator =
        Operator::new("shops", "1.0").controller(|| Controller::new("maps", Maps).for_kind::<ConfigMap>());
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let running = tokio::spawn(async move { operator.run(&run, stopped).await });
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&up).await);
    for name in ["good", "bad"] {
        let map = kubewright_objects::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap");
        maps.create(&PostParams::default(), &map).await.expect("made");
    }
    let mut browser = Browser::start("view-reconciles-profile");
    browser.open(up.link());
    browser.until("document.querySelector('#status').textContent === 'live'").await;
    browser.click("#page-reconciles");
    let rows = "[...document.querySelectorAll('#reconciles tbody tr')].map((row) => row.innerText)";
    browser.until(&format!("{rows}.some((row) => row.includes('default/good') && row.includes('ConfigMap default/good') && row.includes('done'))")).await;
    browser
        .until(&format!("{rows}.some((row) => row.includes('default/bad') && row.includes('it is bad'))"))
        .await;
    browser.until("document.querySelector('.queue')?.innerText.includes('1 in back-off')").await;
    assert_eq!(browser.nameless(), [json!(null); 0], "all that can be used has a name");

    // What it read and wrote is opened below it, and leads to the object as it was written.
    browser.click("#reconciles button[aria-label='1 read, 1 written by the reconcile of default/good']");
    browser.until("document.querySelector('.accesses')?.innerText.includes('get configmaps default/good in the cache at ')").await;
    let written = "[...document.querySelectorAll('.accesses .wrote')].map((line) => line.innerText)[0]";
    let said = browser.value(written);
    assert!(
        said.as_str().is_some_and(|line| line.starts_with("patch configmaps default/good now at ")),
        "{said}"
    );
    assert_eq!(browser.nameless(), [json!(null); 0], "all that can be used has a name");
    browser.click(".accesses .wrote .link");
    browser.until("document.querySelector('#object h2')?.innerText === 'ConfigMap default/good'").await;
    browser.until("document.querySelector('.yaml').innerText.includes('seen: ')").await;
    browser.click("#page-reconciles");
    let failed = "(() => { const end = document.querySelectorAll('#reconciles select')[1]; end.value = 'failed'; end.dispatchEvent(new Event('input')); })()";
    browser.value(failed);
    browser.until(&format!("{rows}.every((row) => row.includes('failed'))")).await;
    assert!(browser.value("location.hash").to_string().contains("end=failed"), "a link to it can be shared");
    assert_eq!(browser.errors, [""; 0]);
    stop.cancel();
    running.await.expect("no panic").expect("it ends well");

    let recorded = || {
        let found = besides(std::fs::File::open(&file).expect("the recording"), 1).expect("a recording");
        let reconciles = found.into_iter().filter_map(|record| match record {
            Record::Reconcile(reconcile) => Some(reconcile),
            _ => None,
        });
        reconciles.collect::<Vec<_>>()
    };
    let is_recorded = async {
        while !recorded().iter().any(|one| one.key == "default/bad" && one.failed) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), is_recorded).await.expect("it is recorded");
    let good = recorded().into_iter().find(|one| one.key == "default/good").expect("it is recorded");
    assert!(good.by.program.starts_with("shops/1.0") && good.controller == "maps", "{good:?}");
    let accesses: Vec<_> = good.accesses.iter().map(ToString::to_string).collect();
    assert!(
        matches!(&*accesses, [read, write] if read.starts_with("get configmaps default/good in the cache: at ") && write.starts_with("patch configmaps default/good: now at ")),
        "{accesses:?}"
    );
    up.kill();
    let _ = std::fs::remove_file(file);
}

#[tokio::test]
#[ignore = "needs Chromium: cargo xtask test"]
async fn without_the_token_the_page_says_what_to_open() {
    let up = Up::start("view-locked", &["--ui"]);
    let mut browser = Browser::start("view-locked-profile");
    let address = up.link().split('#').next().expect("an address");
    browser.open(address);
    browser.until("document.querySelector('#notice').innerText.includes('open that link')").await;
    browser.open(&format!("{address}#token=wrong"));
    browser.until("document.querySelector('#notice').innerText.startsWith('token: ')").await;
    assert_eq!(browser.value("document.querySelectorAll('.line').length"), 0);
}

/// A recording of so many ConfigMaps.
fn large(objects: u64) -> Recording {
    let writes = (1..=objects).map(|number| {
        let name = format!("map-{number:05}");
        let metadata = json!({"name": name, "namespace": "default", "uid": number.to_string()});
        Write {
            revision: Revision(number),
            time: Timestamp::from_millisecond(i64::try_from(number).expect("small")).expect("a time"),
            by: Writer { user: format!("user-{}", number % 9), program: String::new() },
            did: Did::Create,
            collection: "/configmaps".into(),
            key: format!("default/{name}").into(),
            bytes: json!({"kind": "ConfigMap", "metadata": metadata}).to_string().into(),
        }
    });
    writes.collect()
}

#[tokio::test]
#[ignore = "needs Chromium: cargo xtask test"]
async fn ten_thousand_objects_of_a_recording_are_shown_in_light_and_dark() {
    let path = std::env::temp_dir().join(format!("kubewright-view-{}.recording", std::process::id()));
    let mut file = std::fs::File::create(&path).expect("a file");
    large(10_000).write(&kubewright_cluster::recording::Header::default(), &mut file).expect("written");
    let mut program = Command::new(needed("KUBEWRIGHT"))
        .arg("view")
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(program.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let link = lines
        .filter_map(|line| line.split_whitespace().find(|word| word.contains("#token=")).map(str::to_owned))
        .next();

    let mut browser = Browser::start("view-large-profile");
    browser.open(&link.expect("a link"));
    browser.until("document.querySelector('#status').textContent === 'recording'").await;
    browser.until(&format!("{TREE}[0]?.includes('10000')")).await;
    browser.value("document.querySelector('#tree').scrollTop = 1e9");
    browser.until(&format!("{TREE}.at(-1).includes('map-10000')")).await;
    let lines = browser.value("document.querySelectorAll('.line').length").as_u64().expect("a number");
    assert!(lines < 100, "only what can be seen is in the document: {lines}");
    let mut grounds = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        browser.show_in(scheme);
        grounds.push(browser.value("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(grounds[0], grounds[1]);
    browser.value("(() => { const slider = document.querySelector('#slider'); slider.value = 5000; slider.dispatchEvent(new Event('input')); })()");
    browser.until(&format!("{TREE}[0]?.includes('5000') || document.querySelector('#moment').textContent.includes('revision 5000 of 10000')")).await;
    assert_eq!(browser.errors, [""; 0]);
    let _ = program.kill();
    let _ = program.wait();
    let _ = std::fs::remove_file(path);
}
