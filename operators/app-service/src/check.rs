//! Asking pods how they are: what Kubernetes has no events of.

use std::time::Duration;

use http::Uri;
use kube::Client;
use kubewright::{
    Key, World,
    probes::{Command, Exec, HttpGet, ProbeResult, Probes},
    sources::{Every, Jitter},
};

/// How often an AppService is asked, and how long its pods may take.
const EVERY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Who asks.
pub type Checks = Probes<Question>;

/// What pods are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A command, in each pod.
    Exec {
        /// The pods.
        pods: Vec<Key>,
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// A GET of each.
    Http(Vec<String>),
}

/// Asks pods by commands (as this client) and over the network.
#[must_use]
pub fn real(world: &World, client: &Client) -> Checks {
    let (exec, http) = (Exec::new(client.clone()), HttpGet::default());
    with(world, move |question| ask(exec.clone(), http.clone(), question))
}

/// Asks as `ask` has it.
#[must_use]
pub fn with<F>(world: &World, ask: impl Fn(Question) -> F + Send + Sync + 'static) -> Checks
where
    F: Future<Output = ProbeResult> + Send + 'static,
{
    Probes::new(world, Every::new(EVERY).jitter(Jitter(0.1)), TIMEOUT, ask)
}

async fn ask(exec: Exec, http: HttpGet, question: Question) -> ProbeResult {
    let mut answers = Vec::new();
    match question {
        Question::Exec { pods, command } => {
            for pod in pods {
                let name = pod.name.clone();
                let command = Command { pod, container: None, command: command.clone() };
                answers.push((name, exec.run(command).await));
            }
        }
        Question::Http(uris) => {
            for uri in uris {
                let answer = match uri.parse::<Uri>() {
                    Ok(parsed) => http.get(parsed).await,
                    Err(error) => Err(error.to_string()),
                };
                answers.push((uri, answer));
            }
        }
    }
    result(answers)
}

/// What all pods together say: well, if each is. What they say when they are is theirs, and may be another thing each time.
fn result(answers: Vec<(String, ProbeResult)>) -> ProbeResult {
    let count = answers.len();
    let ill: Vec<String> = answers
        .into_iter()
        .filter_map(|(who, answer)| answer.err().map(|error| format!("{who}: {error}")))
        .collect();
    if ill.is_empty() { Ok(format!("{count} pods are well")) } else { Err(ill.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_well_or_those_who_are_not_are_named() {
        let well = |name: &str| (name.to_owned(), Ok("12:00".to_owned()));
        assert_eq!(result(vec![well("a"), well("b")]), Ok("2 pods are well".to_owned()));
        let ill = ("b".to_owned(), Err("exit code 1".to_owned()));
        assert_eq!(result(vec![well("a"), ill]), Err("b: exit code 1".to_owned()));
    }
}
