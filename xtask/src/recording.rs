//! `cargo xtask recording`: docs/first-minute.svg, a terminal in which the README's first commands were run.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    run::{cargo, run, target, workspace},
    tools,
};

/// What is typed after `kubewright up`, in another terminal.
const COMMANDS: [&str; 5] = [
    "kubectl create deployment web --image=nginx --replicas=2",
    "kubectl wait deployment web --for=condition=Available",
    "kubectl get deployment,pods",
    "kubectl delete pods --all --wait=false",
    "kubectl get pods",
];

/// What the folder is called in the picture, wherever it is.
const HOME: &str = "/home/me";

/// How wide a character of 14 pixels is, and how high a line, in pixels.
const CHARACTER: f64 = 8.43;
const LINE: usize = 20;

/// Runs the commands on a release build and writes the picture of what they said.
///
/// # Errors
/// When there is no kubectl, or a command fails.
pub(crate) fn record() -> Result<()> {
    let kubectl = tools::kubectl().map_err(anyhow::Error::msg)?;
    // As the benchmarks build it, so that it is compiled once.
    run(&mut cargo(["build", "--release", "--package", "kubewright-cli", "--package", "apibench"]))?;
    let folder = target().join("recording");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut up = Up::start(&folder)?;
    let mut lines = vec!["$ kubewright up".to_owned()];
    lines.extend(up.said()?.into_iter().map(|line| line.replace(&*folder.to_string_lossy(), HOME)));
    lines.push(String::new());
    lines.push(format!("$ export KUBECONFIG={HOME}/kubewright.kubeconfig      # in another terminal"));
    for command in COMMANDS {
        lines.push(format!("$ {command}"));
        let words = command.split_whitespace().skip(1);
        let output = Command::new(&kubectl)
            .args(words)
            .env("KUBECONFIG", folder.join("kubewright.kubeconfig"))
            .output()?;
        ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        lines.extend(String::from_utf8(output.stdout)?.lines().map(str::to_owned));
    }
    drop(up);
    Ok(fs::write(workspace().join("docs/first-minute.svg"), picture(&lines))?)
}

/// A running `kubewright up`, ended when dropped.
struct Up {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Up {
    fn start(folder: &Path) -> Result<Self> {
        let mut up = Command::new(target().join("release/kubewright"));
        up.args(["up", "--exit-with-stdin"]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = up.spawn().context("cannot start kubewright")?;
        let output = BufReader::new(process.stdout.take().context("the output is piped")?);
        Ok(Self { process, output })
    }

    /// What it says until it has said how it is ended.
    fn said(&mut self) -> Result<Vec<String>> {
        let mut said = Vec::new();
        for line in self.output.by_ref().lines() {
            said.push(line?);
            if said.last().is_some_and(|line| line.starts_with("Ctrl-C ends")) {
                return Ok(said);
            }
        }
        bail!("kubewright up ended: {}", said.join("; "))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Lines of a terminal as a picture.
fn picture(lines: &[String]) -> String {
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let (width, height) = ((longest as f64 * CHARACTER).ceil() as usize + 32, lines.len() * LINE + 32);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"A terminal: \
         kubewright up, and kubectl on it\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1f24\"/>\n<g font-family=\"ui-monospace, \
         Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d0d7de\" xml:space=\"preserve\">\n"
    );
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let bright = if line.starts_with("$ ") { " fill=\"#7ee787\"" } else { "" };
        svg += &format!(
            "<text x=\"16\" y=\"{}\"{bright}>{}</text>\n",
            16 + LINE * (index + 1) - 6,
            escaped(line)
        );
    }
    svg + "</g>\n</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_bright_and_what_was_said_is_not() {
        let lines = ["$ kubectl get pods", "web-1 <none> & more", ""].map(str::to_owned);
        let svg = picture(&lines);
        assert!(svg.contains("<text x=\"16\" y=\"30\" fill=\"#7ee787\">$ kubectl get pods</text>"), "{svg}");
        assert!(svg.contains("<text x=\"16\" y=\"50\">web-1 &lt;none&gt; &amp; more</text>"), "{svg}");
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"193\" height=\"92\""),
            "{svg}"
        );
    }

    #[test]
    fn the_picture_in_the_readme_is_of_these_commands() {
        let svg = fs::read_to_string(workspace().join("docs/first-minute.svg"))
            .expect("cargo xtask recording makes it");
        for command in COMMANDS {
            assert!(svg.contains(&format!(">$ {}<", escaped(command))), "{command}");
        }
    }
}
