//! Lifecycle hooks of a container (`pkg/kubelet/lifecycle/handlers.go`).

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use crate::probe::{self, ProbeTarget};

/// How long a hook's HTTP request may take: the kubelet sets no limit of its own, other than that of the grace period.
const LONGEST_REQUEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs a hook.
///
/// # Errors
/// The message that the container's waiting state has when it was its `postStart` hook.
pub(crate) async fn run(handler: &LifecycleHandler, target: &ProbeTarget) -> Result<(), String> {
    let (container, pod) = (&target.spec.name, &target.pod);
    if let Some(exec) = &handler.exec {
        let command = exec.command.clone().unwrap_or_default();
        let words = command.join(" ");
        let (error, output) = match probe::output_of(&*target.container, command, None).await {
            Ok((0, _)) => return Ok(()),
            Ok((code, output)) => (format!("command '{words}' exited with {code}: {output}"), output),
            Err(failure) => (failure.to_string(), String::new()),
        };
        return Err(format!(
            "Exec lifecycle hook ([{words}]) for Container {container:?} in Pod {pod:?} failed - error: {error}, message: {output:?}"
        ));
    }
    if let Some(action) = &handler.http_get {
        let path = action.path.as_deref().unwrap_or_default();
        let headers = action.http_headers.as_deref().unwrap_or_default();
        let asked = match target.url(action) {
            Ok(url) => probe::get(&url, headers, &probe::user_agent("kube-lifecycle"), LONGEST_REQUEST)
                .await
                .map(|_| ()),
            Err(problem) => Err(problem),
        };
        return asked.map_err(|error| {
            format!("HTTP lifecycle hook ({path}) for Container {container:?} in Pod {pod:?} failed - error: {error}")
        });
    }
    if let Some(sleep) = &handler.sleep {
        tokio::time::sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or_default())).await;
        return Ok(());
    }
    // The API takes `tcpSocket`, and no kubelet knows it.
    Err("Cannot run handler: invalid handler".to_owned())
}
