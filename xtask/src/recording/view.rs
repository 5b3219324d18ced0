//! Pictures of the page of `up --ui`, taken while the sample operators work.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::{Up, fresh_folder, said_by};
use crate::run::{cargo, run, target, workspace};

/// What kubectl is told before the pictures are taken, and what it reads: an operator has something to heal, and a pod fits on no node.
const COMMANDS: [(&str, &str); 4] = [
    ("delete deployment whitelist-sample-deployment", ""),
    ("apply --server-side --filename -", UNSCHEDULABLE),
    ("wait pod/whitelist-import --for=condition=PodScheduled=false", ""),
    ("wait whitelists.sample.foo.bar/whitelist-sample --for=jsonpath={.status.ready}=true", ""),
];

/// A pod that no node has a place for.
const UNSCHEDULABLE: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "whitelist-import"}, "spec": {
    "nodeSelector": {"disk": "ssd"}, "containers": [{"name": "import", "image": "busybox"}]}}"#;

/// A picture: its file in docs, what the address says, and how large it is.
struct Picture {
    file: &'static str,
    address: &'static str,
    size: &'static str,
}

const PICTURES: [Picture; 2] = [
    Picture {
        file: "view.webp",
        address: "search=whitelist&object=apps%2Fdeployments%7Cdefault%2Fwhitelist-sample-deployment",
        size: "1200,720",
    },
    Picture {
        file: "view-reconciles.webp",
        address: "page=reconciles&key=whitelist-sample",
        size: "1200,560",
    },
];

/// The longest that one may be, in bytes: it is looked at over the network.
const LARGEST: usize = 100_000;

/// Takes them of a debug build: it is there, and what they show are no measurements.
pub(super) fn pictures(chromium: &Path, kubectl: &Path) -> Result<()> {
    run(&mut cargo(["build", "--package", "kubewright-samples"]))?;
    let folder = fresh_folder()?;
    let program = target().join("debug/kubewright-samples");
    let mut up = Up::start(&program, &["up", "--samples", "--ui", "--port", "0"], &folder)?;
    let said = up.said_until("every sample has converged")?;
    let link = said.iter().find_map(|line| line.strip_prefix("what happens, in a browser: "));
    let link = link.context("up --ui says no address")?;
    for (words, input) in COMMANDS {
        said_by(kubectl, words, &folder, input)?;
    }
    for Picture { file, address, size } in PICTURES {
        let shot = folder.join(file);
        let mut browser = Command::new(chromium);
        // Who runs this as root, as in a container, has no sandbox. The page asks for what it shows after it was loaded: time
        // passes for it without anybody waiting.
        browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]);
        browser.args(["--virtual-time-budget=6000", &format!("--window-size={size}")]);
        browser.arg(format!("--user-data-dir={}", folder.join("browser").display()));
        browser.arg(format!("--screenshot={}", shot.display())).arg(format!("{link}&{address}"));
        run(browser.stderr(Stdio::null()))?;
        let picture = fs::read(&shot).with_context(|| format!("chromium made no {file}"))?;
        ensure!(picture.len() < LARGEST, "{file} has {} bytes", picture.len());
        fs::write(workspace().join("docs").join(file), picture)?;
    }
    Ok(())
}
