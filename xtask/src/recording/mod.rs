//! `cargo xtask recording`: docs/first-minute.svg, a terminal in which the README's first commands were run, and what the page of
//! `up --ui` shows of the sample operators.

mod view;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

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

/// What `cargo xtask recording` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// A release build of the command that is there, instead of one that is made for it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs the commands on a release build and writes the pictures of what they said.
///
/// # Errors
/// When there is no kubectl, or a command fails.
pub(crate) fn record(options: &Options) -> Result<()> {
    let kubectl = tools::kubectl().map_err(anyhow::Error::msg)?;
    let program = match &options.program {
        Some(program) => program.canonicalize().with_context(|| format!("{}", program.display()))?,
        None => {
            // As the benchmarks build it, so that it is compiled once.
            run(&mut cargo(["build", "--release", "--package", "kubewright-cli", "--package", "apibench"]))?;
            target().join("release/kubewright")
        }
    };
    terminal(&program, &kubectl)?;
    match tools::chromium() {
        Ok(chromium) => view::pictures(&chromium, &kubectl),
        Err(why) => {
            eprintln!("== the pictures of the page WERE NOT MADE: {why}");
            Ok(())
        }
    }
}

/// An empty folder to run in.
fn fresh_folder() -> Result<PathBuf> {
    let folder = target().join("recording");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// What `kubectl` says to these words, with `input`, on the cluster of the folder.
fn said_by(kubectl: &Path, words: &str, folder: &Path, input: &str) -> Result<String> {
    let mut command = Command::new(kubectl);
    command.args(words.split_whitespace()).env("KUBECONFIG", folder.join("kubewright.kubeconfig"));
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    process.stdin.take().context("the input is piped")?.write_all(input.as_bytes())?;
    let output = process.wait_with_output()?;
    ensure!(output.status.success(), "kubectl {words}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The picture of a terminal.
fn terminal(program: &Path, kubectl: &Path) -> Result<()> {
    let folder = fresh_folder()?;
    let mut up = Up::start(program, &["up"], &folder)?;
    let mut lines = vec!["$ kubewright up".to_owned()];
    let said = up.said_until("Ctrl-C ends")?;
    lines.extend(said.into_iter().map(|line| line.replace(&*folder.to_string_lossy(), HOME)));
    lines.push(String::new());
    lines.push(format!("$ export KUBECONFIG={HOME}/kubewright.kubeconfig      # in another terminal"));
    for command in COMMANDS {
        lines.push(format!("$ {command}"));
        let words = command.strip_prefix("kubectl ").context("a command of kubectl")?;
        lines.extend(said_by(kubectl, words, &folder, "")?.lines().map(str::to_owned));
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
    fn start(program: &Path, arguments: &[&str], folder: &Path) -> Result<Self> {
        let mut up = Command::new(program);
        up.args(arguments).arg("--exit-with-stdin").current_dir(folder);
        let mut process =
            up.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start kubewright")?;
        let output = BufReader::new(process.stdout.take().context("the output is piped")?);
        Ok(Self { process, output })
    }

    /// What it says until it has said a line that begins so.
    fn said_until(&mut self, last: &str) -> Result<Vec<String>> {
        let mut said = Vec::new();
        for line in self.output.by_ref().lines() {
            said.push(line?);
            if said.last().is_some_and(|line| line.starts_with(last)) {
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
         Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d0d7de\">\n"
    );
    // On each text: browsers do not inherit it, and columns are made of spaces.
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let bright = if line.starts_with("$ ") { " fill=\"#7ee787\"" } else { "" };
        svg += &format!(
            "<text x=\"16\" y=\"{}\" xml:space=\"preserve\"{bright}>{}</text>\n",
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
        let lines = ["$ kubectl get pods", "web-1    <none> & more", ""].map(str::to_owned);
        let svg = picture(&lines);
        assert!(
            svg.contains(
                "<text x=\"16\" y=\"30\" xml:space=\"preserve\" fill=\"#7ee787\">$ kubectl get pods</text>"
            ),
            "{svg}"
        );
        assert!(
            svg.contains(
                "<text x=\"16\" y=\"50\" xml:space=\"preserve\">web-1    &lt;none&gt; &amp; more</text>"
            ),
            "{svg}"
        );
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"218\" height=\"92\""),
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
