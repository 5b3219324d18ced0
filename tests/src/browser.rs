//! A headless Chromium, driven by the DevTools protocol over two pipes.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::needed;

/// How long the page may take for what takes it milliseconds, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The colours that a page is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Scheme {
    /// Its name in CSS.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A browser with one page of 1280 by 800; ended when dropped.
pub struct Browser {
    process: Child,
    profile: PathBuf,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    last: u64,
    session: String,
    /// Errors of scripts and of the console, and what the policy of the page has refused.
    pub errors: Vec<String>,
}

impl Browser {
    /// Starts one. `test` names its folder.
    ///
    /// # Panics
    /// When it does not start, or the environment does not say where `CHROMIUM` is.
    #[must_use]
    pub fn start(test: &str) -> Self {
        let profile = std::env::temp_dir().join(format!("kubewright-{test}-{}", std::process::id()));
        // The protocol is on the descriptors 3 and 4. Who runs tests as root, as in a container, has no sandbox.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, "sh"])
            .arg(needed("CHROMIUM"))
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--hide-scrollbars",
                // What the machine would choose, for pictures that are compared.
                "--font-render-hinting=none",
                "--force-color-profile=srgb",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Chromium starts");
        let commands = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let session = String::new();
        let mut browser = Self { process, profile, commands, answers, last: 0, session, errors: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        let size = json!({"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", &size);
        browser
    }

    /// A call of the protocol; gives its result.
    ///
    /// # Panics
    /// When the browser has ended, or answers with an error.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        write!(self.commands, "{message}\0").expect("Chromium reads");
        loop {
            let mut answer = Vec::new();
            self.answers.read_until(0, &mut answer).expect("Chromium answers");
            assert_eq!(answer.pop(), Some(0), "Chromium ended at {method}");
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let is_bad = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            _ => false,
        };
        if is_bad {
            self.errors.push(event["params"].to_string());
        }
    }

    /// Opens an address, and forgets what the page before it had.
    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", &json!({"url": "about:blank"}));
        self.call("Page.navigate", &json!({"url": address}));
    }

    /// Asks the page for these colours.
    pub fn show_in(&mut self, scheme: Scheme) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme.name()}]});
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// A picture of what is shown, as WebP of a quality up to 100.
    ///
    /// # Panics
    /// When the browser gives none.
    pub fn picture(&mut self, quality: u8) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", &json!({"format": "webp", "quality": quality}));
        BASE64_STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    /// When it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    /// When it does not get true in half a minute.
    pub async fn until(&mut self, expression: &str) {
        let start = tokio::time::Instant::now();
        // The document of the address may not be there yet, or not as a whole.
        let asked =
            format!("(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()");
        while self.value(&asked) != true {
            if start.elapsed() > PATIENCE {
                let page = self.value("document.body.innerText");
                panic!("never: {expression}\n{page}\n{:?}", self.errors);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Presses a key, such as `ArrowDown`; `text` is what it writes.
    pub fn press(&mut self, key: &str, text: &str) {
        let mut down = json!({"type": "keyDown", "key": key});
        if !text.is_empty() {
            down["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", &down);
        self.call("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key}));
    }

    /// Clicks what a selector means.
    pub fn click(&mut self, selector: &str) {
        self.value(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Roles of what can be used or read and has no name, for who does not see it.
    ///
    /// # Panics
    /// When the browser gives no tree.
    pub fn nameless(&mut self) -> Vec<Value> {
        const NAMED: [&str; 10] = [
            "button",
            "textbox",
            "searchbox",
            "combobox",
            "tab",
            "tree",
            "treeitem",
            "slider",
            "img",
            "tabpanel",
        ];
        let tree = self.call("Accessibility.getFullAXTree", &json!({}));
        let nodes = tree["nodes"].as_array().expect("nodes").iter();
        nodes
            .filter(|node| node["ignored"] != true)
            .filter(|node| node["role"]["value"].as_str().is_some_and(|role| NAMED.contains(&role)))
            .filter(|node| node["name"]["value"].as_str().is_none_or(str::is_empty))
            .cloned()
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
