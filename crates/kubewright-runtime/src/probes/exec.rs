//! Asking by a command in a container.

use http::StatusCode;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Status};
use kube::{Api, Client, api::AttachParams, client::UpgradeConnectionError};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::ProbeResult;
use crate::{
    Key, error,
    rbac::{Missing, Right, Verb},
};

/// How much a command may say.
const LONGEST_ANSWER: u64 = 64 << 10;
/// How much of it is told.
const LONGEST_TEXT: usize = 256;

/// A command to be run in a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The Pod.
    pub pod: Key,
    /// The container; `None` for the Pod's only one.
    pub container: Option<String>,
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
}

/// Asks by running a command (`kubectl exec`): one that ends with 0 is well. It takes the right to `create` (and `get`)
/// `pods/exec`.
#[derive(Clone)]
pub struct Exec(Client);

impl Exec {
    /// Asks by this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The result: what the command wrote. The probes' timeout ends the wait; the command itself goes on until it ends.
    pub fn run(&self, command: Command) -> impl Future<Output = ProbeResult> + Send + use<> {
        let client = self.0.clone();
        async move {
            let pod = command.pod.clone();
            run(client, command).await.map_err(|error| describe(&error, pod))?
        }
    }
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Exec").finish()
    }
}

/// What went wrong. A WebSocket that is refused tells no more than a code.
fn describe(error: &kube::Error, pod: Key) -> String {
    let is_refused = matches!(
        error,
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(code)) if *code == StatusCode::FORBIDDEN
    );
    if !is_refused {
        return error::describe(error);
    }
    let right = Right {
        group: String::new(),
        resource: "pods/exec".to_owned(),
        verb: Verb::Create,
        namespace: pod.namespace,
        name: Some(pod.name),
    };
    format!("{error}; {}", Missing { right })
}

async fn run(client: Client, command: Command) -> Result<ProbeResult, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client, command.pod.namespace.as_deref().unwrap_or("default"));
    let params = AttachParams { container: command.container, ..AttachParams::default() };
    let mut process = pods.exec(&command.pod.name, command.command, &params).await?;
    let (stdout, stderr, status) = (process.stdout(), process.stderr(), process.take_status());
    let ended = async {
        match status {
            Some(status) => status.await,
            None => None,
        }
    };
    let (stdout, stderr, ended) = tokio::join!(text(stdout), text(stderr), ended);
    Ok(result(&stdout, &stderr, ended.as_ref()))
}

/// What a stream said. What comes after the limit is not read, and the command waits; the timeout ends that.
async fn text(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut text = Vec::new();
    if let Some(stream) = stream {
        // What was read before it broke is all that there is.
        let _ = stream.take(LONGEST_ANSWER).read_to_end(&mut text).await;
    }
    String::from_utf8_lossy(&text).trim().chars().take(LONGEST_TEXT).collect()
}

fn result(stdout: &str, stderr: &str, status: Option<&Status>) -> ProbeResult {
    let Some(status) = status else { return Err("the connection ended before the command did".to_owned()) };
    if status.status.as_deref() == Some("Success") {
        return Ok(stdout.to_owned());
    }
    let message = status.message.as_deref().unwrap_or("the command failed");
    let said = if stderr.is_empty() { stdout } else { stderr };
    Err(if said.is_empty() { message.to_owned() } else { format!("{message}: {said}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_command_ended_is_told_with_what_it_said() {
        let ended = |status: &str| Status {
            status: Some(status.to_owned()),
            message: Some("exit code 1".to_owned()),
            ..Status::default()
        };
        assert_eq!(result("fine", "", Some(&ended("Success"))), Ok("fine".to_owned()));
        assert_eq!(result("", "no disk", Some(&ended("Failure"))), Err("exit code 1: no disk".to_owned()));
        assert!(result("", "", None).is_err());
    }
}
