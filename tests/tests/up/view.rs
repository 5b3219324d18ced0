//! The page of `up --ui` and of `view`, in a browser.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubewright_cluster::recording::{Did, Recording, Revision, Write, Writer};
use kubewright_tests::{Up, needed};
use serde_json::json;

use crate::browser::Browser;
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
    for scheme in ["light", "dark"] {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.call("Emulation.setEmulatedMedia", &features);
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
